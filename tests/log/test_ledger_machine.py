"""Any interleaving of what can be done with a ledger, beside a slow one that goes through all events again."""

import tempfile

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, precondition, rule
from numpy.testing import assert_array_equal

import machines
from dither import log
from dither.log import reward_rules
from dither.log.database import days
from ledgers import Slow, decision, features, moment
from machines import TIMES, USERS, WHICH
from sums_by_hand import by_hand, same

HORIZONS = st.sampled_from(
    [(None, None, None), (20, None, None), (20, 0.0, None), (20, 1.0, "kept"), (20, None, "counts")]
)


class Machine(machines.Machine):
    @initialize(rewards=st.sampled_from(reward_rules.RULES), after=HORIZONS, told=st.booleans())
    def begin(self, rewards, after, told):
        horizon, default, late = after
        rewards, parts = ("sum", ["a", "b"]) if told else (rewards, None)
        self.given = {"rewards": rewards, "horizon": horizon, "default": default, "late": late, "parts": parts}
        self.slow = Slow(rewards, horizon, default, late or "kept", parts)
        self.held = [log.Ledger(self.where, **self.given)]
        if self.several:
            self.held.append(log.Ledger(self.where))

    def call(self, which, name, *arguments, **settings):
        name = "change" if name == "change_terms" else name
        found = getattr(self.one(which), name)(*arguments, **settings)
        return [one.id for one in found] if name == "pending" else found

    @rule(which=WHICH, time=TIMES, user=USERS, arm=st.integers(0, 1))
    def decide(self, which, time, user, arm):
        n = next(self.number)
        X, more = features(n), {"user": user, "age": n}
        made = self.one(which).record(decision(arm), X=X, id=f"d{n}", time=moment(time), extra=more)
        assert made.id == f"d{n}"
        self.slow.enter(made.id, time, user, arm)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data())
    def decide_again(self, which, data):
        id = data.draw(st.sampled_from(list(self.slow.decisions)))
        with pytest.raises(ValueError, match="ids must differ"):
            self.one(which).record(decision(), X=features(0), id=id)

    @precondition(lambda self: self.several)
    @rule(which=WHICH, again=st.booleans())
    def reopen(self, which, again):
        self.held[which].close()
        self.held[which] = log.Ledger(self.where, **(self.given | self.slow.terms if again else {}))

    @rule(which=WHICH, most=st.integers(1, 4))
    def add_up(self, which, most):
        with self.one(which).holding() as connection:
            days.keep(connection, self.one(which).database, most=most)

    @rule(which=WHICH)
    def sums_are_those_of_the_rows(self, which):
        same(self.one(which).days(), by_hand(self.one(which)))

    @rule(which=WHICH, from_export=st.booleans())
    def look(self, which, from_export):
        mine = self.one(which)
        assert len(mine) == len(self.slow.decisions)
        if not self.slow.decisions:
            with pytest.raises(ValueError, match="no decisions"):
                mine.read()
            return
        seen = mine.read()
        if from_export:
            with tempfile.TemporaryDirectory() as folder:
                mine.export(folder)
                seen = log.read(folder)
        frame = seen.frame
        assert frame["id"].to_list() == list(self.slow.decisions)
        wanted = [self.slow.total(id) for id in self.slow.decisions]
        got = frame["reward_list"].to_list() if self.slow.rule == "list" else frame["reward"].to_list()
        assert got == wanted
        for i, row in enumerate(frame.select("features", "arm", "propensity", "time").iter_rows(named=True)):
            one = self.slow.decisions[f"d{i}"]
            assert (row["arm"], row["propensity"], row["time"]) == (one["arm"], 0.5, moment(one["time"]))
            if one["erased"]:
                assert row["features"] is None
            else:
                assert_array_equal(row["features"], features(i))
        users = frame["user"].to_list() if "user" in frame.columns else [None] * frame.height
        assert users == [one["user"] for one in self.slow.decisions.values()]


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_a_ledger_says_what_a_slow_one_says(kind, tmp_path, request):
    machines.run(Machine, kind, tmp_path, request, many={"memory": 40, "file": 20, "postgres": 20}, few=0.4)
    # seen red: late rewards of closed decisions counted; `known` compared with events that do not count; a default
    # for decisions with a part

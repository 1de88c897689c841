"""Any interleaving of what can be done with a ledger, beside a slow one that goes through all events again."""

import itertools
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_array_equal

from dither import log
from dither.log import ledger
from ledgers import Slow, decision, features, moment

TIMES, USERS = st.integers(0, 60), st.sampled_from(["ann", "bob", "eve"])
HORIZONS = st.sampled_from(
    [(None, None, None), (20, None, None), (20, 0.0, None), (20, 1.0, "kept"), (20, None, "counts")]
)


class Machine(RuleBasedStateMachine):
    """Two objects on one home, where a home can have two."""

    def __init__(self, place):
        super().__init__()
        self.where, self.several = place()
        self.held, self.number = [], itertools.count()

    @initialize(rewards=st.sampled_from(ledger.RULES), after=HORIZONS)
    def begin(self, rewards, after):
        horizon, default, late = after
        self.given = {"rewards": rewards, "horizon": horizon, "default": default, "late": late}
        self.slow = Slow(rewards, horizon, default, late or "kept")
        self.held = [log.Ledger(self.where, **self.given)]
        if self.several:
            self.held.append(log.Ledger(self.where))

    def ledger(self, which):
        return self.held[which % len(self.held)]

    @rule(which=st.integers(0, 1), time=TIMES, user=USERS, arm=st.integers(0, 1))
    def decide(self, which, time, user, arm):
        n = next(self.number)
        X, more = features(n), {"user": user, "age": n}
        made = self.ledger(which).record(decision(arm), X=X, id=f"d{n}", time=moment(time), extra=more)
        assert made.id == f"d{n}"
        self.slow.enter(made.id, time, user, arm)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=st.integers(0, 1), data=st.data())
    def decide_again(self, which, data):
        id = data.draw(st.sampled_from(list(self.slow.decisions)))
        with pytest.raises(ValueError, match="ids must differ"):
            self.ledger(which).record(decision(), X=features(0), id=id)

    @precondition(lambda self: self.slow.decisions)
    @rule(
        which=st.integers(0, 1),
        data=st.data(),
        r=st.sampled_from([0.0, 1.0, 2.5]),
        part=st.sampled_from([None, None, "a"]),
        time=TIMES,
    )
    def reward(self, which, data, r, part, time):
        id = data.draw(st.sampled_from(list(self.slow.decisions)))
        if self.slow.decisions[id]["erased"]:
            with pytest.raises(LookupError, match="was erased"):
                self.ledger(which).reward(id, r, moment(time), part=part)
        else:
            said = self.ledger(which).reward(id, r, moment(time), part=part)
            assert said == self.slow.reward(id, r, part, time)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=st.integers(0, 1), data=st.data(), r=st.sampled_from([0.0, 1.0]), time=TIMES, strange=st.booleans())
    def reward_several(self, which, data, r, time, strange):
        alive = [id for id, one in self.slow.decisions.items() if not one["erased"]]
        ids = data.draw(st.lists(st.sampled_from(alive), max_size=4)) if alive else []
        if strange:
            with pytest.raises(LookupError, match="nobody"):
                self.ledger(which).reward([*ids, "nobody"], [r] * (len(ids) + 1), moment(time))
        else:
            said = self.ledger(which).reward(ids, [r] * len(ids), moment(time))
            assert said == [self.slow.reward(id, r, None, time) for id in ids]

    @rule(which=st.integers(0, 1), now=st.integers(0, 100))
    def expire(self, which, now):
        if self.slow.horizon is None:
            with pytest.raises(ValueError, match="no horizon"):
                self.ledger(which).expire(moment(now))
        else:
            assert self.ledger(which).expire(moment(now)) == self.slow.expire(now)

    @rule(which=st.integers(0, 1), user=USERS)
    def erase(self, which, user):
        assert self.ledger(which).erase(user=user) == self.slow.erase(self.slow.of_user(user))

    @precondition(lambda self: self.slow.decisions)
    @rule(which=st.integers(0, 1), data=st.data())
    def erase_ids(self, which, data):
        ids = data.draw(st.lists(st.sampled_from([*self.slow.decisions, "nobody"]), unique=True, max_size=2))
        assert self.ledger(which).erase(ids) == self.slow.erase(ids)

    @precondition(lambda self: self.several)
    @rule(which=st.integers(0, 1), again=st.booleans())
    def reopen(self, which, again):
        self.held[which].close()
        self.held[which] = log.Ledger(self.where, **(self.given if again else {}))

    @rule(which=st.integers(0, 1), from_export=st.booleans())
    def look(self, which, from_export):
        mine = self.ledger(which)
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

    @invariant()
    def what_is_pending(self):
        for mine in self.held:
            assert [one.id for one in mine.pending()] == self.slow.pending()

    def teardown(self):
        for mine in self.held:
            mine.close()


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_a_ledger_says_what_a_slow_one_says(kind, tmp_path, request):
    numbers = itertools.count()
    server = request.getfixturevalue("postgres") if kind == "postgres" else None

    def place():
        if kind == "memory":
            return None, False
        return (server.url() if server else Path(tmp_path) / f"{next(numbers)}.db"), True

    many = {"memory": 60, "file": 25, "postgres": 25}[kind]
    quiet = settings(max_examples=many, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(lambda: Machine(place), settings=quiet)
    # seen red: late rewards of closed decisions counted; `known` compared with events that do not count; a default
    # for decisions with a part

"""Any interleaving of decisions, rewards and events of two `Live` objects, beside a slow bandit that learns lists.

The oracle keeps, for each batch, the settings and the list of the batches that the state has learnt, written out. A
plain bandit of these settings learns the list, each reward as it was corrected within it.
"""

import itertools
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_allclose

import dither
from list_machines import ListMachine
from livings import Away, Here
from longer import size

X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
BEGIN = {"kind": "LinFP", "lam": 1.0, "discount": 1.0, "floor": 0.1, "c": 1.0}
OTHERS = [
    {"kind": "LinFP", "lam": 2.0, "discount": 0.9, "floor": 0.2, "c": 0.5},
    {"kind": "Softmax", "lam": 1.0, "discount": 1.0, "floor": 0.0, "temperature": 0.5},
]
POLICY, MODEL = [{"c": 2.0}, {"floor": 0.3}, {"c": 0.5, "floor": 0.05}], [{"lam": 0.5}, {"discount": 0.8, "floor": 0.2}]
WHICH, REWARDS = st.integers(0, 1), st.sampled_from([0.0, 1.0, 2.5])


def made(settings):
    more = {name: value for name, value in settings.items() if name != "kind"}
    return dither.ALGORITHMS[settings["kind"]](dim=2, centre=False, seed=0, **more)


class Machine(ListMachine):
    """Two objects on one home, where a home can have two: each a process, some of which are killed."""

    @initialize(lease=st.sampled_from([1e-6, 1e6]), every=st.integers(1, 4), shadow=st.sampled_from([None, *OTHERS]))
    def begin(self, lease, every, shadow):
        self.given = {"lease_seconds": lease, "snapshot_batches": every, "refresh_seconds": 1e-6}
        self.shadow, self.asked = shadow, []  # and the settings of each event, in order
        self.decisions, self.after = [], 0  # ids, and how many came before the last erasure
        first = {"bandit": made(BEGIN), "shadow": None if shadow is None else made(shadow)}
        self.held = [self.opened(**first)]
        if self.several:
            self.held.append(self.opened())

    def opened(self, **more):
        return (Away if self.several else Here)(self.where, self.given | more)

    # The oracle

    def states(self):
        """Of each batch: the settings, and the batches that are learnt."""
        rows, events = self.call(0, "history")
        last = max([0, *[batch for batch, *_ in rows], *[batch for batch, *_ in events]])
        happened = {batch: (what, details, new) for (batch, what, details), new in zip(events, self.asked, strict=True)}
        states = [(BEGIN, [])]
        for batch in range(1, last + 1):
            states.append(self.after_batch(batch, states, *happened.get(batch, (None, None, None))))
        return states, rows

    def after_batch(self, batch, states, what, details, new):
        now, learnt = states[-1]
        if what is None:
            return now, [*learnt, batch]
        if what == "change":
            return (new if "kind" in new else now | new), learnt
        if what == "rollback":
            return states[new]
        return (new if what == "promote" else now), [*range(1, batch)]

    def made_of(self, state):
        now, batches = state
        return made(now), batches, lambda row: np.frombuffer(row[3])

    # What users do

    @rule(which=WHICH, data=st.data())
    def decide(self, which, data):
        """Some decisions, of which most have a reward, from any process and some of them together."""
        new = [f"d{next(self.number)}" for _ in range(data.draw(st.integers(1, 4)))]
        for id in new:
            self.call(which, "choose", X, id=id, extra={"user": id})
        self.decisions += new
        for id in new[1:]:
            self.call(data.draw(WHICH), "reward", id, data.draw(REWARDS))

    @precondition(lambda self: self.decisions)
    @rule(which=WHICH, data=st.data(), r=REWARDS, some=st.booleans())
    def reward_or_correct(self, which, data, r, some):
        ids = data.draw(st.lists(st.sampled_from(self.decisions), unique=True, min_size=1, max_size=4))
        if some:
            self.call(which, "reward", ids, [r] * len(ids))
        for id in ids[:2]:
            if [one for one in self.call(which, "events_of", id) if one[2] == "counted"]:
                self.call(which, "correct", id, r)

    @rule(which=WHICH, data=st.data())
    def decide_again(self, which, data):
        self.decide(which, data)

    @precondition(lambda self: self.decisions)
    @rule(which=WHICH, data=st.data())
    def erase(self, which, data):
        id = data.draw(st.sampled_from(self.decisions))
        self.call(which, "erase", [id])
        self.decisions.remove(id)
        self.after = next(self.number)

    @rule(which=WHICH, ends=st.booleans())
    def learn(self, which, ends):
        if ends:
            self.call(1 - which, "the_lease_ends")
        self.call(which, "learn")

    # Events

    def happens(self, which, new, what, *given, **more):
        before = len(self.call(which, "history")[1])
        self.call(which, "event", what, *given, **more)
        if len(self.call(which, "history")[1]) > before:
            self.asked.append(new)
        stands, (states, rows) = self.call(which, "stands"), self.states()
        assert stands["batch"] == len(states) - 1
        assert_allclose(stands["theta"], self.bandit(states[-1], rows).theta, rtol=0, atol=1e-9)

    @rule(which=WHICH, new=st.sampled_from([*POLICY, *MODEL, BEGIN, *OTHERS]))
    def change(self, which, new):
        if "kind" in new:
            self.happens(which, new, "change", bandit=made(new))
        elif "c" not in new or self.states()[0][-1][0]["kind"] == "LinFP":
            self.happens(which, new, "change", **new)

    @rule(which=WHICH, keep=st.booleans())
    def promote(self, which, keep):
        if self.shadow is None:
            with pytest.raises(ValueError, match="no shadow"):
                self.call(which, "event", "promote")
        else:
            new, self.shadow = self.shadow, self.states()[0][-1][0] if keep else None
            self.happens(which, new, "promote", keep=keep)

    @rule(which=WHICH, shadow=st.sampled_from([None, BEGIN, *OTHERS]))
    def another_shadow(self, which, shadow):
        self.call(which, "replace_shadow", None if shadow is None else made(shadow))
        self.shadow = shadow

    @rule(which=WHICH, data=st.data())
    def rollback(self, which, data):
        """To a batch; then it may be learnt again."""
        if (back := data.draw(st.integers(0, 9))) < 8:
            to = max(0, len(self.states()[0]) - 1 - back)
            self.happens(which, to, "rollback", to)
        else:
            self.happens(which, None, "relearn")

    # Ends

    @precondition(lambda self: self.several)
    @rule(which=WHICH, kill=st.booleans())
    def reopen(self, which, kill):
        self.held[which].kill() if kill else self.held[which].close()
        self.held[which] = self.opened()

    @precondition(lambda self: self.several)
    @rule(which=WHICH, data=st.data(), what=st.sampled_from(["change", "rollback", "relearn"]))
    def killed_in_an_event(self, which, data, what):
        """The event is there, or it is not."""
        events = self.call(1 - which, "history")[1]
        new = {"change": {"floor": 0.15}, "rollback": len(self.states()[0]) // 2, "relearn": None}[what]
        given = (new,) if what == "rollback" else ()
        self.held[which].kill("event", what, *given)
        self.held[which] = self.opened()
        after = self.call(1 - which, "history")[1]
        assert after[: len(events)] == events
        self.asked += [new] * (len(after) - len(events))

    # What must hold

    @rule(which=WHICH)
    def every_row_was_decided_by_the_bandit_that_it_names(self, which):
        states, rows = self.states()
        bandits = {}
        for row in self.call(which, "decided"):
            if int(row["id"][1:]) < self.after:
                continue  # what it knew is erased
            plain = bandits.setdefault(row["learnt"], self.bandit(states[row["learnt"]], rows))
            assert (row["floor"], row["policy"]) == (plain.floor, f"{plain.policy} on {plain.model}")
            assert_allclose(row["propensity"], plain.propensities(X)[row["arm"]], rtol=0, atol=1e-9)

    def teardown(self):
        if self.held:
            self.every_row_was_decided_by_the_bandit_that_it_names(0)
        for one in self.held:
            one.close()


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_a_bandit_that_is_changed_is_what_its_list_of_lessons_teaches(kind, tmp_path, request):
    numbers, server = itertools.count(), request.getfixturevalue("postgres") if kind == "postgres" else None

    def place():
        if kind == "memory":
            return None, False
        return (server.url() if server else Path(tmp_path) / f"{next(numbers)}.db"), True

    many = size({"memory": 4, "file": 1, "postgres": 1}[kind], longer={"memory": 60, "file": 15, "postgres": 15}[kind])
    quiet = settings(max_examples=many, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(lambda: Machine(place), settings=quiet)

"""Any interleaving of decisions, rewards, changes of features and rollbacks of two `Live` objects, one without records.

The oracle keeps, for each batch, which features are in force and the list of the batches that the state has learnt. A
plain bandit with these features learns the list, x made anew of what each decision was made of.
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
from dither.features import Hashed, Numeric, Standard
from list_machines import ListMachine
from livings import Here
from longer import size

TOPICS = ["art", "war"]
SCALES = [1.0, 2.0, 1.0]  # of `words`, in each of the features
FEATURES = [
    dither.Features(
        context={"country": ["se", "de", "fr"][: 2 + i % 2], **({"age": Standard(mean=40, scale=10)} if i else {})},
        arm={"topic": TOPICS, "words": Numeric(mean=0, scale=SCALES[i]), **({"by": Hashed(width=3)} if i != 1 else {})},
        cross=[("country", "topic")],
    )
    for i in range(3)
]
WHICH, REWARDS = st.integers(0, 1), st.sampled_from([0.0, 1.0, 2.5])


def made(of, lam=1.0):
    return dither.LinFP(features=FEATURES[of], lam=lam, floor=0.2, seed=0)


def carried(x, old, new):
    """Columns by their names, but for `words`, whose scale may be another one."""
    names = dict(zip(FEATURES[old].columns, x, strict=True))
    same = SCALES[old] == SCALES[new]
    return np.array([names.get(name, 0.0) if same or "words" not in name else 0.0 for name in FEATURES[new].columns])


class Machine(ListMachine):
    """Two objects on one home, where a home can have two. The first keeps records."""

    def __init__(self, place):
        super().__init__(place)
        self.rng = np.random.default_rng(0)

    @initialize(lease=st.sampled_from([1e-6, 1e6]), every=st.integers(1, 4))
    def begin(self, lease, every):
        self.settings = {"lease_seconds": lease, "snapshot_batches": every, "refresh_seconds": 1e-6}
        self.decisions, self.asked, self.shadow = {}, [], None  # what each was made of; what each event asked for
        self.held = [self.opened("records", bandit=made(0))]
        if self.several:
            self.held.append(self.opened("all"))

    def opened(self, store, **more):
        return Here(self.where, self.settings | more | {"store": store})

    # The oracle

    def states(self):
        """Of each batch: the features, λ, and the batches that are learnt."""
        rows, events = self.call(0, "history")
        happened = {batch: (what, new) for (batch, what, _), new in zip(events, self.asked, strict=True)}
        states = [(0, 1.0, [])]
        for batch in range(1, max([0, *(row[0] for row in rows), *happened]) + 1):
            (of, lam, learnt), (what, new) = states[-1], happened.get(batch, (None, None))
            if what == "rollback":
                states.append(states[new])
            else:
                learnt = [*learnt, batch] if what is None else [*range(1, batch)] if what == "relearn" else learnt
                states.append((new if what == "features" else of, new if what == "change" else lam, learnt))
        return states, rows

    def x(self, id, of):
        """What a decision teaches, as some features make it."""
        who, arms, place, then, kept = self.decisions[id]
        if kept or then == of:
            return FEATURES[of].encode(who, arms)[place]
        return carried(FEATURES[then].encode(who, arms)[place], then, of)

    def made_of(self, state):
        of, lam, batches = state
        return made(of, lam), batches, lambda row: self.x(row[1], of)

    # What users do

    @rule(which=WHICH)
    def decide(self, which):
        id = f"d{next(self.number)}"
        who = {"country": str(self.rng.choice(["se", "de", "fr"])), "age": int(self.rng.integers(20, 60))}
        arms = [{"topic": t, "words": float(self.rng.integers(9)), "by": f"b{self.rng.integers(4)}"} for t in TOPICS]
        d = self.call(which, "choose", who, arms, id=id)
        kept = which % len(self.held) == 0
        self.decisions[id] = who, arms, d["place"], self.states()[0][-1][0], kept

    @precondition(lambda self: self.decisions)
    @rule(which=WHICH, data=st.data(), r=REWARDS)
    def reward(self, which, data, r):
        ids = data.draw(st.lists(st.sampled_from([*self.decisions]), unique=True, min_size=1, max_size=3))
        self.call(which, "reward", ids, [r] * len(ids))

    @precondition(lambda self: self.decisions)
    @rule(which=WHICH, data=st.data(), r=REWARDS)
    def correct(self, which, data, r):
        id = data.draw(st.sampled_from([*self.decisions]))
        if [one for one in self.call(which, "events_of", id) if one[2] == "counted"]:
            self.call(which, "correct", id, r)

    @precondition(lambda self: len(self.decisions) > 3)
    @rule(which=WHICH, data=st.data())
    def erase(self, which, data):
        self.call(which, "erase", [id := data.draw(st.sampled_from([*self.decisions]))])
        del self.decisions[id]

    @rule(which=WHICH)
    def the_lease_ends(self, which):
        self.call(which, "the_lease_ends")

    # Events

    def happens(self, which, new, what, *given, **more):
        before = self.states()[0][-1][0]
        events = len(self.call(which, "history")[1])
        self.call(which, "event", what, *given, **more)
        if len(self.call(which, "history")[1]) > events:
            self.asked.append(new)
        if self.states()[0][-1][0] != before:
            self.shadow = None

    @rule(which=WHICH, to=st.integers(0, 2))
    def other_features(self, which, to):
        self.happens(which, to, "change", features=FEATURES[to])

    @rule(which=WHICH, lam=st.sampled_from([0.5, 1.0, 3.0]))
    def other_settings(self, which, lam):
        self.happens(which, lam, "change", lam=lam)

    @rule(which=WHICH, data=st.data())
    def rollback(self, which, data):
        to = data.draw(st.integers(0, len(self.states()[0]) - 1))
        self.happens(which, to, "rollback", to)

    @rule(which=WHICH)
    def relearn(self, which):
        self.happens(which, None, "relearn")

    @rule(which=WHICH)
    def another_shadow(self, which):
        self.shadow = self.states()[0][-1][0]
        self.call(which, "replace_shadow", made(self.shadow, 2.0))

    @precondition(lambda self: self.several)
    @rule(which=WHICH)
    def reopen(self, which):
        self.held[which].close()
        self.held[which] = self.opened(["records", "all"][which])

    def teardown(self):
        if self.held:
            self.call(0, "learn")
            rows = self.states()[1]
            stands = self.call(0, "stands")
            assert (stands["shadow"] is None) == (self.shadow is None)
            if self.shadow is not None:
                plain = self.bandit((self.shadow, 2.0, range(1, stands["batch"] + 1)), rows)
                assert_allclose(stands["shadow"], plain.theta, rtol=0, atol=1e-9)
        for one in self.held:
            one.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_bandit_whose_features_change_is_what_its_list_of_lessons_teaches(kind, tmp_path):
    numbers = itertools.count()

    def place():
        return (None, False) if kind == "memory" else (Path(tmp_path) / f"{next(numbers)}.db", True)

    many = size({"memory": 2, "file": 1}[kind], longer={"memory": 60, "file": 30}[kind])
    quiet = settings(max_examples=many, stateful_step_count=16, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(lambda: Machine(place), settings=quiet)

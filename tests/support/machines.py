"""What the state machines of `Ledger` and of `Live` share: rewards, horizons and erasures, beside the slow ledger."""

import itertools
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ledgers import moment
from longer import size

TIMES, USERS = st.integers(0, 60), st.sampled_from(["ann", "bob", "eve"])
CHANGES = st.sampled_from(
    [
        {"horizon": 10},
        {"horizon": 30, "default": 1.0, "late": "kept"},
        {"horizon": None, "default": None},
        {"default": 0.0},
        {"late": "counts", "default": None},
        {"late": "kept"},
        {"reward_range": (0.0, 1.0)},
        {"reward_range": (-1.0, 3.0)},
        {"reward_range": None},
    ]
)
WHICH, REWARDS = st.integers(0, 1), st.sampled_from([0.0, 1.0, 2.5])


class Machine(RuleBasedStateMachine):
    """Two objects on one home, where a home can have two. `call` asks one of them; `slow` says what it must answer."""

    free_parts = True  # whether a reward may have a part that nobody told of

    def __init__(self, place):
        super().__init__()
        self.where, self.several = place()
        self.held, self.number = [], itertools.count()

    def call(self, which, name, *arguments, **settings):
        """Call a method of one of the objects."""
        raise NotImplementedError

    def rewarded(self, which):
        """Called after rewards have come."""

    def erased(self, which):
        """Called after decisions were erased."""

    def one(self, which):
        return self.held[which % len(self.held)]

    def alive(self):
        return [id for id, one in self.slow.decisions.items() if not one["erased"]]

    def part(self, data):
        told = self.slow.parts
        return data.draw(st.sampled_from(told or ([None, None, "a"] if self.free_parts else [None])))

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data(), r=REWARDS, time=TIMES)
    def reward(self, which, data, r, time):
        id, part = data.draw(st.sampled_from(list(self.slow.decisions))), self.part(data)
        if self.slow.decisions[id]["erased"]:
            with pytest.raises(LookupError, match="was erased"):
                self.call(which, "reward", id, r, moment(time), part=part)
        elif self.slow.outside(id, r, part):
            with pytest.raises(ValueError, match="reward_range"):
                self.call(which, "reward", id, r, moment(time), part=part)
        else:
            said = self.call(which, "reward", id, r, moment(time), part=part)
            assert said == self.slow.reward(id, r, part, time)
            self.rewarded(which)

    @precondition(lambda self: self.alive())
    @rule(which=WHICH, data=st.data(), r=REWARDS)
    def reward_in_full(self, which, data, r):
        """All parts, soon after the decision."""
        id = data.draw(st.sampled_from(self.alive()))
        at = self.slow.decisions[id]["time"] + 5
        for part in self.slow.parts or [None]:
            if self.slow.outside(id, r, part):
                break
            assert self.call(which, "reward", id, r, moment(at), part=part) == self.slow.reward(id, r, part, at)
        self.rewarded(which)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data(), r=REWARDS, time=TIMES, strange=st.booleans())
    def reward_several(self, which, data, r, time, strange):
        alive, part = self.alive(), self.part(data)
        ids = data.draw(st.lists(st.sampled_from(alive), max_size=4)) if alive else []
        if strange:
            with pytest.raises(LookupError, match="nobody"):
                self.call(which, "reward", [*ids, "nobody"], [r] * (len(ids) + 1), moment(time), part=part)
        elif any(self.slow.outside(id, r, part) for id in ids):
            with pytest.raises(ValueError, match="reward_range"):
                self.call(which, "reward", ids, [r] * len(ids), moment(time), part=part)
        else:
            said = self.call(which, "reward", ids, [r] * len(ids), moment(time), part=part)
            assert said == [self.slow.reward(id, r, part, time) for id in ids]
            self.rewarded(which)

    @precondition(lambda self: self.alive())
    @rule(which=WHICH, data=st.data(), r=REWARDS, time=TIMES)
    def correct(self, which, data, r, time):
        id, part = data.draw(st.sampled_from(self.alive())), self.part(data)
        if data.draw(st.booleans()) and (paid := self.slow.paid(id)):
            part = paid[-1][1]
        if not [e for e in self.slow.paid(id) if e[1] == part]:
            with pytest.raises(ValueError, match=r"none to correct|must be one of"):
                self.call(which, "correct", id, r, time=moment(time), part=part)
        elif self.slow.outside(id, r, part):
            with pytest.raises(ValueError, match="reward_range"):
                self.call(which, "correct", id, r, time=moment(time), part=part)
        else:
            said = self.call(which, "correct", id, r, time=moment(time), part=part)
            assert said == self.slow.correct(id, r, part, time)
            self.rewarded(which)

    @rule(which=WHICH, new=CHANGES)
    def change_the_terms(self, which, new):
        if self.slow.change(new):
            self.call(which, "change_terms", **new)
        else:
            with pytest.raises(ValueError, match="default"):
                self.call(which, "change_terms", **new)

    @rule(which=WHICH, now=st.integers(0, 100))
    def expire(self, which, now):
        if not self.slow.ever:
            with pytest.raises(ValueError, match="no horizon"):
                self.call(which, "expire", moment(now))
        else:
            assert self.call(which, "expire", moment(now)) == self.slow.expire(now)
            self.rewarded(which)

    @rule(which=WHICH, user=USERS)
    def erase(self, which, user):
        assert self.call(which, "erase", user=user) == self.slow.erase(self.slow.of_user(user))
        self.erased(which)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data())
    def erase_ids(self, which, data):
        ids = data.draw(st.lists(st.sampled_from([*self.slow.decisions, "nobody"]), unique=True, max_size=2))
        assert self.call(which, "erase", ids) == self.slow.erase(ids)
        self.erased(which)

    @invariant()
    def what_is_pending(self):
        for which in range(len(self.held)):
            assert self.call(which, "pending") == self.slow.pending()

    def teardown(self):
        for one in self.held:
            one.close()


def run(machine, kind, tmp_path, request, *, many, few, steps=25):
    """Run a machine on homes of one kind: "memory", "file" or "postgres"; many : examples of each kind where the tests
    may take long; few : the share of them that is taken else."""
    numbers = itertools.count()
    server = request.getfixturevalue("postgres") if kind == "postgres" else None

    def place():
        if kind == "memory":
            return None, False
        return (server.url() if server else Path(tmp_path) / f"{next(numbers)}.db"), True

    number = size(round(few * many[kind]), longer=many[kind])
    none = list(HealthCheck)
    quiet = settings(max_examples=number, stateful_step_count=steps, suppress_health_check=none, deadline=None)
    run_state_machine_as_test(lambda: machine(place), settings=quiet)

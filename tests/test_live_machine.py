"""Any interleaving of two `Live` objects on one home, beside a slow model that solves least squares on all rewards."""

import itertools
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
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
from numpy.testing import assert_allclose

import dither
from dither.live import learner
from ledgers import COUNTS, Slow, features, moment

TIMES, USERS = st.integers(0, 60), st.sampled_from(["ann", "bob"])
WHICH = st.integers(0, 1)


def begin():
    return dither.LinFP(dim=3, seed=0, floor=0.2, lam=1.0)


class Machine(RuleBasedStateMachine):
    """Closing is an orderly end; a kill leaves the lease behind, and a new object comes in its place."""

    def __init__(self, place):
        super().__init__()
        self.where, self.several = place()
        self.number, self.held = itertools.count(), []

    @initialize(default=st.sampled_from([None, 0.0]), lease=st.sampled_from([1e-6, 1e6]), every=st.integers(1, 3))
    def begin(self, default, lease, every):
        self.slow = Slow("sum", 20, default, "kept")
        self.seen = {}  # id -> the features that were shown
        self.given = {"lease_seconds": lease, "snapshot_batches": every, "refresh_seconds": 1e-6}
        self.held = [dither.Live(self.where, bandit=begin(), horizon=20, default=default, **self.given)]
        if self.several:
            self.held.append(dither.Live(self.where, **self.given))

    def live(self, which):
        return self.held[which % len(self.held)]

    @rule(which=WHICH, time=TIMES, user=USERS)
    def decide(self, which, time, user):
        n = next(self.number)
        X = features(n % 5, K=3) % 1.7 - 0.5
        d = self.live(which).choose(X, ["a", "b", "c"], id=f"d{n}", time=moment(time), extra={"user": user})
        assert d.arm == "abc"[d.place]
        self.slow.enter(d.id, time, user, d.place)
        self.seen[d.id] = X[d.place]

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data(), r=st.sampled_from([0.0, 1.0]), time=TIMES)
    def reward(self, which, data, r, time):
        alive = [id for id, one in self.slow.decisions.items() if not one["erased"]]
        if not alive:
            return
        id, live = data.draw(st.sampled_from(alive)), self.live(which)
        said = live.reward(id, r, moment(time))
        assert said == self.slow.reward(id, r, None, time)
        if live.learns:
            self.is_learnt(live)

    @precondition(lambda self: self.slow.decisions)
    @rule(which=WHICH, data=st.data(), time=TIMES)
    def reward_together(self, which, data, time):
        alive = [id for id, one in self.slow.decisions.items() if not one["erased"]]
        ids = data.draw(st.lists(st.sampled_from(alive), unique=True, max_size=4)) if alive else []
        assert self.live(which).reward(ids, [1.0] * len(ids), moment(time)) == [
            self.slow.reward(id, 1.0, None, time) for id in ids
        ]

    @rule(which=WHICH, now=st.integers(0, 100))
    def expire(self, which, now):
        assert self.live(which).expire(moment(now)) == self.slow.expire(now)

    @rule(which=WHICH, user=USERS)
    def erase(self, which, user):
        live = self.live(which)
        assert live.erase(user=user) == self.slow.erase(self.slow.of_user(user))
        live.learn()
        if live.learns:
            self.is_learnt(live)

    @rule(which=WHICH)
    def learn(self, which):
        live = self.live(which)
        live.learn()
        if live.learns:
            self.is_learnt(live)

    @precondition(lambda self: self.several)
    @rule(which=WHICH, kill=st.booleans())
    def reopen(self, which, kill):
        if kill:
            self.held[which].ledger.close()
        else:
            self.held[which].close()
        self.held[which] = dither.Live(self.where, **self.given)

    @rule()
    def the_lease_ends(self):
        with self.held[0].ledger.holding() as connection:
            connection.exec_driver_sql("UPDATE dither_lease SET expires = 0")

    def is_learnt(self, live):
        """The estimate is that of least squares on all rewards that count."""
        events = [e for e in self.slow.events if e[4] in COUNTS and not self.slow.decisions[e[0]]["erased"]]
        paid = [(self.seen[e[0]], e[2]) for e in events]
        assert live.bandit.observations == len(paid)
        A = np.vstack([np.eye(3), *(x[None] for x, _ in paid)])
        theta = np.linalg.lstsq(A, np.r_[np.zeros(3), [r for _, r in paid]])[0]
        assert_allclose(live.bandit.theta, theta, atol=1e-9)

    @invariant()
    def what_was_learnt_is_a_function_of_the_ledger(self):
        for live in self.held:
            if live._learner._seen.erased == self.erasures():
                assert live.to_bytes() == live.replay(live.batch).to_bytes()

    def erasures(self):
        with self.held[0].ledger.database.reading() as connection:
            return connection.exec_driver_sql("SELECT coalesce(max(number), 0) FROM dither_erasures").scalar()

    @invariant()
    def batches_have_no_gaps_and_fences_grow(self):
        if not self.held:
            return
        with self.held[0].ledger.database.reading() as connection:
            rows = connection.exec_driver_sql("SELECT number, fence FROM dither_batches ORDER BY number").fetchall()
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        assert [row[1] for row in rows] == sorted(row[1] for row in rows)

    def teardown(self):
        for live in self.held:
            live.close()


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_a_live_bandit_is_what_a_slow_one_is(kind, tmp_path, request, monkeypatch):
    monkeypatch.setattr(learner, "SWEEP", 0)  # the learner looks at every write for what others have written
    numbers = itertools.count()
    server = request.getfixturevalue("postgres") if kind == "postgres" else None

    def place():
        if kind == "memory":
            return None, False
        return (server.url() if server else Path(tmp_path) / f"{next(numbers)}.db"), True

    many = {"memory": 40, "file": 10, "postgres": 15}[kind]
    quiet = settings(max_examples=many, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(lambda: Machine(place), settings=quiet)

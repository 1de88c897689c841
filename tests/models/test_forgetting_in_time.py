"""Decisions by the clock: `advance` to the moment of the decision, then `choose`, against a refit of the faded rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither

LATE = 250.0  # the decision comes so much later than the last reward
BANDITS = [
    ("LinFP", {}),
    ("LinUCB", {"radius": "oful", "horizon": 50}),
    ("LinTS", {"sigma": 1.0}),
    ("EpsGreedy", {"diagonal": True}),
    ("GLMFP", {"solver": "exact"}),
    ("LinFP", {"disjoint": 4}),
]


@pytest.mark.parametrize(("name", "how"), BANDITS)
def test_after_advance_decisions_are_those_of_a_refit_at_that_moment(name, how):
    rng = np.random.default_rng(0)
    X, r, at = rng.normal(size=(30, 3)), (rng.random(30) < 0.5) * 1.0, rng.uniform(0, 100, size=30)
    arm = {"arm": rng.integers(0, 4, size=30)} if "disjoint" in how else {}
    ask = rng.normal(size=(50, 3) if arm else (50, 4, 3))
    clock = dither.ALGORITHMS[name](dim=3, lam=0.5, half_life=100.0, seed=3, **how)
    clock.update(X, r, at=at, **arm)
    early = clock.propensities(ask, draws=500)
    clock.advance(at.max() + LATE)
    refit = dither.ALGORITHMS[name](dim=3, lam=0.5, seed=3, **how)
    refit.update(X, r, weight=0.5 ** ((at.max() + LATE - at) / 100), **arm)
    assert_allclose(clock.mean(ask), refit.mean(ask), rtol=1e-6, atol=1e-8)
    assert_allclose(clock.width(ask), refit.width(ask), rtol=1e-6)
    late = clock.propensities(ask, draws=500)
    assert_allclose(late, refit.propensities(ask, draws=500), rtol=1e-6, atol=1e-7)
    assert np.abs(late - early).max() > (0.01 if name != "EpsGreedy" else -1)
    a, b = clock.choose(ask), refit.choose(ask)
    np.testing.assert_array_equal(a.arm, b.arm)
    assert_allclose(a.propensity, b.propensity, rtol=1e-6)
    # seen red: without `advance`; `advance` that goes by the time and not by the difference


def test_a_decision_changes_no_time_and_a_late_reward_counts_by_its_own():
    clock = dither.LinFP(dim=2, half_life=10.0, seed=0, preset="paper")
    clock.update([1.0, 0.0], 1.0, at=0.0)
    clock.advance(20.0)
    clock.choose(np.eye(2))
    assert float(clock.state.now) == 20.0
    clock.update([0.0, 1.0], 1.0, at=10.0)  # the reward of an earlier decision
    V = np.diag([1e-4 + 0.25, 1e-4 + 0.5])
    assert_allclose(clock.width(np.eye(2)), np.sqrt(1 / np.diag(V)), rtol=1e-12)

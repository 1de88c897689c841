"""Inputs at the edge that once gave wrong numbers: batches, refused batches, huge counts and weights, shared arrays."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import oracles
from dither.models import GLM


def data(n, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), (rng.random(n) < 0.5).astype(float)


@pytest.mark.parametrize("solver", ["certified", "exact", "counts", "online"])
@pytest.mark.parametrize("floor", [0.0, 0.1, 0.25])
def test_a_batch_teaches_what_its_rows_do(solver, floor):
    X, r = data(40)
    once, singly = (dither.GLMFP(dim=3, solver=solver, min_derivative=floor, seed=0) for _ in range(2))
    once.update(X, r)
    for x, reward in zip(X, r, strict=True):
        singly.update(x, reward)
    assert_allclose(once.theta, singly.theta, atol=1e-6)
    assert_allclose(once.width(X), singly.width(X), rtol=1e-3)  # seen red: widths 100 times too large, at floor 0.25


@pytest.mark.parametrize("solver", ["certified", "exact", "counts", "online"])
def test_a_refused_batch_is_refused_whole(solver):
    X, r = data(6)
    b, twin = (dither.GLMFP(dim=3, solver=solver, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update(X[:2], r[:2])
    X[5] *= 1e60
    with pytest.raises(ValueError, match=r"large|long"):
        b.update(X, r)
    for one in (b, twin):
        one.update(X[:5], r[:5])
    assert_array_equal(b.theta, twin.theta)  # seen red: rows of the refused batch in the sums of the next solution
    oracles.unchanged(b, twin, X[:2])


@pytest.mark.parametrize("r", [1e6, 3e8, 1e9, 1e12])
def test_one_large_count_is_its_own_mean(r):
    b = dither.GLMFP(dim=1, link="log", seed=0)
    b.update([1.0], r)
    assert_allclose(b.theta, np.log(r), rtol=1e-9)  # seen red: refused from 3e8 on
    assert b.bound[0] <= 1e-8


def test_a_weight_that_float64_cannot_hold_is_refused():
    b, twin = (dither.GLMFP(dim=2, lam=1e-4, seed=0) for _ in range(2))
    with pytest.raises(ValueError, match="weight must be at most"):
        b.update([1, 1], 1, weight=1e85)
    oracles.unchanged(b, twin, [[1, 0], [0, 1]])
    X, r = data(5, d=2)
    b.update(X, r)
    b.update([1, 1], 1, weight=1e12)
    z = np.array([[1.0, 1.0]]) @ b.theta
    slope = 1e12 * (1 / (1 + np.exp(-z)) - 1) * np.ones(2) + 1e-4 * b.theta
    slope += (1 / (1 + np.exp(-X @ b.theta)) - r) @ X
    assert np.abs(slope).max() < 1e-5


def test_what_is_asked_for_is_a_copy():
    X, r = data(30)
    b = dither.GLMFP(dim=3, seed=0)
    b.update(X, r)
    before = b.bound
    b.bound[:] = 7.0
    b.theta[:] = 7.0
    assert_array_equal(b.bound, before)
    assert np.abs(b.theta).max() < 7


def test_a_model_of_ones_own_need_not_know_of_own():
    class Mine:
        """Ridge with an update as its users write it."""

        def __init__(self):
            self.inner = dither.models.Ridge(1.0)

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def update(self, state, x, r, *, weight=None):
            return self.inner.update(state, x, r, weight=weight)

    policy = dither.policies.FeaturePerturbation()
    b = dither.Bandit(Mine(), policy, dim=2, seed=0)
    b.update([1.0, 0.0], 1.0)
    assert_allclose(b.theta, [0.5, 0.0])
    env = dither.envs.Linear(dim=2, arms=3)
    found = dither.simulate(env, {"mine": (Mine(), policy), "LinFP": "LinFP:lam=1.0"}, runs=2, rounds=20)
    assert_array_equal(found.regret[0], found.regret[1])


def test_heavy_rows_reach_no_less_far_than_they_do():
    """What the certificate takes for the longest row must be so where rows count many times and are many."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    r = (rng.random(400) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    model = dither.models.GLM()
    state = model.update_many(model.init(4), X, r, weight=np.full(400, 1e4))
    longest = np.linalg.norm(X @ state.F, axis=1).max()
    assert float(state.lazy.reach) >= longest * (1 - 1e-3)  # seen red: the weights counted twice


@pytest.mark.parametrize("solver", ["exact", "certified", "counts"])
def test_rounding_of_the_logits_is_in_the_bound_where_weights_are_heavy(solver):
    """Newton's method in 40 digits on the same totals. seen red: E 13 times too small, and below 1e-8."""
    rng = np.random.default_rng(230)
    X, r, weight = rng.normal(size=(4, 2)), np.array([0.7, 0.25, 1.0, 0.0]), np.array([1e13, 1e12, 1.0, 1.0])
    model = GLM(lam=1e-3, solver=solver)
    state = model.init(2)
    for x, y, w in zip(X, r, weight, strict=True):
        state = model.update(state, x, np.float64(y), weight=w)
    with mpmath.workdps(40):
        rows, total = mpmath.matrix(X.tolist()), mpmath.matrix((weight * r).tolist())
        theta = mpmath.matrix(state.theta.tolist())
        for _ in range(8):
            mu = [1 / (1 + mpmath.exp(-z)) for z in rows * theta]
            g = rows.T * mpmath.matrix([w * m - t for w, m, t in zip(weight, mu, total, strict=True)]) + theta / 1000
            size = mpmath.diag([w * m * (1 - m) for w, m in zip(weight, mu, strict=True)])
            H = rows.T * size * rows + mpmath.eye(2) / 1000
            theta -= mpmath.lu_solve(H, g)
        gap = mpmath.matrix(state.theta.tolist()) - theta
        truth = float(mpmath.sqrt((gap.T * H * gap)[0]))
    assert truth <= model.bound(state)[0] < 1e-5

"""Logistic-UCB-2 and its admissible estimate, derived a second time: by other optimisers, on grids, and by counting."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import theory
from dither.models import Admissible
from dither.models.admissible import BEND, AdmissibleSet, nearest
from glm_policies import MU, minimum


def unit(rng, *shape):
    X = rng.normal(size=shape)
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def learnt(model, X, r):
    state = model.init(X.shape[-1])
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, np.float64(y))
    return state


def tosses(seed, n, d, *, S=2.0):
    rng = np.random.default_rng(seed)
    X = unit(rng, n, d)
    return X, (rng.random(n) < MU(S * X[:, 0])).astype(float)


def hessian(X, theta, lam):
    return (X.T * (MU(X @ theta) * MU(-X @ theta))) @ X + lam * np.eye(X.shape[1])


def gap(theta, other, X, lam):
    """‖g(θ) - g(other)‖ in the norm of H⁻¹(θ), by their definitions."""
    off = X.T @ (MU(X @ theta) - MU(X @ other)) + lam * (theta - other)
    return math.sqrt(off @ np.linalg.solve(hessian(X, theta, lam), off))


def gamma(t, d, lam, S, delta):
    return math.sqrt(lam) * (S + 0.5) + 2 / math.sqrt(lam) * (
        math.log(1 / delta) + d / 2 * math.log(1 + t / (4 * d * lam)) + d * math.log(2)
    )


def norm(x, A):
    return math.sqrt(x @ np.linalg.solve(A, x))


@pytest.mark.parametrize(("n", "lam"), [(0, None), (1, None), (2, None), (30, None), (30, 0.4)])
def test_the_score_is_its_definition(n, lam):
    d, S, T = 3, 2.0, 500
    X, r = tosses(n, n, d)
    model, policy = dither.LogisticUCB2.configure(d, S=S, horizon=T, lam=lam)
    state, at = learnt(model, X, r), unit(np.random.default_rng(9), 5, d)
    own = lam or d * max(1.0, math.log(n + 1))  # d log 1 = 0 would make γ infinite
    theta = minimum(X, r, lam=own) if n else np.zeros(d)
    assert np.linalg.norm(theta) < S
    assert_allclose(state.theta, theta, atol=1e-7)
    assert_array_equal(state.estimate, state.theta)
    H, kappa = hessian(X, theta, own), MU(S) * MU(-S)
    V, wide = X.T @ X + own / kappa * np.eye(d), (2 + 4 * S) * gamma(n + 1, d, own, S, 1 / T)
    s = policy.view(model, state, at, t=n + 1).scores()
    for x, found in zip(at, s, strict=True):
        first = wide * MU(x @ theta) * MU(-x @ theta) * norm(x, H)
        second = BEND / 2 * (4 + 8 * S) * (wide / (2 + 4 * S)) ** 2 / kappa * norm(x, V) ** 2
        assert_allclose(found, MU(x @ theta) + first + second, rtol=1e-7)
    own_paper = dither.LogisticUCB2.configure(d, S=S, horizon=T, lam=lam, preset="own_paper")[0]
    paper = own_paper.bonus(state, at) - model.bonus(state, at)
    second = np.array(
        [(0.25 - BEND / 2) * (4 + 8 * S) * (wide / (2 + 4 * S)) ** 2 / kappa * norm(x, V) ** 2 for x in at]
    )
    assert_allclose(paper, second, rtol=1e-6)  # its M is ¼, and it leaves Taylor's ½ out
    # seen red: V with λκ for λ/κ; no floor of λ; κ of S/2; γ at δ = 1


def test_the_largest_curvature_is_that_of_a_grid():
    eta = np.linspace(-10, 10, 200_001)
    assert_allclose(np.max(np.abs(MU(eta) * MU(-eta) * (1 - 2 * MU(eta)))), BEND, rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_an_estimate_that_is_not_admissible_is_replaced_by_the_nearest_that_is(seed):
    rng, S, lam = np.random.default_rng(seed), 1.0, 0.2
    X, r = tosses(seed, 60, 2, S=4.0)
    estimate = minimum(X, r, lam=lam)
    assert np.linalg.norm(estimate) > S
    limits = np.full(60, 5.0)
    if seed % 2:  # some rows that bound more than the ball does
        limits[:4] = rng.uniform(0.1, 0.6, 4)
    theta, F, left = nearest(AdmissibleSet(X, np.ones(60), lam, limits, S), estimate)
    assert np.linalg.norm(theta) <= S * (1 + 1e-12)
    assert np.all(np.abs(X @ theta) <= limits * (1 + 1e-12))
    assert_allclose(left, gap(theta, estimate, X, lam), rtol=1e-9)
    assert_allclose(F @ F.T, np.linalg.inv(hessian(X, theta, lam)), rtol=1e-9)
    radius, angle = np.meshgrid(np.linspace(0, S, 30), np.linspace(0, 2 * np.pi, 120))
    grid = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 2)
    grid = grid[np.all(np.abs(grid @ X.T) <= limits, axis=1)]
    least = min(gap(v, estimate, X, lam) for v in grid)
    assert left <= least * (1 + 1e-6)
    assert left >= least - 0.4  # the grid is that fine
    # seen red: θ̂ shrunk to the ball; ‖·‖ in H(θ̂)⁻¹; rows left out of the constraints


def test_updates_keep_to_the_admissible_set():
    model = Admissible(S=0.8, lam=1.0, horizon=50)
    X, r = tosses(3, 25, 2, S=4.0)
    state, away, limits = model.init(2), 0, []
    for i, (x, y) in enumerate(zip(X, r, strict=True)):
        t, theta = i + 1, state.theta
        H = hessian(X[:i], theta, 1.0)
        g = gamma(t, 2, 1.0, 0.8, 1 / 50)
        limits.append(abs(x @ theta) + 2.6 * (g + max(g, float(state.gap))) * norm(x, H))
        state = model.update(state, x, np.float64(y))
        free = minimum(X[:t], r[:t], lam=1.0)
        assert_allclose(state.estimate, free, atol=1e-6)
        assert np.linalg.norm(state.theta) <= 0.8 + 1e-9
        if np.linalg.norm(free) > 0.8:
            away += 1
            assert_allclose(state.gap, gap(state.theta, free, X[:t], 1.0), rtol=1e-5)
        else:
            assert_array_equal(state.theta, state.estimate)
            assert state.gap == 0
    assert 5 < away < 25
    assert_allclose(state.buffer[:25], limits, rtol=1e-6)
    assert not state.buffer[25:].any()
    # seen red: θ̂ kept wherever it is; ℓ_s after the update


def test_rows_that_narrow_the_set_are_obeyed():
    model = Admissible(S=4.0, lam=1.0, horizon=50)
    X, r = tosses(1, 20, 2, S=3.0)
    state = learnt(model, X[:19], r[:19])
    tight = state.buffer.copy()
    tight[:19] = 0.5 * np.abs(X[:19] @ state.theta)
    state = model.update(state._replace(buffer=tight), X[19], np.float64(r[19]))
    assert np.all(np.abs(X @ state.theta) <= state.buffer[:20] * (1 + 1e-9))
    assert np.linalg.norm(state.estimate) < 4.0  # so it is the rows that exclude it
    assert state.gap > 0
    # seen red: `inside` without the rows


@pytest.mark.parametrize("S", [0.5, 2.0])
def test_the_confidence_set_lies_within_its_outer_bounds(S):
    """‖θ - θ_t‖_H <= (2 + 4S)γ, μ(x'θ) within the bonus and |x'θ| <= ℓ, for every admissible θ with gap <= γ."""
    X, r = tosses(5, 80, 2, S=S)
    model = Admissible(S=S, lam=2.0, horizon=100)
    state = learnt(model, X, r)
    g = gamma(81, 2, 2.0, S, 0.01)
    rng, at = np.random.default_rng(0), unit(np.random.default_rng(1), 20, 2)
    drawn = S * unit(rng, 1000, 2) * np.sqrt(rng.random((1000, 1)))
    inside = np.array([v for v in drawn if gap(v, state.estimate, X, 2.0) <= g])
    assert len(inside) > 200
    H = hessian(X, np.asarray(state.theta), 2.0)
    off = inside - state.theta
    assert np.max(np.sqrt(np.einsum("ni,ij,nj->n", off, H, off))) <= (2 + 4 * S) * g
    more = MU(inside @ at.T) - MU(at @ state.theta)
    assert np.all(more.max(axis=0) <= model.bonus(state, at))
    after = model.update(state, at[0], np.float64(1.0))
    assert np.max(np.abs(inside @ at[0])) <= after.buffer[80]
    # seen red: the bonus a hundredth of itself; ℓ with a hundredth of its radius


@pytest.mark.parametrize("lam", [None, 3.0])
def test_the_bonus_covers_in_all_rounds_at_once(lam):
    rng, runs, d, S, T = np.random.default_rng(0), 500, 2, 2.0, 5
    model, policy = dither.LogisticUCB2.configure(d, S=S, horizon=T, lam=lam)
    state, truth = model.init(d, batch=(runs,)), S * unit(rng, runs, d)
    inside = held = np.ones(runs, bool)
    for t in range(1, 31):
        X = unit(rng, runs, 5, d)
        view = policy.view(model, state, X, t=t)
        true = MU(np.vecdot(X, truth[:, None]))
        inside = inside & np.all(true <= view.scores(), axis=1)
        rows = state.history.X
        logits, said = np.vecdot(rows, truth[:, None]), np.vecdot(rows, state.estimate[:, None])
        size = state.history.count * MU(logits) * MU(-logits)
        own = lam or d * max(1.0, math.log(t))
        H = np.einsum("rn,rni,rnj->rij", size, rows, rows) + own * np.eye(d)
        moved = state.history.count * (MU(logits) - MU(said))
        off = np.einsum("rn,rni->ri", moved, rows) + own * (truth - state.estimate)
        away = np.sqrt(np.vecdot(off, np.linalg.solve(H, off[..., None])[..., 0]))
        held = held & (away <= gamma(t, d, own, S, 1 / T))
        arm = np.argmax(view.scores(), axis=1)
        x = X[np.arange(runs), arm]
        state = model.update(state, x, (rng.random(runs) < MU(np.vecdot(x, truth))).astype(float))
    error = 5 * math.sqrt(0.2 * 0.8 / runs)
    assert held.mean() >= 0.8 - error
    assert inside.mean() >= 0.8 - error
    # seen red: γ a fifth of itself (held); a bonus a hundredth of itself (inside)


def test_a_gap_above_gamma_widens_the_bonus():
    plain = theory.logistic_ucb2_bonus(0.2, 0.5, 0.3, gamma=4.0, S=1.0, kappa=0.1, M=0.1)
    assert_allclose(plain, 6 * 4 * 0.2 * 0.5 + 0.05 * 12 * 16 / 0.1 * 0.09)
    assert theory.logistic_ucb2_bonus(0.2, 0.5, 0.3, gamma=4.0, gap=3.0, S=1.0, kappa=0.1, M=0.1) == plain
    wide = theory.logistic_ucb2_bonus(0.2, 0.5, 0.3, gamma=4.0, gap=6.0, S=1.0, kappa=0.1, M=0.1)
    assert_allclose(wide, 3 * 10 * 0.2 * 0.5 + 0.05 * 3 * 100 / 0.1 * 0.09)
    # seen red: gap left out


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"S": 0.0}, "S must be"),
        ({"S": 1000.0}, "kappa, for S=1000, must"),
        ({"kappa": 0.0}, "kappa must"),
        ({"M": -1.0}, "M must"),
        ({"lam": 0.0}, "lam must"),
        ({"horizon": 0}, "horizon must"),
        ({"disjoint": 3}, "needs 'bonus'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises((ValueError, TypeError), match=says):
        dither.LogisticUCB2(dim=2, **settings)

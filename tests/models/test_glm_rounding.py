"""Where rounding is the limit: equal records tie, and the bounds on rounding that `GLM` gives are above what it does.

Symmetry gives the right value: means and widths that must be equal differ by rounding alone.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

import glm_oracles
from dither.base import trees
from dither.models import GLM

SOLVED = ["certified", "exact", "counts", "online"]
LINKS = ["logit", "log", "probit"]
RECORDS = [(0, 1), (0, 1), (0, 0), (1, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 1)]  # (1,1,0), (1,0,1), (0,1,1)


def learnt(model, X, r, weight=None):
    state = model.init(X.shape[1])
    for i in range(len(r)):
        state = model.update(state, X[i], np.float64(r[i]), weight=None if weight is None else np.float64(weight[i]))
    return state


def spread(model, state, arms):
    """How far equal means and equal widths of the arms lie apart, in what rounding may do to two of them."""
    m, w, known = model.mean(state, arms), model.width(state, arms), model.rounding(state)
    return np.ptp(m) / (2 * known.rho * w.max()), np.ptp(w) / (2 * known.omega * w.max())


def basis(rng, d):
    return stats.ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("link", LINKS)
def test_three_arms_of_equal_records_are_one_to_rounding(solver, link):
    model = GLM(link, solver=solver)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(RECORDS)
        state = learnt(model, np.eye(3)[order[:, 0]], order[:, 1])
        m, w = model.mean(state, np.eye(3)), model.width(state, np.eye(3))
        assert np.ptp(m) <= 1e-14 * w.max()
        assert np.ptp(w) <= 1e-13 * w.max()
        assert max(spread(model, state, np.eye(3))) <= 1
        assert np.all(model.bound(state) <= 1e-12)
    # seen red: a solution that ends at E <= 1e-8; F from before the last step


@pytest.mark.parametrize("changes", [{"ridge": 1.0}, {"min_derivative": 0.1}, {"constrain": 0.7}], ids=str)
def test_equal_records_are_one_in_every_variant(changes):
    model = GLM(lam=0.3, **changes)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(RECORDS)
        state = learnt(model, np.eye(3)[order[:, 0]], order[:, 1])
        assert max(spread(model, state, np.eye(3))) <= 1


def problems(rng, link):
    """X, r, weights, and arms that symmetry makes equal: rotated bases, circles, codes of ±1; any scale."""
    d, kind = int(rng.integers(2, 6)), int(rng.integers(0, 4))
    scale, lam = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-4, 1)
    pay = (0.0, 1.0, 3.0) if link == "log" else (0.0, 1.0, 0.25)
    if kind == 0:  # every row of a basis has the same record
        A = basis(rng, d)
        X, r = np.repeat(A, 3, axis=0), np.tile(rng.choice(pay, size=3), d)
    elif kind == 1:  # one row of a basis was learnt: the others have the mean 0 and the width 1/√λ
        A = basis(rng, d)
        X, r = np.repeat(A[:1], 4, axis=0), rng.choice(pay, size=4)
        A = A[1:]
    elif kind == 2:  # learnt at one angle, asked on both sides of it
        a, turn = rng.uniform(0, 7), rng.uniform(0, 3)
        X = np.repeat([[np.cos(a), np.sin(a)]], 4, axis=0)
        A, r = np.array([[np.cos(a + s), np.sin(a + s)] for s in (turn, -turn)]), rng.choice(pay, size=4)
    else:  # all codes, with the same record each
        A = np.array(list(itertools.product([-1.0, 1.0], repeat=min(d, 4))))
        X, r = np.repeat(A, 2, axis=0), np.tile([pay[0], pay[1]], len(A))
        A = A if link == "logit" and pay[1] == 1 else A[:1]
    order = rng.permutation(len(X))
    return scale * X[order], r[order], scale * A, lam * scale**2


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("solver", ["certified", "counts"])
def test_exact_ties_lie_within_the_rounding_that_is_told(link, solver):
    sizes = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, r, A, lam = problems(rng, link)
        model = GLM(link, lam=lam, solver=solver)
        state = learnt(model, X, r)
        assert max(spread(model, state, A)) <= 1, seed
        sizes.append(model.rounding(state))
    assert np.median(sizes, axis=0)[0] <= 1e-13  # in widths: nothing that anyone could tell apart is merged
    assert np.median(sizes, axis=0)[1] <= 1e-11
    # seen red: the rounding of the product alone; widths without the condition of H


def test_rounding_knows_nothing_of_tol():
    """In the lazy regime θ is off by up to tol, and what is told is still rounding; for a recursion too."""
    X, r = glm_oracles.logistic(np.random.default_rng(0), 1600, d=4)
    for solver, tol in (("certified", 0.3), ("certified", 0.01), ("online", 0.05)):
        model = GLM(solver=solver, tol=tol)
        state = model.update_many(model.init(4), X[:1010], r[:1010])
        for t in range(1010, 1600):
            state = model.update(state, X[t], r[t], own=True)
        rho, omega = model.rounding(state)
        assert 1e-16 < rho <= 1e-11
        assert 1e-16 < omega <= 1e-10


def test_a_batch_of_states_is_told_as_each_alone():
    X, r = glm_oracles.logistic(np.random.default_rng(1), 40, d=3)
    model = GLM()
    alone = [model.update_many(model.init(3), X[part], r[part]) for part in (slice(0, 20), slice(20, 40))]
    stacked = trees.map_arrays(lambda *A: np.stack(A), *alone)
    runs = model.update_many(model.init(3, batch=(2,)), np.stack([X[:20], X[20:]]), np.stack([r[:20], r[20:]]))
    for i, state in enumerate(alone):
        for many, learnt, one in zip(*map(model.rounding, (stacked, runs, state)), strict=True):
            assert many.shape == learnt.shape == (2, 1)
            assert many[i] == one
            assert learnt[i] == pytest.approx(one, rel=0.01)  # one run has a solver of its own, which rounds otherwise

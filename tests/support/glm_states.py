"""What the tests of GLM share: histories, and how far a state is from the truth."""

import numpy as np
from numpy.testing import assert_allclose

import glm_oracles
import oracles

TIGHT, CURVED = 1e-8, {"exact": 1e-6, "counts": 1e-6, "certified": 1e-3}  # what a history that was solved is good for


SOLVED = ["exact", "counts", "certified"]


MOMENTS = (0, 1, 2, 3, 5, 8, 13, 24)


def fold(model, X, r, *, state=None, own=False, needs=frozenset(), **settings):
    """init, then update pair by pair."""
    state = model.init(X.shape[-1], needs=needs) if state is None else state
    for i in range(len(r)):
        state = model.update(state, X[i], r[i], own=own, **{k: v[i] for k, v in settings.items()})
    return state


def off(state, truth):
    """‖θ - θ̂‖ in the norm of the exact Ĥ, and the largest |log eigenvalue| of Ĥ as kept against it."""
    logs = np.log(np.linalg.svd(truth.R @ state.F, compute_uv=False))
    return np.linalg.norm(truth.R @ (state.theta - truth.theta).astype(float)), 2 * np.max(np.abs(logs))


def checked(model, state, truth, *, limits, at=()):
    """The truth is within the bound, and the bound within the limits."""
    bound, one = model.bound(state)[at], model.init(state.theta.shape[-1])
    E, eig = off(one._replace(F=state.F[at], theta=state.theta[at]), truth)
    assert glm_oracles.below(E, eig, bound, truth), (E, eig, bound)
    assert np.all(bound <= limits), (bound, limits)


def same(model, a, b, at, *, rtol=1e-6):
    """Two states say the same of the arms `at`: means to a hundred-millionth of a width, and widths."""
    assert np.all(np.abs(model.mean(a, at) - model.mean(b, at)) <= 4 * TIGHT * model.width(a, at))
    assert_allclose(model.width(a, at), model.width(b, at), rtol=rtol)


def arms(d, seed=9):
    return np.vstack([np.eye(d), np.random.default_rng(seed).normal(size=(3, d))])


def leaves(state):
    return [(k, A) for k, A in oracles.arrays_of(state, "s").items() if A.ndim]

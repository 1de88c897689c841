"""What the tests of the policies on generalised linear models share: what was learnt, and minima of their own."""

import numpy as np
from scipy import optimize, special

from dither.models import GLM

MU = special.expit


def learnt(policy, *, d=3, n=20, seed=0, model=None, X=None, r=None):
    """A model that knows n coin tosses, its state, and the data."""
    rng, model = np.random.default_rng(seed), model or GLM(lam=0.3, solver="exact")
    X = rng.normal(size=(n, d)) if X is None else np.asarray(X, float)
    r = (rng.random(len(X)) < MU(X.sum(axis=1))).astype(float) if r is None else np.asarray(r, float)
    state = model.init(X.shape[1], needs=policy.needs)
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, np.float64(y))
    return model, state, X, r


def scores(policy, model, state, X, *chance, t):
    """The scores of one request X (K, d), for each draw of chance."""
    return policy.view(model, state, np.asarray(X, float)[None], t=t).scores(*chance)


def minimum(X, r, *, lam, w=0.0, count=1.0, start=None):
    """argmin Σ [n log(1 + e^{x'θ}) - r x'θ] + λ‖θ‖²/2 + w'θ, by Levenberg's steps on the gradient (MINPACK)."""
    X, r = np.asarray(X, float), np.asarray(r, float)

    def gradient(theta):
        return (count * MU(X @ theta) - r) @ X + lam * theta + w

    def hessian(theta):
        slope = count * MU(X @ theta) * MU(-X @ theta)
        return (X.T * slope) @ X + lam * np.eye(X.shape[1])

    start = np.zeros(X.shape[1]) if start is None else start
    found = optimize.root(gradient, start, jac=hessian, method="lm", tol=1e-14)
    assert np.max(np.abs(gradient(found.x))) < 1e-7 * (1 + np.max(np.abs(w))), found.message
    return found.x


def hessian(X, theta, lam):
    return lam * np.eye(len(theta)) + sum(MU(x @ theta) * MU(-x @ theta) * np.outer(x, x) for x in X)

"""A model that has learnt something, for tests that look at its state."""

import numpy as np

from dither.models import Ridge


def learnt(d=4, n=30, *, lam=0.5, needs=frozenset(), seed=0, model=None):
    """A model that knows something, its state, and its data."""
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(n, d)), rng.normal(size=n)
    model = model or Ridge(lam)
    state = model.init(d, needs=needs)
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, y)
    return model, state, X, r

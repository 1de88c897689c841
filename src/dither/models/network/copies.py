"""Equal arms get equal answers: a product rounds a row by where it stands, and float32 shows it.

Copies of an arm must tie, else the first of them wins always and the others never. Answers that nearly agree are looked
at; where their rows agree to the bit, all have the answer of the first.
"""

import numpy as np

NEAR = 1e-5  # of the largest answer: how far apart the answers to equal rows may lie


def first(X: np.ndarray, f: np.ndarray) -> np.ndarray | None:
    """The first arm whose row is the same, for each: X (..., K, d), f (..., K) -> (..., K); None where none is near."""
    bound = NEAR * np.abs(f).max(axis=-1, keepdims=True)
    ordered = np.sort(f, axis=-1)
    if not (ordered[..., 1:] - ordered[..., :-1] <= bound).any():
        return None  # the usual case
    shape, K = f.shape, f.shape[-1]
    f, X = f.reshape(-1, K), np.broadcast_to(X, (*shape, X.shape[-1])).reshape(-1, K, X.shape[-1])
    order = np.argsort(f, axis=-1)
    near = np.diff(np.take_along_axis(f, order, axis=-1), axis=-1) <= bound.reshape(-1, 1)
    request, i = np.nonzero(near)
    same = (X[request, order[request, i]] == X[request, order[request, i + 1]]).all(axis=-1)
    doubtful = (near[:, 1:] & near[:, :-1]).any(axis=-1)  # three in a row: copies may have another between them
    doubtful[request[same]] = True
    if not doubtful.any():
        return None
    found = np.broadcast_to(np.arange(K), f.shape).copy()
    for row in np.flatnonzero(doubtful):
        _, at, which = np.unique(X[row], axis=0, return_index=True, return_inverse=True)
        found[row] = at[which.reshape(-1)]
    return found.reshape(shape)


def of_first(A: np.ndarray, found: np.ndarray | None) -> np.ndarray:
    """A (..., K) or (..., K, h) with what the first of equal arms has."""
    if found is None:
        return A
    return np.take_along_axis(A, found if A.ndim == found.ndim else found[..., None], axis=found.ndim - 1)

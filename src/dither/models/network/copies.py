"""Equal arms get equal answers.

How a matrix product rounds a row depends on where the row stands, which float32 shows. But copies of an arm must tie:
otherwise one of them always wins and the others never do. So where two answers nearly agree, their rows are compared.
Arms whose rows agree to the bit all get the answer of the first of them.
"""

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array

NEAR = 1e-5  # how far apart the answers to equal rows may lie, as a share of the largest answer


def first(X: Array, f: Array) -> Array | None:
    """For each arm the first arm with the same row: X (..., K, d), answers f (..., K) -> (..., K).

    None where no two answers nearly agree, which is the usual case.
    """
    xp = arrays.namespace(f)
    bound = NEAR * xp.max(abs(f), axis=-1, keepdims=True)
    ordered = xp.sort(f, axis=-1)
    if not (ordered[..., 1:] - ordered[..., :-1] <= bound).any():
        return None
    shape, K = f.shape, f.shape[-1]
    f = f.reshape(-1, K)
    X = xp.broadcast_to(X, (*shape, X.shape[-1])).reshape(-1, K, X.shape[-1])
    order = xp.argsort(f, axis=-1)
    near = xp.diff(xp.take_along_axis(f, order, axis=-1), axis=-1) <= bound.reshape(-1, 1)
    request, i = xp.nonzero(near)
    same = xp.all(X[request, order[request, i]] == X[request, order[request, i + 1]], axis=-1)
    doubtful = xp.any(near[:, 1:] & near[:, :-1], axis=-1)  # of three close answers, the outer two may be of copies
    doubtful[request[same]] = True
    if not doubtful.any():
        return None
    firsts = np.broadcast_to(np.arange(K), f.shape).copy()
    for row in np.flatnonzero(arrays.numpy(doubtful)):
        _, at, which = np.unique(arrays.numpy(X[int(row)]), axis=0, return_index=True, return_inverse=True)
        firsts[row] = at[which.reshape(-1)]
    return arrays.beside(firsts.reshape(shape), f)


def of_first(A: Array, firsts: Array | None) -> Array:
    """A (..., K) or (..., K, h), in which every arm has the value of the first arm that equals it (as of `first`)."""
    if firsts is None:
        return A
    xp = arrays.namespace(A)
    at = firsts if A.ndim == firsts.ndim else xp.broadcast_to(firsts[..., None], A.shape)
    return xp.take_along_axis(A, at, axis=firsts.ndim - 1)

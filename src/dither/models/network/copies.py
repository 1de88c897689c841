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
    ordered = np.sort(f, axis=-1) if type(f) is np.ndarray else xp.sort(f, axis=-1)  # the array API's is stable: slower
    bound = NEAR * xp.maximum(abs(ordered[..., :1]), abs(ordered[..., -1:]))
    near = ordered[..., 1:] - ordered[..., :-1] <= bound
    if not near.any():
        return None
    shape, K = f.shape, f.shape[-1]
    f, near = f.reshape(-1, K), near.reshape(-1, K - 1)
    X = xp.broadcast_to(X, (*shape, X.shape[-1])).reshape(-1, K, X.shape[-1])
    request, i = xp.nonzero(near)
    order = f[request].argsort(-1)  # of each pair's request
    pair = xp.arange(len(i), device=arrays.device(i))
    same = (X[request, order[pair, i]] == X[request, order[pair, i + 1]]).all(-1)
    doubtful = (near[:, 1:] & near[:, :-1]).any(-1)  # of three close answers, the outer two may be of copies
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

"""The observations that a network trains on, and the batches drawn from them.

With a window, the buffer is a ring that holds the last `window` observations: it has min(count, N) rows in use, and the
next observation goes to place count mod N. With window None the buffer grows and holds all of them.
"""

from typing import NamedTuple

import numpy as np

from dither.base.arrays import Array
from dither.models import buffers
from dither.models.buffers import BufferRows


class Minibatch(NamedTuple):
    """What one step of training is taken on."""

    X: Array  # (..., B, d)
    r: Array  # (..., B)
    share: Array  # (..., B)  the weight of the row over the number of rows; 0 where the run has no such row yet
    arm: Array | None  # (..., B)


def alike(count: np.ndarray) -> int | None:
    """The count that all runs have, or None where their counts differ."""
    first = int(count.flat[0])
    return first if count.size == 1 or (count == first).all() else None


def roomy(rows: BufferRows, *, window: int | None) -> BufferRows:
    """The buffer, with room for one more observation where all are kept."""
    N = rows.r.shape[-1]
    if window is not None or int(np.max(rows.count)) < N:
        return rows
    return buffers.roomier(rows, 2 * N)


def place(rows: BufferRows, count: int | None) -> tuple:
    """The index of the next row; count is that of all runs, or None where they differ."""
    N = rows.r.shape[-1]
    if count is not None:
        return (slice(None), count % N) if rows.count.ndim else (count % N,)
    return np.arange(len(rows.count)), rows.count % N


def read(rows: BufferRows, at: tuple) -> tuple:
    """A copy of the observation in that place, as `write` takes it."""
    arm = None if rows.arm is None else rows.arm[at].copy()
    return rows.X[at].copy(), rows.r[at].copy(), rows.weight[at].copy(), arm


def write(rows: BufferRows, at: tuple, x: Array, r: Array, weight: Array, arm: Array | None) -> None:
    """Put an observation into the buffer, in place. `rows.count` does not count it yet."""
    rows.X[at], rows.r[at], rows.weight[at] = x, r, weight
    if rows.arm is not None:
        rows.arm[at] = arm


def batch(rows: BufferRows, count: int | None, u: np.ndarray | None) -> Minibatch:
    """The rows of one step: all rows in use (u None), or those that u (..., B) picks, uniform on [0, 1).

    count : how many observations all runs have had; None where their numbers differ
    """
    N, kind = rows.r.shape[-1], rows.weight.dtype
    if u is None:
        most = min(int(np.max(rows.count)) if count is None else count, N)
        arm, share = None if rows.arm is None else rows.arm[..., :most], rows.weight[..., :most]
        if count is None:
            n = np.minimum(rows.count, N)[..., None]
            share = (share * np.where(np.arange(most) < n, 1 / n, 0)).astype(kind)
        else:
            share = share * kind.type(1 / most)
        return Minibatch(rows.X[..., :most, :], rows.r[..., :most], share, arm)
    n = np.minimum(rows.count, N)[..., None]
    i = np.minimum((u * n).astype(np.int64), n - 1)
    at = (np.arange(len(i))[:, None], i) if i.ndim > 1 else (i,)
    arm = None if rows.arm is None else rows.arm[at]
    return Minibatch(rows.X[at], rows.r[at], rows.weight[at] / kind.type(u.shape[-1]), arm)

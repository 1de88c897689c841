"""The observations that a network trains on, and the batches drawn from them.

With a window, the buffer is a ring that holds the last `window` observations: it has min(count, N) rows in use, and the
next observation goes to place count mod N. With window None the buffer grows and holds all of them.
"""

from typing import NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import buffers
from dither.models.buffers import BufferRows


class Minibatch(NamedTuple):
    """What one step of training is taken on."""

    X: Array  # (..., B, d)
    r: Array  # (..., B)
    share: Array  # (..., B)  the weight of the row over the number of rows; 0 where the run has no such row yet
    arm: Array | None  # (..., B)


def alike(count: Array) -> int | None:
    """The count that all runs have, or None where their counts differ."""
    if not count.ndim:
        return int(count)
    first = int(count[0])
    return first if len(count) == 1 or (count == first).all() else None


def roomy(rows: BufferRows, *, window: int | None) -> BufferRows:
    """The buffer, with room for one more observation where all are kept."""
    N = rows.r.shape[-1]
    if window is not None or int(rows.count.max()) < N:
        return rows
    return buffers.roomier(rows, 2 * N)


def place(rows: BufferRows, count: int | None) -> tuple:
    """The index of the next row; count is that of all runs, or None where they differ."""
    N = rows.r.shape[-1]
    if count is not None:
        return (slice(None), count % N) if rows.count.ndim else (count % N,)
    return arrays.namespace(rows.count).arange(len(rows.count), device=arrays.device(rows.count)), rows.count % N


def read(rows: BufferRows, at: tuple) -> tuple:
    """A copy of the observation in that place, as `write` takes it."""
    arm = None if rows.arm is None else rows.arm[at] * 1
    return rows.X[at] * 1, rows.r[at] * 1, rows.weight[at] * 1, arm


def write(rows: BufferRows, at: tuple, x: Array, r: Array, weight: Array, arm: Array | None) -> None:
    """Put an observation into the buffer, in place. `rows.count` does not count it yet."""
    rows.X[at], rows.r[at], rows.weight[at] = x, r, weight
    if rows.arm is not None:
        rows.arm[at] = arm


def batch(rows: BufferRows, count: int | None, u: Array | None) -> Minibatch:
    """The rows of one step: all rows in use (u None), or those that u (..., B) picks, uniform on [0, 1).

    count : how many observations all runs have had; None where their numbers differ
    """
    N, xp, kind = rows.r.shape[-1], arrays.namespace(rows.r), rows.weight.dtype
    if u is None:
        most = min(int(rows.count.max()) if count is None else count, N)
        arm, share = None if rows.arm is None else rows.arm[..., :most], rows.weight[..., :most]
        if count is None:
            n = xp.minimum(rows.count, N)[..., None]
            kept = xp.arange(most, device=arrays.device(n)) < n
            share = xp.astype(share * xp.where(kept, 1 / xp.astype(n, xp.float64), 0.0), kind)
        else:
            share = share * (1 / most)
        return Minibatch(rows.X[..., :most, :], rows.r[..., :most], share, arm)
    n = xp.minimum(rows.count, N)[..., None]
    i = xp.minimum(xp.astype(u * n, xp.int64), n - 1)
    at = (xp.arange(len(i), device=arrays.device(i))[:, None], i) if i.ndim > 1 else (i,)
    arm = None if rows.arm is None else rows.arm[at]
    return Minibatch(rows.X[at], rows.r[at], rows.weight[at] / u.shape[-1], arm)

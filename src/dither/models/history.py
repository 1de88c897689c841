"""The rows that a linear model has learnt from, each with its count and its sum of rewards.

A row is a feature vector x with its count ω, the number or the weight of its observations, and its total Σ ω r. Either
every observation gets a row of its own, or equal feature vectors share a row (`distinct`). With shared rows a fixed set
of K arms takes K rows, however many rounds there are. The buffers have more room than rows: what lies beyond the first
`rows` is zero and means nothing.
"""

from typing import NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import buffers, forgetting

PAD = 128  # rows are read in whole blocks of this size, so that a run's sums round alike whatever rows other runs have
SELDOM = 32  # rows between two looks for rows that count nothing


class History(NamedTuple):
    """Rows in the order of their first observation."""

    X: Array  # (..., N, d)
    count: Array  # (..., N)  ω of that row
    total: Array  # (..., N)  Σ ω r of that row
    rows: Array  # (...)  rows in use; int64


def init(zeros: Array) -> History:
    """A history without rows, for features like zeros (..., d)."""
    X, count, total = (arrays.blank(zeros, *shape) for shape in ((PAD, zeros.shape[-1]), (PAD,), (PAD,)))
    return History(X, count, total, arrays.blank(zeros, dtype=arrays.namespace(zeros).int64))


def append(state: History, x: Array, r: Array, weight: Array | None, *, distinct: bool, own: bool = False) -> History:
    """The history with one more observation: x (..., d), r (...), weight (...).

    own : the caller gives `state` up, so its buffers may be written to
    """
    xp = arrays.namespace(x)
    weight = xp.ones_like(x[..., 0]) if weight is None else weight
    row, rows = _place(state, x) if distinct else (state.rows, state.rows + 1)
    if int(xp.max(rows)) > state.count.shape[-1]:
        state, own = roomier(state), True
    count, total = weight, weight * r
    if distinct:  # a new row has 0 of both
        count = count + arrays.pick(state.count, row, rank=0)
        total = total + arrays.pick(state.total, row, rank=0)
    fresh = own and not distinct  # a known row's old sums are kept, since the update may still be refused
    return History(
        arrays.replace(state.X, row, x, rank=1, own=own),
        arrays.replace(state.count, row, count, rank=0, own=fresh),
        arrays.replace(state.total, row, total, rank=0, own=fresh),
        rows,
    )


def append_many(state: History, X: Array, r: Array, weight: Array | None) -> History:
    """The history with n more observations, each in a row of its own: X (..., n, d), r, weight (..., n)."""
    xp = arrays.namespace(X)
    weight = xp.ones_like(r) if weight is None else weight
    done, n = int(xp.max(state.rows)), X.shape[-2]
    if int(xp.min(state.rows)) < done:  # the replications have different numbers of rows
        for k in range(n):
            state = append(state, X[..., k, :], r[..., k], weight[..., k], distinct=False, own=k > 0)
        return state
    old = (state.X[..., :done, :], state.count[..., :done], state.total[..., :done])
    parts = zip(old, (X, weight, weight * r), (-2, -1, -1), strict=True)
    longer, count, total = (xp.concat([A, more], axis=axis) for A, more, axis in parts)
    return roomier(History(longer, count, total, state.rows + n), done + n + 1)


def _place(state: History, x: Array) -> tuple[Array, Array]:
    """The row of x, and the number of rows with it; an x that has no row gets the one after the last."""
    xp = arrays.namespace(x)
    used = xp.arange(state.X.shape[-2], device=arrays.device(x)) < state.rows[..., None]
    equal = (x[..., None, 0] == state.X[..., 0]) & used
    if arrays.some(xp.count_nonzero(equal, axis=-1) > 1):  # the first feature alone does not tell rows apart
        equal = xp.all(x[..., None, :] == state.X, axis=-1) & used
    row = xp.argmax(xp.astype(equal, xp.int8), axis=-1)
    old = xp.any(equal, axis=-1) & xp.all(arrays.pick(state.X, row, rank=1) == x, axis=-1)
    return xp.where(old, row, state.rows), xp.where(old, state.rows, state.rows + 1)


def forget(state: History, rows: Array) -> None:
    """Undo in place an `append` that was refused: clear the row that was added after the first `rows` (...)."""
    xp, axes = arrays.namespace(rows), rows.ndim
    X, count, total, now, before = (xp.reshape(A, (-1, *A.shape[axes:])) for A in (*state, rows))
    for i in range(before.shape[0]):
        n = int(before[i])
        if int(now[i]) > n:
            X[i, n, :], count[i, n], total[i, n] = 0.0, 0.0, 0.0


def blocks(rows: int) -> int:
    """The number of rows, rounded up to whole blocks of `PAD`; at least one block."""
    return PAD * max(1, -(-rows // PAD))


def roomier(state: History, least: int = 0) -> History:
    """A copy with half as much room again, and with room for `least` rows at least."""
    N = state.count.shape[-1]
    size = blocks(max(N + N // 2, least))
    X, count, total = (buffers.grown(A, size, rank=A.ndim - state.rows.ndim - 1) for A in state[:3])
    return History(X, count, total, state.rows)


def faded(state: History, left: Array | float) -> History:
    """The history with counts and sums `left` (...) times as large: an equal array of rows, and new ones of sums."""
    return state._replace(count=forgetting.times(left, state.count), total=forgetting.times(left, state.total))


def windowed(state: History, window: Array | float) -> History:
    """The history whose oldest rows have lost what its counts are more than `window`, (..., 1), together."""
    xp = arrays.namespace(state.count)
    over = xp.sum(state.count, axis=-1, keepdims=True) - window
    if not arrays.some(over > 0):
        return state
    lost = xp.minimum(
        xp.maximum(over - (xp.cumulative_sum(state.count, axis=-1) - state.count), 0.0 * over), state.count
    )
    kept = xp.where(state.count > 0, 1 - lost / xp.where(state.count > 0, state.count, 1.0), 0.0)
    return state._replace(count=state.count - lost, total=kept * state.total)


def compact(state: History) -> History:
    """The history without the rows that count 0, where it has no room for more, or where many rows are such."""
    xp, used = arrays.namespace(state.count), int(arrays.namespace(state.count).max(state.rows))
    if used % SELDOM and used < state.count.shape[-1]:
        return state
    most = int(xp.max(xp.count_nonzero(state.count, axis=-1)))
    if used < state.count.shape[-1] and used <= most + most // 4 + PAD:
        return state
    places = {i: xp.nonzero(state.count[(*i, slice(0, int(state.rows[i])))])[0] for i in np.ndindex(state.rows.shape)}
    rows = xp.asarray(state.rows, copy=True)
    for i, left in places.items():
        rows[i] = left.shape[0]
    X, count, total = buffers.packed(state[:3], places, blocks(most + most // 4 + PAD + 1))
    return History(X, count, total, rows)


def check(state: History) -> None:
    """Refuse a history that no data can lead to, as of a file that something else wrote."""
    X, count, total, rows = state
    if X.shape[:-1] != count.shape or count.shape != total.shape or X.shape[-1] < 1:
        raise ValueError(f"its history has shapes {X.shape}, {count.shape}, {total.shape}, which do not fit")
    if int(rows.max()) > count.shape[-1] or float(count.min()) < 0:
        raise ValueError("its history counts rows that are not there, or has a count below 0")

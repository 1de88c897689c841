"""The rows that a model has learnt from, in buffers that grow; what is beyond `rows` is not there.

A row is a feature vector with its count ω (observations, or their weight) and its total Σ ω r. Either every observation
is a row, or equal feature vectors share one (`distinct`): then a fixed set of K arms takes K rows, whatever t.
"""

from typing import Any, NamedTuple

import array_api_compat

from dither import arrays
from dither.arrays import Array

PAD = 128  # rows that are read at once, at least: what sums round to must not depend on what other runs have


class History(NamedTuple):
    """Rows in the order of their first observation."""

    X: Array  # (..., N, d)
    count: Array  # (..., N)  ω of that row
    total: Array  # (..., N)  Σ ω r of that row
    rows: Array  # (...)  rows in use; int64


def init(zeros: Array) -> History:
    """No rows; shaped after zeros (..., d)."""
    xp, device, (*batch, d) = arrays.namespace(zeros), array_api_compat.device(zeros), zeros.shape

    def empty(*shape: int, dtype: Any = zeros.dtype) -> Array:
        return xp.zeros((*batch, *shape), dtype=dtype, device=device)

    return History(empty(PAD, d), empty(PAD), empty(PAD), empty(dtype=xp.int64))


def append(state: History, x: Array, r: Array, weight: Array | None, *, distinct: bool, own: bool = False) -> History:
    """One more observation: x (..., d), r (...), weight (...); own: the buffers of `state` may be written to."""
    xp = arrays.namespace(x)
    weight = xp.ones_like(x[..., 0]) if weight is None else weight
    row, rows = (_found if distinct else _next)(state, x)
    count, total = weight, weight * r
    if distinct:
        old = xp.clip(row, max=state.count.shape[-1] - 1)
        known = row < state.rows
        count = count + xp.where(known, arrays.pick(state.count, old, rank=0), 0.0)
        total = total + xp.where(known, arrays.pick(state.total, old, rank=0), 0.0)
    if int(xp.max(rows)) > state.count.shape[-1]:
        state, own = roomier(state), True
    fresh = own and not distinct  # what a known row held must outlive a refusal
    return History(
        arrays.replace(state.X, row, x, rank=1, own=own),
        arrays.replace(state.count, row, count, rank=0, own=fresh),
        arrays.replace(state.total, row, total, rank=0, own=fresh),
        rows,
    )


def append_many(state: History, X: Array, r: Array, weight: Array | None) -> History:
    """n observations, each a row of its own: X (..., n, d), r, weight (..., n). The same number in all replications."""
    xp = arrays.namespace(X)
    weight = xp.ones_like(r) if weight is None else weight
    done, n = int(xp.max(state.rows)), X.shape[-2]
    if int(xp.min(state.rows)) < done:  # some replications have had fewer
        for k in range(n):
            state = append(state, X[..., k, :], r[..., k], weight[..., k], distinct=False, own=k > 0)
        return state
    old = (state.X[..., :done, :], state.count[..., :done], state.total[..., :done])
    parts = zip(old, (X, weight, weight * r), (-2, -1, -1), strict=True)
    longer, count, total = (xp.concat([A, more], axis=axis) for A, more, axis in parts)
    return roomier(History(longer, count, total, state.rows + n), done + n + 1)


def _next(state: History, x: Array) -> tuple[Array, Array]:
    return state.rows, state.rows + 1


def _found(state: History, x: Array) -> tuple[Array, Array]:
    """The row of x, or the next one, and the number of rows then."""
    xp = arrays.namespace(x)
    used = xp.arange(state.X.shape[-2], device=array_api_compat.device(x)) < state.rows[..., None]
    known = xp.all(x[..., None, :] == state.X, axis=-1) & used
    found = xp.any(known, axis=-1)
    row = xp.where(found, xp.argmax(xp.astype(known, xp.int8), axis=-1), state.rows)
    return row, xp.where(found, state.rows, state.rows + 1)


def forget(state: History, rows: Array) -> None:
    """Clear in place the row after the first `rows` (...), where one was added: a refusal leaves nothing."""
    xp, axes = arrays.namespace(rows), rows.ndim
    X, count, total, now, before = (xp.reshape(A, (-1, *A.shape[axes:])) for A in (*state, rows))
    for i in range(before.shape[0]):
        n = int(before[i])
        if int(now[i]) > n:
            X[i, n, :], count[i, n], total[i, n] = 0.0, 0.0, 0.0


def blocks(rows: int) -> int:
    """The rows, rounded up to whole blocks; at least one."""
    return PAD * max(1, -(-rows // PAD))


def roomier(state: History, least: int = 0) -> History:
    """With half as much room again, and at least so many rows."""
    N = state.count.shape[-1]
    size = blocks(max(N + N // 2, least))
    X, count, total = (grown(A, size, rank=k) for A, k in ((state.X, 1), (state.count, 0), (state.total, 0)))
    return History(X, count, total, state.rows)


def grown(A: Array, size: int, *, rank: int) -> Array:
    """A (..., N, <rank axes>) with zeros up to `size` rows."""
    xp, axis = arrays.namespace(A), A.ndim - rank - 1
    shape = (*A.shape[:axis], size - A.shape[axis], *A.shape[axis + 1 :])
    return xp.concat([A, xp.zeros(shape, dtype=A.dtype, device=array_api_compat.device(A))], axis=axis)


def check(state: History) -> None:
    """Refuse rows of no data."""
    X, count, total, rows = state
    if X.shape[:-1] != count.shape or count.shape != total.shape or X.shape[-1] < 1:
        raise ValueError(f"its history has shapes {X.shape}, {count.shape}, {total.shape}, which do not fit")
    if int(rows.max()) > count.shape[-1] or float(count.min()) < 0:
        raise ValueError("its history counts rows that are not there, or below 0")

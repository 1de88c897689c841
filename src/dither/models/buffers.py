"""Rows that a model keeps to learn from again, in arrays with room for more.

`grown` makes room in any array of rows. `BufferRows` is the buffer of the models that see the rows themselves: a
network trains on it (`network/recent.py`), and a regressor is fitted on it (`regressor/observed.py`). A linear model
keeps sums for each row instead, which `history.py` does.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dither.base import arrays
from dither.base.arrays import Array

ROOM = 128  # rows that a buffer has room for at first


class BufferRows(NamedTuple):
    """N rows of observations. The shape (...) is that of the replications; it is () for one bandit."""

    X: Array  # (..., N, d)  the features of the arm that was shown; with slots, the context
    r: Array  # (..., N)  its reward
    weight: Array  # (..., N)  its weight
    arm: Array | None  # (..., N)  the slot that was shown; int64
    count: Array  # (...)  how many observations came; int64
    ended: Any = None  # (..., N)  whether a fit was made after this row; bool


def init(
    batch: tuple[int, ...],
    d: int,
    *,
    slots: bool,
    room: int | None = None,
    dtype: str = "float64",
    ended: bool = False,
    xp: Any = arrays.NUMPY,
    device: Any = None,
) -> BufferRows:
    """A buffer without observations, with room for so many; ended: it notes where fits were made."""
    shape, zeros, kind = (*batch, room or ROOM), functools.partial(xp.zeros, device=device), getattr(xp, dtype)
    arm = zeros(shape, dtype=xp.int64) if slots else None
    r, weight = (zeros(shape, dtype=kind) for _ in range(2))
    marks = zeros(shape, dtype=xp.bool) if ended else None
    return BufferRows(zeros((*shape, d), dtype=kind), r, weight, arm, zeros(batch, dtype=xp.int64), marks)


def roomier(rows: BufferRows, size: int) -> BufferRows:
    """A copy with room for `size` rows; the new rows are zeros."""
    axes = rows.r.ndim
    parts = (None if A is None else grown(A, size, rank=A.ndim - axes) for A in rows._replace(count=None))
    return BufferRows(*parts)._replace(count=arrays.copied(rows.count))


def grown(A: Array, size: int, *, rank: int) -> Array:
    """A copy of A (..., N, <rank axes>) with `size` rows; the new rows are zeros."""
    xp, axis = arrays.namespace(A), A.ndim - rank - 1
    shape = (*A.shape[:axis], size - A.shape[axis], *A.shape[axis + 1 :])
    return xp.concat([A, xp.zeros(shape, dtype=A.dtype, device=arrays.device(A))], axis=axis)


def packed(parts: Sequence[Array], places: Mapping[tuple[int, ...], Array], room: int) -> list[Array]:
    """Copies of parts (..., N, *) with so much room, in which run i has its rows places[i] in front, then zeros."""
    some = next(iter(places))
    copies = [buffer[..., :0, *(slice(None),) * (buffer.ndim - len(some) - 1)] for buffer in parts]
    copies = [grown(buffer, room, rank=buffer.ndim - len(some) - 1) for buffer in copies]
    for i, rows in places.items():
        for copy, buffer in zip(copies, parts, strict=True):
            copy[(*i, slice(0, rows.shape[0]), ...)] = arrays.namespace(rows).take(buffer[(*i, ...)], rows, axis=0)
    return copies


def check(rows: BufferRows, *, slots: int | None, ring: bool = True) -> None:
    """Refuse a buffer that no data can lead to, as of a file that something else wrote; ring: it keeps the latest."""
    alike = {A.shape for A in (rows.r, rows.weight, rows.ended, rows.arm) if A is not None}
    if alike != {rows.X.shape[:-1]}:
        raise ValueError("its buffer has arrays with different numbers of rows")
    if int(rows.count.min()) < 0 or float(rows.weight.min(initial=0.0)) < 0:
        raise ValueError("its buffer has a count or a weight below 0")
    if not ring and int(rows.count.max()) > rows.r.shape[-1]:
        raise ValueError("its buffer counts rows that are not there")
    if rows.arm is not None and slots is not None and int(rows.arm.max(initial=0)) >= slots:
        raise ValueError(f"its buffer has rows of arms beyond {slots}")

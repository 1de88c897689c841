"""The observations that training sees: the last `window` of them in a ring, or all there are (window None)."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dither.arrays import Array
from dither.models import history

ROOM = 128  # rows at first where all are kept


class Rows(NamedTuple):
    """N rows, of which min(count, N) are in use; the next one goes to place count mod N."""

    X: Array  # (..., N, d)  the features of the arm shown; with slots the context
    r: Array  # (..., N)
    weight: Array  # (..., N)
    arm: Array | None  # (..., N)  the slot shown; int64
    count: Array  # (...)  observations so far; int64


class Batch(NamedTuple):
    """What one step is taken on."""

    X: Array  # (..., B, d)
    r: Array  # (..., B)
    share: Array  # (..., B)  its weight over the number of rows; 0 where there is no row yet
    arm: Array | None  # (..., B)


def init(batch: tuple[int, ...], d: int, *, window: int | None, slots: bool, dtype) -> Rows:
    """No rows."""
    N = ROOM if window is None else window
    arm = np.zeros((*batch, N), np.int64) if slots else None
    r, weight = (np.zeros((*batch, N), dtype) for _ in range(2))
    return Rows(np.zeros((*batch, N, d), dtype), r, weight, arm, np.zeros(batch, np.int64))


def alike(count: np.ndarray) -> int | None:
    """The count of all runs, None where they differ."""
    first = int(count.flat[0])
    return first if count.size == 1 or (count == first).all() else None


def roomy(rows: Rows, *, window: int | None) -> Rows:
    """With room for one more where all are kept."""
    N = rows.r.shape[-1]
    if window is not None or int(np.max(rows.count)) < N:
        return rows
    X, r, weight = (history.grown(A, 2 * N, rank=A.ndim - rows.r.ndim) for A in (rows.X, rows.r, rows.weight))
    arm = None if rows.arm is None else history.grown(rows.arm, 2 * N, rank=0)
    return Rows(X, r, weight, arm, rows.count)


def place(rows: Rows, count: int | None) -> tuple:
    """The index of the next row; count: of all runs, where they agree."""
    N = rows.r.shape[-1]
    if count is not None:
        return (slice(None), count % N) if rows.count.ndim else (count % N,)
    return np.arange(len(rows.count)), rows.count % N


def write(rows: Rows, at: tuple, x: Array, r: Array, weight: Array, arm: Array | None) -> None:
    """Put an observation there, in place; `rows.count` still counts without it."""
    rows.X[at], rows.r[at], rows.weight[at] = x, r, weight
    if rows.arm is not None:
        rows.arm[at] = arm


@contextlib.contextmanager
def written(rows: Rows, at: tuple, x: Array, r: Array, weight: Array, arm: Array | None) -> Iterator[None]:
    """An observation stands there; what stood there before stands there again if what happens inside raises."""
    before = [None if A is None else np.copy(A[at]) for A in (rows.X, rows.r, rows.weight, rows.arm)]
    write(rows, at, x, r, weight, arm)
    try:
        yield
    except ValueError:
        write(rows, at, *before)
        raise


def batch(rows: Rows, count: int | None, u: np.ndarray | None) -> Batch:
    """All rows in use (u None), or those that u (..., B), uniform on [0, 1), picks.

    count : how many observations all runs have had; None where that differs
    """
    N = rows.r.shape[-1]
    if u is None and count is not None:
        n = min(count, N)
        arm = None if rows.arm is None else rows.arm[..., :n]
        share = rows.weight[..., :n] * rows.weight.dtype.type(1 / n)
        return Batch(rows.X[..., :n, :], rows.r[..., :n], share, arm)
    n = np.minimum(rows.count, N)
    if u is None:
        most = int(np.max(n))
        arm = None if rows.arm is None else rows.arm[..., :most]
        share = rows.weight[..., :most] * np.where(np.arange(most) < n[..., None], 1 / n[..., None], 0)
        share = share.astype(rows.weight.dtype)
        return Batch(rows.X[..., :most, :], rows.r[..., :most], share, arm)
    i = np.minimum((u * n[..., None]).astype(np.int64), n[..., None] - 1)
    at = (np.arange(len(i))[:, None], i) if i.ndim > 1 else (i,)
    arm = None if rows.arm is None else rows.arm[at]
    return Batch(rows.X[at], rows.r[at], rows.weight[at] / rows.weight.dtype.type(u.shape[-1]), arm)


def check(rows: Rows, *, slots: int | None) -> None:
    """Refuse rows that no data can lead to."""
    shapes = {rows.r.shape, rows.weight.shape, rows.X.shape[:-1]}
    if len(shapes) > 1 or (rows.arm is not None and rows.arm.shape != rows.r.shape):
        raise ValueError("its buffer has rows of different numbers")
    if int(rows.count.min()) < 0 or float(rows.weight.min(initial=0.0)) < 0:
        raise ValueError("its buffer counts rows below 0")
    if rows.arm is not None and slots is not None and rows.arm.size and int(rows.arm.max()) >= slots:
        raise ValueError(f"its buffer has rows of arms beyond {slots}")

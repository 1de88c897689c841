"""The observations that a regressor is fitted on, in the order in which they came; beyond `count` all is zero."""

from typing import NamedTuple

import numpy as np

from dither.arrays import Array

ROOM = 128  # rows at first


class Rows(NamedTuple):
    """Shapes (...) are replications, none for one bandit."""

    X: Array  # (..., N, d)  the features of the arm shown; with slots the context
    r: Array  # (..., N)
    weight: Array  # (..., N)
    arm: np.ndarray | None  # (..., N)  the slot shown; int64
    ended: Array  # (..., N)  whether a fit was made after this row; bool
    count: Array  # (...)  rows in use; int64


class Run(NamedTuple):
    """The rows of one replication that are in use: n of them, or as many as were asked for."""

    X: Array  # (n, d)
    r: Array  # (n,)
    weight: Array  # (n,)
    arm: np.ndarray | None  # (n,)


def init(batch: tuple[int, ...], d: int, *, slots: bool) -> Rows:
    """No rows."""
    shape = (*batch, ROOM)
    arm = np.zeros(shape, np.int64) if slots else None
    return Rows(
        np.zeros((*shape, d)), np.zeros(shape), np.zeros(shape), arm, np.zeros(shape, bool), np.zeros(batch, int)
    )


def run(rows: Rows, i: int, *, first: int = 0, last: int | None = None) -> Run:
    """Rows `first` to `last` (None: all in use) of replication i: views."""
    last = int(rows.count.reshape(-1)[i]) if last is None else last
    alone, part = rows.count.ndim == 0, slice(first, last)
    X, r, weight, arm = (None if A is None else (A if alone else A[i])[part] for A in rows[:4])
    return Run(X, r, weight, arm)


def ends(rows: Rows, i: int) -> list[int]:
    """After how many rows of replication i fits were made."""
    return (np.flatnonzero(rows.ended if rows.count.ndim == 0 else rows.ended[i]) + 1).tolist()


def extended(
    rows: Rows, X: np.ndarray, r: np.ndarray, weight: np.ndarray, arm: np.ndarray | None, *, own: bool
) -> Rows:
    """n more rows in each replication: X (..., n, d), r, weight, arm (..., n); own: `rows` may be written to."""
    n, N = r.shape[-1], rows.r.shape[-1]
    need = int(np.max(rows.count)) + n
    if need > N or not own:
        size = max(2 * N, need) if need > N else N
        axis = rows.r.ndim - 1
        X0, r0, w0, arm0, ended = (None if A is None else _roomy(A, size, axis=axis) for A in rows[:5])
        rows = Rows(X0, r0, w0, arm0, ended, rows.count.copy())
    at = rows.count[..., None] + np.arange(n)
    where = (np.arange(len(at))[:, None], at) if at.ndim > 1 else (at,)
    rows.X[where], rows.r[where], rows.weight[where] = X, r, weight
    if rows.arm is not None:
        rows.arm[where] = arm
    return rows._replace(count=rows.count + n)


def forget(rows: Rows, count: np.ndarray) -> None:
    """Clear in place what lies beyond the first `count` (...) rows: a refusal leaves nothing."""
    for i, n in enumerate(count.reshape(-1)):
        for A in rows[:5]:
            if A is not None:
                (A if count.ndim == 0 else A[i])[n:] = 0


def marked(rows: Rows, i: int, after: list[int]) -> None:
    """Note in place that fits were made after these numbers of rows of replication i."""
    ended = rows.ended if rows.count.ndim == 0 else rows.ended[i]
    ended[np.array(after, dtype=np.int64) - 1] = True


def omit(rows: Rows, i: int, which: np.ndarray) -> None:
    """Let the rows `which` of replication i count no more, in place: weight 0."""
    (rows.weight if rows.count.ndim == 0 else rows.weight[i])[which] = 0


def check(rows: Rows, *, slots: int | None) -> None:
    """Refuse rows that no data can lead to."""
    alike = {A.shape for A in (rows.r, rows.weight, rows.ended, rows.arm) if A is not None}
    if alike != {rows.X.shape[:-1]}:
        raise ValueError("its buffer has rows of different numbers")
    if int(rows.count.max()) > rows.r.shape[-1] or float(rows.weight.min(initial=0.0)) < 0:
        raise ValueError("its buffer counts rows that are not there, or below 0")
    if rows.arm is not None and slots is not None and int(rows.arm.max(initial=0)) >= slots:
        raise ValueError(f"its buffer has rows of arms beyond {slots}")


def _roomy(A: np.ndarray, size: int, *, axis: int) -> np.ndarray:
    """A copy with zeros up to `size` rows."""
    B = np.zeros((*A.shape[:axis], size, *A.shape[axis + 1 :]), A.dtype)
    B[(slice(None),) * axis + (slice(A.shape[axis]),)] = A
    return B

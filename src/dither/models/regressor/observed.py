"""The observations that a regressor is fitted on, in the order in which they came; beyond `count` all is zero."""

from typing import Any

import numpy as np

from dither.models import buffers
from dither.models.buffers import BufferRows


def run(rows: BufferRows, i: int, *, first: int = 0, last: int | None = None) -> BufferRows:
    """Rows `first` to `last` of replication i, as views; last None: to the last row in use."""
    last = int(rows.count.reshape(-1)[i]) if last is None else last
    X, r, weight, arm = (None if A is None else _of(rows, A, i) for A in rows[:4])
    return part(BufferRows(X, r, weight, arm, rows.count), slice(first, last))


def part(run: BufferRows, which: Any) -> BufferRows:
    """Some rows of one replication: X (n, d), r, weight and arm (n,)."""
    X, r, weight, arm = (None if A is None else A[which] for A in run[:4])
    return BufferRows(X, r, weight, arm, run.count)


def ends(rows: BufferRows, i: int) -> list[int]:
    """After how many rows of replication i fits were made."""
    return (np.flatnonzero(_of(rows, rows.ended, i)) + 1).tolist()


def extended(
    rows: BufferRows, X: np.ndarray, r: np.ndarray, weight: np.ndarray, arm: np.ndarray | None, *, own: bool
) -> BufferRows:
    """The buffer with n more rows in each replication: X (..., n, d), r, weight, arm (..., n).

    own : the caller gives `rows` up, so they may be written to
    """
    n, N = r.shape[-1], rows.r.shape[-1]
    need = int(np.max(rows.count)) + n
    if need > N or not own:
        rows = buffers.roomier(rows, max(2 * N, need) if need > N else N)
    at = rows.count[..., None] + np.arange(n)
    where = (np.arange(len(at))[:, None], at) if at.ndim > 1 else (at,)
    rows.X[where], rows.r[where], rows.weight[where] = X, r, weight
    if rows.arm is not None:
        rows.arm[where] = arm
    return rows._replace(count=rows.count + n)


def forget(rows: BufferRows, count: np.ndarray) -> None:
    """Undo in place what was refused: clear all rows beyond the first `count` (...)."""
    for i, n in enumerate(count.reshape(-1)):
        for A in (*rows[:4], rows.ended):
            if A is not None:
                _of(rows, A, i)[n:] = 0


def marked(rows: BufferRows, i: int, after: list[int]) -> None:
    """Note in place that fits were made after these numbers of rows of replication i."""
    _of(rows, rows.ended, i)[np.array(after, dtype=np.int64) - 1] = True


def omit(rows: BufferRows, i: int, which: np.ndarray) -> None:
    """Give the rows `which` of replication i weight 0, in place: from now on they do not count."""
    _of(rows, rows.weight, i)[which] = 0


def _of(rows: BufferRows, A: Any, i: int) -> Any:
    """The part of replication i in an array of the buffer: a view."""
    return A if rows.count.ndim == 0 else A[i]

"""The rows of a window, and their sum without those that have left it.

A row is y = (x, r) with its weight, or y = (x, targets) for the targets of `units`, of which r is the first. The rows
that count lie one after the other, in an array that has room for more. New rows are written behind them, so an earlier
state goes on to hold its own. The oldest row may count in part: a window holds W observations, and a row of weight 3 is
three.

Every row that enters the sum or leaves it rounds it by a share of its size then. So what a large row has left behind
is bounded by the largest diagonal since the sum was made from the rows. The sum is made anew after W rows, and at once
where that bound would be more than `SHOWN` roundings of the diagonal at hand.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import buffers
from dither.models.history import History

ROOM = 64  # rows that there is room for at first
SHOWN = 1e3


class WindowRows(NamedTuple):
    """Rows in the order in which they came."""

    Y: Array  # (..., N, d+J)
    count: Array  # (..., N)  the weight of each
    places: Array  # (..., 2)  where the oldest row that counts is, and where the next row goes; int64
    books: Array  # (..., 3)  weight that the oldest row has lost, weight of all, rows since the sum was made from them
    peak: Array  # (..., d+J)  the largest diagonal of the sum since then


def init(zeros: Array) -> WindowRows:
    """No rows, for y like zeros (..., d+1)."""
    d, int64 = zeros.shape[-1], arrays.namespace(zeros).int64
    Y, count, books, peak = (arrays.blank(zeros, *shape) for shape in ((ROOM, d), (ROOM,), (3,), (d,)))
    return WindowRows(Y, count, arrays.blank(zeros, 2, dtype=int64), books, peak)


def one(
    rows: WindowRows, A: np.ndarray, y: np.ndarray, *, window: int, lam: float
) -> tuple[np.ndarray, WindowRows, float] | None:
    """`slid` for one row of weight 1 of one run in NumPy, at once; None where it takes more than that."""
    first, end = rows.places.tolist()
    gone, total, since = rows.books.tolist()
    since += 1
    full = total == window
    if end == len(rows.Y) or gone or total > window or (full and rows.count[first] != 1):
        return None
    dger = arrays.dger()
    A = dger(1.0, y, y, 1, 1, A.T).T
    if full:
        old = rows.Y[first]
        A = dger(-1.0, old, old, 1, 1, A.T, 1, 1, 1).T
    size = A.diagonal()
    peak = np.maximum(rows.peak, size)
    all_shown = peak / (np.abs(size) + lam)
    shown = all_shown.item(all_shown.argmax())  # NaN comes out as NaN
    if not shown <= SHOWN:
        return None
    rows.Y[end], rows.count[end] = y, 1.0
    first, total = (first + 1, total) if full else (first, total + 1)
    if since >= window:
        A, since, shown = _sum(rows.Y[first : end + 1], rows.count[first : end + 1]), 0.0, 1.0
        peak = A.diagonal().copy()
    new = WindowRows(rows.Y, rows.count, np.array([first, end + 1]), np.array([gone, total, since]), peak)
    return A, new, since * shown * shown + end + 1 - first


def slid(
    rows: WindowRows, A: Array, Y: Array, weight: Array | None, *, window: int, lam: Any, own: bool, d: int
) -> tuple[Array, WindowRows, Array]:
    """After rows Y (..., n, d+1), weight (..., n): the sum, the rows, and the roundings that the sum stands for (...).

    A : (..., d+1, d+1) the sum before
    own : rows may be written behind those of the old state
    """
    xp, n = arrays.namespace(A), Y.shape[-2]
    if int(xp.max(rows.places)) + n > rows.count.shape[-1]:
        rows, own = _moved(rows, n), True
    if not own:
        rows = rows._replace(Y=xp.asarray(rows.Y, copy=True), count=xp.asarray(rows.count, copy=True))
    batch = rows.places.shape[:-1]
    if not batch:
        sums, rows, steps = _slid(rows, A, Y, weight, window=window, lam=lam, d=d)
        return sums, rows, steps if type(A) is np.ndarray else xp.asarray(steps, dtype=A.dtype, device=arrays.device(A))
    parts = []
    for i in np.ndindex(tuple(batch)):
        of_run = None if weight is None else weight[(*i, ...)]
        lam_i = lam[i] if getattr(lam, "ndim", 0) else lam
        parts.append(_slid(run(rows, i), A[(*i, ...)], Y[(*i, ...)], of_run, window=window, lam=lam_i, d=d))
    sums, each, steps = zip(*parts, strict=True)

    def whole(values: Any) -> Array:
        stacked = xp.stack(values)
        return xp.reshape(stacked, (*batch, *stacked.shape[1:]))

    fields = (whole(field) for field in list(zip(*each, strict=True))[2:])
    counts = xp.asarray(steps, dtype=A.dtype, device=arrays.device(A))
    return whole(sums), WindowRows(rows.Y, rows.count, *fields), xp.reshape(counts, batch)


def each(rows: WindowRows) -> Iterator[tuple[Array, Array]]:
    """The rows that count of each run, Y (m, d+1), and their weights (m,)."""
    for i in np.ndindex(tuple(rows.places.shape[:-1])):
        one = run(rows, i)
        first, end = int(one.places[0]), int(one.places[1])
        counts = arrays.namespace(one.count).asarray(one.count[first:end], copy=True)
        if end > first:
            counts[0] -= one.books[0]
        yield one.Y[first:end, :], counts


def observed(rows: WindowRows, d: int, first: Array | None) -> Iterator[tuple[Array, Array, Array]]:
    """The rows that count of each run: X (m, d), r (m,) and weights (m,); first (...): what the rows leave of r."""
    origin = [0.0] * math.prod(rows.places.shape[:-1]) if first is None else arrays.numpy(first).reshape(-1).tolist()
    for start, (Y, count) in zip(origin, each(rows), strict=True):
        yield Y[:, :d], Y[:, d] + start if start else Y[:, d], count


def distinct(rows: WindowRows, d: int, first: Array | None) -> History:
    """Every distinct x of the rows that count, with its count and its sum of rewards, sorted by x."""
    batch, parts = rows.places.shape[:-1], []
    for of_run in observed(rows, d, first):
        X, r, weight = map(arrays.numpy, of_run)
        once, place = np.unique(X, axis=0, return_inverse=True)
        parts.append([once, *(np.bincount(place.ravel(), w, minlength=len(once)) for w in (weight, weight * r))])
    used = np.array([len(once) for once, *_ in parts], dtype=np.int64)

    def whole(values: Any) -> Array:
        stacked = np.stack([buffers.grown(A, int(used.max()), rank=A.ndim - 1) for A in values])
        return arrays.beside(stacked.reshape(*batch, *stacked.shape[1:]), rows.Y)

    X, count, total = (whole(values) for values in zip(*parts, strict=True))
    return History(X, count, total, arrays.beside(used.reshape(batch), rows.Y))


def run(rows: WindowRows, i: tuple[int, ...]) -> WindowRows:
    """One run of several."""
    return WindowRows(*(part[(*i, ...)] for part in rows))


def cleared(rows: WindowRows, before: WindowRows) -> None:
    """Undo in place what a refused `slid` wrote behind the rows of `before`, where it wrote there."""
    if rows.Y is before.Y:
        for i in np.ndindex(tuple(rows.places.shape[:-1])):
            behind = slice(int(before.places[(*i, 1)]), None)
            rows.Y[(*i, behind, ...)] = 0.0
            rows.count[(*i, behind)] = 0.0


def check(rows: WindowRows) -> None:
    """Refuse rows that no data can lead to, as of a file that something else wrote."""
    Y, count, places, books, _ = rows
    first, end = places[..., 0], places[..., 1]
    if Y.shape[:-1] != count.shape or int(end.max()) > count.shape[-1] or bool((first > end).any()):
        raise ValueError("its history counts rows that are not there")
    if float(count.min()) < 0 or float(books.min()) < 0:
        raise ValueError("its history has a weight below 0")


def _slid(
    rows: WindowRows, A: Array, Y: Array, weight: Array | None, *, window: int, lam: Any, d: int
) -> tuple[Array, WindowRows, Array]:
    """The same for one run, whose arrays have room."""
    xp, buffer, count = arrays.namespace(A), rows.Y, rows.count
    if weight is not None and bool(xp.any(weight == 0)):  # rows that never count are not kept
        used = xp.nonzero(weight)[0]
        Y, weight = xp.take(Y, used, axis=0), xp.take(weight, used, axis=0)
    n, device = Y.shape[0], arrays.device(A)
    first, end = int(rows.places[0]), int(rows.places[1])
    gone, total, since = (float(book) for book in rows.books)
    buffer[end : end + n, :] = Y
    count[end : end + n] = 1.0 if weight is None else weight
    total += n if weight is None else float(xp.sum(weight))
    end, since, start = end + n, since + n, first
    cuts: list[float] = []
    while total > window:  # the oldest rows leave
        left = float(count[first]) - gone
        cut = min(left, total - window)
        cuts.append(cut)
        total, gone = total - cut, gone + cut
        if cut == left:
            first, gone = first + 1, 0.0
    if n == 1 and weight is None and cuts == [1.0]:
        old = buffer[start, :]
        A = A + xp.stack([Y[0, :], old]).mT @ xp.stack([Y[0, :], -old])
        peak = xp.maximum(rows.peak, xp.linalg.diagonal(A))
    else:
        A = A + _sum(Y, count[end - n : end])
        peak = xp.maximum(rows.peak, xp.linalg.diagonal(A))
        if cuts:
            A = A - _sum(buffer[start : start + len(cuts), :], xp.asarray(cuts, dtype=A.dtype, device=device))
    size = xp.abs(xp.linalg.diagonal(A))
    shown = float(xp.max(peak[:d] / (size[:d] + lam)))
    places, books = [first, end], [gone, total, since]
    new = WindowRows(
        *(buffer, count, xp.asarray(places, dtype=xp.int64, device=device)),
        *(xp.asarray(books, dtype=A.dtype, device=device), peak),
    )
    if since < window and shown <= SHOWN and float(peak[d]) <= SHOWN * float(size[d]):
        return A, new, since * shown * shown + end - first
    rest, weights = next(each(new))
    A, books = _sum(rest, weights), [gone, float(xp.sum(weights)), 0.0]
    new = new._replace(books=xp.asarray(books, dtype=A.dtype, device=device), peak=xp.linalg.diagonal(A) + 0.0)
    return A, new, float(end - first)


def _sum(Y: Array, weight: Array) -> Array:
    """Σ ω yy': Y (n, d+1), weight (n,)."""
    return (weight[:, None] * Y).mT @ Y


def _moved(rows: WindowRows, n: int) -> WindowRows:
    """The rows that count at the beginning of new arrays, with room for three times as many again and for n more."""
    xp, first, end = arrays.namespace(rows.Y), rows.places[..., 0], rows.places[..., 1]
    ends = {i: (int(first[i]), int(end[i])) for i in np.ndindex(tuple(first.shape))}
    places = {i: xp.arange(a, b, device=arrays.device(rows.Y)) for i, (a, b) in ends.items()}
    Y, count = buffers.packed((rows.Y, rows.count), places, max(ROOM, 4 * int(xp.max(end - first))) + n)
    return rows._replace(Y=Y, count=count, places=xp.stack([xp.zeros_like(first), end - first], axis=-1))

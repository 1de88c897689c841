"""The upper envelope of K lines m + z w, of many requests at once: which line is highest, and between which z.

    z_ij = (m_i - m_j)/(w_j - w_i)     where the steeper line j overtakes i

Take the lines in order of slope, and a line j between i and k. If j overtakes i no sooner than k overtakes j, z_ij >=
z_jk, then j is nowhere the highest: it is idle. Each pass leaves out every line that its two neighbours prove idle, in
all requests together. As a rule a pass removes half of the idle lines. Where a pass removes none, the rest is the
envelope. Where it removes too few, a stack finishes, line by line (Andrew's monotone chain). Apart from sorting, the
cost is O(K), however many lines can win.

Both ends of a line's interval come from differences of the given m and w, and floating point has these to half an ulp.
So corners are right to a few ulps. If a line is left out wrongly, its interval is empty up to rounding.
"""

from typing import NamedTuple

import numpy as np

_FEW = 20  # so few lines go to the stack at once: a pass would cost more than it saves


class Corners(NamedTuple):
    """The lines of the envelopes of B requests, one after another, each in order of z. All arrays (H,)."""

    row: np.ndarray  # int  which request
    arm: np.ndarray  # int  which line
    low: np.ndarray  # the line is the highest from here
    high: np.ndarray  # to here


class Ordered(NamedTuple):
    """The lines on offer of B requests, by request and slope. All arrays (N,)."""

    place: np.ndarray  # int  row * K + arm
    m: np.ndarray
    w: np.ndarray
    row: np.ndarray  # int


def ordered(m: np.ndarray, w: np.ndarray, *, mask: np.ndarray | None) -> Ordered:
    """m, w, mask (B, K) in order of slope."""
    B, K = m.shape
    w = w + 0.0  # -0 becomes 0: its differences would have the wrong sign
    if mask is not None:
        w = np.where(mask, w, np.inf)
    place = w.argsort(axis=-1)
    if B > 1:
        place += K * np.arange(B)[:, None]
    place = place.ravel()
    if mask is not None:
        place = place[w.ravel()[place] < np.inf]
    row = place // K if B > 1 else np.zeros(len(place), dtype=np.intp)
    return Ordered(place, m.ravel().take(place), w.ravel().take(place), row)


def corners(m: np.ndarray, w: np.ndarray, *, mask: np.ndarray | None = None) -> Corners:
    """The envelopes of B requests. m, w (B, K), mask (B, K) -> the lines that are highest somewhere."""
    return of_ordered(ordered(m, w, mask=mask), arms=m.shape[-1])


def of_ordered(lines: Ordered, *, arms: int) -> Corners:
    """The same of lines in order."""
    place, m, w, row = lines
    alone = row[0] == row[-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        while True:
            if len(place) <= _FEW:
                low, high, kept = _stack(m, w, row)
                break
            low, high = _intervals(m, w, row)
            kept = (high > low).nonzero()[0]
            idle = len(place) - len(kept)
            if not idle:
                break
            place, m, w = place.take(kept), m.take(kept), w.take(kept)
            row = row[: len(kept)] if alone else row.take(kept)
            if idle < len(kept) // 8:
                low, high, kept = _stack(m, w, row)
                break
    row = row.take(kept)
    return Corners(row, place.take(kept) - arms * row, low, high)


def _intervals(m: np.ndarray, w: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between which z each line is above its two neighbours."""
    z = np.empty(len(m) + 1)
    z[0], z[-1] = -np.inf, np.inf
    # Where slopes are equal: inf if the later line is lower, -inf if it is higher.
    np.divide(m[:-1] - m[1:], w[1:] - w[:-1], out=z[1:-1])
    if np.isnan(z.min()):
        z[np.isnan(z)] = -np.inf  # one line twice: the later stays
    low, high = z[:-1], z[1:]
    if row[0] != row[-1]:
        ends = np.flatnonzero(row[1:] != row[:-1])
        high = high.copy()
        low[ends + 1], high[ends] = -np.inf, np.inf
    return low, high


def _stack(m: np.ndarray, w: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """low, high and the places of the lines that stay, one line after another."""
    M, W, R = m.tolist(), w.tolist(), row.tolist()
    hull: list[int] = []
    starts: list[float] = []
    base, of = 0, None  # where the envelope of the present request begins in the stack
    for i, (height, slope, request) in enumerate(zip(M, W, R, strict=True)):
        if request != of:
            base, of = len(hull), request
        start = -np.inf
        while len(hull) > base:
            last = hull[-1]
            if slope == W[last]:
                if height < M[last]:
                    start = np.inf
                    break
            else:
                start = (M[last] - height) / (slope - W[last])
                if start > starts[-1]:
                    break
            hull.pop(), starts.pop()
            start = -np.inf
        if start < np.inf:
            hull.append(i)
            starts.append(start)
    kept, low = np.array(hull), np.array(starts)
    high = np.append(low[1:], np.inf)
    high[np.isneginf(high)] = np.inf  # the next request begins
    return low, high, kept

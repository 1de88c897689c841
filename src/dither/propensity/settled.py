"""Lines that rounding cannot tell apart are one line: the tie rule of arms that are lines m + z w.

Two numbers have a gap between them where they differ by more than the rounding errors of both. Numbers in order form a
chain as long as no gap comes.
    Widths of one chain are one width: their lines are parallel.
    Among parallel lines, means of one chain are one mean: these lines are one line. Its arms are a set and have equal
    shares.

Chains do not depend on the order of the arms. So neither the sets nor the m and w of each set depend on it. Means are
compared only among parallel lines, because lines of two widths differ, whatever their means are.

Values, such as prices, are settled likewise: those of one chain are one number (`values`). Lines of several values are
apart, whatever their means and widths are.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays, errors

UNIT = float(np.finfo(float).eps)
COARSE = {"bfloat16": 3 * 2.0**-7, "float16": 3 * 2.0**-10, "float32": 3 * 2.0**-23}  # errors of values in these types
OF_VALUES = (
    1e-10  # errors of values, as a share: of a margin of a cent that is the difference of two prices below 5,000
)


class Slack(NamedTuple):
    """The rounding errors of lines m + z w: |error of m| <= rho * raw, |error of w| <= omega * w."""

    rho: Any  # a number, or what broadcasts to (..., K)
    raw: Any  # (..., K)  the widths without the scale, or whatever rho is a share of
    omega: Any  # a number, or what broadcasts to (..., K)

    @property
    def m(self) -> Any:
        """The errors of m, (..., K)."""
        return self.rho * self.raw

    def at(self, z: Any, m: Any, w: Any) -> Any:
        """The errors of the scores m + z w, (..., K); z a number or what broadcasts to (..., K)."""
        xp = arrays.namespace(m)
        size = abs(z) if isinstance(z, float | int) else xp.abs(z)
        return self.m + size * self.omega * w + 2 * UNIT * (xp.abs(m) + size * w)

    def most(self, m: Any, w: Any) -> float:
        """No error of a score m + w is larger than this number. m, w (..., K)"""
        if m.ndim == 1 and type(m) is np.ndarray:
            wide, tall = _size(w), _size(m)
            raw = wide if self.raw is w else _size(self.raw)
        else:
            wide, tall, raw = (arrays.largest(abs(part)) for part in (w, m, self.raw))
        return arrays.largest(self.rho) * raw + arrays.largest(self.omega) * wide + 2 * UNIT * (tall + wide)

    def reach(self, m: np.ndarray, w: np.ndarray, z: float) -> float:
        """By how much settling and rounding may move the difference of two scores m + z w. m, w (K,), one request."""
        rho, raw, omega = self
        wide, K, z = _size(w), len(m), abs(z)
        moved = arrays.largest(rho) * (wide if raw is w else _size(raw)) + z * arrays.largest(omega) * wide
        return 4 * K * moved + 8 * UNIT * (_size(m) + z * wide)

    def share(self) -> float:
        """The largest relative error of a width of one request."""
        return arrays.largest(self.omega)


def _size(x: Any) -> float:
    """At least the largest |x|, by one product where that neither overflows nor underflows. x (K,), or a number"""
    if type(x) is float:
        return abs(x)
    square = float(x.dot(x))
    return math.sqrt(square) if 1e-280 < square < math.inf else float(np.abs(x).max())


def rounded(m: np.ndarray, w: np.ndarray, mask: np.ndarray | None = None) -> Slack:
    """The errors of lines about which only one thing is known: they are rounded."""
    return Slack(arrays.spread(m, mask=mask), 1.0, arrays.RELATIVE + arrays.ROUNDING)


class Sets(NamedTuple):
    """The settled lines of B requests."""

    m: np.ndarray  # (B, K)  one m for all lines of a set
    w: np.ndarray  # (B, K)  one w
    of: np.ndarray  # (B, K) int  the set of each arm, numbered through all requests; -1 where not on offer
    size: np.ndarray  # (sets,) int  how many arms are in each
    parallel: np.ndarray  # (B, K) int  the group of parallel lines that its line is in, numbered alike


def settle(
    m: np.ndarray, w: np.ndarray, *, slack: Slack, mask: np.ndarray | None = None, apart: np.ndarray | None = None
) -> Sets:
    """The sets of lines of B requests. m, w, mask (B, K); apart (B, K): lines of other numbers there are never one"""
    B, K = m.shape
    if not B:
        none = np.empty((0, K), dtype=np.int64)
        return Sets(m, w, none, np.empty(0, dtype=np.int64), none)
    offered = np.ones((B, K), dtype=bool) if mask is None else mask
    height = np.broadcast_to(slack.m, (B, K))
    omega = np.max(np.broadcast_to(slack.omega, (B, K)), axis=-1, where=offered, initial=0.0)
    places: Any = np.nonzero(offered)
    row, arm = places
    M, W, E, omega = m[row, arm], w[row, arm], height[row, arm], omega[row]
    kind = np.zeros(len(row)) if apart is None else apart[row, arm]
    if not (np.isfinite(M).all() and np.isfinite(W).all()):
        raise errors.not_finite("means and widths")
    # Widths: one sort of each request, and a cut at each gap.
    order = np.lexsort((W, kind, row))
    row, arm, M, W, E, omega, kind = (part[order] for part in (row, arm, M, W, E, omega, kind))
    begins = (row[1:] > row[:-1]) | (kind[1:] > kind[:-1])
    cut = np.r_[True, begins | (W[1:] - W[:-1] > omega[1:] * (W[1:] + W[:-1]))]
    start, group = np.flatnonzero(cut), np.cumsum(cut) - 1
    W, E = W[start][group], np.maximum.reduceat(E, start)[group]
    # Means among lines of one width.
    order = np.lexsort((M, group))
    row, arm, M, W, E, group = (part[order] for part in (row, arm, M, W, E, group))
    cut = np.r_[True, (group[1:] > group[:-1]) | (M[1:] - M[:-1] > 2 * E[1:])]
    start, of = np.flatnonzero(cut), np.cumsum(cut) - 1
    sets = Sets(m.copy(), w.copy(), np.full((B, K), -1), np.bincount(of), np.full((B, K), -1))
    sets.m[row, arm], sets.w[row, arm], sets.of[row, arm], sets.parallel[row, arm] = M[start][of], W, of, group
    return sets


def top(sets: Sets, z: Any, *, slack: Slack) -> np.ndarray:
    """The arms that tie for the highest score at z (B,): which, (B, K) bool.

    Of parallel lines only the one with the highest mean can win, whatever the error of their width. Among the lines
    that are left, scores tie where they are in one chain.
    """
    z = np.asarray(z)[..., None]
    return arrays.top(sets.m + z * sets.w, error=slack.at(z, sets.m, sets.w), mask=able(sets))


def able(sets: Sets) -> np.ndarray:
    """Which arms no parallel line passes over: (B, K) bool."""
    offered = sets.of >= 0
    row, arm = np.nonzero(offered)
    group = np.empty(len(sets.size), dtype=np.intp)
    group[sets.of[row, arm]] = sets.parallel[row, arm]
    last = np.r_[group[1:] != group[:-1], True]  # sets are numbered by request, width and mean
    return offered & last[sets.of]


def last_chain(x: np.ndarray, error: np.ndarray, *, begins: np.ndarray) -> np.ndarray:
    """The places of the numbers in the last chain of each part: x (N,) in order in its part, begins (N - 1,) bool."""
    chain = np.cumsum(np.r_[True, begins | (x[1:] - x[:-1] > error[1:] + error[:-1])])
    ends = np.r_[np.flatnonzero(begins), len(x) - 1]
    part = np.cumsum(np.r_[False, begins])
    return np.flatnonzero(chain == chain[ends][part])


def values(v: np.ndarray, *, share: float = OF_VALUES, mask: np.ndarray | None = None) -> np.ndarray:
    """Values above 0, where those of one chain are one number, the least of them. v, mask (..., K) -> (..., K)

    share : the rounding error of a value, as a share of it
    """
    offered = v if mask is None else np.where(mask, v, np.inf)
    order = np.argsort(offered, axis=-1)
    sort = np.take_along_axis(offered, order, axis=-1)
    low, high = sort[..., :-1], sort[..., 1:]
    with np.errstate(invalid="ignore"):
        gap = (high - low > share * (high + low)) | (high == np.inf)
    if not np.any((high > low) & ~gap):
        return v
    start = np.concatenate([np.ones(gap[..., :1].shape, dtype=bool), gap], axis=-1)[..., : v.shape[-1]]
    least = np.maximum.accumulate(np.where(start, sort, 0.0), axis=-1)
    one = np.empty_like(v)
    np.put_along_axis(one, order, least, axis=-1)
    return one if mask is None else np.where(mask, one, v)


def crowded(w: np.ndarray, *, slack: Slack, mask: np.ndarray | None = None) -> np.ndarray:
    """The requests in which two widths have no gap between them. w, mask (B, K) -> (B,) bool"""
    sort = np.sort(w if mask is None else np.where(mask, w, np.inf), axis=-1)
    omega = np.broadcast_to(slack.omega, w.shape)
    omega = np.max(omega, axis=-1, keepdims=True, where=True if mask is None else mask, initial=0.0)
    with np.errstate(invalid="ignore"):
        return np.any(
            sort[:, 1:] - sort[:, :-1] <= omega * (sort[:, 1:] + sort[:, :-1]), axis=-1, where=sort[:, 1:] < np.inf
        )


# Lists: what ties is decided once. The arms of a tie fill places in any order, and only then come the others. That
# holds for whoever draws a list and for whoever states its probability, since a chain may lose its middle on the way.

Tied = Callable[[Any], Any]  # the arms that are left (..., K) -> which of them tie for the highest, (..., K) bool


def in_turn(tied: Tied, u: Any, left: Any) -> Any:
    """The best arm, then the best of the arms that are left, and so on: uniforms u (..., k) -> (..., k) integers.

    left : (..., K) True for the arms on offer
    """
    xp, order = arrays.namespace(left), []
    group = xp.zeros_like(left)
    for r in range(u.shape[-1]):
        done = ~xp.any(group, axis=-1, keepdims=True)
        if arrays.some(done):
            group = xp.where(done, tied(left), group)
        arm = arrays.nth(group, u[..., r])
        order.append(arm)
        gone = xp.zeros(arm.shape, dtype=xp.bool, device=arrays.device(left))
        left, group = (arrays.replace(part, arm, gone, rank=0) for part in (left, group))
    return xp.stack(order, axis=-1)


def of_list(tied: Tied, arms: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The probability with which `in_turn` draws the list `arms` (..., k): (...)."""
    p, group = np.ones(arms.shape[:-1]), np.zeros_like(left)
    for r in range(arms.shape[-1]):
        arm = arms[..., r, None]
        group = np.where(np.any(group, axis=-1, keepdims=True), group, tied(left))
        p = p * np.take_along_axis(group, arm, axis=-1)[..., 0] / np.count_nonzero(group, axis=-1)
        left, group = left.copy(), group.copy()
        np.put_along_axis(left, arm, False, axis=-1)
        np.put_along_axis(group, arm, False, axis=-1)
    return p


def places(tied: Tied, left: np.ndarray, k: int) -> list[np.ndarray]:
    """The arms of one request as far as the k-th place, in order; those that tie are one array. left (K,)"""
    answer, room = [], k
    while room > 0:
        group = tied(left)
        left = left & ~group
        answer.append(np.flatnonzero(group))
        room -= len(answer[-1])
    return answer


def rows(slack: Slack, some: Any, shape: tuple[int, ...]) -> Slack:
    """The errors of some requests, an index of (B,); the lines have this shape (..., K), of any array library."""

    def of(part: Any) -> np.ndarray:
        return np.broadcast_to(arrays.numpy(part), shape).reshape(-1, shape[-1])[some]

    return Slack(of(slack.m), 1.0, of(slack.omega))

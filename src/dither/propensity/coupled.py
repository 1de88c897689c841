"""One z for all arms: choice probabilities from the intervals of z on which a line m + z w is the highest."""

import math

import numpy as np

from dither import arrays, noise
from dither.propensity import upper


def chosen(
    m: np.ndarray,
    w: np.ndarray,
    arm: np.ndarray,
    *,
    law: noise.Law,
    mask: np.ndarray | None = None,
    log: bool = False,
) -> np.ndarray:
    """The probability of `arm` (...) under a continuous z. m, w (..., K), mask (..., K) -> (...)"""
    m_arm, w_arm = arrays.pick(m, arm, rank=0)[..., None], arrays.pick(w, arm, rank=0)[..., None]
    rise, steeper = m_arm - m, w - w_arm  # the arm beats j at z where z * steeper <= rise
    one = arrays.ties((m, w), arm, mask=mask)
    rivals, count = ~one, np.sum(one, axis=-1)
    if mask is not None:
        rivals &= mask
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = rise / steeper
    high = np.min(z, axis=-1, where=rivals & (steeper > 0), initial=np.inf)
    low = np.max(z, axis=-1, where=rivals & (steeper < 0), initial=-np.inf)
    beaten = np.any(rivals & (steeper == 0) & (rise < 0), axis=-1)
    if log:
        p = np.where(beaten, -np.inf, noise.log_mass(law, low, high) - np.log(count))
    else:
        p = np.where(beaten, 0.0, noise.mass(law, low, high) / count)
    chained = ~_closed(m, w, one, mask=mask)
    if np.any(chained):  # some arm is one with part of the group only: the envelope tells them apart
        p = np.where(chained, arrays.pick(envelope(m, w, law=law, mask=mask, log=log), arm, rank=0), p)
    return p


def _closed(m: np.ndarray, w: np.ndarray, one: np.ndarray, *, mask: np.ndarray | None) -> np.ndarray:
    """Whether the arms of the group `one` (..., K) are one with each other and with no other arm. -> (...)"""
    near, alike = np.ones(one.shape, dtype=bool) if mask is None else mask, True
    for key in (m, w):
        slack = arrays.slack(key, mask=mask)
        low = np.min(key, axis=-1, where=one, initial=np.inf, keepdims=True)
        high = np.max(key, axis=-1, where=one, initial=-np.inf, keepdims=True)
        near = near & (key >= low - slack) & (key <= high + slack)
        alike = alike & np.all(~one | (high - low <= slack), axis=-1)
    return alike & (np.sum(near, axis=-1) == np.sum(one, axis=-1))


def decide(m: np.ndarray, w: np.ndarray, z: float, *, law: noise.Law) -> tuple[int, float] | None:
    """The arm that is highest at z and its probability, for one request, in as few passes as will do.

    At z the arm leads j by gap_j, and j gains on it by w_j - w_arm for each unit of z; so the arm's interval ends where
    the quickest chaser on either side has closed its gap. m, w (K,); None where arms tie or nearly do: then the general
    way (`arrays.argmax`, `chosen`) must decide.
    """
    s = m + z * w
    arm = int(s.argmax())
    gain, gap = w - w[arm], s[arm] - s
    if np.count_nonzero(np.abs(gain) <= 2 * arrays.RTOL * math.sqrt(w @ w)) > 1:
        return None
    gap[arm] = 1.0
    if np.count_nonzero(gap) < len(gap):
        return None
    pace = gain / gap
    i, j = int(pace.argmin()), int(pace.argmax())
    # The corners from m itself: s has lost digits of it where z w is small beside m.
    own, slower, faster = m.item(arm), gain.item(i), gain.item(j)
    low = (own - m.item(i)) / slower if slower < 0 else -math.inf
    high = (own - m.item(j)) / faster if faster > 0 else math.inf
    return arm, law.mass(low, high)


def envelope(
    m: np.ndarray, w: np.ndarray, *, law: noise.Law, mask: np.ndarray | None = None, log: bool = False
) -> np.ndarray:
    """The probabilities of all arms under a continuous z. m, w (..., K), mask (..., K) -> (..., K)"""
    shape, K = m.shape, m.shape[-1]
    if not m.size:
        return np.zeros(shape)
    m, w = np.reshape(m, (-1, K)), np.reshape(w, (-1, K))
    mask = None if mask is None else np.reshape(np.broadcast_to(mask, shape), (-1, K))
    lines = upper.ordered(m, w, mask=mask)
    hull = upper.of_ordered(lines, arms=K)
    won = (noise.log_mass if log else noise.mass)(law, hull.low, hull.high)
    p = np.full(m.shape, -np.inf if log else 0.0)
    p[hull.row, hull.arm] = won
    for row in _crowded(lines):
        of = slice(*np.searchsorted(hull.row, [row, row + 1]))
        own = lines.place[slice(*np.searchsorted(lines.row, [row, row + 1]))] - K * row  # in order of slope
        p[row, own] = _shared(m[row, own], w[row, own], _places(own, hull.arm[of]), won[of], log=log)
    return np.reshape(p, shape)


def _crowded(lines: upper.Ordered) -> np.ndarray:
    """The requests in which two slopes are so near that their lines may be one."""
    gap = lines.w[1:] - lines.w[:-1]
    if lines.row[0] == lines.row[-1]:
        near = gap <= 4 * arrays.RTOL * max(abs(lines.w[0]), abs(lines.w[-1]))
    else:
        size = np.zeros(lines.row[-1] + 1)
        np.maximum.at(size, lines.row, np.abs(lines.w))
        near = (gap <= 4 * arrays.RTOL * size[lines.row[1:]]) & (lines.row[1:] == lines.row[:-1])
    return np.unique(lines.row[1:][near]) if near.any() else lines.row[:0]


def _places(own: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Where the arms stand in the order `own`, a permutation of the arms on offer."""
    order = np.argsort(own)
    return order[np.searchsorted(own, arm, sorter=order)]


def _shared(m: np.ndarray, w: np.ndarray, hull: np.ndarray, won: np.ndarray, *, log: bool) -> np.ndarray:
    """Give what each line of the hull won to all lines that are one with it.

    m, w (K,) in order of w; hull (H,) places in them; won (H,) -> p (K,)
    """
    slack = 2 * arrays.slack(w)[hull]  # a little too far: `ties` has the last word
    first = np.searchsorted(w, w[hull] - slack, side="left")
    after = np.searchsorted(w, w[hull] + slack, side="right")
    p = np.full(m.shape, -np.inf if log else 0.0)
    tallest, steepest = np.max(np.abs(m)), np.max(np.abs(w))  # they set the tolerance
    for i, mass, a, b in zip(hull.tolist(), won.tolist(), first.tolist(), after.tolist(), strict=True):
        one = np.array([i])
        if b - a > 1:
            keys = (np.append(m[a:b], tallest), np.append(w[a:b], steepest))
            one = a + np.flatnonzero(arrays.ties(keys, np.intp(i - a))[:-1])
        if log:
            p[one] = np.logaddexp(p[one], mass - math.log(len(one)))
        else:
            p[one] += mass / len(one)
    return p


def points(
    m: np.ndarray, w: np.ndarray, *, law: noise.Points, mask: np.ndarray | None = None, log: bool = False
) -> np.ndarray:
    """The probabilities of all arms when z takes finitely many values. m, w (..., K), mask (..., K) -> (..., K)"""
    p = np.zeros(m.shape)
    for z, weight in zip(law.points, law.weights, strict=True):
        p += weight * arrays.share(m + z * w, mask=mask)
    p = p / np.sum(p, axis=-1, keepdims=True)
    if log:
        with np.errstate(divide="ignore"):
            return np.log(p)
    return p

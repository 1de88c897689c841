"""Choice probabilities of policies that score arms by lines, s_i(z) = m_i + z w_i, with one or K scalars z.

    chosen      the arm that was shown, O(K): it wins for z between the nearest crossings on either side
    decide      choice and probability of one request at once: what a live decision takes
    envelope    all arms, from the upper envelope of the lines, O(K log K)
    points      z of finitely many values: the winners at each value
    uncoupled   a z_i for each arm: P(i) = ∫ f(z) Π_{j≠i} F((m_i - m_j + w_i z)/w_j) dz

The tie rule is that of `arrays.argmax`: lines whose m and w agree to rounding share their mass equally. Here w is the
slope (the width times c_t and σ), not negative. NumPy only: probabilities leave the library here.
"""

import math
import warnings

import numpy as np

from dither import arrays, noise

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def chosen(
    m: np.ndarray, w: np.ndarray, arm: np.ndarray, *, law: noise.Law, mask: np.ndarray | None = None
) -> np.ndarray:
    """The probability of `arm` (...) under a continuous z. m, w (..., K), mask (..., K) -> (...)"""
    m_arm, w_arm = arrays.pick(m, arm, rank=0)[..., None], arrays.pick(w, arm, rank=0)[..., None]
    rise, steeper = m_arm - m, w - w_arm  # the arm beats j at z where z * steeper <= rise
    one = arrays.ties((m, w), arm, mask=mask)
    rivals, count = ~one, np.sum(one, axis=-1)
    if mask is not None:
        rivals &= mask
    with np.errstate(divide="ignore", invalid="ignore"):
        z = rise / steeper
    high = np.min(z, axis=-1, where=rivals & (steeper > 0), initial=np.inf)
    low = np.max(z, axis=-1, where=rivals & (steeper < 0), initial=-np.inf)
    beaten = np.any(rivals & (steeper == 0) & (rise < 0), axis=-1)
    p = np.where(beaten, 0.0, noise.mass(law, low, high) / count)
    chained = ~_closed(m, w, one, mask=mask)
    if np.any(chained):  # some arm is one with part of the group only: the envelope tells them apart
        p = np.where(chained, arrays.pick(envelope(m, w, law=law, mask=mask), arm, rank=0), p)
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
    up, down = float(np.maximum.reduce(pace)), float(np.minimum.reduce(pace))
    return arm, law.mass(z + 1 / down if down < 0 else -math.inf, z + 1 / up if up > 0 else math.inf)


def envelope(m: np.ndarray, w: np.ndarray, *, law: noise.Law, mask: np.ndarray | None = None) -> np.ndarray:
    """The probabilities of all arms under a continuous z. m, w (..., K), mask (..., K) -> (..., K)"""
    return _by_row(lambda m, w: _envelope(m, w, law), m, w, mask)


def _by_row(rule, m: np.ndarray, w: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    p = np.zeros(m.shape)
    for row in np.ndindex(m.shape[:-1]):
        offered = slice(None) if mask is None else np.flatnonzero(mask[row])
        p[row][offered] = rule(m[row][offered], w[row][offered])
    return p


def _envelope(m: np.ndarray, w: np.ndarray, law: noise.Law) -> np.ndarray:
    order = np.lexsort((-m, w))  # by slope; among equal slopes the highest line first
    order = order[np.r_[True, np.diff(w[order]) > 0]]
    hull: list[int] = []
    starts: list[float] = []  # where each line of the hull begins to be the highest
    for i, slope, height in zip(order.tolist(), w[order].tolist(), m[order].tolist(), strict=True):
        start = -np.inf
        while hull:
            start = (m[hull[-1]] - height) / (slope - w[hull[-1]])
            if start > starts[-1]:
                break
            hull.pop(), starts.pop()
            start = -np.inf
        hull.append(i)
        starts.append(float(start))
    won = noise.mass(law, np.array(starts), np.array([*starts[1:], np.inf]))
    return _shared(m, w, np.array(hull), won)


def _shared(m: np.ndarray, w: np.ndarray, hull: np.ndarray, won: np.ndarray) -> np.ndarray:
    """Give what each line of the hull won to all lines that are one with it: hull (H,), won (H,) -> p (K,)."""
    order = np.argsort(w)
    slack = 2 * arrays.slack(w)[hull]  # a little too far: `ties` has the last word
    first = np.searchsorted(w[order], w[hull] - slack, side="left")
    after = np.searchsorted(w[order], w[hull] + slack, side="right")
    p = np.zeros(m.shape)
    for i, mass, a, b in zip(hull, won, first, after, strict=True):
        near = order[a:b]  # all lines that may be one with line i, itself among them
        one = near
        if b - a > 1:
            keys = (np.r_[m[near], np.max(np.abs(m))], np.r_[w[near], np.max(w)])  # the largest set the tolerance
            one = near[arrays.ties(keys, np.flatnonzero(near == i)[0])[:-1]]
        p[one] += mass / len(one)
    return p


def points(m: np.ndarray, w: np.ndarray, *, law: noise.Points, mask: np.ndarray | None = None) -> np.ndarray:
    """The probabilities of all arms when z takes finitely many values. m, w (..., K), mask (..., K) -> (..., K)"""
    p = np.zeros(m.shape)
    for z, weight in zip(law.points, law.weights, strict=True):
        p += weight * arrays.share(m + z * w, mask=mask)
    return p / np.sum(p, axis=-1, keepdims=True)


def uncoupled(m: np.ndarray, w: np.ndarray, *, law: noise.Law, mask: np.ndarray | None = None) -> np.ndarray:
    """The probabilities of all arms when each has a z of its own, by quadrature to 1e-9. (..., K) -> (..., K)"""
    return _by_row(lambda m, w: _uncoupled(m, w, law), m, w, mask)


def _uncoupled(m: np.ndarray, w: np.ndarray, law: noise.Law) -> np.ndarray:
    m = m - np.max(m)  # the probabilities are those of differences; a common height would cost their digits
    fixed = w <= arrays.ROUNDING * np.max(np.abs(m))  # arms that do not move: the best of them matters, no other
    if np.all(fixed):
        return arrays.share(m)
    p = np.zeros(m.shape)
    floor = np.max(m[fixed]) if np.any(fixed) else -np.inf
    moving, M, W = np.flatnonzero(~fixed), m[~fixed], w[~fixed]
    if np.any(fixed):
        best = fixed & (m >= floor - arrays.RTOL * abs(floor))
        p[best] = np.prod(law.cdf((floor - M) / W)) / np.sum(best)
    # By the winning score s: arm i wins at s with density f((s - m_i)/w_i)/w_i Π_{j≠i} F((s - m_j)/w_j). Panels end
    # where some arm's z passes one of the law's panel ends, so that inside a panel the integrand is smooth.
    low, high = max(floor, np.max(M + W * law.panels[0])), np.max(M + W * law.panels[-1])
    if high > low:
        able = M + W * law.panels[-1] > low
        moving, M, W = moving[able], M[able], W[able]
        ends = (M[:, None] + W[:, None] * np.array(law.panels)).ravel()
        ends = np.unique(np.clip(ends, low, high))
        half, middle = np.diff(ends)[:, None] / 2, (ends[1:, None] + ends[:-1, None]) / 2
        s, weight = (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()
        size = max(1, 2**20 // len(M))  # nodes at once: 8 MB an array
        p[moving] = sum(weight[k : k + size] @ _winning(s[k : k + size], M, W, law) for k in range(0, len(s), size))
    total = np.sum(p)
    if abs(total - 1) > 1e-8:
        warnings.warn(
            f"uncoupled probabilities are good to {abs(total - 1):.0e} only: the widths span too many powers of 10",
            RuntimeWarning,
            stacklevel=2,
        )
    return p / total


def _winning(s: np.ndarray, M: np.ndarray, W: np.ndarray, law: noise.Law) -> np.ndarray:
    """The density with which each arm wins at the scores s: s (N,), M, W (K,) -> (N, K)."""
    z = (s[:, None] - M) / W
    F = law.cdf(z)
    below = np.cumprod(np.c_[np.ones(len(s)), F[:, :-1]], axis=1)
    above = np.cumprod(np.c_[np.ones(len(s)), F[:, :0:-1]], axis=1)[:, ::-1]
    return law.pdf(z) / W * below * above

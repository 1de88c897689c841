"""Nodes and weights for an integral over the winning score, where the law of each arm's z ends at a radius R.

The law's cdf is that of a ball: near ±R it goes like (R - |z|)^a with a = 1, 3/2, 2, ... So the integrand is smooth but
at the scores m_i ± R w_i. Panels end there, and

    s = low + h x²(3 - 2x)     0 <= x <= 1

in each panel turns a power of the distance to either end into a power of its root, which is smooth for a half-integer
too. Towards an end behind which another such score lies near, panels halve. Below the score under which the highest of
all arms hardly ever lies there are none. So there are a few panels for each arm, and not fifty.
"""

from typing import Any

import numpy as np

_X, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_X, _WEIGHTS = (_X + 1) / 2, _WEIGHTS / 2
_SHARE, _SLOPE = _X * _X * (3 - 2 * _X), 6 * _X * (1 - _X)
LEAST = -46.0  # log P(the highest score is lower) below which nothing counts: 1e-20
ONE = 1e-10  # of a width: scores m ± R w that are nearer to each other count as one
LONGEST = 0.625  # of a width: the panels of a normal law


def nodes(M: np.ndarray, W: np.ndarray, law: Any, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of the integral from low to high: M, W (K,) -> (N,) each."""
    low = beneath(M, W, law, low, high)
    last = M + W * law.reach
    least = float(np.min(W[last > low]))
    kinks = np.unique(np.concatenate([M - W * law.reach, last]))
    kinks = kinks[np.r_[True, np.diff(kinks) > ONE * least]]
    inside = kinks[(kinks > low) & (kinks < high)]
    at = np.concatenate([[low], inside, [high]])
    before, behind = kinks[kinks < low], kinks[kinks > high]
    gaps = np.diff(
        np.concatenate([before[-1:] if len(before) else [-np.inf], at, behind[:1] if len(behind) else [np.inf]])
    )
    # The width of the narrowest arm that still moves in each panel.
    order = np.argsort(last)
    narrow = np.minimum.accumulate(W[order][::-1])[::-1]
    narrow = narrow[np.minimum(np.searchsorted(last[order], at[:-1], side="right"), len(M) - 1)]
    ends: list[Any] = [at[:1]]
    for a, b, left, right, wide in zip(at[:-1], at[1:], gaps[:-2], gaps[2:], narrow, strict=True):
        ends += [_cut(a, b, max(left, ONE * least), max(right, ONE * least), LONGEST * wide), [b]]
    points = np.concatenate(ends)
    h = np.diff(points)[:, None]
    return (points[:-1, None] + h * _SHARE).ravel(), (h * _SLOPE * _WEIGHTS).ravel()


def beneath(M: np.ndarray, W: np.ndarray, law: Any, low: float, high: float) -> float:
    """A score from `low` on beneath which the highest of all arms lies with a chance of at most 1e-20."""
    top = high
    for _ in range(30):
        middle = (low + top) / 2
        with np.errstate(divide="ignore"):
            if np.sum(np.log(law.cdf((middle - M) / W))) < LEAST:
                low = middle
            else:
                top = middle
    return low


def _cut(a: float, b: float, left: float, right: float, longest: float) -> np.ndarray:
    """Where to cut a panel from a to b; left, right: how far behind its ends the next kinks are."""
    h, points = b - a, []
    while left < h / 2:
        points.append(a + left)
        left *= 2
    while right < h / 2:
        points.append(b - right)
        right *= 2
    whole = np.array([a, *sorted(points), b])
    parts = np.ceil(np.diff(whole) / longest).astype(int)
    if np.all(parts == 1):
        return whole[1:-1]
    fine = [x + (y - x) * np.arange(n) / n for x, y, n in zip(whole[:-1], whole[1:], parts, strict=True)]
    return np.concatenate(fine)[1:]

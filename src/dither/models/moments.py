"""The spread of each feature in the rows that were learnt, as a running sum (Welford 1962).

With it one setting of a jitter fits columns of different units.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array


class Moments(NamedTuple):
    """The moments of the rows that were learnt; the shape (...) is that of the replications."""

    mean: Array  # (..., d)
    square: Array  # (..., d)  Σ (x - mean)²
    count: Array  # (...)  rows, each as often as its weight says


def init(batch: tuple[int, ...], d: int, *, xp: Any = arrays.NUMPY, device: Any = None) -> Moments:
    """The moments of no rows."""
    zeros = functools.partial(xp.zeros, dtype=xp.float64, device=device)
    return Moments(zeros((*batch, d)), zeros((*batch, d)), zeros(batch))


def update(state: Moments, x: Array, weight: Array | None = None) -> Moments:
    """The moments with one more row: x (..., d), weight (...). The sum of all weights must be above 0."""
    mean, square, count = state
    xp = arrays.namespace(mean)
    weight = arrays.beside(1.0 if weight is None else weight, mean)
    weight = xp.broadcast_to(xp.astype(weight, xp.float64), count.shape)
    n = count + weight
    off, share = x - mean, weight[..., None]
    middle = mean + off * share / xp.where(n > 0, n, 1.0)[..., None]
    return Moments(middle, square + share * off * (x - middle), n)


def update_many(state: Moments, X: np.ndarray, weight: np.ndarray) -> Moments:
    """The moments with n more rows: X (..., n, d), weight (..., n)."""
    for k in range(weight.shape[-1]):
        state = update(state, X[..., k, :], weight[..., k])
    return Moments(*map(np.array, state))  # arrays for one bandit too, which may be written into


def spread(state: Moments) -> Array:
    """The sd of each feature, (..., d): 1 before the second row, 0 for a column that has not varied."""
    n, xp = state.count[..., None], arrays.namespace(state.mean)
    return xp.where(n > 1, xp.sqrt(state.square / xp.where(n > 1, n, 1.0)), 1.0)

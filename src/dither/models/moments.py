"""The spread of each feature in the rows that were learnt, as a running sum (Welford 1962).

With it one setting of a jitter fits columns of different units.
"""

from typing import NamedTuple

import numpy as np

from dither.base.arrays import Array


class Moments(NamedTuple):
    """The moments of the rows that were learnt; the shape (...) is that of the replications."""

    mean: Array  # (..., d)
    square: Array  # (..., d)  Σ (x - mean)²
    count: Array  # (...)  rows, each as often as its weight says


def init(batch: tuple[int, ...], d: int) -> Moments:
    """The moments of no rows."""
    return Moments(np.zeros((*batch, d)), np.zeros((*batch, d)), np.zeros(batch))


def update(state: Moments, x: np.ndarray, weight: Array | None = None) -> Moments:
    """The moments with one more row: x (..., d), weight (...). The sum of all weights must be above 0."""
    weight = np.broadcast_to(1.0 if weight is None else np.asarray(weight, np.float64), state.count.shape)
    n = state.count + weight
    off, share = x - state.mean, weight[..., None]
    mean = state.mean + off * share / np.maximum(n, np.finfo(np.float64).tiny)[..., None]
    return Moments(mean, state.square + share * off * (x - mean), n)


def update_many(state: Moments, X: np.ndarray, weight: np.ndarray) -> Moments:
    """The moments with n more rows: X (..., n, d), weight (..., n)."""
    for k in range(weight.shape[-1]):
        state = update(state, X[..., k, :], weight[..., k])
    return Moments(*map(np.array, state))  # arrays for one bandit too, which may be written into


def spread(state: Moments) -> np.ndarray:
    """The sd of each feature, (..., d): 1 before the second row, 0 for a column that has not varied."""
    n = state.count[..., None]
    return np.where(n > 1, np.sqrt(state.square / np.where(n > 1, n, 1.0)), 1.0)

"""The spread of each feature in what was learnt, so that one jitter fits columns of different units (Welford)."""

from typing import NamedTuple

import numpy as np

from dither.arrays import Array


class Moments(NamedTuple):
    """Of the rows learnt; shapes (...) are replications."""

    mean: Array  # (..., d)
    square: Array  # (..., d)  Σ (x - mean)²
    count: Array  # (...)  int64


def init(batch: tuple[int, ...], d: int) -> Moments:
    """Of no rows."""
    return Moments(np.zeros((*batch, d)), np.zeros((*batch, d)), np.zeros(batch, np.int64))


def update(state: Moments, x: np.ndarray) -> Moments:
    """One more row: x (..., d)."""
    n = state.count + 1
    off = x - state.mean
    mean = state.mean + off / n[..., None]
    return Moments(mean, state.square + off * (x - mean), n)


def spread(state: Moments) -> np.ndarray:
    """The sd of each feature (..., d); 1 before the second row, and 0 for a column that has not varied."""
    n = state.count[..., None]
    return np.where(n > 1, np.sqrt(state.square / np.maximum(n, 1)), 1.0)

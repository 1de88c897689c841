"""The probability that z lies in an interval, and its logarithm, to the last digits.

It is the difference of two tails, of those on the side where the interval lies. For a short interval that difference
would lose its digits. So the density is integrated there, by the rule of Gauss and Legendre with three nodes. An
interval is short if the density hardly changes in it (`Law.smooth`).
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
_SHORT = 0.02  # share of `smooth` up to which an interval is short: the error of the rule is below 1e-16 of the mass
_NODES, _WEIGHTS = (part.tolist() for part in np.polynomial.legendre.leggauss(3))


class Law(Protocol):
    """A continuous law of the scalar z."""

    @property
    def symmetric(self) -> bool:
        """Whether -z has the law of z."""

    @property
    def panels(self) -> tuple[float, ...]:
        """Where to cut an integral over z, in ascending order; outside, z has a probability below 1e-17."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws of z."""

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """P(z' <= z), accurate in the lower tail."""

    def sf(self, z: np.ndarray) -> np.ndarray:
        """P(z' > z), accurate in the upper tail."""

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' <= z), also where that underflows."""

    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' > z), also where that underflows."""

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""

    def log_pdf(self, z: np.ndarray) -> np.ndarray:
        """Its logarithm."""

    def smooth(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """A length of at most 1 over which the density changes by less than a factor e in [low, high]; 0: not known."""

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers, as `mass` gives it for arrays."""


def mass(law: Law, low: Any, high: Any) -> np.ndarray:
    """P(low < z <= high); 0 where low >= high."""
    low, high = _arrays(low, high)
    small, large = _tails(law, "cdf", "sf", low, high)
    p = np.asarray(np.maximum(large - small, 0.0))
    short = _short(law, low, high)
    if short.any():
        a, b = low[short], high[short]
        p[short] = (b - a) * _mean(law.pdf, a, b)
    return p


def log_mass(law: Law, low: Any, high: Any) -> np.ndarray:
    """log P(low < z <= high), also where that underflows; -inf where low >= high."""
    low, high = _arrays(low, high)
    small, large = _tails(law, "log_cdf", "log_sf", low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where((low < high) & (large > small), large + np.log1p(-np.exp(np.minimum(small - large, 0))), -np.inf)
    short = _short(law, low, high)
    if short.any():
        a, b = low[short], high[short]
        top = law.log_pdf(0.5 * (a + b))
        p[short] = np.log(b - a) + top + np.log(_mean(lambda z: np.exp(law.log_pdf(z) - top), a, b))
    return p


def _arrays(low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both ends as float64 arrays of one shape."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if low.shape != high.shape:
        shape = np.broadcast_shapes(low.shape, high.shape)
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    return low, high


def _tails(law: Law, lower: str, upper: str, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P beyond the far end and P beyond the near end of each interval, in the tail on whose side the interval lies."""
    below, above = getattr(law, lower), getattr(law, upper)
    if law.symmetric:
        right = low > 0  # P(low < z <= high) = P(-high <= z < -low)
        return below(np.where(right, -high, low)), below(np.where(right, -low, high))
    right = law.sf(low) < 0.5
    return np.where(right, above(high), below(low)), np.where(right, above(low), below(high))


def _short(law: Law, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which intervals are short and not empty."""
    with np.errstate(invalid="ignore"):
        h = high - low
    short = (h > 0) & (h < _SHORT)
    return short & (h < _SHORT * law.smooth(low, high)) if short.any() else short


def _mean(f: Function, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The mean of f over each interval, by the rule of Gauss and Legendre with three nodes."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    total = np.zeros(low.shape)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += 0.5 * weight * f(middle + node * half)
    return total

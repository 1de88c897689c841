"""Laws of the perturbation ζ and of its projection z = u'ζ on a unit vector (paper, Appendix B).

    Gaussian   ζ ~ N(0, I_d)           z ~ N(0, 1)
    Ball       ζ ~ U(B_d(0, √d))       z/√d = 2B - 1, B ~ Beta((d+1)/2, (d+1)/2); variance d/(d+2)
    Points     no ζ                    z takes finitely many values (RandUCB)

A projected law (`Gaussian`, `BallMarginal`) has draw, cdf, pdf and mass; all their laws are symmetric about 0.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special

from dither import errors

_ROOT_HALF = math.sqrt(0.5)


class Law(Protocol):
    """A continuous, symmetric law of the scalar z."""

    @property
    def reach(self) -> float:
        """The largest |z|."""

    @property
    def panels(self) -> tuple[float, ...]:
        """Where to cut an integral over z, in ascending order; what lies outside is below 1e-17."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws of z."""

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """P(z' <= z), accurate in the lower tail; for the upper tail take cdf(-z)."""

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers, as `mass` gives it for arrays."""


@dataclass(frozen=True)
class Gaussian:
    """ζ ~ N(0, I_d) (paper, Appendix B, Example 1)."""

    c = 2.0  # concentration: P(|u'ζ| <= √(c log(c_prime/δ))) >= 1 - δ, equation (concentration)
    c_prime = 2.0
    p = 1 / (4 * math.sqrt(math.e * math.pi))  # anti-concentration: P(u'ζ >= 1) >= p
    reach = math.inf
    panels = (-8.5, *(0.625 * k for k in range(-11, 12)), 8.5)

    def marginal(self, dim: int) -> "Gaussian":
        """The law of u'ζ: the same in every dimension."""
        return self

    def vectors(self, rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
        """n draws of ζ, (n, dim)."""
        return rng.standard_normal((n, dim))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws of z."""
        return rng.standard_normal(shape)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """P(z' <= z)."""
        return special.ndtr(z)

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers."""
        if low > 0:
            low, high = -high, -low
        return max(0.5 * (math.erfc(-high * _ROOT_HALF) - math.erfc(-low * _ROOT_HALF)), 0.0)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""
        return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Ball:
    """ζ uniform in the ball of radius √d (paper, Appendix B, Example 2). The theory needs d >= 2."""

    c = 2.0
    c_prime = 2.0
    p = 1 / (16 * math.sqrt(3 * math.pi))

    def marginal(self, dim: int) -> "BallMarginal":
        """The law of u'ζ in dimension `dim` (for K disjoint slots of d features: K d)."""
        return BallMarginal(dim)

    def vectors(self, rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
        """n draws of ζ, (n, dim): the first `dim` coordinates of a point on the sphere in dim + 2 dimensions."""
        g = rng.standard_normal((n, dim + 2))
        return math.sqrt(dim) * g[:, :dim] / np.linalg.norm(g, axis=1, keepdims=True)


@dataclass(frozen=True)
class BallMarginal:
    """z = u'ζ for ζ uniform in the ball of radius √dim: density ∝ (1 - z²/dim)^((dim-1)/2) on |z| <= √dim."""

    dim: int

    @property
    def reach(self) -> float:
        """The largest |z|: the radius."""
        return math.sqrt(self.dim)

    @property
    def panels(self) -> tuple[float, ...]:
        """A Gaussian's, and in few dimensions halving towards the ends, where the density has a root."""
        inside = {z for z in Gaussian.panels if abs(z) < self.reach}
        if self.dim <= 200:
            inside |= {sign * self.reach * (1 - 2.0**-k) for k in range(24) for sign in (-1, 1)}
            inside |= {-self.reach, self.reach}
        return tuple(sorted(inside))

    @property
    def _a(self) -> float:
        return (self.dim + 1) / 2

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws of z."""
        return self.reach * (2 * rng.beta(self._a, self._a, shape) - 1)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """P(z' <= z)."""
        return special.betainc(self._a, self._a, np.clip((1 + z / self.reach) / 2, 0.0, 1.0))

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers."""
        return float(mass(self, low, high))

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""
        y = np.abs(np.asarray(z) / self.reach)
        inside = special.xlog1py(self._a - 1, -np.square(np.minimum(y, 1.0)))
        scale = special.betaln(self._a, self._a) + self.dim * math.log(2) + math.log(self.reach)
        return np.where(y <= 1, np.exp(inside - scale), 0.0)


def mass(law: Law, low: Any, high: Any) -> np.ndarray:
    """P(low < z <= high), from the tail that both ends lie in; 0 where low >= high."""
    right = np.asarray(low) > 0  # symmetric laws: P(low < z <= high) = P(-high <= z < -low)
    a, b = np.where(right, np.negative(high), low), np.where(right, np.negative(low), high)
    return np.maximum(law.cdf(b) - law.cdf(a), 0.0)


@dataclass(frozen=True)
class Points:
    """A z that takes finitely many values.

    points (J,) values; weights (J,) their probabilities, which sum to 1.
    """

    points: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.points) != len(self.weights) or not self.points:
            raise ValueError(f"points and weights must pair up: got {len(self.points)} and {len(self.weights)}")
        if not (min(self.weights) >= 0 and abs(math.fsum(self.weights) - 1) <= 1e-9):
            raise ValueError(f"weights must be probabilities that sum to 1, got a sum of {math.fsum(self.weights)}")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws, by inversion."""
        edges = np.cumsum(self.weights)
        return np.asarray(self.points)[np.searchsorted(edges / edges[-1], rng.random(shape), side="right")]


def half_gaussian(m: int = 20, *, sd: float = 0.125, last: float = 1e-6) -> Points:
    """RandUCB's law (Vaswani et al. 2020): m points j/(m-1) on [0, 1], weights ∝ the normal density of that sd.

    The last weight is set to `last` before all are normalised, so P(1) is 9.0e-8 by default.
    """
    errors.at_least("points", m, 2)
    errors.positive("sd", sd)
    errors.within("last", last, 0, 1)
    a = np.arange(m) / (m - 1)
    q = np.exp(-0.5 * (a / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    q[-1] = last
    return Points(tuple(a.tolist()), tuple((q / q.sum()).tolist()))

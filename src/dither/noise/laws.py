"""The laws of the paper (Appendix B), and the law of RandUCB."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dither.base import arrays, errors
from dither.noise import slices

_ROOT_HALF = math.sqrt(0.5)
_ROOT_2PI = math.sqrt(2 * math.pi)


class Symmetric:
    """A law of z that is also the law of -z: the upper tail is the lower one."""

    symmetric = True
    cdf: Any  # the lower tail, and its logarithm
    log_cdf: Any

    def sf(self, z: np.ndarray) -> np.ndarray:
        """P(z' > z)."""
        return self.cdf(np.negative(z))

    def log_sf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' > z)."""
        return self.log_cdf(np.negative(z))


@dataclass(frozen=True)
class Gaussian(Symmetric):
    """ζ ~ N(0, I_d) (paper, Appendix B, Example 1)."""

    c = 2.0  # concentration: P(|u'ζ| <= √(c log(c_prime/δ))) >= 1 - δ, equation (concentration)
    c_prime = 2.0
    p = 1 / (4 * math.sqrt(math.e * math.pi))  # anti-concentration: P(u'ζ >= 1) >= p
    reach = math.inf  # the largest |z|
    analytic = True  # its cdf: panels of some length are enough for a quadrature, wherever they end
    step = 0.625  # the length of a panel
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

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' <= z)."""
        return special.log_ndtr(z)

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers."""
        if not low < high:
            return 0.0
        if low > 0:
            low, high = -high, -low
        if high - low < 1e-3 / (1 - low):  # the density times the length, and the term of its curvature
            z, h = 0.5 * (low + high), high - low
            return h * math.exp(-0.5 * z * z) * (1 + (z * z - 1) * h * h / 24) / _ROOT_2PI
        return 0.5 * (math.erfc(-high * _ROOT_HALF) - math.erfc(-low * _ROOT_HALF))

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""
        return np.exp(-0.5 * z * z) / _ROOT_2PI

    def log_pdf(self, z: np.ndarray) -> np.ndarray:
        """The logarithm of the density."""
        return -0.5 * z * z - math.log(_ROOT_2PI)

    def smooth(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """1/(1 + |z|)."""
        return 1 / (1 + np.maximum(np.abs(low), np.abs(high)))


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
        length = arrays.namespace(g).linalg.vector_norm(g, axis=-1, keepdims=True)
        return math.sqrt(dim) * g[..., :dim] / length


@dataclass(frozen=True)
class BallMarginal(Symmetric):
    """z = u'ζ for ζ uniform in the ball of radius √dim: density ∝ (1 - z²/dim)^((dim-1)/2) on |z| <= √dim."""

    dim: int

    @property
    def reach(self) -> float:
        """The largest |z|: the radius."""
        return math.sqrt(self.dim)

    @property
    def analytic(self) -> bool:
        """As of `Gaussian`: from 6 dimensions on, the cdf ends like a power of 3.5 or more, and short panels do."""
        return self.dim >= 6

    @property
    def step(self) -> float:
        """The length of such a panel: measured, so that an integral is good to 1e-10."""
        return Gaussian.step * min(1.0, (self.dim / 16) ** 2.5)

    @property
    def panels(self) -> tuple[float, ...]:
        """The panels of a Gaussian; in few dimensions they also halve towards the radius, where the density is 0."""
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
        return special.betainc(self._a, self._a, self._share(z))

    def log_cdf(self, z: np.ndarray) -> np.ndarray:
        """log P(z' <= z). Where P underflows: log of x^a (1-x)^a/(a B(a, a)) Σ_n Π_{i<=n} x (2a+i-1)/(a+i)."""
        x = np.asarray(self._share(z))
        p = special.betainc(self._a, self._a, x)
        answer = np.asarray(arrays.ln(p))
        far = (p < 1e-290) & (x > 0)
        if np.any(far):
            answer[far] = _log_betainc(self._a, x[far])
        return answer

    def mass(self, low: float, high: float) -> float:
        """P(low < z <= high) for two numbers."""
        return float(slices.mass(self, low, high))

    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density."""
        return np.exp(self.log_pdf(z))

    def log_pdf(self, z: np.ndarray) -> np.ndarray:
        """The logarithm of the density."""
        y = np.abs(np.asarray(z) / self.reach)
        inside = special.xlog1py(self._a - 1, -np.square(np.minimum(y, 1.0)))
        scale = special.betaln(self._a, self._a) + self.dim * math.log(2) + math.log(self.reach)
        return np.where(y <= 1, inside - scale, -np.inf)

    def smooth(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """(R - |z|)/a, where R is the radius."""
        return np.maximum(self.reach - np.maximum(np.abs(low), np.abs(high)), 0.0) / self._a

    def _share(self, z: np.ndarray) -> np.ndarray:
        """Where z lies between the two ends, from 0 to 1."""
        return np.clip((1 + z / self.reach) / 2, 0.0, 1.0)


def _log_betainc(a: float, x: np.ndarray) -> np.ndarray:
    """log I_x(a, a) for x < 1/2, by DLMF 8.17.22 as a power series, all of whose terms are positive."""
    term, total, n = np.ones(x.shape), np.ones(x.shape), 1
    while np.any(term > 1e-17 * total):
        term = term * x * (2 * a + n - 1) / (a + n)
        total += term
        n += 1
    return a * np.log(x) + a * np.log1p(-x) - math.log(a) - special.betaln(a, a) + np.log(total)


@dataclass(frozen=True)
class Points:
    """A z that takes finitely many values.

    points : (J,) the values
    weights : (J,) their probabilities, which sum to 1
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
        u = rng.random(shape)
        if type(u) is np.ndarray:
            return self.column[:, 0][np.searchsorted(self._edges, u, side="right")]
        xp = arrays.namespace(u)
        rows = xp.searchsorted(arrays.beside(self._edges, u), xp.reshape(u, (-1,)), side="right")
        return xp.reshape(xp.take(arrays.beside(self.column[:, 0], u), rows), u.shape)

    @functools.cached_property
    def column(self) -> np.ndarray:
        """The values, (J, 1)."""
        return np.array(self.points, dtype=float)[:, None]

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """Their probabilities, (J,)."""
        return np.array(self.weights) / math.fsum(self.weights)

    @functools.cached_property
    def reach(self) -> float:
        """The largest |z|."""
        return float(np.max(np.abs(self.column)))

    @functools.cached_property
    def _edges(self) -> np.ndarray:
        edges = np.cumsum(self.weights)
        return edges / edges[-1]


def half_gaussian(m: int = 20, *, sd: float = 0.125, last: float = 1e-6) -> Points:
    """The law of RandUCB (Vaswani et al. 2020): m points j/(m-1) on [0, 1], weights ∝ the normal density with this sd.

    The last weight is set to `last` before all weights are normalised, so that P(1) is 9.0e-8 by default.
    """
    errors.at_least("points", m, 2)
    errors.positive("sd", sd)
    errors.within("last", last, 0, 1)
    a = np.arange(m) / (m - 1)
    q = np.exp(-0.5 * (a / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    q[-1] = last
    return Points(tuple(a.tolist()), tuple((q / q.sum()).tolist()))

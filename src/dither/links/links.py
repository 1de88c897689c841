"""Links of generalised linear models: how the expected reward depends on η = x'θ (paper, Section 3, Assumption 2).

    E r = μ(η),  loss g(η) - r η,  g' = μ,  Ĥ = λI + Σ μ'(x'θ̂) x x'

    identity   μ = η                 g = η²/2           r real         L_μ = 1           M_μ = 0
    logit      μ = 1/(1 + e^{-η})    g = log(1 + e^η)   r in [0, 1]    L_μ = 1/4         M_μ = tanh(B/2) <= 1
    log        μ = e^η               g = e^η            r >= 0         L_μ = e^B         M_μ = 1
    probit     μ = Φ(η)              g = ηΦ(η) + φ(η)   r in [0, 1]    L_μ = 1/√(2π)     M_μ = B

L_μ = sup μ' and M_μ = sup |μ''|/μ' are over the domain |η| <= B.

Probit is not the canonical link of the Bernoulli law. Its g is the one with g' = Φ, so that its loss is a
quasi-likelihood: it is convex and has the same mean, but it is not the log-likelihood.

`concordance` is M_μ as the paper tabulates it: the M that holds for all η, where there is one. `rounded` is the
rounding error of μ, counted in roundings of η. Everything is finite for |η| <= 700; beyond that the log link
gives e^{±700}.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import special

from dither.base import arrays, errors
from dither.base.arrays import Array

Name = Literal["identity", "logit", "log", "probit"]
LARGEST_LOGIT = 700.0  # |η| beyond which e^η overflows
_ROOT_TAU = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Identity:
    """μ(η) = η: linear models."""

    name: ClassVar[Name] = "identity"
    rounded = 1
    support = (-math.inf, math.inf)

    def mu(self, eta: Array) -> Array:
        """μ."""
        return eta

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """μ and μ' at once."""
        return eta, arrays.namespace(eta).ones_like(eta)

    def residual(self, eta: Array, count: Array, total: Array) -> tuple[Array, Array]:
        """count μ - total, and μ'."""
        mu, slope = self.slopes(eta)
        return count * mu - total, slope

    def curvature(self, eta: Array) -> Array:
        """μ''."""
        return arrays.namespace(eta).zeros_like(eta)

    def g(self, eta: Array) -> Array:
        """g, whose derivative is μ."""
        return eta * eta / 2

    def L(self, B: Any) -> Any:
        """L_μ on |η| <= B."""
        return _like(B, 1.0)

    def M(self, B: Any) -> Any:
        """M_μ on |η| <= B."""
        return _like(B, 0.0)

    def concordance(self, S: float) -> float:
        """M_μ of the paper, for |η| <= S."""
        return 0.0

    def kappa(self, B: float) -> float:
        """The smallest μ' on |η| <= B."""
        return 1.0


@dataclass(frozen=True)
class Logit:
    """μ(η) = 1/(1 + e^{-η}): rewards in [0, 1]; the canonical link of the Bernoulli law."""

    name: ClassVar[Name] = "logit"
    rounded = 1
    support = (0.0, 1.0)

    def mu(self, eta: Array) -> Array:
        """μ."""
        return self.slopes(eta)[0]

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """μ and μ' at once."""
        low, high = self._tails(eta)
        return arrays.namespace(eta).where(eta >= 0, high, low), low * high

    def residual(self, eta: Array, count: Array, total: Array) -> tuple[Array, Array]:
        """count μ - total, and μ'. Where μ is near 1, it comes from count - total and 1 - μ, to the last digit."""
        low, high = self._tails(eta)
        tail = count * low
        return arrays.namespace(eta).where(eta >= 0, (count - total) - tail, tail - total), low * high

    def _tails(self, eta: Array) -> tuple[Array, Array]:
        """The smaller and the larger of μ and 1 - μ."""
        xp = arrays.namespace(eta)
        e = xp.exp(-xp.abs(eta))
        high = 1 / (1 + e)
        return e * high, high

    def log_mu(self, eta: Array) -> Array:
        """log μ = min(η, 0) - log(1 + e^{-|η|})."""
        return np.minimum(eta, 0.0) - np.log1p(np.exp(-np.abs(eta)))

    def log_ratio(self, eta: Array, other: Array, gap: Array) -> Array:
        """log μ(η)/μ(η'), where gap = η - η' is known better than the rounded η and η' tell; NumPy.

        Near each other: log(1 + e^{-η}/(1 + e^{-η}) (e^{gap} - 1)) for the lower η, which loses no digits.
        """
        low = np.minimum(eta, other)
        near = np.copysign(np.log1p(np.expm1(-np.abs(gap)) / (1 + np.exp(low))), gap)
        below = np.where((eta < 0) & (other < 0), gap, np.minimum(eta, 0.0) - np.minimum(other, 0.0))
        far = below - np.log1p(np.exp(-np.abs(eta))) + np.log1p(np.exp(-np.abs(other)))
        return np.where(np.abs(gap) < 1, near, far)

    def curvature(self, eta: Array) -> Array:
        """μ'' = -μ' tanh(η/2)."""
        return -self.slopes(eta)[1] * arrays.namespace(eta).tanh(eta / 2)

    def g(self, eta: Array) -> Array:
        """log(1 + e^η)."""
        xp = arrays.namespace(eta)
        return xp.clip(eta, min=0.0) + xp.log1p(xp.exp(-xp.abs(eta)))

    def L(self, B: Any) -> Any:
        """L_μ on |η| <= B."""
        return _like(B, 0.25)

    def M(self, B: Any) -> Any:
        """M_μ on |η| <= B: tanh(B/2)."""
        return arrays.namespace(B).tanh(B / 2) if hasattr(B, "ndim") else math.tanh(B / 2)

    def concordance(self, S: float) -> float:
        """M_μ of the paper, for |η| <= S."""
        return 1.0

    def kappa(self, B: float) -> float:
        """The smallest μ' on |η| <= B."""
        e = math.exp(-abs(B))
        return e / (1 + e) ** 2


@dataclass(frozen=True)
class Log:
    """μ(η) = e^η: counts and other rewards that are not negative; the canonical link of the Poisson law."""

    name: ClassVar[Name] = "log"
    rounded = 1
    support = (0.0, math.inf)

    def mu(self, eta: Array) -> Array:
        """μ."""
        xp = arrays.namespace(eta)
        return xp.exp(xp.where(eta > LARGEST_LOGIT, LARGEST_LOGIT, xp.where(eta < -LARGEST_LOGIT, -LARGEST_LOGIT, eta)))

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """μ and μ' at once."""
        mu = self.mu(eta)
        return mu, mu

    def residual(self, eta: Array, count: Array, total: Array) -> tuple[Array, Array]:
        """count μ - total, and μ'. μ is at most e^300 here, so that sums of its products do not overflow."""
        mu = self.mu(arrays.namespace(eta).where(eta > 300.0, 300.0, eta))
        return count * mu - total, mu

    def curvature(self, eta: Array) -> Array:
        """μ'' = μ."""
        return self.mu(eta)

    def g(self, eta: Array) -> Array:
        """e^η."""
        return self.mu(eta)

    def L(self, B: Any) -> Any:
        """L_μ on |η| <= B: e^B."""
        return self.mu(B) if hasattr(B, "ndim") else math.exp(min(B, LARGEST_LOGIT))

    def M(self, B: Any) -> Any:
        """M_μ: 1."""
        return _like(B, 1.0)

    def concordance(self, S: float) -> float:
        """M_μ of the paper, for |η| <= S."""
        return 1.0

    def kappa(self, B: float) -> float:
        """The smallest μ' on |η| <= B."""
        return math.exp(-abs(B))


@dataclass(frozen=True)
class Probit:
    """μ(η) = Φ(η): rewards in [0, 1], fitted by the quasi-likelihood that the docstring of this module states."""

    name: ClassVar[Name] = "probit"
    rounded = 8
    support = (0.0, 1.0)

    def mu(self, eta: Array) -> Array:
        """μ = Φ(η) = erfc(-η/√2)/2, which keeps its digits in the lower tail."""
        return arrays.special("erfc", -eta / math.sqrt(2)) / 2

    def slopes(self, eta: Array) -> tuple[Array, Array]:
        """μ and μ' at once."""
        return self.mu(eta), _phi(eta)

    def residual(self, eta: Array, count: Array, total: Array) -> tuple[Array, Array]:
        """count μ - total, and μ'. Where μ is near 1, it comes from count - total and 1 - μ, to the last digit."""
        xp = arrays.namespace(eta)
        tail = count * self.mu(-xp.abs(eta))
        return xp.where(eta >= 0, (count - total) - tail, tail - total), _phi(eta)

    def log_mu(self, eta: Array) -> Array:
        """log Φ(η)."""
        return special.log_ndtr(eta)

    def log_ratio(self, eta: Array, other: Array, gap: Array) -> Array:
        """log Φ(η)/Φ(η'), where gap = η - η' is known better than the rounded η and η' tell; NumPy.

        Near each other: gap times the mean of φ/Φ between them, by the rule of Gauss and Legendre with three nodes.
        """
        middle, mean = (eta + other) / 2, 0.0
        for node, weight in zip(*np.polynomial.legendre.leggauss(3), strict=True):
            mean = mean + weight / 2 * math.sqrt(2 / math.pi) / special.erfcx(-(middle + node * gap / 2) / math.sqrt(2))
        near = np.abs(gap) * (1 + np.abs(middle)) < 0.1
        return np.where(near, gap * mean, self.log_mu(eta) - self.log_mu(other))

    def curvature(self, eta: Array) -> Array:
        """μ'' = -η φ(η)."""
        return -eta * _phi(eta)

    def g(self, eta: Array) -> Array:
        """ηΦ(η) + φ(η) = max(η, 0) + φ(η) (1 - |η| Φ(-|η|)/φ(η)), where erfcx keeps the digits of the bracket."""
        xp = arrays.namespace(eta)
        size = xp.abs(eta)
        mills = arrays.special("erfcx", size / math.sqrt(2)) * math.sqrt(math.pi / 2)
        return xp.clip(eta, min=0.0) + _phi(eta) * xp.clip(1 - size * mills, min=0.0)

    def L(self, B: Any) -> Any:
        """L_μ on |η| <= B: 1/√(2π)."""
        return _like(B, 1 / _ROOT_TAU)

    def M(self, B: Any) -> Any:
        """M_μ on |η| <= B: B."""
        return B

    def concordance(self, S: float) -> float:
        """M_μ for |η| <= S: S. There is no constant for all η."""
        return S

    def kappa(self, B: float) -> float:
        """The smallest μ' on |η| <= B."""
        return math.exp(-0.5 * B * B) / _ROOT_TAU


def _like(B: Any, value: float) -> Any:
    """The value; where B is an array, an array of its shape."""
    return arrays.namespace(B).full_like(B, value) if hasattr(B, "ndim") else value


def _phi(eta: Array) -> Array:
    """φ(η), the density of N(0, 1)."""
    return arrays.namespace(eta).exp(-0.5 * eta * eta) / _ROOT_TAU


Link = Identity | Logit | Log | Probit
LINKS: dict[str, Link] = {link.name: link for link in (Identity(), Logit(), Log(), Probit())}


def find(name: str) -> Link:
    """The link of that name, or an error with the nearest one."""
    if name not in LINKS:
        raise errors.unknown("link", name, names=LINKS)
    return LINKS[name]

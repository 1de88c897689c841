"""Reward noise with heavy tails: any environment that adds noise to its means, with other noise.

    StudentNoise        ε = s t_ν                       sd s √(ν/(ν - 2)), infinite for ν <= 2
    ParetoNoise         ε = s (P - 1/(α - 1))           P Lomax: P(P > x) = (1 + x)^{-α}; skewed;
                                                        sd s √(α/(α - 2))/(α - 1), infinite for α <= 2
    ContaminatedNoise   ε = s N(0, 1), and with probability q  ε = s m N(0, 1)       sd s √(1 - q + q m²)

All have mean 0. `sigma` is what algorithms are told of the noise: the sd where it is finite, else s.

Sources: Shao, Yu, King, Lyu, "Almost optimal algorithms for linear stochastic bandits with heavy-tailed payoffs",
NeurIPS 2018, for Student's t and Pareto; Huber, "Robust estimation of a location parameter", 1964, for contamination.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dither.base import arrays, errors
from dither.envs.around import Around


class _Noise(Around):
    """Other noise in the place of the environment's own."""

    scale: float

    def __post_init__(self) -> None:
        if hasattr(self.env, "rewards"):
            raise ValueError(
                f"{type(self).__name__} replaces noise that is added to the means, and {type(self.env).__name__} draws "
                "rewards from the means: take Linear, or an environment of your own with reward_noise"
            )
        errors.positive("scale", self.scale)

    @property
    def sd(self) -> float:
        """The standard deviation of the noise; infinite where the law has none."""
        raise NotImplementedError

    @property
    def sigma(self) -> float:
        """What algorithms are told of the noise: its sd, or the scale where the sd is infinite."""
        return self.sd if math.isfinite(self.sd) else self.scale


@dataclass(frozen=True)
class StudentNoise(_Noise):
    """Noise of Student's t.

    env : an environment that adds noise to its means
    df : ν, degrees of freedom, above 1: else the noise has no mean
    scale : s
    """

    env: Any
    df: float = 3.0
    scale: float = 1.0
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        above_one("df", self.df)

    @property
    def sd(self) -> float:
        """s √(ν/(ν - 2))."""
        return self.scale * math.sqrt(self.df / (self.df - 2)) if self.df > 2 else math.inf

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """ε of every arm, (n, K)."""
        return self.scale * rng.standard_t(self.df, size=(n, self.env.arms))


@dataclass(frozen=True)
class ParetoNoise(_Noise):
    """Noise of a Pareto law, shifted to mean 0: rare rewards are far too high, and none is far too low.

    env : an environment that adds noise to its means
    alpha : α, the exponent of the tail, above 1: else the noise has no mean
    scale : s
    """

    env: Any
    alpha: float = 2.5
    scale: float = 1.0
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        above_one("alpha", self.alpha)

    @property
    def sd(self) -> float:
        """s √(α/(α - 2))/(α - 1)."""
        return self.scale * math.sqrt(self.alpha / (self.alpha - 2)) / (self.alpha - 1) if self.alpha > 2 else math.inf

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """ε of every arm, (n, K)."""
        return self.scale * (rng.pareto(self.alpha, size=(n, self.env.arms)) - 1 / (self.alpha - 1))


@dataclass(frozen=True)
class ContaminatedNoise(_Noise):
    """Gaussian noise, of which a share is far larger.

    env : an environment that adds noise to its means
    share : q, the probability of an outlier
    factor : m, how many times larger the sd of an outlier is
    scale : s, the sd of all others
    """

    env: Any
    share: float = 0.05
    factor: float = 10.0
    scale: float = 1.0
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.within("share", self.share, 0, 1)
        errors.positive("factor", self.factor)

    @property
    def sd(self) -> float:
        """s √(1 - q + q m²)."""
        return self.scale * math.sqrt(1 - self.share + self.share * self.factor**2)

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """ε of every arm, (n, K). The second normal of a pair says which are outliers, so there is one kind of draw."""
        normal = rng.standard_normal((n, self.env.arms, 2))
        outlier = normal[..., 1] < float(special.ndtri(self.share))
        ordinary = arrays.namespace(normal).ones_like(normal[..., 0])
        return self.scale * normal[..., 0] * arrays.namespace(normal).where(outlier, self.factor, ordinary)


def above_one(name: str, value: object) -> None:
    """Raise ValueError unless the value is a finite number above 1."""
    errors.positive(name, value)
    if value <= 1:  # type: ignore[operator]
        raise ValueError(f"{name} must be above 1, since the noise has no mean else; got {value!r}")

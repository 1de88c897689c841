"""Linear bandits: r = x'θ* + ε (paper, Section 7.1, Appendix H.1.1). `sphere` says how θ* and contexts are drawn."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.envs.sphere import Sphere, SphereRun


@dataclass(frozen=True)
class Linear(Sphere):
    """K arms of d features with mean x'θ*.

    dim, arms : d and K
    contexts : |C|, the number of arm sets; each round draws one of them. None: every round draws new arms
    norm : S = ‖θ*‖
    noise : σ, the standard deviation of ε ~ N(0, σ²); 0: no noise
    unit : whether features are scaled to length 1
    """

    dim: int = 20
    arms: int = 100
    contexts: int | None = None
    norm: float = 1.0
    noise: float = 1.0
    unit: bool = True
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.within("noise", self.noise, 0, 1e300)

    @property
    def sigma(self) -> float:
        """The standard deviation of the reward noise."""
        return self.noise

    def means(self, run: SphereRun, X: np.ndarray, more: Any) -> np.ndarray:
        """x'θ*: (n, K)."""
        return run.along(X)

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray | None:
        """ε of every arm, (n, K)."""
        return self.noise * rng.standard_normal((n, self.arms)) if self.noise else None

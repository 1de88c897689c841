"""Rewards that come late: any environment, with a delay between a decision and the learning from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.envs.around import Around


@dataclass(frozen=True)
class Delayed(Around):
    """An environment with delayed rewards.

    env : the environment
    delay : by how many rounds each reward is late; 0: it comes before the next decision
    mean : in the place of `delay`: each reward draws a geometric delay on 0, 1, 2, ... with this mean
    """

    env: Any
    delay: int = 0
    mean: float | None = None
    lockstep = True

    def __post_init__(self) -> None:
        errors.at_least("delay", self.delay, 0)
        if self.mean is not None:
            errors.positive("mean", self.mean)
            if self.delay:
                raise ValueError(f"give delay or mean, not both: got {self.delay} and {self.mean}")

    def delays(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """The delays of the next n rewards, (n,)."""
        if self.mean is None:
            return np.full(n, self.delay)
        return rng.geometric(1 / (1 + self.mean), size=n) - 1

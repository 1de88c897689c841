"""Rewards that come late: any environment, with a delay between a decision and what is learnt from it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import errors


@dataclass(frozen=True)
class Delayed:
    """`env` with delayed rewards.

    delay : rounds by which each reward comes late (0: before the next decision)
    mean : instead, the mean of a geometric delay on 0, 1, 2, ..., drawn for each reward
    """

    env: Any
    delay: int = 0
    mean: float | None = None

    def __post_init__(self) -> None:
        errors.at_least("delay", self.delay, 0)
        if self.mean is not None:
            errors.positive("mean", self.mean)
            if self.delay:
                raise ValueError(f"give delay or mean, not both: got {self.delay} and {self.mean}")

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not there yet, as while unpickling
            raise AttributeError(name)
        return getattr(self.env, name)

    def delays(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """The delays of the next n rewards, (n,)."""
        if self.mean is None:
            return np.full(n, self.delay)
        return rng.geometric(1 / (1 + self.mean), size=n) - 1

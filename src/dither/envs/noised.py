"""Noise by a law of one's own, which may depend on the contexts, the arms, the run and the round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.envs import base
from dither.envs.around import Around


@dataclass(frozen=True)
class Noised(Around):
    """An environment whose noise is drawn by a law of yours.

    env : an environment that adds noise to its means
    law : law(rng, mean, ...) returns the noise (n, K) of n rounds with means (n, K); its expectation is 0. After these
        two it names what else it depends on: run (what `start` of env returned), X (n, K, d) or (n, d), more (what
        `fill` returned) and t (the round of the first of them, from 1 on). A function at the top of a file or an object
        with `__call__`, so that other processes can load it. It makes one kind of draw, and only from rng
    sigma : the sd of the noise, as algorithms are told it: a bound on it, where it varies

    Raises TypeError for a law that cannot be called, and ValueError where env draws rewards from the means.
    """

    env: Any
    law: Callable[..., Any]
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise TypeError(f"law is called as law(rng, mean, X=...); got {self.law!r}")
        if hasattr(self.env, "rewards"):
            raise ValueError(
                f"Noised replaces noise that is added to the means, and {type(self.env).__name__} draws rewards from "
                "the means: take Linear, or an environment of your own with reward_noise"
            )
        errors.positive("sigma", self.sigma)

    def reward_noise(
        self, rng: np.random.Generator, n: int, run: Any, X: np.ndarray, mean: np.ndarray, more: Any, t: int
    ) -> Any:
        """What the law draws for these rounds: (n, K)."""
        return base.told(self.law, rng, mean, base.RoundsOfRun(run, X, mean, more, t))

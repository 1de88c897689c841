"""Linear bandits: r = x'θ* + ε (paper, Section 7.1 and Appendix H.1.1).

θ* is uniform on the sphere of radius S. Contexts are standard normal and scaled to unit length (the paper's
normalisation; unit=False leaves them as drawn): new arms in each round, or one of a few fixed sets of arms.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import errors


class Run(NamedTuple):
    """What is fixed for one run."""

    theta: np.ndarray  # (d,)  θ*
    sets: np.ndarray | None  # (|C|, K, d)  the fixed sets of arms


@dataclass(frozen=True)
class Linear:
    """K arms of d features with mean x'θ*.

    dim : d; arms : K
    contexts : |C|, the number of arm sets, one of which is drawn in each round; None: new arms in each round
    norm : S = ‖θ*‖; noise : the standard deviation σ of ε ~ N(0, σ²), 0 for none
    unit : features scaled to length 1
    """

    dim: int = 20
    arms: int = 100
    contexts: int | None = None
    norm: float = 1.0
    noise: float = 1.0
    unit: bool = True
    disjoint = False

    def __post_init__(self) -> None:
        errors.at_least("dim", self.dim, 1)
        errors.at_least("arms", self.arms, 1)
        if self.contexts is not None:
            errors.at_least("contexts", self.contexts, 1)
        errors.positive("norm", self.norm)
        errors.within("noise", self.noise, 0, 1e300)

    @property
    def S(self) -> float:
        """‖θ*‖."""
        return self.norm

    @property
    def sigma(self) -> float:
        """The standard deviation of the reward noise."""
        return self.noise

    def start(self, rng: np.random.Generator) -> Run:
        """θ*, and the sets of arms where they are fixed."""
        theta = rng.standard_normal(self.dim)
        theta *= self.norm / np.linalg.norm(theta)
        if self.contexts is None:
            return Run(theta, None)
        sets = np.empty((self.contexts, self.arms, self.dim))
        self._draw(rng, sets)
        return Run(theta, sets)

    def fill(self, run: Run, rng: np.random.Generator, out: np.ndarray) -> None:
        """The next n contexts into out (n, K, d)."""
        if run.sets is None:
            self._draw(rng, out)
        elif len(run.sets) == 1:
            out[:] = run.sets
        else:
            out[:] = run.sets[rng.integers(len(run.sets), size=out.shape[0])]

    def means(self, run: Run, X: np.ndarray, more: Any) -> np.ndarray:
        """x'θ*: (n, K)."""
        return X @ run.theta

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray | None:
        """ε of every arm, (n, K)."""
        return self.noise * rng.standard_normal((n, self.arms)) if self.noise else None

    def _draw(self, rng: np.random.Generator, out: np.ndarray) -> None:
        rng.standard_normal(out=out)
        if self.unit:
            out *= (1 / np.sqrt(np.vecdot(out, out)))[..., None]

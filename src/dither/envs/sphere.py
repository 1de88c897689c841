"""What linear and generalised linear environments share: a hidden θ*, and arms with features of their own.

θ* is uniform on the sphere of radius S. Features are standard normal, and scaled to length 1 as in the paper;
unit=False leaves them as drawn. Every round has new arms, or one of a few fixed sets of arms.

All environments on this base have the same θ* and the same contexts in the same run.
"""

from typing import NamedTuple

import numpy as np

from dither.base import errors


class SphereRun(NamedTuple):
    """What is fixed for one run."""

    theta: np.ndarray  # (d,)  θ*
    sets: np.ndarray | None  # (|C|, K, d)  the fixed sets of arms


class Sphere:
    """The base. A subclass is a dataclass with these fields."""

    dim: int
    arms: int
    contexts: int | None
    norm: float
    unit: bool
    disjoint = False

    def __post_init__(self) -> None:
        errors.at_least("dim", self.dim, 1)
        errors.at_least("arms", self.arms, 1)
        errors.at_least("contexts", self.contexts, 1, or_none=True)
        errors.positive("norm", self.norm)
        errors.true_or_false("unit", self.unit)

    @property
    def S(self) -> float:
        """‖θ*‖."""
        return self.norm

    def start(self, rng: np.random.Generator) -> SphereRun:
        """Draw θ*, and the sets of arms where they are fixed."""
        theta = rng.standard_normal(self.dim)
        theta *= self.norm / np.linalg.norm(theta)
        if self.contexts is None:
            return SphereRun(theta, None)
        return SphereRun(theta, self._draw(rng, np.empty((self.contexts, self.arms, self.dim))))

    def fill(self, run: SphereRun, rng: np.random.Generator, out: np.ndarray) -> None:
        """Write the next n contexts into out (n, K, d)."""
        if run.sets is None:
            self._draw(rng, out)
        elif len(run.sets) == 1:
            out[:] = run.sets
        else:
            out[:] = run.sets[rng.integers(len(run.sets), size=out.shape[0])]

    def _draw(self, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """Draw features into out (..., d)."""
        rng.standard_normal(out=out)
        if self.unit:
            out *= (1 / np.sqrt(np.vecdot(out, out)))[..., None]
        return out

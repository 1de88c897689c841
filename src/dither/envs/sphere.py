"""What linear and generalised linear environments share: a hidden θ*, and arms with features of their own.

θ* is uniform on the sphere of radius S. Features are standard normal, and scaled to length 1 as in the paper;
unit=False leaves them as drawn. Every round has new arms, or one of a few fixed sets of arms.

All environments on this base have the same θ* and the same contexts in the same run.
"""

from typing import NamedTuple

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array


class SphereRun(NamedTuple):
    """What is fixed for one run."""

    theta: Array  # (d,)  θ*
    sets: Array | None  # (|C|, K, d)  the fixed sets of arms

    def along(self, X: Array) -> Array:
        """x'θ* of each arm: X (..., n, K, d) -> (..., n, K); θ* may differ from round to round, (..., n, d)."""
        apart = self.theta.ndim > 1 and X.ndim - self.theta.ndim == 2
        return arrays.dot(X, self.theta[..., None, :] if apart else self.theta)


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
        theta *= (self.norm / arrays.norms(theta))[..., None]
        if self.contexts is None:
            return SphereRun(theta, None)
        return SphereRun(theta, self._draw(rng, arrays.blank(theta, self.contexts, self.arms, self.dim)))

    def fill(self, run: SphereRun, rng: np.random.Generator, out: np.ndarray) -> None:
        """Write the next n contexts into out (n, K, d)."""
        if self.contexts is None or run.sets is None:
            self._draw(rng, out)
        elif self.contexts == 1:
            out[...] = run.sets
        else:
            rows = rng.integers(self.contexts, size=out.shape[-3])
            out[...] = run.sets[rows] if run.sets.ndim == 3 else _of_each(run.sets, rows)

    def _draw(self, rng: np.random.Generator, out: Array) -> Array:
        """Draw features into out (..., d)."""
        rng.standard_normal(out=out)
        if self.unit:
            out *= (1 / arrays.norms(out))[..., None]
        return out


def _of_each(sets: Array, rows: Array) -> Array:
    """The sets of each run by their numbers: (R, |C|, K, d), (R, n) -> (R, n, K, d)."""
    shape = (*rows.shape, *sets.shape[1:])
    return arrays.pick(arrays.namespace(sets).broadcast_to(sets[:, None, ...], shape), rows, rank=2)

"""What linear and generalised linear environments share: a hidden θ*, and arms with features of their own.

θ* is uniform on the sphere of radius S. Features are standard normal, and scaled to length 1 as in the paper;
unit=False leaves them as drawn. Every round has new arms, or one of a few fixed sets of arms.

An environment with the fields dim, arms, contexts, norm and unit takes `start` and `fill` as its methods. So all these
environments have the same θ* and the same contexts in the same run.
"""

from typing import Any, NamedTuple

import numpy as np

from dither.base import errors


class Run(NamedTuple):
    """What is fixed for one run."""

    theta: np.ndarray  # (d,)  θ*
    sets: np.ndarray | None  # (|C|, K, d)  the fixed sets of arms


def check(env: Any) -> None:
    """Raise ValueError for fields that make no sense."""
    errors.at_least("dim", env.dim, 1)
    errors.at_least("arms", env.arms, 1)
    errors.at_least("contexts", env.contexts, 1, or_none=True)
    errors.positive("norm", env.norm)
    errors.true_or_false("unit", env.unit)


def start(env: Any, rng: np.random.Generator) -> Run:
    """Draw θ*, and the sets of arms where they are fixed."""
    theta = rng.standard_normal(env.dim)
    theta *= env.norm / np.linalg.norm(theta)
    if env.contexts is None:
        return Run(theta, None)
    sets = np.empty((env.contexts, env.arms, env.dim))
    _draw(rng, sets, unit=env.unit)
    return Run(theta, sets)


def fill(env: Any, run: Run, rng: np.random.Generator, out: np.ndarray) -> None:
    """Write the next n contexts into out (n, K, d)."""
    if run.sets is None:
        _draw(rng, out, unit=env.unit)
    elif len(run.sets) == 1:
        out[:] = run.sets
    else:
        out[:] = run.sets[rng.integers(len(run.sets), size=out.shape[0])]


def _draw(rng: np.random.Generator, out: np.ndarray, *, unit: bool) -> None:
    """Draw features into out (..., d)."""
    rng.standard_normal(out=out)
    if unit:
        out *= (1 / np.sqrt(np.vecdot(out, out)))[..., None]

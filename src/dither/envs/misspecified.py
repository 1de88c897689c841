"""Rewards that are not quite linear: any environment that adds noise to its means, with means off by at most ζ.

    μ(x) = x'θ* + ζ sin(ω'x + φ),   ω ~ N(0, f² I),  φ ~ U(0, 2π),  drawn once for a run

An arm of length 1 has ω'x ~ N(0, f²). So with the default f = 10 the deviation has no linear part to speak of, and an
estimate cannot learn it. It is a function of the features: an arm that comes again has the same mean again.

Source: Lattimore, Szepesvári, Weisz, "Learning with good feature representations in bandits and in RL with a generative
model", ICML 2020: |μ(x) - x'θ*| <= ζ for all arms. No algorithm of d features can have less regret than of the order of
ζ √d T in the worst case.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays, errors, streams
from dither.base.arrays import Array
from dither.envs.around import Pair, Within


class Wave(NamedTuple):
    """The deviation of a run."""

    omega: Array  # (d,)  ω
    phi: Any  # φ

    def at(self, X: Array) -> Array:
        """sin(ω'x + φ): (..., n, K, d) -> (..., n, K)."""
        if self.omega.ndim == 1:
            return arrays.namespace(X).sin(X @ self.omega + self.phi)
        return arrays.namespace(X).sin(arrays.dot(X, self.omega[..., None, :]) + self.phi[..., None, None])


@dataclass(frozen=True)
class Misspecified(Within):
    """An environment whose means are off by at most `zeta`.

    env : an environment with features for each arm that adds noise to its means
    zeta : ζ, the largest deviation; reward
    frequency : f, the standard deviation of ω'x of an arm of length 1
    """

    env: Any
    zeta: float = 0.1
    frequency: float = 10.0
    lockstep = True

    def __post_init__(self) -> None:
        errors.within("zeta", self.zeta, 0, errors.LARGEST)
        errors.positive("frequency", self.frequency)
        name = type(self.env).__name__
        if hasattr(self.env, "rewards"):
            raise ValueError(f"a deviation is added to the means, and {name} needs means of a link: take Linear")
        if self.env.disjoint:
            raise ValueError(f"a deviation is a function of an arm's features, and the arms of {name} share a context")

    def held(self, rng: np.random.Generator, inner: Any) -> Wave:
        """ω and φ, from a stream of their own."""
        child = streams.child(rng)
        return Wave(self.frequency * child.standard_normal(self.env.dim), child.uniform(0, 2 * np.pi))

    def means(self, run: Pair, X: np.ndarray, more: Pair) -> np.ndarray:
        """The means within, and the deviation: (n, K)."""
        return self.env.means(run.inner, X, more.inner) + self.zeta * run.outer.at(X)

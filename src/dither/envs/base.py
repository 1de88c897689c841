"""What an environment is, for users who write their own: one run at a time, n rounds at a time.

    class Mine:
        arms, dim, disjoint = 10, 5, False
        def start(self, rng): ...               # what is fixed for a run: θ*, arm sets, an order of rows
        def fill(self, run, rng, out): ...      # write contexts into out (n, K, d), or (n, d) with disjoint slots
        def means(self, run, X, more): ...      # the arms' expected rewards (n, K); more: what `fill` returned
        def reward_noise(self, rng, n): ...     # what is added to the means, (n, K); None for nothing
        def rewards(self, rng, mean): ...       # or, in its place: the rewards (n, K) of these means, such as 0 and 1

A method draws from the stream that it is given and from no other, one kind of draw a method, so that n rounds at once
are the n rounds one by one. Optional: `sigma` (sd of the noise) and `S` (‖θ*‖), which `simulate` tells a policy whose
preset was told; `delays(rng, n)`, how many rounds each reward comes late.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Environment(Protocol):
    """The protocol that `simulate` runs, and besides it either `Noisy` or `Paying`."""

    arms: int
    dim: int
    disjoint: bool  # K slots for one context, instead of features for each arm

    def start(self, rng: np.random.Generator) -> Any:
        """What is fixed for one run."""

    def fill(self, run: Any, rng: np.random.Generator, out: np.ndarray) -> Any:
        """Fill `out` (n, K, d), or (n, d) with disjoint slots, with the next n contexts; what else `means` needs."""

    def means(self, run: Any, X: np.ndarray, more: Any) -> np.ndarray:
        """The expected rewards (n, K) in those contexts."""


@runtime_checkable
class Noisy(Protocol):
    """Rewards are the means and noise that does not depend on them."""

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray | None:
        """The reward noise of the next n rounds, (n, K), added to the means; None where there is none."""


@runtime_checkable
class Paying(Protocol):
    """Rewards are drawn given the means; where it is there, `reward_noise` is not asked."""

    def rewards(self, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
        """The rewards (n, K) of the next n rounds, whose expectations are `mean` (n, K)."""

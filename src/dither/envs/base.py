"""What an environment is, for users who write their own. It plays one run at a time, and n rounds of it at once.

    class Mine:
        arms, dim, disjoint = 10, 5, False
        def start(self, rng): ...               # returns what is fixed for a run: θ*, arm sets, an order of rows
        def fill(self, run, rng, out): ...      # writes n contexts into out (n, K, d), or (n, d) with disjoint slots
        def means(self, run, X, more): ...      # returns the expected rewards (n, K); more is what `fill` returned
        def reward_noise(self, rng, n): ...     # returns what is added to the means, (n, K), or None for nothing
        def rewards(self, rng, mean): ...       # or, in its place: returns the rewards (n, K) of these means

Each method draws from the stream that it is given and from no other, and makes one kind of draw. Then n rounds at once
are the same as n rounds one by one.

Three more members are optional. `simulate` passes `sigma` (the sd of the noise) and `S` (‖θ*‖) to those algorithms
whose preset asks for them (`told`). `delays(rng, n)` says how many rounds late each reward comes.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Environment(Protocol):
    """What `simulate` needs of an environment. It needs one of `Noisy` and `Paying` besides."""

    arms: int
    dim: int
    disjoint: bool  # True: one context for K slots; False: features for each arm

    def start(self, rng: np.random.Generator) -> Any:
        """Return what is fixed for one run."""

    def fill(self, run: Any, rng: np.random.Generator, out: np.ndarray) -> Any:
        """Write the next n contexts into `out`: (n, K, d), or (n, d) with disjoint slots.

        Return what `means` needs besides them, or None.
        """

    def means(self, run: Any, X: np.ndarray, more: Any) -> np.ndarray:
        """Return the expected rewards (n, K) in those contexts; more is what `fill` returned with them."""


@runtime_checkable
class Noisy(Protocol):
    """Rewards are the means, plus noise that does not depend on the means."""

    def reward_noise(self, rng: np.random.Generator, n: int) -> np.ndarray | None:
        """Return the noise of the next n rounds, (n, K), which is added to the means; None for no noise."""


@runtime_checkable
class Paying(Protocol):
    """Rewards are drawn from the means. An environment that has `rewards` is not asked for `reward_noise`."""

    def rewards(self, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
        """Return the rewards (n, K) of the next n rounds, whose expectations are `mean` (n, K)."""

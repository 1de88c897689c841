"""Generalised linear bandits: E r = μ(x'θ*) (paper, Section 3). `sphere` says how θ* and the contexts are drawn.

    Logistic  μ(η) = 1/(1 + e^{-η})   r ~ Bernoulli
    Probit    μ(η) = Φ(η)             r ~ Bernoulli
    Poisson   μ(η) = e^η              r ~ Poisson: counts

Two constants say how hard an instance is (paper, equation (min derivative) in Section 5). κ* is the average of
μ'(x'θ*) at the best arm of each round. κ is the smallest μ'(x'θ) over all arms and all ‖θ‖ <= S. The regret bound of
feature perturbation is d √(κ* T) + d²/κ, up to logarithms.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dither import links, theory
from dither.base import arrays, errors, streams
from dither.envs import base
from dither.envs.sphere import Sphere, SphereRun

LARGEST_COUNT = 2.0**53  # mean of a count, at most: float64 holds no odd number above it


def bernoulli(env: Any, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    """1 with probability `mean` (n, K), else 0. Each arm takes one uniform, whatever its mean is."""
    xp = arrays.namespace(mean)
    return xp.astype(rng.random(tuple(mean.shape)[-2:]) < mean, xp.float64)


def counts(env: Any, rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    """Poisson counts with these means (n, K). Raises ValueError where a mean is above `LARGEST_COUNT`."""
    if (most := arrays.largest(mean)) > LARGEST_COUNT:
        raise ValueError(
            f"the mean of a count must be at most 2^53, got {most:.3g} with {env}: lower norm"
            + ("" if env.unit else ", or take unit=True")
        )
    xp = arrays.namespace(mean)
    return xp.astype(rng.poisson(mean), xp.float64)


@dataclass(frozen=True)
class OnSphere(Sphere):
    """K arms of d features and one θ*; it has the fields of `Linear` but for the noise."""

    dim: int = 20
    arms: int = 100
    contexts: int | None = None
    norm: float = 1.0
    unit: bool = True
    sigma = 1.0


class _Generalised(OnSphere):
    """Arms with the mean μ(x'θ*)."""

    link: ClassVar[links.Link]

    def means(self, run: SphereRun, X: np.ndarray, more: Any) -> np.ndarray:
        """μ(x'θ*): (n, K)."""
        return self.link.mu(run.along(X))

    def kappa_star(self, run: SphereRun, X: np.ndarray) -> float:
        """κ* of the rounds X (n, K, d): the average of μ'(x'θ*) at the best arms."""
        return float(theory.kappa_star(X, run.theta, self.link))

    def kappa(self, X: np.ndarray) -> float:
        """κ of the rounds X (n, K, d): the smallest μ'(x'θ) over their arms and ‖θ‖ <= S."""
        return theory.kappa(X, self.norm, self.link)


class Logistic(_Generalised):
    """K arms of d features; the reward is 1 with probability 1/(1 + e^{-x'θ*}), else 0.

    dim, arms : d and K
    contexts : |C|, the number of arm sets; each round draws one of them. None: every round draws new arms
    norm : S = ‖θ*‖
    unit : whether features are scaled to length 1
    """

    link = links.LINKS["logit"]
    lockstep = True
    rewards = bernoulli


class Probit(_Generalised):
    """K arms of d features; the reward is 1 with probability Φ(x'θ*), else 0. It has the fields of `Logistic`."""

    link = links.LINKS["probit"]
    lockstep = True
    rewards = bernoulli


class Poisson(_Generalised):
    """K arms of d features; the reward is a Poisson count of mean e^{x'θ*}. It has the fields of `Logistic`."""

    link = links.LINKS["log"]
    lockstep = True
    rewards = counts


class Kappas(NamedTuple):
    """The constants of an environment, over the first rounds of the first runs of a seed."""

    star: float  # κ*, averaged over the runs
    se: float  # the standard error of that average
    least: float  # κ, the smallest over the runs
    runs: int
    rounds: int


def kappas(env: Any, *, runs: int = 20, rounds: int = 100, seed: int = 0) -> Kappas:
    """κ* and κ over the contexts that `simulate` shows in the first rounds of the first runs.

    env : an environment with `kappa_star` and `kappa`, such as `Logistic`
    """
    errors.at_least("runs", runs, 2)
    errors.at_least("rounds", rounds, 1)
    pairs = [(env.kappa_star(run, X), env.kappa(X)) for run, X in begun(env, runs=runs, rounds=rounds, seed=seed)]
    stars, least = np.array(pairs).T
    return Kappas(float(stars.mean()), float(stars.std(ddof=1) / np.sqrt(runs)), float(least.min()), runs, rounds)


def begun(env: Any, *, runs: int, rounds: int, seed: int) -> Iterator[tuple[SphereRun, np.ndarray]]:
    """Each of the first runs, and the contexts X (n, K, d) of its first rounds. X is written over by the next run."""
    X = np.empty((rounds, env.arms, env.dim))
    for i in range(runs):
        run = env.start(streams.stream(seed, i, "instance"))
        base.fill(env, run, streams.stream(seed, i, "contexts"), X, t=1)
        yield run, X

"""A world whose truth is known: contexts, rewards, and the exact value of every policy, to judge estimators by.

    x_i  uniform on the unit sphere of R^d, i = 1 ... K           the arms on offer in one context
    η(x) = x'θ* + b (d (x'φ)² - 1)/2,   θ* = S u,  u'φ = 0        ‖u‖ = ‖φ‖ = 1; b = `bend`
    E r  = μ(η),  r = μ + σε (identity) or Bernoulli(μ) (logit)
    V(Q) = mean over contexts of Σ_a Q(a|X) μ(η(x_a))

With b > 0 a linear reward model is wrong: the second term is even, so no linear function of x follows it. `contexts`
sets of arms, each equally likely, make the law of contexts finite and V a sum without sampling error; with None every
row has new arms, and V is the mean over a fixed sample, with its standard error.

A policy is a function X (n, K, d) -> probabilities (n, K), an object with `probabilities` or `propensities` (a
`dither.Bandit`, as it stands), or, with finitely many contexts, the table (contexts, K) itself.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy import special

from dither import links
from dither.base import arrays, errors, streams
from dither.deciding.inputs import ROUNDING

SAMPLE = 100_000  # contexts of the truth where their law is continuous, and
BLOCK = 10_000  # how many of them are held at once


class SyntheticLog(NamedTuple):
    """A log of n decisions, with what no real log has: the truth is known."""

    X: np.ndarray  # (n, K, d)  the arms on offer
    a: np.ndarray  # (n,) int  the arm shown
    r: np.ndarray  # (n,)  its reward
    p: np.ndarray  # (n,)  its probability
    P: np.ndarray  # (n, K)  the probabilities of all arms: of round t, where the policy learnt
    context: np.ndarray | None  # (n,) int  which of the finitely many contexts

    @property
    def x(self) -> np.ndarray:
        """The features of the arm shown, (n, d)."""
        return self.X[np.arange(len(self.a)), self.a]

    def rows(self, *, kind: str = "exact", features: bool = True) -> Iterator[dict[str, Any]]:
        """A row a decision, as columns of a decision log have it: plain numbers and lists."""
        for i, (a, r, p, P) in enumerate(
            zip(self.a.tolist(), self.r.tolist(), self.p.tolist(), self.P.tolist(), strict=True)
        ):
            row = {"id": str(i), "arm": a, "propensity": p, "propensity_kind": kind, "probabilities": P, "reward": r}
            yield row | {"features": self.X[i].tolist()} if features else row


class Truth(NamedTuple):
    """The value of a policy: the expected reward of a decision."""

    value: float
    se: float  # 0 where the contexts are finitely many: the value is exact then


class Instance(NamedTuple):
    """What the seed fixes."""

    theta: np.ndarray  # (d,)  θ*
    phi: np.ndarray  # (d,)  φ; of length 0 for d = 1
    X: np.ndarray | None  # (contexts, K, d)
    mu: np.ndarray | None  # (contexts, K)  the expected rewards


@dataclass(frozen=True)
class World:
    """K arms of d features, with known expected rewards.

    dim : d; arms : K
    link : "identity" (rewards with normal noise of sd `noise`) or "logit" (rewards 0 and 1)
    bend : b, how far the truth is from linear; 0 for a linear (or generalised linear) one
    norm : S = ‖θ*‖
    contexts : how many sets of arms there are; None: new ones in each row
    seed : of θ*, φ, the contexts and the logs

    Raises ValueError for settings that make no sense, LookupError for another link.
    """

    dim: int = 5
    arms: int = 10
    link: str = "identity"
    bend: float = 0.0
    norm: float = 1.0
    noise: float = 0.5
    contexts: int | None = 200
    seed: int = 0

    def __post_init__(self) -> None:
        errors.at_least("dim", self.dim, 1)
        errors.at_least("arms", self.arms, 1)
        errors.among("link of synthetic rewards", self.link, ("identity", "logit"))
        errors.within("bend", self.bend, -1e6, 1e6)
        errors.positive("norm", self.norm)
        errors.within("noise", self.noise, 0, 1e6)
        if self.contexts is not None:
            errors.at_least("contexts", self.contexts, 1)
        streams.entropy(self.seed)
        if self.bend and self.dim == 1:
            raise ValueError(f"bend must be 0 where dim=1, as φ is orthogonal to θ*; got {self.bend!r}")

    @functools.cached_property
    def instance(self) -> Instance:
        """θ*, φ and the contexts, drawn once."""
        rng = streams.stream(self.seed, 0, "instance")
        theta, phi = rng.standard_normal((2, self.dim))
        theta *= self.norm / np.linalg.norm(theta)
        phi = phi - (phi @ theta) / (theta @ theta) * theta
        phi = phi / np.linalg.norm(phi) if self.dim > 1 else np.zeros(1)
        bare = Instance(theta, phi, None, None)
        if self.contexts is None:
            return bare
        X = self._features(rng, self.contexts)
        return Instance(theta, phi, X, self._mean(bare, X))

    def mean(self, X: np.ndarray) -> np.ndarray:
        """The expected rewards of all arms: X (..., K, d) -> (..., K)."""
        return self._mean(self.instance, X)

    def best(self, X: np.ndarray) -> np.ndarray:
        """The policy that shows the arm of the highest expected reward: X (n, K, d) -> (n, K)."""
        return arrays.share(self.mean(X))

    def value(self, policy: Any) -> Truth:
        """V of a policy (see the module): exact where the contexts are finitely many, else with its standard error."""
        here = self.instance
        if here.X is not None and here.mu is not None:
            return Truth(float(np.mean(np.sum(self._table(policy, here.X) * here.mu, axis=-1))), 0.0)
        rng, terms = streams.stream(self.seed, 0, "contexts", 1), []
        for _ in range(SAMPLE // BLOCK):
            X = self._features(rng, BLOCK)
            terms.append(np.sum(probabilities(policy, X) * self.mean(X), axis=-1))
        each = np.concatenate(terms)
        return Truth(float(each.mean()), float(each.std(ddof=1) / math.sqrt(len(each))))

    def log(self, policy: Any, n: int, *, run: int = 0, learn: bool = False) -> SyntheticLog:
        """n decisions of a policy. Contexts and reward noise are those of (seed, run), whatever the policy.

        learn : the policy is a `dither.Bandit`, of which every round is played: `choose`, then `update`. It must know
            its probabilities in closed form; P[t] is what they were in round t.
        """
        errors.at_least("n", n, 1)
        X, context = self._contexts(n, run)
        if learn:
            a, r, p, P = self._play(policy, X, self._noise(n, run))
            return SyntheticLog(X, a, r, p, P, context)
        P = probabilities(policy, X) if context is None else self._table(policy, self.instance.X)[context]
        u = streams.stream(self.seed, run, "policy").random(n)
        a = draw(P, u)
        rows = np.arange(n)
        mu = self.mean(X[rows, a][:, None])[:, 0]
        return SyntheticLog(X, a, self._rewards(mu, self._noise(n, run)), P[rows, a], P, context)

    def _play(self, bandit: Any, X: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, ...]:
        n, K = X.shape[:2]
        a, r, p, P = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty((n, K))
        for t in range(n):
            P[t], _, kind = bandit.propensities(X[t], detail=True)
            if kind != "exact":
                raise ValueError(f"learn=True needs a policy with exact propensities; {bandit!r} has {kind!r} ones")
            shown = bandit.choose(X[t])
            a[t], p[t] = shown.arm, shown.propensity
            r[t] = self._rewards(self.mean(X[t, [shown.arm]]), noise[t : t + 1])[0]
            bandit.update(X[t, shown.arm], r[t])
        return a, r, p, P

    def _table(self, policy: Any, X: Any) -> np.ndarray:
        """The probabilities in each of the finitely many contexts, (contexts, K)."""
        return checked(policy, X.shape[:-1]) if isinstance(policy, np.ndarray) else probabilities(policy, X)

    def _contexts(self, n: int, run: int) -> tuple[np.ndarray, np.ndarray | None]:
        rng = streams.stream(self.seed, run, "contexts")
        if self.instance.X is None:
            return self._features(rng, n), None
        context = rng.integers(len(self.instance.X), size=n)
        return self.instance.X[context], context

    def _features(self, rng: np.random.Generator, n: int) -> np.ndarray:
        X = rng.standard_normal((n, self.arms, self.dim))
        return X / np.linalg.norm(X, axis=-1, keepdims=True)

    def _mean(self, here: Instance, X: np.ndarray) -> np.ndarray:
        eta = X @ here.theta
        if self.bend:
            eta = eta + self.bend * (self.dim * (X @ here.phi) ** 2 - 1) / 2
        return links.find(self.link).mu(eta)

    def _noise(self, n: int, run: int) -> np.ndarray:
        """What makes rewards of means: ε, or the uniforms of the Bernoulli draws. (n,)"""
        rng = streams.stream(self.seed, run, "noise")
        return rng.standard_normal(n) if self.link == "identity" else rng.random(n)

    def _rewards(self, mu: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return mu + self.noise * noise if self.link == "identity" else (noise < mu).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ScoreSoftmax:
    """P(a|X) ∝ exp(x_a'θ/τ): a policy that explores by a score. theta (d,), temperature τ in units of the score."""

    theta: np.ndarray
    temperature: float = 1.0

    def __post_init__(self) -> None:
        errors.positive("temperature", self.temperature)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """X (n, K, d) -> (n, K)."""
        return special.softmax(X @ np.asarray(self.theta) / self.temperature, axis=-1)


@runtime_checkable
class TellsProbabilities(Protocol):
    """A policy that tells its probabilities, such as one that was learnt here."""

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """X (n, K, d) -> (n, K)."""


@runtime_checkable
class Propensive(Protocol):
    """The same by another name: `dither.Bandit`."""

    def propensities(self, X: np.ndarray) -> np.ndarray:
        """X (n, K, d) -> (n, K)."""


def uniform(X: np.ndarray) -> np.ndarray:
    """The policy that shows every arm alike: X (n, K, d) -> (n, K)."""
    return np.full(X.shape[:-1], 1 / X.shape[-2])


def probabilities(policy: Any, X: np.ndarray) -> np.ndarray:
    """The choice probabilities of a policy, whatever it is: X (n, K, d) -> (n, K)."""
    if isinstance(policy, Propensive):  # first: a bandit has both, and its `probabilities` takes a request
        return checked(policy.propensities(X), X.shape[:-1])
    if isinstance(policy, TellsProbabilities):
        return checked(policy.probabilities(X), X.shape[:-1])
    if not callable(policy):
        raise TypeError(
            f"a policy must be a function of X, or have the method 'probabilities' or 'propensities', or be the table "
            f"of a world with finitely many contexts; got {type(policy).__name__}"
        )
    return checked(policy(X), X.shape[:-1])


def checked(P: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Refuse what are no probabilities: rows that do not sum to 1, NaN, negative numbers, another shape."""
    P = np.asarray(P, dtype=np.float64)
    if P.shape != shape:
        raise ValueError(f"a policy must give probabilities of shape {shape}, one for each arm; got {P.shape}")
    bad = ~(np.all(P >= 0, axis=-1) & (np.abs(np.sum(P, axis=-1) - 1) <= ROUNDING))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"probabilities must not be negative and must sum to 1; row {row} is {P[row].tolist()} "
            f"({int(bad.sum())} such rows): normalise them"
        )
    return P


def draw(P: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The arm at which the cumulated probabilities pass u: P (n, K), u (n,) uniform on [0, 1) -> (n,) int."""
    edges = np.cumsum(P, axis=-1)
    return np.sum(edges <= u[:, None] * edges[:, -1:], axis=-1)

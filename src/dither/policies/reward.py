"""Perturbed-history exploration (Kveton, Szepesvári, Ghavamzadeh, Boutilier, UAI 2019): refit on perturbed rewards.

PerturbedHistory   θ̃ = V⁻¹(Σ r x + √(a/4) N(0, Σ x x')): the pseudo-rewards centred and in their Gaussian form,
                   where the factor 1/(1 + a) of the refit does not matter to the argmax; O(d²), no history
PseudoRewards      the paper's own: every distinct x seen n times gets Binomial(⌈a n⌉, ½) pseudo-rewards, fresh in
                   each round; θ̃ = (Σ (n + ⌈a n⌉) x x' + Λ)⁻¹ Σ x (Σ r + Binomial), with Λ = (1 + a) λI the
                   paper's refit for whole a, with Λ = λI the authors' code; for rewards in [0, 1]; O(t) a round, so
                   memory grows with the history
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import arrays, errors
from dither.arrays import Array


class Seen(NamedTuple):
    """What there is before chance enters."""

    model: Any
    state: Any
    X: Array
    t: int


@dataclass(frozen=True)
class PerturbedHistory:
    """LinPHE, centred: on any model with `mean`, `gram` and `perturb`."""

    a: float = 1.0  # pseudo-rewards for each reward
    sigma: float = 1.0  # scales the perturbation: pseudo-rewards of sd σ/2
    needs = frozenset({"mean", "gram", "perturb"})

    def __post_init__(self) -> None:
        errors.positive("a", self.a)
        errors.positive("sigma", self.sigma)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: (n, 2 dim) standard normals."""
        return (rng.standard_normal((n, 2 * dim)),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """All that a draw will need."""
        return Seen(model, state, X, t)

    def scores(self, view: Seen, eta: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        step = self.sigma * math.sqrt(self.a / 4) * view.model.perturb(view.state, eta)
        return view.model.scores(view.state.theta + step, view.X)


@dataclass(frozen=True)
class PseudoRewards:
    """LinPHE, uncentred, exactly: on any model with `mean` and `history`."""

    a: float = 2.0  # pseudo-rewards for each reward; the theory has a whole number above 1
    inflate: bool = True  # Λ = (1 + a) λI (paper); False: λI (the authors' code)
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    jitter: float = 0.0  # a uniform tie-break of this size, the same for an arm in all rounds and runs (theirs: 1e-6)
    needs = frozenset({"mean", "history"})

    def __post_init__(self) -> None:
        errors.within("a", self.a, 0, 1e6)
        errors.within("jitter", self.jitter, 0, 1)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: a seed for each, (n,); how many pseudo-rewards it must bring is known only then."""
        return (rng.integers(0, 2**63, size=n),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """All that a draw will need."""
        return Seen(model, state, X, t)

    def scores(self, view: Seen, seeds: Array) -> Array:
        """x_i'θ̃: (..., K). A loop over the requests: each has a history of its own length."""
        xp = arrays.namespace(view.X)
        history = view.model.history(view.state)
        K, d = view.X.shape[-2:]
        X = np.broadcast_to(np.asarray(view.X), (*seeds.shape, K, d))
        scores = np.empty((*seeds.shape, K))
        for row in np.ndindex(seeds.shape):
            own = row if history.rows.ndim else ()
            X_seen, count, total, rows = (np.asarray(part)[own] for part in history)
            seen = slice(int(rows))
            theta = self._theta(X_seen[seen], count[seen], total[seen], int(seeds[row]), view.model.lam)
            scores[row] = X[row] @ theta
            if self.forced and view.t <= min(K, d):
                scores[row] = np.arange(K) == view.t - 1
        if self.jitter:
            scores += self.jitter * np.random.default_rng(0).random(K)
        return xp.asarray(scores)

    def _theta(self, X: np.ndarray, count: np.ndarray, total: np.ndarray, seed: int, lam: float) -> np.ndarray:
        extra = np.ceil(self.a * count)
        pseudo = np.random.Generator(np.random.SFC64(seed)).binomial(extra.astype(np.int64), 0.5)
        Lam = lam * (1 + self.a if self.inflate else 1)
        gram = (X.T * (count + extra)) @ X + Lam * np.eye(X.shape[1])
        return np.linalg.solve(gram, X.T @ (total + pseudo))

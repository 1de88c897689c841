"""Perturbed-history exploration (Kveton, Szepesvári, Ghavamzadeh, Boutilier, UAI 2019): refit on perturbed rewards.

PerturbedHistory   θ̃ = V⁻¹(Σ r x + √(a/4) N(0, Σ x x')). The pseudo-rewards are centred and have their Gaussian form.
                   The factor 1/(1 + a) of the refit is left out, since it does not change the argmax. O(d²) a round,
                   and no history is kept.
PseudoRewards      The paper's own, for rewards in [0, 1]. Every distinct x that was seen n times gets
                   Binomial(⌈a n⌉, ½) pseudo-rewards, fresh in each round:
                   θ̃ = (Σ (n + ⌈a n⌉) x x' + Λ)⁻¹ Σ x (Σ r + Binomial). With Λ = (1 + a) λI it is the paper's refit
                   for whole a; with Λ = λI it is the authors' code. O(t) a round, and the history is kept.
"""

import math
from dataclasses import dataclass

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.policies import refit, views


@dataclass(frozen=True)
class PerturbedHistory:
    """LinPHE, centred: on any model with `perturb` and `scores`."""

    a: float = 1.0  # pseudo-rewards for each reward
    sigma: float = 1.0  # scales the perturbation: pseudo-rewards of sd σ/2
    needs = frozenset({"mean", "perturb", "scores"})
    draw = views.two_vectors

    def __post_init__(self) -> None:
        errors.positive("a", self.a)
        errors.positive("sigma", self.sigma)

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """x_i'θ̃ of what is drawn."""
        by = self.sigma * math.sqrt(self.a / 4)
        return views.Drawn(lambda eta: model.scores(state.theta + by * model.perturb(state, eta), X))


@dataclass(frozen=True)
class PseudoRewards:
    """LinPHE, uncentred, exactly: on any model with `history` and `lam`."""

    a: float = 2.0  # pseudo-rewards for each reward; the theory has a whole number above 1
    inflate: bool = True  # Λ = (1 + a) λI (paper); False: λI (the authors' code)
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    jitter: float = 0.0  # a uniform tie-break of this size, the same for an arm in all rounds and runs (theirs: 1e-6)
    needs = frozenset({"mean", "history", "lam"})
    draw = refit.seeds

    def __post_init__(self) -> None:
        errors.within("a", self.a, 0, 1e6)
        errors.within("jitter", self.jitter, 0, 1)

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """x_i'θ̃ of what is drawn. There is a loop over the requests, since their histories differ in length."""
        xp, history, (K, d) = arrays.namespace(X), model.history(state), X.shape[-2:]

        def scores(seeds: Array) -> Array:
            offered, s = np.broadcast_to(np.asarray(X), (*seeds.shape, K, d)), np.empty((*seeds.shape, K))
            lam = np.broadcast_to(np.asarray(model.lam_of(state)), seeds.shape)
            for row in np.ndindex(seeds.shape):
                shown, count, total, rows = (np.asarray(part)[row if history.rows.ndim else ()] for part in history)
                used = slice(int(rows))
                theta = self._theta(shown[used], count[used], total[used], int(seeds[row]), float(lam[row]))
                s[row] = offered[row] @ theta
            return xp.asarray(refit.jittered(self.jitter, refit.in_turn(s, t, d=d) if self.forced else s))

        return views.Drawn(scores)

    def _theta(self, X: np.ndarray, count: np.ndarray, total: np.ndarray, seed: int, lam: float) -> np.ndarray:
        extra, successes = refit.pseudo(self.a, count, seed)
        Lam = lam * (1 + self.a if self.inflate else 1)
        gram = (X.T * (count + extra)) @ X + Lam * np.eye(X.shape[1])
        return np.linalg.solve(gram, X.T @ (total + successes))

"""Perturbed history in generalised linear models: refit on perturbed rewards in each round, act greedily on it.

    PerturbedRewards   r_s + z_s, z_s ~ N(0, a²), fresh in each round. Only Σ z_s x_s ~ N(0, a² Σ xx') is drawn
                       (GLM-FPL: Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh, Boutilier 2020; LogFPL)
    PseudoSuccesses    every x seen n times gets ⌈a n⌉ pseudo-trials, of which Binomial(⌈a n⌉, ½) succeed (Kveton,
                       Szepesvári, Ghavamzadeh, Boutilier, UAI 2019; LogPHE: another algorithm than LogFPL)
    LossPerturbation   a term w'θ in the loss, w ~ N(0, γ²Ĥ): the same as rewards r_s - γ √μ'(x_s'θ̂) z_s and a draw for
                       the ridge (EVILL: Janz, Liu, Ayoub, Szepesvári 2024)

r + z may lie outside the link's support. Then only λ keeps the refit finite: it may be very long, and it is found all
the same. A refit reads the history, which takes O(t d) to O(t d²) a round. So the time of a round grows with t, except
with `solver="counts"`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.policies import views


def seeds(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """The `draw` of n requests: a seed for each, (n,). How many pseudo-rewards it serves is known when it is scored."""
    return (rng.integers(0, 2**63, size=n),)


@dataclass(frozen=True)
class PerturbedRewards:
    """GLM-FPL, on any model with `refit` and `gram_sample`."""

    a: float = 0.5  # sd of the noise; ½ is the largest sd of a reward in [0, 1]
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    needs = frozenset({"refit", "scores", "gram_sample"})
    draw = views.two_vectors

    def __post_init__(self) -> None:
        errors.positive("a", self.a)
        errors.true_or_false("forced", self.forced)

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """x_i'θ̃ of what is drawn."""

        def scores(eta: Array) -> Array:
            s = model.scores(model.refit(state, shift=self.a * model.gram_sample(state, eta)), X)
            return in_turn(s, t, d=X.shape[-1]) if self.forced else s

        return views.Drawn(scores)


@dataclass(frozen=True)
class LossPerturbation:
    """EVILL, on any model with `refit` and `hessian_sample`."""

    gamma: float = 1.0  # γ
    needs = frozenset({"refit", "scores", "hessian_sample"})
    draw = views.vector

    def __post_init__(self) -> None:
        errors.positive("gamma", self.gamma)

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """x_i'θ̃ of what is drawn."""

        def scores(eta: Array) -> Array:
            theta = model.refit(state, shift=self.gamma * model.hessian_sample(state, eta))
            return model.scores(theta, X)

        return views.Drawn(scores)


@dataclass(frozen=True)
class PseudoSuccesses:
    """LogPHE, on any model with `refit` and `rows` whose rewards lie in [0, 1]."""

    a: float = 2.0  # pseudo-trials for each observation; the theory has a whole number above 1
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    jitter: float = 0.0  # a uniform tie-break of this size, the same for an arm in all rounds and runs (theirs: 1e-6)
    needs = frozenset({"refit", "scores", "rows"})
    draw = seeds

    def __post_init__(self) -> None:
        errors.within("a", self.a, 0, 1e6)
        errors.within("jitter", self.jitter, 0, 1)
        errors.true_or_false("forced", self.forced)

    def refuse(self, model: Any, *, dim: int) -> str | None:
        """Why it cannot run: it adds successes and failures, so rewards must lie in [0, 1]; None: it can."""
        if model.support == (0.0, 1.0):
            return None
        return f"LogPHE adds successes and failures: rewards must lie in [0, 1], not {model.support}"

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """x_i'θ̃ of what is drawn."""
        rows = model.rows(state)
        count, total = (np.asarray(arrays.numpy(part)) for part in (rows.count, rows.total))

        def scores(seeds: Array) -> Array:
            more, sums = (np.array(np.broadcast_to(part, (*seeds.shape, count.shape[-1]))) for part in (count, total))
            for row in np.ndindex(seeds.shape):
                run = row if rows.rows.ndim else ()
                extra, successes = pseudo(self.a, count[run][: int(rows.rows[run])], int(seeds[row]))
                more[row][: len(extra)] += extra
                sums[row][: len(extra)] += successes
            more, sums = (arrays.beside(part, X) for part in (more, sums))
            s = model.scores(model.refit(state, count=more, total=sums), X)
            return jittered(self.jitter, in_turn(s, t, d=X.shape[-1]) if self.forced else s)

        return views.Drawn(scores)


def pseudo(a: float, count: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """⌈a n⌉ pseudo-rewards for each count n, and how many of them are 1: Binomial(⌈a n⌉, ½)."""
    extra = np.ceil(a * count)
    return extra, np.random.Generator(np.random.SFC64(seed)).binomial(extra.astype(np.int64), 0.5)


def in_turn(s: Array, t: int, *, d: int) -> Array:
    """The scores s (..., K), where the first min(K, d) rounds show one arm each: it scores 1, and the others 0."""
    xp, K = arrays.namespace(s), s.shape[-1]
    turn = xp.astype(xp.arange(K, device=arrays.device(s)) == t - 1, s.dtype)
    return s if t > min(K, d) else xp.broadcast_to(turn, s.shape)


def jittered(jitter: float, s: Array) -> Array:
    """The scores with a uniform tie-break of that size, the same for an arm in all rounds and runs."""
    if not jitter:
        return s
    return s + arrays.beside(jitter * np.random.default_rng(0).random(s.shape[-1]), s)

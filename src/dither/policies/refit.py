"""Perturbed history in generalised linear models: refit on perturbed rewards in each round, act greedily on it.

    PerturbedRewards   r_s + z_s, z_s ~ N(0, a²) fresh for the whole history: only Σ z_s x_s ~ N(0, a² Σ xx') enters
                       (GLM-FPL: Kveton, Zaheer, Szepesvári, Li, Ghavamzadeh, Boutilier 2020; LogFPL)
    PseudoSuccesses    every x seen n times gets ⌈a n⌉ pseudo-trials, of which Binomial(⌈a n⌉, ½) succeed (Kveton,
                       Szepesvári, Ghavamzadeh, Boutilier, UAI 2019; LogPHE: another algorithm than LogFPL)
    LossPerturbation   a term w'θ in the loss, w ~ N(0, γ²Ĥ): the same as rewards r_s - γ √μ'(x_s'θ̂) z_s and a draw for
                       the ridge (EVILL: Janz, Liu, Ayoub, Szepesvári 2024)

r + z may lie outside the link's support: then λ alone bounds the refit, which may be very long and is found all the
same. A refit reads the history: O(t d) to O(t d²) a round, so time grows with t, but for `solver="counts"`.
"""

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
class PerturbedRewards:
    """GLM-FPL, on any model with `refit` and `gram`."""

    a: float = 0.5  # sd of the noise; ½ is the largest sd of a reward in [0, 1]
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    needs = frozenset({"refit", "gram"})

    def __post_init__(self) -> None:
        errors.positive("a", self.a)
        errors.true_or_false("forced", self.forced)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: (n, 2 dim) standard normals."""
        return (rng.standard_normal((n, 2 * dim)),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """All that a draw will need."""
        return Seen(model, state, X, t)

    def scores(self, view: Seen, eta: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        shift = self.a * view.model.gram_sample(view.state, eta)
        return _scores(view, view.model.refit(view.state, shift=shift), forced=self.forced)


@dataclass(frozen=True)
class LossPerturbation:
    """EVILL, on any model with `refit`."""

    gamma: float = 1.0  # γ
    needs = frozenset({"refit"})

    def __post_init__(self) -> None:
        errors.positive("gamma", self.gamma)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: (n, dim) standard normals."""
        return (rng.standard_normal((n, dim)),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """All that a draw will need."""
        return Seen(model, state, X, t)

    def scores(self, view: Seen, eta: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        shift = self.gamma * view.model.hessian_sample(view.state, eta)
        return _scores(view, view.model.refit(view.state, shift=shift), forced=False)


@dataclass(frozen=True)
class PseudoSuccesses:
    """LogPHE, on any model with `refit` whose rewards lie in [0, 1]."""

    a: float = 2.0  # pseudo-trials for each observation; the theory has a whole number above 1
    forced: bool = False  # rounds 1..d show arms 1..d (the authors' code, whose arms are fixed)
    jitter: float = 0.0  # a uniform tie-break of this size, the same for an arm in all rounds and runs (theirs: 1e-6)
    needs = frozenset({"refit", "history"})

    def __post_init__(self) -> None:
        errors.within("a", self.a, 0, 1e6)
        errors.within("jitter", self.jitter, 0, 1)
        errors.true_or_false("forced", self.forced)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: a seed for each, (n,); how many pseudo-trials it must bring is known only then."""
        return (rng.integers(0, 2**63, size=n),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """All that a draw will need."""
        if model.support != (0.0, 1.0):
            raise ValueError(f"LogPHE adds successes and failures: rewards must lie in [0, 1], not {model.support}")
        return Seen(model, state, X, t)

    def scores(self, view: Seen, seeds: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        xp, rows = arrays.namespace(view.X), view.model.rows(view.state)
        count, total = (np.asarray(arrays.numpy(part)) for part in (rows.count, rows.total))
        more, sums = (np.array(np.broadcast_to(part, (*seeds.shape, count.shape[-1]))) for part in (count, total))
        for row in np.ndindex(seeds.shape):
            own = row if rows.rows.ndim else ()
            extra = np.ceil(self.a * count[own][: int(rows.rows[own])])
            rng = np.random.Generator(np.random.SFC64(int(seeds[row])))
            more[row][: len(extra)] += extra
            sums[row][: len(extra)] += rng.binomial(extra.astype(np.int64), 0.5)
        more, sums = (xp.asarray(part, device=arrays.device(view.X)) for part in (more, sums))
        scores = _scores(view, view.model.refit(view.state, count=more, total=sums), forced=self.forced)
        if self.jitter:
            jitter = self.jitter * np.random.default_rng(0).random(scores.shape[-1])
            scores = scores + xp.asarray(jitter, device=arrays.device(view.X))
        return scores


def _scores(view: Seen, theta: Array, *, forced: bool) -> Array:
    """x_i'θ̃, or 1 for the arm whose turn it is in the first rounds."""
    scores = view.model.scores(theta, view.X)
    K, d = scores.shape[-1], theta.shape[-1]
    if not forced or view.t > min(K, d):
        return scores
    xp = arrays.namespace(scores)
    turn = xp.astype(xp.arange(K, device=arrays.device(scores)) == view.t - 1, scores.dtype)
    return xp.broadcast_to(turn, scores.shape)

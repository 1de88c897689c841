"""Policies that state the probability of each arm outright. One uniform number a request chooses.

    Softmax    P(i) = exp(μ_i/τ)/Σ_j exp(μ_j/τ)                    Boltzmann exploration; τ is the temperature
    SquareCB   P(i) = 1/(K + γ_t (μ_b - μ_i)) for i ≠ b, and the best arm b has the rest
               (inverse gap weighting: Foster, Rakhlin 2020, Algorithm 1 with its "μ" = K; Abe, Long 1999)

μ_i is the predicted reward, on the scale of rewards also where the model has a link. K counts the arms on offer. Where
several arms tie for the best, b is one of them with equal chance. Both laws are exact for any model.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from dither import theory
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.policies import views

Tied = Callable[[Array | None], Array]  # mask (..., K) or None -> (..., K) bool


class Stated(NamedTuple):
    """The view of a policy that states its probabilities."""

    r: Array  # (..., K) predicted rewards
    means: views.Scores  # that say which arms tie for the best
    rule: Callable[[Array, Tied, Array | None], Array]  # r, tied, mask -> probabilities, 0 for arms not on offer
    log_rule: Callable[[Array, Tied, Array | None], Array] | None = None  # their logarithms, where they are known apart

    def valued(self, v: Array, link: Any) -> "Stated":
        """The same law of the values v (..., K) times the predicted rewards."""
        return self._replace(r=self.r * v, means=self.means.valued(v, link))

    def scores(self, v: Array) -> Array:
        """The predicted rewards; `best` does not show the arm of the highest."""
        shape = (*arrays.namespace(v).broadcast_arrays(v, self.r[..., 0])[0].shape, self.r.shape[-1])
        return arrays.namespace(self.r).broadcast_to(self.r, shape)

    def best(self, v: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arm in whose share of [0, 1) the uniform v (...) lies: (...) integers."""
        return _placed(self.propensities(mask=mask), v)[0]

    def in_turn(self, v: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms in order, each by the law among those that are left: u (..., k) -> (..., k) integers.

        Where v lies within the share of the arm shown is uniform too, whichever arm it was. It chooses the next arm.
        """

        def best(_: Array, left: Array) -> Array:
            nonlocal v
            arm, v = _placed(self.propensities(mask=left), v)
            return arm

        return arrays.in_turn(best, u, self.r.shape[-1], mask)

    def propensities(self, *, mask: Array | None = None) -> Array:
        """The probabilities of all arms, (..., K): exact, and 0 for arms that are not on offer."""
        return self.rule(self.r, self.means.tied, mask)

    def log_propensities(self, *, mask: Array | None = None) -> Array:
        """Their logarithms; -inf for an arm that is never shown."""
        if self.log_rule is None:
            return arrays.ln(arrays.numpy(self.propensities(mask=mask)))
        return self.log_rule(self.r, self.means.tied, mask)


def _uniform(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """n requests: v (n,), uniform."""
    return (rng.random(n),)


@dataclass(frozen=True)
class Softmax:
    """On any model. The lower the temperature, the greedier."""

    temperature: float = 0.1  # τ, in units of reward
    needs = frozenset({"mean", "predict"})
    draw = _uniform

    def __post_init__(self) -> None:
        errors.positive("temperature", self.temperature)

    def view(self, model, state, X: Array, *, t: int) -> Stated:
        """The softmax of the predicted rewards."""
        return Stated(model.predict(state, X), views.means(model, state, X), self._law, self._log_law)

    def _below(self, r: Array, mask: Array | None) -> Array:
        """(μ_i - max μ)/τ: at most 0, and 0 for the best."""
        xp = arrays.namespace(r)
        offered = r if mask is None else xp.where(mask, r, -xp.inf)
        with np.errstate(over="ignore"):  # -inf is what is meant there
            return (offered - xp.max(offered, axis=-1, keepdims=True)) / self.temperature

    def _law(self, r: Array, tied: Tied, mask: Array | None) -> Array:
        xp = arrays.namespace(r)
        share = xp.exp(self._below(r, mask))
        return share / xp.sum(share, axis=-1, keepdims=True)

    def _log_law(self, r: Array, tied: Tied, mask: Array | None) -> Array:
        xp, share = arrays.namespace(r), self._below(r, mask)
        return share - xp.log(xp.sum(xp.exp(share), axis=-1, keepdims=True))


@dataclass(frozen=True)
class SquareCB:
    """On any model. Rewards are meant to lie about in [0, 1]: γ counts in 1/reward.

    gamma : γ_1, and γ_t = γ_1 t^power. 10 and ½ are the defaults of Vowpal Wabbit (--gamma_scale, --gamma_exponent).
        Or "theory", γ = √(K T/(d log(1 + T/d) + log(2/δ))) with δ = 1/T, the choice of Foster, Rakhlin 2020 (Theorem 1)
        for a linear class of d parameters, whose regret in squares is d log(1 + T/d)
    """

    gamma: float | Literal["theory"] = 10.0
    power: float = 0.5
    horizon: int | None = None  # T of "theory"; None: t
    needs = frozenset({"mean", "predict"})
    draw = _uniform

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            if self.gamma != "theory":
                raise errors.unknown("schedule of gamma", self.gamma, names=("a number", "theory"))
        else:
            errors.within("gamma", self.gamma, 0, errors.LARGEST)
        errors.within("power", self.power, 0, 1)
        errors.at_least("horizon", self.horizon, 1, or_none=True)

    def view(self, model, state, X: Array, *, t: int) -> Stated:
        """Inverse gap weighting of the predicted rewards."""
        d = model.ambient(X.shape[-1])
        rule = functools.partial(self._law, t=t, d=d)
        return Stated(model.predict(state, X), views.means(model, state, X), rule)

    def _law(self, r: Array, tied: Tied, mask: Array | None, *, t: int, d: int) -> Array:
        xp, best = arrays.namespace(r), tied(mask)
        most = xp.max(xp.where(best, r, -xp.inf), axis=-1, keepdims=True)
        on = xp.ones(r.shape, dtype=xp.bool, device=arrays.device(r)) if mask is None else mask
        K = xp.sum(xp.astype(on, xp.float64), axis=-1, keepdims=True)
        if isinstance(self.gamma, str):
            T = self.horizon or t
            gamma = theory.squarecb_gamma(T, K=K, d=d, delta=1 / T)
        else:
            gamma = self.gamma * math.pow(t, self.power)
        share = 1 / (K + gamma * xp.clip(most - r, min=0.0))
        share = xp.where(on & ~best, share, 0.0)
        rest = 1 - xp.sum(share, axis=-1, keepdims=True)
        return xp.where(best, rest / xp.sum(xp.astype(best, xp.float64), axis=-1, keepdims=True), share)


def _placed(p: Array, v: Array) -> tuple[Array, Array]:
    """The arm in whose share v lies, and where in that share, in [0, 1): p (..., K), v (...) in [0, 1)."""
    xp = arrays.namespace(p)
    upto = xp.cumulative_sum(p, axis=-1)
    at = (v * upto[..., -1])[..., None]  # of the sum, which rounding may put off 1
    upto = xp.broadcast_to(upto, (*at.shape[:-1], p.shape[-1]))
    arm = xp.count_nonzero(upto <= at, axis=-1)  # an arm of probability 0 is passed with the one before it
    p = xp.broadcast_to(p, upto.shape)
    share = arrays.pick(p, arm, rank=0)
    inside = (at[..., 0] - (arrays.pick(upto, arm, rank=0) - share)) / share
    return arm, xp.clip(inside, min=0.0, max=1 - 2.0**-53)

"""Policies for networks whose scores are lines in a z of each arm's own, and the one whose chance is in its training.

    NeuralUCB        s_i = f(x_i) + b_i                       Zhou, Li, Gu 2020, diagonal form
    NeuralTS         s_i = f(x_i) + b_i z_i, z_i ~ N(0, 1)    Zhang, Zhou, Li, Gu 2021, diagonal form
                     b_i = √(λν Σ_p (∂f/∂θ_p)²/U_p),  U = λ + Σ (∂f/∂θ)² of the arms shown
    Sensitivity      s_i = f(x_i) + c z_i ‖∇_x f(x_i)‖/√t     DeepFP to first order: f made straight
    PerturbedLeader  s_i = f(x_i), f trained on noisy rewards  FTPL (Kveton et al. 2020)

A z for each arm leaves one integral of a product of normal cdfs, so the probabilities are exact. Those of FTPL are
spent in its training: they are of kind "none".
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dither import errors
from dither.arrays import Array
from dither.noise import Gaussian, Law
from dither.policies import scored, views
from dither.policies.scored import Deterministic, Scored


class Seen(NamedTuple):
    """What there is before chance enters."""

    lines: views.Lines
    law: Law  # of each z


class _Independent:
    """Lines that a z of each arm's own moves: what NeuralTS and Sensitivity share."""

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: z (n, K)."""
        return (rng.standard_normal((n, arms)),)

    def scores(self, view: Seen, z: Array) -> Array:
        """m + z b: (..., K)."""
        return views.scores(view.lines, z)

    def z(self, view: Seen, z: Array) -> Array:
        """z itself."""
        return z

    def best(self, view: Seen, z: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown: (...) integers."""
        return views.best(view.lines, z, view.law, u=u, coupled=False, mask=mask)

    def in_turn(self, view: Seen, z: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: u (..., k) -> (..., k) integers."""
        return views.in_turn(view.lines, z, view.law, u=u, coupled=False, mask=mask)

    def chosen(self, view: Seen, arm: Array, *, mask: Array | None = None) -> Array:
        """The probability of `arm`: exact."""
        return views.chosen(view.lines, arm, view.law, coupled=False, mask=mask)

    def propensities(self, view: Seen, *, mask: Array | None = None) -> Array:
        """The probabilities of all arms: exact."""
        return views.all_arms(view.lines, view.law, coupled=False, mask=mask)


def _bonus(policy, model, state, X: Array) -> views.Lines:
    """f and √(λν Σ (∂f/∂θ)²/U)."""
    f, norm = model.gradient_norm(state, X)
    return views.Lines(f, math.sqrt(model.lam * policy.nu) * norm)


@dataclass(frozen=True)
class NeuralTS(_Independent):
    """On any model with `gradient_norm`."""

    nu: float = 1e-5  # ν
    needs = frozenset({"mean", "gradient_norm"})

    def __post_init__(self) -> None:
        errors.within("nu", self.nu, 0, 1e12)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """The lines f + z b."""
        return Seen(_bonus(self, model, state, X), Gaussian().marginal(1))


@dataclass(frozen=True)
class Sensitivity(_Independent):
    """On any model with `sensitivity`."""

    c: float = 1.0
    needs = frozenset({"mean", "sensitivity"})

    def __post_init__(self) -> None:
        errors.within("c", self.c, 0, 1e7)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """The lines f + z c ‖∇f‖/√t."""
        f, slope = model.sensitivity(state, X)
        return Seen(views.Lines(f, self.c / math.sqrt(t) * slope), Gaussian().marginal(1))


@dataclass(frozen=True)
class NeuralUCB(Deterministic):
    """On any model with `gradient_norm`."""

    nu: float = 1e-5  # ν
    needs = frozenset({"mean", "gradient_norm"})

    def __post_init__(self) -> None:
        errors.within("nu", self.nu, 0, 1e12)

    def view(self, model, state, X: Array, *, t: int) -> Scored:
        """f + b: (..., K)."""
        m, b, _ = _bonus(self, model, state, X)
        return scored.plain(m + b)


@dataclass(frozen=True)
class PerturbedLeader:
    """On a network that is trained on rewards with noise (`Network(a=...)`)."""

    needs = frozenset({"mean", "reward_noise"})
    spent = True  # its chance is in the training: no draw of a decision shows its probability

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """Nothing."""
        return ()

    def view(self, model, state, X: Array, *, t: int) -> Array:
        """The means (..., K)."""
        return model.mean(state, X)

    def scores(self, view: Array) -> Array:
        """The view itself."""
        return view

"""Policies for networks: a bonus, lines with a z for each arm, and one whose chance is in the training.

    NeuralUCB        s_i = f(x_i) + b_i                       Zhou, Li, Gu 2020, diagonal form
    NeuralTS         s_i = f(x_i) + b_i z_i, z_i ~ N(0, 1)    Zhang, Zhou, Li, Gu 2021, diagonal form
                     b_i = √(λν Σ_p (∂f/∂θ_p)²/U_p),  U = λ + Σ (∂f/∂θ)² of the arms shown
    Sensitivity      s_i = f(x_i) + c z_i ‖∇_x f(x_i)‖/√t     DeepFP to first order: f replaced by its tangent
    PerturbedLeader  s_i = f(x_i), f trained on noisy rewards  FTPL (Kveton et al. 2020)

Where each arm has a z, a probability is one integral of a product of normal cdfs, so it is exact. The chance of FTPL is
spent in its training, so its probabilities are of kind "none".
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.base.arrays import Array
from dither.policies import views


def _each(policy, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """n requests: z (n, K)."""
    return (rng.standard_normal((n, arms)),)


@dataclass(frozen=True)
class NeuralTS:
    """On any model with `gradient_norm` and `lam`."""

    nu: float = 1e-5  # ν
    needs = frozenset({"mean", "gradient_norm", "lam"})
    draw = _each

    def __post_init__(self) -> None:
        errors.within("nu", self.nu, 0, 1e12)

    def view(self, model, state, X: Array, *, t: int) -> Any:
        """The lines f + z b, with a z for each arm."""
        f, norm = model.gradient_norm(state, X)
        return views.Lines(f, math.sqrt(model.lam * self.nu) * norm, coupled=False)


@dataclass(frozen=True)
class Sensitivity:
    """On any model with `sensitivity`."""

    c: float = 1.0
    needs = frozenset({"mean", "sensitivity"})
    draw = _each

    def __post_init__(self) -> None:
        errors.within("c", self.c, 0, 1e7)

    def view(self, model, state, X: Array, *, t: int) -> views.Lines:
        """The lines f + z c ‖∇f‖/√t."""
        f, slope = model.sensitivity(state, X)
        return views.Lines(f, self.c / math.sqrt(t) * slope, coupled=False)


@dataclass(frozen=True)
class NeuralUCB(NeuralTS):
    """On any model with `gradient_norm` and `lam`: the lines of `NeuralTS` at z = 1."""

    draw = views.nothing

    def view(self, model, state, X: Array, *, t: int) -> Any:
        """f + b: (..., K)."""
        f, b, *_ = super().view(model, state, X, t=t)
        return views.plain(f + b)


@dataclass(frozen=True)
class PerturbedLeader:
    """On a network that is trained on rewards with noise (`Network(a=...)`)."""

    needs = frozenset({"mean", "reward_noise"})
    spent = True  # the chance is in the training, so no draw of a decision shows its probability
    draw = views.nothing

    def view(self, model, state, X: Array, *, t: int) -> views.Drawn:
        """The means (..., K)."""
        m = model.mean(state, X)
        return views.Drawn(lambda: m)

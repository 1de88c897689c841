"""Thompson sampling (Agrawal, Goyal 2013; Abeille, Lazaric 2017): draw a parameter, act greedily on it.

    θ̃ ~ N(θ̂, c² V⁻¹) once a request,  s_i = x_i'θ̃
    sigma="auto": θ̃ ~ N(θ̂, c² V⁻¹(σ̂² Σ xx' + τ̂² λ² I)V⁻¹), with the σ̂ and τ̂ of what was learnt (`models/units.py`)
    c: as of `policies/scale.py`, or "anytime": √(9 d log(t/δ)), the scale of Agrawal and Goyal

No choice probability in closed form: propensities are Monte Carlo.
"""

import math
import operator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.policies import scale


class Posterior(NamedTuple):
    """What there is before chance enters."""

    model: Any
    state: Any
    X: Array
    c: Any  # σ c_t: a number or (...)
    drawn: str = "sample"  # the ability that draws θ̃ - θ̂

    def scores(self, eta: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        step, c = operator.methodcaller(self.drawn, self.state, eta)(self.model), self.c
        if getattr(c, "ndim", 0):
            c = arrays.over(c, step)
        return self.model.scores(self.state.theta + c * step, self.X)


@dataclass(frozen=True)
class ThompsonSampling:
    """On any model with `sample` and `scores`."""

    c: scale.Scale | Literal["anytime"] = 1.0
    sigma: scale.Sigma = 1.0  # R, sd of the reward noise; "auto": found (policies/scale.py)
    S: float = 1.0  # bound on ‖θ*‖, for the schedules
    horizon: int | None = None  # T, for the schedules; None: t
    delta: float | None = None  # δ of "theory" and "anytime"; None: 1/T

    def __post_init__(self) -> None:
        scale.check(self, 1.0 if self.c == "anytime" else self.c)
        scale.sigma(self, theorem=f"c={self.c!r}" if isinstance(self.c, str) else None)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        draws = {"error_sample", "perturb"} if scale.finds(self) else {"sample"}
        return scale.needs(self.c) | {"mean", "scores"} | draws

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: η (n, dim), or (n, 3 dim) where noise and shrinkage are drawn apart; dim is that of θ."""
        return (rng.standard_normal((n, 3 * dim if scale.finds(self) else dim)),)

    def view(self, model, state, X: Array, *, t: int) -> Posterior:
        """Everything that the scores of a draw need."""
        d = X.shape[-1]
        if self.c != "anytime":
            drawn = "error_sample" if scale.finds(self) else "sample"
            return Posterior(model, state, X, scale.value(self, model, state, t, d=d), drawn)
        d, delta, sigma = model.ambient(d), self.delta or 1 / (self.horizon or t), scale.number(self)
        return Posterior(model, state, X, sigma * math.sqrt(9 * d * math.log(max(2.0, t / delta))))

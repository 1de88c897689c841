"""Thompson sampling (Agrawal, Goyal 2013; Abeille, Lazaric 2017): draw a parameter, act greedily on it.

    θ̃ ~ N(θ̂, c² V⁻¹) once a request,  s_i = x_i'θ̃
    c: as of `policies/scale.py`, or "anytime": √(9 d log(t/δ)), the scale of Agrawal and Goyal

No choice probability in closed form: propensities are Monte Carlo.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.policies import scale, views


class Posterior(NamedTuple):
    """What there is before chance enters."""

    model: Any
    state: Any
    X: Array
    c: Any  # σ c_t: a number or (...)

    def scores(self, eta: Array) -> Array:
        """x_i'θ̃: (..., K)."""
        step, c = self.model.sample(self.state, eta), self.c
        if getattr(c, "ndim", 0):
            c = arrays.over(c, step)
        return self.model.scores(self.state.theta + c * step, self.X)


@dataclass(frozen=True)
class ThompsonSampling:
    """On any model with `sample` and `scores`."""

    c: scale.Scale | Literal["anytime"] = 1.0
    sigma: float = 1.0  # R, sd of the reward noise
    S: float = 1.0  # bound on ‖θ*‖, for the schedules
    horizon: int | None = None  # T, for the schedules; None: t
    delta: float | None = None  # δ of "theory" and "anytime"; None: 1/T
    draw = views.vector

    def __post_init__(self) -> None:
        scale.check(self, 1.0 if self.c == "anytime" else self.c)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        return scale.needs(self.c) | {"mean", "sample", "scores"}

    def view(self, model, state, X: Array, *, t: int) -> Posterior:
        """Everything that the scores of a draw need."""
        d = X.shape[-1]
        if self.c != "anytime":
            return Posterior(model, state, X, scale.value(self, model, state, t, d=d))
        d, delta = model.ambient(d), self.delta or 1 / (self.horizon or t)
        return Posterior(model, state, X, self.sigma * math.sqrt(9 * d * math.log(max(2.0, t / delta))))

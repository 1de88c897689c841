"""Feature perturbation (paper, Section 4, Algorithm 1; Appendix C, Algorithm C.2): jitter the features, act greedily.

    x̃_i = x_i + c w_i ζ/‖θ̂‖,  w_i = ‖x_i‖_{V⁻¹},  ζ ~ N(0, I)      the paper's form: form="vector"
    x̃_i'θ̂ = m_i + z c w_i,    m_i = x_i'θ̂,        z ~ N(0, 1)      the same, one scalar a request: form="scalar"

z = ζ'u with u = θ̂/‖θ̂‖ is N(0, 1) whatever u is. The paper's form divides by zero at θ̂ = 0; the scalar form is its
limit there, and the vector form takes u = (1, 0, ..., 0).

Coupled: one z for all arms (paper). Uncoupled: one z for each arm, which costs a factor log K in the bound (Appendix E,
footnote). Ball: ζ is uniform in the ball of radius √d (Appendix B). Custom: z has a law of your own, about which the
theory says nothing.
"""

import functools
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.noise import Ball, Custom, Gaussian
from dither.policies import scale, views

Form = Literal["scalar", "vector"]


@dataclass(frozen=True)
class FeaturePerturbation:
    """FP on any model with `mean` and `width`."""

    c: scale.Scale = 1.0  # c_t: a number, "oful", "theory" or a function of t (policies/scale.py)
    noise: Gaussian | Ball | Custom = Gaussian()
    coupled: bool = True  # one ζ for all arms
    form: Form = "scalar"  # "vector": draw ζ and project it
    sigma: scale.Sigma = 1.0  # sd of the reward noise; "auto": found (policies/scale.py)
    S: float = 1.0  # bound on ‖θ*‖, for the schedules
    horizon: int | None = None  # T, for the schedules; None: t
    delta: float | None = None  # δ of "theory"; None: 1/T

    def __post_init__(self) -> None:
        scale.check(self, self.c)
        if not isinstance(self.noise, (Gaussian, Ball, Custom)):
            raise ValueError(f"noise must be dither.noise.Gaussian(), Ball() or Custom(...), got {self.noise!r}")
        views.check(self.noise, name="noise", coupled=self.coupled)
        if self.form not in get_args(Form):
            raise ValueError(f"form must be 'scalar' or 'vector', got {self.form!r}")
        if self.form == "vector" and isinstance(self.noise, Custom):
            raise ValueError("form='vector' draws ζ, and a custom law is one of z: use form='scalar'")
        if self.form == "vector" and not self.coupled:
            raise ValueError("form='vector' draws one ζ for all arms; uncoupled perturbation needs form='scalar'")

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        more = {"flat"} if self.form == "vector" else set()
        return scale.needs(self.c) | {"mean", "width", scale.width(self)} | more

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: z (n,), uncoupled (n, K), or ζ (n, dim); dim is that of θ."""
        if self.form == "vector" and not isinstance(self.noise, Custom):
            return (self.noise.vectors(rng, n, dim),)
        return (self.noise.marginal(dim).draw(rng, (n,) if self.coupled else (n, arms)),)

    def rule(self, model, state, *, t: int, d: int) -> views.LineRule:
        """The scale c_t of the widths, and u where ζ must be projected on it."""
        if self._fixed is not None:
            return self._fixed
        by, norm = scale.value(self, model, state, t, d=d), scale.width(self)
        # Only the law of a ball depends on the dimension.
        law = self.noise.marginal(model.ambient(d) if isinstance(self.noise, Ball) else 1)
        along = direction(model.flat(state)) if self.form == "vector" else None
        return views.LineRule(by, norm, law, self.coupled, along)

    @functools.cached_property
    def _fixed(self) -> views.LineRule | None:
        """The rule where nothing that is learnt is in it; None where something is."""
        if self.form == "vector" or not isinstance(self.c, float | int) or isinstance(self.noise, Ball):
            return None
        by = scale.value(self, None, None, 1, d=1)
        return views.LineRule(by, scale.width(self), self.noise.marginal(1), self.coupled)

    def view(self, model, state, X: Array, *, t: int) -> views.Lines:
        """The lines m + z c_t w."""
        return views.of_rule(self.rule(model, state, t=t, d=X.shape[-1]), model, state, X)


def direction(theta: Array) -> Array:
    """u = θ̂/‖θ̂‖, and (1, 0, ..., 0) at θ̂ = 0: (..., d) -> (..., d)."""
    xp = arrays.namespace(theta)
    length = xp.linalg.vector_norm(theta, axis=-1, keepdims=True)
    first = xp.concat([xp.ones_like(theta[..., :1]), xp.zeros_like(theta[..., 1:])], axis=-1)
    return xp.where(length > 0, theta / xp.where(length > 0, length, xp.ones_like(length)), first)


def perturbed(X: Array, zeta: Array, *, w: Array, theta: Array) -> Array:
    """x̃_i = x_i + w_i ζ/‖θ̂‖, the features as the paper perturbs them; undefined at θ̂ = 0.

    X (..., K, d), ζ (..., d), w (..., K) the widths times c_t, theta (..., d) -> (..., K, d)
    """
    length = arrays.namespace(theta).linalg.vector_norm(theta, axis=-1, keepdims=True)
    return X + arrays.outer(w / length, zeta)

"""Optimism: a bonus without chance (LinUCB = OFUL; Abbasi-Yadkori, Pál, Szepesvári 2011).

s_i = m_i + β w_i
radius="constant"   β = √Λ S + R √(d log((1 + T/Λ)/δ)), ‖x‖ <= 1, δ = 1/T           `theory.ucb`
radius="oful"       β_t = √λ S + R √(2 log(1/δ) + log(det V/det λI))               `theory.self_normalised`
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arrays, errors, theory
from dither.arrays import Array
from dither.policies import scale

RADII = ("constant", "oful")


@dataclass(frozen=True)
class UCB:
    """On any model with `mean` and `width` (and `logdet` for radius="oful")."""

    beta: float | None = None  # β; None: the radius below
    radius: str = "constant"
    sigma: float = 1.0  # R, sd of the reward noise
    S: float | None = 1.0  # bound on ‖θ*‖; None: √d
    horizon: int | None = None  # T; None: t
    Lam: float = 1.0  # Λ in β
    sigma_again: bool = False  # σ w for w: the ancestor code counts σ twice (preset as_run)

    def __post_init__(self) -> None:
        check(self)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        return needs(self)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """Nothing."""
        return ()

    def view(self, model, state, X: Array, *, t: int) -> Array:
        """The scores m + β w (..., K)."""
        return model.mean(state, X) + scale.times(radius(self, model, state, t), model.width(state, X))

    def scores(self, view: Array) -> Array:
        """The view itself."""
        return view

    def propensities(self, view: Array, *, mask: Array | None = None) -> Array:
        """1 for the best arm; shared where arms tie."""
        return arrays.share(view, mask=mask)


def check(policy: Any) -> None:
    """Refuse settings of UCB or RandUCB that make no sense."""
    if policy.radius not in RADII:
        raise errors.unknown("radius", policy.radius, known=RADII)
    if policy.beta is not None:
        errors.within("beta", policy.beta, 0, scale.LARGEST)
    for name, number in (("sigma", policy.sigma), ("Lam", policy.Lam), ("S", policy.S)):
        if number is not None:
            errors.positive(name, number)
    if policy.horizon is not None:
        errors.at_least("horizon", policy.horizon, 1)


def needs(policy: Any) -> frozenset[str]:
    """What UCB or RandUCB asks of a model."""
    return frozenset({"mean", "width"} | ({"logdet"} if policy.radius == "oful" else set()))


def radius(policy: Any, model: Any, state: Any, t: int) -> Any:
    """β of UCB or RandUCB: a number, or an array (...) where it depends on the data."""
    twice = policy.sigma if policy.sigma_again else 1.0
    if policy.beta is not None:
        return policy.beta * twice
    d, T = model.ambient(state.theta.shape[-1]), policy.horizon or t
    S = math.sqrt(d) if policy.S is None else policy.S
    if policy.radius == "constant":
        return theory.ucb(T, d=d, lam=policy.Lam, S=S, R=policy.sigma, delta=1 / T) * twice
    logdet = model.logdet(state)
    return theory.self_normalised(logdet, lam=model.lam, S=S, R=policy.sigma, delta=1 / T) * twice

"""Randomised UCB (Vaswani, Mehrabian, Durand, Kveton 2020): one random multiple of the bonus for all arms.

    s_i = m_i + a β w_i,   a from 20 points on [0, 1] with half-Gaussian weights, β the radius of LinUCB

Coupled: one a for all arms. Uncoupled: one for each, with exact probabilities all the same (sums of products).
With a ~ N(0, 1) and β = c it is LinFP (paper, Appendix A): `RandUCB(law=noise.Gaussian(), beta=c)`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dither import noise
from dither.arrays import Array
from dither.policies import optimism, views


class Seen(NamedTuple):
    """What there is before chance enters."""

    lines: views.Lines
    law: noise.Points | noise.Law  # of a


@dataclass(frozen=True)
class RandUCB:
    """On any model with `mean` and `width`."""

    law: noise.Points | noise.Gaussian | noise.Ball | noise.Custom = noise.half_gaussian()  # of a
    beta: float | None = None  # β; None: the radius below
    radius: str = "constant"  # as of `optimism.UCB`
    sigma: float = 1.0  # R, sd of the reward noise
    S: float | None = 1.0  # bound on ‖θ*‖; None: √d
    horizon: int | None = None  # T; None: t
    Lam: float = 1.0  # Λ in β
    sigma_again: bool = False  # σ w for w (preset as_run)
    kappa: float = 0.25  # κ of radius="ucb-glm"
    gram: bool = False  # widths in V, as RandUCBLog has them
    coupled: bool = True  # one a for all arms

    def __post_init__(self) -> None:
        if not isinstance(self.law, (noise.Points, noise.Gaussian, noise.Ball, noise.Custom)):
            raise ValueError(f"law must be one of dither.noise: Points, Gaussian, Ball or Custom; got {self.law!r}")
        views.check(self.law, name="law", coupled=self.coupled)
        optimism.check(self)

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of a model."""
        return optimism.needs(self)

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """n requests: a (n,), uncoupled (n, K)."""
        return (self._marginal(dim).draw(rng, (n,) if self.coupled else (n, arms)),)

    def view(self, model, state, X: Array, *, t: int) -> Seen:
        """The lines m + a β w."""
        seen = views.seen(model, state, X, by=optimism.radius(self, model, state, t), gram=self.gram)
        return Seen(seen, self._marginal(model.ambient(state.theta.shape[-1])))

    def scores(self, view: Seen, a: Array) -> Array:
        """m + a β w: (..., K)."""
        return views.scores(view.lines, a)

    def z(self, view: Seen, a: Array) -> Array:
        """a itself."""
        return a

    def best(self, view: Seen, a: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown: (...) integers."""
        return views.best(view.lines, a, view.law, u=u, coupled=self.coupled, mask=mask)

    def in_turn(self, view: Seen, a: Array, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: u (..., k) -> (..., k) integers."""
        return views.in_turn(view.lines, a, view.law, u=u, coupled=self.coupled, mask=mask)

    def decide(self, view: Seen, a: Array, *, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm and its probability for one request at once."""
        return views.decide(view.lines, a, view.law, u=u, coupled=self.coupled, mask=mask)

    def chosen(self, view: Seen, arm: Array, *, mask: Array | None = None) -> Array:
        """The probability of `arm`: exact."""
        return views.chosen(view.lines, arm, view.law, coupled=self.coupled, mask=mask)

    def propensities(self, view: Seen, *, mask: Array | None = None) -> Array:
        """The probabilities of all arms: exact."""
        return views.all_arms(view.lines, view.law, coupled=self.coupled, mask=mask)

    def log_propensities(self, view: Seen, *, mask: Array | None = None) -> Array:
        """Their logarithms."""
        return views.all_arms(view.lines, view.law, coupled=self.coupled, mask=mask, log=True)

    def as_lines(self, view: Seen) -> tuple[views.Lines, noise.Points | noise.Law] | None:
        """The lines and the law of the one a that moves them; None uncoupled."""
        return (view.lines, view.law) if self.coupled else None

    def _marginal(self, dim: int) -> noise.Points | noise.Law:
        return self.law if isinstance(self.law, noise.Points) else self.law.marginal(dim)

"""Randomised UCB (Vaswani, Mehrabian, Durand, Kveton 2020): one random multiple of the bonus for all arms.

    s_i = m_i + a β w_i,   a from 20 points on [0, 1] with half-Gaussian weights, β the radius of LinUCB

Coupled: one a for all arms. Uncoupled: one a for each arm; the probabilities are exact too (sums of products).
With a ~ N(0, 1) and β = c it is LinFP (paper, Appendix A): `RandUCB(law=noise.Gaussian(), beta=c)`.
"""

from dataclasses import dataclass

import numpy as np

from dither import noise
from dither.base.arrays import Array
from dither.policies import optimism, scale, views


@dataclass(frozen=True)
class RandUCB:
    """On any model with `mean` and `width`."""

    law: noise.Points | noise.Gaussian | noise.Ball | noise.Custom = noise.half_gaussian()  # of a
    beta: float | None = None  # β; None: the radius below
    radius: optimism.Radius = "constant"  # as of `optimism.UCB`
    sigma: scale.Sigma = 1.0  # R, sd of the reward noise; "auto", beside a beta: found (policies/scale.py)
    S: float | None = 1.0  # bound on ‖θ*‖; None: √d
    horizon: int | None = None  # T; None: t
    Lam: float = 1.0  # Λ in β
    sigma_again: bool = False  # σ w in place of w (preset as_run)
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

    def rule(self, model, state, *, t: int, d: int) -> views.LineRule:
        """The scale β of the widths, and the law of a."""
        d = model.ambient(d)
        by, norm = optimism.radius(self, model, state, t, d=d), optimism.norm(self)
        return views.LineRule(by, norm, self._marginal(d), self.coupled)

    def view(self, model, state, X: Array, *, t: int) -> views.Lines:
        """The lines m + a β w."""
        return views.of_rule(self.rule(model, state, t=t, d=X.shape[-1]), model, state, X)

    def _marginal(self, dim: int) -> noise.Points | noise.Law:
        return self.law if isinstance(self.law, noise.Points) else self.law.marginal(dim)

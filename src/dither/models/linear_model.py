"""What linear models share, whatever they take for θ: means x'θ behind a link, and widths by a factor of a matrix.

    m_i = x_i'θ,   E r_i = μ(m_i),   w_i = ‖x_i‖_{A⁻¹} = ‖F'x_i‖,   A⁻¹ = FF'

The state has `theta` (..., d), `F` (..., d, d) and, where rounding is counted as `digits` does it, `lost`.
"""

import functools
import math
from typing import Any

import numpy as np

from dither import links
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models.digits import LOST, MOST, WORST, Rounding
from dither.models.model import Model


class LinearModel(Model):
    """A model whose state has θ and a factor of the matrix of its widths; V = A unless it says otherwise."""

    def flat(self, state: Any) -> Array:
        """θ as one vector: (..., d)."""
        return state.theta

    def scores(self, theta: Array, X: Array) -> Array:
        """x_i'θ for any θ (..., d): X (..., K, d) -> (..., K)."""
        return arrays.dot(X, theta)

    def mean(self, state: Any, X: Array) -> Array:
        """m_i = x_i'θ, before the link: X (..., K, d) -> (..., K)."""
        return arrays.dot(X, state.theta)

    def mean_at(self, state: Any, X: Array) -> Array:
        """The means at one row for each arm: X (..., K, d) -> (..., K)."""
        return self.mean(state, X)

    def predict(self, state: Any, X: Array) -> Array:
        """μ(x_i'θ), the expected rewards: X (..., K, d) -> (..., K)."""
        return self.function.mu(self.mean(state, X))

    def width(self, state: Any, X: Array) -> Array:
        """w_i = ‖x_i‖ in the norm of A⁻¹: X (..., K, d) -> (..., K)."""
        return arrays.norms(X @ state.F)

    def gram_width(self, state: Any, X: Array) -> Array:
        """‖x_i‖ in the norm of V⁻¹: X (..., K, d) -> (..., K)."""
        return self.width(state, X)

    def sample(self, state: Any, eta: Array) -> Array:
        """F η ~ N(0, A⁻¹) for η ~ N(0, I): (..., d) -> (..., d)."""
        return arrays.dot(state.F, eta)

    def rounding(self, state: Any) -> Rounding:
        """What rounding may have done to means and widths: numbers for one bandit, (..., 1) with leading axes.

        `lost` is (..., 3) of a factor that is made anew from sums (`fading`), else as of `digits`.
        """
        lost = state.lost
        sums = lost.shape[-1] == 3
        if lost.ndim == 1 and type(lost) is np.ndarray:
            if sums:
                return Rounding(LOST * lost.item(2), min(LOST * lost.item(1), WORST))
            D, P, q, Q = lost[:4].tolist()
            return Rounding(LOST * math.sqrt(q + Q), min(LOST * math.sqrt(D + P), MOST))
        xp, most = arrays.namespace(lost), WORST if sums else MOST
        if sums:
            q, D = lost[..., 2:3], lost[..., 1:2]
        else:
            q, D = xp.sqrt(lost[..., 2:3] + lost[..., 3:4]), xp.sqrt(lost[..., 0:1] + lost[..., 1:2])
        omega = LOST * D
        return Rounding(LOST * q, xp.where(omega < most, omega, xp.full_like(omega, most)))

    def reach(self, state: Any) -> Array:
        """No width is larger than this times ‖x‖, (...)."""
        return arrays.namespace(state.F).sqrt(arrays.gram_trace(state.F))


class LinkedModel(LinearModel):
    """A linear model behind the link that it names."""

    link: links.Name

    @functools.cached_property
    def function(self) -> links.Link:
        """μ and its kin."""
        return links.find(self.link)

    @functools.cached_property
    def support(self) -> tuple[float, float]:
        """Between which the rewards lie."""
        return self.function.support


def penalty(name: str, value: Any) -> None:
    """Refuse a λ that float64 cannot hold beside what is learnt."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number here, got {value!r}: 'auto' is for Ridge, Diagonal and GLM")
    errors.positive(name, value)
    errors.within(name, value, 1e-100, 1e100)

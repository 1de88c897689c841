"""What models with one parameter θ and means x'θ share, whatever they take for θ."""

from typing import Any

from dither.base import arrays
from dither.base.arrays import Array


class OneTheta:
    """The calls of a model whose state has `theta` (..., d)."""

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

"""Ridge regression that keeps the diagonal of V alone: for d above some thousands, O(d) in time and memory.

    v = λ + Σ x²  (entry by entry)      θ̂ = Σ r x / v      w_i = √(Σ x_i²/v)

An approximation: features are treated as if they were uncorrelated. Policies see the same abilities as of `Ridge`,
but for `history`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import array_api_compat.numpy

from dither import arrays, errors, links
from dither.arrays import Array
from dither.models import digits


class DiagonalState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    v: Array  # (..., d)  λ + Σ x²; feature²
    b: Array  # (..., d)  Σ r x; reward times feature
    theta: Array  # (..., d)  θ̂ = b/v
    norms: Array  # (..., 4)  Σ ‖x‖², Σ ‖x‖ |r|, Σ r², the number of observations


@dataclass(frozen=True)
class Diagonal:
    """Linear regression with penalty λ‖θ‖² and a diagonal V, for X (..., K, d)."""

    lam: float = 1e-4  # λ; feature²
    abilities = frozenset(
        {
            "mean",
            "mean_at",
            "width",
            "sample",
            "scores",
            "flat",
            "lam",
            "logdet",
            "lipschitz",
            "gram_width",
            "perturb",
            "predict",
            "rounding",
            "reach",
        }
    )
    function = links.LINKS["identity"]  # μ and its kin
    support = function.support  # between which the rewards lie

    def __post_init__(self) -> None:
        errors.positive("lam", self.lam)
        errors.within("lam", self.lam, 1e-100, 1e100)

    def check(self, state: DiagonalState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        if float(arrays.namespace(state.v).min(state.v)) <= 0:
            raise ValueError("its v must be above 0")

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> DiagonalState:
        """V = λI, θ̂ = 0, with leading axes `batch`."""
        v, b, theta = (xp.zeros((*batch, dim), dtype=xp.float64, device=device) for _ in range(3))
        return DiagonalState(v + float(self.lam), b, theta, xp.zeros((*batch, 4), dtype=xp.float64, device=device))

    def update(self, state: DiagonalState, x: Array, r: Array, *, weight: Array | None = None) -> DiagonalState:
        """One more observation: x (..., d), r (...), weight (...)."""
        return self.update_many(
            state, x[..., None, :], r[..., None], weight=None if weight is None else weight[..., None]
        )

    def update_many(self, state: DiagonalState, X: Array, r: Array, *, weight: Array | None = None) -> DiagonalState:
        """n observations at once: X (..., n, d), r (..., n), weight (..., n)."""
        xp = arrays.namespace(X)
        if weight is not None:
            X, r = X * xp.sqrt(weight)[..., None], r * xp.sqrt(weight)
        v = state.v + xp.sum(X * X, axis=-2)
        b = state.b + xp.sum(X * r[..., None], axis=-2)
        square = xp.vecdot(X, X)
        paid, n = xp.sum(xp.sqrt(square) * xp.abs(r), axis=-1), float(X.shape[-2])
        sums = [xp.sum(square, axis=-1), paid, xp.vecdot(r, r), xp.full_like(paid, n)]
        norms = xp.stack(sums, axis=-1)
        return DiagonalState(v, b, b / v, state.norms + norms)

    def flat(self, state: DiagonalState) -> Array:
        """θ̂ as one vector: (..., d)."""
        return state.theta

    def scores(self, theta: Array, X: Array) -> Array:
        """x_i'θ for any θ (..., d): X (..., K, d) -> (..., K)."""
        return arrays.dot(X, theta)

    def mean(self, state: DiagonalState, X: Array) -> Array:
        """m_i = x_i'θ̂: X (..., K, d) -> (..., K)."""
        return arrays.dot(X, state.theta)

    def mean_at(self, state: DiagonalState, X: Array) -> Array:
        """The means at one row for each arm: X (..., K, d) -> (..., K)."""
        return self.mean(state, X)

    def width(self, state: DiagonalState, X: Array) -> Array:
        """w_i = √(Σ x_i²/v): X (..., K, d) -> (..., K)."""
        return arrays.norms(X / arrays.namespace(X).sqrt(state.v)[..., None, :])

    def rounding(self, state: DiagonalState) -> digits.Rounding:
        """What rounding may have done to means and widths: v, b and their ratio are sums of n and of d terms."""
        xp, d = arrays.namespace(state.v), state.v.shape[-1]
        square, _, paid, n = (state.norms[..., k : k + 1] for k in range(4))
        length = xp.linalg.vector_norm(state.theta, axis=-1, keepdims=True)
        root = digits.SAFETY * digits.UNIT * xp.sqrt(n + d)
        rho = root * (xp.sqrt(d * paid) + xp.sqrt(d * self.lam + square) * length)
        return digits.Rounding(rho, root)

    def reach(self, state: DiagonalState) -> Array:
        """No width is larger than this times ‖x‖, (...)."""
        xp = arrays.namespace(state.v)
        return 1 / xp.sqrt(xp.min(state.v, axis=-1))

    def gram_width(self, state: DiagonalState, X: Array) -> Array:
        """The width: V is the matrix of this model."""
        return self.width(state, X)

    def predict(self, state: DiagonalState, X: Array) -> Array:
        """The expected rewards, which are the means here: X (..., K, d) -> (..., K)."""
        return self.mean(state, X)

    def sample(self, state: DiagonalState, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., d) -> (..., d)."""
        return eta / arrays.namespace(eta).sqrt(state.v)

    def logdet(self, state: DiagonalState) -> Array:
        """log(det V/det λI), (...)."""
        xp = arrays.namespace(state.v)
        return xp.sum(xp.log(state.v / self.lam), axis=-1)

    def lipschitz(self, state: DiagonalState, S: float) -> Array:
        """L_t = Σ ‖x‖ (S‖x‖ + |r|) for ‖θ‖ <= S, (...)."""
        return S * state.norms[..., 0] + state.norms[..., 1]

    def perturb(self, state: DiagonalState, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I), of which the first half is used: (..., 2d) -> (..., d)."""
        eta = eta[..., : state.v.shape[-1]]
        return eta * arrays.namespace(eta).sqrt(state.v - self.lam) / state.v

"""Ridge regression that keeps the diagonal of V alone: for d above some thousands, O(d) in time and memory.

    v = λ + Σ x²  (entry by entry)      θ̂ = Σ r x / v      w_i = √(Σ x_i²/v)

An approximation: features are treated as if they were uncorrelated. Policies see the same abilities as of `Ridge`,
but for `history`. With `discount` or `half_life` older observations count for less (`forgetting`): v - λ fades, and so
do all sums.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import digits, forgetting, penalty, units
from dither.models.forgetting import Forgetting
from dither.models.model import of_one
from dither.models.penalty import Penalty
from dither.models.units import MeasuringModel


class DiagonalState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    v: Array  # (..., d)  λ + Σ x²; feature²
    b: Array  # (..., d)  Σ r x; reward times feature
    theta: Array  # (..., d)  θ̂ = b/v
    norms: Array  # (..., 4)  Σ ‖x‖², Σ ‖x‖ |r|, Σ r², the number of observations
    now: Array | None  # (...)  the time, where there is a clock
    units: Any = None  # `Units`, where a setting or a policy asked for them; E is Σ ee'/s in the order of the rows


@dataclass(frozen=True)
class Diagonal(Forgetting, MeasuringModel):
    """Linear regression with penalty λ‖θ‖² and a diagonal V, for X (..., K, d).

    lam, centre, reward_range : as of `Ridge`
    discount, half_life : how older observations count (`models/forgetting.py`). A window would keep rows of d numbers,
        and is refused
    """

    lam: Penalty = 1e-4
    discount: float = 1.0
    window: int | None = None
    half_life: float | None = None
    centre: bool = False
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        penalty.check("lam", self.lam)
        forgetting.check(self)
        units.check(self)
        if self.window is not None:
            raise ValueError(
                f"a diagonal model keeps no rows, and window={self.window} needs them: "
                f"discount={1 - 1 / self.window:g} remembers about as many observations"
            )

    def check(self, state: DiagonalState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        if float(arrays.namespace(state.v).min(state.v)) <= 0:
            raise ValueError("its v must be above 0")

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> DiagonalState:
        """V = λI, θ̂ = 0, with leading axes `batch`."""
        v, b, theta = (xp.zeros((*batch, dim), dtype=xp.float64, device=device) for _ in range(3))
        norms = xp.zeros((*batch, 4), dtype=xp.float64, device=device)
        now = None if self.half_life is None else norms[..., 0] + forgetting.BEFORE
        lam = 1.0 if self.lam == penalty.AUTO else float(self.lam)
        return DiagonalState(
            v + lam,
            b,
            theta,
            norms,
            now,
            units.init(self, theta, needs=needs, ones=True) if self.measures(needs) else None,
        )

    def absorbed(self, state: DiagonalState, x: Array, r: Array, **settings: Any) -> DiagonalState:
        """`update` without what slots share."""
        return of_one(functools.partial(self.absorbed_many, state), x, r, settings)

    def absorbed_many(  # type: ignore[override]  # a state of another kind is none of its own
        self, state: DiagonalState, X: Array, r: Array, *, weight: Array | None = None, at: Array | None = None
    ) -> DiagonalState:
        """`update_many` without what slots share."""
        xp = arrays.namespace(X)
        if self.forgets and X.shape[-2]:
            left, weight, now = forgetting.fade(self, r, weight=weight, at=at, now=state.now)
            state = self._faded(state, left, now)
        y = None if state.units is None else units.targets(self, state.units, r)
        if weight is not None:
            root = xp.sqrt(weight)
            X, r, y = X * root[..., None], r * root, None if y is None else y * root[..., None]
        square = xp.vecdot(X, X)
        paid, n = xp.sum(xp.sqrt(square) * xp.abs(r), axis=-1), float(X.shape[-2])
        sums = [xp.sum(square, axis=-1), paid, xp.vecdot(r, r), xp.full_like(paid, n)]
        norms = state.norms + xp.stack(sums, axis=-1)
        if y is not None:
            return self._measured(state, X, y, norms, weight)
        v = state.v + xp.sum(X * X, axis=-2)
        b = state.b + xp.sum(X * r[..., None], axis=-2)
        return DiagonalState(v, b, b / v, norms, state.now)

    def _measured(self, state: DiagonalState, X: Array, y: Array, norms: Array, weight: Array | None) -> DiagonalState:
        """After the rows X (..., n, d) in turn, with targets y (..., n, J): the errors ahead depend on their order."""
        v, of_units = state.v, state.units
        for k in range(X.shape[-2]):
            x, u = X[..., k, :], X[..., k, :] / v
            s = 1 + arrays.inner(x, u)
            omega = None if weight is None else weight[..., k]
            grown, _ = units.learnt(of_units, y[..., k, :], x=x, u=u, s=s, weight=omega)
            before, v = v, v + x * x
            B = of_units.Theta * before[..., None, :] + arrays.outer(y[..., k, :], x)
            of_units = grown._replace(Theta=B / v[..., None, :])
        theta = units.provisional(of_units)
        return DiagonalState(v, theta * v, theta, norms, state.now, of_units)

    def rescaled(self, state: DiagonalState, before: Any) -> DiagonalState:
        """The state with the λ of its units in place of the one before."""
        of_units, lam = state.units, _row(self.lam_of(state))
        v = state.v - _row(before) + lam
        v = arrays.namespace(v).where(v < lam, lam, v)
        of_units = of_units._replace(Theta=of_units.Theta * (state.v / v)[..., None, :])
        theta = units.provisional(of_units)
        return state._replace(v=v, b=theta * v, theta=theta, units=of_units)

    def inverted(self, state: DiagonalState, b: Array) -> Array:
        """V⁻¹b, (..., d)."""
        return b / state.v

    def squared_width(self, state: DiagonalState, X: Array) -> Array:
        """‖x_i‖² in the norm of V⁻¹: X (..., K, d) -> (..., K)."""
        return arrays.namespace(X).vecdot(X, X / state.v[..., None, :])

    def advanced(self, state: DiagonalState, at: Array) -> DiagonalState:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        now = arrays.namespace(state.v).maximum(state.now, at)
        return self.agreed(self._faded(state, forgetting.halved(self, now - state.now), now))

    def _faded(self, state: DiagonalState, left: Array | float, now: Array | None) -> DiagonalState:
        """The state with what was known left times as heavy, left (...)."""
        lam, of_units = _row(self.lam_of(state)), state.units
        v, b, norms = (forgetting.times(left, A) for A in (state.v - lam, state.b, state.norms))
        more = arrays.beside(np.array([0.0, 0.0, 0.0, 1.0]), norms)  # it rounds v as a row does
        v = lam + v
        if of_units is not None:
            B = forgetting.times(left, of_units.Theta * state.v[..., None, :])
            of_units = of_units._replace(Theta=B / v[..., None, :], sums=forgetting.times(left, of_units.sums))
        return DiagonalState(v, b, b / v, norms + more, now, of_units)

    def width(self, state: DiagonalState, X: Array) -> Array:
        """w_i = √(Σ x_i²/v): X (..., K, d) -> (..., K)."""
        return arrays.norms(X / arrays.namespace(X).sqrt(state.v)[..., None, :])

    def rounding_of(self, state: DiagonalState) -> digits.Rounding:
        """What rounding may have done to means and widths: v, b and their ratio are sums of n and of d terms.

        θ̂_i is off by a share of Σ |r x_i|/v_i and of itself, so that x'θ̂ is off by a share of w √(Σ v θ̂²).
        """
        xp, d = arrays.namespace(state.v), state.v.shape[-1]
        paid, n = state.norms[..., 2:3], state.norms[..., 3:4]
        length = xp.linalg.vector_norm(xp.sqrt(state.v) * state.theta, axis=-1, keepdims=True)
        root = digits.SAFETY * digits.UNIT * xp.sqrt(n + d)
        rho = root * (xp.sqrt(d * paid) + length)
        return digits.Rounding(rho, root)

    def reach(self, state: DiagonalState) -> Array:
        """No width is larger than this times ‖x‖, (...)."""
        xp = arrays.namespace(state.v)
        return 1 / xp.sqrt(xp.min(state.v, axis=-1))

    def sample(self, state: DiagonalState, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., d) -> (..., d)."""
        return eta / arrays.namespace(eta).sqrt(state.v)

    def logdet(self, state: DiagonalState) -> Array:
        """log(det V/det λI), (...)."""
        xp = arrays.namespace(state.v)
        return xp.sum(xp.log(state.v / _row(self.lam_of(state))), axis=-1)

    def lipschitz(self, state: DiagonalState, S: float) -> Array:
        """L_t = Σ ‖x‖ (S‖x‖ + |r|) for ‖θ‖ <= S, (...)."""
        return S * state.norms[..., 0] + state.norms[..., 1]

    def perturb(self, state: DiagonalState, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I), of which the first half is used: (..., 2d) -> (..., d)."""
        eta = eta[..., : state.v.shape[-1]]
        return eta * arrays.namespace(eta).sqrt(state.v - _row(self.lam_of(state))) / state.v


def _row(x: Any) -> Any:
    """x, a number or (...), as it meets rows (..., d)."""
    return x[..., None] if getattr(x, "ndim", 0) else x

"""Ridge regression by its square root: V⁻¹ = F F' is kept as the factor F (Potter's square-root recursion).

    V = λI + Σ x x'        θ̂ = V⁻¹ Σ r x        w_i = ‖x_i‖_{V⁻¹} = ‖F'x_i‖        θ̂ + c F η ~ N(θ̂, c² V⁻¹)
    one more (x, r):  p = F'x,  u = F p,  s = 1 + p'p,  F ← F - u p'/(s + √s),  θ̂ ← θ̂ + u (r - x'θ̂)/s

The inverse itself, kept by rank-one updates, loses as many digits as s has, and its quadratic form may come out
negative; the factor loses half as many, a width is a length and a sample needs no Cholesky step. Nothing has to be made
anew: after 200,000 rounds the widths are right to 4e-15 (docs/decisions.md has the measurements). A weight ω
counts an observation as √ω x, √ω r.

With `discount`, `window` or `half_life` older observations count for less (`forgetting`). No update of F in O(d²) is
exact then: `fading` has the state, and makes F anew from sums.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import digits, factor, fading, forgetting, penalty, statistics, stepped, units, window
from dither.models.forgetting import Forgetting
from dither.models.model import Factors, abilities_of
from dither.models.penalty import Penalty
from dither.models.units import MeasuringModel

BULK = 1e6  # x'V⁻¹x above which observations are taken one by one: QR keeps fewer digits than the recursion
MEMORY = 2**28  # bytes that F may take


class RidgeState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = F F'; 1/feature
    theta: Array  # (..., d)  θ̂; reward per feature
    logdet: Array | None  # (...)  log(det V/det λI), where a policy asked for it
    extra: statistics.Extra | None  # what a policy asked for besides
    lost: Array  # (..., 5 + 4d)  what rounding has done: `digits.grown`
    units: Any = None  # `Units`, where a setting or a policy asked for them


class Recursion:
    """How `Ridge` learns where nothing is forgotten."""

    def init(self, model: Any, zeros: Array, F: Array, *, lam: float, needs: frozenset[str]) -> RidgeState:
        """Before the first observation, for θ̂ = zeros (..., d) and F = I/√λ."""
        logdet = arrays.namespace(zeros).zeros_like(zeros[..., 0]) if "logdet" in needs else None
        extra = statistics.init(needs - {"gram_width"}, zeros, lam=lam)
        of_units = units.init(model, zeros, needs=needs) if model.measures(needs) else None
        return RidgeState(F, zeros, logdet, extra, digits.init(zeros, lam=lam), of_units)

    def check(self, state: RidgeState) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        if state.extra is not None:
            statistics.check(state.extra)

    def update(
        self, model: Any, state: RidgeState, x: Array, r: Array, *, weight: Array | None = None, own: bool = False
    ) -> RidgeState:
        """One more observation: x (..., d), r (...), weight (...). Nothing is overwritten, whoever owns the state."""
        of_units = state.units
        extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
        y = None if of_units is None or of_units.Theta is None else _targets(model, state, r, weight)
        omega = weight
        if weight is not None:
            x, r = statistics.weighted(x, weight), statistics.weighted(r, weight, last=False)
        learnt = stepped.learnt(state, x, r, weight) if y is None and x.ndim == 1 else None
        if learnt is not None:
            F, theta, lost, sums, s = learnt
            if of_units is not None:
                of_units = units.Units(None, sums, of_units.constant, of_units.shared)
            logdet = None if state.logdet is None else state.logdet + np.log(s)
            parts = F, theta, logdet, extra, lost, of_units
            return tuple.__new__(RidgeState, parts)  # past the constructor, a function of Python
        p = arrays.dot(state.F.mT, x)
        u = arrays.dot(state.F, p)
        s = 1 + arrays.inner(p, p)
        F = factor.grown(state.F, x, p=p, u=u, s=s, lam=model.lam_of(state))
        if y is None:
            e = r - arrays.inner(x, state.theta)
            theta = state.theta + u * (e / s)[..., None]
            if of_units is not None:
                of_units = units.counted(of_units, x=x, r=r, e=e, s=s, weight=omega)
        else:
            of_units, each = units.learnt(state.units, y, x=x, u=u, s=s, weight=omega)
            theta, e, r = units.provisional(of_units), units.magnitude(of_units, each), units.magnitude(of_units, y)
        logdet = None if state.logdet is None else state.logdet + arrays.namespace(x).log(s)
        lost = digits.grown(state.lost, x=x, s=s, e=e, r=r, F=F, theta=theta)
        return RidgeState(F, theta, logdet, extra, lost, of_units)

    def update_many(
        self, model: Any, state: RidgeState, X: Array, r: Array, *, weight: Array | None = None, own: bool = False
    ) -> RidgeState:
        """n observations at once: X (..., n, d), r, weight (..., n).

        With P = X F and QR of [[I, 0], [P, y - Xθ̂]] = Q [[R, z], [0, T]]: F ← F R⁻¹, θ̂ ← θ̂ + F R⁻¹ z, E ← E + T'T.
        """
        xp, done, n = arrays.namespace(X), 0, X.shape[-2]
        P, step = statistics.weighted(X, weight) @ state.F, 2 * X.shape[-1]
        while done < n and arrays.some(xp.vecdot(P, P) > BULK):
            for k in range(done, min(done + step, n)):
                part = None if weight is None else weight[..., k]
                state = self.update(model, state, X[..., k, :], r[..., k], weight=part)
            done, step = min(done + step, n), 2 * step
            rest = None if weight is None else weight[..., done:]
            P = statistics.weighted(X[..., done:, :], rest) @ state.F
        X, r, weight = X[..., done:, :], r[..., done:], None if weight is None else weight[..., done:]
        extra = None if state.extra is None else statistics.update_many(state.extra, X, r, weight=weight)
        y = _targets(model, state, r, weight)
        X, r = statistics.weighted(X, weight), statistics.weighted(r, weight, last=False)
        d = X.shape[-1]
        e = (r - arrays.dot(X, state.theta))[..., None] if y is None else y - X @ state.units.Theta.mT
        data = xp.concat([P, e], axis=-1)
        top = xp.zeros((*data.shape[:-2], d, data.shape[-1]), dtype=xp.float64, device=arrays.device(X))
        top = top + xp.eye(d, data.shape[-1], dtype=xp.float64, device=arrays.device(X))
        R = xp.linalg.qr(xp.concat([top, data], axis=-2), mode="reduced")[1]
        T, z, R = R[..., d:, d:], R[..., :d, d:], R[..., :d, :d]
        turned = xp.sign(xp.linalg.diagonal(R))  # QR leaves the signs open: no data must mean R = I
        z, R = z * turned[..., None], R * turned[..., None]
        step = state.F @ xp.linalg.solve(R, z)
        of_units = state.units
        if of_units is not None:
            shown = r[..., None] if y is None else y
            of_units = units.learnt_many(of_units, shown, X=X, step=step, E=T.mT @ T, weight=weight)
        if y is None:
            theta, e = state.theta + step[..., 0], e[..., 0]
        else:
            theta, e, r = units.provisional(of_units), units.magnitude(of_units, e), units.magnitude(of_units, y)
        F = xp.linalg.solve(R.mT, state.F.mT).mT
        logdet = state.logdet
        if logdet is not None:
            logdet = logdet + 2 * xp.sum(xp.log(xp.linalg.diagonal(R)), axis=-1)
        lost = digits.grown_many(state.lost, X=X, e=e, r=r, F=F, theta=theta)
        return RidgeState(F, theta, logdet, extra, lost, of_units)

    def rescaled(self, model: Any, state: RidgeState, before: Any) -> RidgeState:
        """With the λ of its units in place of the one before (...): what was learnt stays."""
        xp, lam = arrays.namespace(state.F), model.lam_of(state)
        eye, of_units = factor.identity(state.theta), state.units
        R = xp.linalg.inv(state.F)
        V = R.mT @ R
        B = (state.theta[..., None, :] if of_units.Theta is None else of_units.Theta) @ V
        learnt = units.over_matrix(of_units.sums[..., units.N]) > 0  # else V is λI, of which a difference has no digits
        V = xp.where(learnt, V + units.over_matrix(lam - before) * eye, units.over_matrix(lam) * eye)
        F = units.root(V)
        theta = (B @ F) @ F.mT
        if of_units.Theta is None:
            theta = theta[..., 0, :]
        else:
            of_units = of_units._replace(Theta=theta)
            theta = units.provisional(of_units)
        state = state._replace(F=F, theta=theta, units=units.left_over(of_units, theta, B))
        if state.logdet is not None:
            state = state._replace(logdet=_logdet(state, lam))
        return state._replace(lost=units.lost_again(of_units, theta, V, F))

    def logdet(self, model: Any, state: RidgeState) -> Array:
        """log(det V/det λI), (...). Where no policy had asked for it, it is computed from F, in O(d³)."""
        return _logdet(state, model.lam_of(state)) if state.logdet is None else state.logdet


def _targets(model: Any, state: RidgeState, r: Array, weight: Array | None) -> Array | None:
    """The targets of rewards, weighted, where the state has Θ; None: the reward is the only one."""
    if state.units is None or state.units.Theta is None:
        return None
    return statistics.weighted(units.targets(model, state.units, r), weight)


def _logdet(state: RidgeState, lam: Any) -> Array:
    """log(det V/det λI) from F."""
    xp = arrays.namespace(state.F)
    log_lam = math.log(lam) if isinstance(lam, float | int) else xp.log(lam)
    return -2 * xp.linalg.slogdet(state.F)[1] - state.F.shape[-1] * log_lam


RECURSION = Recursion()


@dataclass(frozen=True)
class Ridge(Forgetting, MeasuringModel):
    """Linear regression with penalty λ‖θ‖², for X (..., K, d) shared by all arms.

    lam : λ; feature². "auto": mean ‖x‖²/d of the first rows (`models/penalty.py`)
    centre : whether slots that share a constant column learn rewards about their mean (`models/units.py`)
    reward_range : (low, high), to which rewards are clipped where they scale what sigma="auto" explores; None: none
    discount, window, half_life : how older observations count (`models/forgetting.py`); at most one of them is set
    """

    lam: Penalty = 1e-4
    memory: int = field(default=MEMORY, repr=False)
    discount: float = 1.0
    window: int | None = None
    half_life: float | None = None
    centre: bool = False
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        penalty.check("lam", self.lam)
        forgetting.check(self)
        units.check(self)

    @property
    def learning(self) -> Any:
        """What learns, and computes what its state alone knows."""
        return fading if self.forgets else RECURSION

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy. A count of what is half forgotten is no count of observations."""
        counted = self.window is not None or not self.forgets
        return abilities_of(type(self)) - (frozenset() if counted else {"history"})

    @functools.cached_property
    def owns(self) -> bool:
        """Whether update may write behind the rows of the old state: the rows of a window."""
        return self.window is not None

    @functools.cached_property
    def squared(self) -> "Ridge":
        """The model whose rows count the square of what they count here."""
        half = None if self.half_life is None else self.half_life / 2
        return dataclasses.replace(self, discount=self.discount**2, half_life=half)

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        factor.check(state.F)
        self.learning.check(state)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> Any:
        """V = λI, θ̂ = 0, with leading axes `batch`."""
        size = 8 * dim * dim * math.prod(batch)
        if size > self.memory:
            raise ValueError(
                f"dim={dim} with leading axes {tuple(batch)} takes {size / 2**30:.1f} GiB for V⁻¹ alone, more than "
                f"{self.memory / 2**30:.2f} GiB: pass diagonal=True, fewer runs at once, or models.Ridge(memory=...)"
            )
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        lam = 1.0 if self.lam == penalty.AUTO else float(self.lam)
        return self.learning.init(self, zeros, factor.identity(zeros, 1 / lam**0.5), lam=lam, needs=needs)

    def absorbed(self, state: Any, x: Array, r: Array, **settings: Any) -> Any:
        """`update` without what slots share."""
        return self.learning.update(self, state, x, r, **settings)

    def absorbed_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """`update_many` without what slots share."""
        return self.learning.update_many(self, state, X, r, **settings)

    def rescaled(self, state: Any, before: Any) -> Any:
        """The state with the λ of its units in place of the one before."""
        return self.learning.rescaled(self, state, before)

    def advanced(self, state: Any, at: Array) -> Any:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        return self.agreed(fading.advanced(self, state, at))

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""
        return self.learning.logdet(self, state)

    def factors(self, state: Any, norm: str, *, slots: bool = False) -> Factors | None:
        """Those of `width` and `error_width`."""
        if norm == "width":
            scales = None
        elif norm == "error_width":
            scales = units.scales_of(state.units, slots=slots)
        else:
            return None
        if self.forgets:
            rho, omega = map(arrays.largest, self.rounding(state))
            return Factors(state.theta, state.F, None, rho, omega, scales)
        more = 0.0 if state.units is None else units.more_rounding(state.units, slots=slots)
        return tuple.__new__(Factors, (state.theta, state.F, state.lost, more, 0.0, scales))

    def noise_width(self, state: Any, X: Array) -> Array:
        """The sd of x_i'θ̂ from noise of sd 1 alone, ‖x_i‖ in V⁻¹ṼV⁻¹ and at most so: X (..., K, d) -> (..., K).

        Ṽ = λI + Σ ω² xx', which is V where nothing is forgotten, and in a window.
        """
        return fading.noise_width(self, state, X) if self.fades else self.width(state, X)

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...)."""
        return fading.noise_logdet(self, state) if self.fades else self.logdet(state)

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t = Σ ω ‖x‖ (S‖x‖ + |r|) for ‖θ‖ <= S, (...)."""
        norms = fading.norms(state) if self.forgets else state.extra.norms
        return S * norms[..., 0] + norms[..., 1]

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d). A row that counts ω has ω xx' in the sum."""
        if self.forgets:
            d = state.theta.shape[-1]
            noise = statistics.matrix_sample(state.A[..., :d, :d], eta)
        else:
            noise = statistics.gram_sample(state.extra.gram, eta)
        return arrays.dot(state.F, arrays.dot(state.F.mT, noise))

    def history(self, state: Any) -> Any:
        """Every distinct x with its count and its sum of rewards: `history.History`. In a window, of its rows."""
        if self.window is None:
            return state.extra.history
        return window.distinct(state.history, state.theta.shape[-1], fading.first(state))

"""Ridge regression by its square root: V⁻¹ = F F' is kept as the factor F (Potter's square-root recursion).

    V = λI + Σ x x'        θ̂ = V⁻¹ Σ r x        w_i = ‖x_i‖_{V⁻¹} = ‖F'x_i‖        θ̂ + c F η ~ N(θ̂, c² V⁻¹)
    one more (x, r):  p = F'x,  u = F p,  s = 1 + p'p,  F ← F - u p'/(s + √s),  θ̂ ← θ̂ + u (r - x'θ̂)/s

The inverse itself, kept by rank-one updates, loses as many digits as s has, and its quadratic form may come out
negative; the factor loses half as many, a width is a length and a sample needs no Cholesky step. Nothing has to be made
anew: after 200,000 rounds the widths are right to 4e-15 (docs/decisions.md has the measurements). A weight ω
counts an observation as √ω x, √ω r.
With `discount`, `window` or `half_life` older observations count for less (`forgetting`), and `fading` has the state.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import array_api_compat
import array_api_compat.numpy

from dither import links
from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import digits, factor, fading, forgetting, kept, statistics
from dither.models.fading import FadingState
from dither.models.forgetting import Forgetting

BULK = 1e6  # x'V⁻¹x above which observations are taken one by one: QR keeps fewer digits than the recursion
MEMORY = 2**28  # bytes that F may take


ABILITIES = frozenset(
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
        "noise_width",
        "noise_logdet",
        "perturb",
        "history",
        "predict",
        "rounding",
        "reach",
    }
)


class RidgeState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = F F'; 1/feature
    theta: Array  # (..., d)  θ̂; reward per feature
    logdet: Array | None  # (...)  log(det V/det λI), where a policy asked for it
    extra: statistics.Extra | None  # what a policy asked for besides
    lost: Array  # (..., 6)  what rounding has done: `digits.grown`


@dataclass(frozen=True)
class Ridge(Forgetting):
    """Linear regression with penalty λ‖θ‖², for X (..., K, d) shared by all arms.

    lam : λ; feature²
    discount, window, half_life : how older observations count (`models/forgetting.py`); at most one of them is set
    """

    lam: float = 1e-4
    function = links.LINKS["identity"]  # μ and its kin
    support = function.support  # between which the rewards lie
    memory: int = field(default=MEMORY, repr=False)
    discount: float = 1.0
    window: int | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        errors.positive("lam", self.lam)
        errors.within("lam", self.lam, 1e-100, 1e100)
        forgetting.check(self)

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy. A count of what is half forgotten is no count of observations."""
        return ABILITIES - {"history"} if self.forgets and self.window is None else ABILITIES

    @property
    def owns(self) -> bool:
        """Whether update may write behind the rows of the old state: the rows of a window."""
        return self.window is not None

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        if float(arrays.namespace(state.F).min(arrays.norms(state.F))) <= 0:
            raise ValueError("its F is no square root of a positive definite matrix")
        if self.forgets:
            fading.check(state)
        elif state.extra is not None:
            statistics.check(state.extra)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> Any:
        """V = λI, θ̂ = 0, with leading axes `batch`."""
        size = 8 * dim * dim
        for n in batch:
            size *= n
        if size > self.memory:
            raise ValueError(
                f"dim={dim} with leading axes {tuple(batch)} takes {size / 2**30:.1f} GiB for V⁻¹ alone, more than "
                f"{self.memory / 2**30:.2f} GiB: pass diagonal=True, fewer runs at once, or models.Ridge(memory=...)"
            )
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        eye = xp.eye(dim, dtype=xp.float64, device=device) / float(self.lam) ** 0.5
        F = xp.zeros((*batch, dim, dim), dtype=xp.float64, device=device) + eye
        if self.forgets:
            return fading.init(self, zeros, F, needs=needs)
        logdet = xp.zeros(batch, dtype=xp.float64, device=device) if "logdet" in needs else None
        extra = statistics.init(needs - {"gram_width"}, zeros, lam=self.lam)
        return RidgeState(F, zeros, logdet, extra, digits.init(zeros, lam=self.lam))

    def update(
        self,
        state: Any,
        x: Array,
        r: Array,
        *,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> Any:
        """One more observation: x (..., d), r (...), weight (...) (a weight of 0 changes nothing).

        at (...) : with `half_life`, the time of the observation; own : as of `owns`
        """
        if self.forgets:
            return fading.update(self, state, x, r, weight=weight, at=at, own=own)
        xp = arrays.namespace(x)
        extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
        if weight is not None:
            x, r = statistics.weighted(x, weight), statistics.weighted(r, weight, last=False)
        p = arrays.dot(state.F.mT, x)
        u = arrays.dot(state.F, p)
        s = 1 + arrays.inner(p, p)
        e = r - arrays.inner(x, state.theta)
        F = factor.grown(state.F, x, p=p, u=u, s=s, lam=self.lam)
        theta = state.theta + u * (e / s)[..., None]
        logdet = None if state.logdet is None else state.logdet + xp.log(s)
        lost = digits.grown(state.lost, x=x, s=s, e=e, r=r, F=F, theta=theta)
        return RidgeState(F, theta, logdet, extra, lost)

    def update_many(
        self,
        state: Any,
        X: Array,
        r: Array,
        *,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> Any:
        """n observations at once: X (..., n, d), r, weight, at (..., n); the same as n updates.

        With P = X F and QR of [[I, 0], [P, r - Xθ̂]] = Q [[R, z], [0, ·]]: F ← F R⁻¹, θ̂ ← θ̂ + F R⁻¹ z.
        """
        if self.forgets:
            return fading.learnt(self, state, X, r, weight=weight, at=at, own=own)
        xp, done, n = arrays.namespace(X), 0, X.shape[-2]
        P, step = statistics.weighted(X, weight) @ state.F, 2 * X.shape[-1]
        while done < n and arrays.some(xp.vecdot(P, P) > BULK):
            for k in range(done, min(done + step, n)):
                part = None if weight is None else weight[..., k]
                state = self.update(state, X[..., k, :], r[..., k], weight=part)
            done, step = min(done + step, n), 2 * step
            rest = None if weight is None else weight[..., done:]
            P = statistics.weighted(X[..., done:, :], rest) @ state.F
        X, r, weight = X[..., done:, :], r[..., done:], None if weight is None else weight[..., done:]
        extra = None if state.extra is None else statistics.update_many(state.extra, X, r, weight=weight)
        X, r = statistics.weighted(X, weight), statistics.weighted(r, weight, last=False)
        d, e = X.shape[-1], r - arrays.dot(X, state.theta)
        data = xp.concat([P, e[..., None]], axis=-1)
        top = xp.zeros((*data.shape[:-2], d, d + 1), dtype=xp.float64, device=array_api_compat.device(X))
        top = top + xp.eye(d, d + 1, dtype=xp.float64, device=array_api_compat.device(X))
        R = xp.linalg.qr(xp.concat([top, data], axis=-2), mode="reduced")[1]
        z, R = R[..., :d, d], R[..., :d, :d]
        turned = xp.sign(xp.linalg.diagonal(R))  # QR leaves the signs open: no data must mean R = I
        z, R = z * turned, R * turned[..., None]
        theta = state.theta + arrays.dot(state.F, xp.linalg.solve(R, z[..., None])[..., 0])
        F = xp.linalg.solve(R.mT, state.F.mT).mT
        logdet = state.logdet
        if logdet is not None:
            logdet = logdet + 2 * xp.sum(xp.log(xp.linalg.diagonal(R)), axis=-1)
        lost = digits.grown_many(state.lost, X=X, e=e, r=r, F=F, theta=theta)
        return RidgeState(F, theta, logdet, extra, lost)

    def advanced(self, state: FadingState, at: Array) -> FadingState:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        return fading.advanced(self, state, at)

    def flat(self, state: RidgeState) -> Array:
        """θ̂ as one vector: (..., d)."""
        return state.theta

    def scores(self, theta: Array, X: Array) -> Array:
        """x_i'θ for any θ (..., d): X (..., K, d) -> (..., K)."""
        return arrays.dot(X, theta)

    def mean(self, state: RidgeState, X: Array) -> Array:
        """m_i = x_i'θ̂: X (..., K, d) -> (..., K)."""
        return arrays.dot(X, state.theta)

    def mean_at(self, state: RidgeState, X: Array) -> Array:
        """The means at one row for each arm: X (..., K, d) -> (..., K)."""
        return self.mean(state, X)

    def width(self, state: RidgeState, X: Array) -> Array:
        """w_i = ‖x_i‖_{V⁻¹}: X (..., K, d) -> (..., K)."""
        return arrays.norms(X @ state.F)

    def rounding(self, state: Any) -> digits.Rounding:
        """What rounding may have done to means and widths."""
        return fading.rounding(state) if self.forgets else digits.of(state.lost)

    def reach(self, state: RidgeState) -> Array:
        """No width is larger than this times ‖x‖, (...)."""
        return digits.reach(state.F)

    def gram_width(self, state: RidgeState, X: Array) -> Array:
        """The width: V is the matrix of this model."""
        return self.width(state, X)

    def predict(self, state: RidgeState, X: Array) -> Array:
        """The expected rewards, which are the means here: X (..., K, d) -> (..., K)."""
        return self.mean(state, X)

    def sample(self, state: RidgeState, eta: Array) -> Array:
        """F η ~ N(0, V⁻¹) for η ~ N(0, I): (..., d) -> (..., d)."""
        return arrays.dot(state.F, eta)

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...). Where no policy had asked for it, it is computed from F, in O(d³)."""
        if self.forgets:
            return fading.logdet(state, lam=self.lam)
        if state.logdet is not None:
            return state.logdet
        xp = arrays.namespace(state.F)
        return -2 * xp.linalg.slogdet(state.F)[1] - state.F.shape[-1] * math.log(self.lam)

    @functools.cached_property
    def squared(self) -> "Ridge":
        """The model whose rows count the square of what they count here."""
        half = None if self.half_life is None else self.half_life / 2
        return dataclasses.replace(self, discount=self.discount**2, half_life=half)

    def noise_width(self, state: Any, X: Array) -> Array:
        """The sd of x_i'θ̂ from noise of sd 1 alone, ‖x_i‖ in V⁻¹ṼV⁻¹ and at most so: X (..., K, d) -> (..., K).

        Ṽ = λI + Σ ω² xx', which is V where nothing is forgotten, and in a window.
        """
        if self.forgets and self.window is None:
            return fading.noise_width(state, X, lam=self.lam)
        return self.width(state, X)

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...)."""
        if self.forgets and self.window is None:
            return fading.noise_logdet(state, lam=self.lam)
        return self.logdet(state)

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t for ‖θ‖ <= S, (...): `statistics.lipschitz`."""
        if self.forgets:
            return fading.lipschitz(state, S=S)
        return statistics.lipschitz(state.extra.norms, S=S, link=self.function)

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d). A row that counts ω has ω xx' in the sum."""
        if self.forgets:
            return fading.perturb(state, eta)
        return arrays.dot(state.F, arrays.dot(state.F.mT, statistics.gram_sample(state.extra.gram, eta)))

    def history(self, state: Any) -> Any:
        """Every distinct x with its count and its sum of rewards: `history.History`. In a window, of its rows."""
        return kept.distinct(state.history) if self.forgets else state.extra.history

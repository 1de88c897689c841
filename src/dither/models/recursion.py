"""Ridge regression that forgets nothing, by its square root: V⁻¹ = F F' is kept as the factor F (Potter's recursion).

    one more (x, r):  p = F'x,  u = F p,  s = 1 + p'p,  F ← F - u p'/(s + √s),  θ̂ ← θ̂ + u (r - x'θ̂)/s

The inverse itself, kept by rank-one updates, loses as many digits as s has, and its quadratic form may come out
negative; the factor loses half as many, a width is a length and a sample needs no Cholesky step. Nothing has to be made
anew: after 200,000 rounds the widths are right to 4e-15 (docs/decisions.md has the measurements). A weight ω
counts an observation as √ω x, √ω r.
"""

import math
from typing import Any, NamedTuple

import array_api_compat

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import digits, factor, statistics

BULK = 1e6  # x'V⁻¹x above which observations are taken one by one: QR keeps fewer digits than the recursion


class RidgeState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = F F'; 1/feature
    theta: Array  # (..., d)  θ̂; reward per feature
    logdet: Array | None  # (...)  log(det V/det λI), where a policy asked for it
    extra: statistics.Extra | None  # what a policy asked for besides
    lost: Array  # (..., 6)  what rounding has done: `digits.grown`


def init(model: Any, zeros: Array, F: Array, *, needs: frozenset[str]) -> RidgeState:
    """Before the first observation, for θ̂ = zeros (..., d) and F = I/√λ."""
    logdet = arrays.namespace(zeros).zeros_like(zeros[..., 0]) if "logdet" in needs else None
    extra = statistics.init(needs - {"gram_width"}, zeros, lam=model.lam)
    return RidgeState(F, zeros, logdet, extra, digits.init(zeros, lam=model.lam))


def check(state: RidgeState) -> None:
    """Refuse a state that no data can lead to, as of a file that something else wrote."""
    if state.extra is not None:
        statistics.check(state.extra)


def update(
    model: Any, state: RidgeState, x: Array, r: Array, *, weight: Array | None = None, own: bool = False
) -> RidgeState:
    """One more observation: x (..., d), r (...), weight (...). Nothing is overwritten, whoever owns the state."""
    extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
    if weight is not None:
        x, r = statistics.weighted(x, weight), statistics.weighted(r, weight, last=False)
    p = arrays.dot(state.F.mT, x)
    u = arrays.dot(state.F, p)
    s = 1 + arrays.inner(p, p)
    e = r - arrays.inner(x, state.theta)
    F = factor.grown(state.F, x, p=p, u=u, s=s, lam=model.lam)
    theta = state.theta + u * (e / s)[..., None]
    logdet = None if state.logdet is None else state.logdet + arrays.namespace(x).log(s)
    return RidgeState(F, theta, logdet, extra, digits.grown(state.lost, x=x, s=s, e=e, r=r, F=F, theta=theta))


def update_many(
    model: Any, state: RidgeState, X: Array, r: Array, *, weight: Array | None = None, own: bool = False
) -> RidgeState:
    """n observations at once: X (..., n, d), r, weight (..., n).

    With P = X F and QR of [[I, 0], [P, r - Xθ̂]] = Q [[R, z], [0, ·]]: F ← F R⁻¹, θ̂ ← θ̂ + F R⁻¹ z.
    """
    xp, done, n = arrays.namespace(X), 0, X.shape[-2]
    P, step = statistics.weighted(X, weight) @ state.F, 2 * X.shape[-1]
    while done < n and arrays.some(xp.vecdot(P, P) > BULK):
        for k in range(done, min(done + step, n)):
            state = update(model, state, X[..., k, :], r[..., k], weight=None if weight is None else weight[..., k])
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
    return RidgeState(F, theta, logdet, extra, digits.grown_many(state.lost, X=X, e=e, r=r, F=F, theta=theta))


def logdet(model: Any, state: RidgeState) -> Array:
    """log(det V/det λI), (...). Where no policy had asked for it, it is computed from F, in O(d³)."""
    if state.logdet is not None:
        return state.logdet
    return -2 * arrays.namespace(state.F).linalg.slogdet(state.F)[1] - state.F.shape[-1] * math.log(model.lam)


def noise_width(model: Any, state: RidgeState, X: Array) -> Array:
    """‖x_i‖ in the norm of V⁻¹ṼV⁻¹: the width, since Ṽ is V: X (..., K, d) -> (..., K)."""
    return model.width(state, X)


def noise_logdet(model: Any, state: RidgeState) -> Array:
    """log(det Ṽ/det λI), (...)."""
    return logdet(model, state)


def lipschitz(model: Any, state: Any, S: float) -> Array:
    """L_t = Σ ‖x‖ (S‖x‖ + |r|) for ‖θ‖ <= S, (...)."""
    return statistics.lipschitz(state.extra.norms, S=S, link=model.function)


def perturb(state: Any, eta: Array) -> Array:
    """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d)."""
    return arrays.dot(state.F, arrays.dot(state.F.mT, statistics.gram_sample(state.extra.gram, eta)))


def history(state: Any) -> Any:
    """Every distinct x with its count and its sum of rewards: `history.History`."""
    return state.extra.history

"""Ridge regression that forgets: its sums are kept, and V⁻¹ = FF' is made anew from them after each update.

    A = Σ ω yy',  y = (x, r),  ω as of `forgetting`         A ← left A + ω yy'
    V = λI + (the x part of A) = R'R,  F = R⁻¹,  θ̂ = FF' Σ ω r x,  log det V = -2 Σ log F_ii

λI does not fade, so V_t = γ V_{t-1} + (1-γ) λI + xx': the change has full rank, and no O(d²) update of F is exact. The
sums take O(d²) and the factor O(d³), once for each call of `update`, of whatever number of rows. At d = 32 that is
as quick as the recursion of `ridge` (docs/drift.md has the ratios).

Sums lose digits where V is ill-conditioned, however its columns are scaled: κ = Σ V_ii (V⁻¹)_ii is large. There the
factor is made from the earlier factor, which loses half as many digits:

    R ← the triangle of QR of (√left R; √((1-left) λ) I; √ω x')

A window takes rows out of the sums again. What the rounding of larger sums has left behind then is bounded for each
column; where it would show, and after as many rows as the window has, the sums are made anew from the rows.
"""

import math
from typing import Any, NamedTuple

import array_api_compat
import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import digits, forgetting, kept
from dither.models.kept import Kept

MOST = 1e-5  # of ω (as of `digits`), above which the sums are not factored
WORST = 1e-3  # of ω, above which nothing can be made of a row


class FadingState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = FF', upper triangular
    theta: Array  # (..., d)  θ̂; reward per feature
    A: Array  # (..., d+1, d+1)  Σ ω yy'
    lost: Array  # (..., 3)  additions that A stands for; D and q as of `digits`, with κ for κ
    norms: Array | None  # (..., 2)  Σ ω ‖x‖², Σ ω ‖x‖ |r|, where a policy asked for them and there is no window
    now: Array | None  # (...)  the time, where there is a clock
    history: Kept | None  # the rows of a window
    noise: Array | None = None  # (..., d, d)  Σ ω² xx', where a policy asked for it and there is no window


def init(model: Any, zeros: Array, F: Array, *, needs: frozenset[str]) -> FadingState:
    """Before the first observation, for θ̂ = zeros (..., d) and F = I/√λ."""
    xp, device, (*batch, d) = arrays.namespace(zeros), array_api_compat.device(zeros), zeros.shape

    def empty(*shape: int) -> Array:
        return xp.zeros((*batch, *shape), dtype=zeros.dtype, device=device)

    return FadingState(
        F,
        zeros,
        empty(d + 1, d + 1),
        empty(3) + xp.asarray([0.0, float(d), 0.0], dtype=zeros.dtype, device=device),
        empty(2) if "lipschitz" in needs and model.window is None else None,
        None if model.half_life is None else empty() + forgetting.BEFORE,
        None if model.window is None else kept.init(empty(d + 1)),
        empty(d, d) if "noise_width" in needs and model.window is None else None,
    )


def update(model: Any, state: FadingState, x: Array, r: Array, *, own: bool, **given: Array | None) -> FadingState:
    """`learnt` for one row x (d,) or (..., d) and r (...)."""
    alone = x.ndim == 1 and type(x) is np.ndarray and given["weight"] is None and state.norms is state.noise is None
    if alone and (quick := _quickly(model, state, x, r, own=own)) is not None:
        return quick
    each = {name: None if value is None else value[..., None] for name, value in given.items()}
    return learnt(model, state, x[..., None, :], r[..., None], own=own, **each)


def _quickly(model: Any, state: FadingState, x: np.ndarray, r: Any, *, own: bool) -> FadingState | None:
    """`learnt` for one row of weight 1 of one run in NumPy, without what a batch takes; None where it needs more."""
    d, left, rows = len(x), model.discount, state.history
    y = np.empty(d + 1)
    y[:d], y[d] = x, r
    if left < 1:
        A = arrays.dger()(1.0, y, y, 1, 1, (left * state.A).T, 1, 1, 1).T
        steps = left * state.lost.item(0) + 1
    elif rows is None or not own or (slid := kept.one(rows, state.A, y, window=model.window, lam=model.lam)) is None:
        return None
    else:
        A, rows, steps = slid
    made = _by_sums(model.lam, A, steps)
    if made is None or not np.vdot(made[1], made[1]) < math.inf:
        return None
    return FadingState(made[0], made[1], A, made[2], None, None, rows)


def learnt(
    model: Any,
    state: FadingState,
    X: Array,
    r: Array,
    *,
    weight: Array | None = None,
    at: Array | None = None,
    own: bool = False,
) -> FadingState:
    """n more observations: X (..., n, d), r, weight, at (..., n). own : the old state's rows may be written behind.

    Raises ValueError where float64 cannot hold V beside λ; nothing has changed then.
    """
    xp, n = arrays.namespace(X), X.shape[-2]
    if not n:
        return state
    noise = None if state.noise is None else _noisier(model, state, X, r, weight=weight, at=at)
    left, weight, now = forgetting.fade(model, r, weight=weight, at=at, now=state.now)
    Y = xp.concat([X, r[..., None]], axis=-1)
    if state.history is None:
        A = _times(left, state.A) + _gram(Y, weight)
        F, theta, lost = _factored(model.lam, A, state, left, left * state.lost[..., 0] + n, None, X, weight)
        norms = None if state.norms is None else _times(left, state.norms) + _norms(X, r, weight)
        return FadingState(F, _finite(theta), A, lost, norms, now, None, noise)
    A, rows, steps = kept.slid(state.history, state.A, Y, weight, window=model.window, lam=model.lam, own=own)
    try:
        F, theta, lost = _factored(model.lam, A, state, 1.0, steps, rows, X, weight)
        return FadingState(F, _finite(theta), A, lost, None, None, rows)
    except BaseException:
        kept.cleared(rows, state.history)
        raise


def advanced(model: Any, state: FadingState, at: Array) -> FadingState:
    """The state at the time at (...), without an observation; an earlier time changes nothing."""
    xp = arrays.namespace(state.theta)
    now = xp.maximum(state.now, at)
    left = forgetting.halved(model, now - state.now)
    A, X = _times(left, state.A), xp.zeros_like(state.theta)[..., None, :]
    F, theta, lost = _factored(model.lam, A, state, left, left * state.lost[..., 0] + 1, None, X, None)
    norms = None if state.norms is None else _times(left, state.norms)
    noise = state.noise
    if noise is not None:
        noise = _times(forgetting.halved(model.squared, now - state.now), noise)
    return FadingState(F, theta, A, lost, norms, now, None, noise)


def rounding(state: FadingState) -> digits.Rounding:
    """What rounding may have done to means and widths."""
    lost = state.lost
    if lost.ndim == 1 and type(lost) is np.ndarray:
        _, D, q = lost.tolist()
        return digits.Rounding(digits.LOST * q, min(digits.LOST * D, WORST))
    xp = arrays.namespace(lost)
    omega = digits.LOST * lost[..., 1:2]
    return digits.Rounding(digits.LOST * lost[..., 2:3], xp.where(omega < WORST, omega, xp.full_like(omega, WORST)))


def logdet(state: FadingState, *, lam: float) -> Array:
    """log(det V/det λI), (...)."""
    xp = arrays.namespace(state.F)
    return -xp.sum(2 * xp.log(xp.abs(xp.linalg.diagonal(state.F))) + math.log(lam), axis=-1)


def noise_width(state: FadingState, X: Array, *, lam: float) -> Array:
    """‖x_i‖ in the norm of V⁻¹ṼV⁻¹, Ṽ = λI + Σ ω² xx': X (..., K, d) -> (..., K)."""
    R = _root(state, lam=lam)
    return arrays.norms(X @ state.F @ state.F.mT @ R.mT)


def noise_logdet(state: FadingState, *, lam: float) -> Array:
    """log(det Ṽ/det λI), (...)."""
    xp = arrays.namespace(state.F)
    return xp.sum(2 * xp.log(xp.linalg.diagonal(_root(state, lam=lam))) - math.log(lam), axis=-1)


def _root(state: FadingState, *, lam: float) -> Array:
    """R with Ṽ = R'R: (..., d, d)."""
    xp, noise = arrays.namespace(state.F), state.noise  # type: Any, Any
    d = noise.shape[-1]
    return xp.linalg.cholesky(noise + lam * xp.eye(d, dtype=noise.dtype, device=arrays.device(noise))).mT


def _noisier(model: Any, state: FadingState, X: Array, r: Array, *, weight: Array | None, at: Array | None) -> Array:
    """Σ ω² xx' after n more observations: as Σ ω xx' where all fades twice as fast."""
    left, weight, _ = forgetting.fade(model.squared, r, weight=weight, at=at, now=state.now)
    return _times(left, state.noise) + _gram(X, weight)


def lipschitz(state: FadingState, *, S: float) -> Array:
    """L_t = Σ ω ‖x‖ (S‖x‖ + |r|) for ‖θ‖ <= S, (...)."""
    xp, norms = arrays.namespace(state.A), state.norms  # type: Any, Any
    if state.history is not None:
        found = [_norms(Y[:, :-1], Y[:, -1], count) for Y, count in kept.each(state.history)]
        norms = xp.reshape(xp.stack(found), (*state.A.shape[:-2], 2))
    return S * norms[..., 0] + norms[..., 1]


def perturb(state: FadingState, eta: Array) -> Array:
    """V⁻¹ N(0, Σ ω xx') from η ~ N(0, I), of which the first half is used: (..., 2d) -> (..., d)."""
    xp, d = arrays.namespace(eta), state.theta.shape[-1]
    values, Q = xp.linalg.eigh(state.A[..., :d, :d])
    root = xp.sqrt(xp.where(values > 0, values, 0.0))
    noise = arrays.dot(Q, root * eta[..., :d])
    return arrays.dot(state.F, arrays.dot(state.F.mT, noise))


def check(state: FadingState) -> None:
    """Refuse a state that no data can lead to, as of a file that something else wrote."""
    xp = arrays.namespace(state.A)
    if float(xp.min(xp.linalg.diagonal(state.A))) < 0 or float(xp.min(state.lost)) < 0:
        raise ValueError("its A is no sum of squares")
    if state.history is not None:
        kept.check(state.history)


def _times(left: Array | float, A: Array) -> Array:
    """left A, for left (...) and any A of the same leading axes."""
    if isinstance(left, float):
        return left * A
    return arrays.namespace(A).reshape(left, (*left.shape, *(1,) * (A.ndim - left.ndim))) * A


def _gram(Y: Array, weight: Array | None) -> Array:
    """Σ ω yy': Y (..., n, d) -> (..., d, d)."""
    if Y.shape[-2] == 1:
        y = Y[..., 0, :]
        return arrays.outer(y if weight is None else weight * y, y)  # weight (..., 1)
    return (Y if weight is None else weight[..., None] * Y).mT @ Y


def _norms(X: Array, r: Array, weight: Array | None) -> Array:
    """Σ ω ‖x‖² and Σ ω ‖x‖ |r| of rows X (..., n, d), (..., 2)."""
    xp = arrays.namespace(X)
    square = xp.vecdot(X, X)
    both = xp.stack([square, xp.sqrt(square) * xp.abs(r)], axis=-1)
    return xp.sum(both if weight is None else weight[..., None] * both, axis=-2)


def _factored(
    lam: float,
    A: Array,
    before: FadingState,
    left: Array | float,
    steps: Array,
    rows: Kept | None,
    X: Array,
    weight: Array | None,
) -> tuple[Array, Array, Array]:
    """F, θ̂ and what is lost, for the sums A after n rows X (..., n, d)."""
    xp, batch = arrays.namespace(A), A.shape[:-2]
    if type(A) is np.ndarray and not batch:
        made = _by_sums(lam, A, float(steps))
        return _by_rows(lam, A, before, left, steps, rows, X, weight) if made is None else made
    if type(A) is np.ndarray:
        parts = []
        for i in np.ndindex(batch):
            of_run = rows if rows is None else kept.run(rows, i)
            made = _by_sums(lam, A[i], float(steps[i]))
            if made is None:
                part = left if isinstance(left, float) else left[i]
                own = None if weight is None else weight[i]
                one = before._replace(F=before.F[i], lost=before.lost[i])
                made = _by_rows(lam, A[i], one, part, steps[i], of_run, X[i], own)
            parts.append(made)
        shaped = (np.reshape(np.stack(part), (*batch, *part[0].shape)) for part in zip(*parts, strict=True))
        return tuple(shaped)  # type: ignore[return-value]
    d = A.shape[-1] - 1
    eye = xp.eye(d, dtype=A.dtype, device=array_api_compat.device(A))
    V = A[..., :d, :d] + lam * eye
    least = xp.sum(xp.linalg.diagonal(V), axis=-1) / lam  # κ is not larger
    bad = digits.LOST * xp.sqrt(steps) * least > MOST
    R = xp.linalg.cholesky(xp.where(bad[..., None, None], eye, V)).mT
    own = xp.linalg.solve(R, xp.zeros_like(V) + eye)
    told = _told(V, own, A, steps)
    if not arrays.some(bad):
        return own, *told
    other, theta, more = _by_rows(lam, A, before, left, steps, rows, X, weight)
    pick = bad[..., None]
    return (
        xp.where(pick[..., None], other, own),
        xp.where(pick, theta, told[0]),
        xp.where(pick, more, told[1]),
    )


def _by_sums(lam: float, A: np.ndarray, steps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """F from the Cholesky factor of V, with θ̂ and what is lost, for one run in NumPy; None if too much is lost."""
    potrf, trtri = arrays.lapack()
    d = len(A) - 1
    V = A[:d, :d].copy()
    V.ravel()[:: d + 1] += lam
    sizes = V.diagonal().copy()
    L, bad = potrf(V.T, 1, 1, 1)  # lower, with zeros above, in place
    if bad:
        return None
    F = trtri(L, 1, 0, 1)[0].T
    theta = F.dot(A[d, :d].dot(F))
    kappa = float(sizes.dot(np.vecdot(F, F)))
    D = math.sqrt(steps) * kappa
    if not digits.LOST * D <= MOST:
        return None
    length = math.sqrt(float(sizes.dot(theta * theta)))
    return F, theta, np.array([steps, D, math.sqrt(steps * kappa) * (math.sqrt(A[d, d]) + length)])


def _by_rows(
    lam: float,
    A: Array,
    before: FadingState,
    left: Array | float,
    steps: Array,
    rows: Kept | None,
    X: Array,
    weight: Array | None,
) -> tuple[Array, Array, Array]:
    """The same by QR of the rows of a window, or of the earlier factor and the new rows."""
    xp, d = arrays.namespace(A), A.shape[-1] - 1
    eye = xp.eye(d, dtype=A.dtype, device=array_api_compat.device(A))
    V = A[..., :d, :d] + lam * eye
    if rows is None:
        left = left + xp.zeros_like(A[..., 0, 0])
        earlier = xp.linalg.solve(before.F, xp.zeros_like(V) + eye)
        fresh = _times(xp.sqrt((1 - left) * lam), xp.zeros_like(V) + eye)
        stack = [_times(xp.sqrt(left), earlier), fresh, X if weight is None else xp.sqrt(weight)[..., None] * X]
        R = _triangle(stack)
        lost = before.lost[..., 1]
    else:
        found = [_triangle([lam**0.5 * eye, xp.sqrt(count)[:, None] * Y[:, :-1]]) for Y, count in kept.each(rows)]
        R, lost = xp.reshape(xp.stack(found), V.shape), xp.zeros_like(A[..., 0, 0])
    new = xp.linalg.solve(R, xp.zeros_like(V) + eye)
    kappa = xp.sum(xp.linalg.diagonal(V) * xp.vecdot(new, new), axis=-1)
    if not bool(xp.all(digits.LOST * xp.sqrt(kappa) <= WORST)):
        raise ValueError(
            f"x is too long beside lam={lam:g} and what was learnt before: float64 cannot hold so short a width beside "
            "those of other directions; scale x down or raise lam"
        )
    theta, more = _told(V, new, A, steps)
    D = xp.hypot(lost, xp.sqrt(kappa))
    return new, theta, xp.stack([more[..., 0], D, more[..., 2]], axis=-1)


def _told(V: Array, F: Array, A: Array, steps: Array) -> tuple[Array, Array]:
    """θ̂ and what is lost, as the lines for one run in `_by_sums`."""
    xp, d = arrays.namespace(A), A.shape[-1] - 1
    sizes = xp.linalg.diagonal(V)
    theta = arrays.dot(F, arrays.dot(F.mT, A[..., d, :d]))
    kappa = xp.sum(sizes * xp.vecdot(F, F), axis=-1)
    length = xp.sqrt(xp.sum(sizes * theta * theta, axis=-1))
    steps = steps + xp.zeros_like(kappa)
    paid = xp.sqrt(xp.where(A[..., d, d] > 0, A[..., d, d], 0.0))
    return theta, xp.stack([steps, xp.sqrt(steps) * kappa, xp.sqrt(steps * kappa) * (paid + length)], axis=-1)


def _triangle(parts: list[Array]) -> Array:
    """R of R'R = Σ P'P over the parts (..., n, d), with a positive diagonal."""
    xp = arrays.namespace(parts[0])
    R = xp.linalg.qr(xp.concat(parts, axis=-2), mode="reduced")[1]
    return R * xp.where(xp.linalg.diagonal(R) < 0, -1.0, 1.0)[..., None]


def _finite(theta: Array) -> Array:
    """θ̂. Raises ValueError where it is not finite."""
    if type(theta) is np.ndarray and theta.ndim == 1 and np.vdot(theta, theta) < math.inf:
        return theta
    xp = arrays.namespace(theta)
    if not bool(xp.all(xp.isfinite(theta))):
        raise errors.overflow()
    return theta

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

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import digits, factor, forgetting, window
from dither.models.model import of_one, sound
from dither.models.window import WindowRows

MOST = 1e-5  # of ω (as of `digits`), above which the sums are not factored


class FadingState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = FF', upper triangular
    theta: Array  # (..., d)  θ̂; reward per feature
    A: Array  # (..., d+1, d+1)  Σ ω yy'
    lost: Array  # (..., 3)  additions that A stands for; D and q as of `digits`, with κ for κ
    norms: Array | None  # (..., 2)  Σ ω ‖x‖², Σ ω ‖x‖ |r|, where a policy asked for them and there is no window
    now: Array | None  # (...)  the time, where there is a clock
    history: WindowRows | None  # the rows of a window
    noise: Array | None = None  # (..., d, d)  Σ ω² xx', where a policy asked for it and there is no window


class FadingSums(NamedTuple):
    """The sums after n rows, and what else a factor can be made of where they have lost too many digits."""

    lam: float
    A: Array  # (..., d+1, d+1)
    steps: Array  # (...)  additions that A stands for
    left: Array | float  # (...)  what all that was known counts from now on
    F: Array  # (..., d, d)  the factor before
    lost: Array  # (..., 3)  what had been lost before
    rows: WindowRows | None  # those of a window
    X: Array  # (..., n, d)  the new rows
    weight: Array | None  # (..., n)

    @property
    def V(self) -> Array:
        """λI + the x part of A: (..., d, d)."""
        return self.A[..., :-1, :-1] + factor.identity(self.A[..., :-1, 0], self.lam)

    def run(self, i: tuple[int, ...]) -> "FadingSums":
        """Those of one run."""
        rows = None if self.rows is None else window.run(self.rows, i)
        left, weight = self.left if isinstance(self.left, float) else self.left[i], self.weight
        parts = (self.F[i], self.lost[i], rows, self.X[i], None if weight is None else weight[i])
        return FadingSums(self.lam, self.A[i], self.steps[i], left, *parts)


def init(model: Any, zeros: Array, F: Array, *, needs: frozenset[str]) -> FadingState:
    """Before the first observation, for θ̂ = zeros (..., d) and F = I/√λ."""
    d, unbounded = zeros.shape[-1], model.window is None
    begun = arrays.namespace(zeros).asarray([0.0, float(d), 0.0], dtype=zeros.dtype, device=arrays.device(zeros))
    return FadingState(
        F,
        zeros,
        arrays.blank(zeros, d + 1, d + 1),
        arrays.blank(zeros, 3) + begun,
        arrays.blank(zeros, 2) if "lipschitz" in needs and unbounded else None,
        None if model.half_life is None else arrays.blank(zeros) + forgetting.BEFORE,
        None if unbounded else window.init(arrays.blank(zeros, d + 1)),
        arrays.blank(zeros, d, d) if "noise_width" in needs and unbounded else None,
    )


def update(
    model: Any, state: FadingState, x: Array, r: Array, *, own: bool = False, **settings: Array | None
) -> FadingState:
    """`update_many` for one row x (d,) or (..., d) and r (...)."""
    plain = settings.get("weight") is state.norms is state.noise is None
    if plain and x.ndim == 1 and type(x) is np.ndarray and (quick := _quickly(model, state, x, r, own=own)) is not None:
        return quick
    return of_one(functools.partial(update_many, model, state), x, r, settings, own=own)


def _quickly(model: Any, state: FadingState, x: np.ndarray, r: Any, *, own: bool) -> FadingState | None:
    """`update_many` for one row of weight 1 of one run in NumPy, without what a batch takes; None: it needs more."""
    d, left, rows = len(x), model.discount, state.history
    y = np.empty(d + 1)
    y[:d], y[d] = x, r
    if left < 1:
        A = arrays.dger()(1.0, y, y, 1, 1, (left * state.A).T, 1, 1, 1).T
        steps = left * state.lost.item(0) + 1
    elif rows is None or not own or (slid := window.one(rows, state.A, y, window=model.window, lam=model.lam)) is None:
        return None
    else:
        A, rows, steps = slid
    quick = _by_sums(model.lam, A, steps)
    if quick is None or not np.vdot(quick[1], quick[1]) < math.inf:
        return None
    return FadingState(quick[0], quick[1], A, quick[2], None, None, rows)


def update_many(
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
        A, steps = forgetting.times(left, state.A) + _gram(Y, weight), left * state.lost[..., 0] + n
        norms = None if state.norms is None else forgetting.times(left, state.norms) + _norms(X, r, weight)
        F, theta, lost = _factored(FadingSums(model.lam, A, steps, left, state.F, state.lost, None, X, weight))
        return FadingState(F, sound(theta), A, lost, norms, now, None, noise)
    A, rows, steps = window.slid(state.history, state.A, Y, weight, window=model.window, lam=model.lam, own=own)
    try:
        F, theta, lost = _factored(FadingSums(model.lam, A, steps, 1.0, state.F, state.lost, rows, X, weight))
        return FadingState(F, sound(theta), A, lost, None, None, rows)
    except BaseException:
        window.cleared(rows, state.history)
        raise


def advanced(model: Any, state: FadingState, at: Array) -> FadingState:
    """The state at the time at (...), as after a row of zeros; an earlier time changes nothing."""
    nothing = arrays.blank(state.theta, 1, state.theta.shape[-1])
    return update_many(model, state, nothing, nothing[..., 0], at=at[..., None])


def logdet(model: Any, state: FadingState) -> Array:
    """log(det V/det λI), (...)."""
    xp = arrays.namespace(state.F)
    return -xp.sum(2 * xp.log(xp.abs(xp.linalg.diagonal(state.F))) + math.log(model.lam), axis=-1)


def noise_width(model: Any, state: FadingState, X: Array) -> Array:
    """‖x_i‖ in the norm of V⁻¹ṼV⁻¹, Ṽ = λI + Σ ω² xx': X (..., K, d) -> (..., K)."""
    return arrays.norms(X @ state.F @ state.F.mT @ _root(model, state).mT)


def noise_logdet(model: Any, state: FadingState) -> Array:
    """log(det Ṽ/det λI), (...)."""
    xp = arrays.namespace(state.F)
    return xp.sum(2 * xp.log(xp.linalg.diagonal(_root(model, state))) - math.log(model.lam), axis=-1)


def _root(model: Any, state: FadingState) -> Array:
    """R with Ṽ = R'R: (..., d, d)."""
    noise: Any = state.noise
    return arrays.namespace(noise).linalg.cholesky(noise + factor.identity(state.theta, model.lam)).mT


def _noisier(model: Any, state: FadingState, X: Array, r: Array, *, weight: Array | None, at: Array | None) -> Array:
    """Σ ω² xx' after n more observations: as Σ ω xx' where all fades twice as fast."""
    left, weight, _ = forgetting.fade(model.squared, r, weight=weight, at=at, now=state.now)
    return forgetting.times(left, state.noise) + _gram(X, weight)


def norms(state: FadingState) -> Array:
    """Σ ω ‖x‖² and Σ ω ‖x‖ |r| of all that counts, (..., 2)."""
    if state.history is None:
        return state.norms
    xp = arrays.namespace(state.A)
    each = [_norms(Y[:, :-1], Y[:, -1], count) for Y, count in window.each(state.history)]
    return xp.reshape(xp.stack(each), (*state.A.shape[:-2], 2))


def check(state: FadingState) -> None:
    """Refuse a state that no data can lead to, as of a file that something else wrote."""
    xp = arrays.namespace(state.A)
    if float(xp.min(xp.linalg.diagonal(state.A))) < 0 or float(xp.min(state.lost)) < 0:
        raise ValueError("its A is no sum of squares")
    if state.history is not None:
        window.check(state.history)


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


def _factored(sums: FadingSums) -> tuple[Array, Array, Array]:
    """F, θ̂ and what is lost, after n rows."""
    A, batch = sums.A, sums.A.shape[:-2]
    if type(A) is np.ndarray and not batch:
        return _by_sums(sums.lam, A, float(sums.steps)) or _by_rows(sums)
    if type(A) is np.ndarray:
        each = zip(*(_factored(sums.run(i)) for i in np.ndindex(batch)), strict=True)
        F, theta, lost = (np.reshape(np.stack(part), (*batch, *part[0].shape)) for part in each)
        return F, theta, lost
    xp, V, eye = arrays.namespace(A), sums.V, factor.identity(A[..., :-1, 0])
    least = xp.sum(xp.linalg.diagonal(V), axis=-1) / sums.lam  # κ is not larger
    bad = digits.LOST * xp.sqrt(sums.steps) * least > MOST
    F = xp.linalg.solve(xp.linalg.cholesky(xp.where(bad[..., None, None], eye, V)).mT, eye)
    theta, lost = _estimated(sums, F, V)
    if not arrays.some(bad):
        return F, theta, lost
    other, pick = _by_rows(sums), bad[..., None]
    return (
        xp.where(pick[..., None], other[0], F),
        xp.where(pick, other[1], theta),
        xp.where(pick, other[2], lost),
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


def _by_rows(sums: FadingSums) -> tuple[Array, Array, Array]:
    """The same by QR of the rows of a window, or of the earlier factor and the new rows."""
    xp, V, A, X = arrays.namespace(sums.A), sums.V, sums.A, sums.X
    eye = factor.identity(A[..., :-1, 0])
    if sums.rows is None:
        left, before = sums.left + xp.zeros_like(A[..., 0, 0]), sums.lost[..., 1]
        earlier = forgetting.times(xp.sqrt(left), xp.linalg.solve(sums.F, eye))
        fresh = forgetting.times(xp.sqrt((1 - left) * sums.lam), eye)
        R = _triangle([earlier, fresh, X if sums.weight is None else xp.sqrt(sums.weight)[..., None] * X])
    else:
        root, before = sums.lam**0.5 * eye[(0,) * (eye.ndim - 2)], xp.zeros_like(A[..., 0, 0])
        each = [_triangle([root, xp.sqrt(count)[:, None] * Y[:, :-1]]) for Y, count in window.each(sums.rows)]
        R = xp.reshape(xp.stack(each), V.shape)
    F = xp.linalg.solve(R, eye)
    kappa = xp.sum(xp.linalg.diagonal(V) * xp.vecdot(F, F), axis=-1)
    if not bool(xp.all(digits.LOST * xp.sqrt(kappa) <= digits.WORST)):
        raise ValueError(
            f"x is too long beside lam={sums.lam:g} and what was learnt before: float64 cannot hold so short a width "
            "beside those of other directions; scale x down or raise lam"
        )
    theta, lost = _estimated(sums, F, V)
    return F, theta, xp.stack([lost[..., 0], xp.hypot(before, xp.sqrt(kappa)), lost[..., 2]], axis=-1)


def _estimated(sums: FadingSums, F: Array, V: Array) -> tuple[Array, Array]:
    """θ̂ and what is lost, as the lines for one run in `_by_sums`."""
    xp, A = arrays.namespace(sums.A), sums.A
    sizes = xp.linalg.diagonal(V)
    theta = arrays.dot(F, arrays.dot(F.mT, A[..., -1, :-1]))
    kappa = xp.sum(sizes * xp.vecdot(F, F), axis=-1)
    length = xp.sqrt(xp.sum(sizes * theta * theta, axis=-1))
    steps = sums.steps + xp.zeros_like(kappa)
    paid = xp.sqrt(xp.where(A[..., -1, -1] > 0, A[..., -1, -1], 0.0))
    return theta, xp.stack([steps, xp.sqrt(steps) * kappa, xp.sqrt(steps * kappa) * (paid + length)], axis=-1)


def _triangle(parts: list[Array]) -> Array:
    """R of R'R = Σ P'P over the parts (..., n, d), with a positive diagonal."""
    xp = arrays.namespace(parts[0])
    R = xp.linalg.qr(xp.concat(parts, axis=-2), mode="reduced")[1]
    return R * xp.where(xp.linalg.diagonal(R) < 0, -1.0, 1.0)[..., None]

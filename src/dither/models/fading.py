"""Ridge regression that forgets: its sums are kept, and V⁻¹ = FF' is made anew from them after each update.

    A = Σ ω yy',  y = (x, r),  ω as of `forgetting`         A ← left A + ω yy'       (with `units`, y = (x, targets))
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
from dither.models import digits, factor, forgetting, units, window
from dither.models.model import of_one, sound
from dither.models.window import WindowRows

MOST = 1e-5  # of ω (as of `digits`), above which the sums are not factored


class FadingState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    F: Array  # (..., d, d)  V⁻¹ = FF', upper triangular
    theta: Array  # (..., d)  θ̂; reward per feature
    A: Array  # (..., d+J, d+J)  Σ ω yy' of J targets: r alone, or those of `units`
    lost: Array  # (..., 3)  additions that A stands for; D and q as of `digits`, with κ for κ
    norms: Array | None  # (..., 2)  Σ ω ‖x‖², Σ ω ‖x‖ |r|, where a policy asked for them and there is no window
    now: Array | None  # (...)  the time, where there is a clock
    history: WindowRows | None  # the rows of a window
    noise: Array | None = None  # (..., d, d)  Σ ω² xx', where a policy asked for it and there is no window
    units: Any = None  # `Units`, where a setting or a policy asked for them


class FadingSums(NamedTuple):
    """The sums after n rows, and what else a factor can be made of where they have lost too many digits."""

    lam: Any  # a number or (...)
    c: Any  # the centre of rewards: a number or (...)
    A: Array  # (..., d+J, d+J)
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
        d, lam = self.F.shape[-1], self.lam
        return self.A[..., :d, :d] + units.over_matrix(lam) * factor.identity(self.A[..., :d, 0])

    def run(self, i: tuple[int, ...]) -> "FadingSums":
        """Those of one run."""
        rows = None if self.rows is None else window.run(self.rows, i)
        left, weight = self.left if isinstance(self.left, float) else self.left[i], self.weight
        lam, c = (float(x[i]) if getattr(x, "ndim", 0) else x for x in (self.lam, self.c))
        parts = (self.F[i], self.lost[i], rows, self.X[i], None if weight is None else weight[i])
        return FadingSums(lam, c, self.A[i], self.steps[i], left, *parts)


def init(model: Any, zeros: Array, F: Array, *, lam: float, needs: frozenset[str]) -> FadingState:
    """Before the first observation, for θ̂ = zeros (..., d) and F = I/√λ."""
    d, unbounded = zeros.shape[-1], model.window is None
    of_units = units.init(model, zeros, needs=needs, ones=True) if model.measures(needs) else None
    width = d + (1 if of_units is None else units.count(of_units))
    begun = arrays.namespace(zeros).asarray([0.0, float(d), 0.0], dtype=zeros.dtype, device=arrays.device(zeros))
    return FadingState(
        F,
        zeros,
        arrays.blank(zeros, width, width),
        arrays.blank(zeros, 3) + begun,
        arrays.blank(zeros, 2) if "lipschitz" in needs and unbounded else None,
        None if model.half_life is None else arrays.blank(zeros) + forgetting.BEFORE,
        None if unbounded else window.init(arrays.blank(zeros, width)),
        arrays.blank(zeros, d, d) if "noise_width" in needs and unbounded else None,
        of_units,
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
    d, left, rows, lam = len(x), model.discount, state.history, model.lam_of(state)
    y = np.empty(len(state.A))
    y[:d], y[d:] = x, r if state.units is None else units.targets(model, state.units, r)
    if left < 1:
        A = arrays.dger()(1.0, y, y, 1, 1, (left * state.A).T, 1, 1, 1).T
        steps = left * state.lost.item(0) + 1
    elif rows is None or not own or (slid := window.one(rows, state.A, y, window=model.window, lam=lam)) is None:
        return None
    else:
        A, rows, steps = slid
    quick = _by_sums(lam, _centre(state), A, steps, d)
    if quick is None or not np.vdot(quick[1], quick[1]) < math.inf:
        return None
    F, Theta, lost = quick
    return _state(state, F, Theta, A, lost, history=rows)


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
    y = r[..., None] if state.units is None else units.targets(model, state.units, r)
    Y, lam, c = xp.concat([X, y], axis=-1), model.lam_of(state), _centre(state)
    if state.history is None:
        A, steps = forgetting.times(left, state.A) + _gram(Y, weight), left * state.lost[..., 0] + n
        norms = None if state.norms is None else forgetting.times(left, state.norms) + _norms(X, r, weight)
        F, Theta, lost = _factored(FadingSums(lam, c, A, steps, left, state.F, state.lost, None, X, weight))
        return _state(state, F, sound(Theta), A, lost, norms=norms, now=now, noise=noise)
    A, rows, steps = window.slid(
        state.history, state.A, Y, weight, window=model.window, lam=lam, own=own, d=X.shape[-1]
    )
    try:
        F, Theta, lost = _factored(FadingSums(lam, c, A, steps, 1.0, state.F, state.lost, rows, X, weight))
        return _state(state, F, sound(Theta), A, lost, history=rows)
    except BaseException:
        window.cleared(rows, state.history)
        raise


def advanced(model: Any, state: FadingState, at: Array) -> FadingState:
    """The state at the time at (...), as after a row of zeros; an earlier time changes nothing."""
    nothing = arrays.blank(state.theta, 1, state.theta.shape[-1])
    weight = None if state.units is None else nothing[..., 0]  # a row of no weight is no reward of 0 either
    return update_many(model, state, nothing, nothing[..., 0], at=at[..., None], weight=weight)


def rescaled(model: Any, state: FadingState, before: Any) -> FadingState:
    """With the λ of its units in place of the one before, of which the sums hold nothing."""
    d, n = state.theta.shape[-1], 0
    nothing, steps = arrays.blank(state.theta, n, d), state.lost[..., 0]
    sums = FadingSums(
        model.lam_of(state), _centre(state), state.A, steps, 1.0, state.F, state.lost, state.history, nothing, None
    )
    F, Theta, lost = _factored(sums)
    return _state(state, F, Theta, state.A, lost)


def _state(state: FadingState, F: Array, Theta: Array, A: Array, lost: Array, **more: Any) -> FadingState:
    """The state after a step: Theta (..., J, d) for J targets; more: fields that have changed."""
    of_units, d = state.units, F.shape[-1]
    theta = Theta[..., 0, :]
    if of_units is not None:
        xp, Z = arrays.namespace(A), A[..., d:, :d] @ F
        square = xp.sum(xp.linalg.diagonal(A[..., :d, :d]), axis=-1)
        Y = A[..., d:, d:]
        of_units = units.summed(of_units, Theta, Y, Y - Z @ Z.mT, square)
        theta = units.provisional(of_units)
    return state._replace(F=F, theta=theta, A=A, lost=lost, units=of_units, **more)


def _centre(state: FadingState) -> Any:
    """c of before, a number or (...)."""
    return 0.0 if state.units is None else units.value(state.units, units.CENTRE)


def logdet(model: Any, state: FadingState) -> Array:
    """log(det V/det λI), (...)."""
    xp, lam = arrays.namespace(state.F), model.lam_of(state)
    of_lam = xp.log(lam)[..., None] if getattr(lam, "ndim", 0) else math.log(lam)
    return -xp.sum(2 * xp.log(xp.abs(xp.linalg.diagonal(state.F))) + of_lam, axis=-1)


def noise_width(model: Any, state: FadingState, X: Array) -> Array:
    """‖x_i‖ in the norm of V⁻¹ṼV⁻¹, Ṽ = λI + Σ ω² xx': X (..., K, d) -> (..., K)."""
    return arrays.norms(X @ state.F @ state.F.mT @ _root(model, state).mT)


def noise_logdet(model: Any, state: FadingState) -> Array:
    """log(det Ṽ/det λI), (...)."""
    xp = arrays.namespace(state.F)
    lam = model.lam_of(state)
    of_lam = xp.log(lam)[..., None] if getattr(lam, "ndim", 0) else math.log(lam)
    return xp.sum(2 * xp.log(xp.linalg.diagonal(_root(model, state))) - of_lam, axis=-1)


def _root(model: Any, state: FadingState) -> Array:
    """R with Ṽ = R'R: (..., d, d)."""
    noise: Any = state.noise
    penalty = units.over_matrix(model.lam_of(state)) * factor.identity(state.theta)
    return arrays.namespace(noise).linalg.cholesky(noise + penalty).mT


def _noisier(model: Any, state: FadingState, X: Array, r: Array, *, weight: Array | None, at: Array | None) -> Array:
    """Σ ω² xx' after n more observations: as Σ ω xx' where all fades twice as fast."""
    left, weight, _ = forgetting.fade(model.squared, r, weight=weight, at=at, now=state.now)
    return forgetting.times(left, state.noise) + _gram(X, weight)


def norms(state: FadingState) -> Array:
    """Σ ω ‖x‖² and Σ ω ‖x‖ |r| of all that counts, (..., 2)."""
    if state.history is None:
        return state.norms
    xp, d = arrays.namespace(state.A), state.theta.shape[-1]
    each = [_norms(X, r, count) for X, r, count in window.observed(state.history, d, first(state))]
    return xp.reshape(xp.stack(each), (*state.A.shape[:-2], 2))


def first(state: FadingState) -> Any:
    """r₁, about which the rows keep rewards: (...), or None for 0."""
    return None if state.units is None else state.units.shared[..., units.FIRST]


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
    """F, Θ and what is lost, after n rows."""
    A, batch, d = sums.A, sums.A.shape[:-2], sums.F.shape[-1]
    if type(A) is np.ndarray and not batch:
        return _by_sums(sums.lam, sums.c, A, float(sums.steps), d) or _by_rows(sums)
    if type(A) is np.ndarray:
        each = zip(*(_factored(sums.run(i)) for i in np.ndindex(batch)), strict=True)
        F, Theta, lost = (np.reshape(np.stack(part), (*batch, *part[0].shape)) for part in each)
        return F, Theta, lost
    xp, V, eye = arrays.namespace(A), sums.V, factor.identity(A[..., :d, 0])
    least = xp.sum(xp.linalg.diagonal(V), axis=-1) / sums.lam  # κ is not larger
    bad = digits.LOST * xp.sqrt(sums.steps) * least > MOST
    F = xp.linalg.solve(xp.linalg.cholesky(xp.where(bad[..., None, None], eye, V)).mT, eye)
    Theta, lost = _estimated(sums, F, V)
    if not arrays.some(bad):
        return F, Theta, lost
    other, pick = _by_rows(sums), bad[..., None, None]
    return (
        xp.where(pick, other[0], F),
        xp.where(pick, other[1], Theta),
        xp.where(pick[..., 0], other[2], lost),
    )


def _by_sums(
    lam: float, c: float, A: np.ndarray, steps: float, d: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """F from the Cholesky factor of V, with Θ and what is lost, for one run in NumPy; None if too much is lost."""
    potrf, trtri = arrays.lapack()
    V = A[:d, :d].copy()
    V.ravel()[:: d + 1] += lam
    sizes = V.diagonal().copy()
    L, bad = potrf(V.T, 1, 1, 1)  # lower, with zeros above, in place
    if bad:
        return None
    F = trtri(L, 1, 0, 1)[0].T
    if len(A) == d + 1:
        theta = F.dot(A[d, :d].dot(F))
        Theta, paid = theta[None], math.sqrt(A[d, d])
    else:
        Theta = A[d:, :d].dot(F).dot(F.T)
        theta, paid = Theta[0] - c * Theta[1], math.sqrt(A[d, d]) + abs(c) * math.sqrt(A[d + 1, d + 1])
    kappa = float(sizes.dot(np.vecdot(F, F)))
    D = math.sqrt(steps) * kappa
    if not digits.LOST * D <= MOST:
        return None
    length = math.sqrt(float(sizes.dot(theta * theta)))
    return F, Theta, np.array([steps, D, math.sqrt(steps * kappa) * (paid + length)])


def _by_rows(sums: FadingSums) -> tuple[Array, Array, Array]:
    """The same by QR of the rows of a window, or of the earlier factor and the new rows."""
    xp, V, A, X = arrays.namespace(sums.A), sums.V, sums.A, sums.X
    d = sums.F.shape[-1]
    eye = factor.identity(A[..., :d, 0])
    if sums.rows is None:
        left, before = sums.left + xp.zeros_like(A[..., 0, 0]), sums.lost[..., 1]
        earlier = forgetting.times(xp.sqrt(left), xp.linalg.solve(sums.F, eye))
        fresh = forgetting.times(xp.sqrt((1 - left) * sums.lam), eye)
        R = _triangle([earlier, fresh, X if sums.weight is None else xp.sqrt(sums.weight)[..., None] * X])
    else:
        roots = (units.over_matrix(sums.lam) ** 0.5 * eye) + xp.zeros_like(V)
        ridge, before = xp.reshape(roots, (-1, d, d)), xp.zeros_like(A[..., 0, 0])
        each = [
            _triangle([ridge[k, ...], xp.sqrt(count)[:, None] * Y[:, :d]])
            for k, (Y, count) in enumerate(window.each(sums.rows))
        ]
        R = xp.reshape(xp.stack(each), V.shape)
    F = xp.linalg.solve(R, eye)
    kappa = xp.sum(xp.linalg.diagonal(V) * xp.vecdot(F, F), axis=-1)
    if not bool(xp.all(digits.LOST * xp.sqrt(kappa) <= digits.WORST)):
        raise ValueError(
            f"x is too long beside lam={arrays.largest(sums.lam):g} and what was learnt before: float64 cannot hold so "
            "short a width beside those of other directions; scale x down or raise lam"
        )
    Theta, lost = _estimated(sums, F, V)
    return F, Theta, xp.stack([lost[..., 0], xp.hypot(before, xp.sqrt(kappa)), lost[..., 2]], axis=-1)


def _estimated(sums: FadingSums, F: Array, V: Array) -> tuple[Array, Array]:
    """θ̂ and what is lost, as the lines for one run in `_by_sums`."""
    xp, A, d = arrays.namespace(sums.A), sums.A, sums.F.shape[-1]
    sizes = xp.linalg.diagonal(V)
    kappa = xp.sum(sizes * xp.vecdot(F, F), axis=-1)
    steps = sums.steps + xp.zeros_like(kappa)
    paid = xp.sqrt(xp.where(A[..., d, d] > 0, A[..., d, d], 0.0))
    theta = arrays.dot(F, arrays.dot(F.mT, A[..., d, :d]))
    Theta = theta[..., None, :]
    if A.shape[-1] > d + 1:
        Theta = (A[..., d:, :d] @ F) @ F.mT
        c = sums.c if isinstance(sums.c, float) else sums.c[..., None]
        theta = Theta[..., 0, :] - c * Theta[..., 1, :]
        paid = paid + abs(sums.c) * xp.sqrt(A[..., d + 1, d + 1])
    length = xp.sqrt(xp.sum(sizes * theta * theta, axis=-1))
    return Theta, xp.stack([steps, xp.sqrt(steps) * kappa, xp.sqrt(steps * kappa) * (paid + length)], axis=-1)


def _triangle(parts: list[Array]) -> Array:
    """R of R'R = Σ P'P over the parts (..., n, d), with a positive diagonal."""
    xp = arrays.namespace(parts[0])
    R = xp.linalg.qr(xp.concat(parts, axis=-2), mode="reduced")[1]
    return R * xp.where(xp.linalg.diagonal(R) < 0, -1.0, 1.0)[..., None]

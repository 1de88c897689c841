"""The units of rewards and of features, as a regression finds them: the centre c, σ̂, τ̂ and λ (docs/scale.md).

    y = (r - r₁, 1)            two targets of one regression, about the first reward r₁: Θ = V⁻¹ Σ ω xy'
    c   = Σ ω (r - r₁)/Σ ω     for slots that share a constant column;  -r₁ without one: rewards as they are
    θ̂_k = Θ (1, -c)            in slot k, and the intercept of all slots adds r₁ + c
    N   = Σ ω,   Q = Σ ω (y'(1, -c))²,   S = Q - Σ_slots θ̂'Vθ̂         S = Σ e²/s of the errors e one step ahead
    s₀² = Q/N,   σ̂² = (s₀² + S)/(1 + N),   τ̂² = s₀²/mean ‖x‖²
    A   = ‖x‖²_{V⁻¹},   ρ = λA/‖x‖²,   w² = A (σ̂² (1 - ρ) + λτ̂² ρ)

ρ is 1 in a direction that was never seen, and goes to 0 as it is learnt. At both ends w² is the mean squared error of
x'θ̂ where rewards have the variance σ̂² and θ has τ̂² in every direction: noise, and shrinkage. Between them it is that
of a regression along x alone. The exact one has λ²‖V⁻¹x‖²/A for ρ, which is at least ρ, and costs a second product;
`error_sample` draws from it.

All is a function of what was learnt, so choice probabilities stay exact. No unit of rewards or of features is in it.
Before the first row σ̂² = λ and τ̂ = 1; where all rewards are equal, all widths are 0. With `reward_range` a third
target is the clipped reward, and Q and S are its.

A slot holds its own sums. `shared` is the same in all slots, and stands in each of them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import digits, penalty
from dither.models.digits import Rounding
from dither.models.linear_model import LinearModel

N, SIZE, Q, R, S, M, T = range(7)  # the places in `sums`
LAM, ROWS, SQUARE, FIRST, BEGUN, CENTRE, NOISE, PRIOR, SHIFT = range(9)  # the places in `shared`
ASKED = frozenset({"error_width", "error_sample"})  # the abilities that need σ̂ and τ̂
POOLED = "pooled"  # asked of `init` for slots that are centred
TINY = 1e-300  # is added to ‖x‖², which something is divided by
LEFT = 4e-15  # of Σ ω q², below which what is left of it is rounding
FAINT = 1e-100  # a column of such numbers is no intercept, since its coefficient would overflow
ALIKE = 1e-6  # of a value, within which a column is constant
FAR = 1e3  # σ̂² over λτ̂² above which the rounding of each width is told by itself


class Units(NamedTuple):
    """What is known of units; shapes (...) are replications, and the slots behind them.

    q is the reward about r₁, or the clipped reward; E is what the regression leaves of Σ ω yy'.
    """

    Theta: Array | None  # (..., J, d)  V⁻¹ Σ ω x y_j for J targets; reward per feature. None: θ̂ is all of it
    sums: Array  # (..., 7)  Σ ω, Σ ω ‖x‖², Σ ω q², Σ ω q; then E of (q, q), (q, 1) and (1, 1)
    constant: Array | None  # (..., d)  what columns were in all of the first rows, 0 where they varied; None: no centre
    shared: Array  # (..., 9)  λ; the rows and Σ ‖x‖² of its rule; r₁; whether there is one; with Θ also c, σ̂², τ̂² and
    #   what r₁ + c adds to the rounding of means


class Widths(NamedTuple):
    """Widths in units of rewards, (..., K), and what bounds their rounding."""

    w: Array
    raw: Array  # ‖x‖_{V⁻¹} is at most `length` times this
    length: Any  # a number, or (..., 1)
    share: Any  # the relative error of w, in those of ‖x‖_{V⁻¹}


class MeasuringModel(LinearModel):
    """A linear regression that finds its units, where a setting or a policy asks for them: then `state.units` is there.

    Its fields are lam, centre and reward_range. A subclass learns in `absorbed`, where targets of `units` stand in
    place of the reward, and gives its state another λ in `rescaled`.
    """

    lam: Any
    centre: Any
    reward_range: Any
    rescaled: Callable[..., Any]
    perturb: Callable[..., Array]

    def measures(self, needs: frozenset[str]) -> bool:
        """Whether units are kept."""
        return self.lam == penalty.AUTO or bool(needs & ASKED) or POOLED in needs

    def lam_of(self, state: Any) -> Any:
        """λ in force: a number, or (...)."""
        return self.lam if state.units is None else value(state.units, LAM)

    def update(self, state: Any, x: Array, r: Array, **settings: Any) -> Any:
        """One more observation: x (..., d), r (...).

        weight=None (...) : a weight of 0 changes nothing
        at=None (...) : with `half_life`, the time of the observation
        own=False : as of `owns`
        """
        units = state.units
        if units is None or (units.Theta is None and settled(self, units)):
            return self.absorbed(state, x, r, **settings)
        if not settled(self, units):
            weight = settings.get("weight")
            weight = None if weight is None else weight[..., None]
            state = self.announced(state, x[..., None, :], r[..., None], weight)
        return self.agreed(self.absorbed(state, x, r, **settings))

    def update_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """n observations at once: X (..., n, d), r, weight, at (..., n); the same as n updates."""
        if state.units is None:
            return self.absorbed_many(state, X, r, **settings)
        if not X.shape[-2]:
            return state
        state = self.announced(state, X, r, settings.get("weight"))
        return self.agreed(self.absorbed_many(state, X, r, **settings))

    def shares(self, state: Any) -> bool:
        """Whether units are kept: then they are one for all slots."""
        return state.units is not None

    def announced(self, state: Any, X: Array, r: Array, weight: Array | None = None, *, slots: bool = False) -> Any:
        """The state that knows which rows come next, in this order: λ, r₁ and the constant columns are of them too.

        X (..., n, d), r, weight (..., n), without the axis of slots. Nothing is learnt yet.
        """
        units = announced(self, state.units, X, r, weight, slots=slots)
        if units is state.units:
            return state
        before, after = value(state.units, LAM), value(units, LAM)
        state, changed = state._replace(units=units), before != after
        moved = changed if isinstance(changed, bool) else arrays.some(changed)
        return self.rescaled(state, before) if moved else state

    def joined(self, state: Any) -> Any:
        """The state of slots (..., K, *) of which the last are new: they know what the first one knows of all."""
        if state.units is None:
            return state
        before, units = value(state.units, LAM), state.units
        constant = None if units.constant is None else units.constant[..., :1, :] + 0.0 * units.constant
        units = units._replace(shared=units.shared[..., :1, :] + 0.0 * units.shared, constant=constant)
        return self.agreed(self.rescaled(state._replace(units=units), before), slots=True)

    def agreed(self, state: Any, *, slots: bool = False, own: bool = False) -> Any:
        """The state with θ̂, c, σ̂ and τ̂ of all that was learnt; own: arrays of the state may be overwritten."""
        if state.units is None or state.units.Theta is None:
            return state
        units, theta = agreed(state.units, slots=slots, into=state.theta if own else None)
        return state._replace(units=units, theta=theta)

    def error_width(self, state: Any, X: Array, *, slots: bool = False) -> Widths:
        """w_i of the module's docstring: X (..., K, d) -> (..., K).

        slots : the last leading axis is that of slots, whose σ̂ and τ̂ are those of all together
        """
        A = self.squared_width(state, X)
        size = arrays.namespace(X).vecdot(X, X)
        size += TINY
        lam, noise, prior = _beside_rows(state.units, slots=slots)
        return _widths(A, size, lam=lam, noise=noise, prior=lam * prior)

    def squared_width(self, state: Any, X: Array) -> Array:
        """‖x_i‖² in the norm of V⁻¹: X (..., K, d) -> (..., K)."""
        P = X @ state.F
        return arrays.namespace(X).vecdot(P, P)

    def error_sample(self, state: Any, eta: Array, *, slots: bool = False) -> Array:
        """N(0, V⁻¹(σ̂² Σ xx' + τ̂² λ² I)V⁻¹) in the shape of θ̂, from η ~ N(0, I) (..., 3 d): noise, then shrinkage."""
        d, units = state.theta.shape[-1], state.units
        lam, noise, prior = _beside_rows(units, slots=slots)
        shrinkage = lam * prior**0.5 * self.inverted(state, eta[..., 2 * d :])
        return noise**0.5 * self.perturb(state, eta[..., : 2 * d]) + shrinkage

    def inverted(self, state: Any, b: Array) -> Array:
        """V⁻¹b, (..., d)."""
        return arrays.dot(state.F, arrays.dot(state.F.mT, b))

    def noise_sd(self, state: Any, *, slots: bool = False) -> Any:
        """σ̂: a number, or (...)."""
        noise, _ = scales(state.units, slots=slots)
        return math.sqrt(noise) if isinstance(noise, float) else arrays.namespace(noise).sqrt(noise)

    def rounding_of(self, state: Any) -> Rounding:
        """What rounding may have done to the means and widths of θ̂ alone."""
        return LinearModel.rounding(self, state)

    def rounding(self, state: Any) -> Rounding:
        """What rounding may have done to means and widths, as of `LinearModel`; an intercept adds that of r₁ + c."""
        of_theta, more = self.rounding_of(state), more_rounding(state.units)
        if type(more) is float:
            return Rounding(of_theta.rho + more, of_theta.omega) if more else of_theta
        return Rounding(of_theta.rho + more[..., None], of_theta.omega)


def more_rounding(units: Units | None, *, slots: bool = False) -> Any:
    """What r₁ + c adds to the rounding of means: a number, or (...); slots: without their axis."""
    return 0.0 if units is None or units.constant is None else digits.LOST * value(units, SHIFT, slots=slots)


def scales_of(units: Units, *, slots: bool = False) -> tuple[Any, ...]:
    """λ, σ̂² and λτ̂² of one bandit; or λ and the sums that they are made of, which takes less time."""
    lam = value(units, LAM, slots=slots)
    if units.Theta is None:
        return lam, units.sums
    noise, prior = scales(units, slots=slots)
    return lam, noise, lam * prior


def _widths(A: Array, size: Array, *, lam: Any, noise: Any, prior: Any) -> Widths:
    """√(A (σ̂² (1 - ρ) + λτ̂² ρ)) for A and ‖x‖² (..., K), and bounds of rounding; prior: λτ̂²."""
    xp = arrays.namespace(A)
    if type(noise) is float and 0 < noise <= FAR * prior:
        w = A / size
        w *= lam * (prior - noise)
        w += noise
        w *= A
        w = xp.sqrt(w)
        return Widths(w, w, 1 / math.sqrt(min(noise, prior)), 1 + max(1.0, noise / prior))
    slope = noise + lam * (prior - noise) * (A / size)
    low = (min(noise, prior) if isinstance(noise, float) else xp.where(noise < prior, noise, prior)) + 0.0 * A
    slope = xp.where(slope < low, low, slope)  # rounding may take more of σ̂² (1 - ρ) than there is
    safe = xp.where(slope > 0, slope, xp.ones_like(slope))
    share = 1 + xp.where(noise > slope, noise / safe, xp.ones_like(slope))
    return Widths(xp.sqrt(slope * A), xp.sqrt(A), 1.0, share)


def value(units: Units, place: int, *, slots: bool = False) -> Any:
    """A number of `shared`: a float for one bandit, else (...); slots: without the axis of slots, which share it."""
    shared = units.shared[..., 0, :] if slots else units.shared
    return shared.item(place) if shared.ndim == 1 and type(shared) is np.ndarray else shared[..., place]


def check(model: Any) -> None:
    """Refuse a centre that is no truth value, and a reward_range that is neither None nor two numbers in order."""
    errors.true_or_false("centre", model.centre)
    reward_range = model.reward_range
    if reward_range is None:
        return
    try:
        low, high = (float(end) for end in reward_range)
    except (TypeError, ValueError):
        raise TypeError(f"reward_range must be two numbers (low, high), or None; got {reward_range!r}") from None
    for end in (low, high):
        errors.within("each of reward_range", end, -errors.LARGEST, errors.LARGEST)
    if not low < high:
        raise ValueError(f"reward_range must be (low, high) with low < high, got {reward_range!r}")
    object.__setattr__(model, "reward_range", (low, high))


def init(model: Any, zeros: Array, *, needs: frozenset[str], ones: bool = False) -> Units:
    """Before the first row, for θ̂ = zeros (..., d); ones: the second target is kept whoever asks."""
    xp, d = arrays.namespace(zeros), zeros.shape[-1]
    lam = penalty.FIRST if model.lam == penalty.AUTO else float(model.lam)
    start = [lam, *[0.0] * 5, lam, 1.0, 0.0]
    shared = arrays.blank(zeros, 9) + xp.asarray(start, dtype=zeros.dtype, device=arrays.device(zeros))
    J = 3 if model.reward_range else 2
    Theta = arrays.blank(zeros, J, d) if ones or model.reward_range or POOLED in needs else None
    return Units(Theta, arrays.blank(zeros, 7), arrays.blank(zeros, d) if POOLED in needs else None, shared)


def count(units: Any) -> int:
    """J, how many targets there are."""
    return 1 if units.Theta is None else units.Theta.shape[-2]


def settled(model: Any, units: Units) -> bool:
    """Whether nothing of `shared` can change any more, for one bandit without a centre."""
    shared = units.shared
    if units.constant is not None or shared.ndim > 1 or type(shared) is not np.ndarray:
        return False
    return model.lam != penalty.AUTO or (shared.item(ROWS) >= penalty.ROWS and shared.item(SQUARE) > 0)


def targets(model: Any, units: Units, r: Array) -> Array:
    """y of rewards: r (...) of `units` without rows -> (..., J), or r (..., n) -> (..., n, J)."""
    xp, first, clip = arrays.namespace(units.shared), value(units, FIRST), model.reward_range
    if isinstance(first, float) and getattr(r, "ndim", 0) == 0:
        y = [r - first, 1.0]
        return np.array(y if clip is None else [*y, min(max(r, clip[0]), clip[1]) - first])
    if r.ndim > units.shared.ndim - 1 and not isinstance(first, float):
        first = first[..., None]
    y = [r - first, xp.ones_like(r)]
    if clip is not None:
        y.append(xp.clip(r, *clip) - first)
    return xp.stack(y, axis=-1)


def announced(model: Any, units: Units, X: Array, r: Array, weight: Array | None, *, slots: bool) -> Units:
    """`MeasuringModel.announced` of the units: the same ones where nothing has changed."""
    xp, (shared, constant) = arrays.namespace(X), _of_all(units, slots=slots)
    news: dict[int, Array] = {}
    if model.lam == penalty.AUTO:
        rule = penalty.Rule(shared[..., LAM], shared[..., ROWS], shared[..., SQUARE])
        later = penalty.advanced(rule, X, weight)
        if later is not rule:
            if penalty.too_long(rule, later, d=X.shape[-1]):
                raise ValueError(
                    "x is too long beside what was learnt before: λ of the first rows would be more than "
                    f"{penalty.BESIDE:g} times mean ‖x‖², and nothing of what was learnt be left; leave the row out, "
                    "scale x down, or give lam a number"
                )
            news = {LAM: later.lam, ROWS: later.rows, SQUARE: later.square}
    if constant is not None and not _steady(shared):
        omega = xp.ones_like(r) if weight is None else weight + xp.zeros_like(r)
        before = shared[..., ROWS][..., None] + xp.cumulative_sum(omega, axis=-1) - omega
        counts = (before < penalty.ROWS) & (omega > 0) & xp.any(X != 0, axis=-1)
        start, begun = xp.argmax(xp.astype(counts, xp.int64), axis=-1), shared[..., BEGUN] > 0
        begins = ~begun & xp.any(counts, axis=-1)
        r1 = arrays.pick(r, start, rank=0)
        r1 = r1 if model.reward_range is None else xp.clip(r1, *model.reward_range)
        news[FIRST] = xp.where(begins, r1, shared[..., FIRST])
        news[BEGUN] = xp.where(begins, 1.0, shared[..., BEGUN])
        if model.lam != penalty.AUTO:
            news[ROWS] = xp.clip(shared[..., ROWS] + xp.sum(omega, axis=-1), max=float(penalty.ROWS))
        row = arrays.pick(X, start, rank=1)
        row = xp.where(xp.abs(row) > FAINT, row, xp.zeros_like(row))
        constant = xp.where(begins[..., None], row, constant)
        near = ALIKE * xp.abs(constant[..., None, :])
        same = (xp.abs(X - constant[..., None, :]) <= near) | ~counts[..., None]
        kept = xp.where(xp.all(same, axis=-2), constant, 0.0)
        units = units._replace(constant=(kept[..., None, :] if slots else kept) + xp.zeros_like(units.constant))
    if not news:
        return units
    parts = [news.get(k, shared[..., k]) for k in range(9)]
    shared = xp.stack(parts, axis=-1)
    return units._replace(shared=(shared[..., None, :] if slots else shared) + xp.zeros_like(units.shared))


def _steady(shared: Array) -> bool:
    """Whether r₁ and the constant columns stay as they are, told at once for one bandit."""
    if shared.ndim > 1 or type(shared) is not np.ndarray:
        return False
    return shared.item(ROWS) >= penalty.ROWS and shared.item(BEGUN) > 0


def learnt(units: Any, y: Array, *, x: Array, u: Array, s: Array, weight: Any) -> tuple[Units, Array]:
    """After one row x (..., d) with targets y (..., J), weighted; u = V⁻¹x and s = 1 + x'V⁻¹x before. -> e besides"""
    omega = 1.0 if weight is None else weight
    e = y - arrays.dot(units.Theta, x)
    q = y.shape[-1] // 3 * 2
    if y.ndim == 1 and type(y) is np.ndarray:
        yq, y1, eq, e1, s = y.item(q), y.item(1), e.item(q), e.item(1), float(s)
    else:
        yq, y1, eq, e1 = y[..., q], y[..., 1], e[..., q], e[..., 1]
    rows = [omega, arrays.inner(x, x), yq * yq, yq * y1, eq * eq / s, eq * e1 / s, e1 * e1 / s]
    Theta = units.Theta + arrays.outer(e / (s if getattr(s, "ndim", 0) == 0 else s[..., None]), u)
    return Units(Theta, units.sums + _row(rows, units.sums), units.constant, units.shared), e


def counted(units: Units, *, x: Array, r: Array, e: Array, s: Array, weight: Any) -> Units:
    """After one row where θ̂ is all there is: x (..., d), r and e = r - x'θ̂ of before (...), weighted."""
    omega, sums = 1.0 if weight is None else weight, units.sums
    if x.ndim == 1 and type(sums) is np.ndarray:
        r, e = float(r), float(e)
        more = np.array([float(omega), float(x.dot(x)), r * r, 0.0, e * e / float(s), 0.0, 0.0])
    else:
        more = _row([omega, arrays.inner(x, x), r * r, 0.0, e * e / s, 0.0, 0.0], sums)
    return Units(None, sums + more, units.constant, units.shared)


def learnt_many(units: Any, y: Array, *, X: Array, step: Array, E: Array, weight: Array | None) -> Units:
    """After n rows X (..., n, d) with targets y (..., n, J), weighted; step (..., d, J) that of Θ', E grows by E.

    y has the reward alone where θ̂ is all there is.
    """
    xp, J = arrays.namespace(X), y.shape[-1]
    zero = xp.zeros_like(units.sums[..., N])
    count = zero + float(y.shape[-2]) if weight is None else xp.sum(weight, axis=-1)
    Y, size = y.mT @ y, arrays.gram_trace(X)
    if J == 1:
        parts = [count, size, Y[..., 0, 0], zero, E[..., 0, 0], zero, zero]
        return units._replace(sums=units.sums + xp.stack(parts, axis=-1))
    return units._replace(Theta=units.Theta + step.mT, sums=units.sums + _of_targets(count, size, Y, E))


def summed(units: Units, Theta: Array, Y: Array, E: Array, size: Array) -> Units:
    """Of sums that are kept elsewhere: Y and E (..., J, J), Σ ω ‖x‖² (...)."""
    return units._replace(Theta=Theta, sums=_of_targets(Y[..., 1, 1], size, Y, E))


def _of_targets(count: Array, size: Array, Y: Array, E: Array) -> Array:
    """`sums` of Σ ω, Σ ω ‖x‖² (...), Y and E (..., J, J)."""
    q = Y.shape[-1] // 3 * 2
    parts = [count, size, Y[..., q, q], Y[..., q, 1], E[..., q, q], E[..., q, 1], E[..., 1, 1]]
    return arrays.namespace(Y).stack(parts, axis=-1)


def left_over(units: Units, theta: Array, B: Array) -> Units:
    """S, M and T where Θ, or θ̂ without one, was made anew from B = Σ ω yx' (..., J, d)."""
    xp, sums = arrays.namespace(B), units.sums
    Theta = theta[..., None, :] if units.Theta is None else units.Theta
    G, q = B @ Theta.mT, (0 if units.Theta is None else Theta.shape[-2] // 3 * 2)
    zero = xp.zeros_like(G[..., 0, 0])
    of_one = [zero, zero] if units.Theta is None else [sums[..., R] - G[..., q, 1], sums[..., N] - G[..., 1, 1]]
    rest = [sums[..., Q] - G[..., q, q], *of_one]
    return units._replace(sums=xp.concat([sums[..., :S], xp.stack(rest, axis=-1)], axis=-1))


def root(V: Array) -> Array:
    """F with FF' = V⁻¹, (..., d, d). Raises ValueError where float64 has lost V."""
    F = arrays.root_of_inverse(V)
    if F is None:
        raise ValueError("x is too long beside what was learnt before for float64: scale x down, or give lam a number")
    return F


def lost_again(units: Units, theta: Array, V: Array, F: Array) -> Array:
    """What rounding has done where F was made anew from V, as of `digits.grown`."""
    c, sums = value(units, CENTRE), units.sums
    paid = sums[..., Q] + c * c * sums[..., N]
    v = arrays.namespace(V).linalg.diagonal(V)
    return digits.factored(v=v, paid=paid, n=sums[..., N], F=F, theta=theta)


def over_matrix(x: Any) -> Any:
    """x, a number or (...), as it meets matrices (..., d, d)."""
    return x[..., None, None] if getattr(x, "ndim", 0) else x


def provisional(units: Any) -> Array:
    """θ̂ with the c of before, (..., d): what rounding is measured by."""
    c, Theta = value(units, CENTRE), units.Theta
    return Theta[..., 0, :] - (c if isinstance(c, float) else c[..., None]) * Theta[..., 1, :]


def magnitude(units: Units, e: Array) -> Array:
    """At least |e| of the rewards about any c so far: e (..., J) of targets, or (..., n, J) -> without J."""
    c = value(units, CENTRE)
    if not isinstance(c, float):
        c = arrays.over(arrays.namespace(c).abs(c), e[..., 0])
    return abs(e[..., 0]) + abs(c) * abs(e[..., 1])


def agreed(units: Any, *, slots: bool, into: Array | None) -> tuple[Units, Array]:
    """c, σ̂ and τ̂ of what all slots have learnt, and θ̂ of each: (..., d).

    into : the old θ̂, which may be overwritten as the units may; None: nothing is
    """
    xp, Theta = arrays.namespace(units.shared), units.Theta
    shared, constant = _of_all(units, slots=slots)
    sums, where = _pooled(units, slots=slots)
    plain = where is _where
    lam, first = (shared.item(LAM), shared.item(FIRST)) if plain else (shared[..., LAM], shared[..., FIRST])
    centred, place, size = _intercept(constant, first)
    c = _centre(sums, first, centred, where)
    noise, prior = _scales(sums, c, lam, where)
    height = where(centred, (first + c) / size, 0.0 * c)
    shift = (Theta.shape[-1] * (size * size * sums[N] + lam)) ** 0.5 * abs(height)
    if plain and into is not None:
        units.shared[..., CENTRE:] = c, noise, prior, shift
        theta = np.multiply(Theta[..., 1, :], -c, out=into)
        theta += Theta[..., 0, :]
    else:
        rest = [part + 0.0 * shared[..., LAM] for part in (c, noise, prior, shift)]
        new = xp.concat([shared[..., :CENTRE], xp.stack(rest, axis=-1)], axis=-1)
        units = units._replace(shared=(new[..., None, :] if slots else new) + xp.zeros_like(units.shared))
        theta = provisional(units)
    if constant is None:
        return units, theta
    if plain:
        theta[..., place] += height
        return units, theta
    one = xp.astype(xp.arange(theta.shape[-1], device=arrays.device(theta)) == place[..., None], theta.dtype)
    column = height[..., None] * one
    return units, theta + (column[..., None, :] if slots else column)


def scales(units: Units, *, slots: bool = False) -> tuple[Any, Any]:
    """σ̂² and τ̂² of what all slots have learnt: floats for one bandit, else (...) without the axis of slots."""
    if units.Theta is not None:
        return value(units, NOISE, slots=slots), value(units, PRIOR, slots=slots)
    sums, where = _pooled(units, slots=slots)
    return _scales(sums, 0.0 * sums[N], value(units, LAM, slots=slots), where)


def _beside_rows(units: Units, *, slots: bool) -> tuple[Any, Any, Any]:
    """λ, σ̂² and τ̂² as they meet rows (..., d): numbers, or with axes of length 1 for slots and for d."""
    lam, (noise, prior) = value(units, LAM, slots=slots), scales(units, slots=slots)
    if type(noise) is float:
        return lam, noise, prior
    behind = (..., *(None,) * (1 + slots))
    return lam[behind], noise[behind], prior[behind]


def _scales(sums: list[Any], centre: Any, lam: Any, where: Callable) -> tuple[Any, Any]:
    """σ̂² and τ̂² of pooled sums about a centre of q; λ and 1 before the first row, so that w is ‖x‖."""
    seen = sums[N] > 0
    one = 1.0 + 0.0 * sums[N]
    count = where(seen, sums[N], one)
    spread = sums[Q] - 2 * centre * sums[R] + centre * centre * sums[N]
    rest = sums[S] - 2 * centre * sums[M] + centre * centre * sums[T]
    least = LEFT * sums[Q]  # what rounding leaves of nothing
    spread, rest = where(spread > least, spread, 0.0 * count), where(rest > least, rest, 0.0 * count)
    per = spread / count
    mean = where(sums[SIZE] > 0, sums[SIZE] / count, one)
    return where(seen, (per + rest) / (1 + count), lam * one), where(seen, per / mean, one)


def _of_all(units: Units, *, slots: bool) -> tuple[Array, Array | None]:
    """`shared` and `constant` without the axis of slots."""
    if not slots:
        return units.shared, units.constant
    return units.shared[..., 0, :], None if units.constant is None else units.constant[..., 0, :]


def _pooled(units: Units, *, slots: bool) -> tuple[list[Any], Callable]:
    """The sums over all slots, floats for one bandit, and the `where` that goes with them."""
    xp, sums = arrays.namespace(units.sums), units.sums
    if slots:
        sums = xp.sum(sums, axis=-2)
    if sums.ndim == 1 and type(sums) is np.ndarray:
        return sums.tolist(), _where
    return [sums[..., k] for k in range(7)], xp.where


def _centre(sums: list[Any], first: Any, centred: Any, where: Callable) -> Any:
    """The mean of q, or -r₁ where nothing is centred, or 0 before the first row."""
    seen = sums[N] > 0
    mean = sums[R] / where(seen, sums[N], 1.0 + 0.0 * sums[N])
    return where(seen, where(centred, mean, -first), 0.0 * mean)


def _intercept(constant: Array | None, first: Any) -> tuple[Any, Any, Any]:
    """Whether there is a constant column, which one is the last, and its value (1 where there is none)."""
    if constant is None:
        return first != first, 0, 1.0  # nowhere
    if isinstance(first, float):
        place = len(constant) - 1 - int((constant[::-1] != 0).argmax())
        size = constant.item(place)
        return size != 0, place, size or 1.0
    xp = arrays.namespace(constant)
    there = xp.astype(xp.flip(constant, axis=-1) != 0, xp.int64)
    place = constant.shape[-1] - 1 - xp.argmax(there, axis=-1)
    size = arrays.pick(constant, place, rank=0)
    return size != 0, place, xp.where(size != 0, size, xp.ones_like(size))


def _row(rows: list[Any], like: Array) -> Array:
    """What one row adds to `sums`."""
    if like.ndim == 1 and type(like) is np.ndarray:
        return np.array(rows, dtype=np.float64)
    xp, zero = arrays.namespace(like), arrays.namespace(like).zeros_like(like[..., 0])
    return xp.stack([part + zero for part in rows], axis=-1)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b

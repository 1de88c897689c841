"""The units of rewards and of features, as a regression finds them: the centre c, σ̂, τ̂ and λ (docs/scale.md).

    y = (r - r₁, 1)          two targets of one regression, kept about the first reward r₁
    Y = Σ ω yy',  Θ = V⁻¹ Σ ω xy',  E = Y - Σ ω yx' Θ      E = Σ ee'/s of the errors e one step ahead,
                                                            s = 1 + ‖x‖²_{V⁻¹}

    c   = Σ ω (r - r₁)/Σ ω   for slots that share a constant column;  -r₁ without one: rewards as they are
    θ̂_k = Θ (1, -c)          in slot k, and the intercept of all slots adds r₁ + c
    N   = Σ ω,  Q = (1, -c) Y (1, -c)',  S = (1, -c) E (1, -c)'      pooled over slots
    s₀² = Q/N,  σ̂² = (s₀² + S)/(1 + N),  τ̂² = s₀²/mean ‖x‖²
    w_i² = σ̂² (‖x_i‖²_{V⁻¹} - λ ‖V⁻¹x_i‖²) + τ̂² λ² ‖V⁻¹x_i‖²

w_i² is the mean squared error of x_i'θ̂ where rewards have the variance σ̂² and θ has τ̂² in every direction: noise, then
shrinkage. All of it is a function of what was learnt, so choice probabilities stay exact. A unit of rewards or of
features is nowhere in it. Before the first row σ̂ = τ̂ = 1; where all rewards are equal, all widths are 0.

With `reward_range` a third target is the clipped reward, and Q and S are its.

A slot holds its own sums. `shared` is one for all slots, and stands in each of them.
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

LAM, ROWS, SQUARE, FIRST, BEGUN, NOISE, PRIOR, CENTRE, SHIFT, OVER = range(10)  # the places in `shared`
ASKED = frozenset({"error_width", "error_sample"})  # the abilities that need σ̂ and τ̂
POOLED = "pooled"  # asked of `init` for slots that are centred


class Units(NamedTuple):
    """What is known of units; shapes (...) are replications, and the slots behind them."""

    Theta: Array  # (..., J, d)  V⁻¹ Σ ω x y_j for J targets; reward per feature
    Y: Array  # (..., J, J)  Σ ω yy'
    E: Array  # (..., J, J)  what the regression leaves of Y
    square: Array  # (...)  Σ ω ‖x‖²
    constant: (
        Array | None
    )  # (..., d)  the value of the columns that were the same in every row, else 0; None: no centre
    shared: Array  # (..., 10)  λ, the rows and Σ ‖x‖² of its rule, r₁, whether there is one; σ̂², τ̂², c; √d |r₁ + c| and
    #   λ over the square of the intercept, of which `rounding` is made


class Widths(NamedTuple):
    """Widths in units of rewards, and what their rounding is a share of; (..., K) each."""

    raw: Array  # ‖x‖ in the norm of V⁻¹
    w: Array
    share: Array  # the relative error of w in those of ‖x‖


class MeasuringModel(LinearModel):
    """A linear regression that finds its units, where a setting or a policy asks for them: then `state.units` is there.

    Its fields are lam, centre and reward_range. A subclass has `learning`, whose update knows nothing of units but
    their targets, and `rescaled`, which gives the state another λ.
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
        if state.units is None:
            return self.absorbed(state, x, r, **settings)
        state = self.announced(state, x[..., None, :], r[..., None], _last(settings.get("weight")))
        return self.agreed(self.absorbed(state, x, r, **settings))

    def update_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """n observations at once: X (..., n, d), r, weight, at (..., n); the same as n updates."""
        if state.units is None or not X.shape[-2]:
            return self.absorbed_many(state, X, r, **settings)
        state = self.announced(state, X, r, settings.get("weight"))
        return self.agreed(self.absorbed_many(state, X, r, **settings))

    def shares(self, state: Any) -> bool:
        """Whether units are kept: then they are one for all slots."""
        return state.units is not None

    def announced(self, state: Any, X: Array, r: Array, weight: Array | None = None, *, slots: bool = False) -> Any:
        """The state that knows which rows come next, in this order: λ, r₁ and the constant columns are of them too.

        X (..., n, d), r, weight (..., n), without the axis of slots. Nothing is learnt yet.
        """
        if state.units is None:
            return state
        units = announced(self, state.units, X, r, weight, slots=slots)
        if units is state.units:
            return state
        before, after = value(state.units, LAM), value(units, LAM)
        changed = before != after
        if not arrays.some(changed) if hasattr(changed, "ndim") else not changed:
            return state._replace(units=units)
        return self.rescaled(state._replace(units=units), before)

    def joined(self, state: Any) -> Any:
        """The state of slots (..., K, *) of which the last are new: they know what the first one knows of all."""
        if state.units is None:
            return state
        before, units = value(state.units, LAM), state.units
        constant = None if units.constant is None else units.constant[..., :1, :] + 0.0 * units.constant
        units = units._replace(shared=units.shared[..., :1, :] + 0.0 * units.shared, constant=constant)
        return self.agreed(self.rescaled(state._replace(units=units), before), slots=True)

    def agreed(self, state: Any, *, slots: bool = False) -> Any:
        """The state with θ̂, σ̂, τ̂ and c of all that was learnt."""
        if state.units is None:
            return state
        units, theta = agreed(state.units, slots=slots)
        return state._replace(units=units, theta=theta)

    def error_width(self, state: Any, X: Array) -> Widths:
        """w_i of the module's docstring: X (..., K, d) -> (..., K)."""
        A, B = self.forms(state, X)
        xp, shared = arrays.namespace(A), state.units.shared
        if shared.ndim == 1 and type(shared) is np.ndarray:
            lam, noise, prior = shared.item(LAM), shared.item(NOISE), shared.item(PRIOR)
        else:
            lam, noise, prior = (shared[..., k : k + 1] for k in (LAM, NOISE, PRIOR))
        shrunk = lam * B  # λ ‖V⁻¹x‖² <= ‖x‖²_{V⁻¹}
        least = prior * (lam * shrunk)
        square = noise * A + (prior * lam - noise) * shrunk
        square = xp.where(square < least, least, square)
        loss = (noise + 2 * abs(noise - lam * prior)) * A
        share = xp.where(square > 0, loss / xp.where(square > 0, square, xp.ones_like(square)), 0.0)
        return Widths(xp.sqrt(A), xp.sqrt(square), share)

    def forms(self, state: Any, X: Array) -> tuple[Array, Array]:
        """‖x‖²_{V⁻¹} and ‖V⁻¹x‖²: X (..., K, d) -> (..., K) each."""
        P, xp = X @ state.F, arrays.namespace(X)
        U = P @ state.F.mT
        return xp.vecdot(P, P), xp.vecdot(U, U)

    def error_sample(self, state: Any, eta: Array) -> Array:
        """N(0, V⁻¹(σ̂² Σ xx' + τ̂² λ² I)V⁻¹) in the shape of θ̂, from η ~ N(0, I) (..., 3 d): noise, then shrinkage."""
        xp, d, shared = arrays.namespace(eta), state.theta.shape[-1], state.units.shared
        lam, noise, prior = (shared[..., k : k + 1] for k in (LAM, NOISE, PRIOR))
        shrinkage = lam * xp.sqrt(prior) * self.inverted(state, eta[..., 2 * d :])
        return xp.sqrt(noise) * self.perturb(state, eta[..., : 2 * d]) + shrinkage

    def inverted(self, state: Any, b: Array) -> Array:
        """V⁻¹b, (..., d)."""
        return arrays.dot(state.F, arrays.dot(state.F.mT, b))

    def noise_sd(self, state: Any) -> Any:
        """σ̂: a number, or (...)."""
        noise = value(state.units, NOISE)
        return math.sqrt(noise) if isinstance(noise, float) else arrays.namespace(noise).sqrt(noise)

    def rounding_of(self, state: Any) -> Rounding:
        """That of θ̂ alone."""
        return super().rounding(state)

    def rounding(self, state: Any) -> Rounding:
        """What rounding may have done to means and widths, as of `LinearModel`; an intercept adds that of r₁ + c."""
        of_theta = self.rounding_of(state)
        units = state.units
        if units is None or units.constant is None:
            return of_theta
        xp, shared = arrays.namespace(units.shared), units.shared
        height = shared[..., SHIFT] * xp.sqrt(units.Y[..., 1, 1] + shared[..., OVER])
        return of_theta._replace(
            rho=of_theta.rho + digits.LOST * (float(height) if height.ndim == 0 else height[..., None])
        )


def value(units: Units, place: int) -> Any:
    """A number of `shared`: a float for one bandit, else (...)."""
    if units.shared.ndim == 1 and type(units.shared) is np.ndarray:
        return units.shared.item(place)
    return units.shared[..., place]


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


def init(model: Any, zeros: Array, *, needs: frozenset[str]) -> Units:
    """Before the first row, for θ̂ = zeros (..., d)."""
    xp, d, J = arrays.namespace(zeros), zeros.shape[-1], 3 if model.reward_range else 2
    start = [0.0] * 10
    start[LAM] = 1.0 if model.lam == penalty.AUTO else float(model.lam)
    start[NOISE] = start[PRIOR] = 1.0
    shared = xp.asarray(start, dtype=zeros.dtype, device=arrays.device(zeros))
    constant = arrays.blank(zeros, d) if POOLED in needs else None
    Y, E = arrays.blank(zeros, J, J), arrays.blank(zeros, J, J)
    return Units(arrays.blank(zeros, J, d), Y, E, arrays.blank(zeros), constant, arrays.blank(zeros, 10) + shared)


def targets(model: Any, units: Units, r: Array) -> Array:
    """y of rewards: r (...) of `units` without rows -> (..., J), or r (..., n) -> (..., n, J)."""
    xp, first = arrays.namespace(units.shared), value(units, FIRST)
    if r.ndim == 0 and isinstance(r, (np.ndarray, np.generic)):
        y = [r - first, 1.0]
        return np.array(
            y if model.reward_range is None else [*y, min(max(r, model.reward_range[0]), model.reward_range[1]) - first]
        )
    if r.ndim > units.shared.ndim - 1:
        first = first if isinstance(first, float) else first[..., None]
    y = [r - first, xp.ones_like(r)]
    if model.reward_range is not None:
        y.append(xp.clip(r, *model.reward_range) - first)
    return xp.stack(y, axis=-1)


def announced(model: Any, units: Units, X: Array, r: Array, weight: Array | None, *, slots: bool) -> Units:
    """`MeasuringModel.announced` of the units: the same ones where nothing has changed."""
    shared = units.shared[..., 0, :] if slots else units.shared
    constant = None if units.constant is None else units.constant[..., 0, :] if slots else units.constant
    xp = arrays.namespace(X)
    rule = penalty.Rule(shared[..., LAM], shared[..., ROWS], shared[..., SQUARE])
    later = penalty.advanced(rule, X, weight) if model.lam == penalty.AUTO else rule
    news: dict[int, Array] = {} if later is rule else {LAM: later.lam, ROWS: later.rows, SQUARE: later.square}
    if constant is not None:
        counts = xp.ones_like(r) > 0 if weight is None else weight > 0
        start, begun = xp.argmax(xp.astype(counts, xp.int64), axis=-1), shared[..., BEGUN] > 0
        begins = ~begun & xp.any(counts, axis=-1)
        if arrays.some(begins):
            news[FIRST] = xp.where(begins, arrays.pick(r, start, rank=0), shared[..., FIRST])
            news[BEGUN] = xp.where(begins, 1.0, shared[..., BEGUN])
            constant = xp.where(begins[..., None], arrays.pick(X, start, rank=1), constant)
        same = (constant[..., None, :] == X) | ~counts[..., None]
        kept = xp.where(xp.all(same, axis=-2), constant, 0.0)
        changed = arrays.some(begins) or arrays.some(xp.any(kept != constant, axis=-1))
        if changed:
            constant = kept[..., None, :] if slots else kept
            units = units._replace(constant=constant + xp.zeros_like(units.constant))
    if not news:
        return units
    parts = [news.get(k, shared[..., k]) for k in range(10)]
    shared = xp.stack(parts, axis=-1)
    return units._replace(shared=(shared[..., None, :] if slots else shared) + xp.zeros_like(units.shared))


def learnt(units: Units, y: Array, *, x: Array, u: Array, s: Array) -> tuple[Units, Array]:
    """After one row x (..., d) with targets y (..., J), weighted; u = V⁻¹x and s = 1 + x'V⁻¹x of before. -> also e"""
    e = y - arrays.dot(units.Theta, x)
    share = e / (s if s.ndim == 0 else s[..., None])
    Theta = units.Theta + arrays.outer(share, u)
    Y, E = units.Y + arrays.outer(y, y), units.E + arrays.outer(e, share)
    return Units(Theta, Y, E, units.square + arrays.inner(x, x), units.constant, units.shared), e


def learnt_many(units: Units, y: Array, *, X: Array, step: Array, T: Array) -> Units:
    """After n rows X (..., n, d) with targets y (..., n, J), weighted; step (..., d, J) that of Θ', E grows by T'T."""
    Y, E = units.Y + y.mT @ y, units.E + T.mT @ T
    square = units.square + arrays.gram_trace(X)
    return Units(units.Theta + step.mT, Y, E, square, units.constant, units.shared)


def root(V: Array) -> Array:
    """F with FF' = V⁻¹, (..., d, d). Raises ValueError where float64 has lost V."""
    F = arrays.root_of_inverse(V)
    if F is None:
        raise ValueError("x is too long beside what was learnt before for float64: scale x down, or give lam a number")
    return F


def lost_again(units: Units, V: Array, F: Array) -> Array:
    """What rounding has done where F was made anew from V, as of `digits.grown`: (..., 6)."""
    xp = arrays.namespace(V)
    steps = units.Y[..., 1, 1] + 1
    c = value(units, CENTRE)
    paid, theta = units.Y[..., 0, 0] + c * c * units.Y[..., 1, 1], provisional(units)
    trace, inverse = xp.sum(xp.linalg.diagonal(V), axis=-1), arrays.gram_trace(F)
    D = xp.sqrt(steps) * trace * inverse
    q = xp.hypot(D * xp.sqrt(paid), xp.sqrt(steps * trace) * arrays.norms(theta))
    return xp.stack([trace, inverse, D, D * trace, q, q * xp.sqrt(trace)], axis=-1)


def over_matrix(x: Any) -> Any:
    """x, a number or (...), as it meets matrices (..., d, d)."""
    return x[..., None, None] if getattr(x, "ndim", 0) else x


def provisional(units: Units) -> Array:
    """θ̂ with the c of before, (..., d): what rounding is measured by."""
    c = value(units, CENTRE)
    return units.Theta[..., 0, :] - (c if isinstance(c, float) else c[..., None]) * units.Theta[..., 1, :]


def magnitude(units: Units, e: Array) -> Array:
    """At least |e| of the rewards about any c so far: e (..., J) of the targets -> (...)."""
    return abs(e[..., 0]) + abs(value(units, CENTRE)) * abs(e[..., 1])


def agreed(units: Units, *, slots: bool) -> tuple[Units, Array]:
    """c, σ̂ and τ̂ of what all slots have learnt, and θ̂ of each: (..., d)."""
    xp = arrays.namespace(units.shared)
    Y, E, square, shared, constant = units.Y, units.E, units.square, units.shared, units.constant
    if slots:
        Y, E, square = xp.sum(Y, axis=-3), xp.sum(E, axis=-3), xp.sum(square, axis=-1)
        shared, constant = shared[..., 0, :], None if constant is None else constant[..., 0, :]
    q, plain = Y.shape[-1] // 3 * 2, shared.ndim == 1 and type(shared) is np.ndarray
    sums = [Y[..., 0, 1], Y[..., 1, 1], Y[..., q, q], Y[..., q, 1], E[..., q, q], E[..., q, 1], E[..., 1, 1], square]
    lam, first = shared[..., LAM], shared[..., FIRST]
    if plain:
        sums, lam, first = [float(part) for part in sums], float(lam), float(first)
    centred, place, size = _intercept(constant, lam, plain=plain)
    where = _where if plain else xp.where
    noise, prior, c = _scales(*sums, first=first, centred=centred, where=where)
    d = units.Theta.shape[-1]
    shift = where(centred, d**0.5 * abs(first + c), 0.0 * c)
    over = where(centred, lam / (size * size), 0.0 * c)
    if plain:
        new = shared.copy()
        new[NOISE:] = noise, prior, c, shift, over
    else:
        new = xp.concat([shared[..., :NOISE], xp.stack([noise, prior, c, shift, over], axis=-1)], axis=-1)
    units = units._replace(shared=(new[..., None, :] if slots else new) + xp.zeros_like(units.shared))
    theta = provisional(units)
    if constant is None:
        return units, theta
    if plain:
        if centred:
            theta[..., place] += (first + c) / size
        return units, theta
    height = where(centred, (first + c) / size, 0.0 * c)
    one = xp.astype(xp.arange(d, device=arrays.device(theta)) == place[..., None], theta.dtype)
    column = height[..., None] * one
    return units, theta + (column[..., None, :] if slots else column)


def _intercept(constant: Array | None, lam: Any, *, plain: bool) -> tuple[Any, Any, Any]:
    """Whether there is a constant column, which one is the largest, and its value (1 where there is none)."""
    if plain:
        if constant is None:
            return False, 0, 1.0
        place = int(abs(constant).argmax())
        size = constant.item(place)
        return size != 0, place, size or 1.0
    if constant is None:
        return lam < 0, None, 1.0
    xp = arrays.namespace(constant)
    place = xp.argmax(xp.abs(constant), axis=-1)
    size = arrays.pick(constant, place, rank=0)
    return size != 0, place, xp.where(size != 0, size, xp.ones_like(size))


def _scales(
    total: Any,
    N: Any,
    Q: Any,
    R: Any,
    S: Any,
    M: Any,
    T: Any,
    square: Any,
    *,
    first: Any,
    centred: Any,
    where: Callable,
) -> tuple[Any, Any, Any]:
    """σ̂², τ̂² and c of pooled sums, numbers or arrays.

    total Σ ω(r - r₁), N Σ ω; Q and R: Σ ωy² and Σ ωy of what scales the noise; S, M and T: E of y², y and 1
    """
    seen = N > 0
    count = where(seen, N, 1.0 + 0.0 * N)
    c = where(centred, total / count, -first)
    centre = where(centred, R / count, -first)
    spread = Q - 2 * centre * R + centre * centre * N
    rest = S - 2 * centre * M + centre * centre * T
    spread, rest = where(spread > 0, spread, 0.0 * N), where(rest > 0, rest, 0.0 * N)
    per, mean = spread / count, square / count
    noise, prior = (per + rest) / (1 + N), per / where(mean > 0, mean, 1.0 + 0.0 * N)
    return where(seen, noise, 1.0 + 0.0 * N), where(seen, prior, 1.0 + 0.0 * N), where(seen, c, 0.0 * N)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _last(weight: Array | None) -> Array | None:
    return None if weight is None else weight[..., None]

"""What a `GLM` that forgets does before it learns: its rows count for less, and θ̂, Ĥ and the bound follow.

    J ← left (J - ρ‖θ‖²/2) + ρ‖θ‖²/2            H ← left H + (1-left) ρI            θ ← θ - H⁻¹ (1-left) ρ θ

The model of the objective fades as the objective does, so the step in θ is to its exact minimum, and `lazy.faded` says
what is left of the bound. The factor of H is made anew in each update: O(d³), and no look at the rows.

A window takes out whole rows, and Ĥ may be another matrix than H. There the bound is given up, so the history is read
in each update. Rows that count for nothing any more are left out when there is no room for another one.
"""

from typing import Any

from dither import arrays
from dither.arrays import Array
from dither.models import forgetting, history
from dither.models.glm import lazy, learn
from dither.models.history import History

NOTHING = 1e-20  # of a width, by which a row that is left out may move θ̂ at most
LITTLE = 1e-4  # of `tol`, by which all rows that are left out may move an estimate that is certified to `tol`


def aged(model: Any, state: Any, r: Array, weight: Array | None, at: Array | None) -> tuple[Any, Array | None]:
    """The state when one more observation comes, r (...), and what that one counts (...)."""
    given = (A if A is None else A[..., None] for A in (weight, at))
    left, weight, now = forgetting.fade(model, r[..., None], weight=next(given), at=next(given), now=state.now)
    one = None if weight is None else weight[..., 0]
    if model.window is not None:
        xp = arrays.namespace(r)
        one = xp.ones_like(r) if one is None else xp.where(one < model.window, one, float(model.window))
        return _windowed(model, state, one), one
    return _faded(model, state, left + arrays.namespace(r).zeros_like(r), now), one


def advanced(model: Any, state: Any, at: Array) -> Any:
    """The state at the time at (...), without an observation."""
    now = arrays.namespace(state.theta).maximum(state.now, at)
    return learn.settled(model, _faded(model, state, forgetting.halved(model, now - state.now), now))


def taken(model: Any, state: Any, X: Array, r: Array, *, weight: Array | None = None, at: Array | None = None) -> Any:
    """The state with rows X (..., n, d) in its history, and its old θ̂ and Ĥ: an update must follow."""
    xp = arrays.namespace(X)
    left, weight, now = forgetting.fade(model, r, weight=weight, at=at, now=state.now)
    rows = state.history if model.window is not None else history.faded(state.history, left)
    rows = history.append_many(rows, X, r, weight)
    if model.window is not None:
        rows = history.windowed(rows, model.window)
    state = state._replace(
        history=rows,
        now=now,
        lazy=state.lazy._replace(xmax=xp.maximum(state.lazy.xmax, xp.max(arrays.norms(X), axis=-1))),
    )
    return _lost(state)


def gram_width(model: Any, state: Any, X: Array) -> Array:
    """‖x_i‖ in the norm of V⁻¹, V = λI + Σ ω xx': X (..., K, d) -> (..., K)."""
    xp = arrays.namespace(X)
    lam = xp.zeros_like(state.theta[..., 0]) + model.lam
    R = xp.linalg.cholesky(_gram(state.history, lam)).mT
    eye = xp.eye(R.shape[-1], dtype=R.dtype, device=arrays.device(R))
    return arrays.norms(X @ xp.linalg.solve(R, xp.zeros_like(R) + eye))


def gram_sample(state: Any, eta: Array) -> Array:
    """N(0, Σ ω xx') from η ~ N(0, I), of which the first half is used: (..., 2d) -> (..., d)."""
    xp, d = arrays.namespace(eta), state.theta.shape[-1]
    values, Q = xp.linalg.eigh(_gram(state.history, xp.zeros_like(state.theta[..., 0])))
    return arrays.dot(Q, xp.sqrt(xp.where(values > 0, values, 0.0)) * eta[..., :d])


def norms(state: Any) -> Array:
    """Σ ω ‖x‖², Σ ω ‖x‖ |r|, Σ ω ‖x‖ and max ‖x‖, (..., 4), as `statistics` keeps them."""
    xp, (X, count, total, _) = arrays.namespace(state.theta), state.history
    length = arrays.norms(X)
    sums = [count * length * length, length * xp.abs(total), count * length]
    longest = xp.max(xp.where(count > 0, length, 0.0), axis=-1)
    return xp.stack([*(xp.sum(A, axis=-1) for A in sums), longest], axis=-1)


def _gram(rows: History, lam: Array) -> Array:
    return arrays.gram(rows.X, rows.count, lam)


def _faded(model: Any, state: Any, left: Array, now: Array | None) -> Any:
    """The state when all rows count left (...) times as much."""
    xp, kept, rho = arrays.namespace(left), state.lazy, model.rho
    rows = history.faded(state.history, left)
    if model.solver != "online" or int(xp.max(rows.rows)) < learn.WARM:  # later it reads no row, and counts none
        rows = history.without(rows, _negligible(model, rows, kept, left))
    state = state._replace(history=rows, now=now)
    if state.H is None:
        return _lost(state)
    d, wide = state.theta.shape[-1], left[..., None, None]
    eye = xp.eye(d, dtype=left.dtype, device=arrays.device(left))
    H = wide * state.H + (1 - wide) * rho * eye
    R = arrays.cholesky(H)
    if R is None:
        return _lost(state._replace(H=H))
    F = xp.linalg.solve(R, xp.zeros_like(R) + eye)
    half = arrays.dot(F.mT, (1 - left)[..., None] * rho * state.theta)
    theta = state.theta - arrays.dot(F, half)
    return state._replace(F=F, theta=theta, H=H, lazy=lazy.faded(kept, left, arrays.norms(half), F, rho=rho))


def _negligible(model: Any, rows: History, kept: lazy.Lazy, left: Array) -> Array:
    """Which rows have no part in θ̂, (..., N): their pull is at most ω |μ - r| ‖x‖/√ρ widths, and that on Ĥ the like.

    The rows that are left out go on to fade. So together they move θ̂ by no more than one of them over 1 - left.
    """
    xp = arrays.namespace(left)
    share = LITTLE * model.tol * (1 - left) if model.solver == "certified" else NOTHING + 0.0 * left
    length = kept.xmax / model.rho**0.5
    length = xp.where(length > 1, length * length, length)
    top = xp.abs(model.function.mu(kept.zmax))
    pull = rows.count * xp.where(top > 1, top, 1.0)[..., None] + xp.abs(rows.total)
    return pull * length[..., None] <= share[..., None]


def _windowed(model: Any, state: Any, weight: Array) -> Any:
    """The state whose rows leave room for one that counts weight (...)."""
    rows = history.windowed(state.history, model.window - weight[..., None])
    return _lost(state._replace(history=history.without(rows, rows.count == 0)))


def _lost(state: Any) -> Any:
    """The state of whose θ̂ and Ĥ nothing is certain, so that the next update reads the history."""
    xp, kept = arrays.namespace(state.theta), state.lazy
    return state._replace(lazy=kept._replace(bound=xp.full_like(kept.bound, xp.inf), exact=xp.zeros_like(kept.exact)))

"""What a `GLM` that forgets does before it learns: its rows count for less, and θ̂, Ĥ and the bound follow.

    J ← left (J - ρ‖θ‖²/2) + ρ‖θ‖²/2            H ← left H + (1-left) ρI            θ ← θ - H⁻¹ (1-left) ρ θ

The model of the objective fades as the objective does, so the step in θ is to its exact minimum, and `lazy.faded` says
what is left of the bound. The factor of H is made anew in each update: O(d³), and no look at the rows.

Rows that count for little are not read any more, the oldest first, and those that count for nothing are dropped
(`dropped`). What the latter count is summed as `mass`, which fades as they would have. The pull of all of them is in
the bound of every pass that does not read them.

A window takes out whole rows, and Ĥ may be another matrix than H. There the bound is given up, so the history is read
in each update.
"""

import math
from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import forgetting, history
from dither.models.glm import hessian, lazy, learn, leaving
from dither.models.history import History

NOTHING = 1e-20  # of a width, by which rows that are dropped may move an estimate
DROPPED = 1e-10  # the same, where the bound knows what they may do
LITTLE = 0.05  # of `tol`, by which rows that are not read may move an estimate that is certified to `tol`


def aged(model: Any, state: Any, r: Array, weight: Array | None, at: Array | None) -> tuple[Any, Array | None]:
    """The state when one more observation comes, r (...), and what that one counts (...)."""
    rows = (A if A is None else A[..., None] for A in (weight, at))
    left, weight, now = forgetting.fade(model, r[..., None], weight=next(rows), at=next(rows), now=state.now)
    one = None if weight is None else weight[..., 0]
    if model.window is not None:
        xp = arrays.namespace(r)
        one = xp.ones_like(r) if one is None else xp.where(one < model.window, one, float(model.window))
        left = leaving.left(model, state, one)
        return _windowed(model, state, one) if left is None else left, one
    return _faded(model, state, left + arrays.namespace(r).zeros_like(r), now), one


def advanced(model: Any, state: Any, at: Array) -> Any:
    """The state at the time at (...), without an observation."""
    now = arrays.namespace(state.theta).maximum(state.now, at)
    return learn.settled(model, _faded(model, state, forgetting.halved(model, now - state.now), now))


def taken(model: Any, state: Any, X: Array, r: Array, *, weight: Array | None = None, at: Array | None = None) -> Any:
    """The state with rows X (..., n, d) in its history, and its old θ̂ and Ĥ: an update must follow."""
    left, weight, now = forgetting.fade(model, r, weight=weight, at=at, now=state.now)
    rows, kept = state.history, state.lazy
    if model.window is None:
        rows, kept = history.faded(rows, left), kept._replace(mass=left * kept.mass)
    state = learn.taken(state._replace(history=rows, now=now, lazy=kept), X, r, weight)
    return state if model.window is None else state._replace(history=history.windowed(state.history, model.window))


def gram(state: Any, lam: Array | float) -> Array:
    """λI + Σ ω xx' of the rows, (..., d, d)."""
    rows = state.history
    return arrays.gram(rows.X, rows.count, arrays.blank(state.theta) + lam)


def norms(state: Any) -> Array:
    """Σ ω ‖x‖², Σ ω ‖x‖ |r|, Σ ω ‖x‖ and max ‖x‖, (..., 4), as `statistics` keeps them."""
    xp, (X, count, total, _) = arrays.namespace(state.theta), state.history
    length = arrays.norms(X)
    sums = [count * length * length, length * xp.abs(total), count * length]
    longest = xp.max(xp.where(count > 0, length, 0.0), axis=-1)
    return xp.stack([*(xp.sum(A, axis=-1) for A in sums), longest], axis=-1)


def _faded(model: Any, state: Any, left: Array, now: Array | None) -> Any:
    """The state when all rows count left (...) times as much."""
    xp, kept, rho = arrays.namespace(left), state.lazy, model.rho_of(state)
    rows = history.faded(state.history, left)
    if model.solver != "online" or int(xp.max(rows.rows)) < learn.WARM:  # later it reads no row, and counts none
        most = int(xp.max(rows.rows))
        kept = kept._replace(mass=left * kept.mass)
        if most % history.SELDOM == 0 or most == rows.count.shape[-1]:
            rows, kept = dropped(model, rows, kept, state.F, rho)
    state = state._replace(history=rows, now=now)
    if state.H is None:
        return learn.doubted(state)
    d, wide = state.theta.shape[-1], left[..., None, None]
    pull = (1 - left) * rho
    H = wide * state.H + pull[..., None, None] * xp.eye(d, dtype=left.dtype, device=arrays.device(left))
    F = arrays.root_of_inverse(H)
    if F is None:
        return learn.doubted(state._replace(H=H))
    half = arrays.dot(F.mT, pull[..., None] * state.theta)
    theta = state.theta - arrays.dot(F, half)
    return state._replace(F=F, theta=theta, H=H, lazy=lazy.faded(kept, left, arrays.norms(half), F, rho=rho))


def dropped(model: Any, rows: History, kept: lazy.Lazy, F: Array, rho: Array | float) -> tuple[History, lazy.Lazy]:
    """The rows without the oldest that have no part in anything, and how many passes need not read; F F' = H⁻¹.

    A row that counts ω pulls by at most ω ‖x‖ in the norm of H⁻¹ where rewards are in [0, 1], and it has at most
    ω ‖x‖² of H. For other links ω stands for ω μ + |τ|.
    """
    xp, function, mass = arrays.namespace(rows.count), model.function, kept.mass  # type: Any, Any, Any
    size, most = hessian.spread(F), 1 / rho**0.5
    far = kept.xmax * xp.where(xp.isfinite(kept.bound[..., 0]) & (size < most), size, most)
    far = xp.where(far > 1, far * far, xp.where(far > 1e-100, far, 1e-100))[..., None]
    bounded, pull = function.support == (0.0, 1.0), rows.count
    if not bounded:
        top = xp.abs(function.mu(kept.zmax))
        pull = rows.count * xp.where(top > 1, top, 1.0)[..., None] + xp.abs(rows.total)
    total = xp.cumulative_sum(pull, axis=-1) + mass[..., None]
    gone = total <= (DROPPED if bounded else NOTHING) / far
    kept = kept._replace(mass=mass + xp.sum(xp.where(gone, pull, 0.0), axis=-1))
    if bounded and model.follows and model.solver == "certified":
        faint = (total <= LITTLE * math.log1p(model.tol) / far) & (total < total[..., -1:])
        kept = kept._replace(unread=xp.maximum(kept.unread, xp.count_nonzero(faint, axis=-1)))
    rows = rows._replace(count=xp.where(gone, 0.0, rows.count), total=xp.where(gone, 0.0, rows.total))
    fewer = history.compact(rows)
    if fewer is not rows:
        unread: Any = kept.unread
        before = xp.arange(rows.count.shape[-1], device=arrays.device(rows.count)) < unread[..., None]
        kept = kept._replace(unread=xp.count_nonzero(before & (rows.count > 0), axis=-1))
    return fewer, kept


def _windowed(model: Any, state: Any, weight: Array) -> Any:
    """The state whose rows leave room for one that counts weight (...)."""
    rows = history.windowed(state.history, model.window - weight[..., None])
    return learn.doubted(state._replace(history=history.compact(rows)))

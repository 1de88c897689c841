"""How a `GLM` learns: one observation at a time, and the history when the bound asks for it.

Runs in lockstep are learnt together, and what becomes of one does not depend on the others: every decision is taken for
each run alone, rows are read in blocks of `history.PAD`, and only runs with equally many blocks share a call.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from dither import arrays, errors, links, trees
from dither.arrays import Array
from dither.models import factor, history, statistics
from dither.models.glm import certificate, hessian, lazy, near, newton, problem, quick
from dither.models.glm.problem import Problem

SOLVED = 1000  # rows below which "certified" solves after every observation
WARM = 1024  # rows that "online" keeps, and solves after every observation
TIGHT = 1e-8  # what both bounds of a history that is solved are below, where rounding allows
TOGETHER = 1024  # rows up to which runs in lockstep share a call, and a pass is a solution
TRIES = 3  # solutions, where the norms of Ĥ and of the objective's Hessian differ
EDGE = 1e-10  # relative distance from S at which ‖θ‖ = S


class Step(NamedTuple):
    """One step of the recursion; shapes (...) but for θ and u (..., d)."""

    theta: Array  # before it
    z: Array  # x'θ
    zeta: Array
    u: Array  # H⁻¹x
    q: Array  # x'u
    v: Array  # ω μ'(ζ)
    left: Array  # as of `lazy.proximal`
    omega: Array


def learn(model: Any, state: Any, x: Array, r: Array, weight: Array | None, *, own: bool) -> Any:
    """`GLM.update`: x (..., d), r, weight (...)."""
    xp = arrays.namespace(x)
    online = model.solver == "online"
    full = state.history.rows >= WARM if online else None
    alone = full is not None and not arrays.some(~full)
    unread, step = _recursion(model, state, x, r, weight, sure=full)
    if alone:
        extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
        kept = _drifted(unread, x, r, step)
        return unread._replace(extra=extra, lazy=kept._replace(bound=xp.full_like(kept.bound, xp.inf)))
    s = 1 + step.v * step.q
    lost = ~xp.isfinite(state.lazy.bound[..., 0]) | (s > factor.LONG)
    new = _noted(model, unread, x, r, weight, own=own)
    due = (new.history.rows < SOLVED) | (model.solver != "certified")
    if not bool(xp.all(due)):
        kept = _drifted(new, x, r, step)
        kept = lazy.extend(kept, x, step.zeta, step.v, xp.sqrt(step.q / s), own=own)
        new = new._replace(lazy=lazy.measured(kept, new.theta, link=model.function))
        due = due | lost | _uncertain(model, new)
    if arrays.some(due):
        try:
            new = _read(model, new, due) if due.ndim == 1 else _apart(model, new, due)
            if not bool(xp.all(xp.isfinite(new.theta))):
                raise errors.overflow()
        except BaseException:
            history.forget(new.history, state.history.rows)
            raise
    if full is None or not arrays.some(full):
        return new
    kept = _drifted(unread, x, r, step)
    unread = unread._replace(extra=new.extra, lazy=kept._replace(bound=xp.full_like(kept.bound, xp.inf)))
    return trees.choose(full, unread, new)


def _drifted(state: Any, x: Array, r: Array, step: Step) -> lazy.Lazy:
    theta, z, zeta, u, q, v, left, omega = step
    return lazy.drifted(state.lazy, x, theta, z, zeta, r, omega, u, q, v, left)


def _apart(model: Any, state: Any, due: Array) -> Any:
    """`_read` for states of any leading axes but one."""
    xp, lead, axes = arrays.namespace(due), due.shape, due.ndim

    def flat(A: Array) -> Array:
        return xp.reshape(A, (-1, *A.shape[axes:]))

    new = _read(model, trees.map_arrays(flat, state), flat(due))
    return trees.map_arrays(lambda A: xp.reshape(A, (*lead, *A.shape[1:])), new)


def taken(state: Any, X: Array, r: Array, weight: Array | None) -> Any:
    """With rows X (..., n, d) in the history and the statistics, but θ̂ and Ĥ as they were: an update must follow."""
    xp, kept = arrays.namespace(X), state.lazy
    extra = None if state.extra is None else statistics.update_many(state.extra, X, r, weight=weight)
    later = kept._replace(
        xmax=xp.maximum(kept.xmax, xp.max(arrays.norms(X), axis=-1)),
        bound=xp.full_like(kept.bound, xp.inf),
        exact=xp.zeros_like(kept.exact),
    )
    return state._replace(extra=extra, history=history.append_many(state.history, X, r, weight), lazy=later)


def _recursion(model: Any, state: Any, x: Array, r: Array, weight: Array | None, *, sure: Array | None) -> tuple:
    """The state with θ and the factors after one step, the history unread; and that step.

    sure : (...) whether F is here to stay, and must be right; None: it is about to be made anew
    """
    xp = arrays.namespace(x)
    omega = xp.ones_like(r) if weight is None else weight
    G = state.F if state.G is None else state.G
    p = arrays.dot(G.mT, x)
    u, q = arrays.dot(G, p), xp.vecdot(p, p)
    z = xp.vecdot(x, state.theta)
    zeta, v, left = lazy.proximal(z, q, r, omega, link=model.function)
    moved = (zeta - z) / xp.where(q > 0, q, 1.0)  # x of zeros: 0
    theta, s = state.theta + u * moved[..., None], 1 + v * q
    step = Step(state.theta, z, zeta, u, q, v, left, omega)
    lam = None if sure is None else model.rho
    F = G = factor.grown(G, x, p=p, u=u, s=s, v=v, lam=lam, only=sure)
    kept = state.lazy
    if state.G is not None:
        p, wide = arrays.dot(state.F.mT, x), omega * _floored(model, v / xp.where(omega > 0, omega, 1.0))
        own_s = 1 + wide * xp.vecdot(p, p)
        lam = None if sure is None else model.lam
        F = factor.grown(state.F, x, p=p, u=arrays.dot(state.F, p), s=own_s, v=wide, lam=lam, only=sure)
        kept = kept._replace(stretch=xp.maximum(kept.stretch, xp.sqrt(wide / xp.where(v > 0, v, 1e-300))))
    return state._replace(F=F, theta=theta, G=None if state.G is None else G, lazy=kept), step


def _noted(model: Any, state: Any, x: Array, r: Array, weight: Array | None, *, own: bool) -> Any:
    """With the row in the history and the statistics."""
    extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
    rows = history.append(state.history, x, r, weight, distinct=model.solver == "counts", own=own)
    longest = arrays.namespace(x).maximum(state.lazy.xmax, arrays.norms(x))
    return state._replace(extra=extra, history=rows, lazy=state.lazy._replace(xmax=longest))


def _floored(model: Any, slope: Array) -> Array:
    return arrays.namespace(slope).where(slope > model.min_derivative, slope, model.min_derivative)


def _uncertain(model: Any, state: Any) -> Array:
    """Which runs must read their history, (R,)."""
    kept, d = state.lazy, state.theta.shape[-1]
    E, drift = kept.bound[..., 0], kept.bound[..., 1]
    due = (model.tol < E) | (drift > 2 * math.log1p(model.tol)) | lazy.full(kept.fill, state.history.rows, d)
    return due if model.constrain is None else due | _near_edge(model, state)


def _near_edge(model: Any, state: Any) -> Array:
    """Which runs' estimates may have ‖θ‖ = S, (R,)."""
    size = arrays.norms(arrays.norms(state.G))  # >= the length of the longest vector of length 1 in the norm of H
    inside = arrays.norms(state.theta) + state.lazy.bound[..., 0] * size < model.constrain
    return (state.lazy.nu > 0) | ~inside


def _read(model: Any, state: Any, due: Array) -> Any:
    """The state after a pass over the history of the runs that are due, (R,)."""
    rows = [history.blocks(int(n)) for n in state.history.rows]
    runs = [i for i, wanted in enumerate(due) if bool(wanted)]
    apt = type(state.theta) is np.ndarray and not model.apart
    easy = apt and int(state.history.rows.max()) > quick.LEAST
    if not easy and len(runs) == len(rows) and len(set(rows)) == 1 and (rows[0] <= TOGETHER or len(runs) == 1):
        return _solved(model, state, rows[0])
    new = trees.map_arrays(lambda A: arrays.namespace(A).asarray(A, copy=True), _slim(state))
    if easy:
        runs = _quickly(model, state, new, runs)
    for n in sorted({rows[i] for i in runs}):
        same = [i for i in runs if rows[i] == n]
        for group in [same] if n <= TOGETHER else [[i] for i in same]:
            part = trees.take(state._replace(extra=None), group)
            trees.put(new, group, _slim(_solved(model, part, n)))
    kept = new.lazy._replace(buffer=state.lazy.buffer, xmax=state.lazy.xmax)
    return new._replace(lazy=kept, history=state.history, extra=state.extra)


def _quickly(model: Any, state: Any, new: Any, runs: list[int]) -> list[int]:
    """Put the solutions of those `runs` into `new` for which `quick.solve` finds one; the others."""
    rows, kept, link = state.history, state.lazy, model.function
    found: dict[int, quick.Found] = {}
    limits, exact, solved = [], [], []
    for i in runs:
        n = int(rows.rows[i])
        if n <= quick.LEAST:
            continue
        given = Problem(rows.X[i, :n], rows.count[i, :n], rows.total[i, :n], model.rho, float(kept.xmax[i]))
        brief = _brief(model, n, n)
        again = brief and _again(n, int(kept.exact[i]))
        limit = (model.tol / 2, math.log1p(model.tol)) if brief else (TIGHT, TIGHT)
        how: dict[str, Any] = {"F": state.F[i]}
        if brief:
            how = {"exact": again, "reach": float(kept.reach[i] * np.exp(min(kept.bound[i, 1], lazy.FAR) / 2))}
        solution = quick.solve(given, state.theta[i], link=link, tol=limit[0], drift=limit[1], **how)
        if solution is not None:
            found[i] = solution
            limits.append(limit)
            exact.append(again)
            solved.append(not brief)
    if not found:
        return runs
    parts = quick.Found(*(np.asarray(A) for A in zip(*found.values(), strict=True)))
    a, rem, zmax = parts.ends.T
    bound = certificate.bounds(a, rem, parts.reach, zmax=zmax, link=link)
    parts = parts._replace(blur=np.where(solved, bound[:, 1], parts.blur))
    good, done, looked = (bound <= limits).all(axis=-1), np.array(list(found)), np.array(exact)
    if not good.all():
        parts, bound, done, looked = trees.map_arrays(lambda A: A[good], parts), bound[good], done[good], looked[good]
    lazy.put(new, done, parts, bound, rows.rows[done], looked)
    return [i for i in runs if i not in done]


def _brief(model: Any, n: int, rows: int) -> bool:
    """Whether a pass over n rows need not solve the history of so many."""
    return model.solver == "certified" and n > TOGETHER and rows >= SOLVED


def _again(rows: int, exact: int) -> bool:
    """Whether the longest row is to be looked for, which costs as much as a curvature."""
    return 10 * rows > 13 * exact


def _slim(state: Any) -> Any:
    """Without what a pass leaves as it is."""
    return state._replace(history=None, extra=None, lazy=state.lazy._replace(buffer=None, xmax=None))


def _solved(model: Any, state: Any, n: int) -> Any:
    """The state after a pass over n rows, for all its runs."""
    rows, kept, xp = state.history, state.lazy, arrays.namespace(state.theta)
    given = Problem(rows.X[..., :n, :], rows.count[..., :n], rows.total[..., :n], kept.nu + model.rho, kept.xmax)
    brief = _brief(model, n, int(rows.rows[0]))
    if brief and model.constrain is not None:
        brief = not arrays.some(_near_edge(model, state))
    again = _again(int(rows.rows[0]), int(kept.exact[0]))
    solution: Any = None
    nu, stretch, F, blur, live = kept.nu, kept.stretch, state.F, None, None
    for _ in range(TRIES):
        start, tol = state.theta if solution is None else solution.theta, (model.tol / 2 if brief else TIGHT) / stretch
        if brief:
            known = xp.where(kept.bound[..., 1] < lazy.FAR, kept.bound[..., 1], lazy.FAR)
            reach = None if again else kept.reach * xp.exp(known / 2)
            drift = math.log1p(model.tol)
            found = near.solve(given, start, link=model.function, tol=tol, drift=drift, lazy=True, reach=reach)
        else:
            found = newton.solve(given, start, link=model.function, tol=tol, F=state.F if state.G is None else state.G)
        if model.constrain is not None:
            found, nu = _projected(model, given, found, nu, tol / 4)
        solution = found if live is None else newton.kept(live, found, solution)
        if state.G is None:
            F, blur = solution.F, solution.blur
            break
        F, blur = _widths(model, state, given, solution, nu)
        stretch = _stretch(F, solution.F)
        live = solution.bound[..., 0] * stretch > model.tol
        if not (brief and arrays.some(live)):
            break
    if not brief:  # all that is left is rounding
        blur = xp.maximum(blur, xp.where(xp.isfinite(solution.bound[..., 1]), solution.bound[..., 1], 0.0))
    new = lazy.renewed(kept, solution, blur, nu, stretch, rows.rows, exact=brief and again)
    return state._replace(F=F, theta=solution.theta, G=None if state.G is None else solution.F, lazy=new)


def _widths(model: Any, state: Any, given: Problem, solution: newton.Solution, nu: Array) -> tuple[Array, Array]:
    """F of Ĥ, where the objective's Hessian is another matrix, and what of its log eigenvalues may be rounding."""
    xp, link = arrays.namespace(nu), model.function
    learnt = not arrays.some(~xp.isfinite(state.lazy.bound[..., 0]))  # one by one, and not by `taken`
    if learnt and model.min_derivative >= link.L(links.LARGEST):
        return state.F, xp.maximum(state.lazy.blur, solution.blur)  # λI + Σ m xx', whatever θ̂ is
    slope = _floored(model, link.slopes(problem.logits(given.X, solution.theta))[1])
    _, F, blur = hessian.factors(given._replace(rho=xp.full_like(nu, model.lam)), given.count * slope)
    return F, xp.maximum(blur, solution.blur)


def _stretch(F: Array, G: Array) -> Array:
    """‖F⁻¹G‖, and at least 1: (...)."""
    xp = arrays.namespace(F)
    size = xp.linalg.svdvals(xp.linalg.solve(F, G))[..., 0]
    return xp.where(size > 1, size, 1.0)


def _projected(
    model: Any, given: Problem, solution: newton.Solution, nu: Array, tol: Array
) -> tuple[newton.Solution, Array]:
    """The solution over ‖θ‖ <= S and its multiplier ν >= 0, by Newton's method on 1/‖θ(ν)‖ inside a bracket."""
    xp, S = arrays.namespace(nu), model.constrain
    low, high = xp.zeros_like(nu), xp.full_like(nu, xp.inf)
    for _ in range(100):
        length = arrays.norms(solution.theta)
        own = arrays.norms(arrays.dot(solution.F.mT, solution.theta))
        own = xp.where(own > 0, own, 1.0)
        slack = EDGE * S + tol * own / xp.where(length > 0, length, 1.0)  # what the solution's own error may do
        over = (length > S + slack) | ((nu > 0) & (length < S - slack))
        if not arrays.some(over):
            break
        low, high = xp.where(length > S, nu, low), xp.where(length < S, nu, high)
        new = nu + (length / S - 1) * (length / own) ** 2
        middle = xp.where(xp.isfinite(high), (low + high) / 2, 4 * nu + model.rho)
        new = xp.where((new <= 0) & (low == 0), 0.0, new)
        new = xp.where((new > low) & (new < high) | (new == 0) & (low == 0), new, middle)
        nu = xp.where(over, new, nu)
        harder = given._replace(rho=nu + model.rho)
        again = newton.solve(harder, solution.theta, link=model.function, tol=tol, F=solution.F)
        solution = newton.kept(over, again, solution)
    gap = xp.where(nu > 0, xp.abs(length - S) * length / own, 0.0)
    inside = (S / xp.where(length > S, length, S))[..., None]
    bound = solution.bound + xp.stack([gap, xp.zeros_like(gap)], axis=-1)
    return solution._replace(theta=solution.theta * inside, bound=bound), nu

"""How a `GLM` learns one observation, and when and how it reads its history.

One observation moves θ and the factors by the recursion that `glm.py` states (`_recursion`). Then the solver decides
for each run whether a pass over the history is due (`_uncertain`), and such a pass solves the objective (`_read`).

Runs in lockstep are learnt together, and yet no run depends on another: each decision is taken for a run alone, rows
are read in blocks of `history.PAD`, and only runs with equally many blocks share a call.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.models import factor, history, statistics
from dither.models.glm import apart, batched, lazy, single
from dither.models.glm.batched import Aim, Curvature, Solution
from dither.models.glm.objective import Problem
from dither.models.glm.single import Reach
from dither.models.history import History

SOLVED = 128  # rows below which "certified" is "exact", and up to which runs in lockstep share a call
WARM = 1024  # rows that "online" keeps, and solves after every observation
LATE = 8  # a point that was looked at must be so many times better than asked: its bound is all error
TIGHT = 1e-8  # both bounds of a solved history are below this, where rounding allows


def learn(model: Any, state: Any, x: Array, r: Array, weight: Array | None, *, own: bool) -> Any:
    """`GLM.update`: x (..., d), r, weight (...)."""
    xp, unbounded = arrays.namespace(x), None
    full = state.history.rows >= WARM if model.solver == "online" else None  # runs that keep no more rows
    unread, step = _recursion(model, state, x, r, weight, sure=full)
    if full is not None and arrays.some(full):  # nothing is certain of how exact they are
        kept = lazy.drifted(unread.lazy, x, r, step, _factor(unread), link=model.function)
        unbounded = unread._replace(lazy=kept._replace(bound=xp.full_like(kept.bound, xp.inf)))
        if not arrays.some(~full):
            return unbounded
    rows = history.append(state.history, x, r, weight, distinct=model.solver == "counts", own=own)
    kept = unread.lazy._replace(xmax=xp.maximum(state.lazy.xmax, arrays.norms(x)))
    new, due = unread._replace(history=rows, lazy=kept), _always(model, rows)
    if not bool(xp.all(due)):
        kept = lazy.drifted(kept, x, r, step, _factor(unread), link=model.function)
        s = 1 + step.v * step.q
        lost = ~xp.isfinite(state.lazy.bound[..., 0])
        width = xp.sqrt(step.q / s)
        if due.ndim == 0 and (far := lazy.strayed(kept, new.theta, width, model=model)) is not None:
            kept, due = far, due | True
        else:
            kept = lazy.extend(kept, x, step.zeta, step.v, width, own=own)
            kept = lazy.measured(kept, new.theta, link=model.function, rho=model.rho_of(new))
        # what holds of a model of the objective without some rows
        new = new._replace(lazy=kept._replace(bound=xp.where(lost[..., None], xp.inf, kept.bound)))
        due = due | lost | (s > factor.LONG) | _uncertain(model, new)
    if arrays.some(due):
        try:
            new = passed(model, new, due)
            if not arrays.finite(new.theta):
                raise errors.overflow()
        except BaseException:
            history.forget(new.history, state.history.rows)
            raise
    return new if unbounded is None else trees.choose(full, unbounded, new)


def taken(state: Any, X: Array, r: Array, weight: Array | None) -> Any:
    """The state with rows X (..., n, d) in its history and statistics, and its old θ̂ and Ĥ: an update must follow."""
    xp, kept = arrays.namespace(X), state.lazy
    extra = None if state.extra is None else statistics.update_many(state.extra, X, r, weight=weight)
    kept = kept._replace(xmax=xp.maximum(kept.xmax, xp.max(arrays.norms(X), axis=-1)))
    return doubted(state._replace(extra=extra, history=history.append_many(state.history, X, r, weight), lazy=kept))


def room(state: Any) -> int:
    """How many more rows "online" keeps in every run."""
    rows = state.history.rows
    return max(0, WARM - int(arrays.largest(rows)))


def doubted(state: Any, runs: Array | None = None) -> Any:
    """The state of whose θ̂ and Ĥ nothing is certain, so that the next update reads the history.

    runs : (...) those of which that is so; None: all of them
    """
    xp, kept = arrays.namespace(state.theta), state.lazy
    bound, exact = xp.full_like(kept.bound, xp.inf), xp.zeros_like(kept.exact)
    if runs is not None:
        bound, exact = xp.where(runs[..., None], bound, kept.bound), xp.where(runs, exact, kept.exact)
    return state._replace(lazy=kept._replace(bound=bound, exact=exact))


def settled(model: Any, state: Any) -> Any:
    """The state whose θ̂ and Ĥ were moved without an observation, with its history read where that is due."""
    xp, rows, kept = arrays.namespace(state.theta), state.history.rows, state.lazy
    if model.solver == "online":
        due = rows < WARM
    else:
        due = _always(model, state.history) | ~xp.isfinite(kept.bound[..., 0])
        if not bool(xp.all(due)):
            kept = lazy.measured(kept, state.theta, link=model.function, rho=model.rho_of(state))
            state = state._replace(lazy=kept)
            due = due | _uncertain(model, state)
    return passed(model, state, due) if arrays.some(due) else state


def _recursion(model: Any, state: Any, x: Array, r: Array, weight: Array | None, *, sure: Array | None) -> tuple:
    """The state with θ, the factors and the statistics after one step, the history unread; and that step.

    sure : (...) the runs whose F is not about to be made anew, so that it must be right; None: none of them
    """
    xp = arrays.namespace(x)
    omega = xp.ones_like(r) if weight is None else weight
    G = _factor(state)
    p = arrays.dot(G.mT, x)
    u, q = arrays.dot(G, p), xp.vecdot(p, p)
    z = xp.vecdot(x, state.theta)
    zeta, v, left = lazy.proximal(z, q, r, omega, link=model.function)
    moved = (zeta - z) / xp.where(q > 0, q, 1.0)  # q is 0 for an x of zeros
    theta, s = state.theta + u * moved[..., None], 1 + v * q
    step = lazy.RowStep(state.theta, z, zeta, u, q, v, left, omega)
    lam = None if sure is None else _largest(model.rho_of(state))
    F = G = factor.grown(G, x, p=p, u=u, s=s, v=v, lam=lam, only=sure)
    kept = state.lazy
    if state.G is not None:
        p, wide = arrays.dot(state.F.mT, x), omega * apart.floored(model, v / xp.where(omega > 0, omega, 1.0))
        lam, s = None if sure is None else _largest(model.lam_of(state)), 1 + wide * xp.vecdot(p, p)
        F = factor.grown(state.F, x, p=p, u=arrays.dot(state.F, p), s=s, v=wide, lam=lam, only=sure)
        kept = kept._replace(stretch=xp.maximum(kept.stretch, xp.sqrt(wide / xp.where(v > 0, v, 1e-300))))
    extra = None if state.extra is None else statistics.update(state.extra, x, r, weight=weight)
    H = None if state.H is None else state.H + v[..., None, None] * arrays.outer(x, x)
    G = None if state.G is None else G
    return state._replace(F=F, theta=theta, G=G, lazy=kept, extra=extra, H=H), step


def _factor(state: Any) -> Array:
    """The factor of the inverse of the objective's Hessian, (..., d, d)."""
    return state.F if state.G is None else state.G


def _largest(lam: Array | float) -> float:
    """The largest λ of the runs."""
    return lam if isinstance(lam, (int, float)) else float(arrays.namespace(lam).max(lam))


def _always(model: Any, rows: History) -> Array:
    """Which runs read their history after every observation: (...)."""
    return (rows.rows < SOLVED) | (model.solver != "certified" or (model.window or SOLVED) < SOLVED)


def _uncertain(model: Any, state: Any) -> Array:
    """Which runs must read their history: (...)."""
    kept, d = state.lazy, state.theta.shape[-1]
    E, drift = kept.bound[..., 0], kept.bound[..., 1]
    due = (model.tol < E) | (drift > lazy.most_drift(model.tol)) | lazy.full(kept.fill, state.history.rows, d)
    return due if model.constrain is None else due | apart.near_edge(model, state)


def passed(model: Any, state: Any, due: Array) -> Any:
    """The state after a pass over the history of the runs that are `due` (...)."""
    if due.ndim == 1:
        return _read(model, state, due)
    if not due.ndim and _easy(model, state) and (new := _alone(model, state)) is not None:
        return new
    xp, lead, axes = arrays.namespace(due), due.shape, due.ndim

    def flat(A: Array) -> Array:
        return xp.reshape(A, (-1, *A.shape[axes:]))

    new = _read(model, trees.map_arrays(flat, state), flat(due))
    return trees.map_arrays(lambda A: xp.reshape(A, (*lead, *A.shape[1:])), new)


def _alone(model: Any, state: Any) -> Any:
    """The state of one run after a pass; None where the start is not good enough for `single`."""
    [first], [n] = _used(model, state.history)
    if n == first:  # there are no rows
        return None
    aim = _aim(model, n - first, n)
    sought = _sought(model, state, aim, ())
    if sought is None:
        return None
    solution, good = single.bounded(sought[0], aim, link=model.function)
    return _renewed(state, solution, every=sought[1].every, exact=aim.drift is None) if good else None


def _read(model: Any, state: Any, due: Array) -> Any:
    """The state after a pass over the history of the runs that are due, (R,)."""
    used = [n - first for first, n in zip(*_used(model, state.history), strict=True)]
    rows = [history.blocks(n) for n in used]
    runs = [i for i, wanted in enumerate(due) if bool(wanted)]
    easy = [i for i in runs if used[i] > SOLVED] if _easy(model, state) else []
    if not easy and len(runs) == len(rows) and len(set(rows)) == 1 and (rows[0] <= SOLVED or len(runs) == 1):
        return _solved(model, state, rows[0])
    new = trees.map_arrays(lambda A: arrays.namespace(A).asarray(A, copy=True), _slim(state))
    done = _singly(model, state, new, easy)
    runs = [i for i in runs if i not in done]
    for n in sorted({rows[i] for i in runs}):
        same = [i for i in runs if rows[i] == n]
        for group in [same] if n <= SOLVED else [[i] for i in same]:
            part = trees.take(state._replace(extra=None), group)
            trees.put(new, group, _slim(_solved(model, part, n)))
    kept = new.lazy._replace(buffer=state.lazy.buffer, xmax=state.lazy.xmax)
    return new._replace(lazy=kept, history=state.history, extra=state.extra)


def _singly(model: Any, state: Any, new: Any, runs: list[int]) -> set[int]:
    """Put what `single` finds for the runs into `new`, which is written over; returns those that it has done."""
    aim = _aim(model, SOLVED + 1, SOLVED)
    sought = {i: pair for i in runs if (pair := _sought(model, state, aim, (i,))) is not None}
    if not sought:
        return set()
    solutions, reaches = zip(*sought.values(), strict=True)
    solution, good = single.bounded(Solution(*zip(*solutions, strict=True)), aim, link=model.function)
    done, every = np.array(list(sought)), np.array([reach.every for reach in reaches])
    if aim.drift is None:
        solution = solution._replace(blur=solution.bound[:, 1])
    if not good.all():
        solution, done, every = trees.map_arrays(lambda A: A[good], solution), done[good], every[good]
    changes = lazy.renewal(state.lazy, solution, runs=done, rows=state.history.rows[done], every=every)
    kept = new.lazy._asdict()
    for name, part in changes.items():
        kept[name][done] = part
    new.theta[done], new.F[done] = solution.theta, solution.F
    if new.H is not None:
        new.H[done] = solution.R.mT @ solution.R
    return {int(i) for i in done}


def _sought(model: Any, state: Any, aim: Aim, i: tuple[int, ...]) -> tuple[Solution, Reach] | None:
    """What `single` finds for the run i, and what it was told of its rows; None where it finds nothing."""
    rows, kept = History(*(part[i] for part in state.history)), state.lazy
    [first], [n] = _used(model, rows)
    mass, limit, every = 0.0 if kept.mass is None else float(kept.mass[i]), None, False
    if kept.unread is not None and (unread := int(kept.unread[i])) > first and n - unread > SOLVED:
        first, mass = unread, mass + float(rows.count[first:unread].sum())
    if aim.drift is not None:
        limit = float(kept.reach[i] * np.exp(min(kept.bound[i][1], lazy.FAR) / 2))
        every = _every(n, int(kept.exact[i]))
    X, count, total = (part[first:n] for part in rows[:3])
    reach, rho, longest = Reach(limit, every, mass), model.rho_of(state), float(kept.xmax[i])
    problem = Problem(model.function, X, count, total, rho if isinstance(rho, (int, float)) else float(rho[i]), longest)
    solution = single.solve(problem, state.theta[i], state.F[i], aim, reach)
    return None if solution is None else (solution, reach)


def _used(model: Any, rows: History) -> tuple[list[int], list[int]]:
    """The first row of each run that counts, and how many rows there are, with those before it."""
    xp = arrays.namespace(rows.count)
    numbers = [int(n) for n in xp.reshape(rows.rows, (-1,))]
    if not model.forgets:
        return [0] * len(numbers), numbers
    first = xp.argmax(xp.astype(rows.count > 0, xp.int8), axis=-1)
    return [int(i) for i in xp.reshape(first, (-1,))], numbers


def _blocks(model: Any, rows: History, n: int) -> Iterator[Array]:
    """X (R, n, d), the counts and the sums (R, n) of the rows that count, of which each run has at most n."""
    xp, N = arrays.namespace(rows.count), rows.count.shape[-1]
    starts = [max(0, min(first, N - n)) for first in _used(model, rows)[0]]
    for part in rows[:3]:
        if len(set(starts)) == 1:
            yield part[:, starts[0] : starts[0] + n, ...]
        else:
            yield xp.stack([part[i, first : first + n, ...] for i, first in enumerate(starts)])


def _easy(model: Any, state: Any) -> bool:
    """Whether `single` can do a pass."""
    return type(state.theta) is np.ndarray and not model.apart


def _aim(model: Any, n: int, rows: int) -> Aim:
    """What a pass over n rows, `rows` of them in use, must reach: "certified" may stop as soon as the bounds hold."""
    if model.solver != "certified" or n <= SOLVED or rows < SOLVED:
        return Aim(TIGHT)
    drift = math.log1p(model.tol)
    return Aim(model.tol / 2, drift, stale=drift, looked=(1 / LATE, 2 * drift))


def _every(rows: int, exact: int) -> bool:
    """Whether to look for the longest row, which costs as much as a curvature: `exact` rows had it when last sought."""
    return 10 * rows > 13 * exact


def _slim(state: Any) -> Any:
    """The state without the parts that a pass does not change."""
    return state._replace(history=None, extra=None, lazy=state.lazy._replace(buffer=None, xmax=None))


def _solved(model: Any, state: Any, n: int) -> Any:
    """The state after a pass over n rows, for all its runs, by `batched`."""
    kept, rows, xp = state.lazy, int(state.history.rows[0]), arrays.namespace(state.theta)
    X, count, total = _blocks(model, state.history, n)
    problem = Problem(model.function, X, count, total, kept.nu + model.rho_of(state), kept.xmax)
    aim, every, H = _aim(model, n, rows), False, Curvature(_factor(state))
    if model.constrain is not None and aim.drift is not None and arrays.some(apart.near_edge(model, state)):
        aim = Aim(TIGHT)
    if aim.drift is not None:
        log_eigenvalues = xp.where(kept.bound[..., 1] < lazy.FAR, kept.bound[..., 1], lazy.FAR)
        every = _every(rows, int(kept.exact[0])) or (kept.unread is not None and arrays.some(kept.unread > 0))
        H = Curvature(reach=None if every else kept.reach * xp.exp(log_eigenvalues / 2))  # it does not know unread rows
    aim = aim._replace(tol=xp.full_like(kept.xmax, aim.tol))
    if model.apart:
        state, solution = apart.solved(model, state, problem, aim, H)
    else:
        solution = batched.solve(problem, state.theta, aim, H)
    new = _renewed(state, solution, every=every, exact=aim.drift is None)
    if kept.mass is not None and arrays.some(kept.mass > 0):
        new = new._replace(lazy=lazy.without(new.lazy, solution, link=model.function, rho=model.rho_of(state)))
    return new


def _renewed(state: Any, solution: Solution, *, every: bool, exact: bool) -> Any:
    """The state after a pass that found this solution; every: as of `Reach`; exact: as of `Aim`."""
    xp, kept = arrays.namespace(solution.theta), state.lazy
    if exact:  # only rounding is left between the solution and the exact estimate
        drift = solution.bound[..., 1]
        solution = solution._replace(blur=xp.maximum(solution.blur, xp.where(xp.isfinite(drift), drift, 0.0)))
    kept = kept._replace(**lazy.renewal(kept, solution, rows=state.history.rows, every=every))
    state = state._replace(F=solution.F) if state.G is None else state._replace(G=solution.F)
    H = None if state.H is None else solution.R.mT @ solution.R
    return state._replace(theta=solution.theta, lazy=kept, H=H)

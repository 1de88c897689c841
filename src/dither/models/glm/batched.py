"""The minimum of J (`objective`) for G problems at once, by Newton's method from any start, until an `Aim` is reached.

One pass over the rows. The factor of H that is at hand gives a step, and H is computed anew where it is stale. A step
that moves every logit by at most `SAFE` is taken whole: it is safe for M <= 1. A longer one goes to the minimum of J
along its line. With exact numbers this converges from every start, for every convex g.

Steps ahead. Where rounding shall be the limit, H must be that of the very point, and it costs O(n d²). A look at the
slope costs O(n d). So steps with the factor at hand lead to where the next one would change no logit by more than
`SHARP`, and H is computed there. That factor is wrong mostly along one direction, that of the row just learnt, since
its logit moves most. Broyden's correction by the last step finds it: with y = -FF'∇J at the point at hand, and s and y₀
the step to it and the y before,

    N = y + (s + y - y₀) s'y/s'(y₀ - y)

The end. The outcome of the last step is not looked at. Take a step N along which the log eigenvalues of the curvature
move by at most a, from a point where H is off by at most o. After it the slope, in the norm of H⁻¹, is at most
(e^o a φ(a) + e^o - 1) ‖N‖. Where rounding is the limit, that must be less than what rounding may have made of it.

Beginning again. In float64 it need not converge: if a step leaves a logit of 100 under the log link, one row outweighs
the others by e^100, and the direction in which the others would move θ is nothing but rounding. A problem that is not
solved after `AGAIN` passes, or whose end the bound cannot vouch for, therefore starts anew at θ = 0. From there no step
raises J, so that the loss of every row stays below J(0), and its weight stays bounded too.

No problem depends on the others: those that are solved leave the search.
"""

from typing import Any, NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.models.glm import certificate, hessian, objective, rounding
from dither.models.glm.objective import Look, Problem

STEPS = 400  # passes at most; a few are enough
AGAIN = 60  # passes after which a problem that is not solved starts anew at θ = 0
IDLE = 12  # passes without progress after which rounding is taken to be the limit
SAFE = 0.5  # change of a logit up to which the full step is taken
LONGEST = 1e6  # change of a logit to which a step is shortened before its line is searched
CLOSE = 1e-3  # change of the logits up to which a bound on it is enough
SHARP = 1e-13  # change of the log eigenvalues of H up to which H counts as unchanged
CHORDS = 16  # steps ahead with one factor, at most
SLOW = 0.2  # share of its length that a step ahead may have after the next one; above it H is computed
STUCK = 0.5  # share above which rounding may be what is left


class Aim(NamedTuple):
    """When a problem is solved: as soon as the bounds hold, or, without a `drift`, where rounding is all that is left.

    `single` takes numbers.
    """

    tol: Any  # (G,)  E shall be below this; rounding that is larger than that is looked at more closely
    drift: float | None = None  # so shall the bound on the log eigenvalues, but for rounding
    stale: float = SHARP  # H is computed anew where its log eigenvalues may have moved by more
    looked: tuple[float, float] = (0.0, 0.0)  # the same for a point that was looked at, E as a share of tol


class Solution(NamedTuple):
    """What is known at the end. `single` has it for one problem: without the axis G."""

    theta: Any  # (G, d)
    F: Any  # (G, d, d)  H⁻¹ = FF'; H is the Hessian at the last point where it was computed
    R: Any  # (G, d, d)  H = R'R; None where a factor that was passed in was enough
    blur: Any  # (G,)  how far rounding may put the log eigenvalues of H off
    offset: Any  # (G,)  how far they are from those of the curvature at `base`, at most, rounding included
    slope: Any  # (G,)  what the quadratic model at `base` leaves of ∇J(θ), in the norm of H⁻¹, at most
    noise: Any  # (G,)  the part of `slope` that is rounding
    reach: Any  # (G,)  max ‖x‖ in the norm of H⁻¹, at most
    base: Any  # (G, d)  H is the curvature here to within `offset`: it is theta, or where the last step began
    zmax: Any  # (G,)  max |x'base|
    bound: Any  # (G, 2)  as of `certificate.bounds`; of `single`, before `bounded`: a, rem and zmax, which make it
    steps: Any  # (G,)  looks at the rows; int64


class Curvature(NamedTuple):
    """H by its factors, and how far it may be from the curvature at the point at hand.

    Where rounding is the limit, H is computed in each pass, and F alone is of use to the next.
    """

    F: Any = None  # (G, d, d)  H⁻¹ = FF'; None before the first
    R: Any = None  # (G, d, d)  H = R'R; None where F was passed in
    reach: Any = None  # (G,)  max ‖x‖ in the norm of H⁻¹, at most; None before the first
    blur: Any = None  # (G,)  how far the log eigenvalues are off at `anchor`; infinite for any F that was passed in
    offset: Any = None  # (G,)  how far they are off at the point at hand, at most
    anchor: Any = None  # (G, n)  the logits at which H was computed


class Search(NamedTuple):
    """The problems that are not solved yet: what one pass hands to the next."""

    problem: Problem
    aim: Aim
    H: Curvature
    theta: Array  # (G, d)
    z: Array  # (G, n)  its logits
    near: Array  # (G,)  the last step was short enough for steps ahead, and they get shorter
    least: Array  # (G,)  the smallest slope so far that was progress
    idle: Array  # (G,)  passes since then
    looks: Array  # (G,)  int64


class NewtonStep(NamedTuple):
    """Newton's step from one point, and what rounding has a part in."""

    N: Array  # (G, d)
    slope: Array  # (G,)  ‖∇J‖ in the norm of H⁻¹, as computed; it is the length of N in the norm of H
    noise: Array  # (G,)  how far rounding may put that slope off
    dz: Array | None  # (G, n)  x'N; None where a bound on it is enough
    move: Array  # (G,)  max |x'N|, at most


def solve(problem: Problem, theta: Array, aim: Aim, H: Curvature) -> Solution:
    """Minimise J, from theta (G, d), until the aim is reached; H is what is known of the curvature at theta.

    Raises ValueError where float64 cannot hold the minimum, or none is found.
    """
    xp, z = arrays.namespace(theta), objective.logits(problem.X, theta)
    solution, lost = _sought(problem, theta, z, aim, H)
    if not arrays.some(lost):
        return solution
    theta, z, aim = xp.zeros_like(theta[lost]), xp.zeros_like(z[lost]), aim._replace(tol=aim.tol[lost])
    again, lost_too = _sought(_rows_of(problem, lost), theta, z, aim, Curvature(), last=True)
    if arrays.some(lost_too):
        raise not_found()
    return Solution(*_put(solution, lost, again))


def _sought(
    problem: Problem, theta: Array, z: Array, aim: Aim, H: Curvature, *, last: bool = False
) -> tuple[Solution, Array]:
    """The solutions from one start, and which of them are none, (G,). On the `last` start no problem begins again."""
    xp, zero = arrays.namespace(theta), arrays.namespace(theta).zeros_like(problem.rho)
    near, looks = zero < (1.0 if H.F is not None else 0.0), xp.astype(zero, xp.int64)
    search = Search(problem, aim, H, theta, z, near, zero + xp.inf, zero, looks)
    answer = left = None  # type: Any
    most = STEPS - AGAIN if last else AGAIN
    for passes in range(1, most + 1):
        if aim.drift is None and search.H.F is not None:
            search = _ahead(search)
        look = objective.look(search.problem, search.theta, search.z)
        search = search._replace(H=_curved(search, look))
        search, step = _step(search, look)
        late = passes == most
        end, lost, solution = _outcome(search, look, step, last=last, late=late)
        if late:
            end, lost = end | True, lost | ~end
        going = ~end
        if arrays.some(end):
            answer = (*solution, lost) if left is None else _put(answer, left, (*solution, lost))
            if not arrays.some(going):
                break
            left = going if left is None else _put((left,), left, (going,))[0]
            search, step = _part(search, going), _taken(step, going)
        search = _moved(search, step, fresh_logits=passes % 8 == 0)
    return Solution(*answer[:-1]), answer[-1]


def _ahead(search: Search) -> Search:
    """After steps with the factor at hand, while each of them is much shorter than the one before."""
    problem, F, live, near = search.problem, search.H.F, search.near, search.near
    if not arrays.some(live):
        return search
    theta, z, looks, xp = search.theta, search.z, search.looks, arrays.namespace(search.theta)
    N = chord = size = worst = M = None  # type: Any
    for k in range(CHORDS):
        last, before, was = N, chord, size
        g = objective.slope(problem, theta, problem.link.residual(z, problem.count, problem.total)[0])
        N = chord = -(F @ (g[:, None, :] @ F).mT)[..., 0]
        if k:
            less = before - chord
            fall = xp.vecdot(last, less)
            N = chord + (last - less) * (xp.vecdot(last, chord) / xp.where(fall > 0, fall, xp.inf))[:, None]
        size = problem.longest * arrays.norms(N)  # no logit changes by more
        looks = xp.where(live, looks + 1, looks)
        if k:
            share = size / xp.where(live, was, 1.0)
            worst = xp.maximum(worst, share) if k > 1 else share
            near = near & ~(live & (share >= STUCK))
            live = live & (share <= SLOW)
        else:
            M, worst = problem.link.M(objective.largest(z) + SAFE), xp.ones_like(size)
            live = live & (size <= SAFE)
        theta = xp.where(live[:, None], theta + N, theta)
        z = objective.logits(problem.X, theta)
        live = live & (M * worst * xp.sqrt(worst) * size > SHARP)  # by the correction a share falls faster than `worst`
        if not arrays.some(live):
            break
    return search._replace(theta=theta, z=z, near=near, looks=looks)


def _curved(search: Search, look: Look) -> Curvature:
    """H for the point at hand, computed anew where it is stale."""
    xp, (problem, aim, H), theta = arrays.namespace(search.theta), search[:3], search.theta
    if aim.drift is None:
        R, F, blur = hessian.computed(problem, theta, look)
        return Curvature(F, R, hessian.reach(problem, F, look.w), blur, blur)
    part, fewer, off = search, False, 0.0 * aim.tol
    if H.anchor is not None:
        moved = objective.offset(search.z, H.anchor, link=problem.link)
        sure = H.blur < xp.inf
        stale = ~((moved <= aim.stale) & sure)
        H = H._replace(offset=moved + H.blur)
        if not arrays.some(stale):
            return H
        off, fewer = xp.where(sure, xp.where(H.offset < 300, H.offset, 300.0), 0.0), arrays.some(~stale)
        if fewer:
            part, look, off = _part(search, stale), _taken(look, stale), off[stale]
    R, F, blur = hessian.computed(part.problem, part.theta, look)
    limit = None if H.reach is None else part.H.reach * xp.exp(off / 2)
    every = look.w.shape[-1] <= hessian.FEW or limit is None
    reach = hessian.reach(part.problem, F, look.w, limit=limit, exact=every)
    new = Curvature(F, None if fewer and H.R is None else R, reach, blur, blur, part.z)
    return Curvature(*_put(H, stale, new)) if fewer else new


def _step(search: Search, look: Look) -> tuple[Search, NewtonStep]:
    """The step -FF'∇J. One that moves a logit by more than `LONGEST` is shortened to that."""
    (problem, aim, H), xp, dz = search[:3], arrays.namespace(search.theta), None
    half = arrays.dot(H.F.mT, look.g)
    N, slope = -arrays.dot(H.F, half), arrays.norms(half)
    move = None if aim.drift is not None else problem.longest * arrays.norms(N)
    if move is None or arrays.some(~(move <= CLOSE)):
        dz = objective.logits(problem.X, N)
        largest = objective.largest(dz)
        move = largest if move is None else xp.where(move <= CLOSE, move, largest)
        if arrays.some(move > LONGEST):
            shorter = LONGEST / xp.where(move > LONGEST, move, LONGEST)
            N, dz, move = N * shorter[..., None], dz * shorter[..., None], move * shorter
    how: Any = dict(F=H.F, most=xp.minimum(aim.tol / 8, xp.full_like(slope, rounding.FAINT)))
    noise = rounding.gradient(problem, search.theta, look, reach=H.reach, **how)
    if aim.drift is None and arrays.some(rough := H.reach * noise > SHARP + H.blur):  # so the bound would be, too
        longest = hessian.reach(_rows_of(problem, rough), H.F[rough], look.w[rough], exact=True)
        search = search._replace(H=H._replace(reach=_put((H.reach,), rough, (longest,))[0]))
        noise = rounding.gradient(problem, search.theta, look, reach=search.H.reach, **how)
    return search, NewtonStep(N, slope, noise, dz, move)


def _outcome(search: Search, look: Look, step: NewtonStep, *, last: bool, late: bool) -> tuple[Array, Array, Any]:
    """Which problems have come to an end, which of those are lost, (G,), and the solutions of the others.

    last : the start is the last one; late : so is the pass, and all are to have solutions
    """
    xp, (problem, aim, H), theta = arrays.namespace(search.theta), search[:3], search.theta
    N, slope, noise, dz, move = step
    rest, idle = None, search.idle > IDLE  # where the end is the point at hand, not the outcome of the step
    if dz is not None:
        rest = ~(move <= SAFE)
        if aim.drift is not None:
            rest = rest | (slope + noise <= aim.looked[0] * aim.tol)
        move, N = xp.where(rest, 0.0, move), xp.where(rest[..., None], 0.0, N)
    zmax = look.zmax + move
    a, off = certificate.cut(problem.link.M(zmax) * move), certificate.grown(H.offset)
    wrong = off * slope if rest is None else xp.where(rest, slope, off * slope)  # what H leaves
    if aim.drift is not None and not late:
        near = ((a / 2) * slope + wrong + noise <= aim.tol) | idle  # as φ >= 1/2
        if not arrays.some(near):
            return near, near, None
    beyond, left = (1 + off) * a * certificate.phi(a) * slope, wrong + noise  # by the bend of J, and else
    bound = certificate.bounds(a + H.offset, beyond + left, H.reach, zmax=zmax, link=problem.link)
    error = left if aim.drift is None else xp.where(rest, noise, left)
    ends = (left, error, H.reach, theta, look.zmax, bound, search.looks + 1)
    solution = Solution(theta + N, H.F, H.R, H.blur, H.offset, *ends)
    if aim.drift is not None:  # of those that are idle the bound says how far rounding reaches
        here = xp.astype(H.offset <= H.blur, slope.dtype)  # of H: an outcome is certain of a step from there alone
        tol = xp.where(rest, aim.looked[0], here) * aim.tol
        drift = xp.where(rest, aim.looked[1], xp.full_like(slope, aim.drift)) + 2 * H.blur
        end = (bound[..., 0] <= tol) & (bound[..., 1] <= drift) | idle
        return end, end & False, solution
    end = sharp = (a <= SHARP + H.blur) & (beyond + wrong <= noise) & (True if rest is None else ~rest)
    if arrays.some(~sharp):
        stuck = last | ~search.near | (slope >= search.least / 2)
        end = sharp | idle | (stuck & (slope <= noise))
    held = xp.maximum(noise, H.blur) < rounding.LOST
    if last and arrays.some(end & ~held):
        raise not_held()
    lost = end & ~(held & xp.isfinite(bound[..., 0]))  # the start may be to blame
    return end, lost & (not last), solution


def _moved(search: Search, step: NewtonStep, *, fresh_logits: bool) -> Search:
    """After the step, or after the part of it that leads to the minimum along its line.

    The logits are computed anew after a step along a line, where rounding is the limit, and where `fresh_logits`. Else
    their change is added to them, so they keep the rounding of the longest step.
    """
    xp, problem, far = arrays.namespace(search.theta), search.problem, ~(step.move <= SAFE)
    N, dz, searched = step.N, step.dz, arrays.some(far)
    if searched:
        size = objective.along(problem, search.theta, N, search.z, dz, far=far)[..., None]
        N, dz = size * N, size * dz
    theta, z = search.theta + N, None if dz is None else search.z + dz
    if search.aim.drift is None or fresh_logits:
        z = objective.logits(problem.X, theta)
    elif searched:
        z = xp.where(far[..., None], objective.logits(problem.X, theta), z)
    better = step.slope < search.least / 2
    least, idle = xp.where(better, step.slope, search.least), xp.where(better | far, 0.0, search.idle + 1)
    return search._replace(theta=theta, z=z, near=~far, least=least, idle=idle, looks=search.looks + 1)


def _taken(parts: Any, mask: Array) -> Any:
    """The arrays of a tuple for the problems of the mask (G,) alone."""
    return type(parts)(*(A if A is None else A[mask] for A in parts))


def _rows_of(problem: Problem, mask: Array) -> Problem:
    """The problems of the mask alone; rows that all share stay as they are."""
    link, X, *others = problem
    return Problem(link, X if X.ndim == 2 else X[mask], *(A if A is None else A[mask] for A in others))


def _part(search: Search, mask: Array) -> Search:
    """The search for the problems of the mask alone, with what the next pass needs of H."""
    problem, aim, H, *others = search
    H = Curvature(H.F[mask]) if aim.drift is None else _taken(H, mask)
    return Search(_rows_of(problem, mask), aim._replace(tol=aim.tol[mask]), H, *(A[mask] for A in others))


def _put(parts: Any, mask: Array, new: Any) -> list[Any]:
    """Copies of the arrays of a tuple, with those of `new` for the problems of the mask (G,)."""
    copies = [A if A is None else arrays.namespace(A).asarray(A, copy=True) for A in parts]
    for A, value in zip(copies, new, strict=True):
        if A is not None:
            A[mask] = value
    return copies


def not_held() -> ValueError:
    """The error for a minimum that float64 cannot hold."""
    return ValueError(
        "x, r or weight is too large beside the others and lam: rounding alone may put the estimate off by a width, or "
        "an eigenvalue of its curvature off by a factor e; scale x down or raise lam"
    )


def not_found() -> ValueError:
    """The error where no estimate is found."""
    return ValueError(
        f"x or r is too large beside the others: no estimate was found in {STEPS} steps of Newton's method; scale "
        f"features and rewards, or raise lam"
    )

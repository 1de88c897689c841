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
from dither.links import Link
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
    """When a problem is solved."""

    tol: Array  # (G,)  E shall be below this; rounding that is larger than that is looked at more closely
    drift: float | None = None  # so shall the bound on the log eigenvalues, but for rounding; None: see below
    stale: float = SHARP  # H is computed anew where its log eigenvalues may have moved by more
    looked: bool = False  # whether the point of a pass will do, or the outcome of its step alone

    @property
    def exact(self) -> bool:
        """Whether a problem is solved when rounding is all that is left of its slope, whatever E is."""
        return self.drift is None


class Solution(NamedTuple):
    """What is known at the end. `single` has it for one problem: without the axis G."""

    theta: Any  # (G, d)
    F: Any  # (G, d, d)  H⁻¹ = FF'; H is the Hessian at the last point where it was computed
    R: Any  # (G, d, d)  H = R'R; None where a point that was looked at will do
    blur: Any  # (G,)  how far rounding may put the log eigenvalues of H off
    offset: Any  # (G,)  how far they are from those of the curvature at `base`, at most, rounding included
    slope: Any  # (G,)  what the quadratic model at `base` leaves of ∇J(θ), in the norm of H⁻¹, at most
    noise: Any  # (G,)  the part of `slope` that is rounding
    reach: Any  # (G,)  max ‖x‖ in the norm of H⁻¹, at most
    base: Any  # (G, d)  H is the curvature here to within `offset`: it is theta, or where the last step began
    zmax: Any  # (G,)  max |x'base|
    bound: Any  # (G, 2)  as of `certificate.bounds`
    steps: Any  # (G,)  looks at the rows; int64


class Step(NamedTuple):
    """Newton's step from one point."""

    N: Array  # (G, d)
    slope: Array  # (G,)  ‖∇J‖ in the norm of H⁻¹, as computed; it is the length of N in the norm of H
    dz: Array | None  # (G, n)  x'N; None where a bound on it is enough
    move: Array  # (G,)  max |x'N|, at most


class Curvature(NamedTuple):
    """H by its factors, and how far it may be from the curvature at the point at hand. Where rounding is the limit, H is
    made anew in each pass, and F alone is of use to the next.
    """

    F: Any  # (G, d, d)  H⁻¹ = FF'; None before the first
    R: Any = None  # (G, d, d)  H = R'R; None where F was passed in, and where it is not needed
    reach: Any = None  # (G,)  max ‖x‖ in the norm of H⁻¹, at most; None before the first
    blur: Any = None  # (G,)  how far the log eigenvalues are off at `anchor`
    offset: Any = None  # (G,)  how far they are off at the point at hand, at most
    anchor: Any = None  # (G, n)  the logits at which H was computed
    sure: Any = None  # (G,)  whether that is so; else F is near some H⁻¹


class Search(NamedTuple):
    """The problems that are not solved yet: what one pass hands to the next."""

    problem: Problem
    H: Curvature
    tol: Array  # (G,)
    theta: Array  # (G, d)
    z: Array  # (G, n)  its logits
    near: Array  # (G,)  steps ahead may be tried with F
    stuck: Array  # (G,)  steps ahead have stopped to get shorter
    begun: Array  # (G,)  has started anew at θ = 0
    least: Array  # (G,)  the smallest slope so far that was progress
    idle: Array  # (G,)  passes since then
    last: Array  # (G,)  the slope one pass ago; 0 where it says nothing, infinite before the first
    looks: Array  # (G,)  int64


def solve(
    problem: Problem,
    theta: Array,
    *,
    link: Link,
    aim: Aim,
    F: Array | None = None,
    trusted: Array | None = None,
    reach: Array | None = None,
) -> Solution:
    """Minimise J, from theta (G, d), until the aim is reached.

    F, trusted : a factor of some H⁻¹ near theta's; (G,) how far its log eigenvalues are from those at theta, at most
    reach : (G,) max ‖x‖ in the norm of H(theta)⁻¹, at most; None: it is computed

    Raises ValueError where float64 cannot hold the minimum, or none is found.
    """
    search = _begun(problem, theta, aim, link=link, F=F, trusted=trusted, reach=reach)
    left = answer = None  # type: Any
    for passes in range(1, STEPS + 1):
        if passes == AGAIN + 1:
            search = _anew(search, ~search.begun)
        if aim.exact:
            search = _ahead(search, link=link)
        look = objective.look(search.problem, search.theta, search.z, link=link)
        search = _curved(search, look, aim, link=link)
        search, step, noise = _measured(search, look, aim, link=link)
        end, solution = _outcome(search, look, step, noise, aim, link=link)
        lost = _lost(search, solution, noise, end) if aim.exact else None
        if lost is not None:
            end = end & ~lost
        if arrays.some(end):
            going = ~end
            if not arrays.some(going):
                return solution if answer is None else _put(answer, left, solution)
            if answer is None:
                answer, left = _copied(solution), going
            else:
                answer = _put(answer, left, solution)
                left = _placed(left, going)
            search, step = _part(search, going, aim), _taken(step, going)
            lost = None if lost is None else lost[going]
        search = _moved(search, step, fresh_logits=passes % 8 == 0, link=link)
        if lost is not None:
            search = _anew(search, lost)
    raise not_found()


def _begun(
    problem: Problem,
    theta: Array,
    aim: Aim,
    *,
    link: Link,
    F: Array | None,
    trusted: Array | None,
    reach: Array | None,
) -> Search:
    """Before the first pass."""
    xp, z = arrays.namespace(theta), objective.logits(problem.X, theta)
    zero = xp.zeros_like(theta[..., 0])
    never, far = zero > 0, zero + xp.inf
    H = Curvature(F)
    if not aim.exact:
        offset, sure = (zero, never) if trusted is None else (trusted, trusted < aim.stale)
        if trusted is not None:
            reach = xp.where(sure, hessian.reach(problem, F, link.slopes(z)[1]), xp.inf)
        H = Curvature(F, None, reach, offset, offset, z, sure)
    looks = xp.zeros(theta.shape[:-1], dtype=xp.int64, device=arrays.device(theta))
    near = never if F is None else ~never
    return Search(problem, H, aim.tol, theta, z, near, never, never, far, zero, far, looks)


def _ahead(search: Search, *, link: Link) -> Search:
    """After steps with the factor at hand, while each of them is much shorter than the one before."""
    F, live = search.H.F, search.near
    if not arrays.some(live):
        return search
    problem, theta, z, stuck, looks = search.problem, search.theta, search.z, search.stuck, search.looks
    xp = arrays.namespace(theta)
    N = chord = size = worst = M = None  # type: Any
    for k in range(CHORDS):
        last, before, was = N, chord, size
        g = objective.slope(problem, theta, link.residual(z, problem.count, problem.total)[0])
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
            stuck = stuck | (live & (share >= STUCK))
            live = live & (share <= SLOW)
        else:
            M, worst = link.M(objective.largest(z) + SAFE), xp.ones_like(size)
            live = live & (size <= SAFE)
        theta = xp.where(live[:, None], theta + N, theta)
        z = objective.logits(problem.X, theta)
        live = live & (M * worst * xp.sqrt(worst) * size > SHARP)  # by the correction a share falls faster than `worst`
        if not arrays.some(live):
            break
    return search._replace(theta=theta, z=z, stuck=stuck, looks=looks)


def _curved(search: Search, look: Look, aim: Aim, *, link: Link) -> Search:
    """With H computed at the point at hand, where it is stale."""
    xp, H, problem = arrays.namespace(search.theta), search.H, search.problem
    if aim.exact:
        R, F, blur = hessian.computed(problem, search.theta, look, link=link)
        return search._replace(H=Curvature(F, R, hessian.reach(problem, F, look.w), blur, blur))
    moved = objective.offset(search.z, H.anchor, link=link)
    stale, offset = ~(H.sure & (moved <= aim.stale)), xp.where(H.sure, moved + H.blur, 0.0)
    H = H._replace(offset=offset)
    if not arrays.some(stale):
        return search._replace(H=H)
    part, fewer = search._replace(H=H), arrays.some(~stale)
    if fewer:
        part, look = _part(part, stale, aim), _taken(look, stale)
    R, F, blur = hessian.computed(part.problem, part.theta, look, link=link)
    carried, off = part.H.reach, part.H.offset
    if carried is not None:
        carried = carried * xp.exp(xp.where(off < 300, off, 300.0) / 2)
    every = part.z.shape[-1] <= hessian.FEW or (carried is None and not aim.looked)
    reach = hessian.reach(part.problem, F, look.w, limit=carried, exact=every)
    new = Curvature(F, None if aim.looked else R, reach, blur, blur, part.z, ~(blur < 0))
    return search._replace(H=Curvature(*_merged(stale, new, H)) if fewer else new)


def _measured(search: Search, look: Look, aim: Aim, *, link: Link) -> tuple[Search, Step, Array]:
    """The step from the point at hand; and how far rounding may put the slope off, in the norm of H⁻¹, at most (G,)."""
    problem, H = search.problem, search.H
    step = newton_step(problem, H.F, look.g, enough=CLOSE if aim.exact else 0.0)

    def noise(reach: Array) -> Array:
        return rounding.gradient(problem, search.theta, look, F=H.F, reach=reach, link=link, most=search.tol / 8)

    error = noise(H.reach)
    rough = H.reach * error > SHARP + H.blur
    if not (aim.exact and arrays.some(rough)):
        return search, step, error
    part = _rows_of(problem, rough)  # the bound would be that of a rough `reach`
    longest = hessian.reach(part, H.F[rough], look.w[rough], exact=True)
    H = H._replace(reach=_merged(rough, [longest], [H.reach])[0])
    return search._replace(H=H), step, noise(H.reach)


def _outcome(
    search: Search, look: Look, step: Step, noise: Array, aim: Aim, *, link: Link
) -> tuple[Array, Solution]:
    """Which problems are solved, (G,), and the solutions, which are right for those."""
    xp, H, idle = arrays.namespace(noise), search.H, search.idle > IDLE
    theta, move, N = search.theta, step.move, step.N
    rest = ~(move <= SAFE)  # the end is the point at hand, not the outcome of the step
    if aim.looked:
        rest = rest | (step.slope + noise <= search.tol)
    resting = arrays.some(rest)
    if resting:
        move, N = xp.where(rest, 0.0, move), xp.where(rest[..., None], 0.0, N)
    zmax = look.zmax + move
    a, off = certificate.cut(link.M(zmax) * move), certificate.grown(H.offset)
    left = ((1 + off) * a * certificate.phi(a) + off) * step.slope
    if aim.exact:
        sharp = (a <= SHARP + H.blur) & (left <= noise) & ~rest
        stuck = search.stuck | (step.slope >= search.last / 2)
        end = sharp | (stuck & (step.slope <= noise)) | idle
    left = (xp.where(rest, step.slope, left) if resting else left) + noise
    bound = certificate.bounds(a + H.offset, left, H.reach, zmax=zmax, link=link)
    if aim.drift is not None:
        good = (bound[..., 0] <= search.tol) & (bound[..., 1] <= aim.drift + 2 * H.blur)
        end = good | idle  # there rounding is the limit, and the bound says how far it reaches
    ends = (left, left, H.reach, theta, look.zmax, bound, search.looks + 1)
    return end, Solution(theta + N, H.F, H.R, H.blur, H.offset, *ends)


def _lost(search: Search, solution: Solution, noise: Array, end: Array) -> Array | None:
    """Which problems have ended where the bound cannot vouch for it, (G,), the start may be to blame; None: none."""
    xp = arrays.namespace(noise)
    astray = xp.maximum(noise, search.H.blur) >= rounding.LOST
    lost = end & (astray | ~xp.isfinite(solution.bound[..., 0]))
    if not arrays.some(lost):
        return None
    if arrays.some(lost & astray & search.begun):
        raise not_held()
    return lost & ~search.begun


def _anew(search: Search, again: Array) -> Search:
    """With θ = 0 for the problems that start `again` (G,)."""
    if not arrays.some(again):
        return search
    xp, H = arrays.namespace(search.theta), search.H

    def put(value: float, A: Array) -> Array:
        return xp.where(again, value, A)

    return search._replace(
        theta=xp.where(again[..., None], 0.0, search.theta),
        z=xp.where(again[..., None], 0.0, search.z),
        H=H if H.sure is None else H._replace(sure=H.sure & ~again, reach=put(xp.inf, H.reach)),
        near=search.near & ~again,
        begun=search.begun | again,
        least=put(xp.inf, search.least),
        idle=put(0.0, search.idle),
        last=put(0.0, search.last),
    )


def newton_step(problem: Problem, F: Array, g: Array, *, enough: float = 0.0) -> Step:
    """-FF'g and what it does to the logits. A step that moves a logit by more than `LONGEST` is shortened to that.

    enough : where no logit moves by more than this, a bound on its move will do
    """
    xp = arrays.namespace(g)
    half = arrays.dot(F.mT, g)
    N, slope = -arrays.dot(F, half), arrays.norms(half)
    if enough and not arrays.some(~((move := problem.longest * arrays.norms(N)) <= enough)):
        return Step(N, slope, None, move)
    dz = objective.logits(problem.X, N)
    move = objective.largest(dz)
    if arrays.some(move > LONGEST):
        shorter = LONGEST / xp.where(move > LONGEST, move, LONGEST)
        N, dz, move = N * shorter[..., None], dz * shorter[..., None], move * shorter
    return Step(N, slope, dz, move)


def _moved(search: Search, step: Step, *, fresh_logits: bool, link: Link) -> Search:
    """After the step, or after the part of it that leads to the minimum along its line.

    The change of the logits is added to them, so they keep the rounding of the longest step. They are computed anew
    after a step along a line, where the change is not known, and for all problems where `fresh_logits`.
    """
    xp, problem, far = arrays.namespace(search.theta), search.problem, step.move > SAFE
    N, dz = step.N, step.dz
    if arrays.some(far):
        size = objective.along(problem, search.theta, N, search.z, dz, far=far, link=link)[..., None]
        N, dz = size * N, size * dz
    theta = search.theta + N
    if dz is None or fresh_logits:
        z = objective.logits(problem.X, theta)
    else:
        z = search.z + dz
        if arrays.some(far):
            z = xp.where(far[..., None], objective.logits(problem.X, theta), z)
    better = step.slope < search.least / 2
    return search._replace(
        theta=theta,
        z=z,
        near=step.move <= SAFE,
        stuck=far & False,
        least=xp.where(better, step.slope, search.least),
        idle=xp.where(better | far, 0.0, search.idle + 1),
        last=xp.where(far, 0.0, step.slope),
        looks=search.looks + 1,
    )


def _taken(parts: Any, mask: Array) -> Any:
    """The arrays of a tuple for the problems of the mask (G,) alone."""
    return type(parts)(*(A if A is None else A[mask] for A in parts))


def _rows_of(problem: Problem, mask: Array) -> Problem:
    """The problems of the mask alone; rows that all share stay as they are."""
    X = problem.X
    return _taken(problem._replace(X=None), mask)._replace(X=X if X.ndim == 2 else X[mask])


def _part(search: Search, mask: Array, aim: Aim) -> Search:
    """The search for the problems of the mask alone, with what the next pass needs of H."""
    H = Curvature(search.H.F[mask]) if aim.exact else _taken(search.H, mask)
    return Search(_rows_of(search.problem, mask), H, *(A[mask] for A in search[2:]))


def _merged(mask: Array, new: Any, old: Any) -> list[Array | None]:
    """The arrays `old` with the entries of `new` for the problems of the mask (G,), in their order."""
    xp, G = arrays.namespace(mask), mask.shape[0]
    rank = xp.cumulative_sum(xp.astype(mask, xp.int64))
    places = xp.where(mask, G - 1 + rank, xp.arange(G, device=arrays.device(mask)))
    return [None if b is None else xp.take(xp.concat([b, a]), places, axis=0) for a, b in zip(new, old, strict=True)]


def _copied(solution: Solution) -> Solution:
    """The solution in arrays of its own."""
    return Solution(*(A if A is None else arrays.namespace(A).asarray(A, copy=True) for A in solution))


def _put(answer: Solution, left: Array, solution: Solution) -> Solution:
    """The answer (G problems), written over by the solutions of those that were left."""
    for A, new in zip(answer, solution, strict=True):
        if A is not None:
            A[left] = new
    return answer


def _placed(left: Array, going: Array) -> Array:
    """Of the problems that were left, those that go on: both as masks (G,)."""
    left = arrays.namespace(left).asarray(left, copy=True)
    left[left] = going
    return left


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

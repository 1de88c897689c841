"""Newton's method on the objective J of `problem`, for G problems at once: from any start to the limit of rounding.

One step. The full Newton step is taken where it moves every logit by at most `SAFE`: then it is safe for M <= 1. A
longer step goes to the minimum of J along its line. With exact numbers this converges from every start, for every
convex g.

Beginning again. In float64 it need not converge: if a step leaves a logit of 100 under the log link, one row outweighs
the others by e^100, and the direction in which the others would move θ is nothing but rounding. A problem that has not
converged after `AGAIN` steps therefore starts anew at θ = 0. From there no step raises J, so that the loss of every row
stays below J(0), and its weight stays bounded too.

The end. A problem is solved when its slope is no larger than what rounding may have made of it, and H has been computed
at that very point. Histories that agree then give the same θ and H, to rounding.

The cost. A step with the factor of an earlier H takes one pass of O(n d). Computing H takes O(n d²): it is done where
such a step leaves more than `CHORD` of the slope, and at the end. `near` stops earlier.
"""

from typing import Any, NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models.glm import certificate, hessian, problem, rounding
from dither.models.glm.problem import Look, Problem

STEPS = 400  # at most; a few are enough
AGAIN = 60  # steps after which a problem that is not solved starts anew at θ = 0
IDLE = 12  # steps without progress after which rounding is taken to be the limit
SAFE = 0.5  # change of a logit up to which the full step is taken
LONGEST = 1e6  # change of a logit to which a step is shortened before its line is searched
CHORD = 1e-3  # share of the slope that a step with an earlier factor may leave; above it the curvature is computed
SHARP = 1e-13  # change of the log eigenvalues of H up to which H counts as unchanged


class Solution(NamedTuple):
    """What is known at the end."""

    theta: Array  # (G, d)
    F: Array  # (G, d, d)  H⁻¹ = FF'; H is the Hessian at the last point where it was computed
    R: Array | None  # (G, d, d)  H = R'R; None where a trusted F was enough
    blur: Array  # (G,)  how far rounding may put the log eigenvalues of H off
    offset: Array  # (G,)  how far they are from those of the curvature at `base`, at most, rounding included
    slope: Array  # (G,)  what the quadratic model at `base` leaves of ∇J(θ), in the norm of H⁻¹, at most
    noise: Array  # (G,)  the part of `slope` that is rounding
    reach: Array  # (G,)  max ‖x‖ in the norm of H⁻¹, at most
    base: Array  # (G, d)  H is the curvature here to within `offset`: it is theta, or where the last step began
    zmax: Array  # (G,)  max |x'base|
    bound: Array  # (G, 2)  as of `certificate.bounds`
    steps: Array  # (G,)  passes over the rows; int64


class Step(NamedTuple):
    """Newton's step from one point."""

    N: Array  # (G, d)
    slope: Array  # (G,)  ‖∇J‖ in the norm of H⁻¹, as computed; it is the length of N in the norm of H
    dz: Array  # (G, n)  x'N
    move: Array  # (G,)  max |x'N|


class Tried(NamedTuple):
    """A step with what decides on it."""

    step: Step
    noise: Array  # (G,)  how far rounding may put the slope off, in the norm of H⁻¹
    a: Array  # (G,)  how far the step may move the log eigenvalues of H


class Curvature(NamedTuple):
    """H by its factors, and how far it may be from the curvature at the point at hand."""

    F: Any  # (G, d, d)  H⁻¹ = FF'; None before the first
    R: Any  # (G, d, d)  H = R'R; None where F was passed in
    reach: Any  # (G,)  max ‖x‖ in the norm of H⁻¹, at most; None before the first
    blur: Array  # (G,)  how far rounding may put the log eigenvalues of H off
    anchor: Array  # (G, n)  the logits at which H was computed
    shift: Array  # (G,)  how far the log eigenvalues have moved since, at most; infinite for an F that was passed in


class Search(NamedTuple):
    """What one step hands to the next."""

    theta: Array  # (G, d)
    z: Array  # (G, n)  its logits
    H: Curvature
    live: Array  # (G,)  not solved yet
    begun: Array  # (G,)  has started anew at θ = 0
    lost: Array  # (G,)  is about to
    least: Array  # (G,)  the smallest slope so far that was progress
    idle: Array  # (G,)  steps since then
    last: Array  # (G,)  the slope one step ago; infinite where F has not been tried, 0 where H is to be computed
    answer: Any  # the Solution, right for the problems that are solved; None before the first is


def solve(given: Problem, theta: Array, *, link: Link, tol: Array, F: Array | None = None) -> Solution:
    """Minimise J, from theta (G, d), to where rounding is the limit. The problems do not influence each other.

    tol : (G,) what the bound should be below; rounding that is larger than that is looked at more closely
    F : (G, d, d) a factor of some H⁻¹ near theta's, for first steps

    Raises ValueError where float64 cannot hold the minimum, or none is found.
    """
    search = _begun(given, theta, F)
    for passes in range(1, STEPS + 1):
        search = _anew(search, late=passes > AGAIN)
        look = problem.look(given, search.theta, search.z, link=link)
        search, tried, here = _tried(given, search, look, link=link, tol=tol)
        done, left = _done(search, tried, here)
        if arrays.some(done):
            search = _answered(search, look, tried, done, left, passes, link=link)
            if not arrays.some(search.live):
                return search.answer
        search = _moved(given, search, tried.step, fresh_logits=passes % 8 == 0, link=link)
    raise not_found()


def _begun(given: Problem, theta: Array, F: Array | None) -> Search:
    """Before the first step."""
    xp = arrays.namespace(theta)
    z, zero = problem.logits(given.X, theta), xp.zeros_like(theta[..., 0])
    live = xp.ones(theta.shape[:-1], dtype=xp.bool, device=arrays.device(theta))
    never, far = live & False, zero + xp.inf
    reach = None if F is None else given.longest * arrays.norms(arrays.norms(F))
    H = Curvature(F, None, reach, zero, z, far)
    return Search(theta, z, H, live, never, never, far, zero, far, None)


def _anew(search: Search, *, late: bool) -> Search:
    """With θ = 0 for the problems that are lost, or that are late and have not started anew before."""
    again = search.live & ~search.begun & (search.lost | late)
    if not arrays.some(again):
        return search
    xp = arrays.namespace(search.theta)

    def put(value: float, A: Array) -> Array:
        return xp.where(again, value, A)

    return search._replace(
        theta=xp.where(again[..., None], 0.0, search.theta),
        z=xp.where(again[..., None], 0.0, search.z),
        H=search.H._replace(shift=put(xp.inf, search.H.shift)),
        begun=search.begun | again,
        least=put(xp.inf, search.least),
        idle=put(0.0, search.idle),
        last=put(0.0, search.last),
    )


def _tried(given: Problem, search: Search, look: Look, *, link: Link, tol: Array) -> tuple[Search, Tried, Array]:
    """The search with the curvature that the step needs, that step, and where H is the curvature of the very point."""
    xp, H = arrays.namespace(search.theta), search.H

    def sized(H: Curvature) -> Tried:
        step = newton_step(given, H.F, look.g)
        noise = rounding.gradient(given, search.theta, look, F=H.F, reach=H.reach, link=link, most=tol / 8)
        return Tried(step, noise, link.M(look.zmax + step.move) * step.move)

    fresh, here = search.live, H.shift <= SHARP
    if H.F is not None:
        tried = sized(H)
        step = tried.step
        ripe = (tried.a <= SHARP) | (step.slope <= tried.noise) | (search.idle > IDLE)
        fresh = search.live & ~here & (ripe | (step.slope > CHORD * search.last) | (step.move > SAFE))
    if arrays.some(fresh):
        n = given.X.shape[-2]
        R, F, blur = hessian.computed(given, search.theta, look, only=fresh, old=(H.R, H.F, H.blur), link=link)
        found = hessian.reach(given, F, look.w, exact=n <= hessian.FEW)
        reach = found if H.reach is None else xp.where(fresh, found, H.reach)
        anchor = xp.where(fresh[..., None], search.z, H.anchor)
        H = Curvature(F, R, reach, blur, anchor, xp.where(fresh, 0.0, H.shift))
        search, tried, here = search._replace(H=H), sized(H), here | fresh
    return search, tried, here


def _done(search: Search, tried: Tried, here: Array) -> tuple[Array, Array]:
    """Which problems are solved, (G,): H is that of the point, and rounding is all that is left of the slope.

    And how much of the slope a full step leaves, at most, in the norm of H⁻¹: (G,).
    """
    step, noise, a = tried
    few = certificate.cut(a)
    left = (few * certificate.phi(few) + grown(search.H.blur)) * step.slope
    done = (step.move <= SAFE) & (a <= SHARP) & (left <= noise) | (search.idle > IDLE)
    done = done | (step.slope <= noise) & ((a <= SHARP) | (step.slope >= search.last / 2))
    return search.live & here & done, left


def _answered(search: Search, look: Look, tried: Tried, done: Array, left: Array, passes: int, *, link: Link) -> Search:
    """With the solutions of the problems that are done; one that the bound cannot vouch for starts anew instead."""
    xp, H = arrays.namespace(search.theta), search.H
    step, noise, a = tried
    safe = step.move <= SAFE
    N, left = xp.where(safe[..., None], step.N, 0.0), xp.where(safe, left, step.slope) + noise
    a, ahead = xp.where(safe, a, 0.0), look.zmax + xp.where(safe, step.move, 0.0)
    bound = certificate.bounds(a + H.shift + H.blur, left, H.reach, zmax=ahead, link=link)
    astray = xp.maximum(noise, H.blur) >= hessian.LOST
    lost = done & ~search.begun & (astray | ~xp.isfinite(bound[..., 0]))  # the start may be to blame, not the minimum
    if arrays.some(done & search.begun & astray):
        raise not_held()
    count = xp.full_like(search.live, passes, dtype=xp.int64)
    offset = H.shift + H.blur
    theta = search.theta
    new = Solution(theta + N, H.F, H.R, H.blur, offset, left, left, H.reach, theta, look.zmax, bound, count)
    answer = new if search.answer is None else kept(search.live, new, search.answer)
    return search._replace(live=search.live & ~(done & ~lost), lost=lost, answer=answer)


def _moved(given: Problem, search: Search, step: Step, *, fresh_logits: bool, link: Link) -> Search:
    """After the step."""
    xp, H = arrays.namespace(search.theta), search.H
    better, far = step.slope < search.least / 2, step.move > SAFE
    theta, z = moved(given, search.theta, search.z, step, search.live, anew=fresh_logits, link=link)
    shift = xp.where(xp.isfinite(H.shift), problem.offset(z, H.anchor, link=link), xp.inf)
    return Search(
        *(theta, z, Curvature(*H[:-1], shift), search.live, search.begun, search.lost),
        least=xp.where(better, step.slope, search.least),
        idle=xp.where(better | far, 0.0, search.idle + 1),
        last=xp.where(far, 0.0, step.slope),
        answer=search.answer,
    )


def not_held() -> ValueError:
    """The error for a minimum that float64 cannot hold."""
    return ValueError(
        "x, r or weight is too large beside the others and lam: rounding alone may put the estimate off by a width, or "
        "an eigenvalue of its curvature off by a factor e; scale x down or raise lam"
    )


def grown(blur: Array) -> Array:
    """e^blur - 1; finite too where a factor has lost every digit."""
    return arrays.namespace(blur).expm1(certificate.cut(blur))


def not_found() -> ValueError:
    """The error where no estimate is found."""
    return ValueError(
        f"x or r is too large beside the others: no estimate was found in {STEPS} steps of Newton's method; scale "
        f"features and rewards, or raise lam"
    )


def newton_step(given: Problem, F: Array, g: Array) -> Step:
    """-FF'g and what it does to the logits. A step that moves a logit by more than `LONGEST` is shortened to that."""
    xp = arrays.namespace(g)
    half = arrays.dot(F.mT, g)
    N = -arrays.dot(F, half)
    dz = problem.logits(given.X, N)
    move = problem.largest(dz)
    if arrays.some(move > LONGEST):
        shorter = LONGEST / xp.where(move > LONGEST, move, LONGEST)
        N, dz, move = N * shorter[..., None], dz * shorter[..., None], move * shorter
    return Step(N, arrays.norms(half), dz, move)


def moved(
    given: Problem, theta: Array, z: Array, own: Step, live: Array, *, anew: bool, link: Link
) -> tuple[Array, Array]:
    """θ and its logits after the step, or after the part of it that leads to the minimum along its line.

    The step is added to the logits, so they keep the rounding of the longest step. They are computed anew after a step
    along a line, and for all problems where `anew`.
    """
    xp = arrays.namespace(theta)
    size = xp.where(live, xp.ones_like(own.move), xp.zeros_like(own.move))
    far = live & (own.move > SAFE)
    if arrays.some(far):
        size = xp.where(far, problem.along(given, theta, own.N, z, own.dz, far=far, link=link), size)
    theta = theta + size[..., None] * own.N
    z = z + size[..., None] * own.dz
    if arrays.some(far) or anew:
        again = (far | (live & anew))[..., None]
        z = xp.where(again, problem.logits(given.X, theta), z)
    return theta, z


def kept(live: Array, new: Solution, old: Solution) -> Solution:
    """The new values where a problem was still being solved, the old ones elsewhere."""
    xp = arrays.namespace(live)

    def rule(a: Array | None, b: Array | None) -> Array | None:
        if a is None or b is None:
            return a
        return xp.where(xp.reshape(live, (-1, *(1,) * (a.ndim - 1))), a, b)

    return Solution(*(rule(a, b) for a, b in zip(new, old, strict=True)))

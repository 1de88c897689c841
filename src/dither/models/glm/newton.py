"""Newton's method on J(θ) = Σ [ω g(x'θ) - τ x'θ] - b'θ + ρ‖θ‖²/2, for G problems at once, from any start.

A step is the full Newton step where it moves every logit by at most 1/2 (then it is safe for M <= 1), else it goes to
the minimum along its line (`line`). With exact numbers that converges from every start, for every convex g. In float64
it need not: where the last step left a logit of 100 under the log link, one row outweighs the others by e^100, and the
direction in which those would move is rounding alone. So what has not converged in `AGAIN` steps begins anew at θ = 0.
From there no step raises J, so every row's loss, and with it its weight, stays below what J(0) allows.

`solve` ends where the slope is what rounding leaves of it, with H computed at that point: so θ and H say the same of
records that are equal, to rounding. A step with the factor at hand costs a pass of O(n d); the curvature, O(n d²), is
computed where such a step leaves more than `CHORD` of the slope, and at the end. `near` stops earlier.
"""

from typing import NamedTuple

from dither import arrays
from dither.arrays import Array
from dither.links import Link
from dither.models.glm import certificate, hessian, line, problem, rounding
from dither.models.glm.problem import Problem

STEPS = 400  # at most; a few are enough
AGAIN = 60  # step at which what has not been found is looked for from θ = 0
IDLE = 12  # steps without progress after which no more is to be had
SAFE = 0.5  # change of a logit below which a full step is taken
LONGEST = 1e6  # change of a logit to which a step is shortened before its line is searched
CHORD = 1e-3  # share of the slope that a step with the factor at hand may leave, or the curvature is computed
SHARP = 1e-13  # change of the log eigenvalues of H that is as good as none


class Solution(NamedTuple):
    """What is known at the end."""

    theta: Array  # (G, d)
    F: Array  # (G, d, d)  H⁻¹ = FF'; H is the Hessian at the last point where it was computed
    R: Array | None  # (G, d, d)  H = R'R; None where a trusted F was enough
    blur: Array  # (G,)  how far rounding may put the log eigenvalues of H off
    offset: Array  # (G,)  those of H against the curvature at `base`, at most, with that of rounding
    slope: Array  # (G,)  what the quadratic model at `base` leaves of ∇J(θ), in the norm of H⁻¹, at most
    noise: Array  # (G,)  what of it is rounding
    reach: Array  # (G,)  max ‖x‖ in the norm of H⁻¹, at most
    base: Array  # (G, d)  where H is a model of the curvature to within `offset`: theta, or where the last step began
    zmax: Array  # (G,)  max |x'base|
    bound: Array  # (G, 2)  as of `certificate.bounds`
    steps: Array  # (G,)  passes over the rows; int64


class Step(NamedTuple):
    """Newton's step from one point."""

    N: Array  # (G, d)
    slope: Array  # (G,)  ‖∇J‖ in the norm of H⁻¹, as computed: the length of N in the norm of H
    dz: Array  # (G, n)  x'N
    move: Array  # (G,)  the largest |x'N|


def solve(given: Problem, theta: Array, *, link: Link, tol: Array, F: Array | None = None) -> Solution:
    """Minimise, from theta (G, d), to where rounding is the limit. No problem knows of the others.

    tol : (G,) what the bound should be below: rounding above it is looked at more closely
    F : a factor of some H⁻¹ near theta's, for first steps
    """
    xp, n = arrays.namespace(theta), given.X.shape[-2]
    z = problem.logits(given.X, theta)
    live = xp.ones(theta.shape[:-1], dtype=xp.bool, device=arrays.device(theta))
    here = begun = lost = live & False  # H is that at the point at hand; begun anew at 0; about to be
    zero = xp.zeros_like(theta[..., 0])
    blur, shift, least, idle = zero, zero + xp.inf, zero + xp.inf, zero
    last = zero + xp.inf  # the slope one step ago, infinite where the factor has not been tried
    anchor, R, answer = z, None, None
    reach = None if F is None else given.longest * arrays.norms(arrays.norms(F))
    for step in range(STEPS):
        again = live & ~begun & (lost | (step >= AGAIN))
        if arrays.some(again):
            begun = begun | again
            theta, z = (xp.where(again[..., None], 0.0, A) for A in (theta, z))
            shift, last, least, idle = (
                xp.where(again, value, A) for A, value in ((shift, xp.inf), (last, 0.0), (least, xp.inf), (idle, 0.0))
            )
        e, w = link.residual(z, given.count, given.total)
        g, size, zmax = problem.slope(given, theta, e), given.count * w, problem.largest(z)

        def limit(F: Array, reach: Array, e: Array = e, size: Array = size, theta: Array = theta) -> Array:
            return rounding.gradient(given, theta, e, size, F=F, reach=reach, link=link, most=tol / 8)

        fresh, here = live, shift <= SHARP
        if F is not None:
            own = newton_step(given, F, g)
            noise, a = limit(F, reach), link.M(zmax + own.move) * own.move
            ripe = (a <= SHARP) | (own.slope <= noise) | (idle > IDLE)
            fresh = live & ~here & (ripe | (own.slope > CHORD * last) | (own.move > SAFE))
        if arrays.some(fresh):
            R, F, blur = hessian.factors(given, size, only=fresh, old=(R, F, blur))
            faint = rounding.curvature(given, theta, size, zmax, link=link)
            blur = xp.where(fresh, blur + faint, blur)
            found = hessian.reach(given, F, w, exact=n <= hessian.FEW)
            reach = found if reach is None else xp.where(fresh, found, reach)
            own = newton_step(given, F, g)
            noise, a = limit(F, reach), link.M(zmax + own.move) * own.move
            anchor, shift, here = xp.where(fresh[..., None], z, anchor), xp.where(fresh, 0.0, shift), here | fresh
        few = xp.where(a < certificate.FAR, a, certificate.FAR)
        left = (few * certificate.phi(few) + grown(blur)) * own.slope  # of the slope, after the step
        safe = own.move <= SAFE
        done = safe & (a <= SHARP) & (left <= noise) | (idle > IDLE)
        done = done | (own.slope <= noise) & ((a <= SHARP) | (own.slope >= last / 2))  # no more is to be had
        done = live & here & done
        if arrays.some(done):
            N, left = xp.where(safe[..., None], own.N, 0.0), xp.where(safe, left, own.slope) + noise
            a, ahead = xp.where(safe, a, 0.0), zmax + xp.where(safe, own.move, 0.0)
            bound = certificate.bounds(a + shift + blur, left, reach, zmax=ahead, link=link)
            astray = xp.maximum(noise, blur) >= hessian.LOST
            lost = done & ~begun & (astray | ~xp.isfinite(bound[..., 0]))  # may be of the start, not of the minimum
            if arrays.some(done & begun & astray):
                raise not_held()
            done = done & ~lost
            count = xp.full_like(live, step + 1, dtype=xp.int64)
            new = Solution(theta + N, F, R, blur, shift + blur, left, left, reach, theta, zmax, bound, count)
            answer = new if answer is None else kept(live, new, answer)
            live = live & ~done
            if not arrays.some(live):
                return answer
        better = own.slope < least / 2
        far = own.move > SAFE
        least, idle = xp.where(better, own.slope, least), xp.where(better | far, 0.0, idle + 1)
        last = xp.where(far, 0.0, own.slope)
        theta, z = moved(given, theta, z, own, live, anew=step % 8 == 7, link=link)
        shift = xp.where(xp.isfinite(shift), problem.offset(z, anchor, link=link), xp.inf)
    raise not_found()


def not_held() -> ValueError:
    """What is raised where the minimum is found to be no number that float64 holds."""
    return ValueError(
        "x, r or weight is too large beside the others and lam: rounding alone may put the estimate off by a width, or "
        "an eigenvalue of its curvature off by a factor e; scale x down or raise lam"
    )


def grown(blur: Array) -> Array:
    """e^blur - 1, for a factor that has lost every digit too."""
    xp = arrays.namespace(blur)
    return xp.expm1(xp.where(blur < certificate.FAR, blur, certificate.FAR))


def not_found() -> ValueError:
    """What is raised where no estimate is found."""
    return ValueError(
        f"x or r is too large beside the others: no estimate was found in {STEPS} steps of Newton's method; scale "
        f"features and rewards, or raise lam"
    )


def newton_step(given: Problem, F: Array, g: Array) -> Step:
    """-FF'g and what it does to the logits, shortened where that is more than the line can be searched for."""
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
    """θ and its logits after the step, or after as much of it as its line allows; anew: logits without their drift."""
    xp = arrays.namespace(theta)
    size = xp.where(live, xp.ones_like(own.move), xp.zeros_like(own.move))
    far = live & (own.move > SAFE)
    if arrays.some(far):
        size = xp.where(far, line.minimum(given, theta, own.N, z, own.dz, far=far, link=link), size)
    theta = theta + size[..., None] * own.N
    z = z + size[..., None] * own.dz
    if arrays.some(far) or anew:  # the sum keeps the rounding of the longest step
        again = (far | (live & anew))[..., None]
        z = xp.where(again, problem.logits(given.X, theta), z)
    return theta, z


def kept(live: Array, new: Solution, old: Solution) -> Solution:
    """The new values where a problem was still being solved, the old ones where it was not."""
    xp = arrays.namespace(live)

    def rule(a: Array | None, b: Array | None) -> Array | None:
        if a is None or b is None:
            return a
        return xp.where(xp.reshape(live, (-1, *(1,) * (a.ndim - 1))), a, b)

    return Solution(*(rule(a, b) for a, b in zip(new, old, strict=True)))

"""Newton's method that stops early: as `newton.solve`, to bounds that are asked for.

near   (refits) until the bounds are below `tol` and `drift`; the curvature is computed only where the logits have
       moved by more than `drift` since it was
lazy   (one problem alone) after the first Newton step whose outcome is certain to be within the bounds, without
       looking again
"""

from typing import Any

from dither import arrays
from dither.arrays import Array
from dither.links import Link
from dither.models.glm import certificate, hessian, newton, problem, rounding
from dither.models.glm.newton import Solution
from dither.models.glm.problem import Problem

LATE = 8  # a lazy solution that has looked again must be that much better than the bound asks: it is all error


def solve(
    given: Problem,
    theta: Array,
    *,
    link: Link,
    tol: Array,
    drift: float,
    F: Any = None,
    trusted: Array | None = None,
    reach: Any = None,
    lazy: bool = False,
) -> Solution:
    """Minimise, from theta (G, d), until the bounds are at most `tol` (G,) and `drift`.

    F, trusted : a factor of some H⁻¹ near theta's; how far its log eigenvalues are from those at theta, at most (G,)
    reach : (G,) max ‖x‖ in the norm of H(theta)⁻¹, at most; None: found anew
    """
    xp, n = arrays.namespace(theta), given.X.shape[-2]
    z = problem.logits(given.X, theta)
    live = xp.ones(theta.shape[:-1], dtype=xp.bool, device=arrays.device(theta))
    known = live & False  # F is that of the curvature at `anchor`, to within `blur` and the offset
    zero = xp.zeros_like(theta[..., 0])
    least, idle, blur, anchor, R, answer = zero + xp.inf, zero, zero, z, None, None
    if trusted is not None:
        known, blur = trusted < drift, trusted
        reach = xp.where(known, hessian.reach(given, F, link.slopes(z)[1]), xp.inf)
    for step in range(newton.STEPS):
        if step == newton.AGAIN:
            theta, z = (xp.where(live[..., None], 0.0, A) for A in (theta, z))
            known, idle = known & ~live, xp.where(live, 0.0, idle)
            least, reach = (xp.where(live, xp.inf, A) for A in (least, reach))
        e, w = link.residual(z, given.count, given.total)
        g, size, zmax = problem.slope(given, theta, e), given.count * w, problem.largest(z)
        offset = xp.where(known, problem.offset(z, anchor, link=link) + blur, 0.0)
        fresh = live & ~(known & (offset <= drift + blur))
        if arrays.some(fresh):
            R, F, blur = hessian.factors(given, size, only=fresh, old=(R, F, blur))
            faint = rounding.curvature(given, theta, size, zmax, link=link)
            blur = xp.where(fresh, blur + faint, blur)
            carried = None if reach is None else reach * xp.exp(xp.where(offset < 300, offset, 300.0) / 2)
            found = hessian.reach(given, F, w, known=carried, exact=(lazy and reach is None) or n <= hessian.FEW)
            reach = found if reach is None else xp.where(fresh, found, reach)
            anchor, offset = xp.where(fresh[..., None], z, anchor), xp.where(fresh, blur, offset)
            known = known | fresh
        own = newton.newton_step(given, F, g)
        noise = rounding.gradient(given, theta, e, size, F=F, reach=reach, link=link, most=tol / LATE)
        slope = own.slope + noise
        better = (slope < least / 2) | (own.move > newton.SAFE)
        least, idle = xp.where(slope < least / 2, slope, least), xp.where(better, 0.0, idle + 1)
        end = live & (idle > newton.IDLE)  # as exact as rounding lets it be, which the bound then says
        if arrays.some(end | (live & (slope <= tol))):
            bound = certificate.bounds(offset, slope, reach, zmax=zmax, link=link)
            least_E, most = (tol / LATE, 2 * drift) if lazy else (tol, drift + 2 * tol)
            end = end | (known & (bound[..., 0] <= least_E) & (bound[..., 1] <= most + 2 * blur))
            count = xp.full_like(live, step + 1, dtype=xp.int64)
            new = Solution(theta, F, R, blur, offset, slope, noise, reach, theta, zmax, bound, count)
            answer = new if answer is None else newton.kept(live, new, answer)
            live = live & ~end
            if not arrays.some(live):
                return answer
        if lazy and arrays.some(fresh) and not arrays.some(own.move > newton.SAFE):
            a = link.M(zmax + own.move) * own.move
            left = noise + newton.grown(blur) * own.slope
            few = xp.where(a < certificate.FAR, a, certificate.FAR)
            rem, ahead = few * certificate.phi(few) * own.slope + left, zmax + own.move
            bound = certificate.bounds(a + blur, rem, reach, zmax=ahead, link=link)
            if not arrays.some((bound[..., 0] > tol) | (bound[..., 1] > drift)):
                count = xp.full_like(live, step + 1, dtype=xp.int64)
                return Solution(theta + own.N, F, R, blur, blur, left, left, reach, theta, zmax, bound, count)
        theta, z = newton.moved(given, theta, z, own, live, anew=step % 8 == 7, link=link)
    raise newton.not_found()

"""Newton's method that stops early: as `newton.solve`, but to bounds that the caller asks for.

By default, as refits need it, J is minimised until both bounds hold; the curvature is computed anew only where the
logits have moved by more than `drift` since the last time. With `lazy`, for one problem alone, the solution is the
outcome of the first Newton step that is certain to be within the bounds, without another look at the rows.
"""

from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models.glm import certificate, hessian, newton, problem, rounding
from dither.models.glm.newton import Solution
from dither.models.glm.problem import Problem

LATE = 8  # a lazy solution that was looked at again must be so many times better than asked: its bound is all error


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
    """Minimise J, from theta (G, d), until the bounds are at most `tol` (G,) and `drift`.

    F, trusted : a factor of some H⁻¹ near theta's; (G,) how far its log eigenvalues are from those at theta, at most
    reach : (G,) max ‖x‖ in the norm of H(theta)⁻¹, at most; None: it is computed

    Raises ValueError where no estimate is found.
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
    for passes in range(1, newton.STEPS + 1):
        if passes == newton.AGAIN + 1:  # start anew at θ = 0
            theta, z = (xp.where(live[..., None], 0.0, A) for A in (theta, z))
            known, idle = known & ~live, xp.where(live, 0.0, idle)
            least, reach = (xp.where(live, xp.inf, A) for A in (least, reach))
        look = problem.look(given, theta, z, link=link)
        offset = xp.where(known, problem.offset(z, anchor, link=link) + blur, 0.0)
        fresh = live & ~(known & (offset <= drift + blur))
        if arrays.some(fresh):
            R, F, blur = hessian.computed(given, theta, look, only=fresh, old=(R, F, blur), link=link)
            carried = None if reach is None else reach * xp.exp(xp.where(offset < 300, offset, 300.0) / 2)
            all_rows = (lazy and reach is None) or n <= hessian.FEW
            found = hessian.reach(given, F, look.w, known=carried, exact=all_rows)
            reach = found if reach is None else xp.where(fresh, found, reach)
            anchor, offset = xp.where(fresh[..., None], z, anchor), xp.where(fresh, blur, offset)
            known = known | fresh
        own = newton.newton_step(given, F, look.g)
        noise = rounding.gradient(given, theta, look, F=F, reach=reach, link=link, most=tol / LATE)
        slope, count = own.slope + noise, xp.full_like(live, passes, dtype=xp.int64)
        better = (slope < least / 2) | (own.move > newton.SAFE)
        least, idle = xp.where(slope < least / 2, slope, least), xp.where(better, 0.0, idle + 1)
        end = live & (idle > newton.IDLE)  # rounding is the limit here, and the bound says how far it reaches
        if arrays.some(end | (live & (slope <= tol))):
            bound = certificate.bounds(offset, slope, reach, zmax=look.zmax, link=link)
            least_E, most = (tol / LATE, 2 * drift) if lazy else (tol, drift + 2 * tol)
            end = end | (known & (bound[..., 0] <= least_E) & (bound[..., 1] <= most + 2 * blur))
            new = Solution(theta, F, R, blur, offset, slope, noise, reach, theta, look.zmax, bound, count)
            answer = new if answer is None else newton.kept(live, new, answer)
            live = live & ~end
            if not arrays.some(live):
                return answer
        if lazy and arrays.some(fresh) and not arrays.some(own.move > newton.SAFE):
            a = link.M(look.zmax + own.move) * own.move
            few = certificate.cut(a)
            left = noise + newton.grown(blur) * own.slope
            rem, ahead = few * certificate.phi(few) * own.slope + left, look.zmax + own.move
            bound = certificate.bounds(a + blur, rem, reach, zmax=ahead, link=link)
            if not arrays.some((bound[..., 0] > tol) | (bound[..., 1] > drift)):
                return Solution(theta + own.N, F, R, blur, blur, left, left, reach, theta, look.zmax, bound, count)
        theta, z = newton.moved(given, theta, z, own, live, anew=passes % 8 == 0, link=link)
    raise newton.not_found()

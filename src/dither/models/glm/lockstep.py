"""`newton.solve` for runs in lockstep in NumPy, from good starts: nearly every observation needs no more.

After the recursion θ is near the minimum, and F near a factor of H⁻¹. A step with that F costs O(n d), where H costs
O(n d²). So steps with F lead to where the next one would change no logit by more than `newton.SHARP`, and H is computed
there, once. One more step with it ends. A run whose steps get shorter too slowly has its H computed early, and goes on
with that one.

F is wrong mostly along one direction, that of the row just learnt, since its logit moves most. Broyden's correction
by the last step finds it: with z = -FF'∇J at the point at hand, and s and z₀ the step to it and the z before,

    N = z + (s + z - z₀) s'z/s'(z₀ - z)

What `newton.solve` does for hard problems is left out: no search along a line, no second start. `solved` turns to it
where a start was not good. No run depends on the others: a run that is ahead of them stands still.
"""

from typing import Any

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models.glm import certificate, hessian, newton, problem, rounding
from dither.models.glm.newton import Solution
from dither.models.glm.problem import Problem

ROWS = 128  # above which it is quicker to solve one run after another, as `quick` does
STEPS = 16  # with one factor, at most
FACTORS = 4  # at most: a start that needs more is not a good one
SLOW = 0.2  # share of its length that a step may have after the next one; above it H is computed
STUCK = 0.5  # share above which rounding may be what is left


def solved(given: Problem, theta: Array, F: Array, *, link: Link, tol: Array) -> Solution:
    """`newton.solve`, by `solve` where it can: in NumPy, for up to `ROWS` rows, from good starts."""
    if type(theta) is not np.ndarray or given.X.shape[-2] > ROWS:
        return newton.solve(given, theta, link=link, tol=tol, F=F)
    found, good = solve(given, theta, F, link=link, tol=tol)
    if good.all():
        return found
    bad = np.flatnonzero(~good)
    part = Problem(*(None if A is None else A[bad] for A in given))
    own = newton.solve(part, theta[bad], link=link, tol=tol[bad], F=F[bad])
    if len(bad) == len(good):
        return own
    for all_of, A in zip(found, own, strict=True):
        all_of[bad] = A
    return found


def solve(given: Problem, theta: np.ndarray, F: np.ndarray, *, link: Link, tol: np.ndarray) -> tuple[Any, np.ndarray]:
    """Minimise J, from theta (G, d) with factors F (G, d, d) of some H⁻¹ near theta's, to where rounding is the limit.

    -> the solutions, and for which problems they are good, (G,)
    """
    G = len(theta)
    good, runs, steps, answer = np.zeros(G, bool), np.arange(G), np.zeros(G, np.int64), None
    for _ in range(FACTORS):
        theta, stuck, looks = _ahead(given, theta, F, link=link)
        steps[runs] += looks + 1
        found, done, near = _ended(given, theta, stuck, steps[runs], link=link, tol=tol)
        if answer is None:
            answer, good = found, done
        elif done.any():
            for all_of, own in zip(answer, found, strict=True):
                all_of[runs[done]] = own[done]
            good[runs[done]] = True
        left = near & ~done
        if not left.any():
            break
        runs, theta, F, tol = runs[left], found.theta[left], found.F[left], tol[left]
        given = Problem(*(None if part is None else part[left] for part in given))
    return answer, good


def _ahead(
    given: Problem, theta: np.ndarray, F: np.ndarray, *, link: Link
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ after steps with F; whether it no longer gets nearer; and how many looks at the rows each problem took."""
    G = len(theta)
    live, stuck, looks = np.ones(G, bool), np.zeros(G, bool), np.ones(G, np.int64)
    N: Any = None
    z = size = M = worst = N
    for k in range(STEPS):
        last, before, was = N, z, size
        logits = problem.logits(given.X, theta)
        g = problem.slope(given, theta, link.residual(logits, given.count, given.total)[0])
        N = z = -(F @ (g[:, None, :] @ F).mT)[..., 0]
        if k:
            less = before - z
            fall = np.vecdot(last, less)
            N = z + (last - less) * (np.vecdot(last, z) / np.where(fall > 0, fall, np.inf))[:, None]
        size = given.longest * arrays.norms(N)  # no logit changes by more
        if k:
            share = size / np.where(live, was, 1.0)
            worst = np.maximum(worst, share) if k > 1 else share
            stuck |= live & (share >= STUCK)
            live &= share <= SLOW
        else:
            M, worst = link.M(problem.largest(logits) + newton.SAFE), 1.0
            live &= size <= newton.SAFE
        theta = theta + N * live[:, None]
        live &= M * worst * np.sqrt(worst) * size > newton.SHARP  # by the correction a share falls faster than `worst`
        if not live.any():
            break
        looks += live
    return theta, stuck, looks


def _ended(
    given: Problem, theta: np.ndarray, stuck: np.ndarray, steps: np.ndarray, *, link: Link, tol: np.ndarray
) -> tuple[Solution, np.ndarray, np.ndarray]:
    """The step with H at theta, as a solution; for which problems it is one; and for which it is short."""
    look = problem.look(given, theta, problem.logits(given.X, theta), link=link)
    R, F, blur = hessian.computed(given, theta, look, link=link)
    reach = hessian.reach(given, F, look.w)
    half = look.g[:, None, :] @ F
    N = -(F @ half.mT)[..., 0]
    slope, move = arrays.norms(half)[:, 0], given.longest * arrays.norms(N)
    noise = rounding.gradient(given, theta, look, F=F, reach=reach, link=link, most=tol / 8)
    rough = np.flatnonzero(reach * noise > newton.SHARP + blur)  # there the bound would be that of a rough `reach`
    if rough.size:
        rows = np.where(given.count[rough] > 0, arrays.norms(given.X[rough] @ F[rough]), 0.0)
        reach[rough] = np.minimum(reach[rough], rows.max(axis=-1))
        noise = rounding.gradient(given, theta, look, F=F, reach=reach, link=link, most=tol / 8)
    zmax = look.zmax + move
    a = certificate.cut(link.M(zmax) * move)
    left = (a * certificate.phi(a) + newton.grown(blur)) * slope
    sharp = (a <= newton.SHARP + blur) & (left <= noise)
    near = move <= newton.SAFE
    done = (sharp | ((slope <= noise) & stuck)) & near
    left = left + noise
    bound = certificate.bounds(a + blur, left, reach, zmax=zmax, link=link)
    done &= np.isfinite(bound[:, 0]) & (np.maximum(noise, blur) < hessian.LOST)
    return Solution(theta + N, F, R, blur, blur, left, left, reach, theta, look.zmax, bound, steps), done, near

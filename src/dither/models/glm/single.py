"""The minimum of J for one run in NumPy, from a good start: nearly every observation needs no more.

Where rounding shall be the limit, steps ahead with the factor at hand lead to a point where H is computed, and one step
with it ends, as in `batched`. Else H is computed at the start, and steps are taken with it until the outcome of one is
certain to reach the aim.

The outcome of the last step is not looked at. Take a step N from θ, along which H is the curvature to within a. After
it the slope is at most (e^a - 1)‖N‖ in the norm of H⁻¹, and at most a φ(a)‖N‖ if H is the curvature at θ itself.

There is no search along a line and no second start: where the start is not good enough, `batched` does it.
"""

import math
from typing import NamedTuple

import numpy as np

from dither.base import arrays
from dither.links import Link
from dither.models.glm import certificate, hessian, rounding
from dither.models.glm.batched import CHORDS, CLOSE, SAFE, SHARP, SLOW, STUCK, Aim, Curvature, Solution
from dither.models.glm.objective import Look, Problem

STEPS = 12  # at most: a start that needs more is not a good one
FIRM = 0.9  # share of (tol, drift) that a last step must reach: the bounds come out a little larger


class Reach(NamedTuple):
    """What is known of max ‖x‖ in the norm of H⁻¹, and of rows that are not read."""

    limit: float | None = None  # of that maximum at the start; None: it is bounded from the longest row
    every: bool = False  # whether it is computed anew, from every row
    mass: float = 0.0  # as of `lazy.Lazy`


class LoneStep(NamedTuple):
    """Newton's step from one point."""

    N: np.ndarray  # (d,)
    slope: float  # ‖∇J‖ in the norm of H⁻¹
    move: float  # max |x'N|, at most
    stuck: bool  # whether steps have stopped to get shorter


def solve(problem: Problem, theta: np.ndarray, F: np.ndarray, aim: Aim, rows: Reach) -> Solution | None:
    """Minimise from theta (d,) to bounds of about FIRM (tol, drift); None where the start was not good enough.

    problem, aim : of one alone, without the axis of problems: X (n, d), count, total (n,), and numbers
    F : (d, d) a factor of some H⁻¹ near theta's, for steps ahead
    """
    H, stuck, looks, last = None, False, 0, math.inf
    for _ in range(STEPS):
        if aim.drift is None:
            theta, stuck, spent = _ahead(problem, theta, F)
            looks += spent
        look = _look(problem, theta)
        looks += 1
        if H is None or aim.drift is None:
            H = _curvature(problem, theta, look)
        if H is None:
            return None
        half = look.g @ H.F
        N, slope = -(H.F @ half), math.sqrt(half @ half)
        move = problem.longest * math.sqrt(N @ N)
        move = move if move < CLOSE else _largest(problem.X @ N)
        if not move < SAFE:
            return None
        step = LoneStep(N, slope, move, stuck or slope >= last / 2)
        solution, sharp = _outcome(problem, theta, look, H, step, aim, rows, looks)
        drift, rem, _ = solution.bound
        if aim.drift is not None and drift > FIRM * aim.drift:
            return None
        if sharp and rem <= FIRM * aim.tol:
            return solution
        theta, F, last = theta + N, H.F, slope
    return None


def bounded(solution: Solution, aim: Aim, *, link: Link) -> tuple[Solution, np.ndarray]:
    """The solution with its bound, and whether that reaches the aim. Each part may be a tuple of those of several."""
    solution = Solution(*(np.asarray(part) for part in solution))
    a, rem, zmax = solution.bound.T
    bound = certificate.bounds(a, rem, solution.reach, zmax=zmax, link=link)
    limits = (aim.tol, aim.tol if aim.drift is None else aim.drift)
    return solution._replace(bound=bound), (bound <= limits).all(axis=-1)


def _ahead(problem: Problem, theta: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, bool, int]:
    """θ after steps with F, as of `batched`; whether they have stopped to get shorter; and how many looks they took."""
    link, X, count, total, rho, longest, _ = problem
    N = chord = theta
    size, worst, M = 0.0, 1.0, 0.0
    for k in range(CHORDS):
        z = X @ theta
        g = link.residual(z, count, total)[0] @ X + rho * theta
        last, before, was = N, chord, size
        N = chord = -(F @ (g @ F))
        if k:
            less = before - chord
            fall = float(last @ less)
            if fall > 0:
                N = chord + (last - less) * (float(last @ chord) / fall)
        size = longest * math.sqrt(N @ N)  # no logit changes by more
        if k:
            share = size / was
            worst = max(worst, share) if k > 1 else share
            if not share <= SLOW:
                return theta, share >= STUCK, k + 1
        else:
            M = link.M(_largest(z) + SAFE)
            if not size <= SAFE:
                return theta, False, 1
        theta = theta + N
        if M * worst * math.sqrt(worst) * size <= SHARP:
            return theta, False, k + 1
    return theta, False, CHORDS


def _look(problem: Problem, theta: np.ndarray) -> Look:
    z = problem.X @ theta
    e, w = problem.link.residual(z, problem.count, problem.total)
    return Look(e @ problem.X + problem.rho * theta, e, w, problem.count * w, _largest(z))


def _curvature(problem: Problem, theta: np.ndarray, look: Look) -> Curvature | None:
    """H = ρI + Σ w xx' at theta, its anchor; None where it is too ill-conditioned for a factor by Cholesky."""
    potrf, trtri = arrays.lapack()
    Y = problem.X * np.sqrt(look.size)[:, None]
    H = Y.T @ Y
    H.ravel()[:: len(H) + 1] += problem.rho
    R, bad = potrf(H)
    if bad:
        return None
    F = trtri(R)[0]
    blur = (rounding.OF_FACTOR + rounding.summed(len(Y))) * float(rounding.condition(R, F)) ** 2
    if not blur <= rounding.ILL:
        return None
    blur += float(rounding.curvature(problem, theta, look.size, np.float64(look.zmax)))
    return Curvature(F, R, blur=blur, anchor=theta)


def _outcome(
    problem: Problem, theta: np.ndarray, look: Look, H: Curvature, step: LoneStep, aim: Aim, rows: Reach, looks: int
) -> tuple[Solution, bool]:
    """What is certain of the outcome of a step; and whether rounding is all that is left, if it must be."""
    N, slope, move, stuck = step
    here, zmax, mass = H.anchor is theta, look.zmax + move, rows.mass
    shift = 0.0 if here else problem.longest * math.sqrt(np.vecdot(theta - H.anchor, theta - H.anchor))
    a = float(problem.link.M(zmax + shift)) * (shift + move)
    long = math.inf
    if mass or not (rows.limit is None or rows.every):
        long = problem.longest * float(hessian.spread(H.F))
    noise, reach = _noise(problem, theta, look, H.F, rows, long, most=min(aim.tol / 8, rounding.FAINT))
    if not here:
        long *= math.exp(a / 2)
        reach *= 1 if rows.every else math.exp(a / 2)
    noise += math.expm1(H.blur) * slope
    left = (a / 2 * math.exp(a) if here else math.expm1(a)) * slope
    pull, share = (mass * long, mass * long * long) if mass else (0.0, 0.0)
    offset, drift, rem = H.blur + share, a + H.blur + share, left + noise + pull
    sharp = left <= noise and (a <= SHARP + H.blur or (slope <= noise and stuck))
    noise += left if aim.drift is None else 0.0
    new, bound = theta + N, (drift, rem, zmax)
    offset, base, zmax = (offset, theta, look.zmax) if here else (drift, new, zmax)
    solution = Solution(new, H.F, H.R, H.blur, offset, rem, noise, reach, base, zmax, bound, looks)
    return solution, sharp or aim.drift is not None


def _largest(z: np.ndarray) -> float:
    return float(max(z.max(), -z.min()))


def _noise(
    problem: Problem, theta: np.ndarray, look: Look, F: np.ndarray, rows: Reach, long: float, *, most: float
) -> tuple[float, float]:
    """A rougher `rounding.gradient`, and max ‖x‖ in the norm of H⁻¹, which is at most `long`."""
    link, X, _, total, rho, longest, _ = problem
    (n, d), _, e, _, size, _ = X.shape, *look
    spread, length, error = math.sqrt(np.vdot(F, F)), math.sqrt(theta @ theta), math.sqrt(e @ e)
    if rows.every:
        reach = math.sqrt(np.square(X @ F).sum(axis=1).max())
    else:
        least = float(size.min())
        reach = longest * spread if rows.limit is None else min(rows.limit, long)
        reach = min(reach, 1 / math.sqrt(least) if least > 1e-300 else math.inf)
    noise = rounding.FEW * (reach * (error + math.sqrt(total @ total)) + d * math.sqrt(rho) * length)
    sums = rounding.summed(n) * n**0.5 * error * longest * spread
    if sums > most:
        sums = rounding.summed(n) * float(np.sqrt(np.vecdot(F, F)) @ (np.abs(e) @ np.abs(X)))
    slip = rounding.UNIT * (d + link.rounded) * longest * length * math.sqrt(size.sum())
    if slip > most:
        products = np.abs(X) @ np.abs(theta)
        slip = rounding.UNIT * (d + link.rounded) * math.sqrt(size @ (products * products))
    return noise + sums + slip, reach

"""The minimum of J for one run in NumPy, from a good start: nearly every observation needs no more.

Where rounding shall be the limit, steps ahead with the factor at hand lead to a point where H is computed, and one step
with it ends, as in `batched`. Else H is computed at the start, and steps are taken with it until the outcome of one is
certain to keep the limits.

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
from dither.models.glm.batched import CHORDS, CLOSE, SAFE, SHARP, SLOW, STUCK, Solution
from dither.models.glm.objective import Problem

STEPS = 12  # at most: a start that needs more is not a good one
FIRM = 0.9  # share of (tol, drift) that a last step must reach: the bounds come out a little larger


class Limits(NamedTuple):
    """What a solution must keep to, and what is known of the rows."""

    exact: bool  # whether rounding must be all that is left of the slope
    tol: float  # of E
    drift: float  # of the log eigenvalues
    reach: float | None = None  # max ‖x‖ in the norm of H⁻¹ at the start, at most; None: bounded from the longest row
    every: bool = False  # whether that maximum is computed anew, from every row
    mass: float = 0.0  # as of `lazy.Lazy`


class Outcome(NamedTuple):
    """A solution, and what `certificate.bounds` takes besides: the bounds of all runs are computed at once."""

    solution: Solution  # without its bound
    a: float
    rem: float
    zmax: float


class Point(NamedTuple):
    """What a pass over the rows says of J at one θ."""

    theta: np.ndarray  # (d,)
    g: np.ndarray  # (d,)  ∇J
    e: np.ndarray  # (n,)  ω μ - τ, the residuals
    size: np.ndarray  # (n,)  ω μ'
    zmax: float  # max |x'θ|


class Factors(NamedTuple):
    """H = R'R and H⁻¹ = FF'."""

    F: np.ndarray  # (d, d)
    R: np.ndarray  # (d, d)
    blur: float  # how far rounding may put the log eigenvalues off
    theta: np.ndarray  # (d,)  where H was computed


class Step(NamedTuple):
    """Newton's step from one point."""

    N: np.ndarray  # (d,)
    slope: float  # ‖∇J‖ in the norm of H⁻¹
    move: float  # max |x'N|, at most
    stuck: bool  # whether steps have stopped to get shorter


def solve(problem: Problem, theta: np.ndarray, F: np.ndarray, *, link: Link, limits: Limits) -> Outcome | None:
    """Minimise from theta (d,) to bounds of about FIRM (tol, drift); None where the start was not good enough.

    problem : one alone, without the axis of problems: X (n, d), count, total (n,), and two numbers
    F : (d, d) a factor of some H⁻¹ near theta's, for steps ahead where the solution shall be exact
    """
    H, stuck, looks, last = None, False, 0, math.inf
    for _ in range(STEPS):
        if limits.exact:
            theta, stuck, spent = _ahead(problem, theta, F, link=link)
            looks += spent
        point = _look(problem, theta, link=link)
        looks += 1
        if H is None or limits.exact:
            H = _factors(problem, point, link=link)
        if H is None:
            return None
        step = _step(problem, point, H, last=0.0 if stuck else last)
        if not step.move < SAFE:
            return None
        outcome, sharp = _outcome(problem, point, H, step, limits, link=link, looks=looks)
        if sharp and outcome.rem <= FIRM * limits.tol and outcome.a <= FIRM * limits.drift:
            return outcome
        if not limits.exact and outcome.a > FIRM * limits.drift:
            return None
        theta, F, last = theta + step.N, H.F, step.slope
    return None


def bounded(outcome: Outcome, *, link: Link) -> Solution:
    """The solution with its bound. Several outcomes may come as one: each part is then a tuple of theirs."""
    solution = Solution(*(np.asarray(part) for part in outcome.solution))
    a, rem, zmax = (np.asarray(part) for part in outcome[1:])
    return solution._replace(bound=certificate.bounds(a, rem, solution.reach, zmax=zmax, link=link))


def _ahead(problem: Problem, theta: np.ndarray, F: np.ndarray, *, link: Link) -> tuple[np.ndarray, bool, int]:
    """θ after steps with F, as of `batched`; whether they have stopped to get shorter; and how many looks they took."""
    X, count, total, rho, longest, _ = problem
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


def _look(problem: Problem, theta: np.ndarray, *, link: Link) -> Point:
    X, count, total, rho, _, _ = problem
    z = X @ theta
    e, w = link.residual(z, count, total)
    return Point(theta, e @ X + rho * theta, e, count * w, _largest(z))


def _factors(problem: Problem, point: Point, *, link: Link) -> Factors | None:
    """H = ρI + Σ w xx' at the point; None where it is too ill-conditioned for a factor by Cholesky."""
    potrf, trtri = arrays.lapack()
    Y = problem.X * np.sqrt(point.size)[:, None]
    H = Y.T @ Y
    H.ravel()[:: len(H) + 1] += problem.rho
    R, bad = potrf(H)
    if bad:
        return None
    F = trtri(R)[0]
    blur = (rounding.OF_FACTOR + rounding.summed(len(Y))) * float(rounding.condition(R, F)) ** 2
    if not blur <= rounding.ILL:
        return None
    zmax = np.float64(point.zmax)
    blur += float(rounding.curvature(problem, point.theta, point.size, zmax, link=link))
    return Factors(F, R, blur, point.theta)


def _step(problem: Problem, point: Point, H: Factors, *, last: float) -> Step:
    """Newton's step; last: the slope at the point before."""
    half = point.g @ H.F
    N = -(H.F @ half)
    slope, move = math.sqrt(half @ half), problem.longest * math.sqrt(N @ N)
    return Step(N, slope, move if move < CLOSE else _largest(problem.X @ N), slope >= last / 2)


def _outcome(
    problem: Problem, point: Point, H: Factors, step: Step, limits: Limits, *, link: Link, looks: int
) -> tuple[Outcome, bool]:
    """What is certain of the outcome of a step; and whether rounding is all that is left, if it must be."""
    theta, here, mass = point.theta, H.theta is point.theta, limits.mass
    shift = 0.0 if here else problem.longest * math.sqrt(np.vecdot(theta - H.theta, theta - H.theta))
    zmax = point.zmax + step.move
    a = float(link.M(zmax + shift)) * (shift + step.move)
    long, limit = math.inf, limits.reach
    if mass or not (limit is None or limits.every):
        long = problem.longest * float(hessian.spread(H.F))
    noise, reach = _noise(problem, point, H, None if limit is None else min(limit, long), limits, link=link)
    if not here:
        long *= math.exp(a / 2)
        reach *= 1 if limits.every else math.exp(a / 2)
    noise += math.expm1(H.blur) * step.slope
    left = (a / 2 * math.exp(a) if here else math.expm1(a)) * step.slope
    pull, share = (mass * long, mass * long * long) if mass else (0.0, 0.0)
    offset, drift, rem = H.blur + share, a + H.blur + share, left + noise + pull
    sharp = left <= noise and (a <= SHARP + H.blur or (step.slope <= noise and step.stuck))
    new = theta + step.N
    ends = (offset, rem, noise + left if limits.exact else noise, reach, theta, point.zmax, None, looks)
    if not here:
        ends = (drift, *ends[1:4], new, zmax, None, looks)
    return Outcome(Solution(new, H.F, H.R, H.blur, *ends), drift, rem, zmax), sharp or not limits.exact


def _largest(z: np.ndarray) -> float:
    return float(max(z.max(), -z.min()))


def _noise(
    problem: Problem, point: Point, H: Factors, limit: float | None, limits: Limits, *, link: Link
) -> tuple[float, float]:
    """A rougher `rounding.gradient`, and max ‖x‖ in the norm of H⁻¹, at most: as of `limit`."""
    X, _, total, rho, longest, _ = problem
    most, (n, d), e, size = limits.tol / 8, X.shape, point.e, point.size
    spread, length = math.sqrt(np.vdot(H.F, H.F)), math.sqrt(point.theta @ point.theta)
    if limits.every:
        reach = math.sqrt(np.square(X @ H.F).sum(axis=1).max())
    else:
        least = float(size.min())
        reach = min(longest * spread if limit is None else limit, 1 / math.sqrt(least) if least > 1e-300 else math.inf)
    error = math.sqrt(e @ e)
    rows = rounding.FEW * (reach * (error + math.sqrt(total @ total)) + d * math.sqrt(rho) * length)
    sums = rounding.summed(n) * n**0.5 * error * longest * spread
    if sums > most:
        sums = rounding.summed(n) * float(np.sqrt(np.vecdot(H.F, H.F)) @ (np.abs(e) @ np.abs(X)))
    slip = rounding.UNIT * (d + link.rounded) * longest * length * math.sqrt(size.sum())
    if slip > most:
        products = np.abs(X) @ np.abs(point.theta)
        slip = rounding.UNIT * (d + link.rounded) * math.sqrt(size @ (products * products))
    return rows + sums + slip, reach

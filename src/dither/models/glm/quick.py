"""`newton.solve` and `near.solve` for one problem in NumPy, from a good start: nearly every observation needs no more.

With a factor at hand it minimises to where rounding is the limit, as `newton.solve` does. Without one it computes the
curvature at the start and takes Newton steps until the outcome of a step is certain, as `near.solve` does.

The outcome of the last step need not be looked at. Take a step N from θ, along which H is the curvature to within a.
After it the slope is at most (e^a - 1)‖N‖ in the norm of H⁻¹, and at most a φ(a)‖N‖ if H is the curvature at θ itself.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.links import Link
from dither.models.glm import hessian, newton, rounding
from dither.models.glm.problem import Problem

LEAST = 128  # rows up to which it is quicker to solve runs in lockstep together
STEPS = 12  # at most: a start that needs more is not a good one
CLOSE = 1e-3  # change of the logits up to which a bound on it is enough
FIRM = 0.9  # share of (tol, drift) that a last step must reach: the bounds come out a little larger


class Found(NamedTuple):
    """As `newton.Solution`, for one problem, or for several in arrays."""

    theta: Any  # (d,)
    F: Any  # (d, d)
    R: Any  # (d, d)
    blur: Any
    offset: Any
    slope: Any
    noise: Any
    reach: Any
    base: Any  # (d,)
    zmax: Any
    steps: Any
    ends: Any  # a, rem and zmax as `certificate.bounds` takes them


class Curvature(NamedTuple):
    """H near the θ at hand: H⁻¹ = FF'. The other fields are known where H was computed from the rows."""

    F: np.ndarray
    R: np.ndarray | None = None
    blur: float = 0.0
    theta: np.ndarray | None = None  # where it was computed


def solve(
    problem: Problem,
    theta: np.ndarray,
    *,
    link: Link,
    tol: float,
    drift: float,
    F: np.ndarray | None = None,
    reach: float | None = None,
    exact: bool = False,
    mass: float = 0.0,
) -> Found | None:
    """Minimise from theta (d,) to bounds of about FIRM (tol, drift); None where the start was not good enough.

    problem : one alone, without the axis of problems: X (n, d), count, total (n,)
    F : (d, d) a factor of some H⁻¹ near theta's; then the solution is as exact as rounding allows
    reach : max ‖x‖ in the norm of H(theta)⁻¹, at most; None: bounded from the longest row
    exact : that maximum is computed anew, from all rows
    mass : as of `lazy.Lazy`
    """
    X, count, total, rho, longest, _ = problem
    z = X @ theta
    solved, last = F is not None, math.inf
    H = None if F is None else Curvature(F)
    for step in range(1, STEPS + 1):
        e, w = link.residual(z, count, total)
        g = e @ X + rho * theta
        if H is None:
            H = _curvature(problem, count * w, theta, z, link=link)
        if H is None:
            return None
        N, slope, move = _step(problem, H, g)
        zmax = _largest(z)
        if solved and H.theta is not theta:
            a = float(link.M(np.float64(zmax + move))) * move
            ripe = (
                a <= newton.SHARP or slope <= _noise(problem, H, theta, e, count * w, reach, link=link, most=tol / 8)[0]
            )
            if ripe or not slope <= newton.CHORD * last or not move < newton.SAFE:
                H = _curvature(problem, count * w, theta, z, link=link)
                if H is None:
                    return None
                N, slope, move = _step(problem, H, g)
        if not move < newton.SAFE:
            return None
        here, stuck, last = H.theta is theta, slope >= last / 2, slope
        if here or not solved:
            shift = 0.0 if here else longest * math.sqrt(np.vecdot(theta - H.theta, theta - H.theta))
            a = float(link.M(np.float64(zmax + shift + move))) * (shift + move)
            long = longest * float(hessian.spread(H.F)) if mass or not (reach is None or exact) else math.inf
            known = None if reach is None else min(reach, long)
            noise, far = _noise(problem, H, theta, e, count * w, known, link=link, most=tol / 8, exact=exact)
            if not here:
                long *= math.exp(a / 2)
                far *= 1 if exact else math.exp(a / 2)
            noise += math.expm1(H.blur) * slope
            beyond = (a / 2 * math.exp(a) if here else math.expm1(a)) * slope
            pull, more = (mass * long, mass * long * long) if mass else (0.0, 0.0)
            a += H.blur + more
            if a > FIRM * drift and not solved:
                return None
            own = a - H.blur - more
            sharp = beyond <= noise and (own <= newton.SHARP or (slope <= noise and stuck)) if solved else True
            rem = beyond + noise + pull
            if sharp and rem <= FIRM * tol and a <= FIRM * drift:
                told = beyond + noise if solved else noise
                new, ends = theta + N, (a, rem, zmax + move)
                if here:
                    return Found(new, H.F, H.R, H.blur, H.blur + more, rem, told, far, theta, zmax, step, ends)
                return Found(new, H.F, H.R, H.blur, a, rem, told, far, new, zmax + move, step, ends)
        theta = theta + N
        z = X @ theta
    return None


def _step(problem: Problem, H: Curvature, g: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Newton's step N, its length in the norm of H, and the largest change of a logit, at most."""
    half = g @ H.F
    N = -(H.F @ half)
    move = problem.longest * math.sqrt(N @ N)
    return N, math.sqrt(half @ half), move if move < CLOSE else _largest(problem.X @ N)


def _curvature(problem: Problem, w: np.ndarray, theta: np.ndarray, z: np.ndarray, *, link: Link) -> Curvature | None:
    """H = ρI + Σ w xx' = R'R at theta; None where it is too ill-conditioned for a factor by Cholesky."""
    potrf, trtri = arrays.lapack()
    Y = problem.X * np.sqrt(w)[:, None]
    H = Y.T @ Y
    H.ravel()[:: len(H) + 1] += problem.rho
    R, bad = potrf(H)
    if bad:
        return None
    F = trtri(R)[0]
    blur = (hessian.ROUNDING + rounding.summed(len(Y))) * float(hessian.condition(R, F)) ** 2
    if not blur <= hessian.ILL:
        return None
    blur += float(rounding.curvature(problem, theta, w, np.float64(_largest(z)), link=link))
    return Curvature(F, R, blur, theta)


def _largest(z: np.ndarray) -> float:
    return float(max(z.max(), -z.min()))


def _noise(
    problem: Problem,
    H: Curvature,
    theta: np.ndarray,
    e: np.ndarray,
    size: np.ndarray,
    known: float | None,
    *,
    link: Link,
    most: float,
    exact: bool = False,
) -> tuple[float, float]:
    """A rougher `rounding.gradient`, and max ‖x‖ in the norm of H⁻¹, at most."""
    X, _, total, rho, longest, _ = problem
    spread, length = math.sqrt(np.vdot(H.F, H.F)), math.sqrt(theta @ theta)
    far, (n, d) = _reach(problem, H.F, spread, size, known, exact=exact), X.shape
    error = math.sqrt(e @ e)
    rows = rounding.FEW * (far * (error + math.sqrt(total @ total)) + d * math.sqrt(rho) * length)
    sums = rounding.summed(n) * n**0.5 * error * longest * spread
    if sums > most:
        sums = rounding.summed(n) * float(np.sqrt(np.vecdot(H.F, H.F)) @ (np.abs(e) @ np.abs(X)))
    slip = rounding.UNIT * (d + link.rounded) * longest * length * math.sqrt(size.sum())
    if slip > most:
        own = np.abs(X) @ np.abs(theta)
        slip = rounding.UNIT * (d + link.rounded) * math.sqrt(size @ (own * own))
    return rows + sums + slip, far


def _reach(
    problem: Problem, F: np.ndarray, spread: float, size: np.ndarray, known: float | None, *, exact: bool
) -> float:
    """max ‖F'x‖, at most: as known, or from the longest row and the smallest weight; exact: from all rows."""
    if exact:
        return math.sqrt(np.square(problem.X @ F).sum(axis=1).max())
    if known is None:
        return problem.longest * spread
    least = float(size.min())
    return min(known, 1 / math.sqrt(least) if least > 1e-300 else math.inf)

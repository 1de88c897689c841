"""`newton.solve` for one problem in NumPy from a good start: what nearly every observation needs, and no more.

Steps with the factor at hand, then one Newton step from where its outcome is certain. After a step N from θ, where H
models the curvature to within a along the whole step, the slope is at most (e^a - 1)‖N‖ in the norm of H⁻¹, and at most
a φ(a)‖N‖ where H is that at θ itself: so the last step need not be looked at.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from dither.links import Link
from dither.models import newton

LEAST = 128  # rows up to which runs in lockstep are better solved together
STEPS = 6  # at most: a start from which these are not enough is not a good one
LAST = 4  # step at which the curvature is computed even if the outcome is not certain then
CLOSE = 1e-3  # change of a logit below which it is only bounded
FIRM = 0.9  # share of (tol, drift) at which a step is the last: the bounds are a little more than these


class Found(NamedTuple):
    """As of `newton.Solution`, for one problem, or for several in arrays."""

    theta: Any  # (d,)
    F: Any  # (d, d)
    R: Any  # (d, d)
    offset: Any
    slope: Any
    reach: Any
    base: Any  # (d,)
    zmax: Any
    steps: Any
    ends: Any  # a, rem and the largest |x'θ| of `certificate.bounds`


class Curvature(NamedTuple):
    """H⁻¹ = FF' near the θ at hand; the rest of one that was computed from the rows."""

    F: np.ndarray
    R: np.ndarray | None = None
    blur: float = 0.0
    theta: np.ndarray | None = None  # where it was


def solve(
    problem: newton.Problem,
    theta: np.ndarray,
    *,
    link: Link,
    tol: float,
    drift: float,
    F: np.ndarray | None = None,
    reach: float | None = None,
    exact: bool = False,
) -> Found | None:
    """From theta (d,) to bounds of about FIRM (tol, drift); None where the start was not good enough.

    problem : one alone, without its axis: X (n, d), count, total (n,)
    F : (d, d) a factor of some H⁻¹ near theta's, for first steps
    reach : max ‖x‖ in the norm of H(theta)⁻¹, at most; None: found roughly; exact: found anew, from all rows
    """
    X, count, total, rho, longest, _ = problem
    z = X @ theta
    H = None if F is None else Curvature(F)
    for step in range(1, STEPS + 1):
        e, w = link.residual(z, count, total)
        g = e @ X + rho * theta
        if H is None:
            H = _curvature(problem, count * w, theta)
        if H is None:
            return None
        N, slope, move = _step(problem, H, g)
        sure = move * slope <= FIRM * tol and move <= drift / 2
        if H.R is None and (sure or step == LAST):
            H = _curvature(problem, count * w, theta)
            if H is None:
                return None
            N, slope, move = _step(problem, H, g)
        if not move < newton.SAFE:
            return None
        if H.R is not None:
            here = H.theta is theta
            shift = 0.0 if here else longest * math.sqrt(np.vecdot(theta - H.theta, theta - H.theta))
            zmax = _largest(z)
            a = float(link.M(np.float64(zmax + shift + move))) * (shift + move)
            w = count * w
            far = _reach(problem, H.F, w, reach, exact=exact) * (1.0 if here or exact else math.exp(a / 2))
            noise = newton.ROUNDING * far * (len(X) ** 0.5 * math.sqrt(e @ e) + math.sqrt(total @ total))
            noise += newton.ROUNDING * len(theta) * math.sqrt(rho * (theta @ theta)) + math.expm1(H.blur) * slope
            noise += newton.UNIT * len(theta) * longest * math.sqrt((theta @ theta) * w.sum())  # of the logits
            rem = (a / 2 * math.exp(a) if here else math.expm1(a)) * slope + noise
            a += H.blur
            if a > FIRM * drift:
                return None
            if rem <= FIRM * tol:
                new, ends = theta + N, (a, rem, zmax + move)
                if here:
                    return Found(new, H.F, H.R, H.blur, noise, far, theta, zmax, step, ends)
                return Found(new, H.F, H.R, a, rem, far, new, zmax + move, step, ends)
        theta = theta + N
        z = X @ theta
    return None


def _step(problem: newton.Problem, H: Curvature, g: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Newton's step N, its length in the norm of H, and the largest change of a logit, at most."""
    half = g @ H.F
    N = -(H.F @ half)
    move = problem.longest * math.sqrt(N @ N)
    return N, math.sqrt(half @ half), move if move < CLOSE else _largest(problem.X @ N)


def _curvature(problem: newton.Problem, w: np.ndarray, theta: np.ndarray) -> Curvature | None:
    """That at theta, where H = ρI + Σ w xx' = R'R; None where it is too ill-conditioned."""
    Y = problem.X * np.sqrt(w)[:, None]
    H = Y.T @ Y
    H.ravel()[:: len(H) + 1] += problem.rho
    R, bad = lapack.dpotrf(H)
    diagonal = np.diagonal(R)
    blur = math.inf if bad else newton.ROUNDING * float(diagonal.max() / diagonal.min()) ** 2
    if not blur <= newton.ILL:
        return None
    return Curvature(lapack.dtrtri(R)[0], R, blur, theta)


def _largest(z: np.ndarray) -> float:
    return float(max(z.max(), -z.min()))


def _reach(problem: newton.Problem, F: np.ndarray, w: np.ndarray, known: float | None, *, exact: bool) -> float:
    """max ‖F'x‖, at most: of the longest row, as known, or from the smallest weight."""
    if exact:
        return math.sqrt(np.square(problem.X @ F).sum(axis=1).max())
    if known is None:
        return problem.longest * math.sqrt(np.square(F).sum())
    least = float(w.min())
    return min(known, problem.longest * float(newton.spread(F)), 1 / math.sqrt(least) if least > 1e-300 else math.inf)

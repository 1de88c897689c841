"""The objective J of a generalised linear estimate, for G histories at once: its slope, and its minimum along a line.

J(θ) = Σ [ω g(x'θ) - τ x'θ] - b'θ + ρ‖θ‖²/2,     τ = Σ ω r of a row
"""

from typing import NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link

EVALUATIONS = 100  # of the slope along a line, at most


class Problem(NamedTuple):
    """G problems. X is (G, n, d), or (n, d) where all problems have the same rows. `single` has one, without G."""

    link: Link
    X: Array
    count: Array  # (G, n)  ω
    total: Array  # (G, n)  τ = Σ ω r
    rho: Array  # (G,)
    longest: Array  # (G,)  max ‖x‖
    b: Array | None = None  # (G, d)


class Look(NamedTuple):
    """What a pass over the rows says of J at one θ for each problem."""

    g: Array  # (G, d)  ∇J
    e: Array  # (G, n)  ω μ - τ, the residuals
    w: Array  # (G, n)  μ'
    size: Array  # (G, n)  ω μ'
    zmax: Array  # (G,)  max |x'θ|


def look(problem: Problem, theta: Array, z: Array) -> Look:
    """J at theta (G, d), whose logits are z (G, n)."""
    e, w = problem.link.residual(z, problem.count, problem.total)
    return Look(slope(problem, theta, e), e, w, problem.count * w, largest(z))


def logits(X: Array, theta: Array) -> Array:
    """x'θ: (G, n)."""
    return theta @ X.mT if X.ndim < theta.ndim + 1 else arrays.dot(X, theta)


def back(X: Array, e: Array) -> Array:
    """Σ e x: (G, d)."""
    return e @ X if X.ndim < e.ndim + 1 else (e[..., None, :] @ X)[..., 0, :]


def largest(z: Array) -> Array:
    """max |z| along the last axis; 0 where that axis is empty."""
    xp = arrays.namespace(z)
    return xp.maximum(xp.max(z, axis=-1), -xp.min(z, axis=-1)) if z.shape[-1] else xp.zeros_like(z[..., 0])


def slope(problem: Problem, theta: Array, e: Array) -> Array:
    """∇J(θ), from the residuals e (G, n) at theta: (G, d)."""
    g = back(problem.X, e) + problem.rho[..., None] * theta
    return g if problem.b is None else g - problem.b


def offset(z: Array, anchor: Array, *, link: Link) -> Array:
    """M |z - anchor| for the logits (G, n): the log eigenvalues of H differ by at most that. (G,)"""
    shift = largest(z - anchor)
    return link.M(largest(anchor) + shift) * shift


def along(problem: Problem, theta: Array, N: Array, z: Array, dz: Array, *, far: Array) -> Array:
    """The s (G,) near which J(θ + sN) is least, where `far` (G,), and 1 elsewhere.

    There the slope along the line has lost nine tenths of its size at s = 0. A look costs O(n), since the logits z and
    their change dz (G, n) are enough.
    """
    xp = arrays.namespace(theta)
    fixed, bend = problem.rho * xp.vecdot(theta, N), problem.rho * xp.vecdot(N, N)
    if problem.b is not None:
        fixed = fixed - xp.vecdot(problem.b, N)

    def slopes(s: Array) -> tuple[Array, Array]:
        e, w = problem.link.residual(z + s[..., None] * dz, problem.count, problem.total)
        return xp.sum(e * dz, axis=-1) + fixed + s * bend, xp.sum(problem.count * w * dz * dz, axis=-1) + bend

    s = xp.ones_like(fixed)
    low, high = xp.zeros_like(s), xp.full_like(s, xp.inf)
    enough = xp.where(far, 0.1 * xp.abs(slopes(low)[0]), xp.inf)
    for step in range(EVALUATIONS):
        up, curve = slopes(s)
        if not arrays.some(xp.abs(up) > enough):
            break
        low, high = xp.where(up < 0, s, low), xp.where(up > 0, s, high)
        newton = s - up / xp.where(curve > 0, curve, 1.0)
        middle = xp.where(xp.isfinite(high), (low + high) / 2, 4 * s)
        inside = (newton > low) & (newton < high) & xp.isfinite(newton)
        inside = inside & (newton < 16 * s) & (newton > s / 16)
        if step % 4 == 3:  # beyond the minimum of an exponential, Newton's steps are too short: halve the bracket
            inside = inside & ~xp.isfinite(high)
        s = xp.where(xp.abs(up) <= enough, s, xp.where(inside, newton, middle))
    return s

"""The problems that are solved, for G histories at once: J(θ) = Σ [ω g(x'θ) - τ x'θ] - b'θ + ρ‖θ‖²/2."""

from typing import NamedTuple

from dither import arrays
from dither.arrays import Array
from dither.links import Link


class Problem(NamedTuple):
    """G problems. X (G, n, d), or (n, d) for all alike."""

    X: Array
    count: Array  # (G, n) or (n,)  ω
    total: Array  # (G, n) or (n,)  τ = Σ ω r
    rho: Array  # (G,)
    longest: Array  # (G,)  max ‖x‖
    b: Array | None = None  # (G, d)


def logits(X: Array, theta: Array) -> Array:
    """x'θ: (G, n)."""
    return theta @ X.mT if X.ndim < theta.ndim + 1 else arrays.dot(X, theta)


def back(X: Array, e: Array) -> Array:
    """Σ e x: (G, d)."""
    return e @ X if X.ndim < e.ndim + 1 else (e[..., None, :] @ X)[..., 0, :]


def largest(z: Array) -> Array:
    """max |z| along the last axis; 0 of none."""
    xp = arrays.namespace(z)
    return xp.maximum(xp.max(z, axis=-1), -xp.min(z, axis=-1)) if z.shape[-1] else xp.zeros_like(z[..., 0])


def slope(problem: Problem, theta: Array, e: Array) -> Array:
    """∇J(θ), from the residuals e (G, n) at theta: (G, d)."""
    g = back(problem.X, e) + problem.rho[..., None] * theta
    return g if problem.b is None else g - problem.b


def offset(z: Array, anchor: Array, *, link: Link) -> Array:
    """M |z - anchor|, at most, of the logits (G, n): by how much the log eigenvalues of H differ. (G,)"""
    shift = largest(z - anchor)
    return link.M(largest(anchor) + shift) * shift

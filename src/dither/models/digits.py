"""What rounding has done to a regression that is kept by its square root, as a running bound.

    |x'θ̂ - exact| <= ρ w,   |w - exact| <= ω w,   w = ‖x‖_{V⁻¹}        for every x
    κ = tr V tr V⁻¹,  g = tr V then · tr V⁻¹ now                                        each observation
    D² ← min(1, g²) D² + κ                                                              the digits that F has lost
    q² ← min(1, g) q² + (D e)² (1 - 1/s) + r² + tr V ‖θ̂‖²                               those that θ̂ has lost
    ω = C u D,   ρ = C u q                                              u = 2⁻⁵²: twice the rounding of one operation

One step rounds F by u‖F‖, which in the norm of V is worth √κ. It rounds θ̂ by what F has lost times e w(x),
w(x)² = 1 - 1/s, and by the products r and x'θ̂. Roundings add like random numbers. Older ones count for less only where
V has grown in every direction since: with V₀ the V of then, x'V₀x <= g x'Vx for every x. So a long row mends its own
direction alone.
Errors in 60 digits against the bound: docs/decisions.md.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array

SAFETY = 8.0  # C
UNIT = float(np.finfo(float).eps)  # twice the rounding of one operation
LOST = SAFETY * UNIT
MOST = 1e-6  # ω: `factor.grown` refuses a factor that has lost more
WORST = 1e-3  # ω of a factor that is made anew, above which nothing can be made of a row


class Rounding(NamedTuple):
    """What rounding may have done to the means and widths of a model: numbers, or arrays that broadcast to (..., K)."""

    rho: Any  # errors of m, in widths: reward per w
    omega: Any  # relative errors of w


def init(zeros: Array, *, lam: float) -> Array:
    """Before the first observation, for θ̂ = zeros (..., d): tr V, tr V⁻¹, D, D_then, q and q_then, (..., 6).

    D_then is D where each loss is multiplied by the tr V of the moment at which it was counted, and q_then is q where
    it is multiplied by √tr V. V has grown since: so what is left of the losses is at most D_then tr V⁻¹ and
    q_then √(tr V⁻¹), with the V⁻¹ of now.
    """
    xp, d = arrays.namespace(zeros), zeros.shape[-1]
    start = [d * float(lam), d / float(lam), float(d), d * float(d * lam), 0.0, 0.0]
    return xp.zeros_like(zeros[..., :1]) + xp.asarray(start, dtype=zeros.dtype, device=arrays.device(zeros))


def grown(lost: Array, *, x: Array, s: Array, e: Array, r: Array, F: Array, theta: Array) -> Array:
    """After one more x (..., d): F (..., d, d) and θ̂ after it; before it s = 1 + x'V⁻¹x and e = r - x'θ̂, r (...)."""
    if lost.ndim == 1 and type(lost) is np.ndarray:
        before = lost.tolist()
        trace, now = before[0] + float(x.dot(x)), float(np.vdot(F, F))
        terms = (math.sqrt(trace * before[1]), float(e) * math.sqrt(1 - 1 / s), float(r), _length(theta))
        return np.array(_after(before, trace, now, *terms, rules=(math.sqrt, min, math.hypot, math.hypot)))
    xp = arrays.namespace(x)
    trace, now = lost[..., 0] + xp.vecdot(x, x), xp.sum(xp.vecdot(F, F), axis=-1)
    return _stacked(lost, trace, now, xp.sqrt(trace * lost[..., 1]), e * xp.sqrt(1 - 1 / s), r, arrays.norms(theta))


def grown_many(lost: Array, *, X: Array, e: Array, r: Array, F: Array, theta: Array) -> Array:
    """After n more at once: X (..., n, d), e and r (..., n) as above; F (..., d, d) and θ̂ after them."""
    xp, n, d = arrays.namespace(X), X.shape[-2], X.shape[-1]
    if not n:
        return lost
    trace = lost[..., 0] + xp.sum(xp.vecdot(X, X), axis=-1)
    more, now = xp.sqrt(n * d * trace * lost[..., 1]), arrays.gram_trace(F)
    e, r = (xp.sqrt(n * xp.vecdot(part, part)) for part in (e, r))
    return _stacked(lost, trace, now, more, e, r, n**0.5 * arrays.norms(theta))


def _stacked(lost: Array, *terms: Array) -> Array:
    """`_after` of arrays (...) -> (..., 6)."""
    xp, before = arrays.namespace(lost), [lost[..., k] for k in range(6)]

    def three(a: Array, b: Array, c: Array) -> Array:
        return xp.hypot(xp.hypot(a, b), c)

    return xp.stack(_after(before, *terms, rules=(xp.sqrt, xp.minimum, xp.hypot, three)), axis=-1)


def _after(before: list, trace: Any, now: Any, more: Any, e: Any, r: Any, length: Any, *, rules: tuple) -> list:
    """What is lost after one step: tr V and tr V⁻¹ after it, √κ, e w(x), r and ‖θ̂‖ of it; numbers or arrays.

    rules : the root, the lesser of two, and the lengths of two and of three numbers
    """
    (_, _, D, D_then, q, q_then), (sqrt, least, hypot, three) = before, rules
    root = sqrt(trace)
    D = hypot(least(D, D_then * now), more)
    paid = three(D * e, r, root * length)
    q = hypot(least(q, q_then * sqrt(now)), paid)
    D_then, q_then = least(hypot(D_then, more * trace), D * trace), least(hypot(q_then, paid * root), q * root)
    return [trace, now, D, D_then, q, q_then]


def factored(*, trace: float, paid: float, n: int, F: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """After n observations of which V itself was summed and factored: it has lost κ where a factor has lost √κ.

    trace tr V, paid Σ r², F (d, d), theta (d,) -> (6,)
    """
    inverse = float(np.vdot(F, F))
    D = math.sqrt(n + 1) * trace * inverse
    q = math.hypot(D * math.sqrt(paid), math.sqrt((n + 1) * trace) * _length(theta))
    return np.array([trace, inverse, D, D * trace, q, q * math.sqrt(trace)])


def shaped(rho: Array, omega: Array) -> Rounding:
    """ρ and ω (...) as they broadcast to (..., K): numbers for one bandit, which a decision reads quicker."""
    if rho.ndim == 0 and isinstance(rho, (np.ndarray, np.generic)):
        return Rounding(float(rho), float(omega))
    return Rounding(rho[..., None], omega[..., None])


def _length(theta: np.ndarray) -> float:
    """‖θ̂‖, also where its square overflows."""
    square = float(theta @ theta)
    return math.sqrt(square) if square < math.inf else float(np.abs(theta).max()) * math.sqrt(len(theta))

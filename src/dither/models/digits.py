"""What rounding has done to a regression that is kept by its square root, as a running bound.

    |x'θ̂ - exact| <= ρ w,   |w - exact| <= ω w,   w = ‖x‖_{V⁻¹}        for every x
    κ = Σ V_ii (V⁻¹)_ii,  g = (Σ √(V_ii then · (V⁻¹)_ii now))²                           each observation
    D² ← min(1, g²) D² + κ                                                              the digits that F has lost
    q² ← min(1, g) q² + (D e)² (1 - 1/s) + r² + Σ V_ii θ̂_i²                             those that θ̂ has lost
    ω = C u D,   ρ = C u q                                              u = 2⁻⁵²: twice the rounding of one operation

One step rounds row i of F by u √(V⁻¹)_ii, with the V⁻¹ before it, which in the norm of V is worth √(V_ii (V⁻¹)_ii). It
rounds θ̂ by what F has lost times e w(x), w(x)² = 1 - 1/s, and by the products r and x'θ̂. Roundings add like random
numbers. Nothing here depends on the units of the columns: where columns are divided by numbers t_i, V_ii becomes
V_ii/t_i², (V⁻¹)_ii becomes t_i² (V⁻¹)_ii, and κ, g, D and q stay as they are, if λ is divided likewise.

Older roundings count for less only where V has grown in every direction since. With V₀ the V of then, x'V₀x is at most
(Σ |x_i| √V₀_ii)², and |x_i| <= ‖x‖_V √(V⁻¹)_ii: so x'V₀x <= g x'Vx for every x. A long row mends its own direction
alone. Each rounding has a V₀ of its own. Minkowski's inequality adds them up column by column:

    A_i² = Σ κ V₀_ii²,      what is left of D is at most (Σ √((V⁻¹)_ii A_i))²           the sum over roundings of F
    B_i² = Σ p V₀_ii,       what is left of q is at most Σ √(V⁻¹)_ii B_i                over those of θ̂, p their squares

A and B are brought up to date after 1, 2, 4, ... and then after every `EACH` observations, as that takes longer than
all the rest. Until then the squares are summed by themselves. V_ii only grows, so the V of that moment may stand for
those of the observations.
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
EACH = 64  # observations after which older roundings are weighed against V again
SCALARS = 5  # D², κ not yet in A, q², squares not yet in B, observations; then V_ii, (V⁻¹)_ii, A and B, d numbers each


class Rounding(NamedTuple):
    """What rounding may have done to the means and widths of a model: numbers, or arrays that broadcast to (..., K)."""

    rho: Any  # errors of m, in widths: reward per w
    omega: Any  # relative errors of w


def init(zeros: Array, *, lam: float) -> Array:
    """Before the first observation, for θ̂ = zeros (..., d): (..., 5 + 4d), as `SCALARS` says."""
    xp, d, lam = arrays.namespace(zeros), zeros.shape[-1], float(lam)
    start = [float(d * d), *[0.0] * (SCALARS - 1), *[lam] * d, *[1 / lam] * d, *[d * lam] * d, *[0.0] * d]
    return xp.zeros_like(zeros[..., :1]) + xp.asarray(start, dtype=zeros.dtype, device=arrays.device(zeros))


def grown(lost: Array, *, x: Array, s: Array, e: Array, r: Array, F: Array, theta: Array) -> Array:
    """After one more x (..., d): F (..., d, d) and θ̂ after it; before it s = 1 + x'V⁻¹x and e = r - x'θ̂, r (...)."""
    if lost.ndim == 1 and type(lost) is np.ndarray:
        return _quickly(lost, x, float(s), float(e), float(r), F, theta)
    xp, d = arrays.namespace(x), x.shape[-1]
    v, before, n = lost[..., SCALARS : SCALARS + d] + x * x, lost[..., SCALARS + d : SCALARS + 2 * d], lost[..., 4] + 1
    P = lost[..., 1] + xp.vecdot(v, before)
    Q = lost[..., 3] + (lost[..., 0] + P) * e * e * (1 - 1 / s) + r * r + xp.vecdot(v * theta, theta)
    scalars = xp.stack([lost[..., 0], P, lost[..., 2], Q, n], axis=-1)
    new = xp.concat([scalars, v, xp.vecdot(F, F), lost[..., SCALARS + 2 * d :]], axis=-1)
    due = (n % EACH == 0) | (EACH % n == 0)
    return xp.where(due[..., None], _weighed(new, d), new) if arrays.some(due) else new


def _quickly(lost: np.ndarray, x: np.ndarray, s: float, e: float, r: float, F: np.ndarray, theta: np.ndarray):
    """`grown` of one bandit in NumPy."""
    d, lost = len(x), lost.copy()
    v, c = lost[SCALARS : SCALARS + d], lost[SCALARS + d : SCALARS + 2 * d]
    v += x * x
    kappa, length = float(v.dot(c)), float((v * theta).dot(theta))
    np.vecdot(F, F, c)
    D, P, q, Q, n = lost[:SCALARS].tolist()
    P, n = P + kappa, n + 1
    Q += (D + P) * e * e * (1 - 1 / s) + r * r + length
    if not n % EACH or not EACH % n:
        A, B = lost[SCALARS + 2 * d : SCALARS + 3 * d], lost[SCALARS + 3 * d :]
        some, other = float(np.sqrt(c * A).sum()), float(np.sqrt(c).dot(B))
        D, q = min(D, some * some * some * some) + P, min(q, other * other) + Q
        np.hypot(A, v * math.sqrt(P), out=A)
        np.hypot(B, np.sqrt(v) * math.sqrt(Q), out=B)
        lost[0], lost[2], P, Q = D, q, 0.0, 0.0
    lost[1], lost[3], lost[4] = P, Q, n
    return lost


def grown_many(lost: Array, *, X: Array, e: Array, r: Array, F: Array, theta: Array) -> Array:
    """After n more at once: X (..., n, d), e and r (..., n) as above; F (..., d, d) and θ̂ after them."""
    xp, n, d = arrays.namespace(X), X.shape[-2], X.shape[-1]
    if not n:
        return lost
    v, c = lost[..., SCALARS : SCALARS + d] + xp.sum(X * X, axis=-2), xp.vecdot(F, F)
    P = lost[..., 1] + n * d * xp.vecdot(v, lost[..., SCALARS + d : SCALARS + 2 * d])
    paid = n * (xp.vecdot(r, r) + xp.vecdot(v * theta, theta))
    scalars = xp.stack([lost[..., 0], P, lost[..., 2], lost[..., 3] + paid, lost[..., 4] + n], axis=-1)
    return _weighed(xp.concat([scalars, v, c, lost[..., SCALARS + 2 * d :]], axis=-1), d, e=n * xp.vecdot(e, e))


def _weighed(lost: Array, d: int, *, e: Array | float = 0.0) -> Array:
    """The same with A and B up to date. e (...): Σ e², of which D² times is not yet among the squares of θ̂."""
    xp = arrays.namespace(lost)
    v, c, A, B = (lost[..., SCALARS + k * d : SCALARS + (k + 1) * d] for k in range(4))
    D, P, q, Q, n = (lost[..., k] for k in range(SCALARS))
    some, other = xp.sum(xp.sqrt(c * A), axis=-1), xp.vecdot(xp.sqrt(c), B)
    D = xp.minimum(D, some * some * some * some) + P
    Q = Q + D * e
    q, none = xp.minimum(q, other * other) + Q, xp.zeros_like(n)
    A, B = xp.hypot(A, xp.sqrt(P)[..., None] * v), xp.hypot(B, xp.sqrt(Q)[..., None] * xp.sqrt(v))
    return xp.concat([xp.stack([D, none, q, none, n], axis=-1), v, c, A, B], axis=-1)


def factored(*, v: Array, paid: Any, n: Any, F: Array, theta: Array) -> Array:
    """After n observations of which V itself was summed and factored: it has lost κ where a factor has lost √κ.

    v (..., d) the diagonal of V, paid Σ r² and n (...) or numbers, F (..., d, d), theta (..., d) -> (..., 5 + 4d)
    """
    xp, c = arrays.namespace(v), arrays.namespace(v).vecdot(F, F)
    kappa, length = xp.vecdot(v, c), xp.vecdot(v * theta, theta)
    count, none = xp.zeros_like(kappa) + n, xp.zeros_like(kappa)
    D = (count + 1) * kappa * kappa
    q = D * paid + (count + 1) * length
    A, B = xp.sqrt(D)[..., None] * v, xp.sqrt(q)[..., None] * xp.sqrt(v)
    return xp.concat([xp.stack([D, none, q, none, count], axis=-1), v, c, A, B], axis=-1)


def diagonals(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of V⁻¹ = FF' and of V, F (..., d, d) -> (..., d) each."""
    c = np.vecdot(F, F)
    return c, np.sum(np.linalg.inv(F / np.sqrt(c)[..., None]) ** 2, axis=-2) / c  # V = (F⁻¹)'F⁻¹


def of_traces(lost: np.ndarray, F: np.ndarray) -> np.ndarray:
    """What a file of format 2 says: tr V, tr V⁻¹, D, D_then, q, q_then (..., 6), F (..., d, d) -> (..., 5 + 4d).

    D and q of the traces are bounds too. All that is lost counts as lost at the V of now, so from here on it can only
    count for less.
    """
    (c, v), D, q = diagonals(F), lost[..., 2:3], lost[..., 4:5]
    zero = np.zeros_like(D)
    return np.concatenate([D * D, zero, q * q, zero, zero, v, c, D * v, q * np.sqrt(v)], axis=-1)


def shaped(rho: Array, omega: Array) -> Rounding:
    """ρ and ω (...) as they broadcast to (..., K): numbers for one bandit, which a decision reads quicker."""
    if rho.ndim == 0 and isinstance(rho, (np.ndarray, np.generic)):
        return Rounding(float(rho), float(omega))
    return Rounding(rho[..., None], omega[..., None])

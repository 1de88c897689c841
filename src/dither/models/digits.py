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
    xp = arrays.namespace(x)
    (D, P, q, Q, n), v, c, A, B = _parts(lost, x.shape[-1])
    v = v + x * x
    P, n = P + xp.vecdot(v, c), n + 1
    Q = Q + (D + P) * e * e * (1 - 1 / s) + r * r + xp.vecdot(v * theta, theta)
    c, each, none = xp.vecdot(F, F), xp.full_like(n, float(EACH)), xp.zeros_like(n)
    due = (xp.remainder(n, each) == 0) | (xp.remainder(each, n) == 0)
    weighed = ((_left(D, c, A) + P, D), (none, P), (_left_of_theta(q, c, B) + Q, q), (none, Q))
    D_P_q_Q = (xp.where(due, new, old) for new, old in weighed)
    A_B = (xp.where(due[..., None], new, old) for new, old in ((_more(A, P, v), A), (_more(B, Q, xp.sqrt(v)), B)))
    return _whole([*D_P_q_Q, n], v, c, *A_B)


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
    (D, P, q, Q, count), v, c, A, B = _parts(lost, d)
    v = v + xp.sum(X * X, axis=-2)
    P, c = P + n * d * xp.vecdot(v, c), xp.vecdot(F, F)
    D = _left(D, c, A) + P
    Q = Q + n * (D * xp.vecdot(e, e) + xp.vecdot(r, r) + xp.vecdot(v * theta, theta))
    q, none = _left_of_theta(q, c, B) + Q, xp.zeros_like(D)
    return _whole([D, none, q, none, count + n], v, c, _more(A, P, v), _more(B, Q, xp.sqrt(v)))


def _parts(lost: Array, d: int) -> tuple[list[Array], Array, Array, Array, Array]:
    """The scalars (...), and V_ii, (V⁻¹)_ii, A and B, (..., d) each."""
    v, c, A, B = (lost[..., SCALARS + k * d : SCALARS + (k + 1) * d] for k in range(4))
    return [lost[..., k] for k in range(SCALARS)], v, c, A, B


def _whole(scalars: list[Array], *columns: Array) -> Array:
    xp = arrays.namespace(columns[0])
    return xp.concat([xp.stack(scalars, axis=-1), *columns], axis=-1)


def _left(D: Array, c: Array, A: Array) -> Array:
    """What is left of D² (...), given (V⁻¹)_ii and A (..., d)."""
    xp = arrays.namespace(c)
    left = xp.sum(xp.sqrt(c * A), axis=-1)
    return xp.minimum(D, left * left * left * left)


def _left_of_theta(q: Array, c: Array, B: Array) -> Array:
    """What is left of q² (...), given (V⁻¹)_ii and B (..., d)."""
    xp = arrays.namespace(c)
    left = xp.vecdot(xp.sqrt(c), B)
    return xp.minimum(q, left * left)


def _more(A: Array, square: Array, size: Array) -> Array:
    """A or B (..., d) with new roundings of this square (...), each of which has the size (..., d)."""
    xp = arrays.namespace(A)
    return xp.hypot(A, xp.sqrt(square)[..., None] * size)


def factored(*, v: Array, paid: Any, n: Any, F: Array, theta: Array) -> Array:
    """After n observations of which V itself was summed and factored: it has lost κ where a factor has lost √κ.

    v (..., d) the diagonal of V, paid Σ r² and n (...) or numbers, F (..., d, d), theta (..., d) -> (..., 5 + 4d)
    """
    xp, c = arrays.namespace(v), arrays.namespace(v).vecdot(F, F)
    kappa, length = xp.vecdot(v, c), xp.vecdot(v * theta, theta)
    count, none = xp.zeros_like(kappa) + n, xp.zeros_like(kappa)
    D = (count + 1) * kappa * kappa
    q = D * paid + (count + 1) * length
    return _whole([D, none, q, none, count], v, c, xp.sqrt(D)[..., None] * v, xp.sqrt(q)[..., None] * xp.sqrt(v))


def of_traces(lost: np.ndarray, F: np.ndarray) -> np.ndarray:
    """What a file of format 2 says: tr V, tr V⁻¹, D, D_then, q, q_then (..., 6), F (..., d, d) -> (..., 5 + 4d).

    D and q of the traces are bounds too. All that is lost counts as lost at the V of now, so from here on it can only
    count for less.
    """
    c, D, q = np.vecdot(F, F), lost[..., 2:3], lost[..., 4:5]
    v = np.sum(np.linalg.inv(F / np.sqrt(c)[..., None]) ** 2, axis=-2) / c  # V = (F⁻¹)'F⁻¹
    zero = np.zeros_like(D)
    return np.concatenate([D * D, zero, q * q, zero, zero, v, c, D * v, q * np.sqrt(v)], axis=-1)


def rounding(lost: Array) -> Rounding:
    """ρ and ω: numbers for one bandit, (..., 1) with leading axes."""
    if lost.ndim == 1 and type(lost) is np.ndarray:
        D, P, q, Q = lost[: SCALARS - 1].tolist()
        return Rounding(LOST * math.sqrt(q + Q), min(LOST * math.sqrt(D + P), MOST))
    xp = arrays.namespace(lost)
    rho, omega = (LOST * xp.sqrt(lost[..., k : k + 1] + lost[..., k + 1 : k + 2]) for k in (2, 0))
    return Rounding(rho, xp.where(omega < MOST, omega, xp.full_like(omega, MOST)))


def shaped(rho: Array, omega: Array) -> Rounding:
    """ρ and ω (...) as they broadcast to (..., K): numbers for one bandit, which a decision reads quicker."""
    if rho.ndim == 0 and isinstance(rho, (np.ndarray, np.generic)):
        return Rounding(float(rho), float(omega))
    return Rounding(rho[..., None], omega[..., None])

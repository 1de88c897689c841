"""Newton's method on J(θ) = Σ [ω g(x'θ) - τ x'θ] - b'θ + ρ‖θ‖²/2, for G problems at once, from any start.

A step is the full Newton step where it moves every logit by at most 1/2 (then it is safe for M <= 1), else it goes to
the minimum along its line, for which the logits x'θ and their change are enough: globally convergent for every convex
g, as it must be, since the first observations are always separable. The curvature is computed anew only where the
logits have moved by more than `drift` since it was; in between, steps cost a pass of O(n d) and not of O(n d²).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from dither import arrays
from dither.arrays import Array
from dither.links import Link
from dither.models import certificate

STEPS = 300  # at most; a few are enough
LATE = 8  # a lazy solution that has looked again must be that much better than the bound asks: it is all error
IDLE = 12  # steps without progress after which no more is to be had
SAFE = 0.5  # change of a logit below which a full step is taken
LONGEST = 1e6  # change of a logit to which a step is shortened before its line is searched
LINE = 100  # evaluations along a line, at most
ILL = 4e-9  # relative error of the eigenvalues of H above which its factor is taken from the rows, by QR
ROUNDING = 4e-16
UNIT = 2.0**-53  # u: a product of d terms is right to d u times the sum of their sizes
FEW = 256  # rows up to which the longest of them in the norm of H⁻¹ is always looked for


class Problem(NamedTuple):
    """G problems. X (G, n, d), or (n, d) for all alike."""

    X: Array
    count: Array  # (G, n) or (n,)  ω
    total: Array  # (G, n) or (n,)  τ = Σ ω r
    rho: Array  # (G,)
    longest: Array  # (G,)  max ‖x‖
    b: Array | None = None  # (G, d)


class Solution(NamedTuple):
    """What is known at the end."""

    theta: Array  # (G, d)
    F: Array  # (G, d, d)  H⁻¹ = FF'; H is the Hessian at the last point where it was computed
    R: Array | None  # (G, d, d)  H = R'R; None where a trusted F was enough
    offset: Array  # (G,)  M |change of a logit| since that point, at most
    slope: Array  # (G,)  ‖∇J(θ)‖ in the norm of H⁻¹, at most
    reach: Array  # (G,)  max ‖x‖ in the norm of H⁻¹, at most
    base: Array  # (G, d)  where H is a model of the curvature to within `offset`: theta, or where a lazy step began
    zmax: Array  # (G,)  max |x'θ| there
    bound: Array  # (G, 2)  as of `certificate.bounds`
    steps: Array  # (G,)  passes over the rows; int64


def solve(
    problem: Problem,
    theta: Array,
    *,
    link: Link,
    tol: Array,
    drift: float,
    F: Any = None,
    trusted: Array | None = None,
    reach: Any = None,
    lazy: bool = False,
) -> Solution:
    """Minimise, from theta (G, d), until the bounds are at most `tol` (G,) and `drift`. No problem knows of the others.

    F : a factor of some H⁻¹ near theta's, for a first step
    trusted : (G,) how far the log eigenvalues of F are from those at theta, at most: F then serves for more than a step
    reach : (G,) max ‖x‖ in the norm of H(theta)⁻¹, at most; None: found anew
    lazy : (one problem alone) stop after the first Newton step whose outcome is certain to be within the bounds,
        without looking again
    """
    xp = arrays.namespace(theta)
    n, d = problem.X.shape[-2:]
    z = _logits(problem.X, theta)
    live = xp.ones(theta.shape[:-1], dtype=xp.bool, device=arrays.device(theta))
    far, known = live, live & False  # known: F is that of the curvature at `anchor`, to within `blur` and the offset
    zero = xp.zeros_like(theta[..., 0])
    least, idle, answer = zero + xp.inf, zero, None
    doubt, blur, anchor, R = _doubt(problem, link=link), zero, z, None
    if trusted is not None:
        known, blur = trusted < drift, trusted
        reach = _reach(problem, F, link.slopes(z)[1], known=None, exact=False)
    for step in range(STEPS):
        count = xp.full_like(live, step + 1, dtype=xp.int64)
        e, w = link.residual(z, problem.count, problem.total)
        g = _back(problem.X, e) + problem.rho[..., None] * theta
        if problem.b is not None:
            g = g - problem.b
        offset = xp.where(known, _offset(z, anchor, link=link) + blur, 0.0)
        fresh = live & ~(known & (offset <= drift + blur))
        if step == 0 and F is not None and trusted is None:
            fresh = fresh & False
        if arrays.some(fresh):
            R, F, blur = factors(problem, problem.count * w, only=fresh, old=(R, F, blur))
            carried = None if reach is None else reach * xp.exp(xp.where(offset < 300, offset, 300.0) / 2)
            found = _reach(problem, F, w, known=carried, exact=(lazy and reach is None) or n <= FEW)
            reach = found if reach is None else xp.where(fresh, found, reach)
            anchor, offset = xp.where(fresh[..., None], z, anchor), xp.where(fresh, blur, offset)
            known = known | fresh
        half = arrays.dot(F.mT, g)
        N = -arrays.dot(F, half)
        slope = arrays.norms(half)
        if (reach is not None and R is not None) or trusted is not None:
            zmax = _largest(z)
            size = problem.count * w
            lever = 1 / xp.sqrt(xp.where(size > 1e-200, size, 1e-200))  # >= ‖x‖ in the norm of H⁻¹, as is reach
            lever = xp.where(lever < reach[..., None], lever, reach[..., None])
            noise = arrays.norms((n**0.5 * xp.abs(e) + doubt) * lever) + d * xp.sqrt(problem.rho) * arrays.norms(theta)
            noise = ROUNDING * noise + _slip(problem, theta, size, most=tol / LATE)
            slope = slope + noise
            better = (slope < least / 2) | far
            least, idle = xp.where(better, slope, least), xp.where(better, 0.0, idle + 1)
            end = live & (idle > IDLE)  # as exact as rounding lets it be, which the bound then says
            if arrays.some(end | (live & (slope <= tol))):
                bound = certificate.bounds(offset, slope, reach, zmax=zmax, link=link)
                least_E, limit = (tol / LATE, 2 * drift) if lazy else (tol, drift + 2 * tol)
                end = end | (known & (bound[..., 0] <= least_E) & (bound[..., 1] <= limit + 2 * blur))
                new = Solution(theta, F, R, offset, slope, reach, theta, zmax, bound, count)
                answer = new if answer is None else kept(live, new, answer)
                live = live & ~end
                if not arrays.some(live):
                    return answer
        dz = _logits(problem.X, N)
        move = _largest(dz)
        if arrays.some(move > LONGEST):
            shorter = LONGEST / xp.where(move > LONGEST, move, LONGEST)
            N, dz, move = N * shorter[..., None], dz * shorter[..., None], move * shorter
        size = xp.where(live, xp.ones_like(move), xp.zeros_like(move))
        far = live & (move > SAFE)
        if arrays.some(far):
            size = xp.where(far, _along(problem, theta, N, z, dz, far=far, link=link), size)
        elif lazy and arrays.some(fresh):
            a = link.M(zmax + move) * move + blur
            bound = certificate.bounds(a, certificate.phi(a) * a * slope + noise, reach, zmax=zmax + move, link=link)
            if not arrays.some((bound[..., 0] > tol) | (bound[..., 1] > drift)):
                return Solution(theta + N, F, R, blur, noise, reach, theta, zmax, bound, count)
        theta = theta + size[..., None] * N
        moved = z + size[..., None] * dz
        if arrays.some(far) or step % 8 == 7:  # the sum keeps the rounding of the longest step
            anew = far | (live & (step % 8 == 7))
            moved = xp.where(anew[..., None], _logits(problem.X, theta), moved)
        z = moved
    raise ValueError(
        f"x or r is too large beside the others: no estimate was found in {STEPS} steps of Newton's method; scale "
        f"features and rewards, or raise lam"
    )


def factors(problem: Problem, w: Array, *, only: Array | None = None, old: tuple | None = None) -> tuple:
    """R and F (G, d, d) with H = ρI + Σ w xx' = R'R, H⁻¹ = FF', and how far rounding may put log eigenvalues off (G,).

    only : (G,) the problems whose factors are made; the others keep their `old` ones
    """
    if type(w) is np.ndarray:
        return _each(problem, w, only, old)
    xp = arrays.namespace(w)
    R = arrays.cholesky(arrays.gram(problem.X, w, problem.rho))
    blur = None if R is None else ROUNDING * ratio(R) ** 2
    if R is None or blur is None or arrays.some(blur > ILL):
        eye = xp.eye(problem.X.shape[-1], dtype=w.dtype, device=arrays.device(w))
        rows = xp.concat([xp.sqrt(problem.rho)[..., None, None] * eye, xp.sqrt(w)[..., None] * problem.X], axis=-2)
        R = xp.linalg.qr(rows, mode="reduced")[1]
        blur = ROUNDING * ratio(R)
    new = (R, xp.linalg.inv(R), blur)
    if only is None or old is None or old[1] is None:
        return new
    axes = ((..., None, None), (..., None, None), ())
    return tuple(
        b if a is None else xp.where(only[i] if i else only, b, a) for a, b, i in zip(old, new, axes, strict=True)
    )


def _each(problem: Problem, w: np.ndarray, only: np.ndarray | None, old: tuple | None) -> tuple:
    """`factors` in NumPy, where every problem is computed as if it were alone."""
    (G, n), d = w.shape, problem.X.shape[-1]
    runs = np.arange(G) if only is None else np.flatnonzero(only)
    root, H = np.sqrt(w[runs])[..., None], np.empty((len(runs), d, d))
    if problem.X.ndim == 3 and n <= FEW:  # all at once, where the rows fit into the cache
        Y = (problem.X if len(runs) == G else problem.X[runs]) * root
        np.matmul(Y.mT, Y, out=H)
    else:
        for k, i in enumerate(runs):
            Y = (problem.X if problem.X.ndim == 2 else problem.X[i]) * root[k]
            np.matmul(Y.T, Y, out=H[k])
    H[:, range(d), range(d)] += problem.rho[runs, None]
    try:
        R = np.linalg.cholesky(H).mT
    except np.linalg.LinAlgError:
        R = np.stack([_root(own) for own in H]).mT
    blur = ROUNDING * ratio(R) ** 2
    for bad in np.flatnonzero(~(blur <= ILL)):
        run = runs[bad]
        X = problem.X if problem.X.ndim == 2 else problem.X[run]
        R[bad] = np.linalg.qr(np.concatenate([problem.rho[run] ** 0.5 * np.eye(d), X * root[bad]]), mode="r")
        blur[bad] = ROUNDING * ratio(R[bad])
    F = np.empty_like(H)
    for k, own in enumerate(R):
        F[k] = lapack.dtrtri(own)[0]
    if len(runs) == G:
        return R, F, blur
    old = (None, None, None) if old is None else old
    parts = [np.zeros((G, *A.shape[1:])) if B is None else B.copy() for A, B in zip((R, F, blur), old, strict=True)]
    for all_of, own in zip(parts, (R, F, blur), strict=True):
        all_of[runs] = own
    return tuple(parts)


def _root(H: np.ndarray) -> np.ndarray:
    """The lower factor, or one that is certain to be refused."""
    try:
        return np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return np.diag(np.r_[np.ones(len(H) - 1), 1e-90])


def ratio(R: Array) -> Array:
    """Of the largest to the smallest entry of the diagonals, (G,): the condition number, about."""
    xp = arrays.namespace(R)
    diagonal = xp.abs(xp.linalg.diagonal(R))
    least = xp.min(diagonal, axis=-1)
    return xp.max(diagonal, axis=-1) / xp.where(least > 1e-100, least, 1e-100)


def _doubt(problem: Problem, *, link: Link) -> Array:
    """What is subtracted from ω μ where that may cancel: not where all rewards of a row were 0 or 1. (G, n)"""
    xp = arrays.namespace(problem.total)
    size = xp.abs(problem.total)
    if link.support == (0.0, 1.0):
        size = xp.where(problem.total == problem.count, 0.0, size)
    return size


def _slip(problem: Problem, theta: Array, size: Array, *, most: Array) -> Array:
    """What rounding of the logits does to the slope, √Σ ωμ' (d u Σ_j |x_j θ_j|)², at most: (G,).

    u = UNIT. Bounded by the longest row, or looked at where that is above `most`.
    """
    xp, unit = arrays.namespace(theta), UNIT * theta.shape[-1]
    slip = unit * problem.longest * arrays.norms(theta) * xp.sqrt(xp.sum(size, axis=-1))
    rough = slip > most
    if not arrays.some(rough):
        return slip
    own = xp.sqrt(size) * _logits(xp.abs(problem.X), xp.abs(theta))
    largest = xp.maximum(xp.max(own, axis=-1), xp.full_like(slip, 1e-150))
    return xp.where(rough, unit * largest * arrays.norms(own / largest[..., None]), slip)


def _logits(X: Array, theta: Array) -> Array:
    """x'θ: (G, n)."""
    return theta @ X.mT if X.ndim < theta.ndim + 1 else arrays.dot(X, theta)


def _back(X: Array, e: Array) -> Array:
    """Σ e x: (G, d)."""
    return e @ X if X.ndim < e.ndim + 1 else (e[..., None, :] @ X)[..., 0, :]


def _largest(z: Array) -> Array:
    xp = arrays.namespace(z)
    return xp.maximum(xp.max(z, axis=-1), -xp.min(z, axis=-1)) if z.shape[-1] else xp.zeros_like(z[..., 0])


def _offset(z: Array, anchor: Array, *, link: Link) -> Array:
    """M |z - anchor|, at most: (G,)."""
    shift = _largest(z - anchor)
    return link.M(_largest(anchor) + shift) * shift


def _reach(problem: Problem, F: Array, w: Array, *, known: Array | None, exact: bool) -> Array:
    """max ‖F'x‖ over the rows that count, at most, (G,): as known, from the smallest weight, or the longest row."""
    xp, counts = arrays.namespace(F), problem.count > 0
    if exact:
        return xp.max(xp.where(counts, arrays.norms(problem.X @ F), 0.0), axis=-1)
    size = spread(F) if known is not None else arrays.norms(arrays.norms(F))
    least = xp.min(xp.where(counts, problem.count * w, xp.inf), axis=-1)
    reach = xp.minimum(problem.longest * size, 1 / xp.sqrt(xp.where(least > 0, least, 1e-300)))
    return reach if known is None else xp.minimum(reach, known)


def spread(F: Array) -> Array:
    """‖F‖₂, at most, and at most 1.2 times too large: ‖A‖₂ <= ‖A⁸‖^(1/8) in Frobenius' norm, for A = F'F."""
    A = F.mT @ F
    xp = arrays.namespace(A)
    size = xp.max(xp.abs(A), axis=(-2, -1))
    A = A / size[..., None, None]
    for _ in range(3):
        A = A @ A
    return xp.sqrt(size * arrays.norms(arrays.norms(A)) ** (1 / 8))


def _along(problem: Problem, theta: Array, N: Array, z: Array, dz: Array, *, far: Array, link: Link) -> Array:
    """s (G,) near the minimum of J(θ + sN): the slope has lost nine tenths of its size at s = 0. 1 but for `far`."""
    xp = arrays.namespace(theta)
    fixed, bend = problem.rho * xp.vecdot(theta, N), problem.rho * xp.vecdot(N, N)
    if problem.b is not None:
        fixed = fixed - xp.vecdot(problem.b, N)

    def slopes(s: Array) -> tuple[Array, Array]:
        e, w = link.residual(z + s[..., None] * dz, problem.count, problem.total)
        return xp.sum(e * dz, axis=-1) + fixed + s * bend, xp.sum(problem.count * w * dz * dz, axis=-1) + bend

    s = xp.ones_like(fixed)
    low, high = xp.zeros_like(s), xp.full_like(s, xp.inf)
    enough = xp.where(far, 0.1 * xp.abs(slopes(low)[0]), xp.inf)
    for step in range(LINE):
        up, curve = slopes(s)
        if not arrays.some(xp.abs(up) > enough):
            break
        low, high = xp.where(up < 0, s, low), xp.where(up > 0, s, high)
        newton = s - up / xp.where(curve > 0, curve, 1.0)
        middle = xp.where(xp.isfinite(high), (low + high) / 2, 4 * s)
        inside = (newton > low) & (newton < high) & xp.isfinite(newton)
        inside = inside & (newton < 16 * s) & (newton > s / 16)
        if step % 4 == 3:  # where Newton's steps are too short, as beyond the minimum of an exponential
            inside = inside & ~xp.isfinite(high)
        s = xp.where(xp.abs(up) <= enough, s, xp.where(inside, newton, middle))
    return s


def kept(live: Array, new: Solution, old: Solution) -> Solution:
    """The new values where a problem was still being solved, the old ones where it was not."""
    xp = arrays.namespace(live)

    def rule(a: Array | None, b: Array | None) -> Array | None:
        if a is None or b is None:
            return a
        return xp.where(xp.reshape(live, (-1, *(1,) * (a.ndim - 1))), a, b)

    return Solution(*(rule(a, b) for a, b in zip(new, old, strict=True)))

"""The Hessian of J by its square roots, and how long rows are in the norm of its inverse.

H = ρI + Σ w xx' = R'R,     H⁻¹ = FF',     w = ω μ'(x'θ)
"""

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models.glm import rounding
from dither.models.glm.objective import Look, Problem

FEW = 256  # rows up to which the longest of them in the norm of H⁻¹ is always looked for


def computed(problem: Problem, theta: Array, look: Look) -> tuple:
    """`factors` at theta (G, d), where the rounding of the weights counts too."""
    R, F, blur = factors(problem, look.size)
    return R, F, blur + rounding.curvature(problem, theta, look.size, look.zmax)


def factors(problem: Problem, w: Array) -> tuple:
    """R and F (G, d, d) of H with weights w (G, n), and how far rounding may put the log eigenvalues of H off (G,)."""
    if type(w) is np.ndarray:
        return _each(problem, w)
    xp = arrays.namespace(w)
    R, unit = arrays.cholesky(arrays.gram(problem.X, w, problem.rho)), rounding.OF_FACTOR + rounding.summed(w.shape[-1])
    if R is not None:
        F = xp.linalg.inv(R)
        blur = unit * rounding.condition(R, F) ** 2
        if not arrays.some(~(blur <= rounding.ILL)):
            return R, F, blur
    eye = xp.eye(problem.X.shape[-1], dtype=w.dtype, device=arrays.device(w))
    rows = xp.concat([xp.sqrt(problem.rho)[..., None, None] * eye, xp.sqrt(w)[..., None] * problem.X], axis=-2)
    R = xp.linalg.qr(rows, mode="reduced")[1]
    F = xp.linalg.inv(R)
    return R, F, unit * rounding.condition(R, F)


def _each(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`factors` in NumPy. Every problem is computed as if it were alone, so that no result depends on the others."""
    (G, n), d, X = w.shape, problem.X.shape[-1], problem.X
    (potrf, trtri), unit = arrays.lapack(), rounding.OF_FACTOR + rounding.summed(n)
    root, H = np.sqrt(w)[..., None], np.empty((G, d, d))
    if X.ndim == 3 and n <= FEW:  # all at once, where the rows fit into the cache
        Y = X * root
        np.matmul(Y.mT, Y, out=H)
    else:
        for k in range(G):
            Y = (X if X.ndim == 2 else X[k]) * root[k]
            np.matmul(Y.T, Y, out=H[k])
    H.reshape(G, d * d)[:, :: d + 1] += problem.rho[:, None]
    try:
        R = np.linalg.cholesky(H).mT
    except np.linalg.LinAlgError:
        R, bad = (np.stack(parts) for parts in zip(*map(potrf, H), strict=True))
        R[bad > 0] = np.nan  # which the condition number then shows
    F = np.stack([trtri(matrix)[0] for matrix in R])
    blur = unit * rounding.condition(R, F) ** 2
    for ill in np.flatnonzero(~(blur <= rounding.ILL)):
        rows = X if X.ndim == 2 else X[ill]
        R[ill], F[ill] = _from_rows(np.concatenate([rows * root[ill], problem.rho[ill] ** 0.5 * np.eye(d)]))
        blur[ill] = unit * rounding.condition(R[ill], F[ill])
    return R, F, blur


def _from_rows(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R and F with R'R = A'A = (FF')⁻¹, by QR with pivots. The longest rows come first, so that short ones count."""
    from scipy import linalg

    order = np.argsort(-np.vecdot(A, A), kind="stable")
    upper, columns = linalg.qr(A[order], mode="r", pivoting=True)
    upper = upper[: A.shape[1]]
    R, F = np.empty_like(upper), np.empty_like(upper)
    R[:, columns], F[columns] = upper, linalg.lapack.dtrtri(upper)[0]
    return R, F


def reach(problem: Problem, F: Array, w: Array, *, limit: Array | None = None, exact: bool = False) -> Array:
    """max ‖F'x‖ over the rows that count, at most: (G,).

    exact : the longest row is looked for, O(n d²); else the bound follows from the longest row and the smallest weight,
    and from the `limit` that is known already
    """
    xp, counts = arrays.namespace(F), problem.count > 0
    if exact:
        return xp.max(xp.where(counts, arrays.norms(problem.X @ F), 0.0), axis=-1)
    size = spread(F) if limit is not None else arrays.norms(arrays.norms(F))
    least = xp.min(xp.where(counts, problem.count * w, xp.inf), axis=-1)
    reach = xp.minimum(problem.longest * size, 1 / xp.sqrt(xp.where(least > 0, least, 1e-300)))
    return reach if limit is None else xp.minimum(reach, limit)


def spread(F: Array) -> Array:
    """A bound on ‖F‖₂ that is at most 1.2 times too large: ‖A‖₂ <= ‖A⁸‖^(1/8) in Frobenius' norm, for A = F'F."""
    A = F.mT @ F
    xp = arrays.namespace(A)
    size = xp.max(xp.abs(A), axis=(-2, -1))
    A = A / size[..., None, None]
    for _ in range(3):
        A = A @ A
    return xp.sqrt(size * arrays.norms(arrays.norms(A)) ** (1 / 8))

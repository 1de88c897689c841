"""The Hessian of J by its square roots, and how long rows are in the norm of its inverse.

H = ρI + Σ w xx' = R'R,     H⁻¹ = FF',     w = ω μ'(x'θ)
"""

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models.glm import rounding
from dither.models.glm.problem import Look, Problem
from dither.models.glm.rounding import summed

ILL = 4e-9  # relative error of the eigenvalues of H above which its factor is made from the rows, by QR
ROUNDING = 8e-16  # relative error of the eigenvalues for each unit of the condition number; that of sums comes on top
LOST = 1.0  # relative error of the eigenvalues above which no factor is right
FEW = 256  # rows up to which the longest of them in the norm of H⁻¹ is always looked for


def computed(
    problem: Problem, theta: Array, look: Look, *, link: Link, only: Array | None = None, old: tuple | None = None
) -> tuple:
    """`factors` at theta (G, d), where the rounding of the weights counts too."""
    R, F, blur = factors(problem, look.size, only=only, old=old)
    faint = rounding.curvature(problem, theta, look.size, look.zmax, link=link)
    return R, F, blur + faint if only is None else arrays.namespace(blur).where(only, blur + faint, blur)


def factors(problem: Problem, w: Array, *, only: Array | None = None, old: tuple | None = None) -> tuple:
    """R and F (G, d, d) of H with weights w (G, n), and how far rounding may put the log eigenvalues of H off (G,).

    only : (G,) the problems whose factors are made; the others keep those in `old`
    """
    if type(w) is np.ndarray:
        return _each(problem, w, only, old)
    xp = arrays.namespace(w)
    R, unit = arrays.cholesky(arrays.gram(problem.X, w, problem.rho)), ROUNDING + summed(w.shape[-1])
    F = None if R is None else xp.linalg.inv(R)
    blur = None if R is None else unit * condition(R, F) ** 2
    if R is None or blur is None or arrays.some(~(blur <= ILL)):
        eye = xp.eye(problem.X.shape[-1], dtype=w.dtype, device=arrays.device(w))
        rows = xp.concat([xp.sqrt(problem.rho)[..., None, None] * eye, xp.sqrt(w)[..., None] * problem.X], axis=-2)
        R = xp.linalg.qr(rows, mode="reduced")[1]
        F = xp.linalg.inv(R)
        blur = unit * condition(R, F)
    new = (R, F, blur)
    if only is None or old is None or old[1] is None:
        return new
    axes = ((..., None, None), (..., None, None), ())
    return tuple(
        b if a is None else xp.where(only[i] if i else only, b, a) for a, b, i in zip(old, new, axes, strict=True)
    )


def _each(problem: Problem, w: np.ndarray, only: np.ndarray | None, old: tuple | None) -> tuple:
    """`factors` in NumPy. Every problem is computed as if it were alone, so that no result depends on the others."""
    (G, n), d = w.shape, problem.X.shape[-1]
    unit = ROUNDING + summed(n)
    runs = np.arange(G) if only is None else np.flatnonzero(only)
    root, H = np.sqrt(w[runs])[..., None], np.empty((len(runs), d, d))
    from scipy.linalg import lapack  # an eighth of what `import dither` would take

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
    F = np.stack([lapack.dtrtri(own)[0] for own in R])
    blur = unit * condition(R, F) ** 2
    for bad in np.flatnonzero(~(blur <= ILL)):
        run = runs[bad]
        X = problem.X if problem.X.ndim == 2 else problem.X[run]
        R[bad], F[bad] = _from_rows(np.concatenate([X * root[bad], problem.rho[run] ** 0.5 * np.eye(d)]))
        blur[bad] = unit * condition(R[bad], F[bad])
    if len(runs) == G:
        return R, F, blur
    old = (None, None, None) if old is None else old
    parts = [np.zeros((G, *A.shape[1:])) if B is None else B.copy() for A, B in zip((R, F, blur), old, strict=True)]
    for all_of, own in zip(parts, (R, F, blur), strict=True):
        all_of[runs] = own
    return tuple(parts)


def _from_rows(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R and F with R'R = A'A = (FF')⁻¹, by QR with pivots. The longest rows come first, so that short ones count."""
    from scipy import linalg

    order = np.argsort(-np.vecdot(A, A), kind="stable")
    upper, columns = linalg.qr(A[order], mode="r", pivoting=True)
    upper = upper[: A.shape[1]]
    R, F = np.empty_like(upper), np.empty_like(upper)
    R[:, columns], F[columns] = upper, linalg.lapack.dtrtri(upper)[0]
    return R, F


def _root(H: np.ndarray) -> np.ndarray:
    """The lower factor of H; NaN where there is none, which the condition number then shows."""
    try:
        return np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return np.full_like(H, np.nan)


def condition(R: Array, F: Array) -> Array:
    """The condition number of R once its columns have length 1, at most, in Frobenius' norm: (...).

    Rounding moves the log eigenvalues of R'R by a few units times this number if R comes from QR of the rows, and times
    its square if R comes from Cholesky. The scaled columns make this independent of the units of the features.
    """
    xp, d = arrays.namespace(R), R.shape[-1]
    columns = xp.sum(R * R, axis=-2)
    size = xp.sqrt(d * xp.sum(columns * xp.vecdot(F, F), axis=-1))
    return xp.where(size < 1e70, size, 1e70)  # NaN becomes 1e70 too


def reach(problem: Problem, F: Array, w: Array, *, known: Array | None = None, exact: bool = False) -> Array:
    """max ‖F'x‖ over the rows that count, at most: (G,).

    exact : the longest row is looked for, O(n d²); else the bound follows from the longest row and the smallest weight,
    and from what is `known` already
    """
    xp, counts = arrays.namespace(F), problem.count > 0
    if exact:
        return xp.max(xp.where(counts, arrays.norms(problem.X @ F), 0.0), axis=-1)
    size = spread(F) if known is not None else arrays.norms(arrays.norms(F))
    least = xp.min(xp.where(counts, problem.count * w, xp.inf), axis=-1)
    reach = xp.minimum(problem.longest * size, 1 / xp.sqrt(xp.where(least > 0, least, 1e-300)))
    return reach if known is None else xp.minimum(reach, known)


def spread(F: Array) -> Array:
    """A bound on ‖F‖₂ that is at most 1.2 times too large: ‖A‖₂ <= ‖A⁸‖^(1/8) in Frobenius' norm, for A = F'F."""
    A = F.mT @ F
    xp = arrays.namespace(A)
    size = xp.max(xp.abs(A), axis=(-2, -1))
    A = A / size[..., None, None]
    for _ in range(3):
        A = A @ A
    return xp.sqrt(size * arrays.norms(arrays.norms(A)) ** (1 / 8))

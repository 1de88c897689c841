"""What rounding in float64 may do to an estimate, in the norm of H⁻¹, if every product is rounded the worst way.

The unit of float64 is u = 2⁻⁵³. A sum of d products is off by at most d u times the sum of their sizes. The gradient
∇J(θ) = Σ e x + ρθ has errors from two sources:

    the residuals    e_i is off by a few u (|e_i| + what is subtracted in it), and by ω μ' times the error of its logit,
                     which is (d + 1) u Σ_j |x_ij θ_j|. As H >= Σ ω μ' xx', errors c_i of the residuals add up to
                     ‖Σ c_i x_i‖² <= Σ c_i² min(1/(ω μ'), reach²)
    the sum          each coordinate is rounded for itself, so that this error is no sum of rows:
                     u Σ_j ‖F_j‖ Σ_i |e_i x_ij|

Of any x, |x_j| <= ‖x‖ √H_jj in the norm of H⁻¹, and row j of F is √(H⁻¹)_jj long. So products with F and θ are off by

    ‖fl(F'x) - F'x‖ <= d u ‖x‖ Σ √(H_jj (H⁻¹)_jj)            `spread`
    |fl(x'θ) - x'θ| <= d u ‖x‖ Σ √H_jj |θ_j|                  `length`

Cholesky's factor is that of H + E with |E_jk| <= d u √(H_jj H_kk) at most. With columns of length 1 that is d² u beside
eigenvalues of at least 1/Σ H_jj (H⁻¹)_jj. Nothing here depends on the units of the columns: where columns are divided
by t_j, H_jj becomes H_jj/t_j², (H⁻¹)_jj becomes t_j² (H⁻¹)_jj, θ_j becomes t_j θ_j.
"""

from dither.base import arrays
from dither.base.arrays import Array
from dither.models.glm.objective import Look, Problem, back, logits

UNIT = 2.0**-53  # u
FEW = 8 * UNIT  # a few roundings
FAINT = 1e-10  # change of the log eigenvalues of H, and error of the slope, above which a closer bound is computed
OF_FACTOR = 8e-16  # relative error of the eigenvalues of H for each unit of its condition number, beside that of sums
ILL = 4e-9  # relative error of the eigenvalues of H above which its factor is made from the rows, by QR
LOST = 1.0  # relative error of the eigenvalues above which no factor is right
UNDERFLOW = 40.0  # |η| above which probit's μ' is 0 in float64; only probit has an M that grows with |η|


def gradient(problem: Problem, theta: Array, look: Look, *, F: Array, reach: Array, most: Array) -> Array:
    """How far ∇J(θ) as computed is from the true one, at most: (G,).

    look : J at theta (G, d); F, reach : as of `batched.Solution`
    most : (G,) errors above this are computed row by row, and not bounded by the longest row
    """
    xp, e, size = arrays.namespace(theta), look.e, look.size
    d = problem.X.shape[-1]
    lever = 1 / xp.sqrt(xp.where(size > 1e-200, size, 1e-200))  # ‖x‖ in the norm of H⁻¹ is at most this and reach
    lever = xp.where(lever < reach[..., None], lever, reach[..., None])
    length = arrays.norms(theta)
    rows = arrays.norms((xp.abs(e) + _taken(problem)) * lever) + d * xp.sqrt(problem.rho) * length
    return FEW * rows + _sums(problem, e, F, most=most) + _slip(problem, theta, length, size, most=most)


def spread(diagonal: Array, inverse: Array) -> Array:
    """Σ √(H_jj (H⁻¹)_jj), from both diagonals (..., d): (...). It is d where H is diagonal."""
    xp = arrays.namespace(diagonal)
    return xp.sum(xp.sqrt(diagonal * inverse), axis=-1)


def length(diagonal: Array, theta: Array) -> Array:
    """Σ √H_jj |θ_j|, from the diagonal of H (..., d): (...)."""
    xp = arrays.namespace(theta)
    return xp.vecdot(xp.sqrt(diagonal), xp.abs(theta))


def of_cholesky(diagonal: Array, inverse: Array) -> Array:
    """How far a factor of H by Cholesky puts the log eigenvalues of H off, from both diagonals (..., d): (...)."""
    d = diagonal.shape[-1]
    return d * d * UNIT * arrays.namespace(diagonal).vecdot(diagonal, inverse)


def summed(n: int) -> float:
    """How far a sum of n terms is off, for each unit of the sum of their sizes. BLAS sums in blocks, hence the root."""
    return UNIT * (4 + n**0.5 / 4)


def _sums(problem: Problem, e: Array, F: Array, *, most: Array) -> Array:
    """The error of the sum Σ e x, u Σ_j ‖F_j‖ Σ_i |e_i x_ij| with the rows F_j of F, at most: (G,)."""
    xp, n = arrays.namespace(e), e.shape[-1]
    rows = arrays.norms(F)
    sums = summed(n) * n**0.5 * arrays.norms(e) * problem.longest * arrays.norms(rows)
    rough = sums > most
    if not arrays.some(rough):
        return sums
    return xp.where(rough, summed(n) * xp.vecdot(rows, back(xp.abs(problem.X), xp.abs(e))), sums)


def curvature(problem: Problem, theta: Array, size: Array, zmax: Array) -> Array:
    """How far the rounding of the weights ω μ' puts the log eigenvalues of H off, at most: (...).

    size (G, n) are those weights, zmax (G,) is max |x'θ|. A logit that is off by δ changes μ' by a share of M δ. A row
    whose μ' is 0 in float64 has no part in H, so its logit does not count.
    """
    xp, d = arrays.namespace(theta), theta.shape[-1]
    unit, most = UNIT * (d + 8), xp.where(zmax < UNDERFLOW, zmax, UNDERFLOW)
    faint = unit * problem.link.M(most) * problem.longest * arrays.norms(theta)
    if arrays.some(faint > FAINT):
        products = xp.where(size > 0, logits(xp.abs(problem.X), xp.abs(theta)), 0.0)
        faint = xp.where(faint > FAINT, unit * problem.link.M(most) * xp.max(products, axis=-1), faint)
    return faint + unit


def condition(R: Array, F: Array) -> Array:
    """The condition number of R once its columns have length 1, at most, in Frobenius' norm: (...).

    Rounding moves the log eigenvalues of R'R by a few units times this number if R comes from QR of the rows, and times
    its square if R comes from Cholesky. The scaled columns make this independent of the units of the features.
    """
    xp, d = arrays.namespace(R), R.shape[-1]
    columns = xp.sum(R * R, axis=-2)
    size = xp.sqrt(d * xp.sum(columns * xp.vecdot(F, F), axis=-1))
    return xp.where(size < 1e70, size, 1e70)  # NaN becomes 1e70 too


def _taken(problem: Problem) -> Array:
    """The size of what is subtracted from ω μ in each residual: (G, n).

    It is 0 where the rewards of a row were all 0 or all 1: there the links do not subtract nearly equal numbers.
    """
    size = arrays.namespace(problem.total).abs(problem.total)
    if problem.link.support == (0.0, 1.0):
        size = arrays.namespace(size).where(problem.total == problem.count, 0.0, size)
    return size


def _slip(problem: Problem, theta: Array, length: Array, size: Array, *, most: Array) -> Array:
    """The error of the slope from rounding of the logits, √Σ ωμ' ((d + 1) u Σ_j |x_j θ_j|)², at most: (G,)."""
    xp, unit = arrays.namespace(theta), UNIT * (theta.shape[-1] + problem.link.rounded)
    slip = unit * problem.longest * length * xp.sqrt(xp.sum(size, axis=-1))
    rough = slip > most
    if not arrays.some(rough):
        return slip
    products = xp.sqrt(size) * logits(xp.abs(problem.X), xp.abs(theta))
    largest = xp.maximum(xp.max(products, axis=-1), xp.full_like(slip, 1e-150))
    return xp.where(rough, unit * largest * arrays.norms(products / largest[..., None]), slip)

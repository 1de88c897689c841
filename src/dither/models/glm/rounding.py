"""What float64 does to an estimate, in the norm of H⁻¹: bounds in which every product counts as rounded the worst way.

u = 2⁻⁵³, the unit of float64: a product of d terms is right to d u times the sum of their sizes. Of ∇J(θ) = Σ e x + ρθ

    the residuals    e_i is right to a few u (|e_i| + what is subtracted in it), and to ω μ' times the error of its
                     logit, (d + 1) u Σ_j |x_ij θ_j|;  ‖Σ c_i x_i‖² <= Σ c_i² min(1/(ω μ'), reach²), as H >= Σ ω μ' xx'
    the sum          every coordinate is rounded apart, so that the error is no sum of rows: u Σ_j ‖F_j‖ Σ_i |e_i x_ij|
"""

from dither import arrays
from dither.arrays import Array
from dither.links import Link
from dither.models.glm.problem import Problem, back, logits

UNIT = 2.0**-53
FEW = 8 * UNIT  # a few roundings
FAINT = 1e-10  # change of the log eigenvalues of H above which it is looked at more closely
UNDERFLOW = 40.0  # |η| above which φ(η) is 0 in float64: what is beyond counts for no link whose M is not a constant


def gradient(
    problem: Problem, theta: Array, e: Array, size: Array, *, F: Array, reach: Array, link: Link, most: Array
) -> Array:
    """How far ∇J(θ) as computed is from the true one, at most: (G,).

    e, size (G, n) residuals and ω μ' at theta (G, d); F, reach as of `newton.Solution`; most: (G,) above which the
    logits' own error is looked at and not bounded by the longest row
    """
    xp = arrays.namespace(theta)
    d = problem.X.shape[-1]
    lever = 1 / xp.sqrt(xp.where(size > 1e-200, size, 1e-200))  # >= ‖x‖ in the norm of H⁻¹, as is reach
    lever = xp.where(lever < reach[..., None], lever, reach[..., None])
    length = arrays.norms(theta)
    rows = arrays.norms((xp.abs(e) + _taken(problem, link=link)) * lever) + d * xp.sqrt(problem.rho) * length
    return FEW * rows + _sums(problem, e, F, most=most) + _slip(problem, theta, length, size, link=link, most=most)


def summed(n: int) -> float:
    """How far a sum of n terms is off for each unit of the sum of their sizes: what BLAS leaves, in blocks."""
    return UNIT * (4 + n**0.5 / 4)


def _sums(problem: Problem, e: Array, F: Array, *, most: Array) -> Array:
    """What rounding of Σ e x does to it, u Σ_j ‖F_j‖ Σ_i |e_i x_ij| with the rows of F, at most: (G,)."""
    xp, n = arrays.namespace(e), e.shape[-1]
    rows = arrays.norms(F)
    sums = summed(n) * n**0.5 * arrays.norms(e) * problem.longest * arrays.norms(rows)
    rough = sums > most
    if not arrays.some(rough):
        return sums
    return xp.where(rough, summed(n) * xp.vecdot(rows, back(xp.abs(problem.X), xp.abs(e))), sums)


def curvature(problem: Problem, theta: Array, size: Array, zmax: Array, *, link: Link) -> Array:
    """How far the weights ω μ' as computed put the log eigenvalues of H off, at most: (...).

    size (G, n) those weights, zmax (G,) max |x'θ|. A logit that is off by δ puts μ' off by M δ of itself; where μ' is 0
    in float64 the row is not there.
    """
    xp, d = arrays.namespace(theta), theta.shape[-1]
    unit, most = UNIT * (d + 8), xp.where(zmax < UNDERFLOW, zmax, UNDERFLOW)
    faint = unit * link.M(most) * problem.longest * arrays.norms(theta)
    if arrays.some(faint > FAINT):
        own = xp.where(size > 0, logits(xp.abs(problem.X), xp.abs(theta)), 0.0)
        faint = xp.where(faint > FAINT, unit * link.M(most) * xp.max(own, axis=-1), faint)
    return faint + unit


def _taken(problem: Problem, *, link: Link) -> Array:
    """What is subtracted from ω μ where that may cancel: not where all rewards of a row were 0 or 1. (G, n)"""
    size = arrays.namespace(problem.total).abs(problem.total)
    if link.support == (0.0, 1.0):
        size = arrays.namespace(size).where(problem.total == problem.count, 0.0, size)
    return size


def _slip(problem: Problem, theta: Array, length: Array, size: Array, *, link: Link, most: Array) -> Array:
    """What rounding of the logits does to the slope, √Σ ωμ' ((d + 1) u Σ_j |x_j θ_j|)², at most: (G,)."""
    xp, unit = arrays.namespace(theta), UNIT * (theta.shape[-1] + link.rounded)
    slip = unit * problem.longest * length * xp.sqrt(xp.sum(size, axis=-1))
    rough = slip > most
    if not arrays.some(rough):
        return slip
    own = xp.sqrt(size) * logits(xp.abs(problem.X), xp.abs(theta))
    largest = xp.maximum(xp.max(own, axis=-1), xp.full_like(slip, 1e-150))
    return xp.where(rough, unit * largest * arrays.norms(own / largest[..., None]), slip)

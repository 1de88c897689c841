"""A `GLM` whose Ĥ is not the Hessian of its objective: another λ, a least slope, or an estimate over ‖θ‖ <= S.

Then the factor of the Hessian, G, is kept beside the factor F of Ĥ. `stretch` says how much longer a vector can be in
the norm of Ĥ than in that of the Hessian: a bound in the one norm becomes one in the other.
"""

from typing import Any

from dither import links
from dither.base import arrays, trees
from dither.base.arrays import Array
from dither.models.glm import batched, hessian, objective
from dither.models.glm.batched import Aim, Curvature, Solution
from dither.models.glm.objective import Problem

TRIES = 3  # solutions at most, where the norms of Ĥ and of the objective's Hessian differ
EDGE = 1e-10  # relative distance from S at which ‖θ‖ counts as S


def floored(model: Any, slope: Array) -> Array:
    """max(μ', `min_derivative`)."""
    return arrays.namespace(slope).where(slope > model.min_derivative, slope, model.min_derivative)


def near_edge(model: Any, state: Any) -> Array:
    """Which runs' estimates may have ‖θ‖ = S: (R,)."""
    size = arrays.norms(arrays.norms(state.G))  # no vector of length 1 in the norm of H is longer than this
    inside = arrays.norms(state.theta) + state.lazy.bound[..., 0] * size < model.constrain
    return (state.lazy.nu > 0) | ~inside


def solved(model: Any, state: Any, problem: Problem, aim: Aim, H: Curvature) -> tuple[Any, Solution]:
    """The state with the factor of Ĥ, ν and the stretch of a solution; and that solution. aim, H as of `batched.solve`.

    But tol is in the norm of Ĥ, so a solution must be better in the norm of the Hessian.
    """
    nu, longer, F, blur = state.lazy.nu, state.lazy.stretch, state.F, state.lazy.blur
    solution = rough = None  # type: Any
    for _ in range(TRIES):
        sharper = aim._replace(tol=aim.tol / longer)
        start = state.theta if solution is None else solution.theta
        new = batched.solve(problem, start, sharper, H)
        if model.constrain is not None:
            new, nu = projected(model, problem, new, nu, sharper.tol / 4, model.rho_of(state))
        solution = new if solution is None else trees.choose(rough, new, solution)
        F, blur = widths(model, state, problem, solution, nu)
        longer = stretch(F, solution.F)
        rough = solution.bound[..., 0] * longer > model.tol
        if aim.drift is None or not arrays.some(rough):
            break
    state = state._replace(F=F, lazy=state.lazy._replace(nu=nu, stretch=longer))
    return state, solution._replace(blur=blur)


def widths(model: Any, state: Any, problem: Problem, solution: Solution, nu: Array) -> tuple[Array, Array]:
    """F of Ĥ, and how far rounding may put the log eigenvalues of Ĥ off (R,)."""
    xp, link = arrays.namespace(nu), problem.link
    learnt = not arrays.some(~xp.isfinite(state.lazy.bound[..., 0]))  # one by one, and not by `learn.taken`
    if learnt and model.min_derivative >= link.L(links.LARGEST_LOGIT):
        return state.F, xp.maximum(state.lazy.blur, solution.blur)  # Ĥ = λI + Σ m xx', whatever θ̂ is
    slope = floored(model, link.slopes(objective.logits(problem.X, solution.theta))[1])
    _, F, blur = hessian.factors(problem._replace(rho=xp.zeros_like(nu) + model.lam_of(state)), problem.count * slope)
    return F, xp.maximum(blur, solution.blur)


def stretch(F: Array, G: Array) -> Array:
    """‖F⁻¹G‖, and at least 1: (...)."""
    xp = arrays.namespace(F)
    size = xp.linalg.svdvals(xp.linalg.solve(F, G))[..., 0]
    return xp.where(size > 1, size, 1.0)


def projected(
    model: Any, problem: Problem, solution: Solution, nu: Array, tol: Array, rho: Array | float
) -> tuple[Solution, Array]:
    """The solution over ‖θ‖ <= S and its multiplier ν >= 0, by Newton's method on 1/‖θ(ν)‖ inside a bracket."""
    xp, S = arrays.namespace(nu), model.constrain
    low, high = xp.zeros_like(nu), xp.full_like(nu, xp.inf)
    for _ in range(100):
        length = arrays.norms(solution.theta)
        dual = arrays.norms(arrays.dot(solution.F.mT, solution.theta))  # ‖θ‖ in the norm of H⁻¹
        dual = xp.where(dual > 0, dual, 1.0)
        slack = EDGE * S + tol * dual / xp.where(length > 0, length, 1.0)  # the error of the solution may be so large
        over = (length > S + slack) | ((nu > 0) & (length < S - slack))
        if not arrays.some(over):
            break
        low, high = xp.where(length > S, nu, low), xp.where(length < S, nu, high)
        new = nu + (length / S - 1) * (length / dual) ** 2
        middle = xp.where(xp.isfinite(high), (low + high) / 2, 4 * nu + rho)
        new = xp.where((new <= 0) & (low == 0), 0.0, new)
        new = xp.where((new > low) & (new < high) | (new == 0) & (low == 0), new, middle)
        nu = xp.where(over, new, nu)
        harder = problem._replace(rho=nu + rho)
        again = batched.solve(harder, solution.theta, Aim(tol), Curvature(solution.F))
        solution = trees.choose(over, again, solution)
    gap = xp.where(nu > 0, xp.abs(length - S) * length / dual, 0.0)
    inside = (S / xp.where(length > S, length, S))[..., None]
    bound = solution.bound + xp.stack([gap, xp.zeros_like(gap)], axis=-1)
    return solution._replace(theta=solution.theta * inside, bound=bound), nu

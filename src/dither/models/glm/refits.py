"""Refits of the history of a GLM with other rewards: policies that perturb the history ask for one in every round."""

import math
from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import history
from dither.models.glm import batched, hessian, objective
from dither.models.glm.batched import Aim, Curvature
from dither.models.glm.objective import Problem

PRECISE = 1e-3  # E of a refit: the perturbation moves the estimate by about √d, which is far more
TRUSTED = 0.3  # change of a logit up to which a factor of the curvature serves for another step
ENTRIES_AT_ONCE = 2**22  # rows times features of the draws that are solved together


def refitted(
    model: Any, state: Any, lead: tuple[int, ...], *, shift: Array | None, count: Array | None, total: Array | None
) -> Array:
    """`GLM.refit`; `lead` are the leading axes of the answer: the state's, or draws where the state has none."""
    xp, d = arrays.namespace(state.theta), state.theta.shape[-1]
    rows, kept, rho = state.history, state.lazy, model.rho_of(state)
    n = history.blocks(int(xp.max(rows.rows)))
    if not int(xp.max(rows.rows)) or 0 in lead:
        start = xp.broadcast_to(state.theta, (*lead, d))
        return start + (0.0 if shift is None else shift / (xp.zeros_like(kept.xmax) + rho)[..., None])
    G, alone = math.prod(lead), rows.X.ndim == 2

    def flat(A: Any, *shape: int) -> Any:
        return None if A is None else xp.reshape(xp.broadcast_to(A, (*lead, *shape)), (G, *shape))

    X = rows.X[..., :n, :] if alone else flat(rows.X[..., :n, :], n, d)
    counts, totals = ((A if B is None else B)[..., :n] for A, B in ((rows.count, count), (rows.total, total)))
    rho, tol = (xp.zeros_like(kept.xmax) + value for value in (rho, PRECISE))
    F = None if count is not None else state.F if state.G is None else state.G  # other counts have another curvature
    off = xp.where(kept.nu > 0, xp.inf, kept.bound[..., 1])  # over ‖θ‖ <= S, F is of H + νI: too small
    whole: list[Any] = [flat(counts, n), flat(totals, n), flat(rho), flat(kept.xmax), flat(shift, d)]
    whole += [flat(tol), flat(state.theta, d), flat(xp.where(off < TRUSTED, off, xp.inf)), flat(F, d, d)]
    step, drift, estimates = max(1, ENTRIES_AT_ONCE // (n * d)) if alone else G, TRUSTED + 2 * PRECISE, []
    for i in range(0, G, step):
        draws = slice(i, i + step)
        parts: list[Any] = [None if A is None else A[draws, ...] for A in whole]
        *parts, tol, theta, off, F = parts
        problem = Problem(model.function, X if alone else X[draws, ...], *parts)
        H = Curvature(reach=xp.full_like(tol, xp.inf))
        if F is not None:
            z = objective.logits(problem.X, theta)
            reach = hessian.reach(problem, F, problem.link.slopes(z)[1])
            H = Curvature(F, None, xp.where(off < TRUSTED, reach, xp.inf), off, off, z)
        aim = Aim(tol, drift, stale=TRUSTED, looked=(1.0, drift))
        estimates.append(batched.solve(problem, theta, aim, H).theta)
    return xp.reshape(xp.concat(estimates, axis=0), (*lead, d))

"""Refits of the history of a GLM with other rewards: policies that perturb the history ask for one in every round."""

from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import history
from dither.models.glm import batched
from dither.models.glm.batched import Aim
from dither.models.glm.objective import Problem

PRECISE = 1e-3  # E of a refit: the perturbation moves the estimate by about √d, which is far more
TRUSTED = 0.3  # change of a logit up to which a factor of the curvature serves for another step
ENTRIES_AT_ONCE = 2**22  # rows times features of the draws that are solved together


def refitted(
    model: Any, state: Any, lead: tuple[int, ...], *, shift: Array | None, count: Array | None, total: Array | None
) -> Array:
    """`GLM.refit`; `lead` are the leading axes of the answer: the state's, or draws where the state has none."""
    xp, d = arrays.namespace(state.theta), state.theta.shape[-1]
    rows = state.history
    n = history.blocks(int(xp.max(rows.rows)))
    if not int(xp.max(rows.rows)) or 0 in lead:
        start = xp.broadcast_to(state.theta, (*lead, d))
        return start + (0.0 if shift is None else shift / model.rho)
    alone = rows.X.ndim == 2
    G = 1
    for size in lead:
        G *= size

    def flat(A: Any, *shape: int) -> Any:
        return None if A is None else xp.reshape(xp.broadcast_to(A, (*lead, *shape)), (G, *shape))

    X = rows.X[..., :n, :] if alone else flat(rows.X[..., :n, :], n, d)
    counts = flat((rows.count if count is None else count)[..., :n], n)
    totals = flat((rows.total if total is None else total)[..., :n], n)
    kept, F, trusted = state.lazy, None, None
    if count is None:  # with other counts the curvature is not that of θ̂
        F = flat(state.F if state.G is None else state.G, d, d)
        trusted = flat(xp.where(kept.nu > 0, xp.inf, kept.bound[..., 1]))  # over ‖θ‖ <= S, F is of H + νI: too small
    rho, tol = (flat(xp.full_like(kept.xmax, value)) for value in (model.rho, PRECISE))
    theta, b, longest = flat(state.theta, d), flat(shift, d), flat(kept.xmax)
    step = max(1, ENTRIES_AT_ONCE // (n * d)) if alone else G
    estimates = []
    for i in range(0, G, step):
        draws = slice(i, i + step)

        def part(A: Any, draws: slice = draws) -> Any:
            return None if A is None else A[draws, ...]

        problem = Problem(X if alone else X[draws, ...], *map(part, (counts, totals, rho, longest, b)))
        aim = Aim(part(tol), drift=TRUSTED + 2 * PRECISE, stale=TRUSTED, looked=True)
        how = {"F": part(F), "trusted": part(trusted)}
        estimates.append(batched.solve(problem, part(theta), link=model.function, aim=aim, **how).theta)
    return xp.reshape(xp.concat(estimates, axis=0), (*lead, d))

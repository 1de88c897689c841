"""Refits of the history of a GLM with other rewards: policies that perturb the history ask for one in every round."""

from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import history
from dither.models.glm import near
from dither.models.glm.problem import Problem

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
    own_count = flat((rows.count if count is None else count)[..., :n], n)
    own_total = flat((rows.total if total is None else total)[..., :n], n)
    theta, b = flat(state.theta, d), flat(shift, d)
    F = flat(state.F if state.G is None else state.G, d, d)
    kept = state.lazy
    trusted = flat(xp.where(kept.nu > 0, xp.inf, kept.bound[..., 1]))  # over ‖θ‖ <= S, F is of H + νI: too small
    if count is not None:
        F = trusted = None  # with other counts the curvature is not that of θ̂
    rho, longest = flat(xp.full_like(state.lazy.xmax, model.rho)), flat(state.lazy.xmax)
    step = G if not alone else max(1, ENTRIES_AT_ONCE // (n * d))
    found = []
    for i in range(0, G, step):
        part = slice(i, i + step)
        given = Problem(
            X if alone else X[part, ...],
            own_count[part, ...],
            own_total[part, ...],
            rho[part],
            longest[part],
            None if b is None else b[part, ...],
        )
        how: dict[str, Array] = {} if F is None else dict(F=F[part, ...], trusted=trusted[part])
        start, tol = theta[part, ...], xp.full_like(rho[part], PRECISE)
        found.append(near.solve(given, start, link=model.function, tol=tol, drift=TRUSTED, **how).theta)
    return xp.reshape(xp.concat(found, axis=0), (*lead, d))

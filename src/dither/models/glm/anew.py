"""What a `GLM` does where λ is that of its first rows (`models/penalty.py`): λ is set anew, and θ̂ and Ĥ with it.

The history is read at each of the few moments of the rule. Where "online" keeps no more rows, which are rows of small
weights, the model of the objective stands for them. Let δ be what λ has grown by:

    H ← H + δI            θ ← θ - H⁻¹ δθ

At a moment λ is at least half of what it was, so H is at least half of what it was too. The first λ comes before all
that there is to learn from, so nothing but λ is replaced there.
"""

from typing import Any

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models import factor, penalty
from dither.models.glm import batched, learn, rounding
from dither.models.penalty import Rule


def announced(model: Any, state: Any, rule: Rule) -> Any:
    """The state whose λ is that of the rule."""
    xp, before = arrays.namespace(state.theta), state
    moved, state = rule.lam != before.rule.lam, state._replace(rule=rule)
    if not arrays.some(moved):
        return state
    if penalty.too_long(before.rule, rule, d=state.theta.shape[-1]):
        raise batched.not_held()
    extra = state.extra
    if extra is not None and extra.gram_width is not None:
        V = _shifted(extra.gram_width, model, state, before)
        extra = extra._replace(gram_width=xp.where(moved[..., None, None], V[1], extra.gram_width))
        state = state._replace(extra=extra)
    if model.solver == "online" and arrays.some(full := moved & (state.history.rows >= learn.WARM)):
        state, moved = _moved(model, state, before, full), moved & ~full
    if arrays.some(moved):
        state = learn.passed(model, learn.doubted(state, moved), moved)
    if not arrays.finite(state.theta):
        raise errors.overflow()
    return state


def _moved(model: Any, state: Any, before: Any, runs: Array) -> Any:
    """The state with the new λ in these runs (...), without a look at the rows."""
    xp, kept = arrays.namespace(state.theta), state.lazy
    lam, old = model.lam_of(state), model.lam_of(before)
    wide = runs[..., None, None]
    H, F = _shifted(state.F, model, state, before)
    new = state._replace(F=xp.where(wide, F, state.F), H=None if state.H is None else xp.where(wide, H, state.H))
    if state.G is not None and model.ridge is not None:  # the objective has a λ of its own
        longer = xp.sqrt(xp.maximum(lam / old, xp.ones_like(lam)))
        return new._replace(lazy=kept._replace(stretch=xp.where(runs, longer * kept.stretch, kept.stretch)))
    if state.G is not None:
        H, F = _shifted(state.G, model, state, before)
        new = new._replace(G=xp.where(wide, F, state.G))
    half = arrays.dot(F.mT, (lam - old)[..., None] * state.theta)
    theta = state.theta - arrays.dot(F, half)
    diagonal, inverse = xp.linalg.diagonal(H), xp.vecdot(F, F)
    kappa = rounding.of_cholesky(diagonal, inverse)
    slip = kappa * arrays.norms(half)
    noise, blur = xp.sqrt(kept.noise * kept.noise + slip * slip), kept.blur + kappa
    parts = {"noise": xp.where(runs, noise, kept.noise), "blur": xp.where(runs, blur, kept.blur)}
    parts["diagonal"] = xp.where(runs[..., None], diagonal, kept.diagonal)
    parts["inverse"] = xp.where(runs[..., None], inverse, kept.inverse)
    return new._replace(theta=xp.where(runs[..., None], theta, state.theta), lazy=kept._replace(**parts))


def _shifted(F: Array, model: Any, state: Any, before: Any) -> tuple[Array, Array]:
    """H with the λ of the state and a factor of its inverse, for H⁻¹ = FF' with the λ before: (..., d, d) each."""
    xp = arrays.namespace(F)
    eye, R = factor.identity(F[..., 0]), xp.linalg.inv(F)
    lam, old = model.lam_of(state), model.lam_of(before)
    H = R.mT @ R + (lam - old)[..., None, None] * eye
    H = xp.where((before.rule.square > 0)[..., None, None], H, lam[..., None, None] * eye)
    root = arrays.root_of_inverse(H)
    if root is None:
        raise errors.overflow()
    return H, root

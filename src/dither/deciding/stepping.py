"""One decision by the compiled step (`src/_step`), where there is one, and where policy and model say how they score.

    the policy   `rule`: its scores are m + z c w of one z, m + w or m, and its `view` is that of the rule
    the model    `factors`: m = x'θ and w = ‖F'x‖, for all arms or in each slot

Chance is drawn before the step is asked. The step answers only where twice the margins of `propensity/coupled.py` hold,
so that both roads show the same arm. Where it does not answer nothing has changed, and the view decides from the same
chance. The step takes one request without values, minima or a baseline. It takes no class of a user's, and what a class
inherits does not count, since a subclass may see, draw or learn otherwise.
"""

import functools
from typing import Any, TypeAlias

import numpy as np

from dither import noise
from dither.base import compiled
from dither.base.streams import Uniforms
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.models.model import factored

UNIFORMS = 3  # what a request for one arm spends: for ties, for the coin of what is uniform, for the uniform arm
_SCORES = {"drawn": 0, "optimistic": 1, "mean": 2}  # `enum score` of step.h
_NOT_MINE = None, None
Drawn: TypeAlias = tuple[tuple[Any, ...], np.ndarray]  # the policy's chance of one request, and u (3,)


def told(
    request: Request,
    share: float,
    policy: Any,
    model: Any,
    state: Any,
    t: int,
    dim: int,
    chance: np.random.Generator,
    ties: Uniforms,
) -> tuple[tuple[Any, ...] | None, Drawn | None]:
    """What is shown for one request, as of `decision.decide`, where a share of choices is uniform.

    policy, model, state, t, dim : those of a `Moment`; chance, ties : the streams

    In its place None where the step does not tell; then what was drawn, from which the view is to decide, or None where
    the request is not for the step and nothing was drawn.
    """
    step, X, mask = compiled.STEP, request.X, request.mask
    if step is None or request.values is not None or request.minimum is not None or request.baseline is not None:
        return _NOT_MINE
    kinds: Any = type(policy), type(model)
    if not _declared(*kinds):
        return _NOT_MINE
    by, norm, law, coupled, along, score = policy.rule(model, state, t=t, d=X.shape[-1])
    normal = type(law) is noise.Gaussian
    if not coupled or along is not None or (not normal and isinstance(law, noise.Points)):
        return _NOT_MINE
    if type(by) is not float and np.ndim(by):
        return _NOT_MINE
    of = model.factors(state, norm)
    if of is None:
        return _NOT_MINE
    z = u = demands = None
    at, wanted, instead = 0.0, -1, -1
    if score == "drawn":
        if normal:
            z = at = chance.standard_normal()  # the number that `draw` has, without an array
        else:
            ((at,),) = type(policy).draw(policy, chance, 1, arms=request.shape[-1], dim=dim)
            z = at = float(at)
    if share:
        u, demands = ties.random(UNIFORMS), Demands(request.shape, mask, share)
        if u[1] < share:
            wanted = int(demands.any(u[2]))
            instead = -1 if z is None else wanted
    decided = step.choose(X, mask, of, by, _SCORES[score], at, instead)
    if decided is None:
        return None, (() if z is None else (np.float64(z),), ties.random(UNIFORMS) if u is None else u)
    arm, p, low, high = decided
    if u is None:
        ties.pass_over(UNIFORMS)
    if z is None:  # the policy itself has no chance: what the coin shows in place of its arm it never shows
        p = 1.0
        if wanted >= 0:
            arm, p = wanted, float(wanted == arm)
    elif not normal:
        p = law.mass(low, high)
    return (arm, p if demands is None else float(demands.of_one(p, arm)), "exact", None, z), None


@functools.lru_cache(maxsize=256)
def _declared(policy: type, model: type) -> bool:
    """Whether both classes are of this library, and say themselves how they score."""
    return policy.__module__.startswith("dither.") and "rule" in vars(policy) and factored(model)

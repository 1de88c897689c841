"""One decision by the compiled step (`src/_step`), where there is one, and where policy and model say how they score.

    the policy   `rule`: its scores are m + z c w of one z, m + w or m, and its `view` is that of the rule
    the model    `factors`: m = x'θ and w = ‖F'x‖, for all arms or in each slot

Chance is drawn before the step is asked. The step answers only where twice the margins of `propensity/coupled.py` hold,
so that both roads show the same arm. Where it does not answer nothing has changed, and the view decides from the same
chance. The step takes one request without values, minima or a baseline. It takes no class of a user's, and what a class
inherits does not count, since a subclass may see, draw or learn otherwise.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import noise
from dither.base import compiled
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.models.model import factored

if TYPE_CHECKING:
    from dither.deciding.decision import Moment

_SCORES = {"drawn": 0, "optimistic": 1, "mean": 2}  # `enum score` of step.h


def asked(now: "Moment", request: Request, demands: Demands) -> tuple[Any, ...] | None:
    """How the step is to score a request: factors, scale, score, and the law of z; None: it is not for the step."""
    policy, model, state, t, _ = now
    kinds: Any = type(policy), type(model)
    if compiled.STEP is None or request.values is not None or not _declared(*kinds):
        return None
    if demands.outright is not None or demands.safe is not None:
        return None
    by, norm, law, coupled, along, score = policy.rule(model, state, t=t, d=request.X.shape[-1])
    if not coupled or along is not None or (type(by) is not float and np.ndim(by)):
        return None
    if type(law) is not noise.Gaussian and isinstance(law, noise.Points):
        return None
    of = model.factors(state, norm)
    return None if of is None else (of, by, _SCORES[score], law)


@functools.lru_cache(maxsize=256)
def _declared(policy: type, model: type) -> bool:
    """Whether both classes are of this library, and say themselves how they score."""
    return policy.__module__.startswith("dither.") and "rule" in vars(policy) and factored(model)


def answer(
    asked: tuple[Any, ...], request: Request, chance: tuple, u: np.ndarray, demands: Demands
) -> tuple[Any, ...] | None:
    """Arm, propensity, its kind, its standard error and z; None: the step does not tell."""
    (theta, F, lost, rho, omega, scales), by, score, law = asked
    step, share, z, wanted = compiled.STEP, demands.uniform, None, -1
    if step is None:
        return None
    if share and u[1] < share:
        wanted = int(demands.any(u[2]))
    at, instead = 0.0, -1
    if chance:
        z = at = float(chance[0])
        instead = wanted
    told = step.choose(request.X, request.mask, theta, F, lost, rho, omega, scales, by, score, at, instead)
    if told is None:
        return None
    arm, p, low, high = told
    if z is None:  # the policy itself has no chance: what the coin shows in place of its arm it never shows
        p = 1.0
        if wanted >= 0:
            arm, p = wanted, float(wanted == arm)
    elif type(law) is not noise.Gaussian:
        p = law.mass(low, high)
    return arm, float(demands.of_one(p, arm)) if share else p, "exact", None, z

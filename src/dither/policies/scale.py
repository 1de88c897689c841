"""c_t: how many widths one unit of the perturbation is worth. Policies that perturb share these choices.

    a number     σ c
    a function   σ c(t)
    "oful"       √λ S + σ √(2 log T + d log(1 + t/(λ d)))   `theory.oful`; figure 2b of the paper
    "theory"     β_t(δ/(4T)) with R = σ                    `theory.beta`; Theorem 1 of the paper

T is the horizon, or t where there is none; δ = 1/T unless given; σ is the sd of the reward noise. Where a model
forgets, t under the second logarithm is the sum of what t observations count: it bounds the trace of V.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from dither import theory
from dither.base import errors
from dither.models.model import link

Named = Literal["oful", "theory"]
Scale = float | Named | Callable[[int], float]
NAMES = get_args(Named)


def check(policy: Any, c: Scale) -> None:
    """Refuse a c that is none of the four kinds, and settings that are not positive numbers where they must be.

    The policy has sigma, S, horizon and delta.
    """
    if isinstance(c, str):
        if c not in NAMES:
            raise errors.unknown("schedule of c", c, names=("a number", *NAMES))
    elif not callable(c):
        errors.within("c", c, 0, errors.LARGEST)
    errors.positive("sigma", policy.sigma)
    errors.positive("S", policy.S)
    errors.at_least("horizon", policy.horizon, 1, or_none=True)
    if policy.delta is not None and not 0 < policy.delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {policy.delta!r}")


def needs(c: object) -> frozenset[str]:
    """What the schedule asks of a model."""
    if not isinstance(c, str):
        return frozenset()
    return frozenset({"theory": {"lam", "lipschitz"}, "oful": {"lam"}}.get(c, set()))


def value(policy: Any, model: Any, state: Any, t: int, *, d: int) -> Any:
    """c_t, a number, or an array (...) where it depends on the data; d features.

    The policy has c, sigma, S, horizon and delta.
    """
    c = policy.c
    if callable(c):
        at_t = c(t)
        errors.within(f"c({t})", at_t, 0, errors.LARGEST)
        return policy.sigma * at_t
    if not isinstance(c, str):
        return policy.sigma * c
    d, T = model.ambient(d), policy.horizon or t
    if c == "oful":
        return theory.oful(model.seen(t), d=d, lam=model.lam, S=policy.S, R=policy.sigma, T=T)
    L, M = model.lipschitz(state, policy.S), link(model).concordance(policy.S)
    delta = min(policy.delta or 1 / T, 0.5) / (4 * T)
    return theory.beta(t, d=d, lam=model.lam, S=policy.S, M=M, L=L, delta=delta, R=policy.sigma)

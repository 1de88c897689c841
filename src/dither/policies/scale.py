"""c_t: how many widths one unit of the perturbation is worth. Policies that perturb share these choices.

    a number     σ c
    a function   σ c(t)
    "oful"       √λ S + σ √(2 log T + d log(1 + t/(λ d)))   `theory.oful`; figure 2b of the paper
    "theory"     β_t(δ/(4T)) with R = σ                    `theory.beta`; Theorem 1 of the paper

sigma="auto" takes σ̂ and τ̂ of what was learnt (`models/units.py`): a number or a function is then a factor of the
widths that the model gives in units of rewards. The two schedules with a name prove something about a σ that is known,
so they refuse it.

T is the horizon, or t where there is none; δ = 1/T unless given; σ is the sd of the reward noise. Where a model
forgets, t under the second logarithm is the sum of what t observations count: it bounds the trace of V.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from dither import theory
from dither.base import errors
from dither.models.model import link

AUTO = "auto"  # of sigma
Sigma = float | Literal["auto"]
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
    sigma(policy, theorem=f"c={c!r}" if isinstance(c, str) else None)
    errors.positive("S", policy.S)
    errors.at_least("horizon", policy.horizon, 1, or_none=True)
    if policy.delta is not None and not 0 < policy.delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {policy.delta!r}")


def sigma(policy: Any, *, theorem: str | None, instead: str = "c=1.0") -> None:
    """Refuse a sigma that is neither above 0 nor "auto", and "auto" beside a theorem (the setting that asks for it)."""
    if not finds(policy):
        errors.positive("sigma", policy.sigma)
    elif theorem is not None:
        raise ValueError(
            f"sigma='auto' finds the scale of the noise, and {theorem} proves its radius for a sigma that is known: "
            f"give sigma a number, or give a number in place of the theorem, as in {instead}"
        )


def finds(policy: Any) -> bool:
    """Whether σ is found, and no number of the user's."""
    return isinstance(policy.sigma, str) and policy.sigma == AUTO


def number(policy: Any) -> float:
    """σ; 1 where it is found, since the widths then have the unit of rewards."""
    return 1.0 if finds(policy) else policy.sigma


def width(policy: Any) -> str:
    """The ability that gives the widths that c is a factor of."""
    return "error_width" if finds(policy) else "width"


def needs(c: object) -> frozenset[str]:
    """What the schedule asks of a model."""
    if not isinstance(c, str):
        return frozenset()
    return frozenset({"theory": {"lam", "lipschitz"}, "oful": {"lam"}}.get(c, set()))


def value(policy: Any, model: Any, state: Any, t: int, *, d: int) -> Any:
    """c_t, a number, or an array (...) where it depends on the data; d features.

    The policy has c, sigma, S, horizon and delta.
    """
    c, unit = policy.c, number(policy)
    if callable(c):
        at_t = c(t)
        errors.within(f"c({t})", at_t, 0, errors.LARGEST)
        return unit * at_t
    if not isinstance(c, str):
        return unit * c
    d, T = model.ambient(d), policy.horizon or t
    if c == "oful":
        return theory.oful(model.seen(t), d=d, lam=model.lam_of(state), S=policy.S, R=policy.sigma, T=T)
    L, M = model.lipschitz(state, policy.S), link(model).concordance(policy.S)
    delta = min(policy.delta or 1 / T, 0.5) / (4 * T)
    return theory.beta(t, d=d, lam=model.lam_of(state), S=policy.S, M=M, L=L, delta=delta, R=policy.sigma)

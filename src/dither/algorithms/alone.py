"""What the user gives in place of a name: an `Algorithm`, or a policy alone, which is paired with `models.Ridge`."""

import dataclasses
import functools
import inspect
from typing import Any

from dither import models
from dither.algorithms.algorithm import UNSTATED, Algorithm
from dither.deciding import policy as policy_contract

CURE = "a policy alone is paired with Ridge: pair it with its model in dither.Algorithm(..., model=), and name that"


def algorithm(thing: Any, *, name: str) -> Algorithm:
    """The algorithm; or one of that name, of the policy class and `models.Ridge`.

    Raises TypeError for anything else.
    """
    if isinstance(thing, Algorithm):
        return thing
    if not isinstance(thing, type):
        kind = "an instance: name its class, and its settings after it" if _instance(thing) else "no policy"
        raise TypeError(
            f"{name} is {kind}; a policy is a frozen dataclass with needs, draw and view ({policy_contract.PAGE}), and "
            f"an algorithm a dither.Algorithm; got {thing!r}"
        )
    lacking = [part for part in policy_contract.REQUIRED if not hasattr(thing, part)]
    if lacking:
        raise TypeError(f"{name} is no policy: it lacks {', '.join(lacking)} ({policy_contract.PAGE})")
    if not dataclasses.is_dataclass(thing) or not thing.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(f"{name} must be a frozen dataclass: write @dataclass(frozen=True) above the class")
    return _alone(thing, name)


def _instance(thing: Any) -> bool:
    return all(hasattr(thing, part) for part in policy_contract.REQUIRED)


@functools.lru_cache(maxsize=128)
def _alone(policy: type, name: str) -> Algorithm:
    said = (inspect.getdoc(policy) or "").partition("\n\n")[0]
    return Algorithm(
        name,
        policy,
        summary=" ".join(said.split()) or f"{name}.",
        source="the user's own",
        perturbs=UNSTATED,
        propensity=UNSTATED,
        model=models.Ridge,
    )

"""How a model forgets: what an observation counts after others have come, or after some time has passed.

    discount   γ   a row counts γⁿ after n more observations          the clock: the observations of the model
    half_life  h   a row counts 2^(-a/h) at the age a                 the clock: the time `at` that the caller passes
    window     W   a row counts 1 among the last W observations, then 0

The penalty λ‖θ‖² never fades. So a model that has forgotten all is the model before its first observation.

A weight ω is ω observations, as everywhere. Under a discount they follow one another: what was known counts γ^ω, and
the row counts 1 + γ + ... = (1 - γ^ω)/(1 - γ). In a window the row is ω of the last W. By the clock it counts ω.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dither.base import arrays, errors
from dither.base.arrays import Array

BEFORE = -1e300  # the time before the first observation: earlier than any


OFF: dict[str, float | None] = {"discount": 1.0, "window": None, "half_life": None}  # nothing is forgotten in this way


class Fade(NamedTuple):
    """What n observations do to the weights."""

    left: Array | float  # (...)  what all that was known counts from now on
    weight: Array | None  # (..., n)  what each of them counts; None: 1
    now: Array | None  # (...)  the time; None without a clock


class Forgetting:
    """What models that can forget share. Their settings are fields of theirs, of which at most one is set.

    discount : γ in (0, 1]; 1: nothing is forgotten
    window : W, the number of observations that count; None: all
    half_life : h > 0, in units of the time that `update(at=)` is given; None: there is no clock
    """

    discount: float
    window: int | None
    half_life: float | None

    @functools.cached_property
    def fades(self) -> bool:
        """Whether older observations count for less by a factor."""
        return self.discount < 1 or self.half_life is not None

    @functools.cached_property
    def forgets(self) -> bool:
        """Whether anything is ever forgotten."""
        return self.fades or self.window is not None

    def seen(self, t: int) -> float:
        """The sum of what t observations count, at most: (1 - γ^t)/(1 - γ), min(t, W), or t."""
        if self.discount < 1:
            return min(-math.expm1(t * math.log(self.discount)) / (1 - self.discount), float(t))
        return t if self.window is None else min(t, self.window)


def check(settings: Forgetting) -> None:
    """Refuse settings that make no sense, or two ways at once."""
    errors.within("discount", settings.discount, 0, 1)
    if settings.discount == 0:
        raise ValueError("discount must be above 0, got 0: with 0 nothing would be learnt; window=1 keeps one row")
    errors.at_least("window", settings.window, 1, or_none=True)
    if settings.half_life is not None:
        errors.positive("half_life", settings.half_life)
    ways = [f"discount={settings.discount:g}"] * (settings.discount < 1)
    ways += [f"{name}={value:g}" for name in ("window", "half_life") if (value := getattr(settings, name)) is not None]
    if len(ways) > 1:
        raise ValueError(f"a model forgets in one way, got {' and '.join(ways)}: leave one of them out")


def in_the_way(settings: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The ways to forget among a model's settings, and not among new ones which bring another way: how each is off."""
    if all(value == OFF.get(name, value) for name, value in new.items()):
        return {}
    return {name: off for name, off in OFF.items() if name not in new and settings.get(name, off) != off}


def fade(model: Forgetting, r: Array, *, weight: Array | None, at: Array | None, now: Array | None) -> Fade:
    """What n observations with rewards r (..., n), weights and times (..., n) do; now (...) is the time before them."""
    xp, n = arrays.namespace(r), r.shape[-1]
    if model.half_life is not None:
        if not n:
            return Fade(1.0, weight, now)
        age = xp.maximum(now, xp.max(at, axis=-1))
        counts = halved(model, age[..., None] - at)
        return Fade(halved(model, age - now), counts if weight is None else weight * counts, age)
    if model.discount == 1:
        return Fade(1.0, weight, None)
    if weight is None and n == 1:
        return Fade(model.discount, None, None)
    log_gamma = math.log(model.discount)
    ones = xp.ones_like(r) if weight is None else weight
    total = xp.cumulative_sum(xp.flip(ones, axis=-1), axis=-1)
    later = xp.flip(total, axis=-1) - ones  # observations that come after each
    counts = xp.where(ones == 1, 1.0, xp.expm1(ones * log_gamma) / math.expm1(log_gamma))
    return Fade(xp.exp(xp.sum(ones, axis=-1) * log_gamma), counts * xp.exp(later * log_gamma), None)


def times(left: Array | float, A: Array) -> Array:
    """left A, for left (...) and any A of the same leading axes."""
    return (left if isinstance(left, float) else arrays.over(left, A)) * A


def halved(model: Forgetting, age: Array) -> Array:
    """2^(-age/h): (...)."""
    return arrays.namespace(age).exp(-age * (math.log(2) / (model.half_life or math.inf)))

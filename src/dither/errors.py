"""Errors that state the rule, the value and the cure."""

import difflib
import math
import numbers
from collections.abc import Iterable


def unknown(what: str, name: object, *, known: Iterable[str]) -> LookupError:
    """A name that is in no table: the near match, or all that there are."""
    names = list(known)
    near = [known for known in names if str(name) and known.startswith(str(name))]
    near = near or difflib.get_close_matches(str(name), names, n=1)
    return LookupError(
        f"no {what} {name!r}: " + (f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names)}")
    )


def missing_extra(package: str, *, extra: str) -> ImportError:
    """A package that only an extra brings."""
    return ImportError(f"this needs {package}, which is not installed: pip install 'dither[{extra}]'")


def positive(name: str, value: object) -> None:
    """Refuse all but a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")


def at_least(name: str, value: object, least: int) -> None:
    """Refuse all but a whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def within(name: str, value: object, low: float, high: float) -> None:
    """Refuse all but a number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} must lie in [{low:g}, {high:g}], got {value!r}")


def lacks(model: object, ability: str, *, policy: object) -> TypeError:
    """A policy that asks a model for what the model does not give."""
    return TypeError(
        f"{type(policy).__name__} needs {ability!r} of its model, which {type(model).__name__} does not give: "
        f"choose another model or another policy"
    )

"""What the user declares: the kinds of the fields, and the crosses. And the same as JSON has it."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dither.base import errors
from dither.features import records
from dither.features.kind import Kind
from dither.features.kinds import KINDS, Category

BEFORE = {"version": 1, "signed": True}  # settings that files of the format 1 do not have, and what was so then


def fields(side: str, kinds: Any) -> dict[str, Any]:
    """The fields of a side and their kinds."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise TypeError(f"{side} must be a dict field -> kind, such as {{'age': 'numeric'}}; got {kinds!r}")
    return {field(name): kind(name, one) for name, one in (kinds or {}).items()}


def plain(value: Any) -> Any:
    """A setting as Python has it: a whole number of NumPy as an int."""
    return value.__index__() if hasattr(value, "__index__") and not isinstance(value, bool) else value


def field(name: Any) -> str:
    """The name of a field. Raises ValueError for what is no name."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a field must be a text, got {name!r}")
    return name


def kind(name: str, one: Any) -> Any:
    """The kind of a field, which the user gives by its name, by its values, or as it is."""
    if isinstance(one, str):
        if one not in KINDS:
            raise ValueError(f"{name!r}: {errors.unknown('kind of field', one, names=KINDS)}")
        return KINDS[one]()
    one = records.column(one)
    if isinstance(one, Sequence):
        return Category(one)
    if isinstance(one, type) or not isinstance(one, tuple(KINDS.values())):
        raise ValueError(f"{name!r} must have a kind: one of {', '.join(KINDS)}, or a list of values; got {one!r}")
    return one


def crosses(cross: Any, context: Mapping[str, Kind], arm: Mapping[str, Kind]) -> tuple[tuple[str, ...], ...]:
    """The crosses, each a tuple of fields. Raises ValueError for fields that were not declared."""
    if isinstance(cross, str) and cross == "all":
        return tuple((one, other) for one in context for other in arm)
    if isinstance(cross, str) or (cross is not None and not isinstance(cross, Sequence)):
        raise ValueError(
            f"cross must be a list of pairs of fields, such as [('country', 'topic')], or 'all'; got {cross!r}"
        )
    products: list[tuple[str, ...]] = []
    for fields in cross or ():
        if isinstance(fields, str) or not isinstance(fields, Sequence) or len(fields) < 2:
            raise ValueError(f"each cross must be a pair of fields, such as ('country', 'topic'); got {fields!r}")
        for name in fields:
            if name not in context and name not in arm:
                raise ValueError(f"cross {tuple(fields)!r}: {errors.unknown('field', name, names=[*context, *arm])}")
        if len(set(fields)) < len(fields):
            raise ValueError(f"cross {tuple(fields)!r} has a field twice: name each once")
        if set(fields) in map(set, products):
            raise ValueError(f"cross {tuple(fields)!r} comes twice: leave out the repeats")
        products.append(tuple(fields))
    return tuple(products)


def settings(kind: Kind) -> dict[str, Any]:
    """A kind as JSON has it. What means the same as before there was a setting is left out, as it was then."""
    values = {part.name: getattr(kind, part.name) for part in dataclasses.fields(kind)}  # type: ignore[arg-type]
    lists = {name: list(value) if isinstance(value, tuple) else plain(value) for name, value in values.items()}
    return {"kind": kind.name} | {n: value for n, value in lists.items() if n not in BEFORE or value != BEFORE[n]}


def of_settings(settings: Mapping[str, Any]) -> Kind:
    """The kind that `settings` wrote."""
    return KINDS[settings["kind"]](**{name: value for name, value in _whole(settings).items() if name != "kind"})


def format(sides: Mapping[str, Mapping[str, Kind]], absent: Any) -> int:
    """The number of the format that holds these fields: 1 where no setting is newer."""
    kinds = [kind for of_side in sides.values() for kind in of_side.values()]
    if not isinstance(absent, str) or any(kind.takes_times for kind in kinds):
        return 3
    return 1 + any(name in settings(kind) for kind in kinds for name in BEFORE)


def _whole(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a kind with what they mean where they say nothing."""
    of_kind = {part.name for part in dataclasses.fields(KINDS[settings["kind"]])}
    return {name: value for name, value in BEFORE.items() if name in of_kind} | dict(settings)


def canonical(value: Any) -> bytes:
    """Lists and dicts as JSON. Equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@contextlib.contextmanager
def damaged(data: bytes, words: str) -> Iterator[None]:
    """A block that reads what `canonical` wrote. Whatever it raises is a ValueError: these bytes are ... (words)."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as reason:
        odd = reason if isinstance(reason, ValueError) else repr(reason)
        raise ValueError(f"these {len(data)} bytes are {words}: {odd}") from None


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What differs between the settings of two Features, in words."""
    for side in ("context", "arm"):
        there, here = dict(one[side]), dict(other[side])
        for name in {**there, **here}:
            if there.get(name) != here.get(name):
                return f"the field {name!r} of the {side} was {_short(there.get(name))} and is {_short(here.get(name))}"
        if list(there) != list(here):
            return f"the fields of the {side} have another order"
    return next(f"{name} was {one[name]!r} and is {other[name]!r}" for name in one if one[name] != other[name])


def _short(settings: Mapping[str, Any] | None) -> str:
    if settings is None:
        return "not there"
    whole = _whole(settings)
    rules = (f", {rule}={whole[rule]!r}" for rule in ("unknown", "missing", "version") if rule in whole)
    return str(of_settings(settings)) + "".join(rules)

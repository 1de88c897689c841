"""What stands for a field that a record lacks, or that has no value in it: what `absent=` of `Features` says.

    "error"      a record that lacks the field is refused. A value that is missing is what `missing=` of the kind says
    "missing"    a record may lack the field: then its value is missing
    "column"     the same, and a column of the field says so with a 1
    any other    a value of the field, which stands for it where it is absent or missing

`absent` is one of the first two for all fields, or field -> one of them, where fields that are not named are "error".
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.features import records
from dither.features.kind import Kind, Wrong

WORDS = ("error", "missing", "column")
OF_ALL = WORDS[:2]


class Absences(NamedTuple):
    """`absent` as it was settled, with the kinds that it asks for."""

    setting: str | dict[str, Any]  # as JSON has it
    optional: frozenset[str]  # the fields that a record may lack
    stands: dict[str, Any]  # field -> the value that stands for it
    kinds: dict[str, Kind]  # of all fields, where "column" has its column


def settled(absent: Any, kinds: Mapping[str, Kind]) -> Absences:
    """What `absent` says of the fields with these kinds.

    Raises ValueError for other words, for fields that are not declared, for a value that its field cannot take or does
    not know, and for a field whose `missing=` says another thing.
    """
    if not isinstance(absent, Mapping):
        errors.one_of("absent", absent, OF_ALL)
        return Absences(absent, frozenset(kinds if absent == "missing" else ()), {}, dict(kinds))
    rules, stands, of = {}, {}, dict(kinds)
    for name, rule in absent.items():
        if name not in kinds:
            raise ValueError(f"absent: {errors.unknown('field', name, names=kinds)}")
        if isinstance(rule, str) and rule == "error":
            continue
        if isinstance(rule, str) and rule in WORDS:
            rules[name] = "missing"
            if rule == "column":
                _plain(name, kinds[name], "column", more=("column",))
                of[name] = replace(kinds[name], missing="column")  # type: ignore[type-var]
            continue
        rules[name] = stands[name] = _value(name, kinds[name], rule)
    return Absences(rules or "error", frozenset(rules), stands, of)


def _plain(name: str, kind: Kind, rule: Any, *, more: tuple[str, ...] = ()) -> None:
    """Raise ValueError where the kind says otherwise what a missing value is."""
    if kind.missing not in ("zero", *more):
        raise ValueError(
            f"absent says {rule!r} for {name!r}, whose kind has missing={kind.missing!r}: say one of the two"
        )


def _value(name: str, kind: Kind, value: Any) -> Any:
    """A value that stands for a field, as JSON has it. Raises ValueError where the field cannot take it."""
    _plain(name, kind, value)
    value = records.as_json(value, f"what stands for {name!r}", kind.takes_times)
    if value is None:
        raise ValueError(f"absent must have a value, or one of {errors.quoted(WORDS)}, for {name!r}; got none")
    if kind.fitted:
        try:
            gaps = kind.write([value], np.zeros((1, len(kind.columns(name)))))
        except Wrong as reason:
            raise ValueError(f"what stands for {name!r} {reason}") from None
        if gaps.unknown:
            raise ValueError(
                f"what stands for {name!r} is {value!r}, which the field does not know: state it among its values"
            )
    return value

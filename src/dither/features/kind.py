"""What a kind of fields is: how the values of one field become columns, with what was fitted.

`write` raises `Wrong` for a value that the kind cannot take.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dither.features import records, values
from dither.features.values import Odd

RULES = ("zero", "column", "error")


class Met(NamedTuple):
    """The places of values that were missing, and of those that were unknown."""

    missing: Sequence[int] = ()
    unknown: Sequence[int] = ()


class Wrong(ValueError):
    """A value that its field cannot take, at a place among the values."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


class Kind(Protocol):
    """What `Features` asks of a kind of fields."""

    name: ClassVar[str]

    @property
    def missing(self) -> str:
        """One of `RULES`."""

    @property
    def fitted(self) -> bool:
        """Whether it can write values."""

    def fit(self, given: Sequence[Any]) -> Any:
        """The kind with what it learns from values."""

    def columns(self, field: str) -> list[str]:
        """The names of the columns of a field."""

    def write(self, given: Sequence[Any], out: np.ndarray) -> Met:
        """Write n values into out (n, width)."""


def at(i: int, rule: Any, value: Any) -> Any:
    """What a rule makes of the value at a place. Raises `Wrong`, which knows the place."""
    try:
        return rule(value)
    except Odd as reason:
        raise Wrong(i, str(reason)) from None


def texts(what: str, given: Any) -> tuple[str, ...]:
    """Different names of categories, or words."""
    given = records.column(given)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValueError(f"{what} must be a list of different values, got {given!r}")
    if not given:
        raise ValueError(f"{what} must be a list of at least one value, got none: leave it out to have it fitted")
    try:
        found = tuple(values.category(value) for value in given)
    except Odd as reason:
        raise ValueError(f"{what} {reason}") from None
    if twice := [text for i, text in enumerate(found) if text in found[:i]] if len(set(found)) < len(found) else []:
        raise ValueError(f"{what} must be different; {twice[0]!r} comes twice: leave out the repeats")
    return found


def escaped(text: str) -> str:
    """A value in the name of a column, where * stands between the parts of a cross."""
    return text.replace("\\", "\\\\").replace("*", "\\*")

"""What a kind of fields is: how the values of one field become columns, with what was fitted.

`write` raises `Wrong` for a value that the kind cannot take. `HashedKind` and `ListedKind` have what two kinds share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dither.base import errors
from dither.features import records, tokens, values
from dither.features.values import Odd

RULES = ("zero", "column", "error")


class Gaps(NamedTuple):
    """The places of values that were missing, of those that were unknown, and of texts in which words cancelled."""

    missing: Sequence[int] = ()
    unknown: Sequence[int] = ()
    cancelled: Sequence[int] = ()


class Wrong(ValueError):
    """A value that its field cannot take, at a place among the values."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


class Kind:
    """A kind of fields: a frozen dataclass of settings. This is the base of all of them."""

    name: ClassVar[str]  # in `KINDS`
    missing: str = "zero"  # one of `RULES`
    unknown: str = "zero"  # one of `RULES`
    takes_times: ClassVar[bool] = False  # whether times are values, which files hold as texts

    def __post_init__(self) -> None:
        errors.one_of("unknown", self.unknown, RULES)
        errors.one_of("missing", self.missing, RULES)

    @property
    def fitted(self) -> bool:
        """Whether it can write values."""
        return True

    def fit(self, column: Sequence[Any]) -> "Kind":
        """The kind with what it learns from values."""
        return self

    def columns(self, field: str) -> list[str]:
        """The names of the columns of a field: of its values, then `field (unknown)` and `field (missing)`."""
        more = [f"{field} ({what})" for what in ("unknown", "missing") if getattr(self, what) == "column"]
        return self.of_values(field) + more

    def of_values(self, field: str) -> list[str]:
        """The names of the columns for values that are neither missing nor unknown."""
        raise NotImplementedError

    def write(self, column: Sequence[Any], out: np.ndarray) -> Gaps:
        """Write n values into out (n, width), but for the columns that say that a value is unknown, or missing."""
        raise NotImplementedError


@dataclass(frozen=True)
class HashedKind(Kind):
    """A kind whose values go to `width` columns by a stable hash (`hashing`), so that nothing is fitted."""

    width: int = 32
    missing: str = "zero"
    version: int = tokens.VERSION  # of the rule for texts (`tokens`)

    def __post_init__(self) -> None:
        errors.at_least("width", self.width, 1)
        _known(self.version)
        super().__post_init__()

    def of_values(self, field: str) -> list[str]:
        """`field#0`, `field#1`, ..."""
        return [f"{field}#{i}" for i in range(self.width)]


class ListedKind(Kind):
    """A kind with a column for each text of a list, which is stated or fitted, and perhaps for what is not in it."""

    _learn: ClassVar[Any]  # the function that makes of these the list
    _list: ClassVar[str]  # the name of the setting that has the list
    _mark: ClassVar[str]  # what stands between the field and the text in the name of a column
    most: int | None
    least: int
    version: int  # of the rule for texts (`tokens`)
    _place: dict[str, int]  # text -> its column

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.at_least("most", self.most, 1, or_none=True)
        errors.at_least("least", self.least, 1)
        _known(self.version)
        if self.fitted:
            object.__setattr__(self, self._list, texts(self._list, getattr(self, self._list), self.version))
        object.__setattr__(self, "_place", {text: i for i, text in enumerate(getattr(self, self._list) or ())})

    def read(self, value: Any) -> Any:
        """The text of a value, or its texts."""
        raise NotImplementedError

    @property
    def fitted(self) -> bool:
        """Whether the list is there."""
        return getattr(self, self._list) is not None

    def fit(self, column: Sequence[Any]) -> "ListedKind":
        """With the texts that came, sorted."""
        parts = [part for i, value in enumerate(column) if (part := at(i, self.read, value)) is not None]
        return replace(self, **{self._list: self._learn(parts, most=self.most, least=self.least)})  # type: ignore[type-var]

    def of_values(self, field: str) -> list[str]:
        """`field=text` for each text; for words `field^text`."""
        return [f"{field}{self._mark}{escaped(text)}" for text in self._place]


def at(i: int, rule: Any, value: Any) -> Any:
    """What a rule makes of the value at a place; None where it is missing. Raises `Wrong`, which knows the place."""
    try:
        return None if values.missing(value) else rule(value)
    except Odd as reason:
        raise Wrong(i, str(reason)) from None


def _known(version: Any) -> None:
    """Raise ValueError for a number that no rule for texts has."""
    if version not in range(tokens.FIRST, tokens.VERSION + 1):
        raise ValueError(
            f"version must be the number of a rule for texts, {tokens.FIRST} to {tokens.VERSION}; got {version!r}"
        )


def texts(what: str, names: Any, version: int) -> tuple[str, ...]:
    """Different names of categories, or words."""
    names = records.column(names)
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ValueError(f"{what} must be a list of different values, got {names!r}")
    if not names:
        raise ValueError(f"{what} must be a list of at least one value, got none: leave it out to have it fitted")
    try:
        categories = tuple(values.category(name, version) for name in names)
    except Odd as reason:
        raise ValueError(f"{what} {reason}") from None
    if (twice := errors.repeated(categories)) is not None:
        raise ValueError(f"{what} must be different; {twice!r} comes twice: leave out the repeats")
    return categories


def escaped(text: str) -> str:
    """A value in the name of a column, where * stands between the parts of a cross."""
    return text.replace("\\", "\\\\").replace("*", "\\*")

"""Fields that are one of several values: a column for each value, or columns by a hash."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither.features import hashing, kind, tokens, transformers
from dither.features.values import category

_KEPT = 1 << 16  # hashed values that are remembered: about 10 MB


@dataclass(frozen=True)
class Category(kind.ListedKind):
    """One of several values, one-hot: a column for each value. The values are stated, or fitted.

    values : what the field can be, as texts (`values.category`); None: to be fitted
    unknown, missing : "zero": all columns are 0; "column": one more column has a 1; "error": it is refused
    version : of the rule for texts (`tokens`): 2; that of files of before is 1
    most, least : a fit keeps the `most` frequent values, of those that came at least `least` times
    """

    values: Sequence[Any] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = None
    least: int = 1
    version: int = tokens.VERSION
    name: ClassVar[str] = "category"
    _learn = staticmethod(transformers.categories)
    _list, _mark = "values", "="

    def read(self, value: Any) -> str:
        """The name of a category."""
        return category(value, self.version)

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Set the column of each value to 1."""
        return _one_hot(self.read, column, out, self._place, lambda text: -1)

    def __str__(self) -> str:
        return "category, not fitted" if self.values is None else f"category, {len(self.values)} values"


@dataclass(frozen=True)
class Hashed(kind.HashedKind):
    """One of very many values: a 1 in one of `width` columns, by a stable hash (`hashing`). Nothing is fitted.

    Values that share a column share what is learnt of it. With n values, a given value is alone in its column with
    probability (1 - 1/width)ⁿ⁻¹.
    """

    name: ClassVar[str] = "hashed"

    @functools.cached_property
    def _place(self) -> dict[str, int]:
        """Text -> its column, of those that came lately."""
        return {}

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Set the column of each value to 1."""
        return _one_hot(self.read, column, out, self._place, self._column)

    def read(self, value: Any) -> str:
        """The name of a category."""
        return category(value, self.version)

    def _column(self, text: str) -> int:
        if len(self._place) >= _KEPT:
            self._place.clear()
        self._place[text], _ = hashing.place(text, self.width)
        return self._place[text]

    def __str__(self) -> str:
        return f"category, hashed into {self.width} columns"


def _one_hot(
    read: Callable[[Any], str],
    column: Sequence[Any],
    out: np.ndarray,
    places: Mapping[str, int],
    other: Callable[[str], int],
) -> kind.Gaps:
    """Set one place in each row of out (n, width) to 1, that of the value.

    places : text -> its place; other : the place of a text that is not among them, -1 if it is unknown
    """
    if len(column) > 1:  # the usual case: all of them are among the places
        with contextlib.suppress(KeyError, TypeError):
            at = np.fromiter(map(places.__getitem__, column), np.intp, len(column))
            out[np.arange(len(column)), at] = 1.0
            return kind.Gaps()
    try:
        place = [places.get(value, -1) for value in column]
    except TypeError:  # a value that cannot be hashed, which is refused below
        place = [-1] * len(column)
    gone, odd = [], []
    for i in [i for i, one in enumerate(place) if one < 0]:
        text = kind.at(i, read, column[i])
        if text is None:
            gone.append(i)
            continue
        place[i] = places[text] if text in places else other(text)
        if place[i] < 0:
            odd.append(i)
    rows = [i for i, one in enumerate(place) if one >= 0]
    out[rows, [place[i] for i in rows]] = 1.0
    return kind.Gaps(gone, odd)

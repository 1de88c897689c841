"""Fields that are one of several values: a column for each value, or columns by a hash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dither.features import hashing, kind, transformers, values

_KEPT = 1 << 16  # hashed values that are remembered: about 10 MB


@dataclass(frozen=True)
class Category(kind.ListedKind):
    """One of several values, one-hot: a column for each value. The values are stated, or fitted.

    values : what the field can be, as texts (`values.category`); None: to be fitted
    unknown, missing : "zero": all columns are 0; "column": one more column has a 1; "error": it is refused
    most, least : a fit keeps the `most` frequent values, of those that came at least `least` times
    """

    values: tuple[str, ...] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = None
    least: int = 1
    name: ClassVar[str] = "category"
    _list, _mark = "values", "="

    def fit(self, column: Sequence[Any]) -> "Category":
        """With the values that came, sorted."""
        names = [each for i, value in enumerate(column) if (each := kind.at(i, _category, value)) is not None]
        return replace(self, values=transformers.categories(names, most=self.most, least=self.least))

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Set the column of each value to 1."""
        more = self.unknown == "column"
        unknown = len(self._place) if more else -1
        missing = len(self._place) + more if self.missing == "column" else -1
        return _one_hot(column, out, self._place, lambda text: -1, unknown=unknown, missing=missing)

    def __str__(self) -> str:
        return "category, not fitted" if self.values is None else f"category, {len(self.values)} values"


@dataclass(frozen=True)
class Hashed(kind.HashedKind):
    """One of very many values: a 1 in one of `width` columns, by a stable hash (`hashing`). Nothing is fitted.

    Values that share a column share what is learnt of it. With n values, a given value is alone in its column with
    probability (1 - 1/width)ⁿ⁻¹.
    """

    name: ClassVar[str] = "hashed"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_place", {})  # text -> its column, of those that came lately

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Set the column of each value to 1."""
        missing = self.width if self.missing == "column" else -1
        places: dict[str, int] = self._place  # type: ignore[attr-defined]
        return _one_hot(column, out, places, self._column, unknown=-1, missing=missing)

    def _column(self, text: str) -> int:
        places: dict[str, int] = self._place  # type: ignore[attr-defined]
        if len(places) >= _KEPT:
            places.clear()
        places[text], _ = hashing.place(text, self.width)
        return places[text]

    def __str__(self) -> str:
        return f"category, hashed into {self.width} columns"


def _category(value: Any) -> str | None:
    return None if values.missing(value) else values.category(value)


def _one_hot(
    column: Sequence[Any],
    out: np.ndarray,
    places: Mapping[str, int],
    other: Callable[[str], int],
    *,
    unknown: int,
    missing: int,
) -> kind.Gaps:
    """Set one place in each row of out (n, width) to 1, that of the value; -1 is no place.

    places : text -> its place; other : the place of a text that is not among them, -1 if it is unknown
    unknown, missing : the place of such values
    """
    try:
        at = [places.get(value, -1) for value in column]
    except TypeError:  # a value that cannot be hashed, which is refused below
        at = [-1] * len(column)
    gone, odd = [], []
    if -1 in at:
        for i in [i for i, place in enumerate(at) if place < 0]:
            text = kind.at(i, _category, column[i])
            if text is None:
                gone.append(i)
                at[i] = missing
                continue
            at[i] = places[text] if text in places else other(text)
            if at[i] < 0:
                odd.append(i)
                at[i] = unknown
        rows = [i for i, place in enumerate(at) if place >= 0]
        out[rows, [at[i] for i in rows]] = 1.0
    elif len(at) == 1:
        out[0, at[0]] = 1.0
    else:
        out[np.arange(len(at)), at] = 1.0
    return kind.Gaps(gone, odd)

"""Fields that are one of several values: a column for each value, or columns by a hash."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dither.base import errors
from dither.features import hashing, kind, transformers, values

_KEPT = 1 << 16  # hashed values that are remembered: about 10 MB


@dataclass(frozen=True)
class Category:
    """One of several values, one-hot: a column for each value. The values are stated, or fitted.

    values : what the field can be, as texts (`values.category`); None: to be fitted
    unknown, missing : "zero": all columns are 0; "column": one more column has a 1; "error": it is refused
    most, least : a fit keeps the `most` frequent values, of those that came at least `least` times
    """

    values: Sequence[Any] | None = None
    unknown: str = "zero"
    missing: str = "zero"
    most: int | None = None
    least: int = 1
    name: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        errors.one_of("unknown", self.unknown, kind.RULES)
        errors.one_of("missing", self.missing, kind.RULES)
        errors.at_least("most", self.most, 1, or_none=True)
        errors.at_least("least", self.least, 1)
        if self.values is not None:
            object.__setattr__(self, "values", kind.texts("values", self.values))
        object.__setattr__(self, "_place", {value: i for i, value in enumerate(self.values or ())})

    @property
    def fitted(self) -> bool:
        """Whether the values are known."""
        return self.values is not None

    def fit(self, given: Sequence[Any]) -> "Category":
        """With the values that came, sorted."""
        names = [each for i, value in enumerate(given) if (each := kind.at(i, _category, value)) is not None]
        return replace(self, values=transformers.categories(names, most=self.most, least=self.least))

    def columns(self, field: str) -> list[str]:
        """`field=value` for each value, then `field (unknown)` and `field (missing)`."""
        more = [f"{field} ({what})" for what in ("unknown", "missing") if getattr(self, what) == "column"]
        return [f"{field}={kind.escaped(value)}" for value in self.values or ()] + more

    def write(self, given: Sequence[Any], out: np.ndarray) -> kind.Met:
        """Set the column of each value to 1."""
        get = self._place.get  # type: ignore[attr-defined]
        try:
            at = [get(value, -1) for value in given]
        except TypeError:  # a value that cannot be hashed, which is refused below
            at = [-1] * len(given)
        gone, odd = [], []
        if -1 in at:
            for i, place in enumerate(at):
                if place >= 0:
                    continue
                text = kind.at(i, _category, given[i])
                at[i] = get(text, -1)
                if text is None:
                    gone.append(i)
                elif at[i] < 0:
                    odd.append(i)
            end = len(self.values or ())
            _extra(at, odd, end if self.unknown == "column" else None)
            _extra(at, gone, end + (self.unknown == "column") if self.missing == "column" else None)
            known = [i for i, place in enumerate(at) if place >= 0]
            out[known, [at[i] for i in known]] = 1.0
        elif len(at) == 1:
            out[0, at[0]] = 1.0
        else:
            out[np.arange(len(at)), at] = 1.0
        return kind.Met(gone, odd)

    def __str__(self) -> str:
        return "category, not fitted" if self.values is None else f"category, {len(self.values)} values"


@dataclass(frozen=True)
class Hashed:
    """One of very many values: a 1 in one of `width` columns, by a stable hash (`hashing`). Nothing is fitted.

    Values that share a column share what is learnt of it. With n values, a given value is alone in its column with
    probability (1 - 1/width)ⁿ⁻¹.
    """

    width: int = 32
    missing: str = "zero"
    name: ClassVar[str] = "hashed"
    fitted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        errors.at_least("width", self.width, 1)
        errors.one_of("missing", self.missing, kind.RULES)
        object.__setattr__(self, "_kept", {})

    def fit(self, given: Sequence[Any]) -> "Hashed":
        """Itself."""
        return self

    def columns(self, field: str) -> list[str]:
        """`field#0`, `field#1`, ..., then `field (missing)`."""
        return [f"{field}#{i}" for i in range(self.width)] + [f"{field} (missing)"] * (self.missing == "column")

    def write(self, given: Sequence[Any], out: np.ndarray) -> kind.Met:
        """Set the column of each value to 1."""
        get = self._kept.get  # type: ignore[attr-defined]
        try:
            at = [get(value, -1) for value in given]
        except TypeError:  # a value that cannot be hashed, which is refused below
            at = [-1] * len(given)
        gone = []
        if -1 in at:
            for i in (i for i, column in enumerate(at) if column < 0):
                text = kind.at(i, _category, given[i])
                if text is None:
                    gone.append(i)
                else:
                    at[i] = self._column(text)
            out[gone, self.width :] = 1.0
            known = [i for i, column in enumerate(at) if column >= 0]
            out[known, [at[i] for i in known]] = 1.0
        elif len(at) == 1:
            out[0, at[0]] = 1.0
        else:
            out[np.arange(len(at)), at] = 1.0
        return kind.Met(missing=gone)

    def _column(self, text: str) -> int:
        column, _ = hashing.place(text, self.width)
        kept: dict[str, int] = self._kept  # type: ignore[attr-defined]
        if len(kept) >= _KEPT:
            kept.clear()
        kept[text] = column
        return column

    def __str__(self) -> str:
        return f"category, hashed into {self.width} columns"


def _category(value: Any) -> str | None:
    return None if values.missing(value) else values.category(value)


def _extra(at: list[int], places: list[int], column: int | None) -> None:
    """Send the values at these places to an extra column, if there is one."""
    if column is not None:
        for i in places:
            at[i] = column

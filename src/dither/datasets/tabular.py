"""The table of a data set, as `reading.scan` reads it. It is refused where columns cannot be features or labels."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from dither.base import errors, reading

STRAY = 0.05  # share of the values of a text column: where no more of them are no numbers, these are mistakes
FEW = 20  # distinct values up to which a column may hold levels, even if they look like numbers
MANY = 6  # whole numbers among the names: those of a row go up with probability 1/720
FEWEST = 3  # numbers among the names that are enough to tell whether they count up
WITH_SIGN = r"^([$€£¥]\s?[+-]?\d[\d.,]*|[+-]?\d[\d.,]*\s?[%‰°$€£¥])$"
WITH_COMMA = r"^[+-]?\d[\d.,]*,\d[\d.,]*$"


def read(path: Path) -> Any:
    """The file as a polars frame: numbers, booleans and text.

    Raises FileNotFoundError, or ValueError for what is no table.
    """
    pl = errors.imported("polars", "polars", extra="experiments")
    try:
        scan = reading.scan(path)
        of_text = reading.kind(path) in reading.CSV
        names = _names(path) if of_text else []
        frame = scan.collect()
    except FileNotFoundError:
        raise
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as reason:
        rule = "; it must be UTF-8, with the same columns in every line" if reading.kind(path) in reading.CSV else ""
        raise ValueError(f"cannot read {path} as a table: {str(reason).strip().splitlines()[0]}{rule}") from None
    if frame.height == 0:
        raise ValueError(f"{path} has a header and no rows")
    if of_text:
        _no_row(names, frame, path, pl)
        for name in frame.select(pl.col(pl.String)).columns:
            _no_numbers(frame[name], path, pl)
    return frame


def _names(path: Path) -> list[str]:
    """The names of the columns. Raises ValueError for a first line that does not name two columns or more."""
    _, names = reading.header(path)
    if len(names) < 2:
        raise ValueError(f"{path} has one column only; separators may be comma, semicolon, tab, | and blanks")
    if not all(names):
        raise ValueError(f"column {names.index('') + 1} of {path} has no name in the first line: give each one a name")
    return names


def _no_row(names: list[str], frame: Any, path: Path, pl: Any) -> None:
    """Raise ValueError for a first line that is a row, which would be lost as the names of the columns.

    It is one if a name is a number, unless these numbers count up, as those of pixels and of years do: in equal steps,
    or, where there are many of them, with gaps. It is one, too, if each name stands among the values of its own column,
    or if two names of columns of text do.
    """
    numbers = pl.Series(names).cast(pl.Float64, strict=False).to_list()
    some = [(name, x) for name, x in zip(names, numbers, strict=True) if x is not None and math.isfinite(x)]
    among = [_among(name, frame[name], pl) for name in names]
    steps = [y - x for (_, x), (_, y) in pairwise(some)]
    counting = bool(steps) and steps[0] > 0 and all(abs(step - steps[0]) < 1e-6 * steps[0] for step in steps)
    plain = all(name.isdecimal() for name, _ in some)
    counting |= plain and len(some) >= MANY and min(steps) > 0
    if len(some) < FEWEST:
        doubted = [name for name, _ in some if not name.isdecimal() or among[names.index(name)]]
        counting = not doubted and (counting or len(some) < 2) and plain
    if some and (not counting or len(some) == len(names)):
        raise ValueError(
            f"the first line of {path} holds numbers, such as {some[0][0]!r}, and names must not be numbers: put a "
            "line with names above it, or the first row is lost"
        )
    of_text = [name for name, here in zip(names, among, strict=True) if here and frame[name].dtype == pl.String]
    if all(among) or len(of_text) > 1:
        raise ValueError(
            f"the first line of {path} looks like a row, since its values, such as {(of_text or names)[0]!r}, stand in "
            "their columns below too: put a line with names above it, or the first row is lost"
        )


def _among(name: str, column: Any, pl: Any) -> bool:
    """Whether the name of a column is one of its values."""
    if column.dtype == pl.Boolean:
        return name.lower() in ("true", "false")
    return bool((column.cast(pl.String) == name).any())


def _no_numbers(column: Any, path: Path, pl: Any) -> None:
    """Raise ValueError for a text column that is meant as numbers: all have commas or signs, or few are no numbers.

    As text each of its numbers would become a level of its own.
    """
    some = column.drop_nulls()
    if some.str.contains(WITH_COMMA).all():
        raise ValueError(
            f"column {column.name} of {path} holds numbers with commas, such as {some[0]!r}: write a decimal point, "
            "and nothing between thousands"
        )
    if some.str.contains(WITH_SIGN).all() and some.n_unique() > FEW:
        raise ValueError(
            f"column {column.name} of {path} holds numbers with signs, such as {some[0]!r}: write the numbers alone"
        )
    odd = column.is_not_null() & column.cast(pl.Float64, strict=False).is_null()
    if 0 < odd.sum() <= STRAY * len(some) and some.n_unique() > FEW:
        row = odd.arg_max()
        raise ValueError(
            f"column {column.name} of {path} holds numbers but for {odd.sum()} of {len(some):,} values, such as "
            f"{column[row]!r} in row {row + 1}: correct them, or leave them empty to be missing; where the numbers "
            "are names, put a letter before each"
        )


def no_numbers_with_zeros(column: Any, data: object) -> None:
    """Raise ValueError, with the value, for a column that is text because one of its numbers has a leading zero."""
    zero = column.str.contains(reading.NAME).fill_null(False)
    if not zero.any() or column.str.contains(r"[^0-9.+-]").any():
        return
    row = int(zero.arg_max())
    raise ValueError(
        f"column {column.name} of {data} holds {column.n_unique():,} names of digits, since {column[row]!r} in row "
        f"{row + 1} has a leading zero: write {column[row].lstrip('+-').lstrip('0') or '0'!r} if these are numbers; if "
        "they are names, such as postal codes, remove the column, or put them into groups"
    )

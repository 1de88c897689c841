"""The table of a data set, as `reading.scan` reads it. It is refused where columns cannot be features or labels."""

from pathlib import Path
from typing import Any

from dither.base import errors, reading

STRAY = 0.05  # share of the values of a text column: where no more of them are no numbers, these are mistakes
FEW = 20  # distinct values up to which a column may hold levels, even if they look like numbers
WITH_COMMA = r"^[+-]?\d[\d.,]*,\d[\d.,]*$"


def read(path: Path) -> Any:
    """The file as a polars frame: numbers, booleans and text.

    Raises FileNotFoundError, or ValueError for what is no table.
    """
    pl = errors.imported("polars", "polars", extra="experiments")
    of_text = False
    try:
        scan = reading.scan(path)
        of_text = reading.kind(path) in reading.CSV
        if of_text:
            _named(path, pl)
        frame = scan.collect()
    except FileNotFoundError:
        raise
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as reason:
        rule = "; it must be UTF-8, with the same columns in every line" if reading.kind(path) in reading.CSV else ""
        raise ValueError(f"cannot read {path} as a table: {str(reason).strip().splitlines()[0]}{rule}") from None
    if frame.height == 0:
        raise ValueError(f"{path} has a header and no rows")
    if of_text:
        for name in frame.select(pl.col(pl.String)).columns:
            _no_numbers(frame[name], path, pl)
    return frame


def _named(path: Path, pl: Any) -> None:
    """Raise ValueError for a first line that does not name two columns or more."""
    _, names = reading.header(path)
    if len(names) < 2:
        raise ValueError(f"{path} has one column only; separators may be comma, semicolon, tab and |")
    if not all(names):
        raise ValueError(f"column {names.index('') + 1} of {path} has no name in the first line: give each one a name")
    if pl.Series(names).cast(pl.Float64, strict=False).is_not_null().all():
        raise ValueError(f"the first line of {path} holds numbers, no names: put a line with names above it")


def _no_numbers(column: Any, path: Path, pl: Any) -> None:
    """Raise ValueError for a text column that is meant as numbers: all have commas, or few of them are no numbers.

    As text each of its numbers would become a level of its own.
    """
    some = column.drop_nulls()
    if some.str.contains(WITH_COMMA).all():
        raise ValueError(
            f"column {column.name} of {path} holds numbers with commas, such as {some[0]!r}: write a decimal point, "
            "and nothing between thousands"
        )
    odd = column.is_not_null() & column.cast(pl.Float64, strict=False).is_null()
    if 0 < odd.sum() <= STRAY * len(some) and some.n_unique() > FEW:
        row = odd.arg_max()
        raise ValueError(
            f"column {column.name} of {path} holds numbers but for {odd.sum()} of {len(some):,} values, such as "
            f"{column[row]!r} in row {row + 1}: correct them, or leave them empty to be missing; where the numbers "
            "are names, put a letter before each"
        )

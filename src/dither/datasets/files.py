"""A table in a file: CSV (any of the usual separators) or Parquet, as a polars frame of text, numbers and booleans."""

import codecs
import csv
import hashlib
from pathlib import Path
from typing import Any

from dither import errors

SEPARATORS = ",;\t|"
NOTHING = ("", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")  # in CSV: a value that is missing
CSV = (".csv", ".tsv", ".txt", ".data")
PARQUET = (".parquet", ".pq")
STRAY = 0.05  # of the values of a column of text: so few that are no numbers are mistakes
FEW = 20  # distinct values, which may be levels whatever they look like
WITH_COMMA = r"^[+-]?\d[\d.,]*,\d[\d.,]*$"
HEAD = 2**16  # bytes in which the separator is looked for


def read(path: Path) -> Any:
    """The file as a polars frame; in a CSV, columns of numbers are Float64, of true and false Boolean, else String.

    Raises FileNotFoundError, or ValueError for what is no table.
    """
    try:
        import polars as pl
    except ImportError:
        raise errors.missing_extra("polars", extra="experiments") from None
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    try:
        if path.suffix.lower() in PARQUET:
            frame = pl.read_parquet(path)
        elif path.suffix.lower() in CSV:
            frame = _read_csv(path, pl)
        else:
            raise ValueError(f"{path} must be a CSV ({', '.join(CSV)}) or Parquet file ({', '.join(PARQUET)})")
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as reason:
        rule = "" if path.suffix.lower() in PARQUET else "; it must be UTF-8, with the same columns in every line"
        raise ValueError(f"cannot read {path} as a table: {str(reason).strip().splitlines()[0]}{rule}") from None
    if frame.height == 0:
        raise ValueError(f"{path} has a header and no rows")
    return frame


def checksum(path: Path) -> str:
    """16 hexadecimal digits of the SHA-256 of a file."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _read_csv(path: Path, pl: Any) -> Any:
    separator, names = _header(path)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path} has {names.count(twice)} columns named {twice!r}: give each a name of its own")
    frame = pl.read_csv(path, separator=separator, infer_schema=False, truncate_ragged_lines=False)
    frame.columns = names
    frame = pl.DataFrame([_typed(frame[name], pl) for name in names])
    for name in frame.select(pl.col(pl.String)).columns:
        some = frame[name].drop_nulls()
        if some.str.contains(WITH_COMMA).all():
            raise ValueError(
                f"column {name} of {path} holds numbers with commas, such as {some[0]!r}: write a decimal point, and "
                "nothing between thousands"
            )
        _no_stray_words(frame[name], path, pl)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _no_stray_words(column: Any, path: Path, pl: Any) -> None:
    """Refuse text that is numbers but for a few values: each number would be a level of its own."""
    text = column.is_not_null()
    odd = text & column.cast(pl.Float64, strict=False).is_null()
    if odd.sum() <= STRAY * text.sum() and column.drop_nulls().n_unique() > FEW:
        row = odd.arg_max()
        raise ValueError(
            f"column {column.name} of {path} holds numbers but for {odd.sum()} of {text.sum():,} values, such as "
            f"{column[row]!r} in row {row + 1}: correct them, or leave them empty to be missing; where the numbers "
            "are names, put a letter before each"
        )


def _header(path: Path) -> tuple[str, list[str]]:
    """The separator and the names of the columns: the separator that splits the first lines alike, in most parts."""
    with path.open("rb") as file:
        start = file.read(HEAD)
    text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)  # not final: a letter may be cut at the end
    lines = text.splitlines()
    lines = lines[:-1] if len(start) == HEAD and len(lines) > 1 else lines
    found = []
    for separator in SEPARATORS:
        rows = [row for row in csv.reader(lines[:50], delimiter=separator) if row]
        alike = len({len(row) for row in rows}) == 1
        if rows:
            found.append((alike and len(rows[0]) > 1, len(rows[0]), separator, rows[0]))
    if not found or max(found, key=lambda f: f[:2])[1] < 2:
        raise ValueError(f"{path} has one column only; separators may be comma, semicolon, tab and |")
    _, _, separator, names = max(found, key=lambda f: f[:2])
    names = [name.strip() for name in names]
    if not all(names):
        raise ValueError(f"column {names.index('') + 1} of {path} has no name in the first line: give each one a name")
    if all(_is_number(name) for name in names):
        raise ValueError(f"the first line of {path} holds numbers, no names: put a line with names above it")
    return separator, names


def _typed(column: Any, pl: Any) -> Any:
    """Text as numbers or booleans where all of it is."""
    text = column.str.strip_chars()
    text = text.set(text.is_in(list(NOTHING)), None)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() == text.null_count():
        return number
    small = text.str.to_lowercase()
    if small.drop_nulls().is_in(["true", "false"]).all():
        return small == "true"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Tables in files, read in one way for logs and for `compare --data`.

    CSV         names in the first line; comma, semicolon, tab, | or blanks; UTF-8
    JSON lines  one object a line
    Parquet
    Arrow       IPC, as a file or as a stream (Feather)

Files that are packed with gzip, bzip2, xz or zstd are unpacked. The content of a file says how it is packed, not its
name.

In a CSV file blanks around a value do not count, a value in NOTHING is missing, and a line without a value is no row.
Every other line has a value for each name, which may be empty: a line with fewer is refused, as it may have been cut.
A column has the narrowest type that fits all its values: whole numbers, numbers, true and false, or else text. It stays
text if a whole number has a leading zero (`007` is a name) or is too large for 64 bits, unless the caller asks for
numbers, and if the caller says so. Where a caller names a column as names, such as those of arms, `NA` and `None` are
names too.
"""

import bz2
import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import lzma
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from dither.base import errors

SEPARATORS = ",;\t|"
BLANK = " "
NOTHING = ("", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")  # what stands in CSV for a missing value
CSV = (".csv", ".tsv", ".txt", ".data", ".dat")
JSON = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
PACKED = (".gz", ".bz2", ".xz", ".zst")
DAMAGED = (OSError, EOFError, lzma.LZMAError)  # what unpacking may raise
HEAD = 2**16  # bytes in which the separator is looked for, or more where the first line is longer
NAME = r"^[+-]?0\d+$"  # whole numbers that are meant as names
NEWLINE, CR = b"\n", b"\r"  # lines end with the first, with both, or, in very old files, with the second alone
DIGITS = r"^[+-]?\d+$"  # those that are too large for 64 bits are names, too, since a float would make two of them one


def scan(path: Path, *, text: Collection[str] = (), names: Collection[str] = (), numbers: Collection[str] = ()) -> Any:
    """The file as a lazy polars frame. In CSV the columns in `text` stay as they are written, without blanks around.

    names : columns that stay as written, too, and in which only an empty value is missing: `NA` is a name
    numbers : columns in which a leading zero does not make a name of a number

    Raises FileNotFoundError, ValueError for what is no table, and the errors of polars for a damaged file.
    """
    import polars as pl

    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    suffix = kind(path)
    source = path if opener(path) is None else io.BytesIO(content(path))
    if suffix in CSV:
        try:
            frame, lacks = _typed(_csv(source, path, names, pl), {*text, *names}, numbers, pl)
            if lacks:
                _whole(path)
            return frame
        except pl.exceptions.PolarsError:
            _even(path)
            raise
    if suffix in JSON:
        if content(path, len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            source = io.BytesIO(content(path).removeprefix(codecs.BOM_UTF8))
        return pl.scan_ndjson(source, infer_schema_length=None)
    if suffix in ARROW:
        return pl.scan_ipc(source) if content(path, 6) == MAGIC_ARROW else pl.read_ipc_stream(source).lazy()
    return pl.scan_parquet(source)


def kind(path: Path) -> str:
    """The suffix that says what the file holds, without the suffix of its packing."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = next((suffix for suffix in reversed(suffixes) if suffix not in PACKED), "")
    if suffix in (*CSV, *JSON, *PARQUET, *ARROW):
        return suffix
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"PAR1") or start == MAGIC_ARROW:
        return PARQUET[0] if start != MAGIC_ARROW else ARROW[0]
    raise ValueError(
        f"{path} must be a CSV ({', '.join(CSV)}), JSON lines ({', '.join(JSON)}), Parquet ({', '.join(PARQUET)}) or "
        f"Arrow file ({', '.join(ARROW)}), which may be packed ({', '.join(PACKED)})"
    )


def _zstd(path: Path, mode: str = "rb", encoding: str | None = None) -> Any:
    """Open a file that is packed with zstd, by the library that this Python has for it."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(path, mode, encoding=encoding)
    try:
        from pyarrow import input_stream
    except ImportError:
        raise ValueError(
            f"{path} is packed with zstd, which this Python cannot unpack alone: unpack it (zstd -d); or "
            f"{errors.missing_extra('pyarrow', extra='frames')}"
        ) from None
    binary = io.BufferedReader(input_stream(str(path), compression="zstd"))
    return io.TextIOWrapper(binary, encoding=encoding) if "t" in mode else binary


OPENERS = {  # the keys are the first bytes of a file
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": _zstd,
}
MAGIC_ARROW = b"ARROW1"


def opener(path: Path) -> Any:
    """The function that opens a packed file; None for a file that is not packed."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((opens for magic, opens in OPENERS.items() if start.startswith(magic)), None)


def content(path: Path, most: int = -1) -> bytes:
    """The bytes of a file, unpacked; at most `most` of them. Raises ValueError where the packing is damaged."""
    try:
        with (opener(path) or open)(path, "rb") as file:
            return file.read(most)
    except DAMAGED as reason:
        raise ValueError(f"{path} is packed and cannot be unpacked ({reason}): is the file whole?") from None


def checksum(path: Path) -> str:
    """16 hexadecimal digits of the SHA-256 of a file."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def stripped(name: str, nothing: Collection[str] = NOTHING) -> Any:
    """An expression: a column of text without blanks around its values, and with null for the missing ones."""
    import polars as pl

    column = pl.col(name).str.strip_chars()
    return pl.when(column.is_in(list(nothing))).then(None).otherwise(column).alias(name)


def _csv(source: Any, path: Path, as_names: Collection[str], pl: Any) -> Any:
    """The frame with all columns as text; a line without a value is a row of nulls."""
    separator, names = header(path)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"{path} has {names.count(twice)} columns named {twice!r} in its first line: give each a name of its own, "
            "or put a line with names above it where it has none"
        )
    start = content(path, HEAD)
    if CR in start and NEWLINE not in start:
        source = io.BytesIO(content(path).replace(CR, NEWLINE))
    if separator == BLANK:
        lines = content(path).decode("utf-8-sig").splitlines()
        source, separator = io.BytesIO("\n".join("\t".join(line.split()) for line in lines).encode()), "\t"
    frame = pl.scan_csv(
        source, separator=separator, infer_schema=False, truncate_ragged_lines=False, with_column_names=lambda _: names
    )
    return frame.with_columns(stripped(name, ("",) if name in as_names else NOTHING) for name in names)


def _decoded(start: bytes, path: Path) -> str:
    """The text with which a file begins. Raises ValueError for another encoding than UTF-8."""
    odd = "zero bytes, as UTF-16 has them"
    if b"\0" not in start:
        try:
            return codecs.getincrementaldecoder("utf-8-sig")().decode(start)  # not final: the last letter may be cut
        except UnicodeDecodeError as reason:
            odd = f"the byte {start[reason.start]:#04x} in line {start[: reason.start].count(NEWLINE) + 1}"
    raise ValueError(
        f"{path} must be text in UTF-8, and it holds {odd}: save it as UTF-8, such as by `iconv -f ENCODING -t UTF-8`, "
        "where the encoding of a file from Excel is often UTF-16 or WINDOWS-1252"
    )


def header(path: Path) -> tuple[str, list[str]]:
    """The separator and the names of the columns.

    The separator is the one that splits the first lines into equally many parts; of several, the one with most parts.
    Blanks, as many as there are, separate where nothing else does.
    """
    size = HEAD
    while len(start := content(path, size)) == size and NEWLINE not in start and CR not in start:
        size *= 2  # a table may have very many columns
    text = _decoded(start, path)
    lines = text.splitlines()
    if lines and lines[0].lower().startswith(("@relation", "@attribute", "@data")):
        raise ValueError(
            f"{path} begins with {lines[0][:40]!r}, as ARFF and KEEL files do: leave out the lines that begin with @, "
            "and put a line with the names of the columns above the rows"
        )
    lines = lines[:-1] if len(start) == size and len(lines) > 1 else lines
    ways: list[tuple[tuple[bool, int], str, list[str]]] = []
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines[:50], delimiter=separator) if row]
        except csv.Error:  # a field that is too long for it, as a line of very many names without this separator is
            continue
        alike = len({len(row) for row in rows}) == 1
        if rows:
            ways.append(((alike and len(rows[0]) > 1, len(rows[0])), separator, rows[0]))
    if not ways:
        raise ValueError(f"{path} has no line with names")
    (split, _), separator, names = max(ways, key=lambda way: way[0])
    words = [line.split() for line in lines[:50] if line.strip()]
    if not split and len(words) > 1 and len(words[0]) > 1 and len(set(map(len, words))) == 1 and '"' not in text:
        separator, names = BLANK, words[0]
    return separator, [name.strip() for name in names]


def _even(path: Path) -> None:
    """Raise ValueError, with the line, for a CSV file that is not UTF-8, or has a line with more values than names."""
    separator, names = header(path)
    text = _decoded(content(path), path)
    with contextlib.suppress(csv.Error):
        for number, row in _numbered(io.StringIO(text, newline=""), separator):
            if len(row) > len(names):
                raise ValueError(
                    f"line {number} of {path} has {len(row)} values, and the line with names has {len(names)}: leave "
                    "out what stands above the names, and put values that hold the separator into quotes"
                )


def _whole(path: Path) -> None:
    """Raise ValueError, with the line, for a CSV file that has a line with fewer values than names."""
    separator, names = header(path)
    while not names[-1]:
        names.pop()  # of a separator at the end of the line
    with (opener(path) or open)(path, "rt", encoding="utf-8-sig", newline="") as file, contextlib.suppress(csv.Error):
        for number, row in _numbered(file, separator):
            if len(row) < len(names) and any(value.strip() for value in row):
                write = "NA" if separator == BLANK else repr(separator)
                raise ValueError(
                    f"line {number} of {path} has {len(row)} values, and the line with names has {len(names)}: is the "
                    f"file whole? Write {write} there for each value that is missing, or leave the line out"
                )


def _numbered(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """The values of each line, with its number."""
    if separator == BLANK:
        yield from enumerate(map(str.split, lines), 1)
        return
    reader = csv.reader(lines, delimiter=separator)
    for row in reader:
        yield reader.line_num, row


def _typed(frame: Any, text: Collection[str], as_numbers: Collection[str], pl: Any) -> tuple[Any, bool]:
    """Columns of text in the type that all their values have, which one pass over the file finds.

    -> the frame, and whether a line lacks its last value
    Lines without a value are left out. The filter is set only where there are such lines, since polars cannot skip to a
    row behind a filter.
    """
    every = frame.collect_schema().names()
    names = [name for name in every if name not in text]
    tests = {
        "some": lambda c: c.count(),
        "whole": lambda c: c.cast(pl.Int64, strict=False).count(),
        "number": lambda c: c.cast(pl.Float64, strict=False).count(),
        "flag": lambda c: c.str.to_lowercase().is_in(["true", "false"]).sum(),
        "names": lambda c: c.str.contains(NAME).sum(),
        "digits": lambda c: c.str.contains(DIGITS).sum(),
    }
    blank = pl.all_horizontal(pl.all().is_null())
    counted = [test(pl.col(name)).alias(f"{what} {i}") for i, name in enumerate(names) for what, test in tests.items()]
    ends = [blank.sum().alias("blank"), pl.col(every[-1]).null_count().alias("no last")]
    numbers = frame.select(*ends, *counted).collect(engine="streaming").row(0, named=True)
    frame = frame.filter(~blank) if numbers["blank"] else frame
    columns = []
    for i, name in enumerate(names):
        counts = {what: numbers[f"{what} {i}"] for what in tests}
        column, some = pl.col(name), counts["some"]
        named = counts["names"] or (counts["digits"] == some and counts["whole"] < some)
        if some == 0:
            columns.append(pl.lit(None).alias(name))
        elif counts["number"] == some and (name in as_numbers or not named):
            columns.append(column.cast(pl.Int64 if counts["whole"] == some else pl.Float64))
        elif counts["flag"] == some:
            columns.append((column.str.to_lowercase() == "true").alias(name))
    return frame.with_columns(columns), numbers["no last"] > numbers["blank"]

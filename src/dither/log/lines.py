"""Logs that are lines of text: read one by one, with malformed lines refused by number, or counted.

Features become dense vectors: a number is the value, a text "name=text" is 1, in the order in which they
first appear.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dither import errors
from dither.log import check, schema
from dither.log.logged import Logged

Features = dict[str, float]
SKIPPED = "_skipLearn: never shown"


class Malformed(ValueError):
    """A line that is not of the format."""


class Names:
    """The features by name, numbered in the order in which they appear."""

    def __init__(self, most: int) -> None:
        errors.at_least("most", most, 1)
        self.most, self.place = most, dict[str, int]()

    def sparse(self, found: Features) -> dict[int, float]:
        """Features by number."""
        for name in found:
            if name not in self.place:
                if len(self.place) == self.most:
                    raise ValueError(
                        f"has more than {self.most} different features: pass features=False, or a larger most="
                    )
                self.place[name] = len(self.place)
        return {self.place[name]: value for name, value in found.items()}

    def dense(self, rows: list[dict[int, float]] | None) -> list[list[float]] | None:
        """As vectors of one length, once all names are known."""
        if rows is None:
            return None
        return [[row.get(i, 0.0) for i in range(len(self.place))] for row in rows]


def log_of(lines: Iterable[str], split: Callable, row: Callable, names: Names, malformed: str, *, where: str) -> Logged:
    """The log of all pieces that `split` makes of the lines, each made a row by `row` (None: left out).

    A `Malformed` piece is refused or counted; any other ValueError is refused. Both name the line.
    """
    rows: list[dict[str, Any]] = []
    read, left_out = 0, dict[str, int]()
    for number, piece in split(lines):
        read += 1
        reason = SKIPPED
        try:
            made = row(piece)
        except Malformed as error:
            if malformed == "error":
                raise ValueError(
                    f"line {number} of {where}: {error} (malformed='leave out' counts such lines)"
                ) from None
            made, reason = None, "malformed"
        except ValueError as error:
            raise ValueError(f"line {number} of {where} {error}") from None
        if made is None:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            rows.append(made)
    if not rows:
        raise ValueError(f"{where} holds no decisions: {read} read" + f", left out {left_out}" * bool(left_out))
    for made in rows:
        made["features"] = names.dense(made["features"])
    pl = schema.polars()
    types = schema.dtypes()
    frame = pl.DataFrame({n: pl.Series(n, [made[n] for made in rows], dtype=types.get(n)) for n in rows[0]})
    report = check.Report(read, len(rows), left_out) if left_out else None
    return Logged(frame, report=report, names=tuple(names.place) or None)


def opened(source: Any) -> Iterable[str]:
    """The lines of a file; an iterable of lines as it is."""
    if not isinstance(source, (str, Path)):
        return source
    if not Path(source).is_file():
        raise FileNotFoundError(f"no log at {source}")
    return _of_file(Path(source))


def singly(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number from 1."""
    return ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1) if line.strip())


def real(value: Any, what: str) -> float:
    """A finite number, or `Malformed`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Malformed(f"{what} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise Malformed(f"{what} must be finite, got {value!r}")
    return number


def choice(name: str, value: str, *known: str) -> None:
    """Refuse a setting that is none of those known."""
    if value not in known:
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")


def named(source: Any) -> str:
    """What errors call the source."""
    return str(source) if isinstance(source, (str, Path)) else "the lines"


def _of_file(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig") as file:
        try:
            yield from file
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text ({error.reason})") from None

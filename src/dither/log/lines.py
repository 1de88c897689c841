"""Logs that are lines of text. They are read one by one. A malformed line is refused by its number, or counted.

Features become dense vectors. A number is the value of its feature. A text is the feature "name=text" with value 1. A
feature that a row lacks is 0. The columns are the names in alphabetical order, so that files with the same names have
the same columns. A feature that comes twice, in one arm or in the context and the arm, counts twice, as in Vowpal
Wabbit.
"""

import contextlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors, reading
from dither.base.errors import Option, Refused
from dither.features import tokens
from dither.log import address, check, schema
from dither.log.logged import Logged

Features = dict[str, float]
SKIPPED = "_skipLearn: never shown"
MOST = 2**32  # the largest number that can be that of an action
COLUMNS = (  # of the rows, in this order
    *("id", "time", "tag", "arms", "K", "arm", "propensity", "propensity_kind", "probabilities", "reward", "weight"),
    *("most", "other"),
)


class Malformed(ValueError):
    """A line that does not have the form of the format."""

    line: int | None = None  # its number, where a piece has several lines; None: the first of the piece


class Unended(str):
    """The last line of a file that ends without the end of a line, as one that is cut does."""

    __slots__ = ()


class NoFeatures(Refused):
    """No line has a feature, and features were to be read."""


@contextlib.contextmanager
def at(number: int) -> Iterator[None]:
    """A block that reads this line of a piece."""
    try:
        yield
    except Malformed as error:
        error.line = number
        raise


class FeatureNames:
    """The names of the features. The settings are those of `dsjson`."""

    def __init__(self, *, features: bool, most: int, names: Sequence[str] | None, cross: bool) -> None:
        errors.at_least("most", most, 1)
        errors.true_or_false("features", features)
        errors.true_or_false("cross", cross)
        if not features and (cross or names is not None):
            this = Option("cross", True) if cross else Option("names")
            raise Refused(this, " is for features that are read: pass ", Option("features", True))
        self.most, self.cross = most, cross
        self.fixed = None if names is None else tuple(names)
        if errors.repeated(self.fixed or ()) is not None:
            raise ValueError("names must be different names of features")
        self.names = dict.fromkeys(self.fixed or ())

    def arms(self, shared: Features, arms: Sequence[Features], ids: Sequence[str]) -> list[Features]:
        """The features of each arm: those of the context, its own and, with cross=True, the products of the two.

        For an arm without features of its own, its id takes their place in the products.
        """
        if not self.cross:
            return [self.noted(added(shared, arm)) for arm in arms]
        arms = [arm or {f"arm={name}": 1.0} for arm, name in zip(arms, ids, strict=True)]
        products = [{f"{s}*{o}": v * w for s, v in shared.items() for o, w in arm.items()} for arm in arms]
        return [self.noted(added(shared, arm, more)) for arm, more in zip(arms, products, strict=True)]

    def noted(self, features: Features) -> Features:
        """The features as they are, after their names were noted. Raises `Refused` for a name that is one too many."""
        for name in [name for name in features if name not in self.names]:
            if self.fixed is not None:
                raise Refused(
                    *(f"has the feature {name!r}, which ", Option("names"), " lacks: read the files without "),
                    *(Option("names"), ", together"),
                )
            if len(self.names) == self.most:
                raise Refused(
                    *(f"has more than {self.most} different features: pass ", Option("features", False)),
                    *(", or a larger ", Option("most")),
                )
            self.names[name] = None
        return features

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, once all lines are read."""
        return self.fixed if self.fixed is not None else tuple(sorted(self.names))

    def dense(self, rows: list[list[Features] | None]) -> list[np.ndarray | None]:
        """The features of the arms of each row, (K, d)."""
        place = {name: i for i, name in enumerate(self.columns)}
        return [None if arms is None else _vectors(arms, place) for arms in rows]


def _vectors(arms: list[Features], place: dict[str, int]) -> np.ndarray:
    vectors = np.zeros((len(arms), len(place)))
    for k, features in enumerate(arms):
        for name, value in features.items():
            vectors[k, place[name]] = value
    return vectors


def added(*parts: Features) -> Features:
    """The features of all parts together."""
    return summed(pair for part in parts for pair in part.items())


def summed(pairs: Iterable[tuple[str, float]]) -> Features:
    """Features of names and values. A feature that comes twice counts twice, however its accents were typed."""
    features: Features = {}
    for name, value in pairs:
        name = tokens.nfc(name)
        features[name] = features.get(name, 0.0) + value
    return features


def decision(
    ids: list[str] | None, features: list[Features] | None, arm: int, p: float, cost: float | None, **more: Any
) -> dict[str, Any]:
    """The row of a decision. more : columns besides, of `COLUMNS`"""
    K, reward = None if ids is None else len(ids), None if cost is None else 0.0 - cost
    row: dict[str, Any] = {"id": None, "arms": ids, "K": K, "features": features, "arm": arm, "propensity": p}
    row.update(propensity_kind="exact", reward=reward, **more)
    return row


def log_of(
    lines: Iterable[str], split: Callable, row: Callable, names: FeatureNames, malformed: str, *, where: str
) -> Logged:
    """The log of lines. `split` makes pieces of them; `row` makes of each a row, or a reason to leave it out.

    A piece that is `Malformed` is refused or counted. Any other ValueError is a refusal. Both name the line.
    """
    rows: list[dict[str, Any]] = []
    read, left_out = 0, dict[str, int]()
    for number, piece in split(lines):
        read += 1
        try:
            one = row(piece)
        except Malformed as error:
            if malformed == "error":
                cure = (" (", Option("malformed", "leave out"), " counts such lines)")
                raise Refused(f"line {error.line or number} of {where}: {error}", *cure) from None
            one = "malformed"
        except ValueError as error:
            raise Refused(f"line {number} of {where} ", *errors.said(error)) from None
        if isinstance(one, str):
            left_out[one] = left_out.get(one, 0) + 1
        else:
            rows.append(one)
    if not rows:
        raise ValueError(f"{where} holds no decisions: {read} read" + f", left out {left_out}" * bool(left_out))
    pl, types = schema.polars(), schema.dtypes()
    features = names.dense([one.pop("features") for one in rows])
    columns = [name for name in COLUMNS if name in rows[0]]
    frame = pl.DataFrame({n: pl.Series(n, [one[n] for one in rows], dtype=types.get(n)) for n in columns})
    report = check.Report(read, len(rows), left_out) if left_out else None
    if all(arms is None for arms in features):
        return Logged(frame, report=report)
    if not names.columns:
        raise NoFeatures(f"{where} holds no features: pass ", Option("features", False))
    _told_apart(features, where)
    return Logged(
        frame.with_columns(schema.lists("features", features, "rows")), report=report, names=names.columns, sparse=True
    )


def _told_apart(features: list[np.ndarray | None], where: str) -> None:
    """Warn if in every row all arms have the same features."""
    several = [arms for arms in features if arms is not None and len(arms) > 1]
    if several and all((arms == arms[0]).all() for arms in several):
        warnings.warn(
            f"the arms of each row of {where} have the same features: a context that all arms share cancels when they "
            "are ranked, so nothing can be learnt of the arms. Pass cross=True, which reads the products of context "
            "and arm (as -q does in Vowpal Wabbit)",
            UserWarning,
            stacklevel=4,
        )


def opened(source: Any) -> Iterable[str]:
    """The lines of a file, packed or not. An iterable of lines stays as it is."""
    if not isinstance(source, (str, Path)):
        return source
    path = address.local(source)
    if not path.is_file():
        raise FileNotFoundError(f"no log at {source}")
    return _of_file(path)


def singly(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number, counted from 1."""
    plain = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    return ((number, line if isinstance(line, Unended) else line.rstrip("\r\n")) for number, line in plain)


def whole_line(line: str) -> None:
    """Raise `Malformed` for a last line without an end, where nothing else would show that it is cut."""
    if isinstance(line, Unended):
        raise Malformed(
            "the file ends within this line, which has no line end, so arms and features may be missing: take the "
            "whole file, or write a line end there if it is whole"
        )


def json_of(line: str) -> Any:
    """What a line of JSON says. Raises `Malformed` for what is no JSON, and for an object with a name twice."""
    try:
        return json.loads(line, object_pairs_hook=_object)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is no JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, in which each name stands once: of two values nobody could say which one counts."""
    one = dict(pairs)
    if len(one) < len(pairs):
        twice = errors.repeated([name for name, _ in pairs])
        raise Malformed(f"the name {twice!r} stands twice in one object: leave one of the two out")
    return one


def number(text: Any) -> float:
    """A number as a file has it. Raises ValueError for other text, and for 1_000, which Python alone reads as 1000."""
    if isinstance(text, bool) or (isinstance(text, str) and "_" in text):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def real(value: Any, what: str) -> float:
    """The value as a finite number. Raises `Malformed` if it is none."""
    try:
        x = number(value)
    except (TypeError, ValueError):
        raise Malformed(f"{what} must be a number, got {value!r}") from None
    except OverflowError:
        raise Malformed(f"{what} must be below 1.8e308, and the whole number there is not") from None
    if not math.isfinite(x):
        raise Malformed(f"{what} must be finite, got {value!r}")
    return x


def whole(value: Any, what: str) -> int:
    """The value as a whole number. Raises `Malformed` if it is none, or too large to count anything."""
    number = real(value, what)
    if number != int(number) or abs(number) > MOST:
        raise Malformed(f"{what} must be a whole number of at most {MOST:,}, got {value!r}")
    return int(number)


def moment(time: Any) -> Any:
    """The time of a line, None where it has none. Raises `Malformed` for what is no time."""
    try:
        return None if time is None else schema.moment(time)
    except ValueError as error:
        raise Malformed(str(error)) from None


def choice(name: str, value: str, *values: str) -> None:
    """Raise ValueError for a setting that is none of these values."""
    if value not in values:
        raise ValueError(f"{name} must be {' or '.join(map(repr, values))}, got {value!r}")


def named(source: Any) -> str:
    """How errors call the source."""
    return str(source) if isinstance(source, (str, Path)) else "the lines"


def _of_file(path: Path) -> Iterator[str]:
    with (reading.opener(path) or open)(path, "rt", encoding="utf-8-sig") as file:
        try:
            for line in file:
                yield line if line.endswith("\n") else Unended(line)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text ({error.reason})") from None
        except reading.DAMAGED as error:
            raise ValueError(f"{path} is packed and cannot be unpacked ({error}): is the file whole?") from None


def positions(rows: Logged) -> Logged:
    """The log with a catalogue of ids 1, 2, ... in place of lists of ids, if every row lists exactly these.

    Each position then is one arm in all rows, so that `warm_start` teaches slot 0 the rewards of action 1.
    """
    pl = schema.polars()
    ids, top = rows.frame["arms"], int(rows.K.max())
    count = pl.int_ranges(1, rows.frame["K"] + 1, dtype=pl.Int64, eager=True).cast(schema.dtype("texts"))
    if ids.null_count() or not (ids == count).all():
        return rows
    catalogue = tuple(str(i + 1) for i in range(top))
    return replace(rows, frame=rows.frame.drop("arms"), catalogue=catalogue)

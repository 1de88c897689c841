"""Logs from files and frames: whole (`read`) or in batches of constant memory (`batches`)."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors, reading
from dither.log import check, ledger, schema, storage
from dither.log.logged import Logged

TEXTS = tuple(name for name, what in schema.COLUMNS.items() if what == "text")  # in CSV these stay as written
SQLITE = b"SQLite format 3\0"  # how each of its files begins
DATABASES = ("postgresql:", "postgresql+", "postgres:", "sqlite:")  # how their URLs begin


def read(source: Any, *, rewards: str | None = None, require: tuple[str, ...] = schema.REQUIRED) -> Logged:
    """A log, whole and checked for its columns; `check()` and `usable()` look at its values.

    source : a file (Parquet, CSV or JSON lines, packed or not), a folder that `Log` wrote, a frame (polars, pandas,
        Arrow), a `Logged`, or a list of these. Features with names get one column for each name. If a file lacks a
        name, its value is 0 where the format is sparse (Vowpal Wabbit); else the file is refused.
    rewards : how several rewards of a decision count: "sum", "last" or "list"; None: as the log says
    require : columns that must be there

    Raises FileNotFoundError for a path that does not exist. Raises ValueError for a missing column (it names the column
    and those present), a column of the wrong type, a file that is not whole, and a log without rows.
    """
    pieces = [_Source(piece, rewards, require) for piece in _pieces(source)]
    pl = schema.polars()
    known, catalogue = _known(pieces), _catalogue(pieces)
    frames = [piece.frame() for piece in pieces]
    frame = frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed")
    if frame.height == 0:
        raise ValueError(f"{words(source)} holds no rows: there is nothing to evaluate")
    return Logged(frame, catalogue=catalogue, report=_report(pieces), **known)


def batches(
    source: Any,
    *,
    rows: int = 100_000,
    rewards: str | None = None,
    require: tuple[str, ...] = schema.REQUIRED,
) -> Iterator[Logged]:
    """The log in pieces of at most `rows` rows, in order. It takes memory for one piece, and 16 bytes for each id.

    Arguments and errors are those of `read`; errors are raised before the first piece. An id that an earlier piece has
    is a duplicate, as in the whole log.
    """
    return pieces(source, rows=rows, rewards=rewards, require=require).each


class Pieces(NamedTuple):
    """A log in pieces."""

    rows: int  # number of rows of all pieces
    each: Iterator[Logged]


def pieces(source: Any, *, rows: int, rewards: str | None = None, require: tuple[str, ...] = schema.REQUIRED) -> Pieces:
    """The pieces of `batches`, and the number of all rows."""
    errors.at_least("rows", rows, 1)
    found = [_Source(piece, rewards, require) for piece in _pieces(source)]
    total = sum(piece.height for piece in found)
    if total == 0:
        raise ValueError(f"{words(source)} holds no rows: there is nothing to evaluate")
    return Pieces(total, _batches(found, rows, _repeats(found)))


def _batches(pieces: list["_Source"], rows: int, repeats: np.ndarray | None) -> Iterator[Logged]:
    known, catalogue, first = _known(pieces), _catalogue(pieces), 0
    for piece in pieces:
        for at in range(0, piece.height, rows):
            frame = piece.slice(at, min(rows, piece.height - at))
            again = None if repeats is None else repeats[first : first + frame.height]
            yield Logged(frame, first, catalogue=catalogue, repeats=again, **known)
            first += frame.height


class Scan(NamedTuple):
    """A lazy frame of a file with the columns that are needed, and what the file says of itself."""

    frame: Any
    about: dict[str, Any]
    where: str


class _Source:
    """One file, folder or frame."""

    def __init__(self, source: Any, rewards: str | None, require: tuple[str, ...]) -> None:
        pl = schema.polars()
        if rewards is not None and rewards not in ledger.RULES:
            raise errors.unknown("rule for rewards", rewards, known=ledger.RULES)
        self.where, self.about, self.require = words(source), {}, require
        self.report: Any = None
        self.names: tuple[str, ...] | None = None  # names of the features in the whole log
        self.received: Any = None
        self.rows: storage.Decisions | None = None
        if isinstance(source, Logged):
            self.scan, self.about, self.report = source.frame.lazy(), source.about, source.report
        elif isinstance(source, Scan):
            self.scan, self.about, self.where = source.frame, source.about, source.where
        elif not isinstance(source, (str, Path)):
            self.scan = framed(source).lazy()
        elif Path(source).is_dir():
            self._folder(Path(source), rewards)
        else:
            self.scan = scanned(Path(source))
            self.about = about(Path(source))
        if rewards is not None and self.received is None:
            raise ValueError(f"rewards={rewards!r} is for folders that Log wrote; {self.where} has one reward a row")
        with storage.readable(self.where):
            wanted = tuple(n for n in require if self.received is None or n not in ("reward", "reward_time", "rewards"))
            self.scan = schema.checked(self.scan, where=self.where, require=wanted)
            self.columns = self.scan.collect_schema().names()
            self.height = self.rows.height if self.rows else self.scan.select(pl.len()).collect().item()

    def _folder(self, folder: Path, rewards: str | None) -> None:
        pl = schema.polars()
        received = storage.held(folder, "rewards")  # read first, so that each of them finds its decision
        self.rows = storage.Decisions(storage.held(folder, "decisions"))
        if not self.rows.height:
            raise ValueError(f"{folder} holds no rows of a log: no decisions-* in it")
        self.about = self.rows.held.about
        self.rule = rewards or self.about.get("rewards", "sum")
        self.scan = self.rows.empty.lazy()
        paths, tail = [path for _, _, path in received.parts], received.tail
        scans = [*([pl.scan_parquet(paths)] if paths else []), *([] if tail is None else [tail.lazy()])]
        self.received = pl.concat(scans) if scans else storage.events([]).lazy()

    def frame(self) -> Any:
        """All of it."""
        return self.slice(0, self.height)

    def slice(self, at: int, rows: int) -> Any:
        """The rows from `at` on."""
        pl = schema.polars()
        with storage.readable(self.where):
            if self.received is None or self.rows is None:
                return self._named(self.scan.slice(at, rows).collect())
            frame = self._named(schema.checked(self.rows.slice(at, rows), where=self.where, require=()))
            mine = self.received.filter(pl.col("decision").is_between(at, at + rows, closed="left")).collect()
        found = storage.join(frame, mine, rule=self.rule, first=at)
        missing = [name for name in self.require if name not in found.columns]
        return schema.checked(found, where=self.where, require=self.require) if missing else found

    def _named(self, frame: Any) -> Any:
        """The features in the columns of the whole log."""
        have = self.about.get("names")
        if have is None or self.names is None or tuple(have) == self.names or "features" not in frame.columns:
            return frame
        return frame.with_columns(schema.placed(frame["features"], have, self.names))

    def hashes(self) -> np.ndarray | None:
        """A 64-bit hash of each id, (height,); None without ids."""
        pl = schema.polars()
        if "id" not in self.columns:
            return None
        with storage.readable(self.where):
            ids = self.scan.select("id").collect() if self.rows is None else self.rows.columns(["id"])
        found = ids.select(pl.col("id").hash(seed=0).alias("h"), pl.col("id").is_null().alias("none"))
        number = pl.int_range(pl.len(), dtype=pl.UInt64)  # ids that are null differ
        return (
            found.select(pl.when(pl.col("none")).then(number.hash(seed=1)).otherwise(pl.col("h")))
            .to_series()
            .to_numpy()
        )


def scanned(path: Path, text: Collection[str] = TEXTS) -> Any:
    """A lazy frame of a file; in CSV the columns in `text` stay as written."""
    no_database(path)
    if not path.exists():
        raise FileNotFoundError(f"no log at {path}")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: there is nothing to evaluate")
    with storage.readable(path):
        scan = reading.scan(path, text=text)
        scan.collect_schema()
    return scan


def no_database(path: Path) -> None:
    """Refuse a ledger, which `Ledger` reads. A URL may hold a password, so the message does not repeat it."""
    url = str(path).startswith(DATABASES)
    if url or (path.is_file() and _begins(path, SQLITE)):
        raise ValueError(
            f"{'a URL of a database' if url else path} is no file of a log: write the ledger to Parquet by "
            f"dither.log.Ledger(...).export(folder) and read the folder, or take dither.log.Ledger(...).read()"
        )


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def about(path: Path) -> dict[str, Any]:
    """What a file says of itself; {} for a file that is not plain Parquet."""
    return storage.about_of(path) if reading.kind(path) in reading.PARQUET and reading.opener(path) is None else {}


def framed(source: Any) -> Any:
    """What was passed in, as a polars frame."""
    pl = schema.polars()
    if isinstance(source, Logged):
        return source.frame
    if isinstance(source, (pl.LazyFrame, pl.DataFrame)):
        return source
    if isinstance(source, dict):
        return pl.DataFrame(source)
    if hasattr(source, "iloc"):
        return _of_pandas(source)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "column_names"):  # Arrow, and what speaks it
        return pl.from_arrow(source)
    raise TypeError(f"a log is a path or a frame (polars, pandas, Arrow), got {type(source).__name__}")


def _of_pandas(source: Any) -> Any:
    """A pandas frame in polars. Columns of nulls lose the type text, since pandas has no type for them."""
    pl = schema.polars()
    frame = pl.from_pandas(source)
    empty = [name for name in frame.columns if name in schema.COLUMNS and frame[name].null_count() == frame.height]
    return frame.with_columns(pl.lit(None).alias(name) for name in empty)


def _pieces(source: Any) -> list[Any]:
    pieces = list(source) if isinstance(source, (list, tuple)) else [source]
    pieces = [
        part for piece in pieces for part in (isinstance(piece, (str, Path)) and storage.days(Path(piece))) or [piece]
    ]
    if not pieces:
        raise ValueError("give at least one file, folder or frame")
    return pieces


def words(source: Any) -> str:
    """What a source is called: its path, where it has one."""
    if isinstance(source, schema.polars().LazyFrame):
        found = re.findall(r"SCAN \[([^\],]+)", source.explain(optimized=False))
        return ", ".join(dict.fromkeys(found)) if found else "the LazyFrame"
    return str(source) if isinstance(source, (str, Path)) else f"the {type(source).__name__}"


def _catalogue(pieces: list[_Source]) -> tuple[str, ...] | None:
    """The longest catalogue. Each other one must be its beginning, so that a position is one arm in all files."""
    found = {tuple(names) for piece in pieces if (names := piece.about.get("catalogue")) is not None}
    longest = max(found, key=len, default=None)
    if longest is not None and any(longest[: len(names)] != names for names in found):
        raise ValueError("the files name different catalogues of arms: read them one by one")
    plain = [piece for piece in pieces if piece.about.get("catalogue") is None and "arms" not in piece.columns]
    if longest is not None and plain:
        raise ValueError(f"{plain[0].where} does not say which arms its positions are, and other files do: add ids")
    return longest


def _known(pieces: list[_Source]) -> dict[str, Any]:
    """What each piece must know of the whole log: fields of `Logged`, by name."""
    names = _names(pieces)
    for piece in pieces:
        piece.names = names
    arm = schema.polars().col("arm")
    ends = arm.filter(arm >= 0).min().alias("least"), arm.max().alias("most")
    found = [piece.scan.select(*ends).collect().row(0) for piece in pieces if "arm" in piece.columns]
    return {
        "least": min((least for least, _ in found if least is not None), default=None),
        "most": max((most + 1 for _, most in found if most is not None), default=None),
        "shown_only": any(piece.about.get("shown_only", False) for piece in pieces),
        "names": names,
        "sparse": names is not None and all(piece.about.get("sparse", False) for piece in pieces),
        "encoded_by": _encoded_by(pieces),
    }


def _encoded_by(pieces: list[_Source]) -> str | None:
    """The fingerprint of the `Features` of all pieces. Raises ValueError if two pieces have different ones."""
    found = {known: piece.where for piece in pieces if (known := piece.about.get("encoded_by")) is not None}
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise ValueError(f"different Features made the features of {one} and of {other}: read them one by one")
    return next(iter(found), None)


def _names(pieces: list[_Source]) -> tuple[str, ...] | None:
    """The names of the features of all pieces: each name is one column.

    Raises ValueError if only some pieces have names, or if a piece of no sparse format lacks a name.
    """
    named = [piece for piece in pieces if "features" in piece.columns]
    found = [None if (names := piece.about.get("names")) is None else tuple(names) for piece in named]
    if len(set(found)) < 2:
        return found[0] if found else None
    if None in found:
        plain, other = named[found.index(None)].where, next(p.where for p, n in zip(named, found, strict=True) if n)
        raise ValueError(f"the features of {other} have names and those of {plain} have none: read them one by one")
    known = [names for names in found if names is not None]
    union = tuple(sorted(set().union(*known)))
    for piece, names in zip(named, known, strict=True):
        if len(names) < len(union) and not piece.about.get("sparse", False):
            lacking = ", ".join(map(repr, sorted(set(union) - set(names))[:5]))
            raise ValueError(f"the features of {piece.where} lack {lacking}, which other files have: give all the same")
    return union


def _report(pieces: list[_Source]) -> Any:
    """What was left out in reading the pieces that are in memory."""
    if all(piece.report is None for piece in pieces):
        return None
    reports = [piece.report or check.Report(piece.height, piece.height) for piece in pieces]
    return sum(reports[1:], reports[0])


def _repeats(pieces: list[_Source]) -> np.ndarray | None:
    """Whether each id came before (n,), by 64-bit hashes. Among 10 million ids, two agree in one log of 400,000."""
    found = [piece.hashes() for piece in pieces]
    if all(hashes is None for hashes in found):
        return None
    none = np.iinfo(np.uint64).max
    known = [np.full(p.height, none) if h is None else h for p, h in zip(pieces, found, strict=True)]
    hashes = np.concatenate(known)
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(hashes), dtype=bool)
    again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    return again & (hashes != none)

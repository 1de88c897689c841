"""Logs from files and frames: whole (`read`) or in batches of constant memory (`batches`)."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors, reading
from dither.log import acting, address, check, record, reward_rules, schema, storage
from dither.log.logged import Logged

TEXTS = tuple(name for name, what in schema.COLUMNS.items() if what == "text")  # in CSV these stay as written
SQLITE = b"SQLite format 3\0"  # how each of its files begins
TRIES = 20  # of reading a folder that is exported again and again
NO_ID = np.iinfo(np.uint64).max  # stands for the hash of an id that is null
OF_REWARDS = ("reward", "reward_time", "rewards")  # columns that a folder has in files of their own


def read(
    source: Any,
    *,
    rewards: str | None = None,
    since: Any = None,
    until: Any = None,
    require: tuple[str, ...] = schema.REQUIRED,
) -> Logged:
    """A log, whole and checked for its columns; `check()` and `usable()` look at its values.

    source : a file (Parquet, CSV or JSON lines, packed or not), a folder that `Log` wrote, a frame (polars, pandas,
        Arrow), a `Logged`, or a list of these. Features with names get one column for each name. If a file lacks a
        name, its value is 0 where the format is sparse (Vowpal Wabbit); else the file is refused. In one folder the
        first names are the columns, and rows without names go by place, as for a `Bandit`.
    rewards : how several rewards of a decision count: "sum", "last" or "list"; None: as the log says
    since, until : times: the decisions from the first on and before the second. Of a folder of days the others are not
        opened. None: from the first one, or to the last one
    require : columns that must be there

    A folder that a ledger exports again meanwhile is read again, so what is read is one edition of it.

    Raises FileNotFoundError for a path that does not exist. Raises ValueError for a missing column (it names the column
    and those present), a column of the wrong type, a file that is not whole, and a log without rows.
    """
    span = record.span(since, until)
    for _ in range(TRIES):
        seen = _editions(source)
        try:
            logged = _read(source, rewards, require, span)
        except (OSError, ValueError):
            if _editions(source) == seen:
                raise
        else:
            if _editions(source) == seen:
                return logged
    raise storage.replaced(words(source))


def _read(source: Any, rewards: str | None, require: tuple[str, ...], span: record.Span) -> Logged:
    """A log, whole, whatever its editions are."""
    pieces = _pieces(source, rewards, require, span)
    facts = _facts(pieces)
    frame = schema.polars().concat([piece.slice(0, piece.height) for piece in pieces], how="diagonal_relaxed")
    logged = Logged(frame, report=_report(pieces), **facts)
    if span == record.WHOLE:
        return logged
    ends = [np.datetime64(-(2**62) if end is None else end, "us") for end in span]
    inside = (logged.time >= ends[0]) & ((logged.time < ends[1]) | (span[1] is None))
    if not inside.any():
        raise ValueError(f"{words(source)} holds no decisions in this span of time: there is nothing to evaluate")
    return logged.filter(inside)


def batches(
    source: Any,
    *,
    rows: int = 100_000,
    rewards: str | None = None,
    require: tuple[str, ...] = schema.REQUIRED,
) -> Iterator[Logged]:
    """The log in pieces of at most `rows` rows, in order. Memory holds one piece, and 16 bytes for each id of the log.

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
    seen = _editions(source)
    whole = _pieces(source, rewards, require)
    return Pieces(sum(piece.height for piece in whole), _batches(source, seen, whole, rows, _repeats(whole)))


def _batches(
    source: Any, seen: list[Any], pieces: list["_Piece"], rows: int, repeats: np.ndarray | None
) -> Iterator[Logged]:
    """seen : the editions of the folders, as they were when the pieces were found"""
    facts, first = _facts(pieces) | {"wrote": tuple(one for piece in pieces for one in piece.acting())}, 0
    for piece in pieces:
        for at in range(0, piece.height, rows):
            frame = piece.slice(at, min(rows, piece.height - at))
            if _editions(source) != seen:
                raise storage.replaced(words(source))
            again = None if repeats is None else repeats[first : first + frame.height]
            yield Logged(frame, first, repeats=again, **facts)
            first += frame.height


class Scan(NamedTuple):
    """A lazy frame of a file with the columns that are needed, and what the file says of itself."""

    frame: Any
    about: dict[str, Any]
    where: str


class _Piece:
    """One file, folder or frame of a log."""

    def __init__(self, source: Any, rewards: str | None, require: tuple[str, ...]) -> None:
        if rewards is not None:
            errors.among("rule for rewards", rewards, reward_rules.RULES)
        self.where, self.about, self.require = words(source), {}, require
        self.report: Any = None
        self.names: tuple[str, ...] | None = None  # names of the features in the whole log
        self.received: Any = None  # the rewards of a folder, a lazy frame
        self.decisions: storage.FolderDecisions | None = None  # of a folder
        if isinstance(source, Logged):
            self.scan, self.about, self.report = source.frame.lazy(), source.about, source.report
        elif isinstance(source, Scan):
            self.scan, self.about, self.where = source
        elif not isinstance(source, (str, Path)):
            self.scan = framed(source).lazy()
        elif Path(source).is_dir():
            self._folder(Path(source), rewards)
        else:
            self.scan, self.about = scanned(Path(source)), about(Path(source))
        if rewards is not None and self.received is None:
            raise ValueError(f"rewards={rewards!r} is for folders that Log wrote; {self.where} has one reward a row")
        with storage.readable(self.where):
            wanted = tuple(name for name in require if self.received is None or name not in OF_REWARDS)
            self.scan = schema.checked(self.scan, where=self.where, require=wanted)
            self.columns = self.scan.collect_schema().names()
            count = schema.polars().len()
            self.height = self.decisions.height if self.decisions else self.scan.select(count).collect().item()

    def _folder(self, folder: Path, rewards: str | None) -> None:
        received = storage.folder_rows(folder, "rewards")  # read first, so that each of them finds its decision
        self.decisions = storage.FolderDecisions(folder)
        if not self.decisions.height:
            raise ValueError(f"{folder} holds no rows of a log: no decisions-* in it")
        self.about = self.decisions.about
        self.rule = rewards or self.about.get("rewards", "sum")
        if self.rule != self.about.get("rewards", "sum"):
            self.about = {**self.about, "reward_range": None}  # it is that of rewards by the rule of the log
        self.scan = self.decisions.empty.lazy()
        paths = [path for _, _, path in received.parts]
        scans = [schema.polars().scan_parquet(paths)] if paths else []
        scans.append((storage.events([]) if received.tail is None else received.tail).lazy())
        self.received = schema.polars().concat(scans)

    def slice(self, at: int, rows: int) -> Any:
        """The rows from `at` on, with their features in the order of the whole log."""
        with storage.readable(self.where):
            if self.decisions is None:
                frame = self.scan.slice(at, rows).collect()
            else:
                frame = schema.checked(self.decisions.slice(at, rows), where=self.where, require=())
                place = schema.polars().col("decision")
                received = self.received.filter(place.is_between(at, at + rows, closed="left")).collect()
        frame = schema.ordered(frame, self.about.get("names"), self.names)
        if self.decisions is None:
            return frame
        frame = storage.join(frame, received, rule=self.rule, first=at)
        missing = any(name not in frame.columns for name in self.require)
        return schema.checked(frame, where=self.where, require=self.require) if missing else frame

    def acting(self) -> tuple[acting.ActingPolicy, ...]:
        """What all of its rows say of the policies that wrote them."""
        names = [name for name in ("policy", "learnt") if name in self.columns]
        with storage.readable(self.where):
            if self.decisions is None:
                return acting.policies(self.scan)
            columns = self.decisions.columns(names) if names else self.decisions.columns(["arm"])
        return acting.policies(columns)

    def hashes(self) -> np.ndarray:
        """A 64-bit hash of each id, (height,)."""
        if "id" not in self.columns:
            return np.full(self.height, NO_ID)
        with storage.readable(self.where):
            ids = self.scan.select("id").collect() if self.decisions is None else self.decisions.columns(["id"])
        id = schema.polars().col("id")
        hashed = schema.polars().when(id.is_not_null()).then(id.hash(seed=0))
        return ids.select(hashed).to_series().fill_null(NO_ID).to_numpy()


def scanned(
    path: Path, text: Collection[str] = TEXTS, *, names: Collection[str] = (), numbers: Collection[str] = ()
) -> Any:
    """A lazy frame of a file. text, names, numbers : columns of a CSV file, as for `reading.scan`"""
    no_database(path)
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: there is nothing to evaluate")
    with storage.readable(path):
        scan = reading.scan(path, text=text, names=names, numbers=numbers)
        scan.collect_schema()
    return scan


def is_ledger(place: str | Path) -> bool:
    """Whether a place may be a ledger: a URL of PostgreSQL, or a file of SQLite."""
    text = os.fsdecode(place)
    if os.path.exists(text):
        return os.path.isfile(text) and _begins(Path(text), SQLITE)
    return address.url(text)


def no_database(source: str | Path) -> Path:
    """The path of a log. Raises ValueError for a ledger, which `Ledger` reads."""
    path = _path(source)
    if is_ledger(path):
        raise ValueError(
            f"{path} is no file of a log: write the ledger to Parquet by dither.log.Ledger(...).export(folder) and "
            f"read the folder, or take dither.log.Ledger(...).read()"
        )
    return path


def _path(source: str | Path) -> Path:
    """The path of a log. What is not there may be a URL."""
    there = os.path.exists(source)  # where a name is too long, `Path.exists` would raise, and repeat it
    return Path(source) if there else address.local(source)


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
    try:
        frame = pl.from_pandas(source)
    except ImportError:
        raise errors.missing_extra("pyarrow", extra="frames") from None
    except (TypeError, ValueError) as reason:
        for name in source.columns:
            kinds = sorted({type(value).__name__ for value in source[name].dropna()})
            if source[name].dtype == object and len(kinds) > 1:
                raise ValueError(
                    f"column {name!r} of the pandas frame has values of several types ({', '.join(kinds)}): make them "
                    f"texts, frame[{name!r}].astype(str)"
                ) from None
        raise ValueError(f"the pandas frame cannot be read: {reason}") from None
    empty = [name for name in frame.columns if name in schema.COLUMNS and frame[name].null_count() == frame.height]
    return frame.with_columns(pl.lit(None).alias(name) for name in empty)


def words(source: Any) -> str:
    """What a source is called: its path, where it has one."""
    if isinstance(source, schema.polars().LazyFrame):
        paths = re.findall(r"SCAN \[([^\],]+)", source.explain(optimized=False))
        return ", ".join(dict.fromkeys(paths)) if paths else "the LazyFrame"
    return str(source) if isinstance(source, (str, Path)) else f"the {type(source).__name__}"


def _editions(source: Any) -> list[Any]:
    """The editions of the folders of a source; None for what is none."""
    each = source if isinstance(source, (list, tuple)) else [source]
    return [storage.edition(Path(one)) for one in each if isinstance(one, (str, Path)) and Path(one).is_dir()]


def _pieces(
    source: Any, rewards: str | None, require: tuple[str, ...], span: record.Span = record.WHOLE
) -> list[_Piece]:
    """The pieces of a log in order. The days of one folder are one log: a day without names has those of the others.

    Raises ValueError if there is no row.
    """
    pieces: list[_Piece] = []
    for one in source if isinstance(source, (list, tuple)) else [source]:
        days = storage.days(_path(one), span) if isinstance(one, (str, Path)) else []
        parts = [_Piece(part, rewards, require) for part in days or [one]]
        names = next((part.about["names"] for part in parts if part.about.get("names")), None)
        for part in parts:
            part.about = {**part.about, "names": part.about.get("names") or names}
        pieces += parts
    if not pieces:
        raise ValueError("give at least one file, folder or frame")
    if not any(piece.height for piece in pieces):
        raise ValueError(f"{words(source)} holds no rows: there is nothing to evaluate")
    return pieces


def _facts(pieces: list[_Piece]) -> dict[str, Any]:
    """What each piece must know of the whole log: fields of `Logged`, by name."""
    names = _names(pieces)
    for piece in pieces:
        piece.names = names
    arm = schema.polars().col("arm")
    ends = arm.filter(arm >= 0).min().alias("least"), arm.max().alias("most")
    shown = [piece.scan.select(*ends).collect().row(0) for piece in pieces if "arm" in piece.columns]
    return {
        "catalogue": _catalogue(pieces),
        "least": min((least for least, _ in shown if least is not None), default=None),
        "most": max((most + 1 for _, most in shown if most is not None), default=None),
        "shown_only": any(piece.about.get("shown_only", False) for piece in pieces),
        "names": names,
        "sparse": names is not None and all(piece.about.get("sparse", False) for piece in pieces),
        "encoded_by": _encoded_by(pieces),
        "slot_ids": _slot_ids(pieces),
        "reward_range": schema.hull(schema.of_ends(piece.about.get("reward_range")) for piece in pieces),
    }


def _catalogue(pieces: list[_Piece]) -> tuple[str, ...] | None:
    """The longest catalogue. Each other one must be its beginning, so that a position is one arm in all files."""
    catalogues = {tuple(ids) for piece in pieces if (ids := piece.about.get("catalogue")) is not None}
    longest = max(catalogues, key=len, default=None)
    if longest is not None and any(longest[: len(ids)] != ids for ids in catalogues):
        raise ValueError("the files name different catalogues of arms: read them one by one")
    plain = [piece for piece in pieces if piece.about.get("catalogue") is None and "arms" not in piece.columns]
    if longest is not None and plain:
        raise ValueError(f"{plain[0].where} does not say which arms its positions are, and other files do: add ids")
    return longest


def _encoded_by(pieces: list[_Piece]) -> str | None:
    """The fingerprint of the `Features` of all pieces. Raises ValueError if two pieces have different ones."""
    where = {features: piece.where for piece in pieces if (features := piece.about.get("encoded_by")) is not None}
    if len(where) > 1:
        one, other = list(where.values())[:2]
        raise ValueError(f"different Features made the features of {one} and of {other}: read them one by one")
    return next(iter(where), None)


def _slot_ids(pieces: list[_Piece]) -> tuple[str, ...] | None:
    """The ids of the disjoint slots of all pieces; None where a piece has none, or another one's."""
    each = {tuple(piece.about.get("slots") or ()) for piece in pieces}
    return next(iter(each)) or None if len(each) == 1 else None


def _names(pieces: list[_Piece]) -> tuple[str, ...] | None:
    """The names of the features of all pieces: each name is one column.

    Raises ValueError if only some pieces have names, or if a piece lacks a name and its format is not sparse.
    """
    lists: list[Any] = [(piece, piece.about.get("names")) for piece in pieces if "features" in piece.columns]
    orders = {None if names is None else tuple(names) for _, names in lists}
    if len(orders) < 2:
        return next(iter(orders), None)
    if None in orders:
        plain, other = (next(p.where for p, names in lists if (names is None) == none) for none in (True, False))
        raise ValueError(f"the features of {other} have names and those of {plain} have none: read them one by one")
    union = tuple(sorted({name for names in orders for name in names or ()}))
    for piece, names in lists:
        if len(names) < len(union) and not piece.about.get("sparse", False):
            lacking = ", ".join(map(repr, sorted(set(union) - set(names))[:5]))
            raise ValueError(f"the features of {piece.where} lack {lacking}, which other files have: give all the same")
    return union


def _report(pieces: list[_Piece]) -> Any:
    """What was left out in reading the pieces that are in memory."""
    if all(piece.report is None for piece in pieces):
        return None
    reports = [piece.report or check.Report(piece.height, piece.height) for piece in pieces]
    return sum(reports[1:], reports[0])


def _repeats(pieces: list[_Piece]) -> np.ndarray | None:
    """Whether each id came before (n,), by 64-bit hashes. Among 10 million ids, two agree in one log of 400,000."""
    if not any("id" in piece.columns for piece in pieces):
        return None
    hashes = np.concatenate([piece.hashes() for piece in pieces])
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(hashes), dtype=bool)
    again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    return again & (hashes != NO_ID)

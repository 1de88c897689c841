"""The files of a log: a folder that only grows, and single Parquet files.

FOLDER/decisions-<number of the first>-<number of the last>.parquet     a part: `schema.DECISION` and the user's columns
FOLDER/rewards-<number of the first>-<number of the last>.parquet       a part: `schema.EVENT`, a row for each received
FOLDER/decisions-<number of the first row>.journal                      the rows after the last part; so for rewards
FOLDER/<year>-<month>-<day>/                                            a folder for each day: what a ledger exports
FOLDER/export.json                                                      which edition of the days is there

    metadata of a part    "dither": JSON; how several rewards of a decision count, the catalogue of arms
    record of a journal   MARK, length (8 bytes), CRC-32 (4 bytes), payload; little endian
    payload               one line of JSON (what the log says of itself), then the rows as an Arrow stream

A part is whole or absent. The journal is one file that only grows, so that a decision needs no file of its own. Every
record is synced before the call that wrote it returns. A kill can damage only the last record. That record is dropped,
since its call never returned. A damaged record before a whole one is an error. Once a journal holds PART rows, it
becomes a part, and is removed after the part is there. Rows that are in both count once, since both say which rows they
hold.

A ledger that is exported again puts new days in the places of old ones. Before it does so it marks the edition as busy,
and then it gives it another id. So who waits while it is busy, and finds the same id when all is read, has read one
edition.
"""

import io
import json
import os
import re
import struct
import time
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from dither.base import files
from dither.log import schema
from dither.log.reward_rules import Event

EXPORT = "export.json"
PATIENCE = 10.0  # seconds that a reader waits while days take their places, which takes milliseconds
DAY = 86_400_000_000  # microseconds
PART = 1000  # rows of a journal that make a part
MARK = b"dj1\n"
METADATA = "dither"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEAD = struct.Struct("<4sQI")
_JOURNAL = re.compile(r"(decisions|rewards)-(\d{12})\.journal")
_PART = re.compile(r"(decisions|rewards)-(\d{12})-(\d{12})\.parquet")


class Edition(NamedTuple):
    """What is exported to a folder of days."""

    id: str
    busy: bool  # whether days take their places now; a writer that was killed then leaves it so
    about: Any  # what the files say of the log
    days: dict[str, list[int]]  # day -> what changes when the day does


def edition(folder: Path, *, whole: bool = True) -> Edition | None:
    """The edition of a folder of days, or of that in which a day lies; None where no ledger exported it.

    whole : wait until it is not busy. Raises ValueError where it stays so
    """
    folder = folder.parent if _DAY.fullmatch(folder.name) else folder
    end = time.monotonic() + PATIENCE
    while True:
        try:
            there = Edition(**json.loads((folder / EXPORT).read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError) as error:
            raise ValueError(f"{folder / EXPORT} cannot be read ({error}): export the ledger again") from None
        if not (whole and there.busy):
            return there
        if time.monotonic() > end:
            raise ValueError(f"an export to {folder} was interrupted, so days of it may be missing: export again")
        time.sleep(0.002)


def put_edition(folder: Path, new: Edition) -> None:
    """Say which edition is there."""
    files.text(folder / EXPORT, json.dumps(new._asdict()))


def replaced(source: Any) -> ValueError:
    """The error of who has read days of two editions."""
    return ValueError(f"{source} was exported again while it was read: read it again")


class FolderRows(NamedTuple):
    """All rows of one kind in a folder."""

    parts: list[tuple[int, int, Path]]  # number of the first row, number after the last, path
    tail: Any  # the rows after the parts, a frame; None where there are none, so that polars is not used yet
    about: dict[str, Any]  # what the latest rows say of the log; the names of the features are the first ones
    journals: list[Path]

    @property
    def rows(self) -> int:
        """How many rows."""
        return (self.parts[-1][1] if self.parts else 0) + (0 if self.tail is None else self.tail.height)


def folder_rows(folder: Path, what: str) -> FolderRows:
    """The rows that are there. While a writer is at work, these are the first rows that it has written, with no gap.

    Raises ValueError if a part is missing between others, or if a journal is damaged before its end.
    """
    matches = [(m, path) for path in folder.iterdir() if (m := _JOURNAL.fullmatch(path.name)) and m[1] == what]
    read = [(int(m[2]), *_read(path)) for m, path in sorted(matches, key=lambda each: each[0][2])]
    listed = listed_parts(folder, what)  # read after the journals: rows that leave a journal are in a part then
    at = listed[-1][1] if listed else 0
    about = _latest(*(about_of(path) for _, _, path in [*listed[:1], *listed[-1:]]))
    named = (names for _, _, path in listed if (names := about_of(path).get("names")) is not None)
    columns, tail = next(named, None) if what == "decisions" else None, []
    for first, frame, says in read:
        if frame is None or first + frame.height <= at:
            continue
        if first > at:
            raise ValueError(f"{folder} lacks the {what} from {at} to {first - 1}: put the missing parts back")
        columns = schema.agreed(columns, says.get("names"), where=folder)
        tail.append(schema.ordered(frame.slice(at - first), says.get("names"), columns))
        at, about = first + frame.height, _latest(about, says)
    whole = _together(tail) if tail else None
    return FolderRows(listed, whole, _latest(about, {"names": columns}), [path for _, path in matches])


def _latest(*about: dict[str, Any]) -> dict[str, Any]:
    """What is said of a log. Of several values of one name, the last that is not None counts."""
    return {name: value for says in about for name, value in says.items() if value is not None}


class FolderDecisions:
    """The decisions of a folder. A slice opens only the parts that hold its rows."""

    def __init__(self, folder: Path) -> None:
        pl, schemas = schema.polars(), {}
        self.stored = folder_rows(folder, "decisions")
        self.about, self.height = self.stored.about, self.stored.rows
        self.tail = pl.DataFrame() if self.stored.tail is None else self.stored.tail
        self.columns_of: list[Sequence[str] | None] = []  # the names of the features of each part
        for _, _, path in self.stored.parts:
            with readable(path):
                parquet = pl.read_parquet_schema(path)
            schemas[str(parquet)] = parquet  # most parts have the same columns
            self.columns_of.append(about_of(path).get("names"))
            schema.agreed(self.about.get("names"), self.columns_of[-1], where=path)
        empty = [pl.DataFrame(schema=parquet) for parquet in schemas.values()]
        self.empty = pl.concat([*empty, self.tail.clear()], how="diagonal_relaxed")

    def slice(self, at: int, rows: int) -> Any:
        """The rows from `at` on, with the columns of all parts. Their features are in one order, that of the names."""
        pl, frames, after = schema.polars(), [self.empty], at + rows
        for (first, end, path), names in zip(self.stored.parts, self.columns_of, strict=True):
            if first < after and at < end:
                frame = read_part(path)[max(at - first, 0) : after - first]
                frames.append(schema.ordered(frame, names, self.about.get("names")))
        first = self.height - self.tail.height
        frames.append(self.tail[max(at - first, 0) : max(after - first, 0)])
        return pl.concat(frames, how="diagonal_relaxed")

    def columns(self, names: Collection[str]) -> Any:
        """A frame of all rows, with those of these columns that there are."""
        pl, tail = schema.polars(), self.tail
        frames = [self.empty.select(name for name in names if name in self.empty.columns)]
        for _, _, path in self.stored.parts:
            with readable(path):
                here = pl.read_parquet_schema(path)
                frames.append(pl.read_parquet(path, columns=[name for name in frames[0].columns if name in here]))
        frames.append(tail.select(name for name in frames[0].columns if name in tail.columns))
        return pl.concat(frames, how="diagonal_relaxed")


class FolderAppender:
    """The writer's end: rows of one kind, appended to a folder."""

    def __init__(self, folder: Path, what: str, stored: FolderRows) -> None:
        """stored : the rows that are there. Those that an earlier writer left in journals become a part."""
        self.folder, self.what, self.at = folder, what, stored.rows
        if stored.tail is not None:
            add_part(folder, what, self.at - stored.tail.height, stored.tail, stored.about)
        for path in stored.journals:
            path.unlink()
        self._handle: int | None = None
        self._path, self._end = folder, 0
        self._shape: Any = None  # a frame without rows, with all columns that the journal has
        self._count = 0  # rows in the journal

    def add(self, frame: Any, about: dict[str, Any]) -> None:
        """Append the frame. It is on the disk when this returns. It is not there if this raises."""
        if self._count and self._count + frame.height > PART:
            self.compact()
        if frame.height >= PART:
            add_part(self.folder, self.what, self.at, frame, about)
        else:
            self._append(frame, about)
        self.at += frame.height

    def compact(self) -> None:
        """Make a part of the journal."""
        if not self._count:
            return
        frame, about = _read(self._path)
        add_part(self.folder, self.what, self.at - self._count, frame, about)
        self.let_go()
        self._path.unlink()
        self._shape, self._count, self._end = None, 0, 0

    def let_go(self) -> None:
        """Close the file, and leave it there."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self, frame: Any, about: dict[str, Any]) -> None:
        shape = frame.clear()
        if self._shape is not None and shape.schema != self._shape.schema:
            shape = _together([self._shape, shape])  # raises if the columns do not fit together
        data = _record(frame, about)
        if self._handle is None:
            self._path = self.folder / f"{self.what}-{self.at:012d}.journal"
            self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            files.sync(self.folder)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._handle, data[done:], self._end + done)
            os.fsync(self._handle)
        except BaseException:
            os.ftruncate(self._handle, self._end)
            raise
        self._end += len(data)
        self._shape, self._count = shape, self._count + frame.height


def _record(frame: Any, about: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    file.write(json.dumps(about).encode() + b"\n")
    frame.write_ipc_stream(file)
    payload = file.getvalue()
    return _HEAD.pack(MARK, len(payload), zlib.crc32(payload)) + payload


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    """The rows of a journal (None where it has none), and what its last record says of the log.

    The features are in one order, that of the first names.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # it has become a part since the folder was listed
        return None, {}
    at, frames, about = 0, [], dict[str, Any]()
    while (payload := _whole(data, at)) is not None:
        head, _, rows = payload.partition(b"\n")
        says = json.loads(head)
        with readable(path):
            frame = schema.polars().read_ipc_stream(io.BytesIO(rows))
        columns = schema.agreed(about.get("names"), says.get("names"), where=path)
        frames.append(schema.ordered(frame, says.get("names"), columns))
        about, at = says | {"names": columns}, at + _HEAD.size + len(payload)
    later = at
    while (later := data.find(MARK, later + 1)) >= 0:
        if _whole(data, later) is not None:  # so the record at `at` was whole once
            raise ValueError(
                f"{path} cannot be read as a log: it is damaged at byte {at}, before its end, which no kill does. "
                f"Restore it"
            )
    return (_together(frames) if frames else None), about


def _whole(data: bytes, at: int) -> bytes | None:
    """The payload of the record at byte `at`; None where there is no whole record."""
    if len(data) < at + _HEAD.size:
        return None
    mark, length, check = _HEAD.unpack_from(data, at)
    payload = data[at + _HEAD.size : at + _HEAD.size + length]
    return payload if mark == MARK and len(payload) == length and zlib.crc32(payload) == check else None


def _together(frames: list[Any]) -> Any:
    """Frames one below the other. A column that a frame lacks is null in its rows."""
    pl = schema.polars()
    try:
        return pl.concat(frames, how="diagonal_relaxed") if len(frames) > 1 else frames[0]
    except pl.exceptions.PolarsError as reason:
        raise ValueError(
            f"a column of extra holds values of two types that no column can hold together ({reason})"
        ) from None


def write(path: Any, frame: Any, about: dict[str, Any]) -> None:
    """A frame to one Parquet file, under a temporary name that is then renamed."""
    metadata = {METADATA: json.dumps(about)}
    files.replace(Path(path), lambda file: frame.write_parquet(file, metadata=metadata), parents=True)


def add_part(folder: Path, what: str, first: int, frame: Any, about: dict[str, Any]) -> None:
    """The next part of decisions or rewards."""
    write(folder / f"{what}-{first:012d}-{first + frame.height - 1:012d}.parquet", frame, about)


def listed_parts(folder: Path, what: str) -> list[tuple[int, int, Path]]:
    """The parts in order: number of the first row, number after the last, path.

    Raises ValueError if a part is missing between others, since its rows would be lost in silence.
    """
    matches = [(match, path) for path in folder.iterdir() if (match := _PART.fullmatch(path.name))]
    parts = sorted((int(m[2]), int(m[3]) + 1, path) for m, path in matches if m[1] == what)
    at = 0
    for first, after, _ in parts:
        if first != at:
            raise ValueError(f"{folder} lacks the {what} from {at} to {first - 1}: put the missing parts back")
        at = after
    return parts


def days(folder: Path, span: tuple[int | None, int | None] = (None, None)) -> list[Path]:
    """The folders of days in a folder that `Ledger.export` wrote, in order; [] where it is none.

    span : of times, in microseconds since 1970. Of other days the last one stays, where no day has a part in it, since
        it says what the log is like
    """
    every = sorted(path for path in folder.glob("*") if _DAY.fullmatch(path.name) and path.is_dir())
    low, high = span
    starts = [(date.fromisoformat(path.name) - date(1970, 1, 1)).days * DAY for path in every]
    inside = [
        path
        for path, at in zip(every, starts, strict=True)
        if (low is None or at + DAY > low) and (high is None or at < high)
    ]
    return inside or every[-1:]


def about_of(path: Path) -> dict[str, Any]:
    """What a file says of itself; {} where dither did not write it."""
    pl = schema.polars()
    with readable(path):
        metadata = pl.read_parquet_metadata(path)
    try:
        about = json.loads(metadata.get(METADATA, "{}"))
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


@contextmanager
def readable(path: Any) -> Iterator[None]:
    """Turn the errors that polars raises about a file into a plain ValueError."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"no log at {path}") from None
    except (schema.polars().exceptions.PolarsError, OSError, UnicodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} cannot be read as a log ({reason}): is the file whole, and of that format?") from None


def events(received: list[Event]) -> Any:
    """Events as a frame."""
    return schema.polars().DataFrame(received, schema=schema.dtypes(schema.EVENT), orient="row")


def renumbered(received: Any, decisions: Any) -> Any:
    """Those events whose decisions these are, with the places of their decisions in this frame.

    decisions : column `number`, by which the events know them, and `id` where the events lack it
    """
    pl = schema.polars()
    places = decisions.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
    events = received.join(places, left_on="decision", right_on="number", maintain_order="left")
    return events.with_columns(decision="place").select(list(schema.EVENT))


def read_part(path: Path) -> Any:
    """One part of a log."""
    with readable(path):
        return schema.polars().read_parquet(path)


def join(decisions: Any, received: Any, *, rule: str, first: int = 0) -> Any:
    """The decisions, from number `first` on, with reward, reward_time and rewards (and reward_list for "list").

    Events of other decisions are ignored. Conflicts never count.
    """
    pl = schema.polars()
    reward = pl.col("reward")
    by_rule = {
        "sum": (reward.sum(),),
        "last": (reward.sort_by("time", maintain_order=True).last(),),
        "list": (reward.alias("reward_list"), pl.lit(None, dtype=pl.Float64).alias("reward")),
    }
    counted = received.filter(~pl.col("conflict")).group_by("decision")
    rewards = counted.agg(*by_rule[rule], reward_time=pl.col("time").max(), rewards=pl.len().cast(pl.Int64))
    numbered = decisions.with_columns(__decision=pl.int_range(pl.len(), dtype=pl.Int64) + first)
    rewarded = numbered.join(rewards, left_on="__decision", right_on="decision", how="left", maintain_order="left")
    return rewarded.drop("__decision").with_columns(pl.col("rewards").fill_null(0))

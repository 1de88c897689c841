"""A ledger to Parquet, a folder for each day, and folders of `Log` into a ledger."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dither.deciding import inputs
from dither.log import ledger, record, schema, storage

ROWS = 10_000  # read together
PART = 100_000  # rows of an exported file
_ARRAYS = ("features", "m", "w", "probabilities")


def export(book: Any, folder: Path) -> list[Path]:
    """Write the days of a `book.Ledger`. Each day is whole: it is written beside its name and renamed."""
    pl = schema.polars()
    decisions, events, about = book.frames()
    folder.mkdir(parents=True, exist_ok=True)
    days = decisions.select(day=pl.col("time").dt.date().cast(pl.String), place=pl.int_range(pl.len(), dtype=pl.Int64))
    written = []
    for (day,), mine in sorted(days.group_by("day", maintain_order=True), key=lambda each: each[0]):
        rows = decisions[mine["place"]]
        places = mine.select("place", new=pl.int_range(pl.len(), dtype=pl.Int64))
        its_events = events.join(places, left_on="decision", right_on="place", maintain_order="left")
        its_events = its_events.drop("decision").rename({"new": "decision"}).select(list(schema.EVENT))
        part = folder / f".{day}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for what, frame in (("decisions", rows), ("rewards", its_events)):
            for at in range(0, frame.height, PART):
                storage.add_part(part, what, at, frame[at : at + PART], about)
        shutil.rmtree(folder / day, ignore_errors=True)
        written.append(part.rename(folder / day))
    return written


def take_over(book: Any, folder: Path) -> int:
    """Enter the decisions and the rewards of a folder that `Log` wrote, or of a folder of days."""
    folders = storage.days(folder) or [folder]
    if not folder.is_dir() or not all(storage.held(one, "decisions").rows for one in folders):
        raise ValueError(f"{folder} holds no decisions of a log: take_over reads what Log or export wrote")
    with book.holding() as connection:
        return sum(_take(book, connection, one) for one in folders)


def _take(book: Any, connection: Any, folder: Path) -> int:
    from dither.log.database import entering, rewarding

    received, held = storage.held(folder, "rewards"), storage.held(folder, "decisions")
    decisions, new = storage.Decisions(held), set()
    for at in range(0, decisions.height, ROWS):
        frame = decisions.slice(at, ROWS)
        there = entering.taken(connection, frame["id"].to_list())
        rows = [_row(row) for row in frame.iter_rows(named=True) if row["id"] not in there]
        for id in [text for row in rows for text in (row["id"], *(row["arms"] or ()))]:
            inputs.storable(id)
        slots = held.about.get("slots")
        values = [entering.IN_ORDER(record.stored(row, horizon=book.ticks, lesson=_lesson(row, slots))) for row in rows]
        book.database.many(connection, entering.INSERT, entering.COLUMNS, values)
        new |= {row["id"] for row in rows}
    frames = [storage.read_part(path) for _, _, path in received.parts]
    frames += [] if received.tail is None else [received.tail]
    for frame in frames:
        for at in range(0, frame.height, ROWS):
            events = [ledger.Event(*row) for row in frame[at : at + ROWS].select(list(schema.EVENT)).iter_rows()]
            mine = [event for event in events if event.id in new or not event.conflict]
            judge = rewarding.Judge(connection, book.database, book.rules, [event.id for event in mine])
            for event in mine:
                judge.answer(rewarding.Sent(event.id, event.reward, event.part, record.micros(event.time)))
            rewarding.insert(connection, book.database, judge.rows)
    return len(new)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of Parquet as `record.Maker` makes it."""
    for name in _ARRAYS:
        if row.get(name) is not None:
            row[name] = np.array(row[name], dtype=np.float64)
    return {name: row.get(name) for name in schema.DECISION} | row


def _lesson(row: Mapping[str, Any], slots: list[str] | None) -> dict[str, Any] | None:
    """The slot that was shown, where the features are one context for several arms."""
    features, arms, arm = row["features"], row["arms"], row["arm"]
    if features is None or len(features) == row["K"] or not (slots or row["K"] > 1):
        return None
    return {"slot": slots.index(arms[arm]) if slots and arms else arm}

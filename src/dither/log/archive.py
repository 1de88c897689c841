"""A ledger to Parquet, a folder for each day, and folders of `Log` into a ledger."""

import contextlib
import secrets
import shutil
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from dither.bandit import saving
from dither.base import files
from dither.deciding import inputs
from dither.features import raw_records
from dither.log import claim, record, reward_rules, schema, storage, teaching
from dither.log.logged import Logged

EPOCH = date(1970, 1, 1)
ROWS = 10_000  # read together
PART = 100_000  # rows of an exported file
EXPORTS = "exports"  # the setting that holds the ids of the latest editions
MOST = 100  # ids that it holds
RECORDS = "records"  # what a folder says of itself, whose decisions have the columns `schema.RAW`
_ARRAYS = ("features", "m", "w", "probabilities")


def export(ledger: Any, folder: Path, *, records: bool) -> list[Path]:
    """Write the days of a `ledger.Ledger` that have changed since the last export; -> the folders of all days.

    The new days are written beside, and then take their places under a new edition (`storage.edition`). The ledger has
    the id of the edition since before it was read. A ledger that has it not may have other rows with the same counts,
    since it is another one, or was restored. So all of its days are written.

    Raises ValueError for a folder with days that the ledger has not; NotADirectoryError for a file.
    """
    from dither.log.database import fetching

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and an export is a folder of days: name another place")
    folder.mkdir(parents=True, exist_ok=True)
    lock = claim.Claim(folder)
    try:
        with fetching.uncollected():
            with ledger.database.reading() as connection:
                about, days, new = _changed(ledger, connection, folder, records)
            if new:
                id = _begun(ledger)
                with ledger.database.reading() as connection:
                    about, days, new = _changed(ledger, connection, folder, records)
                    for day in new:
                        _write(folder, day, about, ledger, connection)
        if new:
            _exchange(folder, new, storage.Edition(id, False, about, days))
    finally:
        lock.release()
    return [folder / day for day in days]


def _changed(
    ledger: Any, connection: Any, folder: Path, records: bool
) -> tuple[dict[str, Any], dict[str, list[int]], list[str]]:
    """What the ledger says of itself, its days, and those of them that are to be written.

    Raises ValueError for a folder with days that the ledger has not.
    """
    from dither.log.database import fetching, keeping, reward_terms

    limits = schema.ends(reward_terms.ranges(connection))
    about = {"rewards": ledger.rewards, "reward_range": limits} | keeping.facts(connection)
    about |= {RECORDS: True} if records else {}
    days = {str(EPOCH + timedelta(days=n)): counts for n, counts in sorted(fetching.days(connection).items())}
    others = sorted({path.name for path in storage.days(folder)} - days.keys())
    if others:
        raise ValueError(
            f"{folder} has {schema.some(others)}, and the ledger has no decision of these days: it was restored, or "
            f"the folder is that of another one. Export to a folder of its own; `log.read([a, b])` reads both"
        )
    before = storage.edition(folder, whole=False)
    if before is None or before.busy or before.about != about:
        return about, days, list(days)
    if before.id not in keeping.settings(connection).get(EXPORTS, []):
        return about, days, list(days)
    new = [day for day in days if before.days.get(day) != days[day] or not (folder / day).is_dir()]
    return about, days, new


def _begun(ledger: Any) -> str:
    """The id of a new edition, which the ledger has from now on, unless this process may only read."""
    from dither.log.database import keeping, lessons

    id = secrets.token_hex(8)
    with contextlib.suppress(PermissionError), ledger.holding() as connection:
        lessons.hold(connection)
        earlier = keeping.settings(connection).get(EXPORTS, [])
        keeping.put(connection, EXPORTS, [*earlier, id][-MOST:])
    return id


def _write(folder: Path, day: str, about: dict[str, Any], ledger: Any, connection: Any) -> None:
    """Write one day, beside its place. X is that of the features of now."""
    from dither.log.database import encodings, fetching

    start = (date.fromisoformat(day) - EPOCH).days * storage.DAY
    within = fetching.within((start, start + storage.DAY))
    more: dict[str, Any] = dict(records=about.get(RECORDS, False), encoder=encodings.encoder(connection))
    frames = fetching.decisions(connection, ledger.database, within, **more)
    decisions = fetching.together(list(frames))
    events = fetching.events(connection, ledger.database, within)
    events = storage.renumbered(events, decisions.select("id", number="__decision"))
    part = folder / f".{day}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for what, frame in (("decisions", decisions.drop("__decision")), ("rewards", events)):
        for at in range(0, frame.height, PART):
            storage.add_part(part, what, at, frame[at : at + PART], about)


def _exchange(folder: Path, new: list[str], edition: storage.Edition) -> None:
    """Put the new days in the places of the old ones. In between, readers wait."""
    storage.put_edition(folder, edition._replace(busy=True))
    for day in new:
        old = folder / f".{day}.old"
        shutil.rmtree(old, ignore_errors=True)
        if (folder / day).exists():
            (folder / day).rename(old)
        (folder / f".{day}.part").rename(folder / day)
    files.sync(folder)
    storage.put_edition(folder, edition)
    for day in new:
        shutil.rmtree(folder / f".{day}.old", ignore_errors=True)


def take_over(ledger: Any, folder: Path) -> int:
    """Enter the decisions and the rewards of a folder that `Log` wrote, or of a folder of days."""
    from dither.log.database import lessons

    edition = storage.edition(folder)
    folders = storage.days(folder) or [folder]
    if not folder.is_dir() or not all(storage.folder_rows(one, "decisions").rows for one in folders):
        raise ValueError(f"{folder} holds no decisions of a log: take_over reads what Log or export wrote")
    with ledger.holding() as connection:
        lessons.hold(connection)
        taken = sum(_take(ledger, connection, one, judged=edition is not None) for one in folders)
        if storage.edition(folder) != edition:
            raise storage.replaced(folder)
    ledger.look()
    return taken


def _take(ledger: Any, connection: Any, folder: Path, *, judged: bool) -> int:
    """Enter one folder, with its columns and its slots as the ledger has them.

    judged : whether a ledger has exported it, by whose terms its rewards count: with corrections, and with defaults
    """
    from dither.log.database import entering, record_rows, rewarding

    received, decisions = storage.folder_rows(folder, "rewards"), storage.FolderDecisions(folder)
    gone: list[str] = []  # ids of decisions whose data was erased
    new, pupil = set(), _pupil(connection, decisions.about, folder)
    frames = [storage.read_part(path) for _, _, path in received.parts]
    frames += [] if received.tail is None else [received.tail]
    _learnable(ledger, connection, {part for frame in frames for part in frame["part"].drop_nulls()}, folder)
    for at in range(0, decisions.height, ROWS):
        frame = decisions.slice(at, ROWS)
        there = entering.taken(connection, frame["id"].to_list())
        frame = frame.filter(~schema.polars().col("id").is_in(list(there)))
        values, raw = [], []
        gone += frame.filter("was_erased")["id"].to_list() if "was_erased" in frame.columns else []
        for row, lesson in zip(*_rows(frame, decisions.about, pupil), strict=True):
            for id in (row["id"], *(row["arms"] or ())):
                inputs.storable(id)
            new.add(row["id"])
            texts = [row.pop(name, None) for name in schema.RAW] if decisions.about.get(RECORDS) else (None, None)
            if row.get("catalogue") is None:  # else its arms are those of a catalogue that this ledger has not
                raw.append((row["id"], raw_records.of_texts(*texts)))
            values.append(entering.IN_ORDER(record.stored(row, lesson=lesson)))
        entering.enter(connection, ledger.database, values)
        record_rows.put(connection, ledger.database, [(id, data) for id, data in raw if data is not None])
    if gone:
        entering.erased(connection, ledger.database, gone)
    # what counts comes first, so that what it has corrected does not
    for frame in [frame.filter(schema.polars().col("conflict") == late) for late in (False, True) for frame in frames]:
        for at in range(0, frame.height, ROWS):
            events = [reward_rules.Event(*row) for row in frame[at : at + ROWS].select(list(schema.EVENT)).iter_rows()]
            mine = [event for event in events if event.id in new or not event.conflict]
            judge = rewarding.Judge(connection, ledger.database, [event.id for event in mine])
            for event in mine:
                sent = rewarding.Sent(event.id, event.reward, event.part, record.micros(event.time))
                judge.answer(sent, counts=False if event.conflict else True if judged else None)
            rewarding.insert(connection, ledger.database, judge.rows)
    return len(new)


def _learnable(ledger: Any, connection: Any, parts: set[str], folder: Path) -> None:
    """Raise ValueError for parts of rewards that the bandit of the ledger would never learn."""
    from dither.log.database import keeping

    odd = sorted(parts - set(ledger.parts or ()))
    if odd and keeping.data(connection, "bandit") is not None:
        raise reward_rules.unlearnable(odd, sorted(parts), where=folder)


def _pupil(connection: Any, about: Mapping[str, Any], folder: Path) -> teaching.Pupil:
    """Who learns from the ledger: its bandit, where it has one. What the ledger does not say yet, the folder says."""
    from dither.log.database import encodings, keeping, ledger_events

    number = encodings.in_force(connection)
    began = ledger_events.data(connection, number) if number else keeping.data(connection, "bandit")
    header = None if began is None else saving.from_bytes(began).header
    slots = about.get("slots")
    most = None if header is None else header["model"].get("slots")
    slotted = slots is not None if header is None else most is not None
    if most is not None and slots is not None and not keeping.facts(connection).get("slots"):
        if len(slots) > most:
            raise ValueError(
                f"the decisions in {folder} are of {len(slots)} disjoint slots, and the bandit of the ledger has "
                f"{most}: take them over into a ledger of its own, Live(home, bandit=...) with disjoint={len(slots)}"
            )
        slots = record.slot_names(tuple(slots), most)
    facts = keeping.settle(
        connection,
        names=about.get("names"),
        slots=slots if slotted else None,
        encoded_by=about.get("encoded_by") if header is None or header["features"] is not None else None,
    )
    if facts.get("encoded_by") is not None and about.get("encoded_by") not in (None, facts["encoded_by"]):
        raise ValueError(
            f"other Features made the features in {folder} ({about['encoded_by']}) than the ledger has "
            f"({facts['encoded_by']}): encode anew, or take it over into a ledger of its own"
        )
    ids, names = facts.get("slots"), facts.get("names")
    return teaching.Pupil(
        None if names is None else tuple(names),
        facts.get("encoded_by"),
        slotted,
        {id: slot for slot, id in enumerate(ids)} if slotted and ids else None,
        None if header is None else header["dim"],
    )


def _rows(frame: Any, about: Mapping[str, Any], pupil: teaching.Pupil) -> tuple[list[dict[str, Any]], list[Any]]:
    """Rows of Parquet as `record.Recorder` makes them, and what each teaches; None: it has no features."""
    names, slots = (tuple(about[name]) if about.get(name) else None for name in ("names", "slots"))
    logged = Logged(frame, names=names, slot_ids=slots).placed(pupil.columns, None)
    rows = []
    for row in logged.frame.iter_rows(named=True):
        arrays = {name: np.array(row[name], dtype=np.float64) for name in _ARRAYS if row.get(name) is not None}
        rows.append({name: row.get(name) for name in schema.DECISION} | row | arrays)
    lessons: list[Any] = [None] * len(rows)
    there = np.array([row["features"] is not None for row in rows], dtype=bool)
    if there.any():
        part = teaching.lessons(logged.filter(there), pupil)
        for place, i in enumerate(np.flatnonzero(there)):
            slot = None if part.slots is None else int(part.slots[place])
            lessons[i] = {"x": part.x[place], "slot": slot, "width": part.x.shape[1]}
    return rows, lessons

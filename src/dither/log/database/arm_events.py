"""The events of a catalogue of arms, in the ledger: each with its time and version (`features.catalogue_events`)."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.features.catalogue_events import ArmEvent
from dither.log.database import lessons, sql_tables
from dither.log.database.home import Home

_ARM = sql_tables.arms.c


class Latest(NamedTuple):
    """What events bring someone to: by both, a version of another history is known."""

    version: int = 0
    time: int = 0  # of its event, in microseconds


NONE = Latest()


class Newer(NamedTuple):
    """The events that follow those of someone."""

    events: list[ArmEvent]  # in order
    latest: Latest  # after them
    other: bool  # whether the history is another one: then they are all events


def since(connection: sa.Connection, latest: Latest = NONE, event: ArmEvent | None = None) -> Newer:
    """What follows an event, which came at the time of `latest`; None: all."""
    fields = sa.select(_ARM.version, _ARM.what, _ARM.id, _ARM.record, _ARM.time)
    rows = list(connection.execute(fields.where(_ARM.version >= latest.version).order_by(_ARM.version)))
    other = event is not None and [_event(row) for row in rows[:1] if row.time == latest.time] != [event]
    if other:
        rows = list(connection.execute(fields.order_by(_ARM.version)))
    new = rows if other or event is None else rows[1:]
    return Newer([_event(row) for row in new], Latest(rows[-1].version, rows[-1].time) if rows else NONE, other)


def _event(row: Any) -> ArmEvent:
    return ArmEvent(row.version, row.what, row.id, None if row.record is None else json.loads(row.record))


def ids(connection: sa.Connection) -> list[str]:
    """The ids of all arms that ever were, in the order in which they came."""
    return list(connection.scalars(sa.select(_ARM.id).group_by(_ARM.id).order_by(sa.func.min(_ARM.version))))


def put(connection: sa.Connection, home: Home, events: Sequence[ArmEvent]) -> Latest | None:
    """Write new events; -> what they bring the writer to; None: there were none.

    The lease row is locked by the caller, so versions have no gap.
    """
    now = home.now(connection)
    records = [None if event.record is None else json.dumps(event.record, allow_nan=False) for event in events]
    rows = [event._asdict() | {"record": text, "time": now} for event, text in zip(events, records, strict=True)]
    if not rows:
        return None
    connection.execute(sa.insert(sql_tables.arms), rows)
    home.moved(*lessons.changed(connection, arms=rows[-1]["version"]))
    return Latest(rows[-1]["version"], now)

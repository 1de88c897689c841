"""The events of a catalogue of arms, in the ledger: each with its time and version (`features.catalogue_events`)."""

import json
from collections.abc import Sequence

import sqlalchemy as sa

from dither.features.catalogue_events import ArmEvent
from dither.log.database import lessons, sql_tables
from dither.log.database.home import Home

_ARM = sql_tables.arms.c


def since(connection: sa.Connection, version: int) -> list[ArmEvent]:
    """The events after a version, in order."""
    fields = sa.select(_ARM.version, _ARM.what, _ARM.id, _ARM.record).where(_ARM.version > version)
    rows = connection.execute(fields.order_by(_ARM.version))
    return [ArmEvent(n, what, id, None if record is None else json.loads(record)) for n, what, id, record in rows]


def put(connection: sa.Connection, home: Home, events: Sequence[ArmEvent]) -> None:
    """Write new events. The lease row is locked by the caller, so versions have no gap."""
    now = home.now(connection)
    records = [None if event.record is None else json.dumps(event.record, allow_nan=False) for event in events]
    rows = [event._asdict() | {"record": text, "time": now} for event, text in zip(events, records, strict=True)]
    if rows:
        connection.execute(sa.insert(sql_tables.arms), rows)
        lessons.changed(connection, arms=rows[-1]["version"])

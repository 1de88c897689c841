"""The events of a catalogue of arms, in the ledger: each with its time and version (`features.catalogue_events`)."""

import json
from collections.abc import Iterable
from typing import Any

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


def put(connection: sa.Connection, home: Home, events: Iterable[ArmEvent]) -> None:
    """Write new events. The lease row is locked by the caller, so versions have no gap."""
    now = home.now(connection)
    rows: list[dict[str, Any]] = [
        dict(
            version=event.version,
            time=now,
            what=event.what,
            id=event.id,
            record=None if event.record is None else json.dumps(event.record, allow_nan=False),
        )
        for event in events
    ]
    if rows:
        connection.execute(sa.insert(sql_tables.arms), rows)
        lessons.changed(connection, arms=rows[-1]["version"])

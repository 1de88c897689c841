"""The events of a running bandit, in the ledger: each is a batch without rewards, from which on the bandit is another.

So whoever learns meets an event where it meets any batch. A process that has not learnt the batch is behind, and learns
it as all others. An event is written under the lock of the lease, by any process, whether it may learn or not: so
events of several processes have an order, and no batch comes between what an event was made from and the event.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.base import errors
from dither.base.errors import DASH
from dither.log import record
from dither.log.database import lessons, sql_tables
from dither.log.database.home import Home

_EVENT = sql_tables.events.c
_ABOUT = [column for column in _EVENT if column.name != "bytes"]


class BanditEvent(NamedTuple):
    """What has changed a running bandit."""

    number: int  # of the event, from 1 on
    batch: int  # its own: the bandit is another one from this batch on
    time: datetime
    author: str
    what: str  # the kind, one of `live.course.KINDS`
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the time in ISO 8601."""
        return self._asdict() | {"time": self.time.isoformat()}

    def words(self, listed: int | None = None) -> str:
        """What has changed, each with what it was before; or all that is said, where it is something else.

        listed : so many values of a list are shown, beside how many they are; None: all of them
        """
        after, before = self.details.get("settings"), self.details.get("before")
        if not isinstance(after, dict) or not isinstance(before, dict) or not after:
            return in_words(self.details, listed)
        again = "; all rewards were learnt again" if self.details.get("learnt again") else ""
        return ", ".join(f"{name}: {before.get(name, DASH)} → {value}" for name, value in after.items()) + again


def in_words(details: Mapping[str, Any], listed: int | None = None) -> str:
    """What is said of a change, on a line. listed : as for `BanditEvent.words`"""
    return ", ".join(f"{name}: {_value(value, listed)}" for name, value in details.items())


def _value(value: Any, listed: int | None) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(part, listed)}" for name, part in value.items())
    if not isinstance(value, list):
        return str(value)
    if listed is None or len(value) <= listed:
        return errors.listed(value, most=None)
    return f"{len(value):,}, such as {errors.listed([str(one) for one in value[:listed]])}"


def every(connection: sa.Connection) -> list[BanditEvent]:
    """All events, in order."""
    rows = connection.execute(sa.select(*_ABOUT).order_by(_EVENT.number))
    return [_event(*row) for row in rows]


def _event(number: int, batch: int, time: int, author: str, what: str, details: str) -> BanditEvent:
    at = record.EPOCH + timedelta(microseconds=time)
    return BanditEvent(number, batch, at, author, what, json.loads(details))


def data(connection: sa.Connection, number: int) -> bytes:
    """The bandit with which an event lets learning begin."""
    return bytes(connection.execute(sa.select(_EVENT.bytes).where(_EVENT.number == number)).scalar_one())


def mark(connection: sa.Connection, number: int) -> int | None:
    """The mark of the batch of an event, which another event of this number has not; None: there is no such event."""
    batch = sa.select(_EVENT.batch).where(_EVENT.number == number).scalar_subquery()
    return connection.scalar(sa.select(sql_tables.batches.c.mark).where(sql_tables.batches.c.number == batch))


def put(
    connection: sa.Connection,
    home: Home,
    what: str,
    details: Mapping[str, Any],
    *,
    author: str,
    data: bytes | None = None,
) -> BanditEvent:
    """Write an event as the next batch. The caller's transaction makes it whole, and locks the lease before it reads.

    data : the bandit from there on, as it begins; None: it begins as one before
    """
    fence, batch = lessons.hold(connection), lessons.last(connection) + 1
    lessons.number(connection, home, fence, batch, rows=0)
    number = (connection.scalar(sa.select(sa.func.max(_EVENT.number))) or 0) + 1
    text, now = json.dumps(details, allow_nan=False), home.now(connection)
    row = dict(number=number, batch=batch, time=now, author=author, what=what, details=text, bytes=data)
    connection.execute(sa.insert(sql_tables.events).values(row))
    lessons.changed(connection)  # so decisions that were made before it, and are not stored yet, are made again
    return _event(number, batch, now, author, what, text)

"""What was changed while it ran, from every table of a ledger that keeps changes, the newest first."""

import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.log import record
from dither.log.database import ledger_events, sql_tables
from dither.log.database.ledger_events import BanditEvent

MOST = 200
LISTED = 3  # values of a list that are shown at once


class Happened(NamedTuple):
    """One change."""

    time: datetime
    what: str
    details: str
    author: str | None = None  # None: the table does not say
    batch: int | None = None  # None: it is no batch
    whole: str = ""  # the details with all values of their lists, where `details` has not all of them


def changes(connection: sa.Connection, most: int = MOST) -> list[Happened]:
    """The latest changes, at most so many, the newest first."""
    every = [*_events(connection), *_terms(connection, most), *_arms(connection, most), *_erasures(connection, most)]
    return sorted(every, key=lambda one: one.time, reverse=True)[:most]


def _events(connection: sa.Connection) -> list[Happened]:
    rows = ledger_events.every(connection)
    return [_happened(one) for one in rows]


def _happened(one: BanditEvent) -> Happened:
    short, whole = one.words(LISTED), one.words()
    return Happened(one.time, one.what, short, one.author, one.batch, "" if whole == short else whole)


def _latest(connection: sa.Connection, table: sa.Table, most: int) -> Any:
    return connection.execute(sa.select(table).order_by(table.c.time.desc()).limit(most))


def _time(micros: int) -> datetime:
    return record.EPOCH + timedelta(microseconds=min(micros, record.LAST))


def _terms(connection: sa.Connection, most: int) -> list[Happened]:
    rows = _latest(connection, sql_tables.changes, most)
    return [
        Happened(_time(row.time), "terms of rewards", ledger_events.in_words(json.loads(row.terms)))
        for row in rows
        if row.number
    ]


def _arms(connection: sa.Connection, most: int) -> list[Happened]:
    rows = _latest(connection, sql_tables.arms, most)
    return [Happened(_time(row.time), f"arm: {row.what}", f"{row.id} {row.record or ''}".strip()) for row in rows]


def _erasures(connection: sa.Connection, most: int) -> list[Happened]:
    rows = _latest(connection, sql_tables.erasures, most)
    return [Happened(_time(row.time), "erasure", f"{row.decisions:,} decisions by {row.by}") for row in rows]

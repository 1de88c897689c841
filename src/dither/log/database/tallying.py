"""What processes count and what fails in them, in the tables of a ledger (`log.tallies`).

Rows of a day are of one process each. When a day is some days past, no process writes them any more, and those of all
are added up. Refused rewards are of no process: a setting says up to which batch they are counted.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.base.visible import visible
from dither.log import record
from dither.log.database import keeping, lessons, sql_tables
from dither.log.database.home import Home
from dither.log.storage import DAY
from dither.log.tallies import REFUSED, Key, Unwritten
from dither.log.troubles import Ailment

SETTING = "refused"  # up to which batch they are counted
SEVERAL = ""  # stands for several processes
APART = 2  # days after the last writing for which rows are of one process
TOLD = 30  # days for which a trouble that is over is kept
LONGEST = 1000  # characters of the words of a trouble
ERASED = "its words went with an erasure, as they might quote what was erased"
_COUNT, _TROUBLE = sql_tables.counts_by_day.c, sql_tables.troubles.c


class StoredAilment(NamedTuple):
    """What fails, or has failed, in one process."""

    process: str
    host: str
    ailment: Ailment
    seen: int  # when its process wrote last that it stands, by the clock of the database


def put(connection: sa.Connection, home: Home, new: Unwritten) -> None:
    """Write what one process has counted, and what fails in it."""
    if home.postgres:  # for this transaction: no call waits for the disk
        connection.execute(sa.text("SET LOCAL synchronous_commit = off"))
    now = home.now(connection)
    if new.refusals:
        _refused(connection, now, new.refusals)
    for key, n in sorted(new.counts.items()):
        _set(connection, new.process, key, n, now)
    for one in new.ailments:
        _put_ailment(connection, new, one, now)
    if new.standing:
        mine = (_TROUBLE.process == new.process) & _TROUBLE.what.in_(new.standing)
        connection.execute(sa.update(sql_tables.troubles).where(mine).values(seen=now))
    if connection.scalar(sa.select(sa.func.count()).where(_old(now))):
        _fold(connection, now)


def _set(connection: sa.Connection, process: str, key: Key, n: int, now: int, *, more: bool = False) -> None:
    """Let a row have this number; more : it has so many more."""
    row = {"process": process, "day": key[0], "kind": key[1], "name": visible(key[2])}
    mine = sa.and_(*(_COUNT[name] == value for name, value in row.items()))
    change = sa.update(sql_tables.counts_by_day).where(mine).values(n=_COUNT.n + n if more else n, written=now)
    if not connection.execute(change).rowcount:
        connection.execute(sa.insert(sql_tables.counts_by_day).values(**row, n=n, written=now))


def _refused(connection: sa.Connection, now: int, refusals: dict[int, int]) -> None:
    """Count those of batches after the last one that was counted. The lease is locked, so each is counted once."""
    lessons.hold(connection)
    n = _uncounted(connection, refusals)
    if n:
        _set(connection, SEVERAL, (now // DAY, REFUSED, ""), n, now, more=True)
        keeping.put(connection, SETTING, max(refusals))


def _uncounted(connection: sa.Connection, refusals: dict[int, int]) -> int:
    upto = keeping.settings(connection, SETTING).get(SETTING, 0)
    return sum(n for batch, n in refusals.items() if batch > upto)


def _put_ailment(connection: sa.Connection, new: Unwritten, one: Ailment, now: int) -> None:
    ended, last = (None if at is None else record.micros(at) for at in (one.ended, one.last))
    mine = (_TROUBLE.process == new.process) & (_TROUBLE.what == one.what)
    same = sa.update(sql_tables.troubles).where(mine, _TROUBLE.last == last)  # its words may have been erased
    if connection.execute(same.values(ended=ended, seen=now)).rowcount:
        return
    connection.execute(sa.delete(sql_tables.troubles).where(mine))
    row: dict[str, Any] = {"process": new.process, "what": one.what, "host": visible(new.host), "times": one.times}
    row |= {"first": record.micros(one.first), "last": last, "seen": now, "ended": ended}
    row["words"] = one.words[:LONGEST]
    connection.execute(sa.insert(sql_tables.troubles).values(row))


def _old(now: int) -> sa.ColumnElement[bool]:
    return (_COUNT.process != SEVERAL) & (_COUNT.written < now - APART * DAY)


def _fold(connection: sa.Connection, now: int) -> None:
    """Add up the rows that are past, and forget troubles that have been over for long. The lease is locked."""
    lessons.hold(connection)
    sums = Counter[Key]()
    for day, kind, name, n in connection.execute(
        sa.select(_COUNT.day, _COUNT.kind, _COUNT.name, _COUNT.n).where(_old(now))
    ):
        sums[day, kind, name] += n
    connection.execute(sa.delete(sql_tables.counts_by_day).where(_old(now)))
    for key, n in sorted(sums.items()):
        _set(connection, SEVERAL, key, n, now, more=True)
    connection.execute(sa.delete(sql_tables.troubles).where(_TROUBLE.seen < now - TOLD * DAY))


def erase(connection: sa.Connection) -> None:
    """Take the words of all troubles, since an error may quote what it was about."""
    connection.execute(sa.update(sql_tables.troubles).values(words=ERASED))


def counts(connection: sa.Connection, home: Home, new: Unwritten) -> Counter[Key]:
    """How many there are, with what this process had not written when the reading began.

    new : taken before it began. What is written meanwhile is then there once; taken later, it would be in neither
    """
    sums = Counter[Key]()
    rows = sa.select(_COUNT.process, _COUNT.day, _COUNT.kind, _COUNT.name, _COUNT.n)
    mine = {(day, kind, visible(name)): n for (day, kind, name), n in new.counts.items()}
    for process, day, kind, name, n in connection.execute(rows):
        if process != new.process or (day, kind, name) not in mine:
            sums[day, kind, name] += n
    sums.update(mine)
    if new.refusals and (n := _uncounted(connection, new.refusals)):
        sums[home.now(connection) // DAY, REFUSED, ""] += n
    return sums


def ailments(connection: sa.Connection, home: Home, new: Unwritten) -> list[StoredAilment]:
    """What fails or has failed, the newest last, with what this process had not written; new : as for `counts`"""
    now = home.now(connection)
    mine = [StoredAilment(new.process, new.host, one, now) for one in new.ailments]
    about = {one.what for one in new.ailments}
    stored = [_stored(row) for row in connection.execute(sa.select(sql_tables.troubles))]
    others = [one for one in stored if one.process != new.process or one.ailment.what not in about]
    return sorted([*others, *mine], key=lambda one: (one.ailment.last, one.process, one.ailment.what))


def _stored(row: Any) -> StoredAilment:
    ended = None if row.ended is None else _moment(row.ended)
    ailment = Ailment(row.what, row.words, _moment(row.first), _moment(row.last), row.times, ended)
    return StoredAilment(row.process, row.host, ailment, row.seen)


def _moment(micros: int) -> datetime:
    return record.EPOCH + timedelta(microseconds=micros)

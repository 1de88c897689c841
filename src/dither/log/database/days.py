"""What the decisions and rewards of a ledger add up to at one moment, by day and arm (`log.arm_days`)."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from dither.log.arm_days import ArmDays
from dither.log.database import fetching, reward_terms, sql_tables, summing
from dither.log.database.home import Home
from dither.log.record import WHOLE, Span
from dither.log.storage import DAY

_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
ROWS = 20_000  # decisions that are read together


def read(connection: sa.Connection, home: Home, span: Span = WHOLE) -> ArmDays:
    """The rows of the days that begin in a span of times, or have its first moment."""
    since, until = span
    span = None if since is None else _day(since, up=False), None if until is None else _day(until, up=True)
    cells: dict[summing.Key, summing.ArmSums] = {}
    agreed = reward_terms.newest(connection)
    for rows in _decisions(connection, fetching.within(span)):
        events = _events(connection, rows[0][0], rows[-1][0])
        part = summing.Batched()
        for row in rows:
            part.take(row, summing.paid(events.get(row[0], ()), agreed))
        part.into(cells)
    return ArmDays(tuple(cells[key].seen(key) for key in sorted(cells)))


def _decisions(connection: sa.Connection, which: Any) -> Iterator[list[Any]]:
    """Decisions in the order of their numbers, in pieces."""
    fields, at = sa.select(*summing.DECISION).where(*which).order_by(_DECISION.number).limit(ROWS), 0
    while rows := list(connection.execute(fields.where(_DECISION.number > at))):
        yield rows
        at = rows[-1][0]


def _events(connection: sa.Connection, low: int, high: int) -> dict[int, list[Any]]:
    """The events of the decisions with these numbers, in order, by decision."""
    events: dict[int, list[Any]] = defaultdict(list)
    some = sa.select(*summing.EVENT).where(_REWARD.decision.between(low, high)).order_by(_REWARD.seq)
    for row in connection.execute(some):
        events[row[0]].append(row)
    return events


def _day(time: int, *, up: bool) -> int:
    """The moment at which the day of a time begins; up : or the next one, where the day has begun."""
    return -(-time // DAY) * DAY if up else time // DAY * DAY

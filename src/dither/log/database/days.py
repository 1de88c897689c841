"""What the decisions and rewards of a ledger add up to, by day and arm (`log.arm_days`): kept, and read at one moment.

The learner adds what is new to a table, a piece at a time, beside its calls. It says in a setting how far it came: the
highest numbers of decisions and of events that are in the sums. Whoever reads adds the rest, in the same snapshot. So
what is read is exact, however far the learner came. A ledger without a learner has no sums, and its reader adds up all.

Numbers are drawn before a transaction commits. So a row may appear below a number that is in the sums already. The
numbers that were missing there are kept as gaps, and looked at each time. Some are never used, as their transaction was
taken back. Where there are many, they are forgotten, while nobody writes.

The hours of the last days are kept in the same way, of all arms together. They are whole from one hour on, which a
second setting says, with how far the days had come then. Where these have come further since, an older dither has added
to them, which knows no hours: then hours begin anew, with the next one.

A reward counts with its decision, and several rewards make one by the rule of the ledger. So where one comes, its
decision is taken out as it was, and put in as it is. So it is where decisions are erased (`changing`).
"""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from dither.log import arm_days
from dither.log.arm_days import ArmDays
from dither.log.database import fetching, keeping, reward_terms, sql_tables, summing
from dither.log.database.entering import TOGETHER
from dither.log.database.home import Home
from dither.log.database.summing import ALL, HOUR, ArmSums, Key
from dither.log.record import WHOLE, Span
from dither.log.storage import DAY

SETTING, OF_HOURS = "days", "hours"
HOURS, KEPT_HOURS = 48, 72  # the latest ones that are read, and that are kept
ROWS = 20_000  # decisions, and events, that are read together
GAPS = 100  # above which they are forgotten
_DAY, _HOUR = sql_tables.days.c, sql_tables.hours.c
_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c


class Numbers(NamedTuple):
    """Numbers of rows that are in the sums: those up to the last one, but for the gaps."""

    last: int = 0
    gaps: tuple[tuple[int, int], ...] = ()  # the first and the last of each

    def has(self, number: int) -> bool:
        """Whether a row is in the sums."""
        return number <= self.last and not any(low <= number <= high for low, high in self.gaps)

    def fresh(self, column: sa.Column, fields: Any, most: int, connection: sa.Connection) -> list[Any]:
        """The rows that are not in the sums, in order, at most so many of those above the last one."""
        late = list[Any]()
        for some in _pieces(self.gaps, TOGETHER // 2):
            late += connection.execute(fields.where(sa.or_(*(column.between(*gap) for gap in some))).order_by(column))
        return [*late, *connection.execute(fields.where(column > self.last).order_by(column).limit(most)).all()]

    def and_these(self, numbers: list[int]) -> "Numbers":
        """With other rows, in order."""
        late, new = [n for n in numbers if n <= self.last], [n for n in numbers if n > self.last]
        gaps = [part for gap in self.gaps for part in _without(gap, late)]
        gaps += [(a + 1, b - 1) for a, b in itertools.pairwise([self.last, *new]) if b > a + 1]
        return Numbers(new[-1] if new else self.last, tuple(gaps))


class Summed(NamedTuple):
    """How far the sums have come."""

    decisions: Numbers = Numbers()
    events: Numbers = Numbers()
    erased: int = 0  # number of the last erasure that they know


def _pieces(items: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """These, in pieces of at most so many."""
    return (items[at : at + most] for at in range(0, len(items), most))


def _without(gap: tuple[int, int], numbers: list[int]) -> list[tuple[int, int]]:
    """What is left of a gap."""
    low, high = gap
    ends = [low - 1, *(n for n in numbers if low <= n <= high), high + 1]
    return [(a + 1, b - 1) for a, b in itertools.pairwise(ends) if b > a + 1]


class ReadSums(NamedTuple):
    """What decisions and rewards add up to at one moment."""

    days: ArmDays
    hours: ArmDays | None  # the latest ones, of all arms: `day` is when an hour begins. None: they are not kept yet


def read(connection: sa.Connection, home: Home, span: Span = WHOLE) -> ArmDays:
    """The rows of the days that begin in a span of times, or have its first moment."""
    return sums(connection, home, span).days


def sums(connection: sa.Connection, home: Home, span: Span = WHOLE) -> ReadSums:
    """The days of a span, and the hours of now: the `HOURS` latest, as far as they are kept, or all rows are read."""
    since, until = span
    span = None if since is None else _day(since, up=False), None if until is None else _day(until, up=True)
    summed, cells, hours = _summed(connection), dict[Key, ArmSums](), dict[Key, ArmSums]()
    begin = 0 if summed is None and span == (None, None) else _whole_from(connection) if summed else None
    latest = None if begin is None else max(begin, home.now(connection) // HOUR - HOURS + 1)
    if summed is None:
        for rows in _all(connection, fetching.within(span)):
            part = summing.Batched(hours_from=latest)
            _contribute(connection, part, rows)
            part.into(cells)
            part.into_hours(hours)
    else:
        cells, more = _kept(connection, _within(span)), True
        hours = {} if latest is None else _kept_hours(connection, [_HOUR.hour >= latest])
        while more:
            summed, parts, more = _advance(connection, summed, ROWS, latest)
            for part in parts:
                part.into(cells)
                part.into_hours(hours)
    low, high = (None if end is None else end // DAY for end in span)
    keys = sorted(key for key in cells if (low is None or key[0] >= low) and (high is None or key[0] < high))
    by_hour = None if latest is None else ArmDays(tuple(hours[key].of_hour(key) for key in sorted(hours)))
    return ReadSums(ArmDays(tuple(cells[key].of_day(key) for key in keys if any(cells[key].counts))), by_hour)


def keep(connection: sa.Connection, home: Home, *, most: int) -> bool:
    """Add what is new to the sums that are kept, at most so many decisions and events; -> whether there may be more.

    The lease is locked.
    """
    if home.postgres:  # for this transaction: sums that are lost are made again
        connection.execute(sa.text("SET LOCAL synchronous_commit = off"))
    kept = _summed(connection)
    if kept is None:
        connection.execute(sa.delete(sql_tables.days))
    before = kept or Summed(erased=_erased(connection))
    crowded = len(before.decisions.gaps) + len(before.events.gaps) > GAPS
    if crowded and home.postgres:  # whoever writes now has ended when the lock is there, so all gaps stay what they are
        tables = f"{sql_tables.decisions.name}, {sql_tables.rewards.name}"
        connection.execute(sa.text("SET LOCAL lock_timeout = '1s'"))
        connection.execute(sa.text(f"LOCK TABLE {tables} IN SHARE MODE"))
    begin, stale = _hours_begin(connection, home, anew=kept is None)
    summed, parts, more = _advance(connection, before, most, begin)
    if crowded:
        summed = Summed(Numbers(summed.decisions.last), Numbers(summed.events.last), summed.erased)
    _put(connection, parts)
    if summed != before:
        keeping.put(connection, SETTING, summed)
    if summed != before or stale:
        _say_hours(connection, begin)
    return more


@contextlib.contextmanager
def changing(connection: sa.Connection, numbers: list[int]) -> Iterator[None]:
    """Let decisions of these numbers, or their events, be changed in the block, and the sums follow. The lease is held,
    and nobody else writes."""
    summed = _summed(connection)
    begin = None if summed is None else _whole_from(connection)
    mine = [] if summed is None else [number for number in numbers if summed.decisions.has(number)]
    before, after = summing.Batched(-1, hours_from=begin), summing.Batched(hours_from=begin)
    _contribute(connection, before, _these(connection, mine), None if summed is None else summed.events)
    yield
    _contribute(connection, after, _these(connection, mine), None if summed is None else summed.events)
    _put(connection, [before, after])
    if summed is not None:
        keeping.put(connection, SETTING, summed._replace(erased=_erased(connection)))
        if begin is not None:
            _say_hours(connection, begin)


def _advance(
    connection: sa.Connection, summed: Summed, most: int, hours_from: int | None
) -> tuple[Summed, list[summing.Batched], bool]:
    """What is new, at most so much; -> how far the sums come, what is to be added to them, whether more may be new."""
    new = summed.decisions.fresh(_DECISION.number, sa.select(*summing.DECISION), most, connection)
    came = summed.events.fresh(_REWARD.seq, sa.select(_REWARD.seq, _REWARD.decision), most, connection)
    events = summed.events.and_these([row.seq for row in came])
    numbers = [row.number for row in new]
    touched = sorted({row.decision for row in came if summed.decisions.has(row.decision)})
    before, after = summing.Batched(-1, hours_from=hours_from), summing.Batched(hours_from=hours_from)
    for some in _pieces(touched, ROWS):
        rows = _these(connection, some)
        _contribute(connection, before, rows, summed.events)
        _contribute(connection, after, rows, events)
    _contribute(connection, after, new, events)
    more = len(new) >= most or len(came) >= most
    return Summed(summed.decisions.and_these(numbers), events, summed.erased), [before, after], more


def _contribute(
    connection: sa.Connection, part: summing.Batched, rows: Sequence[Any], which: Numbers | None = None
) -> None:
    """Add decisions, with those of their events that are in the sums; None: with all."""
    if not rows:
        return
    agreed = reward_terms.newest(connection)
    events = _events(connection, [row[0] for row in rows])
    for row in rows:
        mine = events.get(row[0], ())
        if which is not None and mine:
            mine = [one for one in mine if which.has(one[1])]
        part.take(row, summing.came(mine, agreed))


def _all(connection: sa.Connection, which: Any) -> Iterator[Sequence[Any]]:
    """Decisions in the order of their numbers, in pieces."""
    fields, at = sa.select(*summing.DECISION).where(*which).order_by(_DECISION.number).limit(ROWS), 0
    while rows := connection.execute(fields.where(_DECISION.number > at)).all():
        yield rows
        at = rows[-1][0]


def _these(connection: sa.Connection, numbers: Sequence[int]) -> list[Any]:
    """The decisions of these numbers."""
    rows = list[Any]()
    for some in _pieces(numbers, TOGETHER):
        rows += connection.execute(sa.select(*summing.DECISION).where(_DECISION.number.in_(some)))
    return rows


def _events(connection: sa.Connection, numbers: list[int]) -> dict[int, list[Any]]:
    """The events of decisions, in order, by decision."""
    events: dict[int, list[Any]] = defaultdict(list)
    fields = sa.select(*summing.EVENT).order_by(_REWARD.seq)
    low, high = min(numbers), max(numbers)
    if high - low < 2 * len(numbers):  # about all of a range
        parts: Iterable[Any] = [_REWARD.decision.between(low, high)]
    else:
        parts = [_REWARD.decision.in_(some) for some in _pieces(numbers, TOGETHER)]
    for which in parts:
        for row in connection.execute(fields.where(which)).all():
            events[row[0]].append(row)
    return events


# The table


def _summed(connection: sa.Connection) -> Summed | None:
    """How far the sums have come; None: none are kept, or an older dither, which keeps none, has erased decisions."""
    stored = keeping.settings(connection, SETTING).get(SETTING)
    if stored is None or stored[2] != _erased(connection):
        return None
    decisions, events = (Numbers(last, tuple((low, high) for low, high in gaps)) for last, gaps in stored[:2])
    return Summed(decisions, events, stored[2])


def _erased(connection: sa.Connection) -> int:
    """The number of the last erasure."""
    return connection.scalar(sa.select(sql_tables.lease.c.erased)) or 0


def _kept(connection: sa.Connection, which: Iterable[sa.ColumnElement[bool]]) -> dict[Key, ArmSums]:
    rows = connection.execute(sa.select(sql_tables.days).where(*which))
    return {(day, arm): _cell(numbers) for day, arm, *numbers in rows}


def _cell(numbers: list[Any]) -> ArmSums:
    """Counts, sums and rests of a row."""
    cell, n = ArmSums(), len(arm_days.COUNTS)
    cell.counts, cell.sums = numbers[:n], numbers[n:-1]
    cell.rest = np.frombuffer(numbers[-1], dtype="<f8").tolist()
    return cell


def _put(connection: sa.Connection, parts: list[summing.Batched]) -> None:
    """Add these to the sums that are kept, of days and of hours."""
    keys = set[Key]().union(*(part.keys for part in parts))
    days = sorted({day for day, _ in keys})
    cells = dict[Key, ArmSums]()
    for some in _pieces(days, TOGETHER):
        arms = sorted({arm for day, arm in keys if day in some})
        for names in _pieces(arms, TOGETHER):
            cells |= _kept(connection, [_DAY.day.in_(some), _DAY.arm.in_(names)])
    there = {key for key in cells if key in keys}
    for part in parts:
        part.into(cells)
    old = [{"day_": day, "arm_": arm} for day, arm in there]
    if old:
        mine = (_DAY.day == sa.bindparam("day_")) & (_DAY.arm == sa.bindparam("arm_"))
        connection.execute(sa.delete(sql_tables.days).where(mine), old)
    new = [{"day": day, "arm": arm} | _row(cells[day, arm]) for day, arm in sorted(keys) if any(cells[day, arm].counts)]
    if new:
        connection.execute(sa.insert(sql_tables.days), new)
    _put_hours(connection, parts)


def _row(cell: ArmSums) -> dict[str, Any]:
    named = zip((*arm_days.COUNTS, *arm_days.SUMS), (*cell.counts, *cell.sums), strict=True)
    return {**dict(named), "rest": np.array(cell.rest, dtype="<f8").tobytes()}


# The hours


def _kept_hours(connection: sa.Connection, which: Iterable[sa.ColumnElement[bool]]) -> dict[Key, ArmSums]:
    rows = connection.execute(sa.select(sql_tables.hours).where(*which))
    return {(hour, ALL): _cell(numbers) for hour, *numbers in rows}


def _put_hours(connection: sa.Connection, parts: list[summing.Batched]) -> None:
    touched, cells = sorted({hour for part in parts for hour, _ in part.hours}), dict[Key, ArmSums]()
    for some in _pieces(touched, TOGETHER):
        cells |= _kept_hours(connection, [_HOUR.hour.in_(some)])
        connection.execute(sa.delete(sql_tables.hours).where(_HOUR.hour.in_(some)))
    for part in parts:
        part.into_hours(cells)
    if cells:
        connection.execute(sa.insert(sql_tables.hours), [{"hour": hour} | _row(cells[hour, ALL]) for hour in touched])


def _whole_from(connection: sa.Connection) -> int | None:
    """The number of the hour from which on hours are kept as far as days are; None: they are not."""
    settings = keeping.settings(connection, SETTING, OF_HOURS)
    begin, days = settings.get(OF_HOURS, (None, None))
    return begin if days == settings.get(SETTING) else None


def _hours_begin(connection: sa.Connection, home: Home, *, anew: bool) -> tuple[int, bool]:
    """The number of the hour from which on hours are kept, and whether they were not until now. Older ones go.

    anew : no row is in the sums yet
    """
    now, begin = home.now(connection) // HOUR, None if anew else _whole_from(connection)
    oldest = now - KEPT_HOURS
    if begin is None:
        connection.execute(sa.delete(sql_tables.hours))
    elif begin < oldest:
        connection.execute(sa.delete(sql_tables.hours).where(_HOUR.hour < oldest))
    if anew:
        return oldest, False
    if begin is None:
        last = connection.scalar(sa.select(sa.func.max(_DECISION.time)))
        return max(now, 0 if last is None else last // HOUR) + 1, True
    return max(begin, oldest), False


def _say_hours(connection: sa.Connection, begin: int) -> None:
    keeping.put(connection, OF_HOURS, [begin, keeping.settings(connection, SETTING).get(SETTING)])


def _within(span: Span) -> list[sa.ColumnElement[bool]]:
    low, high = span
    after = [] if low is None else [_DAY.day >= low // DAY]
    return after + ([] if high is None else [_DAY.day < high // DAY])


def _day(time: int, *, up: bool) -> int:
    """The moment at which the day of a time begins; up : or the next one, where the day has begun."""
    return -(-time // DAY) * DAY if up else time // DAY * DAY

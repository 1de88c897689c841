"""Rewards into the table, by the rules of `ledger`; and the horizon, when it passes."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.log import ledger
from dither.log.database import sql_tables
from dither.log.database.entering import TOGETHER
from dither.log.database.home import Home

_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
_COUNTS = sql_tables.counts(_REWARD.standing)
_COLUMNS = ["decision", "part", "reward", "time", "standing", "batch"]
_INSERT = sql_tables.rewards.insert()
_FIELDS: list[Any] = [_DECISION[name] for name in ("id", "number", "deadline", "closed", "erased", "x", "slot")]
_FIND = sa.select(*_FIELDS).where(_DECISION.id == sa.bindparam("id")).with_for_update()
_PAID = sa.select(_REWARD.part, _REWARD.reward).where(
    _REWARD.decision == sa.bindparam("number"), _REWARD.standing == sa.literal_column("'counted'")
)


class Sent(NamedTuple):
    """A reward as it was sent."""

    id: str
    reward: float
    part: str | None
    time: int  # microseconds


class Waiting(NamedTuple):
    """A decision without a reward."""

    id: str
    time: int
    deadline: int | None


class Standing(NamedTuple):
    """A decision as a reward finds it: `_FIELDS`."""

    id: str
    number: int
    deadline: int | None
    closed: bool
    erased: int | None
    x: bytes | None
    slot: int | None


class Rules(NamedTuple):
    """What the settings of the ledger say of rewards."""

    late: str  # one of ledger.LATE
    default: float | None  # the reward of a decision whose horizon has passed without one


class Judge:
    """Says of the rewards of one transaction what becomes of each, and keeps the events to insert."""

    def __init__(self, connection: sa.Connection, home: Home, rules: Rules, ids: list[str]) -> None:
        """ids : of all rewards that will be asked about. Their decisions are locked until the transaction ends."""
        self.rules = rules
        self.rows: list[tuple[Any, ...]] = []  # decision, part, reward, time, standing
        self.taught: list[tuple[Any, ...]] = []  # x, slot, reward of those that counted, in the order of the rows
        self._known: dict[str, Standing] = {}
        self._paid: dict[tuple[int, str], float] = {}
        ids = sorted(set(ids))  # in one order, so that no two processes wait for each other
        if len(ids) == 1:
            for row in home.quick(connection, _FIND, id=ids[0]):
                one = Standing(*row)
                self._known[one.id] = one
                self._paid.update(((one.number, p), r) for p, r in home.quick(connection, _PAID, number=one.number))
            return
        for at in range(0, len(ids), TOGETHER):
            mine = _DECISION.id.in_(ids[at : at + TOGETHER])
            rows = connection.execute(sa.select(*_FIELDS).where(mine).order_by(_DECISION.id).with_for_update())
            found = [Standing(*row) for row in rows]
            self._known.update((row.id, row) for row in found)
            numbers = [row.number for row in found]
            paid = sa.select(_REWARD.decision, _REWARD.part, _REWARD.reward)
            own = _REWARD.decision.in_(numbers) & (_REWARD.standing == "counted")
            self._paid.update(((row.decision, row.part), row.reward) for row in connection.execute(paid.where(own)))

    def refuse(self, sent: Sent) -> None:
        """Raise LookupError for a reward that has no decision, or whose decision was erased."""
        row = self._known.get(sent.id)
        if row is None:
            raise ledger.unknown(sent.id)
        if row.erased is not None:
            raise LookupError(f"decision {sent.id!r} was erased, with its reward: it takes no other")

    def answer(self, sent: Sent) -> str:
        """'counted', 'known', 'conflict' or 'late'."""
        row, part = self._known[sent.id], sent.part or ""
        passed = row.closed or (row.deadline is not None and sent.time > row.deadline)
        counted = self._paid.get((row.number, part))
        said = ledger.answer(sent.reward, counted=counted, late=passed and self.rules.late == "kept")
        if said != "known":
            self.rows.append((row.number, part, sent.reward, sent.time, said))
        if said == "counted":
            self._paid[row.number, part] = sent.reward
            self.taught.append((row.x, row.slot, sent.reward))
        return said


def insert(connection: sa.Connection, home: Home, rows: list[tuple[Any, ...]], batch: int | None = None) -> None:
    """Insert events: decision, part, reward, time, standing. batch : that of those that counted."""
    numbered = [(*row, batch if row[4] == "counted" else None) for row in rows]
    home.many(connection, _INSERT, _COLUMNS, numbered)


def _unpaid() -> sa.ColumnElement[bool]:
    """Whether a decision has no reward that counts."""
    return ~sa.exists().where(_REWARD.decision == _DECISION.number, _COUNTS)


def expire(connection: sa.Connection, home: Home, rules: Rules, now: int) -> int:
    """Close the decisions whose deadline is not after `now`. Those without a reward get the default; -> how many."""
    due = ~_DECISION.closed & (_DECISION.deadline <= now)
    numbers = list(connection.scalars(sa.select(_DECISION.number).where(due).order_by(_DECISION.id).with_for_update()))
    unpaid: list[int] = []
    for at in range(0, len(numbers), TOGETHER):
        mine = _DECISION.number.in_(numbers[at : at + TOGETHER])
        unpaid += connection.scalars(
            sa.select(_DECISION.number).where(mine, _unpaid(), _DECISION.erased.is_(None)).order_by(_DECISION.number)
        )
        connection.execute(sa.update(sql_tables.decisions).where(mine).values(closed=True))
    if rules.default is not None:
        insert(connection, home, [(number, "", rules.default, now, "default") for number in unpaid])
    return len(unpaid)


def pending(connection: sa.Connection, after: int, limit: int) -> list[tuple[int, Waiting]]:
    """The first decisions with a number above `after` that wait for a reward, with their numbers."""
    waits = _unpaid() & ~_DECISION.closed & _DECISION.erased.is_(None) & (_DECISION.number > after)
    fields = sa.select(_DECISION.number, _DECISION.id, _DECISION.time, _DECISION.deadline).where(waits)
    rows = connection.execute(fields.order_by(_DECISION.number).limit(limit)).all()
    return [(number, Waiting(*waiting)) for number, *waiting in rows]

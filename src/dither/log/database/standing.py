"""How a ledger stands, for whoever looks after it: what waits, how far the learner is, who it is, what is overdue."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.log.database import keeping, rewarding, sql_tables
from dither.log.database.home import Home

_DECISION, _REWARD, _BATCH = sql_tables.decisions.c, sql_tables.rewards.c, sql_tables.batches.c
_SNAPSHOT, _LEASE = sql_tables.snapshots.c, sql_tables.lease.c


class LedgerState(NamedTuple):
    """All of one moment. Times are microseconds since 1970; None: there is none."""

    now: int  # by the clock of the database
    waiting: int  # rewards that are in no batch yet
    oldest: int | None  # time of the first of them
    batches: int  # the last one
    taught: int | None  # time of the last batch
    snapshot: int  # the last batch that a snapshot has
    holder: str  # of the lease; "": nobody
    expires: int  # the lease
    pending: int  # decisions that wait for their reward within their horizon
    overdue: int  # decisions whose horizon has passed, and that are not closed yet
    overdue_since: int | None  # the first deadline of them
    latest: int | None  # time of the decision with the highest number
    version: str | None  # of dither, which made that decision
    settings: dict[str, Any]  # of the ledger, by name
    alarm: str | None  # what the alarm had seen at the newest snapshot (`live.alarms`)


def state(connection: sa.Connection, home: Home, parts: tuple[str, ...] | None) -> LedgerState:
    """How it stands. parts : of which rewards are the sum; None: rewards have none"""
    now = home.now(connection)
    waits = _REWARD.batch.is_(None) & sql_tables.teaches(_REWARD.standing)
    waiting, first = connection.execute(sa.select(sa.func.count(), sa.func.min(_REWARD.seq)).where(waits)).one()
    oldest = None if first is None else connection.scalar(sa.select(_REWARD.time).where(_REWARD.seq == first))
    last = connection.execute(sa.select(_BATCH.number, _BATCH.time).order_by(_BATCH.number.desc()).limit(1)).first()
    lease = connection.execute(sa.select(_LEASE.holder, _LEASE.expires)).one()
    unpaid = rewarding.unpaid(parts) & _DECISION.erased.is_(None)
    count, ahead = sa.func.count(), _DECISION.deadline > now
    within = sa.select(count).select_from(sql_tables.decisions).where(sql_tables.OPEN, ahead, unpaid)
    passed = sa.select(count, sa.func.min(_DECISION.deadline)).where(sql_tables.OPEN, ~ahead)
    newest = sa.select(_DECISION.time, _DECISION.version).order_by(_DECISION.number.desc()).limit(1)
    decided = connection.execute(newest).first()
    overdue, overdue_since = connection.execute(passed).one()
    batches, taught = (0, None) if last is None else last
    latest, version = (None, None) if decided is None else decided
    return LedgerState(
        now=now,
        waiting=waiting,
        oldest=oldest,
        batches=batches,
        taught=taught,
        snapshot=connection.scalar(sa.select(sa.func.max(_SNAPSHOT.batch))) or 0,
        holder=lease.holder,
        expires=lease.expires,
        pending=connection.scalar(within) or 0,
        overdue=overdue,
        overdue_since=overdue_since,
        latest=latest,
        version=version,
        settings=keeping.settings(connection),
        alarm=connection.scalar(sa.select(_SNAPSHOT.alarm).order_by(_SNAPSHOT.batch.desc()).limit(1)),
    )

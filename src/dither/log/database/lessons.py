"""What a bandit learns from a ledger, and in which order. The order is a function of the ledger.

The learner numbers batches. In one transaction it gives the next number to all rewards that count and have none. A row
that commits late has no number yet, and gets a later one, so none is skipped. A replay goes by (batch, seq) and takes
the same rows together, so it computes the same bits.

One process learns at a time. It holds the lease: a row with its name, a fence and a time. The fence grows with every
new holder. Each transaction that makes a batch or a snapshot locks the lease where holder and fence are still its own,
and does nothing else if they are not. So a learner that was paused for longer than its lease writes nothing, whatever
it believes. Now and then it renews the lease.

A ledger may be another one than a moment ago: restored from a backup, replaced, or failed over to a server that lacks
the latest commits. So each batch has a mark, a random number, and so has all that changes rarely (`Changes`). A batch
with a number and a mark is in one history alone, after the same batches. Whoever learns or decides compares the marks
that it knows with those of the ledger, in the transaction that writes.
"""

import functools
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import sqlalchemy as sa

from dither.base import compiled
from dither.log.database import sql_tables
from dither.log.database.home import Home

_DECISION, _REWARD, _LEASE = sql_tables.decisions.c, sql_tables.rewards.c, sql_tables.lease.c
_BATCH, _SNAPSHOT, _EVENT = sql_tables.batches.c, sql_tables.snapshots.c, sql_tables.events.c
MOST = 10_000  # rewards in one batch
_MINE = (_LEASE.holder == sa.bindparam("holder")) & (_LEASE.fence == sa.bindparam("fence_"))
MARK = sa.func.coalesce(_BATCH.mark, _BATCH.time)  # of a batch: an older dither made batches without one
_CHANGES = (_LEASE.erased, _LEASE.arms, _LEASE.shadow, _LEASE.mark)
_STANDING = (
    *_CHANGES,
    sa.select(MARK).where(_BATCH.number == sa.bindparam("batch_")).scalar_subquery(),
    sa.select(sa.func.max(_BATCH.number)).scalar_subquery(),
)
_RENEW = (
    sa.update(sql_tables.lease)
    .where(_MINE)
    .values(expires=sa.bindparam("until"), length=sa.bindparam("length_"))
    .returning(*_STANDING)
)
_CHECK = sa.select(*_STANDING).where(_MINE).with_for_update(of=sql_tables.lease)
_NUMBER = sa.insert(sql_tables.batches).values({c.name: sa.bindparam(c.name) for c in _BATCH})
ARITHMETIC = sa.func.coalesce(_BATCH.arithmetic, sa.literal_column(f"'{compiled.NUMPY}'"))  # an older dither had one
_ABOUT = sa.select(_BATCH.slots, MARK, ARITHMETIC).where(_BATCH.number == sa.bindparam("number_"))


def _teaches(rewards: Any) -> sa.ColumnElement[bool]:
    """Whether a row of the table of rewards is a lesson, or another reward for one."""
    return sql_tables.teaches(rewards.c.standing) & (rewards.c.part == "")


@functools.cache
def _lessons(gaps: int, more: tuple[Any, ...] = ()) -> Any:
    """The rows of a batch, each with its latest reward up to some batch. The first row of a decision is its lesson.

    What is asked of other rows of a decision is asked in subqueries for a number. PostgreSQL makes a join of an EXISTS,
    and where it knows little of the table it reads all of it for each row.

    gaps : how many spans of batches there are whose rewards do not count
    more : columns of the decision and of its records that are read too
    """
    other = sql_tables.rewards.alias()
    others = _teaches(other) & (other.c.decision == _REWARD.decision)
    latest = sa.select(other.c.reward).where(others, other.c.batch <= sa.bindparam("upto_"))
    for i in range(gaps):
        latest = latest.where(~other.c.batch.between(sa.bindparam(f"from_{i}"), sa.bindparam(f"to_{i}")))
    r = latest.order_by(other.c.seq.desc()).limit(1).scalar_subquery()
    rows = sa.select(_DECISION.x, _DECISION.slot, r, _DECISION.time, *more)
    rows = rows.join_from(sql_tables.rewards, sql_tables.decisions)
    if more:
        rows = rows.outerjoin(sql_tables.records, sql_tables.records.c.decision == _DECISION.number)
    there = (_REWARD.batch == sa.bindparam("number_")) & _REWARD.reward.is_not(None)
    first = sa.select(sa.func.min(other.c.seq)).where(others).scalar_subquery()
    return rows.where(there, _REWARD.seq == first).order_by(_REWARD.seq)


def _corrected() -> Any:
    """The first batch with a lesson that a row of later batches corrects."""
    later, lesson = sql_tables.rewards.alias(), sql_tables.rewards.alias()
    before = (lesson.c.decision == later.c.decision) & (lesson.c.seq < later.c.seq) & _teaches(lesson)
    first = sa.select(sa.func.min(lesson.c.batch)).where(before).scalar_subquery()  # as in `_lessons`
    between = (later.c.batch > sa.bindparam("after_")) & (later.c.batch <= sa.bindparam("to_"))
    return sa.select(sa.func.min(first)).where(between, _teaches(later))


_CORRECTED = _corrected()
Gaps: TypeAlias = tuple[tuple[int, int], ...]  # spans of batches, first and last, that were not learnt


class Batch(NamedTuple):
    """The rewards that are learnt together, in order."""

    number: int
    x: np.ndarray  # (n, d)
    r: np.ndarray  # (n,)
    slots: np.ndarray | None  # (n,) int64, where the bandit has disjoint slots
    at: np.ndarray  # (n,) times of the decisions, in seconds since 1970
    grown: int | None = None  # how many slots the bandit has from here on; None: as before
    odd: int = 0  # rewards that no bandit of this ledger can learn, of another width or without a slot
    mark: int | None = None  # None: the ledger has no such batch
    arithmetic: str | None = None  # that taught it (`base.compiled`); None: it is taught now, by that of this process


class Encodes(Protocol):
    """Who has x as other features make it than those that made it (`encodings`)."""

    fields: tuple[Any, ...]  # columns of a decision and of its records that this needs

    def lesson(self, connection: sa.Connection, x: bytes | None, values: Sequence[Any]) -> bytes | None:
        """The features of the arm that was shown. values : of the fields"""


class TaughtBy(NamedTuple):
    """Batches that one arithmetic has taught."""

    arithmetic: str
    batches: int  # how many
    first: int
    last: int


class Changes(NamedTuple):
    """What changes rarely, and whoever learns or decides must know."""

    erased: int  # number of the last erasure, 0 before the first: a state from before it is not to be used
    arms: int  # version of the catalogue
    shadow: int  # number of the shadow
    mark: int  # of the last change of these, of budgets, and of what the ledger says of itself


class LedgerStanding(NamedTuple):
    """Where a ledger stands, for one who has learnt the batches up to some number."""

    changes: Changes
    mark: int | None  # of the batch of that number; None: there is none
    last: int  # the number of the last batch, 0 before the first


class DecisionBasis(NamedTuple):
    """What a decision was made from. It is compared with the ledger where the decision is stored (`committing`)."""

    batch: int  # the last that was learnt
    mark: int | None  # of this batch
    changes: int  # mark of the changes


class Lease(NamedTuple):
    """The lease, as its holder knows it."""

    holder: str
    fence: int
    seconds: float


def hold(connection: sa.Connection) -> int:
    """Keep learners from writing until this transaction ends; -> the fence of the one that may learn."""
    return int(connection.execute(sa.select(_LEASE.fence).with_for_update()).one().fence)


def free(connection: sa.Connection, home: Home, holder: str, seconds: float) -> bool:
    """Whether the lease could be taken now. It looks without a lock, so that nobody waits."""
    row = connection.execute(sa.select(_LEASE.holder, _LEASE.expires, _LEASE.length)).one()
    return row.holder in ("", holder) or not _valid(row, home.now(connection), seconds)


def _valid(row: Any, now: int, seconds: float) -> bool:
    """Whether a lease holds. One that ends further ahead than it is long was taken while the clock was ahead."""
    length = int(seconds * 1e6) if row.length is None else row.length
    return bool(now < row.expires <= now + length)


def take(connection: sa.Connection, home: Home, holder: str, seconds: float) -> Lease | None:
    """The lease, where nobody else has it; else None."""
    now, length = home.now(connection), int(seconds * 1e6)
    fields = sa.select(_LEASE.holder, _LEASE.fence, _LEASE.expires, _LEASE.length)
    row = connection.execute(fields.with_for_update()).one()
    if row.holder not in ("", holder) and _valid(row, now, seconds):
        return None
    lease = Lease(holder, row.fence + (row.holder != holder), seconds)
    new = dict(holder=holder, fence=lease.fence, expires=now + length, length=length)
    connection.execute(sa.update(sql_tables.lease).values(new))
    return lease


def renew(connection: sa.Connection, home: Home, lease: Lease, batch: int) -> LedgerStanding | None:
    """Renew the lease where it is still the holder's; it is then locked until the transaction ends.

    batch : the last that the holder has learnt
    -> where the ledger stands; None where the lease is another's
    """
    length = int(lease.seconds * 1e6)
    mine = dict(holder=lease.holder, fence_=lease.fence, batch_=batch)
    rows = home.quick(connection, _RENEW, until=home.now(connection) + length, length_=length, **mine)
    return _standing(rows[0]) if rows else None


def check(connection: sa.Connection, home: Home, lease: Lease, batch: int) -> LedgerStanding | None:
    """Like `renew`, but the lease is not made longer. Nothing is written, so it is quicker."""
    rows = home.quick(connection, _CHECK, holder=lease.holder, fence_=lease.fence, batch_=batch)
    return _standing(rows[0]) if rows else None


def standing(connection: sa.Connection, batch: int) -> LedgerStanding:
    """Where the ledger stands, for one who has learnt the batches up to this one."""
    return _standing(connection.execute(sa.select(*_STANDING), {"batch_": batch}).one())


def _standing(row: Any) -> LedgerStanding:
    *changes, mark, last = row
    return LedgerStanding(Changes(*changes), mark, last or 0)


def release(connection: sa.Connection, lease: Lease) -> None:
    """Let another process learn."""
    mine = (_LEASE.holder == lease.holder) & (_LEASE.fence == lease.fence)
    connection.execute(sa.update(sql_tables.lease).where(mine).values(holder="", expires=0))


def begin(connection: sa.Connection, number: int, *, most: int = MOST) -> int:
    """Give the number of a batch to events that teach and have none; -> to how many. The lease is held."""
    waits = _REWARD.batch.is_(None) & sql_tables.teaches(_REWARD.standing)
    some = sa.select(_REWARD.seq).where(waits).order_by(_REWARD.seq).limit(most)
    return connection.execute(
        sa.update(sql_tables.rewards).where(_REWARD.seq.in_(some), waits).values(batch=number)
    ).rowcount


def number(connection: sa.Connection, home: Home, fence: int, batch: int, rows: int, slots: int | None = None) -> int:
    """Record a batch of so many rows, which is about to be taught by the arithmetic of this process; -> its mark.

    slots : how many the bandit has from this batch on; None: as before
    """
    mark, now, taught = secrets.randbits(63), home.now(connection), compiled.arithmetic()
    about = dict(number=batch, time=now, rows=rows, fence=fence, slots=slots, mark=mark, arithmetic=taught)
    home.quick(connection, _NUMBER, **about)
    return mark


def taught_by(connection: sa.Connection, *, upto: int) -> list[TaughtBy]:
    """Which arithmetics have taught the batches up to one, by the first batch of each."""
    first = sa.func.min(_BATCH.number)
    fields = sa.select(ARITHMETIC, sa.func.count(), first, sa.func.max(_BATCH.number))
    fields = fields.where(_BATCH.number <= upto).group_by(ARITHMETIC).order_by(first)
    return [TaughtBy(*row) for row in connection.execute(fields)]


def taught_again(connection: sa.Connection, first: int, last: int) -> None:
    """Let batches have the arithmetic of this process, which has taught what goes on from them. The lease is held."""
    those = _BATCH.number.between(first, last)
    connection.execute(sa.update(sql_tables.batches).where(those).values(arithmetic=compiled.arithmetic()))


def last(connection: sa.Connection) -> int:
    """The number of the last batch; 0 before the first."""
    return connection.scalar(sa.select(sa.func.max(_BATCH.number))) or 0


def slots(connection: sa.Connection, *, upto: int | None = None) -> int:
    """How many disjoint slots a batch has given the bandit, one up to a number; 0: it has those with which it began."""
    most = sa.select(sa.func.max(_BATCH.slots))
    return connection.scalar(most if upto is None else most.where(_BATCH.number <= upto)) or 0


def corrected(connection: sa.Connection, after: int, to: int) -> int | None:
    """The first batch of which a reward is corrected in the batches after one, up to another; None: none is."""
    return connection.scalar(_CORRECTED, {"after_": after, "to_": to})


def batch(
    connection: sa.Connection,
    number: int,
    dim: int,
    slotted: bool,
    upto: int,
    gaps: Gaps = (),
    encoder: Encodes | None = None,
) -> Batch:
    """The rewards of a batch, without those that were erased and those of decisions without features.

    slotted : whether the bandit has disjoint slots
    upto : a batch: of the rewards of one decision the latest up to it counts, so a correction in it or before it
    gaps : batches that were not learnt. Such a batch has no rewards here, and nothing of it corrects another one
    encoder : has x as the features of the bandit make it; None: the features never changed
    """
    about = connection.execute(_ABOUT, {"number_": number}).first()
    grown, mark, arithmetic = (None, None, None) if about is None else about
    if any(low <= number <= high for low, high in gaps):
        return of_rows(number, [], dim, slotted, mark=mark)
    ends = {f"{end}_{i}": gap[at] for i, gap in enumerate(gaps) for at, end in enumerate(("from", "to"))}
    more = () if encoder is None else encoder.fields
    rows: Any = connection.execute(_lessons(len(gaps), more), {"number_": number, "upto_": upto} | ends).all()
    if encoder is not None:
        rows = [(encoder.lesson(connection, row[0], row[4:]), *row[1:4]) for row in rows]
    return of_rows(number, rows, dim, slotted, grown, mark)._replace(arithmetic=arithmetic)


def of_rows(
    number: int, rows: Iterable[Any], dim: int, slotted: bool, grown: int | None = None, mark: int | None = None
) -> Batch:
    """A batch of rows of x, slot, reward and time.

    Rows without x are left out. So are rows of another width, or with a slot where the bandit has none: they are `odd`.
    """
    lessons = [row for row in rows if row[0] is not None]
    fitting = [row for row in lessons if len(row[0]) == 8 * dim and (row[1] is not None) == slotted]
    x = np.frombuffer(b"".join([row[0] for row in fitting]), dtype="<f8").reshape(len(fitting), dim)
    r = np.array([row[2] for row in fitting], dtype=np.float64)
    slots = np.array([row[1] for row in fitting], dtype=np.int64) if slotted else None
    at = np.array([row[3] / 1e6 for row in fitting])
    return Batch(number, x, r, slots, at, grown, len(lessons) - len(fitting), mark)


def unlike(connection: sa.Connection, dim: int, slotted: bool) -> tuple[int, int | None] | None:
    """Width and slot of a decision that would be `odd` (`Batch`); None: there is none."""
    alike = (sa.func.length(_DECISION.x) == 8 * dim) & (
        _DECISION.slot.is_not(None) if slotted else _DECISION.slot.is_(None)
    )
    row = connection.execute(
        sa.select(sa.func.length(_DECISION.x), _DECISION.slot).where(_DECISION.x.is_not(None), ~alike).limit(1)
    ).first()
    return None if row is None else (row[0] // 8, row[1])


def parts(connection: sa.Connection) -> list[str]:
    """The parts of the rewards that are there."""
    named = sa.select(_REWARD.part).where(_REWARD.part != "", _REWARD.reward.is_not(None)).distinct()
    return sorted(connection.scalars(named))


def snapshot(connection: sa.Connection, *, after: int, before: int | None = None) -> Any:
    """The latest snapshot of a batch later than `after`, and earlier than `before`; None: there is none.

    One that does not know all events up to its batch is none: an older dither, which has no events, wrote it while this
    one made them.

    -> batch, bytes, shadow, shadow_bytes, mark (of its batch; None: of the beginning)
    """
    kept = [c for c in _SNAPSHOT if c.name not in ("time", "fence", "event")]
    fields = sa.select(*kept, MARK.label("mark")).outerjoin(sql_tables.batches, _BATCH.number == _SNAPSHOT.batch)
    events = _last_event(_SNAPSHOT.batch).scalar_subquery()
    fields = fields.where(_SNAPSHOT.batch > after, sa.func.coalesce(_SNAPSHOT.event, 0) == events)
    if before is not None:
        fields = fields.where(_SNAPSHOT.batch < before)
    return connection.execute(fields.order_by(_SNAPSHOT.batch.desc()).limit(1)).first()


def keep(
    connection: sa.Connection,
    home: Home,
    lease: Lease,
    batch: int,
    data: bytes,
    *,
    most: int,
    shadow: tuple[int, bytes] | None = None,
    alarm: str | None = None,
) -> None:
    """Write a snapshot, and remove all but the latest. The lease was renewed in this transaction.

    shadow : the number and the bytes of the shadow that learns; alarm : what it has seen, as JSON
    """
    connection.execute(sa.delete(sql_tables.snapshots).where(_SNAPSHOT.batch == batch))
    event = connection.scalar(_last_event(batch))
    new: dict[str, Any] = dict(batch=batch, time=home.now(connection), fence=lease.fence, bytes=data)
    new |= dict(event=event, alarm=alarm)
    if shadow is not None:
        new |= dict(shadow=shadow[0], shadow_bytes=shadow[1])
    connection.execute(sa.insert(sql_tables.snapshots).values(new))
    latest = list(connection.scalars(sa.select(_SNAPSHOT.batch).order_by(_SNAPSHOT.batch.desc()).limit(most)))
    connection.execute(sa.delete(sql_tables.snapshots).where(_SNAPSHOT.batch < latest[-1]))


def _last_event(batch: Any) -> Any:
    """The number of the last event of a bandit up to a batch; 0: there was none."""
    return sa.select(sa.func.coalesce(sa.func.max(_EVENT.number), 0)).where(_EVENT.batch <= batch)


def changes(connection: sa.Connection) -> Changes:
    """What has changed so far."""
    return Changes(*connection.execute(sa.select(*_CHANGES)).one())


def changed(connection: sa.Connection, **to: int) -> tuple[int, int]:
    """Record a change: erased, arms or shadow, with its number. The lease is locked; -> the mark before it, and its."""
    before, mark = connection.scalar(sa.select(_LEASE.mark)), secrets.randbits(63)
    connection.execute(sa.update(sql_tables.lease).values(to | {"mark": mark}))
    return before or 0, mark


def erasure(connection: sa.Connection, number: int) -> tuple[Any, ...] | None:
    """An erasure as it is recorded, by which it is known; None: there is none of that number."""
    row = connection.execute(sa.select(sql_tables.erasures).where(sql_tables.erasures.c.number == number)).first()
    return None if row is None else tuple(row)

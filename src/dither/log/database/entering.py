"""Decisions into the table, and whether the ledger is still the one from which they were made.

A decision is made outside the transaction that stores it, from what this process has learnt and read of the ledger. The
statement that stores it returns the marks of the ledger, so the comparison costs no statement more.
"""

import json
import operator
from typing import Any, NamedTuple

import sqlalchemy as sa

from dither.log.database import lessons, sql_tables
from dither.log.database.home import Home

TOGETHER = 500  # ids that are looked up by one statement
_TABLE = sql_tables.decisions.c
COLUMNS = [column.name for column in _TABLE if column.name not in ("number", "erased", "terms", "encoded")]
_NEWEST = sa.select(sql_tables.lease.c.terms).scalar_subquery()
_ENCODED = sa.select(sql_tables.lease.c.encoded).scalar_subquery()
_HORIZON = sa.select(sql_tables.changes.c.horizon).where(sql_tables.changes.c.number == _NEWEST).scalar_subquery()
# under the terms that are the newest in this statement, whatever this process knows of them; and by the features that
# are, which whoever encodes knows, as a row of other marks is not stored
INSERT = sql_tables.decisions.insert().values(
    {name: sa.bindparam(name) for name in COLUMNS}
    | {"terms": _NEWEST, "encoded": _ENCODED, "deadline": sa.bindparam("deadline", type_=sql_tables.Whole) + _HORIZON}
)
_COMPARED = INSERT.returning(  # what `Entered` has
    sa.select(sql_tables.lease.c.mark).scalar_subquery(),
    # the row by its name, as SQLAlchemy would add the table to the subquery
    sa.select(lessons.MARK)
    .where(sql_tables.batches.c.number == sa.literal_column(f"{sql_tables.decisions.name}.batch"))
    .scalar_subquery(),
    _TABLE.terms,
    _TABLE.encoded,
    _HORIZON,
)
_WHOLE = [column.name for column in _TABLE if column.name not in ("number", "erased")]  # digest comes last
_DEADLINE = COLUMNS.index("deadline")
_SAME = sa.and_(  # whether the ledger has the marks of the basis
    sa.select(sql_tables.lease.c.mark).scalar_subquery() == sa.bindparam("changes_"),
    sa.select(lessons.MARK)
    .where(sql_tables.batches.c.number == sa.bindparam("batch_"))
    .scalar_subquery()
    .is_not_distinct_from(sa.cast(sa.bindparam("mark_"), sql_tables.Whole)),
)
# a transaction of one statement, where a round trip costs: without an id, which each row must have, nothing is stored
_ALONE = INSERT.values(id=sa.case((_SAME, sa.cast(sa.bindparam("id"), sa.Text))))
CARELESS = sa.literal_column("set_config('synchronous_commit', 'off', true) = 'off'", sa.Boolean)  # here alone
ALONE = {True: _ALONE, False: INSERT.values(id=sa.case((CARELESS & _SAME, sa.cast(sa.bindparam("id"), sa.Text))))}
IN_ORDER = operator.itemgetter(*COLUMNS)  # of what `record.stored` gives by name


class Entered(NamedTuple):
    """What the ledger is, by the statement that has entered a decision."""

    changes: int  # the mark of what changes rarely
    mark: int | None  # of the batch that the decision knew
    terms: int  # number of those of its reward
    encoded: int  # number of the features that made X
    horizon: int | None  # microseconds from its time to its deadline


def first(connection: sa.Connection, home: Home, row: tuple[Any, ...]) -> Entered:
    """Enter one decision."""
    return Entered(*home.many(connection, _COMPARED, COLUMNS, [row]))


def others(connection: sa.Connection, home: Home, rows: list[tuple[Any, ...]], there: Entered) -> None:
    """Enter decisions after the first one of a transaction, under the same terms."""
    at, ends = _DEADLINE, (there.terms, there.encoded)
    due = [None if there.horizon is None else row[at] + there.horizon for row in rows]
    whole = [(*row[:at], when, *row[at + 1 : -1], *ends, row[-1]) for row, when in zip(rows, due, strict=True)]
    home.many(connection, sql_tables.decisions, _WHOLE, whole)


def enter(connection: sa.Connection, home: Home, rows: list[tuple[Any, ...]]) -> None:
    """Enter decisions that depend on nothing of the ledger."""
    if rows:
        others(connection, home, rows[1:], first(connection, home, rows[0]))


def erased(connection: sa.Connection, home: Home, ids: list[str]) -> None:
    """Record that the data of these decisions, which are entered now, was erased where they come from."""
    event = sql_tables.erasures.insert().values(time=home.now(connection), by="take_over", decisions=len(ids))
    number = connection.scalar(event.returning(sql_tables.erasures.c.number))
    for at in range(0, len(ids), TOGETHER):
        mine = _TABLE.id.in_(ids[at : at + TOGETHER])
        connection.execute(sa.update(sql_tables.decisions).where(mine).values(erased=number))


def taken(connection: sa.Connection, ids: list[str]) -> set[str]:
    """Those of the ids that decisions have."""
    there: set[str] = set()
    for at in range(0, len(ids), TOGETHER):
        there.update(connection.scalars(sa.select(_TABLE.id).where(_TABLE.id.in_(ids[at : at + TOGETHER]))))
    return there


class Stored(NamedTuple):
    """A decision as the table has it, as far as it was answered."""

    id: str
    arms: str | None  # JSON
    arm: int  # the place among those on offer
    propensity: float | None
    propensity_kind: str | None
    propensity_se: float | None
    z: float | None
    extra: str | None  # JSON
    slot: int | None
    digest: bytes | None  # null too where the data was erased

    @property
    def shown(self) -> str:
        """The arm that was shown, by its id; its position where the arms have none."""
        return str(self.arm) if self.arms is None else str(json.loads(self.arms)[self.arm])


def stored(connection: sa.Connection, ids: list[str]) -> dict[str, Stored]:
    """Id -> the decision, of those that are there."""
    there: dict[str, Stored] = {}
    for at in range(0, len(ids), TOGETHER):
        some = sa.select(*[_TABLE[name] for name in Stored._fields]).where(_TABLE.id.in_(ids[at : at + TOGETHER]))
        there |= {row.id: Stored(*row) for row in connection.execute(some)}
    return there


def without_x(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row of a decision without its features, and without what its reward teaches."""
    gone = dict.fromkeys(("features", "width", "x", "slot"))
    return IN_ORDER(dict(zip(COLUMNS, row, strict=True)) | gone)


def replace(connection: sa.Connection, row: tuple[Any, ...]) -> bool:
    """Put a decision in the place of one with its id and its time, which nobody was shown; -> whether there was one.

    Such a one is there where a commit was lost on its way back. One with a reward stays: somebody was shown it.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    mine = (_TABLE.id == values.pop("id")) & (_TABLE.time == values.pop("time"))
    unpaid = ~sa.exists().where(sql_tables.rewards.c.decision == _TABLE.number)
    for name in ("deadline", "closed"):
        del values[name]
    return connection.execute(sa.update(sql_tables.decisions).where(mine, unpaid).values(values)).rowcount == 1

"""Decisions into the table, and whether the ledger is still the one from which they were made.

A decision is made outside the transaction that stores it, from what this process has learnt and read of the ledger. The
statement that stores it returns the marks of the ledger, so the comparison costs no statement more.
"""

import operator

import sqlalchemy as sa

from dither.log.database import lessons, sql_tables

TOGETHER = 500  # ids that are looked up by one statement
_TABLE = sql_tables.decisions.c
COLUMNS = [column.name for column in _TABLE if column.name not in ("number", "erased")]
INSERT = sql_tables.decisions.insert()
COMPARED = sql_tables.decisions.insert().returning(  # the marks of the changes, and of the batch that the row knew
    sa.select(sql_tables.lease.c.mark).scalar_subquery(),
    # the row by its name, as SQLAlchemy would add the table to the subquery
    sa.select(lessons.MARK)
    .where(sql_tables.batches.c.number == sa.literal_column(f"{sql_tables.decisions.name}.batch"))
    .scalar_subquery(),
)
IN_ORDER = operator.itemgetter(*COLUMNS)  # of what `record.stored` gives by name


def taken(connection: sa.Connection, ids: list[str]) -> set[str]:
    """Those of the ids that decisions have."""
    there: set[str] = set()
    for at in range(0, len(ids), TOGETHER):
        there.update(connection.scalars(sa.select(_TABLE.id).where(_TABLE.id.in_(ids[at : at + TOGETHER]))))
    return there

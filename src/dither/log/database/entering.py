"""Decisions into the table."""

import operator

import sqlalchemy as sa

from dither.log.database import sql_tables

TOGETHER = 500  # ids that are looked up by one statement
_TABLE = sql_tables.decisions.c
COLUMNS = [column.name for column in _TABLE if column.name not in ("number", "erased")]
INSERT = sql_tables.decisions.insert()
IN_ORDER = operator.itemgetter(*COLUMNS)  # of what `record.stored` gives by name


def taken(connection: sa.Connection, ids: list[str]) -> set[str]:
    """Those of the ids that decisions have."""
    there: set[str] = set()
    for at in range(0, len(ids), TOGETHER):
        there.update(connection.scalars(sa.select(_TABLE.id).where(_TABLE.id.in_(ids[at : at + TOGETHER]))))
    return there

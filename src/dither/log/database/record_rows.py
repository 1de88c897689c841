"""What decisions were made of, in a table of its own: a row for each decision whose records are kept.

It is written in the transaction of the decision, and in PostgreSQL by the same statement where a decision is a
transaction by itself.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from dither.features import raw_records
from dither.log.database import entering, sql_tables
from dither.log.database.home import Home

_DECISION, _RECORD = sql_tables.decisions.c, sql_tables.records.c
PAGE = 1000  # records that are read together
COLUMNS = ["id", "bytes"]
_NUMBER = sa.select(_DECISION.number).where(_DECISION.id == sa.bindparam("id")).scalar_subquery()
_INSERT = sql_tables.records.insert().values(decision=_NUMBER, bytes=sa.bindparam("bytes"))


def _alone(statement: Any) -> Any:
    """The statement that stores a decision alone, with its records. It stores both or nothing."""
    new = statement.returning(_DECISION.number).cte("new").c
    row = sa.select(new.number, sa.cast(sa.bindparam("record_"), sql_tables.Bytes))
    return sql_tables.records.insert().from_select(["decision", "bytes"], row).returning(_RECORD.decision)


ALONE = {wait: _alone(statement) for wait, statement in entering.ALONE.items()}


def put(connection: sa.Connection, home: Home, rows: list[tuple[str, bytes]]) -> None:
    """Keep the records of decisions, by their ids, which are entered in this transaction."""
    home.many(connection, _INSERT, COLUMNS, rows)


def erase(connection: sa.Connection, numbers: list[int]) -> None:
    """Erase the records of decisions. In SQLite the bytes are overwritten, as those of a row are."""
    connection.execute(sa.delete(sql_tables.records).where(_RECORD.decision.in_(numbers)))


def every(connection: sa.Connection) -> Iterator[tuple[int, raw_records.RawRequest]]:
    """The number of each decision whose records are kept, with them."""
    at = -1
    fields = sa.select(_RECORD.decision, _RECORD.bytes).order_by(_RECORD.decision).limit(PAGE)
    while page := connection.execute(fields.where(_RECORD.decision > at)).all():
        yield from ((row.decision, raw_records.unpacked(bytes(row.bytes))) for row in page)
        at = page[-1].decision

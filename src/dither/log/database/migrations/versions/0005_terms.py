"""The terms of rewards, and their changes; and what finds the decisions of a span of time.

The terms of an older ledger are the first, of all decisions that it has.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TEACHES = "batch IS NULL AND standing IN ('counted', 'default', 'whole', 'correction')"


def upgrade() -> None:
    """Add the table, and the number of the terms of each decision."""
    op.create_table(
        "dither_changes",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("horizon", sa.BigInteger),
    )
    op.execute(
        "INSERT INTO dither_changes (number, time, terms) SELECT 0, 0, value FROM dither_settings WHERE name = 'ledger'"
    )
    seconds = (
        "json_extract(terms, '$.horizon')"
        if op.get_bind().dialect.name == "sqlite"
        else "(terms::json ->> 'horizon')::double precision"
    )
    op.execute(f"UPDATE dither_changes SET horizon = CAST(round({seconds} * 1000000) AS BIGINT)")
    op.execute("DELETE FROM dither_settings WHERE name = 'ledger'")
    for table in ("decisions", "lease"):
        op.add_column(f"dither_{table}", sa.Column("terms", sa.BigInteger, nullable=False, server_default="0"))
    where = sa.text("erased IS NOT NULL")
    op.create_index("dither_times", "dither_decisions", ["time"])
    op.create_index("dither_gone", "dither_decisions", ["time"], sqlite_where=where, postgresql_where=where)
    op.drop_index("dither_unlearnt", "dither_rewards")
    where = sa.text(TEACHES)
    op.create_index("dither_unlearnt", "dither_rewards", ["seq"], sqlite_where=where, postgresql_where=where)

"""Arms by id, slots that grow, shadows that learn, and parts that are learnt once they are complete."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEACHES = "batch IS NULL AND standing IN ('counted', 'default', 'whole')"


def upgrade() -> None:
    """Add what is new. What is there keeps its meaning."""
    op.create_table(
        "dither_arms",
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("record", sa.Text),
    )
    op.add_column("dither_batches", sa.Column("slots", sa.Integer))
    op.add_column("dither_snapshots", sa.Column("shadow", sa.BigInteger))
    op.add_column("dither_snapshots", sa.Column("shadow_bytes", sa.LargeBinary))
    for name in ("arms", "shadow"):
        op.add_column("dither_lease", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE dither_rewards SET batch = 0 WHERE batch IS NULL AND part <> '' AND standing = 'counted'")
    op.drop_index("dither_unlearnt", "dither_rewards")
    where = sa.text(TEACHES)
    op.create_index("dither_unlearnt", "dither_rewards", ["seq"], sqlite_where=where, postgresql_where=where)

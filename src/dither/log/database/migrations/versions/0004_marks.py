"""Marks, by which a process sees that the ledger is another one than a moment ago; and the length of a lease."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

RANDOM = {"sqlite": "random() & 9223372036854775807", "postgresql": "floor(random() * 9007199254740992)::bigint"}


def upgrade() -> None:
    """Add the columns. A batch without a mark is known by its time."""
    op.add_column("dither_batches", sa.Column("mark", sa.BigInteger))
    op.add_column("dither_lease", sa.Column("mark", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("dither_lease", sa.Column("length", sa.BigInteger))
    op.execute(f"UPDATE dither_lease SET mark = {RANDOM[op.get_bind().dialect.name]}")

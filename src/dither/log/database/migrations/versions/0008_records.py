"""Contexts and records of arms beside X, and which features made X: those with which the ledger began, up to now."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table, and the number of the features. A ledger that keeps no records has no rows in it."""
    op.create_table(
        "dither_records",
        sa.Column("decision", NUMBER, sa.ForeignKey("dither_decisions.number"), primary_key=True, autoincrement=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
    )
    for table in ("decisions", "lease"):
        op.add_column(f"dither_{table}", sa.Column("encoded", sa.BigInteger, nullable=False, server_default="0"))

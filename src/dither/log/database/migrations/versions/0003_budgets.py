"""What is spent of the budgets of arms."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table. A ledger without budgets has no rows in it."""
    op.create_table(
        "dither_spent",
        sa.Column("period", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("amount", sa.Double, nullable=False),
    )

"""Events of a running bandit: settings that change, a shadow that is promoted, a rollback. Each is a batch."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "dither_events",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("batch", sa.BigInteger, nullable=False, unique=True),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("bytes", sa.LargeBinary),
    )

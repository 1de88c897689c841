"""What computed where a batch was taught. NumPy did before there was a choice, and such a batch does not say it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column."""
    op.add_column("dither_batches", sa.Column("arithmetic", sa.Text))

"""What the alarm of a ledger has seen, in each snapshot."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column. An older ledger has no alarm."""
    op.add_column("dither_snapshots", sa.Column("alarm", sa.Text))

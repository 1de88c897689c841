"""Which event a snapshot knows, since an older dither, which knows none, may write snapshots beside this one."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column. A snapshot without it knows no event, as those of before."""
    op.add_column("dither_snapshots", sa.Column("event", sa.BigInteger))

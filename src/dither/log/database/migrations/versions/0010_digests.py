"""A digest of the request that a decision answers, so that the same request under the same id gets the same answer."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column. Decisions of before have none: their ids are refused, as they were."""
    op.add_column("dither_decisions", sa.Column("digest", sa.LargeBinary))

"""Sums by day and arm, which a learner keeps. An older ledger has none: they are made when it is learnt from."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

COUNTS = (
    "decisions",
    "erased",
    "usable",
    "rewarded",
    "defaults",
    "corrections",
    "conflicts",
    "late",
    "waiting",
    "told",
    "explored",
    "offered",
    "stated",
    "stated_shown",
)
SUMS = (
    "propensity",
    "floor",
    "reward",
    "reward_squared",
    "weight",
    "weight_squared",
    "rewarded_weight",
    "rewarded_weight_squared",
    "weighted_reward",
    "squared_weighted_reward",
    "weighted_reward_squared",
    "expected",
    "expected_variance",
)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "dither_days",
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Text, primary_key=True),
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in COUNTS],
        *[sa.Column(name, sa.Double, nullable=False) for name in SUMS],
        sa.Column("rest", sa.LargeBinary, nullable=False),
    )

"""What processes count and what fails in them, for whoever reads the ledger; and sums by hour beside those by day.

An older ledger has counted nothing. Its hours begin after the one in which a learner adds to its days again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

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
    """Add the tables."""
    op.create_table(
        "dither_hours",
        sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in COUNTS],
        *[sa.Column(name, sa.Double, nullable=False) for name in SUMS],
        sa.Column("rest", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dither_counts",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("written", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "dither_troubles",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("what", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("times", sa.BigInteger, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("seen", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger),
    )

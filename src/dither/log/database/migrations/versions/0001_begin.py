"""The first tables of a ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COUNTS = "standing IN ('counted', 'default')"


def upgrade() -> None:
    """Make the tables."""
    _decisions()
    _rewards()
    _learning()


def _decisions() -> None:
    op.create_table(
        "dither_decisions",
        sa.Column("number", NUMBER, sa.Identity(), primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("arms", sa.Text),
        sa.Column("K", sa.Integer, nullable=False),
        sa.Column("arm_set", sa.Text),
        sa.Column("width", sa.Integer),
        sa.Column("features", sa.LargeBinary),
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("propensity", sa.Double),
        sa.Column("propensity_kind", sa.Text),
        sa.Column("propensity_se", sa.Double),
        sa.Column("floor", sa.Double),
        sa.Column("z", sa.Double),
        sa.Column("z_law", sa.Text),
        sa.Column("m", sa.LargeBinary),
        sa.Column("w", sa.LargeBinary),
        sa.Column("probabilities", sa.LargeBinary),
        sa.Column("policy", sa.Text),
        sa.Column("preset", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("extra", sa.Text),
        sa.Column("x", sa.LargeBinary),
        sa.Column("slot", sa.Integer),
        sa.Column("batch", sa.BigInteger),
        sa.Column("deadline", sa.BigInteger),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("erased", sa.BigInteger),
    )
    _index("open", "decisions", ["deadline"], where="NOT closed AND deadline IS NOT NULL")


def _rewards() -> None:
    op.create_table(
        "dither_rewards",
        sa.Column("seq", NUMBER, sa.Identity(), primary_key=True),
        sa.Column("decision", NUMBER, sa.ForeignKey("dither_decisions.number"), nullable=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("reward", sa.Double),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("standing", sa.Text, nullable=False),
        sa.Column("batch", sa.BigInteger),
    )
    op.create_index("ix_dither_rewards_decision", "dither_rewards", ["decision"])
    _index("once", "rewards", ["decision", "part"], where=COUNTS, unique=True)
    _index("unlearnt", "rewards", ["seq"], where=f"batch IS NULL AND {COUNTS}")
    op.create_index("dither_learnt", "dither_rewards", ["batch", "seq"])


def _learning() -> None:
    op.create_table(
        "dither_batches",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "dither_snapshots",
        sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dither_lease",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.Column("erased", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "dither_erasures",
        sa.Column("number", NUMBER, sa.Identity(), primary_key=True),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("decisions", sa.Integer, nullable=False),
    )
    op.create_table(
        "dither_settings",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text),
        sa.Column("bytes", sa.LargeBinary),
    )
    op.execute("INSERT INTO dither_lease (one, holder, fence, expires, erased) VALUES (1, '', 0, 0, 0)")


def _index(name: str, table: str, columns: list[str], *, where: str, unique: bool = False) -> None:
    text = sa.text(where)
    op.create_index(
        f"dither_{name}", f"dither_{table}", columns, unique=unique, sqlite_where=text, postgresql_where=text
    )

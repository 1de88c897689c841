"""The tables of a ledger, written once for SQLite and for PostgreSQL.

Times are whole microseconds since 1970, UTC. Arrays are the bytes of float64, little endian, row by row. Lists of texts
and the user's own columns are JSON. `migrations` makes these tables, and a test compares the two.

A reward has no batch until a learner takes it. So a row that commits late has none either, and falls into a later batch
than rows with higher numbers (`lessons`).
"""

from typing import Any

import sqlalchemy as sa

from dither.log import arm_days, reward_rules, schema

PREFIX = "dither_"
metadata = sa.MetaData()
Whole = sa.BigInteger()
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts only in a column of type INTEGER
Bytes = sa.LargeBinary()


def counts(standing: sa.Column) -> sa.ColumnElement[bool]:
    """Whether an event counts, as SQL without parameters, since an index needs it."""
    return among(standing, reward_rules.COUNTS)


def teaches(standing: sa.Column) -> sa.ColumnElement[bool]:
    """Whether an event may teach a bandit, as SQL without parameters. A part has batch 0: it never teaches alone.

    Of several of one decision the first is its lesson, and each later one is another reward for it (`lessons`).
    """
    return among(standing, (*reward_rules.COUNTS, reward_rules.WHOLE, reward_rules.CORRECTION))


def among(standing: sa.Column, names: tuple[str, ...]) -> sa.ColumnElement[bool]:
    """Whether an event has one of these standings, as SQL without parameters."""
    return standing.in_([sa.literal_column(f"'{name}'") for name in names])


_TYPES: dict[str, Any] = {
    "text": sa.Text,
    "texts": sa.Text,
    "time": Whole,
    "whole": sa.Integer,
    "number": sa.Double,
    "numbers": Bytes,
    "rows": Bytes,
}
_NEEDED = ("id", "time", "K", "arm")

decisions = sa.Table(
    PREFIX + "decisions",
    metadata,
    sa.Column("number", Number, sa.Identity(), primary_key=True),
    *[
        sa.Column(name, _TYPES[schema.COLUMNS[name]], nullable=name not in _NEEDED, unique=name == "id")
        for name in schema.DECISION
        if name != "learnt"  # which is the batch
    ],
    sa.Column("width", sa.Integer),  # d, the length of a row of features
    sa.Column("extra", sa.Text),  # JSON, the user's own columns by name
    sa.Column("x", Bytes),  # (d,) what a reward teaches: the features of the arm shown, or the context of the slots
    sa.Column("slot", sa.Integer),  # the slot that was shown, where the bandit has disjoint slots
    sa.Column("batch", Whole),  # the bandit had learnt the batches up to this one; the `learnt` of the log
    sa.Column("deadline", Whole),  # a reward after this moment is late
    sa.Column("closed", sa.Boolean, nullable=False),  # whether `expire` has found the deadline passed
    sa.Column("erased", Whole),  # number of the erasure that took the data
    sa.Column("terms", Whole, nullable=False, server_default="0"),  # number of the terms of its rewards
    sa.Column("encoded", Whole, nullable=False, server_default="0"),  # number of the features that made X (`lease`)
    sa.Column("digest", Bytes),  # of the request that it answers (`live.repeats`); null: nobody has said what it was
)
OPEN = sa.text("NOT closed AND deadline IS NOT NULL")  # in these words, as only by them SQLite knows the index fits
sa.Index(PREFIX + "open", decisions.c.deadline, sqlite_where=OPEN, postgresql_where=OPEN)

sa.Index(PREFIX + "times", decisions.c.time)
_GONE = decisions.c.erased.is_not(None)
sa.Index(PREFIX + "gone", decisions.c.time, sqlite_where=_GONE, postgresql_where=_GONE)

records = sa.Table(  # what decisions were made of, before any features (`features.raw_records`)
    PREFIX + "records",
    metadata,
    sa.Column("decision", Number, sa.ForeignKey(PREFIX + "decisions.number"), primary_key=True, autoincrement=False),
    sa.Column("bytes", Bytes, nullable=False),
)

rewards = sa.Table(
    PREFIX + "rewards",
    metadata,
    sa.Column("seq", Number, sa.Identity(), primary_key=True),
    sa.Column("decision", Number, sa.ForeignKey(PREFIX + "decisions.number"), nullable=False, index=True),
    sa.Column("part", sa.Text, nullable=False),  # "": the decision has one reward without a name
    sa.Column("reward", sa.Double),  # null: erased
    sa.Column("time", Whole, nullable=False),
    sa.Column("standing", sa.Text, nullable=False),  # one of reward_rules.EVENTS, or reward_rules.WHOLE
    sa.Column("batch", Whole),  # in which it was learnt; 0: a part, which is learnt in the sum of all parts
)
for name, columns, where in (
    ("once", (rewards.c.decision, rewards.c.part), counts(rewards.c.standing)),
    ("unlearnt", (rewards.c.seq,), rewards.c.batch.is_(None) & teaches(rewards.c.standing)),
):
    sa.Index(PREFIX + name, *columns, unique=name == "once", sqlite_where=where, postgresql_where=where)
sa.Index(PREFIX + "learnt", rewards.c.batch, rewards.c.seq)

batches = sa.Table(
    PREFIX + "batches",
    metadata,
    sa.Column("number", Whole, primary_key=True, autoincrement=False),
    sa.Column("time", Whole, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("fence", Whole, nullable=False),  # of the learner that made it
    sa.Column("slots", sa.Integer),  # how many disjoint slots the bandit has from here on, where it has slots
    sa.Column("mark", Whole),  # random: another history has another one; null: made by an older dither
    sa.Column("arithmetic", sa.Text),  # that taught it (`base.compiled`); null: NumPy, by an older dither
)

events = sa.Table(  # of the bandit (`ledger_events`): each is a batch, from which on the bandit is another one
    PREFIX + "events",
    metadata,
    sa.Column("number", Whole, primary_key=True, autoincrement=False),
    sa.Column("batch", Whole, nullable=False, unique=True),
    sa.Column("time", Whole, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),  # JSON
    sa.Column("bytes", Bytes),  # the bandit from there on, as it begins; null: it begins as one before
)

snapshots = sa.Table(
    PREFIX + "snapshots",
    metadata,
    sa.Column("batch", Whole, primary_key=True, autoincrement=False),  # the last batch that was learnt
    sa.Column("time", Whole, nullable=False),
    sa.Column("fence", Whole, nullable=False),
    sa.Column("bytes", Bytes, nullable=False),  # Bandit.to_bytes
    sa.Column("shadow", Whole),  # the number of the shadow that learns beside it
    sa.Column("shadow_bytes", Bytes),
    sa.Column("event", Whole),  # the last event that it knows; null: none, as of an older dither that knows no events
    sa.Column("alarm", sa.Text),  # JSON: what the alarm has seen (`live.alarms`)
)

lease = sa.Table(  # one row
    PREFIX + "lease",
    metadata,
    sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text, nullable=False),  # "": nobody
    sa.Column("fence", Whole, nullable=False),  # grows with every new holder
    sa.Column("expires", Whole, nullable=False),
    sa.Column("erased", Whole, nullable=False),  # number of the last erasure: a state from before it is not to be used
    sa.Column("arms", Whole, nullable=False, server_default="0"),  # version of the catalogue
    sa.Column("shadow", Whole, nullable=False, server_default="0"),  # number of the shadow, 0 before the first
    sa.Column("mark", Whole, nullable=False, server_default="0"),  # random, new with each of these changes
    sa.Column("length", Whole),  # of the lease, in microseconds; null: taken by an older dither
    sa.Column("terms", Whole, nullable=False, server_default="0"),  # number of the terms of the decisions to come
    sa.Column("encoded", Whole, nullable=False, server_default="0"),  # number of the features: 0 of the first ones
)

changes = sa.Table(  # the terms of rewards, each time all of them (`log.terms`)
    PREFIX + "changes",
    metadata,
    sa.Column("number", Whole, primary_key=True, autoincrement=False),  # 0: those with which the ledger began
    sa.Column("time", Whole, nullable=False),
    sa.Column("terms", sa.Text, nullable=False),  # JSON
    sa.Column("horizon", Whole),  # microseconds after which a reward is late; null: never
)

erasures = sa.Table(
    PREFIX + "erasures",
    metadata,
    sa.Column("number", Number, sa.Identity(), primary_key=True),
    sa.Column("time", Whole, nullable=False),
    sa.Column("by", sa.Text, nullable=False),  # the column that was searched, or "id": never what was searched for
    sa.Column("decisions", sa.Integer, nullable=False),  # how many
)

arms = sa.Table(  # the events of the catalogue (`features.catalogue_events.ArmEvent`)
    PREFIX + "arms",
    metadata,
    sa.Column("version", Whole, primary_key=True, autoincrement=False),
    sa.Column("time", Whole, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("record", sa.Text),  # JSON
)

spent = sa.Table(  # of the budgets of arms
    PREFIX + "spent",
    metadata,
    sa.Column("period", Whole, primary_key=True, autoincrement=False),  # its length in microseconds; 0: for ever
    sa.Column("start", Whole, primary_key=True, autoincrement=False),  # its number, from 1970
    sa.Column("arm", sa.Text, primary_key=True),
    sa.Column("amount", sa.Double, nullable=False),  # shows, or the sum of their costs
)

_SUMS: tuple[tuple[str, Any], ...] = (
    *((name, Whole) for name in arm_days.COUNTS),
    *((name, sa.Double) for name in arm_days.SUMS),
    ("rest", Bytes),  # what rounding has left of each sum
)

days = sa.Table(  # what decisions and rewards add up to (`log.arm_days`), as far as the learner has come (`days`)
    PREFIX + "days",
    metadata,
    sa.Column("day", Whole, primary_key=True, autoincrement=False),  # its number from 1970
    sa.Column("arm", sa.Text, primary_key=True),  # its id, or its position
    *[sa.Column(name, kind, nullable=False) for name, kind in _SUMS],
)

hours = sa.Table(  # the same of all arms, for the hours of late
    PREFIX + "hours",
    metadata,
    sa.Column("hour", Whole, primary_key=True, autoincrement=False),  # its number from 1970
    *[sa.Column(name, kind, nullable=False) for name, kind in _SUMS],
)

counts_by_day = sa.Table(  # what processes have counted beside decisions and rewards (`tallying`)
    PREFIX + "counts",
    metadata,
    sa.Column("process", sa.Text, primary_key=True),  # "": of several, which are added up
    sa.Column("day", Whole, primary_key=True, autoincrement=False),  # its number from 1970
    sa.Column("kind", sa.Text, primary_key=True),  # one of tallies.KINDS
    sa.Column("name", sa.Text, primary_key=True),  # of the field, or what a trouble is about; "": of nothing
    sa.Column("n", Whole, nullable=False),
    sa.Column("written", Whole, nullable=False),  # when
)

troubles = sa.Table(  # what failed beside calls that were answered (`tallying`)
    PREFIX + "troubles",
    metadata,
    sa.Column("process", sa.Text, primary_key=True),
    sa.Column("what", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),  # name of the machine, and number of the process there
    sa.Column("first", Whole, nullable=False),  # when it began
    sa.Column("last", Whole, nullable=False),  # when it was met last
    sa.Column("times", Whole, nullable=False),  # how often it was met since it began
    sa.Column("words", sa.Text, nullable=False),  # of the last time
    sa.Column("seen", Whole, nullable=False),  # when its process wrote last that it stands
    sa.Column("ended", Whole),  # null: it was not mended yet
)

settings = sa.Table(
    PREFIX + "settings",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text),  # JSON
    sa.Column("bytes", Bytes),
)

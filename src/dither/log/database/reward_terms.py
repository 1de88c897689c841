"""The terms of rewards in the ledger, and their changes: each is a row with all terms, from its number on.

The newest number stands in the row of the lease. A decision has the number that is the newest in the statement that
stores it (`entering`), so no process stores a decision under terms that another one has changed before.
"""

import json
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from dither.log import schema, terms
from dither.log.database import lessons, refusals, sql_tables
from dither.log.database.home import Home

_CHANGE, _LEASE = sql_tables.changes.c, sql_tables.lease.c
_NEWEST = sa.select(_CHANGE.number, _CHANGE.terms).where(_CHANGE.number == sa.select(_LEASE.terms).scalar_subquery())


def newest(connection: sa.Connection) -> terms.Terms:
    """The terms of the decisions to come."""
    return terms.of_text(connection.execute(_NEWEST).one().terms)


def every(connection: sa.Connection) -> dict[int, terms.Terms]:
    """All terms that there were, by number."""
    rows = connection.execute(sa.select(_CHANGE.number, _CHANGE.terms))
    return {row.number: terms.of_text(row.terms) for row in rows}


def ranges(connection: sa.Connection, *which: sa.ColumnElement[bool]) -> schema.Range | None:
    """The least range in which the rewards of decisions lie; None where those of one have no limits.

    which : conditions; without any, all decisions
    """
    agreed = every(connection)
    numbers = connection.scalars(sa.select(sql_tables.decisions.c.terms).where(*which).distinct())
    return schema.hull(agreed[number].reward_range for number in numbers)


def settle(home: Home, passed: Mapping[str, Any]) -> terms.Terms:
    """Give a new ledger its terms, or compare those that it has with those that are passed.

    Raises ValueError where it has others, and where two of them do not go together.
    """
    with home.reading() as connection:  # who may only read can open it
        stored = connection.execute(_NEWEST).first()
    if stored is None and home.looks:  # its process was killed while it made it
        raise refusals.unbegun(home.where, "was begun, and has no bandit yet")
    if stored is None:
        with home.writing() as connection:
            lessons.hold(connection)  # of several processes that open a new ledger, one gives it its terms
            stored = connection.execute(_NEWEST).first()
            if stored is None:
                new = {**terms.BEGIN, **passed}
                terms.consistent(new)
                _put(connection, home, 0, new)
                return newest(connection)
    terms.differs({**terms.BEGIN, **json.loads(stored.terms)}, passed, where=home.where)
    return terms.of_text(stored.terms)


def change(connection: sa.Connection, home: Home, new: Mapping[str, Any]) -> None:
    """Let other terms hold for the decisions to come. new : by name, as `terms.changed` takes them"""
    lessons.hold(connection)
    number, text = connection.execute(_NEWEST).one()
    before = {**terms.BEGIN, **json.loads(text)}
    after = terms.changed(before, new)
    if after != before:
        _put(connection, home, number + 1, after)
        lessons.changed(connection, terms=number + 1)


def bound(connection: sa.Connection, home: Home, support: schema.Range, span: Any, *, new: bool) -> None:
    """Let the rewards of a ledger be such as its bandit can learn.

    support : the least and the largest reward that it can learn; span : `reward_range` as it was passed, or None
    new : whether the ledger has it from now on. An older version did not say what a bandit can learn

    Raises ValueError where the ledger has another range, and where its terms do not fit a new bandit.
    """
    passed = {} if span is None else {"reward_range": terms.pair(span)}
    text = connection.execute(_NEWEST).one().terms
    now = {**terms.BEGIN, **json.loads(text)}
    if "support" in json.loads(text) and not new:
        terms.differs(now, passed, where=home.where)
        return
    if now["reward_range"] is not None:
        terms.differs(now, passed, where=home.where)
    more = {"support": schema.ends(support)} | (passed if now["reward_range"] is None else {})
    if new or passed:
        terms.consistent(now | more)
    for row in connection.execute(sa.select(_CHANGE.number, _CHANGE.terms)).all():
        every_term = {**json.loads(row.terms)}
        lacking = {name: value for name, value in more.items() if every_term.get(name) is None}
        text = json.dumps(every_term | lacking)
        connection.execute(sa.update(sql_tables.changes).where(_CHANGE.number == row.number).values(terms=text))


def learnable(connection: sa.Connection, home: Home, support: schema.Range) -> None:
    """Let the bandit be one that can learn these rewards. What may come stays as it was.

    support : the least and the largest reward that it can learn

    Raises ValueError where decisions may have rewards that it cannot learn.
    """
    number, text = connection.execute(_NEWEST).one()
    now = {**terms.BEGIN, **json.loads(text)}
    if now["support"] == schema.ends(support):
        return
    numbers = connection.scalars(sa.select(sql_tables.decisions.c.terms).distinct())
    agreed = every(connection)
    span = schema.hull(agreed[one].reward_range for one in {number, *numbers}) or (-math.inf, math.inf)
    if not support[0] <= span[0] or not span[1] <= support[1]:
        raise ValueError(
            f"the rewards of the ledger in {home.where} lie in {terms.words(span)}, and this bandit learns those in "
            f"{terms.words(support)}: pass a bandit with the same link, or begin a new ledger with this one"
        )
    kept = now["support"] if now["reward_range"] is None else now["reward_range"]
    _put(connection, home, number + 1, now | {"support": schema.ends(support), "reward_range": kept})
    lessons.changed(connection, terms=number + 1)


def _put(connection: sa.Connection, home: Home, number: int, each: Mapping[str, Any]) -> None:
    seconds = each["horizon"]
    row = {"number": number, "time": home.now(connection), "terms": json.dumps(each)}
    ticks = None if seconds is None else timedelta(seconds=seconds) // timedelta(microseconds=1)
    connection.execute(sa.insert(sql_tables.changes).values(row | {"horizon": ticks}))

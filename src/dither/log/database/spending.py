"""What a choice depends on besides what was learnt: what is spent of budgets, and the rounds of a baseline.

Both change with every decision. Whoever decides holds the lock of this file from before the reading until the commit,
so no two processes decide from the same state. The order of locks is: the lease, this one, the rows.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from dither.log.database import fetching, keeping, sql_tables
from dither.log.database.home import Home

ROUNDS = "rounds"  # the setting that holds what the rounds of a baseline add up to
_DECIDING = 7_365_115  # the number of the lock in a PostgreSQL database
_SPENT = sql_tables.spent.c
_ONE = (
    (_SPENT.arm == sa.bindparam("arm_"))
    & (_SPENT.period == sa.bindparam("period_"))
    & (_SPENT.start == sa.bindparam("start_"))
)
_READ = sa.select(_SPENT.arm, _SPENT.amount).where(
    (_SPENT.period == sa.bindparam("period_")) & (_SPENT.start == sa.bindparam("start_"))
)
_SET = sa.update(sql_tables.spent).where(_ONE).values(amount=sa.bindparam("amount_")).returning(_SPENT.amount)
_NEW = sa.insert(sql_tables.spent).values({c.name: sa.bindparam(c.name) for c in _SPENT})
_SETTING = sql_tables.settings.c
_ERASED = sa.select(sql_tables.lease.c.erased)
_ROUNDS = sa.select(_SETTING.value, _SETTING.bytes).where(_SETTING.name == sa.bindparam("name_"))
_SET_ROUNDS = (
    sa.update(sql_tables.settings)
    .where(_SETTING.name == sa.bindparam("name_"))
    .values(value=sa.bindparam("value_"), bytes=sa.bindparam("bytes_"))
    .returning(_SETTING.name)
)

Place = tuple[int, int]  # the length of a period in microseconds, and its number


class Round(NamedTuple):
    """One decision of a bandit that keeps a baseline, as its row has it."""

    X: np.ndarray  # (K, d) of the arms on offer
    arm: int
    extra: dict[str, Any]


def hold(connection: sa.Connection, home: Home) -> None:
    """Let nobody else decide until this transaction ends. SQLite has one writer anyway."""
    if home.postgres:
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_DECIDING})"))


def spent(connection: sa.Connection, home: Home, places: Iterable[Place]) -> dict[tuple[str, Place], float]:
    """What is spent of the budgets of all arms in some periods: (id, place) -> amount. What is absent is 0."""
    amounts = {}
    for place in places:
        for arm, amount in home.quick(connection, _READ, period_=place[0], start_=place[1]):
            amounts[arm, place] = amount
    return amounts


def spend(connection: sa.Connection, home: Home, amounts: dict[tuple[str, Place], float]) -> None:
    """Set what is spent."""
    for (arm, (period, start)), amount in amounts.items():
        if not home.quick(connection, _SET, arm_=arm, period_=period, start_=start, amount_=amount):
            home.quick(connection, _NEW, arm=arm, period=period, start=start, amount=amount)


def rounds(connection: sa.Connection, home: Home) -> tuple[int, np.ndarray | None]:
    """The number of the last erasure, and what the rounds add up to; None where they must be counted anew."""
    erased = home.quick(connection, _ERASED)[0][0]
    stored = home.quick(connection, _ROUNDS, name_=ROUNDS)
    if not stored or json.loads(stored[0][0])["erased"] != erased:
        return erased, None
    return erased, np.frombuffer(bytes(stored[0][1]), dtype="<f8")


def put_rounds(connection: sa.Connection, home: Home, erased: int, sums: np.ndarray) -> None:
    """Write what the rounds add up to, and the number of the last erasure that they know."""
    about, data = json.dumps({"erased": erased}), np.asarray(sums, dtype="<f8").tobytes()
    if not home.quick(connection, _SET_ROUNDS, name_=ROUNDS, value_=about, bytes_=data):
        keeping.put(connection, ROUNDS, {"erased": erased}, data)


def recount(connection: sa.Connection) -> None:
    """Let the rounds be counted anew by the next one who needs them."""
    keeping.put(connection, ROUNDS, {"erased": None}, b"")


def all_rounds(connection: sa.Connection, column: str) -> Iterator[Round]:
    """All decisions that have this column of `extra`, in order, without those that were erased."""
    for row, extra in fetching.with_extra(connection, "arm", "width", "features"):
        if column in extra:
            yield Round(np.frombuffer(row.features, dtype="<f8").reshape(-1, row.width), row.arm, extra)

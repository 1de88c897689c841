"""The data of one person, taken out of a ledger: an event that is recorded, and says how many decisions and not whose.

Of a decision stay its id, time, arm and propensity, so that the others keep their numbers. Its features, the user's own
columns, its lines, its probabilities and its rewards become null, and its records go (`record_rows`). What a bandit has
learnt of these rewards is in its snapshots. So the snapshots that hold one of them go too, and the bandit is made again
from what is left (`lessons`).
"""

import json
from typing import Any

import sqlalchemy as sa

from dither.base import errors
from dither.features import raw_records, tokens
from dither.log import record
from dither.log.database import days, entering, fetching, lessons, record_rows, sql_tables, tallying
from dither.log.database.home import Home

_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
GONE = ("features", "width", "x", "m", "w", "probabilities", "arm_set", "z", "extra", "digest")


def erase(connection: sa.Connection, home: Home, by: str, sought: list[Any]) -> int:
    """Erase the decisions whose column `by` ("id", or one of the user's own) has one of these values; -> how many.

    A field of their records is such a column too.
    """
    lessons.hold(connection)  # no learner writes a snapshot in the meantime
    if home.postgres:  # and no row comes that the search has not seen; SQLite has one writer anyway
        connection.execute(sa.text(f"LOCK TABLE {sql_tables.decisions.name} IN EXCLUSIVE MODE"))
    numbers = _by_id(connection, sought) if by == "id" else _by_column(connection, by, sought)
    if not numbers:
        return 0
    erasures = sql_tables.erasures
    insert = erasures.insert().values(time=home.now(connection), by=by, decisions=len(numbers))
    event = connection.scalar(insert.returning(erasures.c.number))
    with days.changing(connection, numbers):
        lessons.changed(connection, erased=event)
        for at in range(0, len(numbers), entering.TOGETHER):
            _blank(connection, numbers[at : at + entering.TOGETHER], event)
    tallying.erase(connection)
    return len(numbers)


def _blank(connection: sa.Connection, numbers: list[int], event: int | None) -> None:
    """Take the data of some decisions, and the snapshots that have learnt of it. event : number of the erasure"""
    snapshots, nothing = sql_tables.snapshots, dict.fromkeys(GONE) | {"erased": event}
    connection.execute(sa.update(sql_tables.decisions).where(_DECISION.number.in_(numbers)).values(nothing))
    record_rows.erase(connection, numbers)
    connection.execute(sa.update(sql_tables.rewards).where(_REWARD.decision.in_(numbers)).values(reward=None))
    learnt = sa.select(sa.func.min(_REWARD.batch)).where(_REWARD.decision.in_(numbers)).scalar_subquery()
    connection.execute(sa.delete(snapshots).where(snapshots.c.batch >= learnt))


def _by_id(connection: sa.Connection, ids: list[str]) -> list[int]:
    numbers: list[int] = []
    for at in range(0, len(ids), entering.TOGETHER):
        mine = _DECISION.id.in_(ids[at : at + entering.TOGETHER]) & _DECISION.erased.is_(None)
        numbers += connection.scalars(sa.select(_DECISION.number).where(mine))
    return numbers


def _by_column(connection: sa.Connection, by: str, sought: list[Any]) -> list[int]:
    """By reading all rows. The values are compared here, so that both databases compare them alike."""
    wanted = {key for value in sought for key in _keys(value)}
    numbers: set[int] = set()
    columns: set[str] = set()
    for row, extra in fetching.with_extra(connection):
        columns |= extra.keys()
        if by in extra and _key(extra[by]) in wanted:
            numbers.add(row.number)
    for number, request in record_rows.every(connection):
        for name, value in raw_records.fields(request):
            columns.add(name)
            if name == by and _key(value) in wanted:
                numbers.add(number)
    if columns and by not in columns:
        raise LookupError(
            f"no decision has a column {by!r} of your own, so none was erased: they have "
            f"{errors.listed(sorted(columns))}"
        )
    return sorted(numbers)


def _keys(value: Any) -> set[str]:
    """The keys of all that a value finds. A person with the number 7 may have been stored as text, and the reverse."""
    key = _key(value)
    value = json.loads(key)
    if isinstance(value, str):
        try:
            number = json.loads(value)
        except (ValueError, RecursionError):  # of a text that no number has, such as one of many brackets
            return {key}
        return {key, _key(number)} if _number(number) and value == value.strip() else {key}
    return {key, *(_key(text) for text in (str(value), str(float(value))))} if _number(value) else {key}


def _key(value: Any) -> str:
    """A text that two values share where they are equal: 7.0 is 7, and a name is one however its accents were typed."""
    text = tokens.nfc(json.dumps(value, default=record.as_json, ensure_ascii=False))
    value = json.loads(text)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else text


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300

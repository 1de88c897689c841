"""The latest decisions, a page at a time, each with its number in the ledger, by which a page finds it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dither.live import beside
from dither.log import Ledger, schema
from dither.log.database import fetching

PAGE = 50  # decisions
CONTEXT = ("features",)  # columns with what was known of a request, which a page shows only where it was told to


@dataclass(frozen=True)
class Decided:
    """One decision, as its row has it."""

    number: int  # in the ledger
    id: str
    time: datetime
    arm: str  # its id, or its position where the row has no ids
    propensity: float | None
    kind: str | None  # of the propensity
    learnt: int | None  # the last batch that it knew
    reward: float | None
    reward_time: datetime | None
    erased: bool
    row: dict[str, Any]  # all columns, the user's too


def decisions(ledger: Ledger, most: int = PAGE, *, before: int | None = None) -> list[Decided]:
    """The latest decisions, the newest first. before : of those with lower numbers"""
    with ledger.database.reading() as connection:
        numbers = fetching.latest(connection, most, before=before)
    return _rows(ledger, numbers)


def decision(ledger: Ledger, number: int, *, records: bool = False) -> Decided | None:
    """The decision of this number; None: there is none. records : whether with its context, where the ledger has it"""
    with ledger.database.reading() as connection:
        numbers = fetching.latest(connection, 1, before=number + 1)
    return next(iter(_rows(ledger, numbers, leave=(), records=records)), None) if numbers == [number] else None


def _rows(
    ledger: Ledger, numbers: list[int], leave: tuple[str, ...] = CONTEXT, *, records: bool = False
) -> list[Decided]:
    if not numbers:
        return []
    logged = ledger.logged(fetching.numbered(numbers), leave=leave, records=records)
    return [_decided(n, row) for n, row in zip(numbers, reversed(logged.frame.to_dicts()), strict=True)]


def _decided(number: int, row: dict[str, Any]) -> Decided:
    ids = row["arms"]
    return Decided(
        number=number,
        id=row["id"],
        time=row["time"],
        arm=str(row["arm"]) if ids is None else ids[row["arm"]],
        propensity=row["propensity"],
        kind=row["propensity_kind"],
        learnt=row["learnt"],
        reward=row["reward"],
        reward_time=row["reward_time"],
        erased=bool(row.get("was_erased")),
        row=row,
    )


def context(one: Decided) -> list[tuple[str, str]]:
    """What was known of the request of a decision: the user's own columns, then the features of the arm shown."""
    yours = [(name, value) for name, value in one.row.items() if name not in (*schema.COLUMNS, *beside.COLUMNS)]
    features = one.row["features"]
    row = None if not features else features[one.row["arm"] if len(features) > 1 else 0]
    numbers = [] if row is None else [("features of the arm shown", ", ".join(f"{x:.4g}" for x in row))]
    return [(name, str(value)) for name, value in yours if value is not None] + numbers

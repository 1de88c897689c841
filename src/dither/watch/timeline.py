"""What charts over time have on their axis: days or hours, each with its sums, in order."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from dither.live.status import Status
from dither.log import ArmDay

DAYS: dict[str, int | None] = {"14": 14, "90": 90, "all": None}  # as the address says it -> days that are drawn
USUAL = "90"
LATEST = 48  # hours, which a status has
YOUNG = 3  # days with decisions, below which hours are drawn unless days are asked for
NOT_KEPT = "Hours are not kept yet. They begin with the next hour after a Live of this version has learnt."
NONE = f"No decision in the latest {LATEST} hours."


class Step(NamedTuple):
    """The time from one point of a chart to the next."""

    word: str
    head: str  # of its column in a table
    length: timedelta
    form: str  # of the time at which one begins, in UTC, in a table
    sent: str  # and as the script takes it

    @property
    def milliseconds(self) -> int:
        """Its length, as the script counts."""
        return self.length // timedelta(milliseconds=1)


DAY = Step("day", "Day", timedelta(days=1), "%Y-%m-%d", "%Y-%m-%d")
HOUR = Step("hour", "Hour (UTC)", timedelta(hours=1), "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%MZ")


class Timeline(NamedTuple):
    """The points of a chart over time, in order."""

    step: Step
    rows: list[ArmDay]  # of all arms

    def times(self, form: str) -> list[str]:
        """When each of them begins, in UTC."""
        return [row.day.strftime(form) for row in self.rows if row.day is not None]


def days(rows: Iterable[ArmDay], *, most: int | None) -> Timeline:
    """The latest days, at most so many; days without decisions are there too, unless they are very many."""
    there = {row.day: row for row in rows if row.day is not None}
    return Timeline(DAY, _whole(there, DAY.length, most, last=max(there)) if there else [])


def hours(rows: Sequence[ArmDay], now: datetime) -> Timeline:
    """The hours of a status up to that of its `now`, from the first with a decision on.

    Earlier ones are left out, as they may be of the time before hours were kept. So are those that are yet to come.
    """
    last = now.replace(minute=0, second=0, microsecond=0)
    there: dict[date, ArmDay] = {row.day: row for row in rows if row.day is not None}
    return Timeline(HOUR, _whole(there, HOUR.length, None, last=last) if there else [])


def chosen(seen: Status, *, by: str | None, most: str | None) -> tuple[str, str]:
    """What is drawn, "hours" or one of `DAYS`, and what is said where hours are asked for and are not there.

    by : "hours", as the address says it; most : one of `DAYS`, which comes first; anything else: not asked for
    """
    if most in DAYS:
        return str(most), ""
    if by == "hours" and seen.hours is None:
        return USUAL, NOT_KEPT
    there = seen.hours is not None and bool(hours(seen.hours.rows, seen.now).rows)
    if by == "hours":
        return ("hours", "") if there else (USUAL, NONE)
    young = sum(row.decisions > 0 for row in seen.days.by_day()) < YOUNG
    return "hours" if young and there else USUAL, ""


def _whole(there: dict[date, ArmDay], length: timedelta, most: int | None, *, last: date) -> list[ArmDay]:
    """What is there from the first point that is drawn on, and the points between."""
    first = min(there) if most is None else max(min(there), last - (most - 1) * length)
    n = (last - first) // length
    if n > 4 * len(there) + 400:  # times that nobody meant
        return [there[at] for at in sorted(there) if at >= first]
    return [there.get(at) or ArmDay(at, None) for at in (first + k * length for k in range(n + 1))]

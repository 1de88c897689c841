"""Fields that go round: the hour of the day and the day of the week, each as a point of a circle.

    angle = 2π x/period        two columns: sin(angle) and cos(angle)

So 23:30 is as near to 0:30 as 12:30 is to 13:30, which no single column can say. A model that is linear in X learns one
wave a turn; a field that is a category beside it learns the rest.

Sine and cosine are rounded to 15 decimals, so that machines whose libraries differ in the last bit make the same X.
"""

import datetime
import math
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither.features import kind, values
from dither.features.values import Odd

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True)
class Cyclic(kind.Kind):
    """A place on a circle: the columns `field (sin)` and `field (cos)`. This is the base of both kinds.

    zone : the name of a time zone, such as "Europe/Vienna". A time that knows its own zone is read on the clocks of
        this one; one that knows none is read as it stands. None: every time is read as it stands, whatever its zone
    missing : "zero": both columns are 0, the middle of the circle; "column": the same, and a column says so with a 1;
        "error": it is refused

    Raises ValueError for a zone that this machine does not know.
    """

    zone: str | None = None
    missing: str = "zero"
    period: ClassVar[int]
    takes_times: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zone is not None:
            _zone(self.zone)

    def of_values(self, field: str) -> list[str]:
        """The two columns."""
        return [f"{field} (sin)", f"{field} (cos)"]

    def write(self, column: Sequence[Any], out: np.ndarray) -> kind.Gaps:
        """Write sine and cosine."""
        gone = []
        for i, value in enumerate(column):
            x = kind.at(i, self.read, value)
            if x is None:
                gone.append(i)
                continue
            angle = 2 * math.pi * x / self.period
            out[i, 0], out[i, 1] = round(math.sin(angle), 15) + 0.0, round(math.cos(angle), 15) + 0.0  # never -0.0
        return kind.Gaps(missing=gone)

    def read(self, value: Any) -> float:
        """Where a value is, from 0 to the period. Raises `Odd` for what has no place."""
        raise NotImplementedError

    def _here(self, time: datetime.datetime) -> datetime.datetime:
        """A moment on the clocks of the zone."""
        if self.zone is None or time.tzinfo is None:
            return time
        try:
            return time.astimezone(_zone(self.zone))
        except OverflowError:  # the first day, or the last one, that there is
            raise Odd(f"must be a time that {self.zone} has, got {time}") from None

    def __str__(self) -> str:
        where = "" if self.zone is None else f", in {self.zone}"
        return f"{self.name}, on a circle{where}"


@dataclass(frozen=True)
class Hour(Cyclic):
    """The hour of the day: a number from 0 to below 24, or a time of which the clock is read (`datetime`, `time`, ISO).

    A time without a date has no time zone to be turned from: where a `zone` is set, one that has a zone is refused.
    """

    name: ClassVar[str] = "hour"
    period: ClassVar[int] = 24

    def read(self, value: Any) -> float:
        """The hours since midnight."""
        time = values.time(value)
        if isinstance(time, datetime.datetime):
            time = self._here(time).time()
        elif isinstance(time, datetime.date):
            raise Odd(f"must have an hour, and {value!r} is a day: give the time, or the hour as a number")
        elif isinstance(time, datetime.time) and time.tzinfo is not None and self.zone is not None:
            raise Odd(
                f"is {value!r}, which has a zone and no day, so {self.zone} cannot be read from it: give the date too"
            )
        if isinstance(time, datetime.time):
            return time.hour + (60 * time.minute + time.second + time.microsecond / 1e6) / 3600
        x = _number(value, "an hour: a number from 0 to below 24, or a time")
        if not 0 <= x < 24:
            raise Odd(
                f"must be at least 0 and below 24, got {value!r}: 24 o'clock is 0, and minutes are parts of an hour"
            )
        return x


@dataclass(frozen=True)
class Weekday(Cyclic):
    """The day of the week: 0 for Monday to 6 for Sunday, its English name, or a day or a time of which it is read."""

    name: ClassVar[str] = "weekday"
    period: ClassVar[int] = 7

    def read(self, value: Any) -> float:
        """0 for Monday to 6 for Sunday."""
        if isinstance(value, str) and (day := values.text(value).strip().lower()).isalpha():
            numbers = [i for i, name in enumerate(DAYS) if day in (name, name[:3])]
            if not numbers:
                raise Odd(f"must be a day of the week, such as 'Monday' or 'Mon', got {value!r}: or give its number")
            return float(numbers[0])
        time = values.time(value)
        if isinstance(time, datetime.time):
            raise Odd(f"must have a day, and {value!r} is a time of any: give the date too")
        if isinstance(time, datetime.datetime):
            time = self._here(time)
        if isinstance(time, datetime.date):
            return float(time.weekday())
        x = _number(value, "a day of the week: a number from 0 to 6, its name, or a date")
        if x not in range(7):
            raise Odd(
                f"must be a whole number from 0, Monday, to 6, Sunday; got {value!r}: subtract 1 from days that count "
                "from 1 to 7"
            )
        return x


def _number(value: Any, what: str) -> float:
    """The value as a number. Raises `Odd` for what is none."""
    if values.real(value) and not isinstance(value, (bool, np.bool_)):
        return values.number(value)
    raise Odd(f"must be {what}; got {value!r}")


def _zone(name: Any) -> zoneinfo.ZoneInfo:
    """A time zone by its name."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError) as reason:
        raise ValueError(
            f"zone must be the name of a time zone, such as 'Europe/Vienna'; got {name!r} ({reason}): where this "
            "machine has no names of zones, install the package tzdata"
        ) from None

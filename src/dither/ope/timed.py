"""What `evaluate` asks of times: rewards that are late (`late`), and the value now or by period (`periods`).

A log is changed before it is judged: its rewards, its weights of rows, or which of its rows are there. So every policy,
estimator and interval works on it as on any other.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.log import check, schema
from dither.log.logged import Logged
from dither.ope import candidates, periods
from dither.ope import late as latency
from dither.ope.bounded import BOUNDED, ONE_VALUE

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
LATE = ("settled", "weighted")
BY = {"hour": ("1h", 13), "day": ("1d", 10), "week": ("1w", 10), "month": ("1mo", 7), "year": ("1y", 4)}
# period -> its length, as polars cuts times (weeks begin on Monday); how much of "2026-01-05T00" names its beginning


def seconds(name: str, length: Any) -> float | None:
    """A length of time: seconds, a timedelta, or a text such as "90s", "30min", "12h", "7d", "2w"."""
    if length is None:
        return None
    if isinstance(length, timedelta):
        length = length.total_seconds()
    if isinstance(length, str):
        parts = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", length)
        unit = UNITS.get(parts[2] or "s") if parts else None
        try:
            length = float(parts[1]) * unit if parts and unit else float(length)
        except ValueError:
            units = ", ".join(UNITS)
            raise ValueError(f"{name} must be seconds, or a number with one of {units}; got {length!r}") from None
    errors.positive(name, length)
    return float(length)


@dataclass(frozen=True)
class Timed:
    """The arguments of `evaluate` about time."""

    horizon: float | None = None  # seconds after which a reward no longer counts
    late: str = "settled"  # or "weighted": what becomes of decisions whose horizon has not passed
    now: Any = None  # when the log was read; None: the latest time in it
    half_life: float | None = None
    window: float | None = None
    at: Any = None  # None: the time of the latest decision
    by: str | None = None  # a column, or one of BY

    @classmethod
    def of(cls, horizon, late, now, half_life, window, at, by) -> "Timed":
        """As a user says it. Raises ValueError for what excludes each other."""
        errors.among("rule for late rewards", late, LATE)
        if half_life is not None and window is not None:
            raise Refused("give ", Option("half_life"), " or ", Option("window"), ", not both")
        lengths = [seconds(name, x) for name, x in (("horizon", horizon), ("half_life", half_life), ("window", window))]
        for name, is_set in (("late", late != LATE[0]), ("now", now is not None)):
            if is_set and horizon is None:
                raise Refused(Option(name), " is for late rewards: give ", Option("horizon", "7d"), " too")
        if at is not None and half_life is None and window is None:
            raise Refused(Option("at"), " needs ", Option("half_life", "7d"), " or ", Option("window", "7d"))
        return cls(lengths[0], late, _moment(now), lengths[1], lengths[2], _moment(at), by)

    @property
    def columns(self) -> set[str]:
        """The columns that it reads."""
        by = set() if self.by is None or self.by in BY else {self.by}
        return by | {"time"} | ({"reward_time"} if self.horizon else set())

    def refuse(self, interval: str, in_order: bool) -> None:
        """Raise ValueError for an interval, or estimators, that cannot be had with it."""
        this = Option("interval", interval)
        if self.half_life is not None and interval in ONE_VALUE:
            raise Refused(this, " takes the value to be the same in all rows, and ", Option("half_life"), " does not")
        if self.horizon is not None and self.late == "weighted":
            if interval in (*BOUNDED, "clopper_pearson"):
                raise Refused(this, " needs rewards as they came: take ", Option("late", "settled"))
            if in_order:
                settled = Option("late", "settled")
                raise Refused("an estimator that reads the past needs rewards as they came: take ", settled)

    def applied(self, logged: Logged, missing: Any) -> Logged:
        """The log with the rewards, the weights and the rows that are asked for, without those that were erased."""
        logged = check.present(logged)
        if self.horizon is not None and self.late == "settled":
            r = self._rewards(latency.settled, logged, missing)
            logged = check.without(_column(logged, "reward", r), np.isfinite(r), "the horizon has not passed")
        if self.half_life is not None or self.window is not None:
            s = periods.recent(_times(logged), half_life=self.half_life, window=self.window, at=self.at)
            logged = _column(logged, "weight", s if logged.weight is None else s * logged.weight)
            logged = check.without(logged, s > 0, "outside of the time that is asked about")
        if self.horizon is not None and self.late == "weighted":
            r = self._rewards(latency.arrived, logged, missing, weight=logged.weight)
            logged = _column(logged, "reward", r)
        return logged

    def _rewards(self, rule: Callable[..., np.ndarray], logged: Logged, missing: Any, **more: Any) -> np.ndarray:
        """The rewards (n,) that a rule of `late` makes."""
        if isinstance(missing, str):
            number = Option("missing", means="NUMBER")
            raise Refused("with a horizon, say what a reward counts that does not come: ", number)
        if "reward_time" not in logged.frame.columns:
            raise ValueError("a horizon needs the column 'reward_time', which says when a reward came")
        decided, r = _times(logged), logged.r
        came = logged.frame["reward_time"].dt.replace_time_zone(None).to_numpy()
        candidates.refuse(np.isfinite(r) & np.isnat(came), logged, "a reward must say when it came")
        now = self.now if self.now is not None else np.max(np.concatenate([decided, came[~np.isnat(came)]]))
        return rule(r, decided, came, now=now, horizon=self.horizon, default=float(missing), **more)

    def labels(self, logged: Logged) -> np.ndarray | None:
        """The period of each row, as text (n,); None where nobody asks."""
        if self.by is None:
            return None
        if self.by in BY and self.by not in logged.frame.columns:
            _times(logged)
            length, letters = BY[self.by]
            starts = logged.frame["time"].dt.truncate(length).dt.strftime("%Y-%m-%dT%H")
            return starts.str.head(letters).to_numpy().astype(str)
        column = logged.series(self.by)
        if column.null_count():
            raise ValueError(f"column {self.by!r} must say of every row to which period it belongs")
        return column.to_numpy().astype(str)

    def notes(self) -> list[str]:
        """What a reader must know of the values."""
        texts = []
        if self.half_life is not None:
            texts.append(
                f"Values are weighted means over time, half-life {_length(self.half_life)}: the intervals are for "
                "these means, and do not hold for how far a value moves meanwhile."
            )
        if self.window is not None:
            texts.append(f"Values are means over the last {_length(self.window)}: the intervals are for these means.")
        if self.horizon is not None and self.late == "weighted":
            texts.append(
                f"Rewards count within {_length(self.horizon)}. One that came late counts for younger rows too, which "
                "could not show it yet: right where the world stands still."
            )
        return texts


def in_order(logged: Logged) -> None:
    """Raise ValueError if the times of the rows say that they are not in order, where an estimator reads the past."""
    if not _timely(logged):
        return
    falls = np.diff(logged.time) < np.timedelta64(0)
    if falls.any():
        raise ValueError(
            f"an estimator for the log of a policy that learns needs the rows in order of time; row "
            f"{logged.numbers[int(np.argmax(falls)) + 1]} is earlier than the one before ({int(falls.sum())} such "
            "rows): sort the log by its time"
        )


def _timely(logged: Logged) -> bool:
    """Whether every row says when it was decided."""
    return "time" in logged.frame.columns and not logged.frame["time"].null_count()


def _times(logged: Logged) -> np.ndarray:
    """Times of the decisions (n,). Raises ValueError where they are not known."""
    if not _timely(logged):
        raise ValueError("the column 'time' must say of every row when it was decided")
    return logged.time


def _column(logged: Logged, name: str, x: np.ndarray) -> Logged:
    pl = schema.polars()
    return replace(logged, frame=logged.frame.with_columns(pl.Series(name, x, dtype=pl.Float64)))


def _moment(time: Any) -> np.datetime64 | None:
    return None if time is None else np.datetime64(schema.moment(time).replace(tzinfo=None), "us")


def _length(seconds: float) -> str:
    """With the largest unit that it is a whole number of."""
    unit = next((name for name, one in reversed(UNITS.items()) if seconds % one == 0), "s")
    return f"{seconds / UNITS[unit]:g} {unit}"

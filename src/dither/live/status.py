"""`Status`: how a running bandit stands, from its ledger alone, for people, monitors and exit codes.

What a ledger says is the same for everybody who reads it. All processes write there what they count and what fails in
them (`log.tallies`). What one process alone knows (`ProcessFacts`: what it has learnt, whether it learns) is there
where that process asks: `Live.status`. Then there is also what it has not written yet.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from dither.base import errors
from dither.deciding.budget import of_description
from dither.live import alarms, metrics, status_words
from dither.live.alarms import LiveAlarm
from dither.live.course import BEGAN
from dither.live.turns import BUDGETS, Limit
from dither.log import ArmDay, ArmDays, Ledger, record, tallies
from dither.log.database import days, ledger_events, spending, standing, tallying
from dither.log.database.ledger_events import BanditEvent

FINE, WARNING, UNREADABLE = 0, 1, 2  # exit codes, as monitors such as Nagios read them
STANDS, MENDED, GONE = "stands", "mended", "gone"  # states of a trouble
EVENTS, TROUBLES = 10, 100  # the latest ones that are listed
_CERTAIN = 5.0  # standard errors between what was drawn and what was stated, above which it is a warning
_ENOUGH = 10.0  # the least variance of a count that is compared so


@dataclass(frozen=True)
class WarningLimits:
    """What is a warning.

    Parameters
    ----------
    max_lag : seconds that a reward may wait until it is learnt, and a decision until its passed horizon is closed
    max_silence : seconds without a decision; None: any time
    recent : seconds for which an alarm is a warning

    Raises ValueError for numbers that are not above 0.
    """

    max_lag: float = 300.0
    max_silence: float | None = None
    recent: float = 86_400.0

    def __post_init__(self) -> None:
        for name in ("max_lag", "max_silence", "recent"):
            if getattr(self, name) is not None:
                errors.positive(name, getattr(self, name))


@dataclass(frozen=True)
class ProcessFacts:
    """What one process alone knows."""

    batch: int = 0  # the last that it has learnt
    learns: bool = False  # whether it holds the lease
    alarms: tuple[LiveAlarm, ...] = ()


@dataclass(frozen=True)
class DayCount:
    """What all processes have counted of one kind on one day."""

    day: date  # UTC
    kind: str  # one of `log.tallies.KINDS`
    name: str  # of the field, or what a trouble is about; "": of nothing
    n: int


@dataclass(frozen=True)
class ProcessTrouble:
    """What fails, or has failed, in one process. Times are UTC."""

    host: str  # name of the machine, and number of the process there
    what: str  # as of `Live.troubles`
    words: str  # of the last time
    first: datetime
    last: datetime
    times: int
    state: str  # "stands", "mended", or "gone": its process has not been heard of for a minute
    ended: datetime | None  # when it was mended, its process was closed, or was heard of last; None: it stands


@dataclass(frozen=True)
class Learning:
    """How far the learner is."""

    waiting: int  # rewards that are not learnt yet
    lag: float  # seconds since the first of them came; 0: none waits
    batches: int  # that were learnt
    learnt: datetime | None  # when the last one was
    snapshot: int  # the last batch that the newest snapshot has, from which other processes decide
    holder: str | None  # of the lease, the process that learns; None: nobody
    expires: datetime | None  # the lease, unless it is renewed

    @property
    def behind(self) -> int:
        """Batches that no snapshot has."""
        return self.batches - self.snapshot


@dataclass(frozen=True)
class Spending:
    """A budget, in the period of now."""

    arm: str
    period: str | float | None
    most: float
    spent: float


@dataclass(frozen=True)
class Status:
    """How a ledger stands at one moment."""

    where: str  # the home, without secrets
    now: datetime  # by the clock of the database
    days: ArmDays
    hours: ArmDays | None  # the latest 48, a row of all arms each: `day` is when it begins. None: not kept yet
    learning: Learning
    pending: int  # decisions that wait for their reward: within their horizon, or without one
    overdue: int  # decisions whose horizon has passed, and that `expire` has not closed
    overdue_since: datetime | None
    latest: datetime | None  # the time of the newest decision
    version: str | None  # of dither, which made it
    bandit: str | None  # its model, as the ledger began
    budgets: tuple[Spending, ...]
    alarms: tuple[LiveAlarm, ...]  # as of the newest snapshot, or as this process has learnt them; the newest last
    watched: int | None  # rewards that the alarm has seen; None: nothing is watched
    counted: tuple[DayCount, ...]  # by day, kind and name, by all processes
    troubles: tuple[ProcessTrouble, ...]  # the latest of all processes, the newest last
    events: tuple[BanditEvent, ...]  # the latest changes of the running bandit, the newest last
    here: ProcessFacts | None  # None: the ledger alone was asked
    limits: WarningLimits
    closes: bool  # whether something comes of `expire`: there is a default, or rewards have parts

    @property
    def warnings(self) -> list[str]:
        """What somebody should look at, a sentence each."""
        return list(_warnings(self))

    @property
    def refused(self) -> int:
        """Rewards that the model refused, on the days that were asked for."""
        return sum(one.n for one in self.counted if one.kind == tallies.REFUSED)

    @property
    def unknown(self) -> dict[str, int]:
        """Field -> values that the features did not know, on these days."""
        return self._by_name(tallies.UNKNOWN)

    @property
    def misspelt(self) -> dict[str, int]:
        """Field -> how often it came under nearly its name, on these days. They are among the unknown values too."""
        return self._by_name(tallies.MISSPELT)

    @property
    def failures(self) -> dict[str, int]:
        """What troubles are about -> how many came on these days."""
        return self._by_name(tallies.TROUBLE)

    def _by_name(self, kind: str) -> dict[str, int]:
        sums = Counter[str]()
        for one in self.counted:
            if one.kind == kind:
                sums[one.name] += one.n
        return dict(sorted(sums.items()))

    @property
    def exit_code(self) -> int:
        """0: fine; 1: there are warnings. A ledger that cannot be read has no status: the command ends with 2."""
        return WARNING if self.warnings else FINE

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it: times in ISO 8601, numbers that are not known as null."""
        whole = {name: _plain(getattr(self, name)) for name in _ALONE}
        rows = {"days": self.days.by_day(), "arms": self.days.by_arm(), "total": [self.days.total()]}
        tables = {name: [_row(one, arms=name == "arms") for one in some] for name, some in rows.items()}
        tables["rows"] = [_row(one, arms=True) for one in self.days.rows]
        whole["learning"]["behind"] = self.learning.behind
        whole |= {name: getattr(self, name) for name in ("refused", "unknown", "misspelt", "failures")}
        whole |= {"days": tables["days"], "arms": tables["arms"], "rows": tables["rows"], "total": tables["total"][0]}
        whole["hours"] = None if self.hours is None else [_row(one, arms=False) for one in self.hours.rows]
        return whole | {"warnings": self.warnings, "exit_code": self.exit_code}

    def text(self) -> str:
        """Tables for a terminal. They need rich, of the extras `experiments`, `serve` and `watch`."""
        return status_words.text(self)

    def prometheus(self) -> str:
        """Metrics in the text format of Prometheus. They need prometheus-client, of the extra `serve`."""
        return metrics.text(self)


_ALONE = [one.name for one in dataclasses.fields(Status) if one.name not in ("days", "hours", "limits", "closes")]


def of(
    ledger: Ledger, *, since: Any = None, limits: WarningLimits = WarningLimits(), here: ProcessFacts | None = None
) -> Status:
    """How a ledger stands. It is only read, and all of it at one moment.

    since : a time: the days from its day on; None: all days
    limits : what is a warning; here : what the process that asks knows beside

    Raises ValueError for a time that is none; OSError where the ledger cannot be read.
    """
    home = ledger.database
    span, unwritten = record.span(since, None), home.tallies.unwritten
    with home.reading() as connection:
        seen = standing.state(connection, home, ledger.parts)
        added = days.sums(connection, home)
        budgets = of_description(seen.settings.get(BUDGETS, {}))
        placed = {
            (arm, budget): Limit(budget.ticks, budget.most).place(seen.now)
            for arm, several in budgets.items()
            for budget in several
        }
        spent = spending.spent(connection, home, set(placed.values()))
        events = tuple(ledger_events.every(connection)[-EVENTS:])
        counts = tallying.counts(connection, home, unwritten)
        ailments = tallying.ailments(connection, home, unwritten)[-TROUBLES:]
    watched = alarms.held_by(seen.settings, seen.alarm)
    low = None if span[0] is None else _time(span[0]).date()
    rows = (
        added.days.rows
        if low is None
        else tuple(one for one in added.days.rows if one.day is not None and one.day >= low)
    )
    counted = [DayCount(record.EPOCH.date() + timedelta(day), kind, name, n) for (day, kind, name), n in counts.items()]
    learning = Learning(
        seen.waiting,
        0.0 if seen.oldest is None else max(0.0, (seen.now - seen.oldest) / 1e6),
        seen.batches,
        _time(seen.taught),
        seen.snapshot,
        seen.holder if seen.holder and seen.expires > seen.now else None,
        _time(seen.expires) if seen.holder else None,
    )
    return Status(
        home.where,
        _time(seen.now),
        ArmDays(rows),
        added.hours,
        learning,
        seen.pending + added.days.total().waiting,
        seen.overdue,
        _time(seen.overdue_since),
        _time(seen.latest),
        seen.version,
        seen.settings.get(BEGAN, {}).get("model"),
        tuple(Spending(arm, one.period, one.most, spent.get((arm, at), 0.0)) for (arm, one), at in placed.items()),
        tuple(alarms.raised(watched) if watched is not None else ()) if here is None else here.alarms,
        None if watched is None else watched.n,
        tuple(sorted((one for one in counted if low is None or one.day >= low), key=dataclasses.astuple)),
        tuple(_trouble(one, seen.now) for one in ailments),
        events,
        here,
        limits,
        ledger.default is not None or ledger.parts is not None,
    )


def _trouble(stored: tallying.StoredAilment, now: int) -> ProcessTrouble:
    one, seen = stored.ailment, _time(stored.seen)
    state, ended = (STANDS, None) if one.ended is None else (MENDED, one.ended)
    if one.ended is None and now - stored.seen > tallies.GONE * 1e6:
        state, ended = GONE, seen
    return ProcessTrouble(stored.host, one.what, one.words, one.first, one.last, one.times, state, ended)


def facts_of(live: Any) -> ProcessFacts:
    """What the process of a `Live` knows."""
    return ProcessFacts(live.batch, live.learns, tuple(live.alarms))


def _warnings(seen: Status) -> Any:
    learning, most = seen.learning, seen.limits.max_lag
    if learning.waiting and learning.lag > most:
        who = "nobody learns: a process that may learn must be open" if learning.holder is None else learning.holder
        yield f"{learning.waiting:,} rewards wait to be learnt, the first for {_long(learning.lag)} ({who})"
    late = 0.0 if seen.overdue_since is None else (seen.now - seen.overdue_since).total_seconds()
    if seen.closes and late > most:
        yield (
            f"{seen.overdue:,} decisions are past their horizon and not closed, the first for {_long(late)}: call "
            f"expire()"
        )
    silence = seen.limits.max_silence
    if silence is not None and (seen.latest is None or (seen.now - seen.latest).total_seconds() > silence):
        since = "ever" if seen.latest is None else f"since {seen.latest:%Y-%m-%d %H:%M} UTC"
        yield f"there was no decision {since}"
    for row in seen.days.by_arm():
        if (z := drift(row)) is not None and abs(z) > _CERTAIN:
            yield (
                f"arm {row.arm!r} was drawn {row.stated_shown:,} times of {row.stated:,}, and its stated probabilities "
                f"say {row.expected:,.0f}: {abs(z):.1f} standard errors off"
            )
    for alarm in seen.alarms:
        if (seen.now - alarm.time).total_seconds() <= seen.limits.recent:
            yield str(alarm)
    for one in seen.troubles:
        if one.state == STANDS:
            long = _long(max(0.0, (seen.now - one.first).total_seconds()))
            yield f"trouble with {one.what} for {long}, {status_words.times(one.times)}, in {one.host}: {one.words}"


def drift(row: ArmDay) -> float | None:
    """How many standard errors the draws of an arm are from what was stated; None: too little was stated to say it."""
    if row.expected_variance < _ENOUGH:
        return None
    return (row.stated_shown - row.expected) / math.sqrt(row.expected_variance)


def _time(micros: int | None) -> Any:
    return None if micros is None else record.EPOCH + timedelta(microseconds=min(micros, record.LAST))


def _long(seconds: float) -> str:
    """A length of time in words."""
    for length, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


_OF_ALL = ("mean_reward", "mean_reward_se", "mean_propensity", "mean_floor", "exploration")
_OF_ARM: tuple[str, ...] = (
    "stated_share",
    "stated_mean",
    "stated_se",
    "mean_weight",
    "mean_weight_se",
    "effective_rows",
)
_OF_ARM += ("value", "value_se")


def _row(row: ArmDay, *, arms: bool) -> dict[str, Any]:
    more = {name: getattr(row, name) for name in (*_OF_ALL, *(_OF_ARM if arms else ()))}
    return {name: _plain(value) for name, value in (dataclasses.asdict(row) | more).items()}


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, BanditEvent):
        return _plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value

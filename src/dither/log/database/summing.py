"""What decisions and their rewards add up to, by day and arm: the sums of `log.arm_days`, from rows of the tables.

A sum is kept as two numbers, the sum and what rounding has left of it, so that what is taken out again leaves no trace.
No reward is above `reward_rules.LARGEST`, so no sum of squares overflows, and none is cut: a decision would need
10 million parts of that size. What an older dither took, which knew no such rule, counts as `MOST` where it is larger;
so do weights above `HEAVIEST`, as what has a probability of 1e-70 is not drawn.

The hours of late are summed beside the days, of all arms together.
"""

import functools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dither.log import arm_days, record, reward_rules, schema
from dither.log.arm_days import ArmDay
from dither.log.database import sql_tables
from dither.log.storage import DAY
from dither.log.terms import Terms

MOST, HEAVIEST = 1e77, 1e70
EPOCH = date(1970, 1, 1)
_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
_NAMES = ("number", "time", "arms", "K", "arm", "propensity", "propensity_kind", "floor", "m", "probabilities")
DECISION = [_DECISION[name] for name in (*_NAMES, "deadline", "erased")]
EVENT = [_REWARD[name] for name in ("decision", "seq", "part", "reward", "time", "standing")]
_COUNT = {name: place for place, name in enumerate(arm_days.COUNTS)}
_SUM = arm_days.SUMS
_ALL, _ERASED, _USABLE, _REWARDED = (_COUNT[name] for name in ("decisions", "erased", "usable", "rewarded"))
_WAITING, _TOLD, _EXPLORED, _OFFERED = (_COUNT[name] for name in ("waiting", "told", "explored", "offered"))
_STATED, _STATED_SHOWN = _COUNT["stated"], _COUNT["stated_shown"]
_CAME = [_COUNT[name] for name in ("defaults", "corrections", "conflicts", "late")]
_NONE = (0, 0, 0, 0)
HOUR = 3_600_000_000  # microseconds
ALL = ""  # stands for all arms together
Key: TypeAlias = tuple[int, str]  # number of the day from 1970, and the arm; or that of the hour, and `ALL`


class ArmSums:
    """The counts and sums of one arm on one day."""

    __slots__ = ("counts", "rest", "sums")

    def __init__(self) -> None:
        self.counts = [0] * len(_COUNT)
        self.sums, self.rest = [0.0] * len(_SUM), [0.0] * len(_SUM)  # a sum is what stands in both

    def add(self, counts: Iterable[int], values: Iterable[list[float]]) -> None:
        """Add counts, and to each sum some values."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        for place, some in enumerate(values):
            if some:
                before = self.sums[place], self.rest[place]
                self.sums[place] = whole = math.fsum((*before, *some))
                self.rest[place] = math.fsum((*before, *some, -whole))

    def of_day(self, key: Key) -> ArmDay:
        """The sums of an arm on a day, as a user gets them."""
        return ArmDay(EPOCH + timedelta(days=key[0]), key[1], *self.counts, *self.sums)

    def of_hour(self, key: Key) -> ArmDay:
        """The sums of all arms in an hour, as a user gets them."""
        return ArmDay(record.EPOCH + timedelta(hours=key[0]), None, *self.counts, *self.sums)


class CameFor(NamedTuple):
    """What came for one decision, by the terms of its ledger."""

    reward: float | None = None  # by the rule; with the rule "list" the sum of the list; None: none that counts
    complete: bool = False  # whether it waits for no more
    counts: tuple[int, int, int, int] = _NONE  # defaults, corrections, conflicts, late


NOTHING = CameFor()


def came(events: Sequence[Any], agreed: Terms) -> CameFor:
    """What a decision has of its events, which come in order. What was erased has no number, and is left out."""
    if not events:
        return NOTHING
    if len(events) == 1 and events[0][-1] == "counted" and not events[0][2] and events[0][3] is not None:  # mostly
        return CameFor(events[0][3], True)
    latest: dict[str, tuple[float, int, int]] = {}  # of each part: reward, time, place
    whole, number = False, Counter[str]()
    for place, (_, _, part, r, time, standing) in enumerate(events):
        if r is None:
            continue
        number[standing] += 1
        if standing == reward_rules.WHOLE:
            whole = True
        elif standing in reward_rules.COUNTS or standing == reward_rules.CORRECTION:
            latest[part] = r, time, place
    counts = number["default"], number[reward_rules.CORRECTION], number["conflict"], number["late"]
    if not latest:
        return CameFor(None, whole, counts)
    if agreed.rewards == "last":
        reward = max(latest.values(), key=lambda one: one[1:])[0]
    else:
        reward = reward_rules.total([r for r, _, _ in latest.values()])
    return CameFor(reward, whole or "" in latest if agreed.parts else True, counts)


class DecisionsOfArm:
    """The numbers of decisions that show one arm on one day, or any arm in one hour, until they are added up."""

    __slots__ = ("counts", "floors", "p", "rewarded_p", "rewarded_r", "rewards")

    def __init__(self) -> None:
        self.counts = [0] * len(_COUNT)
        self.floors: list[float] = []
        self.rewards: list[float] = []
        self.p: list[float] = []  # of those that are usable
        self.rewarded_p: list[float] = []  # of those that are usable and have a reward, and their rewards
        self.rewarded_r: list[float] = []

    def gone(self) -> None:
        """A decision that was erased."""
        self.counts[_ALL] += 1
        self.counts[_ERASED] += 1

    def take(self, p: float | None, floor: float | None, came: CameFor, waits: bool, explored: bool | None) -> None:
        """A decision. p : None where it is not usable; explored : None where nobody can tell"""
        counts, r = self.counts, came.reward
        counts[_ALL] += 1
        if floor:
            self.floors.append(floor)
        if came.counts is not _NONE:
            for place, number in zip(_CAME, came.counts, strict=True):
                counts[place] += number
        counts[_WAITING] += waits
        if explored is not None:
            counts[_TOLD] += 1
            counts[_EXPLORED] += explored
        if p is not None:
            counts[_USABLE] += 1
            self.p.append(p)
        if r is not None:
            counts[_REWARDED] += 1
            r = max(-MOST, min(r, MOST))
            self.rewards.append(r)
            if p is not None:
                self.rewarded_p.append(p)
                self.rewarded_r.append(r)

    def sums(self) -> list[list[float]]:
        """What is summed, in the order of `arm_days.SUMS`, but for what is about the arms on offer."""
        r, w, paid = np.array(self.rewards), _weights(self.p), _weights(self.rewarded_p)
        wr = paid * np.array(self.rewarded_r)
        arrays = [r, r * r, w, w * w, paid, paid * paid, wr, paid * wr, wr * wr]
        return [self.p, self.floors, *(array.tolist() for array in arrays), [], []]


def _weights(p: list[float]) -> np.ndarray:
    return 1 / np.maximum(p, 1 / HEAVIEST)


class Batched:
    """Decisions whose counts and sums are put together first, arm by arm, and then added to the cells at once."""

    def __init__(self, sign: int = 1, *, hours_from: int | None = None) -> None:
        """sign : -1 to take them out; hours_from : the number of the first hour that is summed; None: none is"""
        self._sign, self._recent = sign, math.inf if hours_from is None else hours_from * HOUR
        self._shown: dict[Key, DecisionsOfArm] = defaultdict(DecisionsOfArm)
        self._hours: dict[Key, DecisionsOfArm] = defaultdict(DecisionsOfArm)
        self._offered: Counter[tuple[int, tuple[str, ...]]] = Counter()
        self._stated: dict[tuple[int, tuple[str, ...]], tuple[list[np.ndarray], list[int]]] = {}

    def take(self, row: Any, rewards: CameFor) -> None:
        """One decision, a row of the columns `DECISION`, and what came for it."""
        _, time, text, K, arm, p, kind, floor, m, each, deadline, erased = row
        day, names = time // DAY, _offer(text, K)
        mine = [self._shown[day, names[arm]]]
        if time >= self._recent:
            mine.append(self._hours[time // HOUR, ALL])
        if erased is not None:
            for one in mine:
                one.gone()
            return
        shares = _shares(p, floor, K, arm, each)
        best = shares if m is None else np.frombuffer(m, dtype="<f8")
        explored = None if best is None or not best.min() < best.max() else bool(best[arm] < best.max())
        if kind not in schema.USABLE or p is None or not p > 0:
            p = None
        for one in mine:
            one.take(p, floor, rewards, deadline is None and not rewards.complete, explored)
        if p is None:
            return
        self._offered[day, names] += 1
        if shares is not None:
            some, shown = self._stated.setdefault((day, names), ([], []))
            some.append(shares)
            shown.append(arm)

    @property
    def keys(self) -> set[Key]:
        """The days and arms to which they add."""
        offered = {(day, name) for day, names in self._offered for name in names}
        return offered | self._shown.keys()

    @property
    def hours(self) -> set[Key]:
        """The hours to which they add."""
        return set(self._hours)

    def into(self, cells: dict[Key, ArmSums]) -> None:
        """Add all of them to days and arms."""
        counts = {key: list(mine.counts) for key, mine in self._shown.items()}
        values = {key: mine.sums() for key, mine in self._shown.items()}
        for key in self.keys - counts.keys():
            counts[key], values[key] = [0] * len(_COUNT), [[] for _ in _SUM]
        for (day, names), n in self._offered.items():
            for name in names:
                counts[day, name][_OFFERED] += n
        for (day, names), (some, shown) in self._stated.items():
            P = np.ascontiguousarray(np.array(some).T)  # (K, n), of which the sums of rows are pairwise
            expected, variance = P.sum(axis=1).tolist(), (P * (1 - P)).sum(axis=1).tolist()
            drawn = np.bincount(shown, minlength=len(names)).tolist()
            for k, name in enumerate(names):
                counts[day, name][_STATED] += len(some)
                counts[day, name][_STATED_SHOWN] += drawn[k]
                values[day, name][-2].append(expected[k])
                values[day, name][-1].append(variance[k])
        for key, mine in counts.items():
            self._add(cells, key, mine, values[key])

    def into_hours(self, cells: dict[Key, ArmSums]) -> None:
        """Add all of them to hours."""
        for key, mine in self._hours.items():
            self._add(cells, key, mine.counts, mine.sums())

    def _add(self, cells: dict[Key, ArmSums], key: Key, counts: list[int], sums: list[list[float]]) -> None:
        if self._sign < 0:
            counts, sums = [-n for n in counts], [[-value for value in some] for some in sums]
        cells.setdefault(key, ArmSums()).add(counts, sums)


@functools.lru_cache(maxsize=10_000)
def _offer(text: str | None, K: int) -> tuple[str, ...]:
    """The arms on offer, by id or by position."""
    return tuple(map(str, range(K))) if text is None else tuple(json.loads(text))


def _shares(p: float | None, floor: float | None, K: int, arm: int, each: bytes | None) -> np.ndarray | None:
    """The probabilities of all arms on offer, (K,), where the row has them or they follow; else None."""
    if each is not None:
        return np.frombuffer(each, dtype="<f8")
    if floor is not None and floor >= 1:
        return np.full(K, 1 / K)
    if p == 1:
        return np.eye(1, K, arm)[0]
    return None

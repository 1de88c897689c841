"""What decisions and their rewards add up to, by day and arm: the sums of `log.arm_days`, from rows of the tables.

A sum is kept as two numbers, the sum and what rounding has left of it, so that what is taken out again leaves no trace.
Rewards and weights beyond `MOST` count as `MOST`, so that no sum of their squares overflows.
"""

import functools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dither.log import arm_days, reward_rules, schema
from dither.log.arm_days import ArmDay
from dither.log.database import sql_tables
from dither.log.storage import DAY
from dither.log.terms import Terms

MOST = 1e70
EPOCH = date(1970, 1, 1)
_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
_NAMES = ("number", "time", "arms", "K", "arm", "propensity", "propensity_kind", "floor", "m", "probabilities")
DECISION = [_DECISION[name] for name in (*_NAMES, "deadline", "erased")]
EVENT = [_REWARD[name] for name in ("decision", "seq", "part", "reward", "time", "standing")]
_COUNT = {name: place for place, name in enumerate(arm_days.COUNTS)}
_SUM = {name: place for place, name in enumerate(arm_days.SUMS)}
_ALL, _ERASED, _USABLE, _REWARDED = (_COUNT[name] for name in ("decisions", "erased", "usable", "rewarded"))
Key: TypeAlias = tuple[int, str]  # number of the day from 1970, and the arm


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

    def seen(self, key: Key) -> ArmDay:
        """As a user gets it."""
        return ArmDay(EPOCH + timedelta(days=key[0]), key[1], *self.counts, *self.sums)


class CameFor(NamedTuple):
    """What came for one decision, by the terms of its ledger."""

    reward: float | None = None  # by the rule; with the rule "list" the sum of the list; None: none that counts
    complete: bool = False  # whether it waits for no more
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)  # defaults, corrections, conflicts, late


def paid(events: Iterable[Any], agreed: Terms) -> CameFor:
    """What a decision has of its events, which come in order. What was erased has no number, and is left out."""
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


class Batched:
    """Decisions whose counts and sums are put together first, arm by arm, and then added to the cells at once."""

    def __init__(self, sign: int = 1) -> None:
        """sign : -1 to take them out."""
        self._sign = sign
        self._counts: dict[Key, list[int]] = defaultdict(lambda: [0] * len(_COUNT))
        self._values: dict[Key, list[list[float]]] = defaultdict(lambda: [[] for _ in _SUM])
        self._offered: Counter[tuple[int, tuple[str, ...]]] = Counter()
        self._stated: dict[tuple[int, tuple[str, ...]], tuple[list[np.ndarray], list[int]]] = {}

    def take(self, row: Any, came: CameFor) -> None:
        """One decision, a row of the columns `DECISION`, and what came for it."""
        _, time, text, K, arm, p, kind, floor, m, each, deadline, erased = row
        day, names = time // DAY, _offer(text, K)
        counts = self._counts[day, names[arm]]
        counts[_ALL] += 1
        if erased is not None:
            counts[_ERASED] += 1
            return
        values = self._values[day, names[arm]]
        if floor:
            values[_SUM["floor"]].append(floor)
        for name, number in zip(("defaults", "corrections", "conflicts", "late"), came.counts, strict=True):
            counts[_COUNT[name]] += number
        counts[_COUNT["waiting"]] += deadline is None and not came.complete
        r = None if came.reward is None else max(-MOST, min(came.reward, MOST))
        if r is not None:
            counts[_REWARDED] += 1
            values[_SUM["reward"]].append(r)
            values[_SUM["reward_squared"]].append(r * r)
        shares = _shares(p, floor, K, arm, each)
        best = None if m is None else np.frombuffer(m, dtype="<f8")
        best = shares if best is None else best
        if best is not None and best.min() < best.max():
            counts[_COUNT["told"]] += 1
            counts[_COUNT["explored"]] += bool(best[arm] < best.max())
        if kind not in schema.USABLE or p is None or not p > 0:
            return
        counts[_USABLE] += 1
        self._weigh(values, p, r)
        self._offered[day, names] += 1
        if shares is not None:
            some, shown = self._stated.setdefault((day, names), ([], []))
            some.append(shares)
            shown.append(arm)

    def _weigh(self, values: list[list[float]], p: float, r: float | None) -> None:
        w = 1 / max(p, 1 / MOST)
        for name, value in (("propensity", p), ("weight", w), ("weight_squared", w * w)):
            values[_SUM[name]].append(value)
        if r is not None:
            for name, value in (
                ("rewarded_weight", w),
                ("rewarded_weight_squared", w * w),
                ("weighted_reward", w * r),
                ("squared_weighted_reward", w * w * r),
                ("weighted_reward_squared", w * r * (w * r)),
            ):
                values[_SUM[name]].append(value)

    def into(self, cells: dict[Key, ArmSums]) -> None:
        """Add all of them."""
        for (day, names), n in self._offered.items():
            for name in names:
                self._counts[day, name][_COUNT["offered"]] += n
        for (day, names), (some, shown) in self._stated.items():
            P = np.ascontiguousarray(np.array(some).T)  # (K, n), of which the sums of rows are pairwise
            expected, variance = P.sum(axis=1).tolist(), (P * (1 - P)).sum(axis=1).tolist()
            drawn = np.bincount(shown, minlength=len(names)).tolist()
            for k, name in enumerate(names):
                counts, values = self._counts[day, name], self._values[day, name]
                counts[_COUNT["stated"]] += len(some)
                counts[_COUNT["stated_shown"]] += drawn[k]
                values[_SUM["expected"]].append(expected[k])
                values[_SUM["expected_variance"]].append(variance[k])
        for key, counts in self._counts.items():
            values = self._values[key]
            if self._sign < 0:
                counts, values = [-n for n in counts], [[-value for value in some] for some in values]
            cells.setdefault(key, ArmSums()).add(counts, values)


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

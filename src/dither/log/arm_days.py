"""What the decisions and rewards of each day (UTC) add up to, for each arm: `ArmDay`, and many of them, `ArmDays`.

A row is a day and an arm. Its counts and sums are of the decisions of that day which showed the arm, and of their
rewards, whenever these came. `offered`, `stated`, `expected` and `expected_variance` are of all decisions of the day
that had the arm on offer. Each decision shows one arm, so rows of a day add up to the day, and those of an arm to the
arm. A decision that was erased counts as `decisions` and as `erased`, and in nothing else.

Hours are such rows too, of all arms together: their `day` is the moment at which the hour begins.

With w = 1/p of the arm shown, "always this arm" would have earned Σ w r/Σ w (`value`), and the log is worth
(Σ w)²/Σ w² rows for judging it (`effective_rows`): so many as it would have needed if it had shown that arm alone.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import date
from typing import Any


@dataclass(frozen=True)
class ArmDay:
    """What the decisions that showed one arm on one day add up to, with the rewards that count by now."""

    day: date | None  # UTC; of an hour the datetime at which it begins; None: of several days
    arm: str | None  # its id, or its position where it has none; None: of all arms
    decisions: int = 0  # that showed the arm
    erased: int = 0  # of them, whose data was erased: they add nothing to all that follows
    usable: int = 0  # whose propensity is known
    rewarded: int = 0  # that have a reward
    defaults: int = 0  # whose reward is the default, as their horizon passed without one
    corrections: int = 0  # rewards that took the place of others
    conflicts: int = 0  # rewards that came for a part which had another one: kept, and never counting
    late: int = 0  # rewards that came after the horizon, kept, and never counting
    waiting: int = 0  # without a horizon, that wait for a reward, or for parts of it
    told: int = 0  # of which the log says whether they showed the best arm: it has the means, or all probabilities
    explored: int = 0  # of these, that did not: another one had a better mean (else, was more probable)
    offered: int = 0  # decisions whose propensity is known, with the arm on offer
    stated: int = 0  # of these, whose probabilities of all arms are known
    stated_shown: int = 0  # of these, that showed the arm
    propensity: float = 0.0  # Σ p
    floor: float = 0.0  # Σ of the shares of uniform choices
    reward: float = 0.0  # Σ r; where the rule for several rewards is "list", of their sum
    reward_squared: float = 0.0  # Σ r²
    weight: float = 0.0  # Σ w, with w = 1/p
    weight_squared: float = 0.0  # Σ w²
    rewarded_weight: float = 0.0  # Σ w of those that have a reward
    rewarded_weight_squared: float = 0.0  # Σ w² of them
    weighted_reward: float = 0.0  # Σ w r
    squared_weighted_reward: float = 0.0  # Σ w² r
    weighted_reward_squared: float = 0.0  # Σ w² r²
    expected: float = 0.0  # Σ P(arm) over `stated`: how often it should have been shown
    expected_variance: float = 0.0  # Σ P(arm) (1 - P(arm)) over `stated`

    @property
    def mean_reward(self) -> float:
        """Reward of a decision that has one; NaN where none has."""
        return _ratio(self.reward, self.rewarded)

    @property
    def mean_reward_se(self) -> float:
        """Standard error of `mean_reward`; NaN below two rewards."""
        n = self.rewarded
        if n < 2:
            return math.nan
        return math.sqrt(max(0.0, self.reward_squared / n - self.mean_reward**2) / (n - 1))

    @property
    def mean_propensity(self) -> float:
        """Mean of p, the probability of what was shown; NaN where none is known."""
        return _ratio(self.propensity, self.usable)

    @property
    def mean_floor(self) -> float:
        """Share of uniform choices that the log states, of all decisions that were not erased."""
        return _ratio(self.floor, self.decisions - self.erased)

    @property
    def exploration(self) -> float:
        """Share of the decisions that did not show the best arm, where the log can tell; NaN where it cannot."""
        return _ratio(self.explored, self.told)

    @property
    def stated_share(self) -> float:
        """How often the arm was shown where its probability was stated; to be compared with `stated_mean`."""
        return _ratio(self.stated_shown, self.stated)

    @property
    def stated_mean(self) -> float:
        """Mean of the probability that was stated for the arm, over all decisions that had it on offer."""
        return _ratio(self.expected, self.stated)

    @property
    def stated_se(self) -> float:
        """Standard error of `stated_share` around `stated_mean`, if draws are what was stated."""
        return _ratio(math.sqrt(max(0.0, self.expected_variance)), self.stated)

    @property
    def mean_weight(self) -> float:
        """Σ w over the decisions that had the arm on offer: about 1 if draws are what their propensities say."""
        return _ratio(self.weight, self.offered)

    @property
    def mean_weight_se(self) -> float:
        """Standard error of `mean_weight` around 1, from the rows that showed the arm: √Σ (w² - w) over `offered`."""
        return _ratio(math.sqrt(max(0.0, self.weight_squared - self.weight)), self.offered)

    @property
    def effective_rows(self) -> float:
        """(Σ w)²/Σ w² of the rewarded rows: so many rows that showed this arm alone say as much of it."""
        return _ratio(self.rewarded_weight**2, self.rewarded_weight_squared, empty=0.0)

    @property
    def value(self) -> float:
        """What "always this arm" would have earned, Σ w r/Σ w; NaN where it was never shown with a reward."""
        return _ratio(self.weighted_reward, self.rewarded_weight)

    @property
    def value_se(self) -> float:
        """Standard error of `value`, by the delta method: √Σ w² (r - value)²/Σ w."""
        v, of_r, of_rr = self.value, self.squared_weighted_reward, self.weighted_reward_squared
        square = of_rr - 2 * v * of_r + v * v * self.rewarded_weight_squared
        return _ratio(math.sqrt(max(0.0, square)), self.rewarded_weight) if self.rewarded >= 2 else math.nan


COUNTS = tuple(one.name for one in fields(ArmDay) if one.type is int)
SUMS = tuple(one.name for one in fields(ArmDay) if one.type is float)


@dataclass(frozen=True)
class ArmDays:
    """Rows in the order of their days, and of their arms; and what they add up to."""

    rows: tuple[ArmDay, ...]

    def by_day(self) -> list[ArmDay]:
        """A row for each day, of all arms. What is about one arm alone (`value`, `stated_mean`, ...) has no meaning."""
        return _added(self.rows, lambda row: (row.day, None))

    def by_arm(self) -> list[ArmDay]:
        """A row for each arm, of all days."""
        return _added(self.rows, lambda row: (None, row.arm))

    def total(self) -> ArmDay:
        """One row, of all."""
        return next(iter(_added(self.rows, lambda row: (None, None))), ArmDay(None, None))


def _added(rows: Iterable[ArmDay], key: Callable[[ArmDay], tuple[date | None, str | None]]) -> list[ArmDay]:
    parts: dict[tuple[date | None, str | None], list[ArmDay]] = {}
    for row in rows:
        parts.setdefault(key(row), []).append(row)
    return [_sum(key, some) for key, some in parts.items()]


def _sum(key: tuple[date | None, str | None], rows: list[ArmDay]) -> ArmDay:
    counts: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in COUNTS}
    sums: dict[str, Any] = {name: math.fsum(getattr(row, name) for row in rows) for name in SUMS}
    return dataclasses.replace(ArmDay(*key), **counts, **sums)


def _ratio(above: float, below: float, *, empty: float = math.nan) -> float:
    return above / below if below else empty

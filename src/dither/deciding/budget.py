"""`Budget`: at most so many shows of an arm in each period, or so much of their cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dither.base import errors
from dither.deciding import inputs

NAMED = {"hour": 3600.0, "day": 86400.0}  # seconds; a day is a calendar day in UTC


@dataclass(frozen=True)
class Budget:
    """What one arm may cost in each period. It is given to `Live`: `budgets={"a17": Budget(100, "day")}`.

    Parameters
    ----------
    most : how many shows, or the sum of their `costs`, above 0
    period : "day" (a calendar day in UTC), "hour", or a number of seconds; None: one period for ever

    Periods are counted from 1970-01-01 00:00 UTC. Raises ValueError for settings that make no sense.
    """

    most: float
    period: str | float | None = "day"

    def __post_init__(self) -> None:
        errors.positive("most, of a budget,", self.most)
        if isinstance(self.period, str):
            errors.among("period", self.period, NAMED)
        elif self.period is not None:
            errors.positive("period, in seconds,", self.period)
            errors.within("period, in seconds,", self.period, 1e-3, 1e9)

    @property
    def ticks(self) -> int:
        """The length of a period in microseconds; 0: one for ever."""
        seconds = NAMED[self.period] if isinstance(self.period, str) else self.period or 0
        return round(seconds * 1e6)


Budgets = dict[str, tuple[Budget, ...]]  # by the id of the arm


def checked(budgets: Mapping[Any, Any]) -> Budgets:
    """Budgets by id, as a user gives them: id -> a `Budget` or several.

    Raises TypeError for what is none; ValueError for two budgets of one arm with one period.
    """
    if not isinstance(budgets, Mapping):
        raise TypeError(f"budgets must say which arm has which budget: {{'a17': Budget(100, 'day')}}; got {budgets!r}")
    by_id: Budgets = {}
    for arm, value in budgets.items():
        several = tuple(value) if isinstance(value, Iterable) else (value,)
        if not all(isinstance(budget, Budget) for budget in several):
            raise TypeError(f"the budget of arm {arm!r} must be a dither.Budget, or several; got {value!r}")
        if len({budget.ticks for budget in several}) < len(several):
            raise ValueError(f"arm {arm!r} has two budgets for one period: keep the smaller one")
        by_id[inputs.storable(str(arm))] = several
    return by_id


def described(budgets: Budgets) -> dict[str, Any]:
    """Budgets as JSON."""
    return {arm: [[budget.most, budget.period] for budget in several] for arm, several in budgets.items()}


def of_description(text: Mapping[str, Any]) -> Budgets:
    """The budgets that `described` wrote."""
    return {arm: tuple(Budget(*one) for one in several) for arm, several in text.items()}

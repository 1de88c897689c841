"""A world that drifts: the value now, and the value of each period.

Where the value of a policy changes with time, an estimate from all rows is the mean of its values over the log, and its
interval is for that mean. `recent` gives weights of rows (weight=) that ask for the recent past instead. The interval
is then for the weighted mean of the values, Σ s_i V(t_i)/Σ s_i. It does not cover what the value moved within the
weights: if V changes by at most β a unit of time, that is at most β times the mean age Σ s_i (at - t_i)/Σ s_i
(`mean_age`).

`by_period` has the value of each period, with intervals that hold for each alone and for all together, and a test of
the claim that the value never changed:

    X² = Σ_j (V̂_j - V̄)²/se_j²,  V̄ = Σ_j V̂_j/se_j² / Σ_j 1/se_j²      chi² with J - 1 degrees (Cochran 1954), in
                                                                          the limit
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dither.base import errors
from dither.log.check import LIGHTEST
from dither.ope import intervals, labels
from dither.ope.bounded import LEVELS
from dither.ope.late import as_numbers
from dither.ope.result import Estimate


def recent(time: Any, *, half_life: Any = None, window: Any = None, at: Any = None) -> np.ndarray:
    """Weights of rows (n,) that ask for the value near the time `at`, to pass as weight=.

    time (n,) : numbers or datetime64
    half_life : a row that is older by this counts half; window : rows count 1 up to this age, and 0 from there on. One
        of the two, in the units of the times, or a timedelta
    at : None: the latest time. Rows after it count 0, and are left out

    Multiply them with the weights that the log has. Raises ValueError unless exactly one is given.
    """
    times = np.asarray(time)
    if (half_life is None) == (window is None):
        raise ValueError("give half_life= or window=, one of the two")
    name, length = ("half_life", half_life) if window is None else ("window", window)
    length = float(as_numbers(length))
    errors.positive(name, length)
    age = ages(times, at)
    if window is not None:
        return ((age >= 0) & (age < length)).astype(np.float64)
    s = np.where(age >= 0, np.exp2(-np.maximum(age, 0.0) / length), 0.0)
    return np.where(s >= LIGHTEST, s, 0.0)


def ages(time: Any, at: Any = None) -> np.ndarray:
    """How old each row is at the time `at` (n,), in seconds for datetime64; None: at the latest time."""
    times = np.asarray(time)
    if times.ndim != 1 or not len(times):
        raise ValueError(f"time must be (n,), one for each row; got {times.shape}")
    wrong = np.isnat(times) if times.dtype.kind == "M" else ~np.isfinite(times.astype(np.float64))
    if wrong.any():
        raise ValueError(
            f"time must not be missing; it is in row {int(np.argmax(wrong))} ({int(wrong.sum())} such rows)"
        )
    return as_numbers((np.max(times) if at is None else np.asarray(at)) - times)


def mean_age(time: Any, weight: Any, at: Any = None) -> float:
    """Σ s (at - t)/Σ s: how old the rows are that an estimate with these weights speaks of."""
    s = np.asarray(weight, dtype=np.float64)
    return float(np.sum(s * ages(time, at)) / np.sum(s))


@dataclass(frozen=True)
class Periods:
    """The value of a policy in each of J periods."""

    period: tuple[Any, ...]  # (J,) labels, sorted
    value: np.ndarray  # (J,)
    se: np.ndarray  # (J,)
    n: np.ndarray  # (J,) rows
    ess: np.ndarray  # (J,) effective rows
    interval: np.ndarray  # (J, 2): each holds with probability `level`
    together: np.ndarray  # (J, 2): all hold together with probability `level` (Šidák), where periods are independent
    p_value: float  # of "all periods have one value"; NaN for one period
    level: float

    def __str__(self) -> str:
        rows = [
            f"{label!s:12s} {v:.6g} ± {se:.2g}  [{low:.6g}, {high:.6g}]  {n} rows, {ess:.1f} effective"
            for label, v, se, (low, high), n, ess in zip(
                self.period, self.value, self.se, self.interval, self.n, self.ess, strict=True
            )
        ]
        return "\n".join([*rows, f"P = {self.p_value:.2g} of one value in all periods"])


def by_period(estimate: Estimate, period: Any, *, level: float = 0.95) -> Periods:
    """The value of each period, from an estimate of rows, such as `ope.dr(...)`, with normal intervals.

    period (n,) : labels of one type, of all rows that were passed to the estimator, such as the day

    Raises ValueError for clusters, whose rows may stand in several periods, and for missing labels.
    """
    errors.within("level", level, *LEVELS)
    terms = estimate.contributions
    if terms is None:
        raise ValueError("by_period needs an estimate made from rows; sums of a stream do not know the periods")
    if terms.rows.group is not None:
        raise ValueError("by_period takes the rows as independent: leave out cluster=")
    names = np.asarray(period)
    number = labels.numbered(period, len(names), terms.rows.places, name="period")
    if number is None or len(number) != terms.n:
        raise ValueError(f"period must have one label for each row; got shape {names.shape} for {terms.n} rows")
    names = names if terms.rows.places is None else names[terms.rows.places]
    first = [int(np.argmax(number == j)) for j in range(int(number.max()) + 1)]
    parts = [terms.some(np.flatnonzero(number == j)) for j in range(len(first))]
    value, se, ess = np.array([(part.value(), part.se, part.rows.ess) for part in parts]).T
    each, both = (
        np.array([intervals.about(v, e, one) for v, e in zip(value, se, strict=True)])
        for one in (level, level ** (1 / len(first)))
    )
    labelled = tuple(names[place] for place in first)
    return Periods(labelled, value, se, np.bincount(number), ess, each, both, one_value(value, se), level)


def one_value(value: np.ndarray, se: np.ndarray) -> float:
    """P-value of the claim that J independent normal estimates have one mean; NaN where it cannot be told."""
    if len(value) < 2 or not np.all(np.isfinite(value) & (se > 0) & np.isfinite(se)):
        return float("nan")
    share = 1 / se**2
    middle = np.sum(share * value) / np.sum(share)
    return float(special.chdtrc(len(value) - 1, np.sum(share * (value - middle) ** 2)))

"""Rewards that are late: what a log can say before all of them have come.

A reward that has not come is not missing at random. A click comes quickly or never, so that among the latest decisions
those with a reward are the quick ones. Three things can be said at a time `now`, with a horizon after which a reward no
longer counts:

    settled    only decisions whose horizon has passed: nothing of them is pending
    arrived    all decisions: a reward that came after a delay d counts 1/G(d), G(d) the share of the rows that are at
               least d old. Such rows alone could have shown it (inverse probability of censoring weighting: Robins,
               Rotnitzky 1992). Given the times of the decisions, G is known, and
                   E[mean of w r̃] = E[w r],   r̃ = default + (r - default)/G(d) where it came, else default
               for every law of the delay, also one that depends on the arm and the reward, if the world stands still
    bounds     any value in a known range for what is missing (Manski 1990): assumes nothing, and is wide

`delays` estimates how late rewards are (Kaplan, Meier 1958), to choose the horizon by.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding import inputs
from dither.ope.bounded import Interval, ordered
from dither.ope.estimators import contributions, split
from dither.ope.in_memory import estimate
from dither.ope.result import Estimate
from dither.ope.rows import row_weights


def settled(r: Any, decided: Any, came: Any, *, now: Any, horizon: Any, default: float = 0.0) -> np.ndarray:
    """Rewards (n,) of the decisions whose horizon has passed; NaN for the others, which are to be left out (mask=).

    r (n,) : rewards, anything where none came; decided, came (n,) : times of the decisions and of the rewards, NaN or
        NaT where none came. Numbers, or datetime64
    now : the time at which the log was read; horizon : a length of time, in the units of the times, or a timedelta
    default : the reward of a decision for which none comes within the horizon

    Raises ValueError for arrays that do not agree, and for times that make no sense (a reward before its decision).
    """
    r, delay, age, horizon = _read(r, decided, came, now, horizon)
    return np.where(age >= horizon, np.where(delay <= horizon, r, default), np.nan)


def arrived(
    r: Any, decided: Any, came: Any, *, now: Any, horizon: Any, default: float = 0.0, weight: Any = None
) -> np.ndarray:
    """Rewards r̃ (n,) for all decisions, to take in place of r. Arguments as of `settled`.

    weight (n,) : the weights of the rows that the estimate will have (weight=); G is then the share of the weight

    The mean of w r̃ is unbiased for the value if the law of rewards and delays does not change. (In the limit of long
    logs where the weights depend on the rewards, as in a log that was thinned by them.) So r̃ is for ips,
    dr and snips, with "normal" or "bootstrap". The rows alone mean nothing: a young row shows less than an old one.
    Estimators that weight rows by the past (stablevar), and intervals that bet (betting, anytime), take `settled` rows.

    Raises ValueError if no row is as old as the horizon: nobody knows then what comes late.
    """
    r, delay, age, horizon = _read(r, decided, came, now, horizon)
    s = _weights(weight, len(r))
    there = (delay <= horizon) & (delay <= age)
    younger, total = _below(age, s, np.where(there, delay, 0.0))
    if not np.any((age >= horizon) & (s > 0)):
        raise ValueError(
            f"no row is as old as the horizon of {horizon:g}: the oldest is {np.max(age):g} old. Take a shorter "
            "horizon, or wait"
        )
    G = 1 - younger / total
    return default + np.divide(np.where(there, r - default, 0.0), G, out=np.zeros(len(r)), where=there)


@dataclass(frozen=True)
class Delays:
    """How late rewards are: the share of all decisions whose reward has come within a delay."""

    delay: np.ndarray  # (J,) at which a reward came, ascending
    share: np.ndarray  # (J,) of the decisions that have their reward by then

    def within(self, delay: Any) -> np.ndarray:
        """The share at any delays."""
        return np.concatenate([[0.0], self.share])[np.searchsorted(self.delay, delay, side="right")]


def delays(decided: Any, came: Any, *, now: Any, weight: Any = None) -> Delays:
    """The estimate of Kaplan and Meier. A decision without a reward says only that its delay is more than its age.

    It says nothing of delays above the largest age: there the share stands still.
    """
    _, delay, age, _ = _read(np.zeros(np.shape(decided)), decided, came, now, None)
    s, there = _weights(weight, len(age)), delay <= age
    last = np.where(there, delay, age)
    at, place = np.unique(last[there], return_inverse=True)
    events = np.bincount(place, weights=s[there], minlength=len(at))
    earlier, total = _below(last, s, at)
    return Delays(at, 1 - np.cumprod(1 - events / (total - earlier)))


@dataclass(frozen=True)
class Bounds:
    """What an estimate can be, whatever the missing rewards are."""

    low: Estimate  # with the lowest reward for each that is missing
    high: Estimate  # with the highest
    interval: Interval  # from the lower end of the one to the upper end of the other
    missing: int  # rows

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"between {self.low.value:.6g} and {self.high.value:.6g}, {self.low.level:.0%} interval [{low:.6g}, "
            f"{high:.6g}]; {self.missing} of {self.low.n} rewards are missing"
        )


def bounds(
    method: Any, r: Any, a: Any, p: Any, Q: Any, M: Any = None, *, reward_range: Interval, setting: float | None = None,
    **options: Any,
) -> Bounds:  # fmt: skip
    """The values of a policy for all rewards within `reward_range` that the missing ones (NaN in r) may have had.

    method, setting, options : as of `contributions`; and `IntervalSettings`. The interval covers the true value at the
        level that its kind has: each of its ends fails as often as an end of that kind does

    Raises ValueError for a range that is none, or that a reward is outside of.
    """
    low, high = ordered(reward_range)
    r = inputs.numbers(r, name="r")
    missing = np.isnan(r)
    if np.any((r < low) | (r > high)):
        raise ValueError(
            f"reward_range={reward_range!r} is no bound: rewards go from {np.nanmin(r):g} to {np.nanmax(r):g}"
        )
    of_rows, of_interval = split(options)
    ends = [
        estimate(
            contributions(method, np.where(missing, end, r), a, p, Q, M, setting=setting, **of_rows),
            warn=end == low, **of_interval | {"reward_range": (low, high)},
        )
        for end in (low, high)
    ]  # fmt: skip
    return Bounds(ends[0], ends[1], (ends[0].interval[0], ends[1].interval[1]), int(missing.sum()))


def _weights(weight: Any, n: int) -> np.ndarray:
    s = row_weights(weight, n)
    return np.ones(n) if s is None else s


def _below(x: np.ndarray, s: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, float]:
    """The weight s of the rows whose x is below each of `at` (J,), and that of all rows."""
    order = np.argsort(x)
    before = np.concatenate([[0.0], np.cumsum(s[order])])
    return before[np.searchsorted(x[order], at, side="left")], before[-1]


def _read(r: Any, decided: Any, came: Any, now: Any, horizon: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Rewards (n,), delays from decisions to rewards (n,), ages of the decisions (n,) and the horizon, in one unit.

    A delay is infinite where no reward has come by `now`.
    """
    r, decided, came = inputs.numbers(r, name="r"), np.asarray(decided), np.asarray(came)
    if decided.ndim != 1 or came.shape != decided.shape or r.shape != decided.shape:
        raise ValueError(
            f"r, decided and came must have one number for each decision, (n,); got {r.shape}, {decided.shape}, "
            f"{came.shape}"
        )
    age, delay = as_numbers(np.asarray(now) - decided), as_numbers(came - decided)
    if np.isnan(age).any() or np.any(age < 0):
        row = int(np.argmax(np.isnan(age) | (age < 0)))
        raise ValueError(f"decided must be a time, and at most now; row {row} has {decided[row]}, and now is {now}")
    if np.any(delay < 0):
        row = int(np.argmax(delay < 0))
        raise ValueError(f"a reward cannot come before its decision; in row {row} it came {delay[row]:g} before")
    length = np.inf if horizon is None else float(as_numbers(horizon))
    if horizon is not None:
        errors.positive("horizon", length)
    delay = np.where(np.isnan(delay) | (delay > age), np.inf, delay)
    wrong = np.isfinite(delay) & ~np.isfinite(r)
    if wrong.any():
        raise ValueError(
            f"r must be a finite number where a reward came; row {int(np.argmax(wrong))} has {r[wrong][0]}"
        )
    return r, delay, age, length


def as_numbers(lengths: Any) -> np.ndarray:
    """Lengths of time as numbers: seconds for timedelta64, else as they are; NaN where missing."""
    array = np.asarray(lengths)
    if array.dtype.kind == "O":
        array = array.astype("timedelta64[us]")
    if array.dtype.kind == "m":
        return np.where(np.isnat(array), np.nan, array.astype("timedelta64[us]").astype(np.float64) / 1e6)
    return array.astype(np.float64)

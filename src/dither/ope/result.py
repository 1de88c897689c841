"""From contributions to an estimate: value, standard error, interval, diagnostics, warnings, paired differences."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from dither.base import errors
from dither.ope import bounded, diagnostics, intervals
from dither.ope.contributions import Contributions, certain_gap, grouped, seen, standard_error
from dither.ope.intervals import Evidence

LEVELS = (1e-6, 1 - 1e-6)  # of intervals


class IntervalOptions(TypedDict, total=False):
    """The options of an interval."""

    interval: str  # one of intervals.INTERVALS; default "normal"
    level: float  # default 0.95
    weight_max: float  # a bound on the weights, known beforehand, such as K/floor; for "bernstein" and "betting"
    reward_range: tuple[float, float]  # bounds on rewards and predictions; for these two and "anytime"
    seed: int | None  # seed of the bootstrap
    resamples: int  # number of resamples of the bootstrap; default 2,000
    row_weight_max: float  # a bound on weight=, known beforehand; for these three, if weight= is not constant
    narrowest: int  # number of rows at which "asymptotic" is narrowest, chosen beforehand; default 1,000


@dataclass(frozen=True)
class Estimate:
    """A policy's value, how well it is known, and whether the log can tell."""

    value: float  # mean reward of a decision; NaN where the formula gives none
    se: float  # standard error of the value; NaN for one row
    interval: tuple[float, float]  # at `level`
    n: int  # rows used
    ess: float  # (Σsw)²/Σ(sw)², effective sample size, s the weights of rows; 0 where all weights are 0
    weight_mean: float  # Σsw/Σs; its expectation is 1 if the log supports the policy and p is right
    weight_max: float  # the largest w
    weight_sd: float  # standard deviation of w over the traffic; 0 if all weights are equal
    unsupported: float  # mass of Q on arms that the log could not show: from P, else 1 - weight_mean, at least 0
    weight_test: float  # P-value of "the mean weight is 1", valid for every law of the weights (`log.bets`)
    support_test: float  # P-value of "no weight is heavier than those seen"; 1 where weight_mean is 1 or more
    drift: float  # P-value of "the weighted rewards have one mean over time"; NaN without time=
    level: float
    method: str  # the estimator
    interval_method: str  # one of intervals.INTERVALS
    kind: str  # of the propensities: "exact", "monte_carlo" or "estimated"
    left_out: dict[str, int]  # reason -> rows not used
    notes: tuple[str, ...]
    contributions: Contributions | None = field(repr=False, compare=False)  # for `compare`; None after `sums`

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.method} {self.value:.6g} ± {self.se:.2g}, {self.level:.0%} {self.interval_method} interval "
            f"[{low:.6g}, {high:.6g}]; {self.n} rows, {self.ess:.1f} effective, mean weight {self.weight_mean:.4g}"
        )


@dataclass(frozen=True)
class Difference:
    """The value of one estimate minus that of another, on the same rows."""

    value: float
    se: float
    interval: tuple[float, float]
    p_value: float  # of "there is no difference": two-sided, normal
    level: float
    n: int

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"difference {self.value:.6g} ± {self.se:.2g}, {self.level:.0%} normal interval [{low:.6g}, {high:.6g}]; "
            f"P = {self.p_value:.2g} of none, {self.n} rows"
        )


def estimate(made: Contributions, *, warn: bool = True, **options: Any) -> Estimate:
    """The estimate from contributions. options : `IntervalOptions`; warn : whether to warn of a weak log."""
    for name in set(options) - set(IntervalOptions.__annotations__):
        raise TypeError(str(errors.unknown("option", name, known=IntervalOptions.__annotations__)))
    level, how = options.get("level", 0.95), options.get("interval", "normal")
    errors.within("level", level, *LEVELS)
    errors.among("interval", how, intervals.INTERVALS)
    log, psi = made.log, made.influence()
    x = _evidence(made, made.value(), standard_error(psi, log, made.error, ddof=made.ddof))
    interval = intervals.INTERVALS[how](x, level, options)
    bound = options.get("weight_max")
    health = diagnostics.health(made, psi, limit=None if bound is None else max(bound, float(np.max(log.w))))
    notes = list(made.notes)
    if log.left_out:
        notes.append(f"{sum(log.left_out.values())} rows left out")
    if log.kind == "estimated":
        notes.append("propensities are estimated; the interval takes them as known")
    found = Estimate(
        value=x.value, se=x.se, interval=interval, n=made.n, **health, level=level, method=made.method,
        interval_method=how, kind=log.kind, left_out=dict(log.left_out), notes=tuple(notes), contributions=made,
    )  # fmt: skip
    if warn:
        said = diagnostics.complaints(found, known=log.gap is not None, certain=log.mean(certain_gap(log)))
        for category, message in said or diagnostics.quiet(found):
            warnings.warn(message, category, stacklevel=4)
    return found


def _evidence(made: Contributions, value: float, se: float) -> Evidence:
    """What intervals ask of rows in memory."""
    log, n, slip = made.log, made.n, made.error
    order = slice(None) if log.order is None else log.order

    def moments() -> tuple[np.ndarray, np.ndarray]:
        s = np.ones(n) if log.s is None else log.s
        pair = np.stack([s, s * np.asarray(made.b)])
        return np.mean(pair, axis=1), np.cov(pair) if n > 1 else np.full((2, 2), np.inf)

    def totals() -> np.ndarray:
        return grouped(made.columns(), log.group)

    return Evidence(
        value=value,
        se=se,
        n=n,
        units=n if log.group is None else int(log.group.max()) + 1,
        error=0.0 if slip is None else float(np.sqrt(slip @ slip)) / n,
        method=made.method,
        bounded=made.bounded,
        of_rewards=made.of_rewards,
        seen=lambda: seen(log),
        moments=moments,
        terms=lambda: (np.asarray(made.b)[order], None if log.s is None else log.s[order]),
        weights=lambda: log.w[order],
        tally=lambda: intervals.tallied(log.r, log.w, log.s),
        totals=totals,
        draws=lambda times, seed: intervals.values_of(intervals.resampled(totals(), seed, times)),
    )


def compare(a: Estimate, b: Estimate, *, level: float = 0.95) -> Difference:
    """a - b, with the error of the paired difference, from what each row adds to both. Both must use the same rows."""
    errors.within("level", level, *LEVELS)
    one, two = a.contributions, b.contributions
    if one is None or two is None:
        raise ValueError("compare needs estimates made from rows; for sums of a stream use dither.ope.differences")
    if one.n != two.n or not _same(one.log.rows, two.log.rows) or not np.array_equal(one.log.r, two.log.r):
        raise ValueError(f"both estimates must be of the same rows, in one order: got {one.n} and {two.n} rows")
    if not _same(one.log.s, two.log.s):
        raise ValueError("both estimates must have the same weight=")
    if not _same(one.log.group, two.log.group):
        raise ValueError("both estimates must have the same cluster=")
    slips = [np.zeros(one.n) if part.error is None else part.error for part in (one, two)]
    error = slips[0] - slips[1]
    ddof = max(one.ddof, two.ddof)
    se = standard_error(one.influence() - two.influence(), one.log, error, ddof=ddof)
    gap = a.value - b.value
    return Difference(gap, se, *intervals.difference(gap, se, level), level, one.n)


def confidence_sequence(
    made: Estimate, *, at: Any = 20, level: float = 0.95, interval: str = "betting", **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of an estimate over its rows in their order (time= of the estimate, or as they are).

    at : the number of times, spaced evenly in log t, or the times themselves
    interval : "betting", for means of bounded terms (reward_range=, and weight_max= where the estimator does not bound
        its weights), "anytime", for ips (reward_range=), or "asymptotic", for any estimate of independent rows and
        long logs (narrowest=)
    -> times (J,), intervals (J, 2): all hold together with probability `level`
    """
    rows = made.contributions
    if interval not in ("betting", "anytime", "asymptotic"):
        raise ValueError(
            f"interval must be 'betting', 'anytime' or 'asymptotic', which hold at all times at once; got {interval!r}"
        )
    if rows is None or (rows.b is None and interval != "asymptotic"):
        raise ValueError("a confidence sequence needs a mean made from rows, such as ips or dr")
    if np.ndim(at) == 0:
        errors.at_least("at", at, 1)
        at = np.unique(np.geomspace(min(10, made.n), made.n, int(at)).astype(int))
    times = np.asarray(at, dtype=int)
    if interval == "asymptotic":
        if rows.log.group is not None:
            raise ValueError("a confidence sequence takes the rows as independent: leave out cluster=")
        return times, np.array([_so_far(rows, t, level, options) for t in times.tolist()]).reshape(-1, 2)
    if interval == "anytime":
        x = _evidence(rows, made.value, made.se)
        (b, s), w = x.terms(), x.weights()
        ends, most = bounded.open_limits(x.method, x.bounded, x.seen(), options)
        g = bounded.counted(s, most)
        parts = [bounded.anytime(b[:t], w[:t], None if g is None else g[:t], ends, level, more=0.0) for t in times]
        return times, np.array(parts).reshape(-1, 2)
    (low, high), most = bounded.limits("betting", rows.method, rows.bounded, seen(rows.log), options)
    b, s = _evidence(rows, made.value, made.se).terms()
    paths = bounded.sequence((b - low) / (high - low), times, level=level, g=bounded.counted(s, most))
    return times, low + (high - low) * paths


def _so_far(rows: Contributions, t: int, level: float, options: dict[str, Any]) -> tuple[float, float]:
    """The asymptotic interval of the first t rows in their order."""
    first = slice(t) if rows.log.order is None else rows.log.order[:t]
    parts: dict[str, Any] = {
        name: None if (x := getattr(rows, name)) is None else x[first] for name in ("b", "u", "v", "errors")
    }
    s = None if rows.log.s is None else rows.log.s[first]
    part = replace(rows, log=rows.log._replace(r=rows.log.r[first], s=s, group=None), **parts)
    value, se = part.value(), standard_error(part.influence(), part.log, part.error, ddof=part.ddof)
    return intervals.about_always(value, se, t, level, options.get("narrowest", intervals.NARROWEST))


def best(estimates: Sequence[Estimate]) -> int:
    """Which estimate SLOPE chooses (Su, Srinath, Krishnamurthy 2020, Section 3): its place in the list.

    It goes from the widest interval (least bias) to the narrowest. It stops before the intervals value ± 2 half-widths
    have no point in common, and takes the last one.
    """
    if not estimates:
        raise ValueError("SLOPE needs at least one estimate")
    half = np.array([(e.interval[1] - e.interval[0]) / 2 for e in estimates])
    if not np.all(np.isfinite(half)):
        raise ValueError(f"SLOPE needs an interval of each estimate, got {[e.interval for e in estimates]}")
    low, high, chosen = -np.inf, np.inf, None
    for i in np.argsort(-half, kind="stable").tolist():
        low, high = max(low, estimates[i].value - 2 * half[i]), min(high, estimates[i].value + 2 * half[i])
        if low > high:
            break
        chosen = i
    return chosen if chosen is not None else 0


def slope(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate that SLOPE chooses among several of the same value, such as one for each setting (see `best`)."""
    return estimates[best(estimates)]


def _same(x: np.ndarray | None, y: np.ndarray | None) -> bool:
    return x is y or (x is not None and y is not None and np.array_equal(x, y))

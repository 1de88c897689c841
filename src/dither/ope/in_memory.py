"""Estimates of rows in memory: their evidence, paired differences, and intervals at all times at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dither.base import errors
from dither.log import bets
from dither.ope import diagnostics, intervals
from dither.ope.contributions import Contributions, cusum, extremes, grouped, standard_error
from dither.ope.intervals import Evidence
from dither.ope.result import Difference, Estimate


def estimate(terms: Contributions, *, warn: bool = True, **options: Any) -> Estimate:
    """The estimate from contributions. options : `IntervalSettings`; warn : whether to warn of a weak log."""
    how, rows, notes = intervals.settings(options), terms.rows, list(terms.notes)
    if rows.left_out:
        notes.append(f"{sum(rows.left_out.values())} rows left out")
    if rows.kind == "estimated":
        notes.append("propensities are estimated; the interval takes them as known")
    x = evidence(terms)
    result = intervals.estimated(x, how, notes=tuple(notes), terms=terms)
    if warn:
        diagnostics.warn_of(result, x, stacklevel=5)
    return result


def evidence(terms: Contributions) -> Evidence:
    """What an estimate needs of rows in memory."""
    rows, n, slip, psi = terms.rows, terms.n, terms.error, terms.influence()
    order, mean = slice(None) if rows.order is None else rows.order, rows.mean(rows.w)

    def moments() -> tuple[np.ndarray, np.ndarray]:
        s = np.ones(n) if rows.s is None else rows.s
        pair = np.stack([s, s * np.asarray(terms.b)])
        return np.mean(pair, axis=1), np.cov(pair) if n > 1 else np.full((2, 2), np.inf)

    def totals() -> np.ndarray:
        columns = np.empty((n, 4))
        for k, (x, otherwise) in enumerate((*terms.columns, (None, 1.0))):
            columns[:, k] = otherwise if x is None else x
        return grouped(columns if rows.s is None else columns * rows.s[:, None], rows.group)

    return Evidence(
        method=terms.method,
        kind=rows.kind,
        value=terms.value(),
        se=standard_error(psi, rows, slip, ddof=terms.ddof),
        n=n,
        units=n if rows.group is None else int(rows.group.max()) + 1,
        error=0.0 if slip is None else float(np.sqrt(slip @ slip)) / n,
        left_out=rows.left_out,
        ess=rows.ess,
        weight_mean=mean,
        weight_max=float(np.max(rows.w)),
        weight_sd=float(np.sqrt(rows.mean((rows.w - mean) ** 2))),
        drift=float("nan") if rows.order is None else cusum(psi[order]),
        certain=terms.certain,
        has_P=rows.gap is not None,
        balance=bets.balance(rows.w, rows.p, None if rows.s is None else rows.s / np.max(rows.s), rows.limit),
        extremes=lambda: extremes(rows),
        bounded=terms.bounded,
        of_rewards=terms.of_rewards,
        moments=moments,
        in_order=lambda: (np.asarray(terms.b)[order], rows.w[order], None if rows.s is None else rows.s[order]),
        tally=lambda: intervals.tallied(rows.r, rows.w, rows.s),
        totals=totals,
        draws=lambda times, seed: intervals.values_of(intervals.resampled(totals(), seed, times)),
    )


def compare(a: Estimate, b: Estimate, *, level: float = 0.95, interval: str = "normal", **options: Any) -> Difference:
    """a - b, with the error of the paired difference, from what each row adds to both. Both must use the same rows.

    interval : "normal"; or "anytime" for two means of w r, which holds on the log of a policy that learns: it needs
        reward_range=, and row_weight_max= where the weights of rows differ
    """
    how = intervals.of_differences(interval, level, options)
    one, two = a.contributions, b.contributions
    if one is None or two is None:
        raise ValueError("compare needs estimates made from rows; for sums of a stream use dither.ope.differences")
    if one.n != two.n or not _same(one.rows.places, two.rows.places) or not np.array_equal(one.rows.r, two.rows.r):
        raise ValueError(f"both estimates must be of the same rows, in one order: got {one.n} and {two.n} rows")
    if not _same(one.rows.s, two.rows.s):
        raise ValueError("both estimates must have the same weight=")
    if not _same(one.rows.group, two.rows.group):
        raise ValueError("both estimates must have the same cluster=")
    slips = [np.zeros(one.n) if part.error is None else part.error for part in (one, two)]
    psi, ddof, slip = one.influence() - two.influence(), max(one.ddof, two.ddof), slips[0] - slips[1]
    of = a.value - b.value, standard_error(psi, one.rows, slip, ddof=ddof)
    if how.interval == "anytime":
        error = float(np.sqrt(slip @ slip)) / one.n
        return intervals.open_difference(*of, one.n, evidence(one), evidence(two), how, error=error)
    return intervals.difference(*of, level, one.n)


def confidence_sequence(
    estimate: Estimate, *, at: Any = 20, level: float = 0.95, interval: str = "betting", **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of an estimate over its rows in their order (time= of the estimate, or as they are).

    at : the number of times, spaced evenly in log t, or the times themselves
    interval : "betting", for means of bounded terms (reward_range=, and weight_max= where the estimator does not bound
        its weights), "anytime", for ips (reward_range=), or "asymptotic", for any estimate of independent rows and
        long logs (narrowest=)
    -> times (J,), intervals (J, 2): all hold together with probability `level`
    """
    terms = estimate.contributions
    if interval not in ("betting", "anytime", "asymptotic"):
        raise ValueError(
            f"interval must be 'betting', 'anytime' or 'asymptotic', which hold at all times at once; got {interval!r}"
        )
    how = intervals.settings({"interval": interval, "level": level, **options})
    if terms is None or (terms.b is None and interval != "asymptotic"):
        raise ValueError("a confidence sequence needs a mean made from rows, such as ips or dr")
    if np.ndim(at) == 0:
        errors.at_least("at", at, 1)
        at = np.unique(np.geomspace(min(10, terms.n), terms.n, int(at)).astype(int))
    times, rows = np.asarray(at, dtype=int), terms.rows
    if interval != "asymptotic":
        after = intervals.path(evidence(terms), how, more=0.0)
        return times, np.array([after(t) for t in times]).reshape(-1, 2)
    if rows.group is not None:
        raise ValueError("a confidence sequence takes the rows as independent: leave out cluster=")
    parts = [terms.some(slice(t) if rows.order is None else rows.order[:t]) for t in times.tolist()]
    ends = [intervals.about_always(x.value(), x.se, x.n, level, how.narrowest) for x in parts]
    return times, np.array(ends).reshape(-1, 2)


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

"""Intervals for an estimate, by name.

normal      value ± z se
bootstrap   percentiles of the value of resampled rows, or clusters (Efron); none for one row or cluster
bca         the same, corrected for bias and skewness (Efron 1987), with the jackknife's acceleration
bernstein   empirical Bernstein for bounded contributions (Maurer, Pontil 2009, Theorem 4), valid for every n
betting     hedged capital (Waudby-Smith, Ramdas 2024, Theorem 3): valid at all times at once
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from dither import errors
from dither.ope import betting as bets
from dither.ope.log import Log
from dither.ope.rows import Bounded, Contributions, grouped

Interval = tuple[float, float]


class Seen(NamedTuple):
    """What the rows show of the bounds."""

    weight: float  # the largest weight
    low: float  # the least reward or prediction
    high: float  # the largest
    clustered: bool  # whether rows depend on each other


def about(value: float, se: float, level: float) -> Interval:
    """value ± z se."""
    z = float(special.ndtri((1 + level) / 2))
    return value - z * se, value + z * se


def normal(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """From the standard error."""
    return about(value, se, level)


def bootstrap(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """Percentiles of the resampled values."""
    values, units = resampled(made, options)
    if len(units) < 2 or not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return _wider(float(low), float(high), value, se, made)


def bca(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """Percentiles at levels that correct for bias and skewness."""
    values, units = resampled(made, options)
    if len(units) < 2 or not len(values):
        return np.nan, np.nan
    below = np.mean(values < value) + np.mean(values == value) / 2
    z0 = special.ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
    without = _value(np.sum(units, axis=0) - units)
    gap = np.mean(without) - without
    spread = float(np.sum(gap**2))
    acceleration = float(np.sum(gap**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    z = z0 + special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(values, special.ndtr(z0 + z / (1 - acceleration * z)))
    return _wider(float(low), float(high), value, se, made)


def bernstein(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """value ± √(2 s² ln(4/δ)/n) + 7 (high - low) ln(4/δ)/(3 (n - 1)), cut to [low, high]."""
    low, high = limits(made.bounded, seen(made.log), "bernstein", options)
    b = np.asarray(made.b)
    variance = float(np.var(b, ddof=1)) if made.n > 1 else np.inf
    half = bernstein_half(variance, made.n, high - low, level) + _monte_carlo(made, level)
    return max(low, value - half), min(high, value + half)


def bernstein_half(variance: float, n: int, width: float, level: float) -> float:
    """Half of the interval for the mean of n values of that sample variance on an interval of that width."""
    if n < 2:
        return np.inf
    L = np.log(4 / (1 - level))
    return float(np.sqrt(2 * variance * L / n) + 7 * width * L / (3 * (n - 1)))


def betting(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """The confidence sequence's last interval; the rows count in their order (time= or as they are)."""
    low, high = limits(made.bounded, seen(made.log), "betting", options)
    b = np.asarray(made.b)
    ordered = b if made.log.order is None else b[made.log.order]
    lower, upper = bets.interval((ordered - low) / (high - low), level=level)
    more = _monte_carlo(made, level)
    ends = low + (high - low) * lower - more, low + (high - low) * upper + more
    return float(np.maximum(low, ends[0])), float(np.minimum(high, ends[1]))  # NaN where every mean is refused


INTERVALS = {"normal": normal, "bootstrap": bootstrap, "bca": bca, "bernstein": bernstein, "betting": betting}


def resampled(made: Contributions, options) -> tuple[np.ndarray, np.ndarray]:
    """The values of resamples of rows or clusters (B,), and the sums of each: b, u, v, rows (G, 4)."""
    count = options.get("resamples", 2000)
    errors.at_least("resamples", count, 100)
    units = np.asfortranarray(grouped(np.column_stack([made.columns(), np.ones(made.n)]), made.log.group))
    rng, G = np.random.default_rng(options.get("seed")), len(units)
    values, batch = np.empty(count), max(1, 2_000_000 // G)
    for start in range(0, count, batch):
        size = min(batch, count - start)
        drawn = rng.integers(0, G, size=(size, G))
        values[start : start + size] = _value(np.stack([_drawn_sums(column, drawn) for column in units.T], axis=1))
    return values[np.isfinite(values)], units


def _drawn_sums(column: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Σ column[drawn] for each resample; of a column without spread that is known."""
    if np.all(column == column[0]):
        return np.full(len(drawn), column[0] * len(column))
    return column[drawn].sum(axis=1)


def _value(sums: np.ndarray) -> np.ndarray:
    """The estimates that sums of b, u, v and rows (..., 4) give; NaN for 0/0."""
    b, u, v, n = np.moveaxis(sums, -1, 0)
    return b / n + np.divide(u, v, out=np.full(v.shape, np.nan), where=v != 0)


def _wider(low: float, high: float, value: float, se: float, made: Contributions) -> Interval:
    """Stretched about the value by what Monte Carlo propensities add to the standard error."""
    if made.error is None or not se > 0:
        return low, high
    extra = float(made.error @ made.error) / made.n**2
    stretch = se / np.sqrt(max(se**2 - extra, 1e-300))
    return value + stretch * (low - value), value + stretch * (high - value)


def _monte_carlo(made: Contributions, level: float) -> float:
    """What Monte Carlo propensities add to half an interval that is not built on a standard error."""
    if made.error is None:
        return 0.0
    return float(special.ndtri((1 + level) / 2) * np.sqrt(made.error @ made.error) / made.n)


def limits(bounded: Bounded, seen: Seen, name: str, options) -> Interval:
    """The bounds of the contributions from what the caller knows beforehand; refused where the rows break them."""
    if bounded.form == "ratio":
        raise ValueError(f"interval={name!r} needs a mean of bounded terms, and this is a ratio: take ips or dr")
    if seen.clustered:
        raise ValueError(f"interval={name!r} takes the rows as independent: use 'bootstrap' or 'normal' with cluster=")
    span, weight = options.get("reward_range"), bounded.weight
    if weight is None:
        weight = options.get("weight_max")
    if span is None or weight is None:
        lacking = ["reward_range=(low, high)"] * (span is None) + ["weight_max=, such as K/floor"] * (weight is None)
        raise ValueError(f"interval={name!r} needs bounds known beforehand: pass {' and '.join(lacking)}")
    low, high, weight = float(span[0]), float(span[1]), float(weight)
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"reward_range must be two finite numbers, the lower first; got {span!r}")
    if bounded.weight is None:
        errors.positive("weight_max", weight)
        if seen.weight > weight * (1 + 1e-9):
            raise ValueError(f"weight_max={weight:g} is no bound: the largest weight is {seen.weight:g}")
    if seen.low < low or seen.high > high:
        what = f"rewards and predictions go from {seen.low:g} to {seen.high:g}"
        raise ValueError(f"reward_range={span!r} is no bound: {what}")
    return bounded.limits(weight, low, high)


def seen(log: Log) -> Seen:
    """The extremes of a log."""
    parts = [log.r] if log.M is None else [log.r, log.M]
    low, high = min(float(np.min(x)) for x in parts), max(float(np.max(x)) for x in parts)
    return Seen(float(np.max(log.w)), low, high, log.group is not None)

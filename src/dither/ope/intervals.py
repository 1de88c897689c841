"""Intervals for an estimate, by name.

normal      value ± z se
bootstrap   percentiles of the value of resampled rows, or clusters (Efron); none for one row or cluster
bca         the same, corrected for bias and skewness (Efron 1987), with the jackknife's acceleration
bernstein   empirical Bernstein for bounded contributions (Maurer, Pontil 2009, Theorem 4), valid for every n
betting     hedged capital (Waudby-Smith, Ramdas 2024, Theorem 3): valid at all times at once
clopper_pearson   exact, where weights are equal and rewards take two values (`events`)
asymptotic  value ± what no path of a normal mean leaves (Waudby-Smith et al. 2024, "Time-uniform central limit theory
            and asymptotic confidence sequences", Theorem 2.2): valid at all times at once, in the limit of long logs

Weights of rows make a mean a ratio, with no bound of its own. The value m has E[s (b - m)] = 0, whose terms are bounded
where s is: "bernstein" and "betting" leave those m that such terms do not refuse, and need `row_weight_max=`, a bound
on s known beforehand, unless all s are equal. `clopper_pearson` needs them equal.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from dither import errors
from dither.ope import betting as bets
from dither.ope import unseen
from dither.ope.contributions import Bounded, Contributions, grouped
from dither.ope.rows import Log

Interval = tuple[float, float]


class Seen(NamedTuple):
    """What the rows show of the bounds."""

    weight: float  # the largest weight
    low: float  # the least reward or prediction
    high: float  # the largest
    clustered: bool  # whether rows depend on each other
    rows: tuple[float, float] = (1.0, 1.0)  # the least and the largest weight of a row


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
    """For s = 1: value ± √(2 Var ln(4/δ)/n) + 7 (high - low) ln(4/δ)/(3 (n - 1)); else see `bernstein_ends`."""
    known = seen(made.log)
    ends = limits(made.bounded, known, "bernstein", options)
    s = np.ones(made.n) if made.log.s is None else made.log.s
    terms = np.stack([s, s * np.asarray(made.b)])
    spread = np.cov(terms) if made.n > 1 else np.full((2, 2), np.inf)
    most = row_limit(known, "bernstein", options)
    return bernstein_ends(np.mean(terms, axis=1), spread, made.n, most, ends, level, more=_monte_carlo(made, level))


def bernstein_ends(
    mean: np.ndarray, spread: np.ndarray, n: int, most: float, ends: Interval, level: float, *, more: float
) -> Interval:
    """The m for which |mean of s (b - m)| is at most √(2 Var ln(4/δ)/n) + 7 most (high - low) ln(4/δ)/(3 (n - 1)).

    mean (2,), spread (2, 2) : of s and s b, with divisor n - 1; most : the bound of s; ends : of b; more : to add
    With t = m - value it is |S t| <= √q(t) + d, q quadratic: one root on each side, where there is one.
    """
    low, high = ends
    if n < 2:
        return low, high
    L = np.log(4 / (1 - level))
    S, value = float(mean[0]), float(mean[1] / mean[0])
    d = 7 * most * (high - low) * L / (3 * (n - 1))
    k = 2 * L / n
    q2, q1 = k * spread[0, 0], k * 2 * (value * spread[0, 0] - spread[0, 1])
    q0 = k * max(float(spread[1, 1] - 2 * value * spread[0, 1] + value**2 * spread[0, 0]), 0.0)
    half = []
    for sign in (-1.0, 1.0):  # t = sign × h, h > 0: (S h - d)² = q2 h² + sign q1 h + q0
        a, b, c = S**2 - q2, -(2 * S * d + sign * q1), d**2 - q0
        half.append((-b + np.sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a) if a > 0 else np.inf)
    return max(low, value - float(half[0]) - more), min(high, value + float(half[1]) + more)


def betting(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """The confidence sequence's last interval; the rows count in their order (time= or as they are)."""
    known = seen(made.log)
    low, high = limits(made.bounded, known, "betting", options)
    x, g = (None if part is None else part if made.log.order is None else part[made.log.order] for part in (
        np.asarray(made.b), counted(made.log.s, row_limit(known, "betting", options))))  # fmt: skip
    return betting_ends(np.asarray(x), g, (low, high), level, more=_monte_carlo(made, level))


def betting_ends(b: np.ndarray, g: np.ndarray | None, ends: Interval, level: float, *, more: float) -> Interval:
    """Of terms b (n,) in order within `ends`, which count g (n,) each; NaN where every mean is refused."""
    low, high = ends
    lower, upper = (low + (high - low) * end for end in bets.interval((b - low) / (high - low), level=level, g=g))
    return float(np.maximum(low, lower - more)), float(np.minimum(high, upper + more))


def counted(s: np.ndarray | None, most: float) -> np.ndarray | None:
    """s over its bound (n,); None where all are equal, so that rows count alike."""
    return None if s is None or np.all(s == s[0]) else s / most


def clopper_pearson(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """From the number of events (`events`)."""
    if made.bounded.form not in ("weighted", "ratio") or (made.bounded.form == "ratio" and made.b is not None):
        raise ValueError(f"interval='clopper_pearson' is for means of rewards: take ips or snips, not {made.method}")
    if made.log.group is not None:
        raise ValueError("interval='clopper_pearson' takes the rows as independent: use 'bootstrap' with cluster=")
    if made.error is not None:
        raise ValueError("interval='clopper_pearson' needs exact propensities: use 'normal'")
    w = made.log.w if made.bounded.weight is None else np.minimum(made.log.w, made.bounded.weight)
    tally = unseen.of(made.log.r, w, made.log.s)
    return unseen.clopper_pearson(tally, level, options.get("reward_range"), of_shown=made.bounded.form == "ratio")


def asymptotic(made: Contributions, value: float, se: float, *, level: float, options) -> Interval:
    """value ± se √n times the boundary; n are clusters where there are any."""
    units = made.n if made.log.group is None else int(made.log.group.max()) + 1
    return about_always(value, se, units, level, options.get("narrowest", NARROWEST))


NARROWEST = 1000  # rows at which the asymptotic confidence sequence is narrowest, as left unsaid


def about_always(value: float, se: float, n: int, level: float, narrowest: int) -> Interval:
    """value ± se √(2 (n ρ² + 1)/(n ρ²) ln(√(n ρ² + 1)/α)), ρ² such that it is narrowest at n = `narrowest`."""
    errors.at_least("narrowest", narrowest, 1)
    alpha = 1 - level
    rho2 = -(float(np.real(special.lambertw(-(alpha**2) / np.e, -1))) + 1) / narrowest
    x = n * rho2
    half = se * float(np.sqrt(2 * (x + 1) / x * np.log(np.sqrt(x + 1) / alpha)))
    return value - half, value + half


INTERVALS = {
    "normal": normal,
    "bootstrap": bootstrap,
    "bca": bca,
    "bernstein": bernstein,
    "betting": betting,
    "clopper_pearson": clopper_pearson,
    "asymptotic": asymptotic,
}


def resampled(made: Contributions, options) -> tuple[np.ndarray, np.ndarray]:
    """The values of resamples of rows or clusters (B,), and the sums of each: sb, su, sv, s (G, 4)."""
    count = options.get("resamples", 2000)
    errors.at_least("resamples", count, 100)
    units = np.asfortranarray(grouped(made.columns(), made.log.group))
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
    """The estimates that sums of sb, su, sv and s (..., 4) give; NaN for 0/0."""
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


def row_limit(seen: Seen, name: str, options) -> float:
    """The bound on the weights of rows that the caller knows beforehand; not needed where all are equal."""
    least, largest = seen.rows
    if least == largest:
        return largest
    most = options.get("row_weight_max")
    if most is None:
        raise ValueError(
            f"interval={name!r} with weight= needs a bound on the weights of rows known beforehand: pass "
            f"row_weight_max=, such as 1/(1 - pdrop) of the most thinned rows"
        )
    errors.positive("row_weight_max", most)
    if largest > most * (1 + 1e-9):
        raise ValueError(f"row_weight_max={most:g} is no bound: the largest weight of a row is {largest:g}")
    return float(most)


def seen(log: Log) -> Seen:
    """The extremes of a log."""
    parts = [log.r] if log.M is None else [log.r, log.M]
    low, high = min(float(np.min(x)) for x in parts), max(float(np.max(x)) for x in parts)
    rows = (1.0, 1.0) if log.s is None else (float(np.min(log.s)), float(np.max(log.s)))
    return Seen(float(np.max(log.w)), low, high, log.group is not None, rows)

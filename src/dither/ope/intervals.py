"""From the evidence to an estimate with its interval: one road, and one table, for rows in memory and for sums.

normal      value ± z se
bootstrap   percentiles of the value of resampled rows, blocks or clusters (Efron); none for one of them
bca         the same, corrected for bias and skewness (Efron 1987), with the jackknife's acceleration
bernstein, betting   for means of bounded terms, valid for every n (`bounded`)
anytime     for ips, without a bound on the weights: valid for every n, at all times at once (`bounded`)
asymptotic  value ± a boundary that the path of a normal mean does not cross (Waudby-Smith et al. 2024, "Time-uniform
            central limit theory and asymptotic confidence sequences", Theorem 2.2): valid at all times at once, in the
            limit of long logs
clopper_pearson   exact, where weights are equal and rewards take two values

The rest of the file is about events that these rows do not show. Where few rewards differ from the others, the spread
of the rows tells little. Rewards take two values, low and high (default 0 and 1); y = 1 where a reward is high.

    equal weights    the policy shows what the log shows in N of n rows, each with one weight. Given N, the number of
                     y = 1 among them is binomial with mean (V - low)/(high - low): Clopper and Pearson (1934), exact
    other weights    w <= W, rows of weight s <= S. V has E[s (w y - v)] = 0, v its place in [low, high], so that
                     z(v) = (s/S) (w y/W - v/W) + v/W lies in [0, 1] with mean v/W:  v is rejected where
                     n kl(z̄(v), v/W) > ln(2/α)  (Chernoff, Hoeffding 1963; two-sided), convex in v

Both need independent rows. A `Tally` keeps one line for each value of the reward, up to MOST values; with more values,
events are not few. The tallies of parts of a log add up.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import special

from dither.base import errors
from dither.base.errors import Option, Refused
from dither.log import bets
from dither.log.bets import Balance
from dither.ope import bounded
from dither.ope.bounded import BOUNDED, LEVELS, Bounded, Extremes, Interval, IntervalSettings
from dither.ope.contributions import Contributions, unsupported
from dither.ope.result import Difference, Estimate

MOST = 8  # so many values of the reward are told apart
FEW = 10  # with fewer effective events a normal interval is not to be trusted
EVEN = 1e-9  # weights whose relative spread is below this count as equal
STEPS = 60  # halvings of [0, 1]
DIFFERENCES = ("normal", "anytime")  # intervals of paired differences, besides percentiles of resamples
OPTIONS = tuple(field.name for field in fields(IntervalSettings))


@dataclass(frozen=True)
class Evidence:
    """What an estimate needs of the rows behind it. The rows may be in memory, or only their sums."""

    method: str  # the estimator
    kind: str  # of the propensities
    value: float
    se: float
    n: int  # rows
    units: int  # rows, or clusters
    error: float  # what Monte Carlo propensities add to the standard error; 0 where they are exact
    left_out: Mapping[str, int]  # reason -> rows
    ess: float  # see `Estimate`, also for the next four
    weight_mean: float
    weight_max: float
    weight_sd: float
    drift: float
    certain: float  # mass of Q on arms that could not be shown, as far as p and P say it
    has_P: bool  # whether P is known, which says all of that mass
    balance: Balance  # what the tests of the weights need
    extremes: Callable[[], Extremes]
    bounded: Bounded
    of_rewards: bool  # whether the estimate reads rewards and weights alone, and no reward model
    moments: Callable[[], tuple[np.ndarray, np.ndarray]]  # mean (2,) and covariance (2, 2), divisor n - 1, of s and s b
    in_order: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray | None]]  # b, w and s (n,); s None: all are 1
    tally: Callable[[], "Tally"]  # the rewards by value
    totals: Callable[[], np.ndarray]  # (G, 4) Σsb, Σsu, Σsv, Σs of each unit that is drawn anew
    draws: Callable[[int, int | None], np.ndarray]  # times, seed -> the values of resamples (times,); NaN for 0/0

    def margin(self, level: float) -> float:
        """What the error of Monte Carlo propensities adds to each side of an interval that does not read `se`."""
        return about(0.0, self.error, level)[1]


def settings(options: Mapping[str, Any]) -> IntervalSettings:
    """The options of an interval, checked. Raises TypeError for an option that has another name."""
    for name in options.keys() - OPTIONS:
        raise TypeError(str(errors.unknown("option", name, names=OPTIONS)))
    how = IntervalSettings(**options)
    errors.within("level", how.level, *LEVELS)
    errors.among("interval", how.interval, INTERVALS)
    return how


def of_differences(interval: str, level: float, options: Mapping[str, Any]) -> IntervalSettings:
    """The options of the interval of a paired difference, checked."""
    how = settings({"interval": interval, "level": level, **options})
    errors.among("interval of a difference", interval, DIFFERENCES)
    return how


def for_logs(how: IntervalSettings) -> IntervalSettings:
    """The same for `evaluate`, which takes "clopper-pearson" too. Raises ValueError for what it cannot use.

    Paired differences have normal intervals, or bootstrap ones if these are asked for. If few rewards differ (`few`),
    an interval is widened so that it also holds for events that were not seen. The interval of a difference is widened
    to hold all differences that two such intervals allow. Each of these two fails with half the probability.
    """
    how = replace(how, interval=how.interval.replace("-", "_"))
    errors.among("interval", how.interval, OF_LOGS)
    errors.within("level", how.level, *LEVELS)
    errors.at_least("resamples", how.resamples, 100)
    errors.at_least("seed", how.seed, 0)
    return how


def bounds_are_there(how: IntervalSettings) -> None:
    """Raise ValueError for an interval that needs the range of the rewards, where nobody said it."""
    if how.interval in BOUNDED and how.reward_range is None:
        bounds = Option("reward_range", means="(low, high)")
        raise Refused(f"the {how.interval} interval needs bounds known beforehand: ", bounds)


def estimated(
    x: Evidence, how: IntervalSettings, *, notes: tuple[str, ...] = (), terms: Contributions | None = None
) -> Estimate:
    """The estimate. terms : what it was made from, where that is at hand."""
    interval = INTERVALS[how.interval](x, how)
    limit = None if how.weight_max is None else max(how.weight_max, x.weight_max)
    return Estimate(
        value=x.value, se=x.se, interval=interval, n=x.n, ess=x.ess, weight_mean=x.weight_mean, weight_max=x.weight_max,
        weight_sd=x.weight_sd, unsupported=unsupported(x.weight_mean, x.certain, has_P=x.has_P),
        weight_test=bets.p_value(x.balance, limit=limit), support_test=bets.support(x.balance), drift=x.drift,
        level=how.level, method=x.method, interval_method=how.interval, kind=x.kind, left_out=dict(x.left_out),
        notes=notes, contributions=terms,
    )  # fmt: skip


def difference(value: float, se: float, level: float, n: int, draws: np.ndarray | None = None) -> Difference:
    """A paired difference with a normal interval, or with the percentiles of its resamples, draws (times,)."""
    z = np.divide(abs(value), se) if se else (np.inf if value else 0.0)
    method, ends = "normal", about(value, se, level)
    if draws is not None:
        method, ends = "bootstrap", percentiles(draws, level)
    return Difference(value, se, ends, float(2 * special.ndtr(-z)), level, n, method)


def open_difference(
    value: float,
    se: float,
    n: int,
    one: Evidence,
    other: Evidence,
    how: IntervalSettings,
    *,
    error: float,
) -> Difference:
    """A paired difference of two means of w r, which holds on the log of a policy that learns (`bounded.difference`).

    error : what Monte Carlo propensities add to its standard error

    Raises ValueError for what is no mean of w r, for clusters, and where the range of rewards is not given.
    """
    for x in (one, other):
        ends, most = bounded.limits(x.method, x.bounded, x.extremes(), how)
    (b, w, s), (b0, w0, _) = one.in_order(), other.in_order()
    more = about(0.0, error, how.level)[1]
    interval, p = bounded.difference((b, w), (b0, w0), bounded.counted(s, most), ends, how.level, more=more)
    return Difference(value, se, interval, p, how.level, n, how.interval)


def about(value: float, se: float, level: float) -> Interval:
    """value ± z se."""
    z = float(special.ndtri((1 + level) / 2))
    return value - z * se, value + z * se


def normal(x: Evidence, how: IntervalSettings) -> Interval:
    """From the standard error."""
    return about(x.value, x.se, how.level)


def asymptotic(x: Evidence, how: IntervalSettings) -> Interval:
    """value ± se √n times the boundary. Where there are clusters, n is their number."""
    return about_always(x.value, x.se, x.units, how.level, how.narrowest)


def about_always(value: float, se: float, n: int, level: float, narrowest: int) -> Interval:
    """value ± se √(2 (n ρ² + 1)/(n ρ²) ln(√(n ρ² + 1)/α)). ρ² makes it narrowest at n = `narrowest`."""
    errors.at_least("narrowest", narrowest, 1)
    alpha = 1 - level
    rho2 = -(float(np.real(special.lambertw(-(alpha**2) / math.e, -1))) + 1) / narrowest
    x = n * rho2
    half = se * float(np.sqrt(2 * (x + 1) / x * np.log(np.sqrt(x + 1) / alpha)))
    return value - half, value + half


def bootstrap(x: Evidence, how: IntervalSettings) -> Interval:
    """Percentiles of the resampled values."""
    low, high = percentiles(_drawn(x, how), how.level)
    more = x.margin(how.level)
    return low - more, high + more


def bca(x: Evidence, how: IntervalSettings) -> Interval:
    """Percentiles at levels that correct for bias and skewness."""
    values, units, level = _drawn(x, how), x.totals(), how.level
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    below = np.mean(values < x.value) + np.mean(values == x.value) / 2
    z0 = special.ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
    without = values_of(np.sum(units, axis=0) - units)
    gap = np.mean(without) - without
    spread = float(np.sum(gap**2))
    acceleration = float(np.sum(gap**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    z = z0 + special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(values, special.ndtr(z0 + z / (1 - acceleration * z)))
    more = x.margin(level)
    return float(low) - more, float(high) + more


def _drawn(x: Evidence, how: IntervalSettings) -> np.ndarray:
    errors.at_least("resamples", how.resamples, 100)
    return x.draws(how.resamples, how.seed)


def percentiles(values: np.ndarray, level: float) -> Interval:
    """The interval that holds the middle share `level` of the finite values; NaN if no value is finite."""
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled(units: np.ndarray, seed: Any, times: int) -> np.ndarray:
    """Sums of G units drawn from the G units (G, C) with replacement, (times, C); NaN if there is only one unit."""
    G, rng = len(units), np.random.default_rng(seed)
    if G < 2:
        return np.full((times, units.shape[1]), np.nan)
    sums = np.empty((times, units.shape[1]))
    for i in range(times):
        sums[i] = np.bincount(rng.integers(G, size=G), minlength=G) @ units
    return sums


def values_of(sums: np.ndarray) -> np.ndarray:
    """The estimates from the sums of sb, su, sv and s (..., 4); NaN for 0/0."""
    b, u, v, n = np.moveaxis(sums, -1, 0)
    return b / n + np.divide(u, v, out=np.full(v.shape, np.nan), where=v != 0)


def bernstein(x: Evidence, how: IntervalSettings) -> Interval:
    """See `bounded.bernstein`."""
    ends, most = bounded.limits(x.method, x.bounded, x.extremes(), how)
    return bounded.bernstein(*x.moments(), x.n, most, ends, how.level, more=x.margin(how.level))


def in_order(x: Evidence, how: IntervalSettings) -> Interval:
    """The last interval of a confidence sequence. The order of the rows matters."""
    return path(x, how, more=x.margin(how.level))(x.n)


def path(x: Evidence, how: IntervalSettings, *, more: float) -> Callable[[int], Interval]:
    """The interval of "betting" or "anytime" after the first t rows, for each t; more : is added to both sides."""
    ends, most = bounded.limits(x.method, x.bounded, x.extremes(), how)
    b, w, s = x.in_order()
    g = bounded.counted(s, most)
    rule = bounded.anytime if how.interval == "anytime" else bounded.betting
    if how.interval == "anytime" and x.bounded.weight is not None:  # of what ran, whose value moves as it learns
        rule = bounded.wandering
    return lambda t: rule(b[:t], w[:t], None if g is None else g[:t], ends, how.level, more=more)


def clopper_pearson(x: Evidence, how: IntervalSettings) -> Interval:
    """From the number of events (`exact`)."""
    this = Option("interval", "clopper_pearson")
    if not x.of_rewards:
        raise Refused(this, f" is for means of rewards: take ips or snips, not {x.method}")
    if x.bounded.weight is not None and x.weight_max > x.bounded.weight:
        raise Refused(this, f" is of the value itself: take ips or snips, not {x.method}")
    if x.extremes().clustered:
        raise Refused(this, " takes the rows as independent: use 'bootstrap' or 'normal' with ", Option("cluster"))
    if x.error:
        raise Refused(this, " needs exact propensities: use 'normal'")
    return exact(x.tally(), how.level, how.reward_range, of_shown=x.bounded.form == "ratio")


INTERVALS: dict[str, Callable[[Evidence, IntervalSettings], Interval]] = {
    "normal": normal,
    "bootstrap": bootstrap,
    "bca": bca,
    "bernstein": bernstein,
    "betting": in_order,
    "anytime": in_order,
    "clopper_pearson": clopper_pearson,
    "asymptotic": asymptotic,
}
OF_LOGS = tuple(name for name in INTERVALS if name != "bca")  # those that `evaluate` offers


@dataclass(frozen=True)
class Tally:
    """The rewards of n rows by value, with what one policy makes of them."""

    n: int
    total: float  # Σs
    rows: tuple[float, float]  # the least and the largest s
    weights: tuple[float, float]  # the least weight w above 0 and the largest; (inf, 0) where all are 0
    values: tuple[float, ...]  # of the rewards, sorted; empty where there are more than MOST
    shown: tuple[int, ...]  # rows of w > 0, by value
    mass: tuple[float, ...]  # Σ s w, by value
    squares: tuple[float, ...]  # Σ (s w)², by value


def tallied(r: np.ndarray, w: np.ndarray, s: np.ndarray | None) -> Tally:
    """The tally of rewards r (n,), weights w (n,) and weights s (n,) of the rows; None: all s are 1."""
    rows = (1.0, 1.0) if s is None else (float(np.min(s)), float(np.max(s)))
    total = float(len(r)) if s is None else float(np.sum(s))
    above = w > 0
    ends = (float(np.min(w, where=above, initial=np.inf)), float(np.max(w)))
    values = _values(r)
    if not len(values):
        return Tally(len(r), total, rows, ends, (), (), (), ())
    place = np.searchsorted(values, r)
    carried = w if s is None else s * w
    by = [np.bincount(place, weights=x, minlength=len(values)) for x in (above, carried, carried**2)]
    shown = tuple(int(x) for x in by[0])
    mass, squares = (tuple(x.tolist()) for x in by[1:])
    return Tally(len(r), total, rows, ends, tuple(values.tolist()), shown, mass, squares)


def merge_tallies(a: Tally, b: Tally) -> Tally:
    """The tally of the rows of both."""
    values = tuple(sorted({*a.values, *b.values})) if a.values and b.values else ()
    if len(values) > MOST:
        values = ()

    def line(name: str) -> Any:
        lines = [dict(zip(part.values, getattr(part, name), strict=True)) for part in (a, b)]
        return tuple(sum(part.get(value, 0) for part in lines) for value in values)

    rows, weights = ((min(x[0], y[0]), max(x[1], y[1])) for x, y in ((a.rows, b.rows), (a.weights, b.weights)))
    lines = line("shown"), line("mass"), line("squares")
    return Tally(a.n + b.n, a.total + b.total, rows, weights, values, *lines)


def few(x: Tally) -> bool:
    """Whether, of the rows that the policy shows, fewer than FEW effective ones have another than the usual reward."""
    if not x.values or not sum(x.mass):
        return False
    most = int(np.argmax(x.mass))
    mass, squares = sum(x.mass) - x.mass[most], sum(x.squares) - x.squares[most]
    return mass == 0 or mass**2 < FEW * squares


def span(x: Tally, limits: Interval | None) -> Interval | None:
    """The two values that rewards can take: the limits, or 0 and 1 if all rewards are, or the only two; else None."""
    if limits is not None:
        return float(limits[0]), float(limits[1])
    if not x.values or len(x.values) > 2:
        return None
    return (0.0, 1.0) if set(x.values) <= {0.0, 1.0} else x.values if len(x.values) == 2 else None


def unseen(x: Tally, level: float, limits: Interval | None, *, bound: float | None = None) -> Interval | None:
    """The interval of the value of the policy, for any weights; None if the range of rewards is not known.

    limits : bounds of the rewards; bound : W, a bound on the weights; None: the largest weight seen
    """
    ends = span(x, limits)
    if ends is None or (limits is not None and not x.values):
        return None
    low, high = ends
    if _even(x) and set(x.values) <= {low, high}:
        return exact(x, level, ends, of_shown=True)
    W = max(x.weights[1], bound or 0.0, 1.0)
    y = np.clip((np.array(x.values) - low) / (high - low), 0.0, 1.0)
    A, S = float(np.dot(y, x.mass)) / (x.n * x.rows[1] * W), x.total / (x.n * x.rows[1])
    need, middle = np.log(2 / (1 - level)) / x.n, min(A / S, 1.0)

    def excess(v: float) -> float:  # v: the value over W
        return _divergence(min(max(A - S * v + v, 0.0), 1.0), v) - need

    left, right = (_root(excess, middle, end) for end in (0.0, 1.0))
    return low + (high - low) * min(W * left, 1.0), low + (high - low) * min(W * right, 1.0)


def hull(a: Interval, b: Interval | None) -> Interval:
    """The smallest interval that holds both. An end that is NaN does not count."""
    return a if b is None else (float(np.fmin(a[0], b[0])), float(np.fmax(a[1], b[1])))


def wider_gap(gap: Interval, one: Interval | None, other: Interval | None) -> Interval:
    """The interval of a difference, wide enough to hold every difference of a point of `one` and a point of `other`.

    one, other : intervals of both values that also hold for events not seen. Each fails with half the probability.
    """
    return gap if one is None or other is None else hull(gap, (one[0] - other[1], one[1] - other[0]))


def _divergence(x: float, m: float) -> float:
    """kl(x, m) = x ln(x/m) + (1 - x) ln((1 - x)/(1 - m))."""
    return float(special.rel_entr(x, m) + special.rel_entr(1 - x, 1 - m))


def _root(excess: Callable[[float], float], inside: float, outside: float) -> float:
    """The place between `inside` and `outside` where `excess` passes 0, rounded outwards.

    `excess` must be convex, and at most 0 at `inside`.
    """
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if excess(middle) > 0 else (middle, outside)
    return outside


def exact(x: Tally, level: float, limits: Interval | None, *, of_shown: bool) -> Interval:
    """Clopper and Pearson's interval.

    of_shown : True for the mean reward of the rows that the policy shows; False for the mean of w r over all rows

    Raises ValueError if weights differ, or if rewards take other than two values.
    """
    ends, this = span(x, limits), Option("interval", "clopper_pearson")
    if ends is None or not set(x.values) <= set(ends):
        others = "others" if x.values else f"more than {MOST}"
        raise Refused(
            *(this, " needs rewards of two values, 0 and 1 or those of ", Option("reward_range")),
            f"; there are {others}: take 'betting'",
        )
    if not _even(x):
        what = "weights of rows" if x.rows[0] != x.rows[1] else "weights q/p above 0"
        raise Refused(this, f" needs equal weights, and the {what} differ: take 'betting'")
    low, high = ends
    scale = 1.0 if of_shown else x.weights[1]
    if not of_shown and low != 0 and sum(x.shown) < x.n:
        raise Refused(this, " of a mean w r needs rewards of 0 and another value: take snips")
    k = sum(count for value, count in zip(x.values, x.shown, strict=True) if value == high)
    N = sum(x.shown) if of_shown else x.n
    if N == 0:
        return low, high
    tail = (1 - level) / 2
    least = float(special.betaincinv(k, N - k + 1, tail)) if k else 0.0
    most = float(special.betaincinv(k + 1, N - k, 1 - tail)) if k < N else 1.0
    return low * scale + (high - low) * scale * least, low * scale + (high - low) * scale * most


def _even(x: Tally) -> bool:
    """Whether all rows have the same weight s, and all w above 0 are the same number."""
    return x.rows[0] == x.rows[1] and (x.weights[1] - x.weights[0]) <= EVEN * x.weights[1]


def _values(r: np.ndarray) -> np.ndarray:
    """The distinct values (V,); an empty array if there are more than MOST."""
    values: list[float] = []
    left = r
    while len(left):
        if len(values) == MOST:
            return np.empty(0)
        values.append(float(left[0]))
        left = left[left != left[0]]
    return np.sort(np.array(values))

"""Intervals for means of bounded terms, and the bounds that they need. They are valid for every number of rows.

bernstein   empirical Bernstein (Maurer, Pontil 2009, Theorem 4)
betting     hedged capital (Waudby-Smith, Ramdas 2024, Theorem 3 and Section 4.4): valid at all times at once
anytime     the same bets without a bound on the weights (Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro 2024,
            "Anytime-valid off-policy inference for contextual bandits", Section 3), for ips

Betting on x_1, x_2, ... in [0, 1] with one mean:

    K⁺_t(m) = Π_{s<=t} (1 + min(λ_s, ½/m) (x_s - m))             wealth of a bet that the mean is above m
    K⁻_t(m) = Π_{s<=t} (1 - min(λ_s, ½/(1-m)) (x_s - m))         that it is below
    λ_s = √(2 ln(2/α)/(σ̂²_{s-1} s ln(1 + s)))                    predictable (equation 26)
    σ̂²_s = (¼ + Σ_{i<=s} (x_i - μ̂_i)²)/(s + 1),  μ̂_s = (½ + Σ_{i<=s} x_i)/(s + 1)

If the mean is m, both are martingales of mean 1. So m is rejected for good once max(K⁺, K⁻)/2 >= 1/α (Ville). K⁺ falls
in m and K⁻ rises, so the m that are not rejected form an interval. Bisection finds its ends. Every pass is over all
t at once.

Given the past, each x_s need only have the mean m. So both sequences hold for the log of a policy that learns.

"anytime" bets for x = w y and for x' = w (1 - y), y the reward on [0, 1]. If the log has support, E[w] = 1, so their
means are v and 1 - v. A bet that a mean is above m loses at most λ m of its wealth, however large x is. So K⁺ on x
gives the lower end, and K⁺ on x' the upper end. "betting" bets against large x instead, and has to fear the largest
possible weight in every round: of a policy that is close to the one that ran it knows far less.

A mean that wanders, as the value of a policy that learns does, is no one m. What is asked then is the average of the
conditional means μ_t of x_1, ..., x_n >= 0. With one λ in (0, 1) for all t, and x̂_t in [0, 1] from the past alone,

    E_{t-1} (1 + λ (x_t - x̂_t)) = 1 + λ (μ_t - x̂_t) <= e^{λ (μ_t - x̂_t)}
    so  W_λ(m) = Π (1 + λ (x_t - x̂_t)) e^{λ Σ x̂_t} e^{-λ n m}  at m = μ̄ is a supermartingale: its mean is at most 1

whatever the μ_t are (`wandering`). So is the mean of W_λ over the STAKES, and the m at which it is 2/α and more are
rejected. The difference d of two policies comes from

    x = (w y + w' (1 - y))/2,  x' = (w' y + w (1 - y))/2    of means (1 + d)/2 and (1 - d)/2, y the reward on [0, 1]

both above 0 without a bound on the weights w and w'. For what ran, w' = 1.

With weights s of rows a mean becomes a ratio, which has no bound of its own. But the value m has E[s (b - m)] = 0, and
these terms are bounded where s is bounded. Both intervals hold the m that such terms do not reject. They need a bound
on s that is known beforehand. For "betting", row s counts g_s in (0, 1], its weight over that bound. Each bet is then
on g_s (x_s - m) in place of x_s - m, with the same bounds, and λ comes from the earlier g (x - μ̂).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.base.errors import Option, Refused

Interval = tuple[float, float]
STEPS = 50  # halvings of [0, 1]: ends to 1e-15
STAKES = 0.9 * 3.0 ** -np.arange(10)  # λ of `wandering`, each as likely as the others
LEVELS = (1e-6, 1 - 1e-6)  # of intervals
ONE_VALUE = ("betting", "anytime")  # intervals that take all rows to have one value, in their order
BOUNDED = ("bernstein", *ONE_VALUE)  # intervals for bounded terms


@dataclass(frozen=True)
class IntervalSettings:
    """Which interval, and what it must know."""

    interval: str = "normal"  # one of intervals.INTERVALS
    level: float = 0.95
    reward_range: tuple[float, float] | None = None  # bounds on rewards and predictions: for BOUNDED
    weight_max: float | None = None  # a bound on weights, known beforehand, such as K/floor: for bernstein and betting
    row_weight_max: float | None = None  # the same on weight=, if that is not constant: for BOUNDED
    resamples: int = 2000  # of the bootstrap
    seed: int | None = None  # of the bootstrap
    narrowest: int = 1000  # number of rows at which "asymptotic" is narrowest, chosen beforehand


class Extremes(NamedTuple):
    """The least and the largest of what the rows show."""

    weight: float  # the largest weight
    low: float  # the least reward or prediction
    high: float  # the largest
    clustered: bool  # whether rows depend on each other
    rows: tuple[float, float] = (1.0, 1.0)  # the least and the largest weight of a row


@dataclass(frozen=True)
class Bounded:
    """How bounds on weights and rewards give bounds on b: low <= b <= high. Some intervals need them.

    form : "weighted" (b = w r), "residual" (b = m + w (r - m)), "model" (b = m), or "ratio", which has no bounds
    """

    form: str
    weight: float | None = None  # the largest value of the weight that is used; None: only the caller knows it

    def limits(self, weight: float, low: float, high: float) -> tuple[float, float]:
        """The bounds of b for weights in [0, weight] and rewards and predictions in [low, high]."""
        if self.form == "weighted":
            return min(0.0, weight * low), max(0.0, weight * high)
        width = max(weight * (high - low), 0.0)
        return (low - width, high + width) if self.form == "residual" else (low, high)


def ordered(span: Any) -> Interval:
    """A range of rewards, as two finite numbers of which the lower is first; else ValueError."""
    low, high = float(span[0]), float(span[1])
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"reward_range must be two finite numbers, the lower first; got {span!r}")
    return low, high


def limits(method: str, bounded: Bounded, extremes: Extremes, how: IntervalSettings) -> tuple[Interval, float]:
    """The bounds that the caller gives: of the terms ("anytime": of the rewards), and of the weights of rows.

    method : of the estimator. Raises ValueError if a bound is lacking, or if a row breaks one.
    """
    this, is_open = Option("interval", how.interval), how.interval == "anytime"
    if is_open and (bounded.form != "weighted" or not (bounded.weight is None or method == "ips")):
        raise Refused(this, f" is for the mean of w r: take ips, not {method}")
    if bounded.form == "ratio":
        raise Refused(this, f" needs a mean of bounded terms, and {method} is a ratio: take ips or dr")
    if extremes.clustered:
        rows = "in their order" if is_open else "as independent"
        raise Refused(this, f" takes the rows {rows}: use 'bootstrap' or 'normal' with ", Option("cluster"))
    weight = how.weight_max if bounded.weight is None else bounded.weight
    lacking: list[Any] = [] if how.reward_range is not None else [Option("reward_range", means="(low, high)")]
    if weight is None and not is_open:
        lacking += [*([" and "] if lacking else []), Option("weight_max"), ", such as K/floor"]
    if how.reward_range is None or lacking:
        raise Refused(this, " needs bounds known beforehand: pass ", *lacking)
    if weight is not None and bounded.weight is None and not is_open:
        _bounds("weight_max", float(weight), extremes.weight, "weight")
    low, high = ordered(how.reward_range)
    if extremes.low < low or extremes.high > high:
        what = f"rewards and predictions go from {extremes.low:g} to {extremes.high:g}"
        raise Refused(
            f"reward_range={how.reward_range!r} is no bound: {what}. Rewards that were changed after they were logged, "
            "to money say, have another range than the log says: pass ", Option("reward_range", means="(low, high)"),
        )  # fmt: skip
    ends = (low, high) if is_open or weight is None else bounded.limits(float(weight), low, high)
    return ends, row_limit(this, extremes, how)


def row_limit(this: Option, extremes: Extremes, how: IntervalSettings) -> float:
    """The bound on the weights of rows. If all are equal, the caller need not give one."""
    least, largest = extremes.rows
    if least == largest:
        return largest
    most = how.row_weight_max
    if most is None:
        raise Refused(
            *(this, " with weights of rows needs a bound on the weights of rows known beforehand: pass "),
            *(Option("row_weight_max"), ", such as 1/(1 - pdrop) of the most thinned rows"),
        )
    _bounds("row_weight_max", most, largest, "weight of a row")
    return float(most)


def _bounds(name: str, bound: float, largest: float, what: str) -> None:
    """Refuse a bound that a row exceeds."""
    errors.positive(name, bound)
    if largest > bound * (1 + 1e-9):
        raise ValueError(f"{name}={bound:g} is no bound: the largest {what} is {largest:g}")


def bernstein(
    mean: np.ndarray, spread: np.ndarray, n: int, most: float, ends: Interval, level: float, *, more: float
) -> Interval:
    """Empirical Bernstein: for s = 1 value ± √(2 Var ln(4/δ)/n) + 7 (high - low) ln(4/δ)/(3 (n - 1)).

    In general the m for which |mean of s (b - m)| <= √(2 Var ln(4/δ)/n) + 7 most (high - low) ln(4/δ)/(3 (n - 1)).

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


def betting(
    b: np.ndarray, w: np.ndarray, g: np.ndarray | None, ends: Interval, level: float, *, more: float
) -> Interval:
    """The last interval of the confidence sequence for the mean of b, whatever the weights w are.

    b (n,) : terms within `ends`, in order; g (n,) : what each counts; more : is added to both sides. The ends are NaN
    if every mean is rejected.
    """
    low, high = ends
    lower, upper = (low + (high - low) * end for end in interval((b - low) / (high - low), level=level, g=g))
    return float(np.maximum(low, lower - more)), float(np.minimum(high, upper + more))


def anytime(
    b: np.ndarray, w: np.ndarray, g: np.ndarray | None, ends: Interval, level: float, *, more: float
) -> Interval:
    """The last interval of the confidence sequence for the mean of b = w r, w (n,) of mean 1 and r within `ends`."""
    low, high = ends
    need = math.log(2 / (1 - level))
    up, down = (b - low * w) / (high - low), (high * w - b) / (high - low)
    lower, upper = (_end(x, stakes(x, level, g), need, g) for x in (up, down))
    if lower > 1 - upper:
        return math.nan, math.nan
    return max(low, low + (high - low) * lower - more), min(high, high - (high - low) * upper + more)


def wandering(
    b: np.ndarray, w: np.ndarray, g: np.ndarray | None, ends: Interval, level: float, *, more: float
) -> Interval:
    """The interval of the average of the conditional means of b = w r, which may wander: as those of what ran."""
    low, high = ends
    span, need = high - low, math.log(2 / (1 - level))
    lower, upper = (_least(Wealth.of(x, g), need) for x in ((b - low * w) / span, (high * w - b) / span))
    if lower > 1 - upper:
        return math.nan, math.nan
    return max(low, low + span * lower - more), min(high, high - span * upper + more)


def difference(
    one: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    g: np.ndarray | None,
    ends: Interval,
    level: float,
    *,
    more: float,
) -> tuple[Interval, float]:
    """The interval of the average difference of two policies' conditional means, and the P-value of none.

    one, other : b = w r and w (n,) of each; ends : of r; more : is added to both sides
    """
    (b, w), (b0, w0), (low, high) = one, other, ends
    span, need = high - low, math.log(2 / (1 - level))
    gains, rest = (b - low * w, high * w - b), (b0 - low * w0, high * w0 - b0)
    up, down = (Wealth.of((gain + left) / (2 * span), g) for gain, left in zip(gains, rest[::-1], strict=True))
    lower, upper = _least(up, need), _least(down, need)
    p = min(1.0, 2 * math.exp(-max(up.log(0.5), down.log(0.5), 0.0)))
    if lower > 1 - upper:
        return (math.nan, math.nan), p
    return (span * (2 * lower - 1) - more, span * (1 - 2 * upper) + more), p


class Wealth(NamedTuple):
    """What the bets of `wandering` that an average is above m have won, as a function of m."""

    won: np.ndarray  # of each stake, log W_λ(0)
    loses: np.ndarray  # what each loses of it for m: λ Σ g

    @classmethod
    def of(cls, x: np.ndarray, g: np.ndarray | None) -> "Wealth":
        """x (n,) of at least 0, in order; g (n,) : what each counts, in (0, 1]."""
        g = np.ones(len(x)) if g is None else g
        total = np.cumsum(g)
        before = (0.5 + np.concatenate([[0.0], np.cumsum(g * x)[:-1]])) / (1 + np.concatenate([[0.0], total[:-1]]))
        centre = np.clip(before, 0.0, 1.0)
        gap, shift = g * (x - centre), float(g @ centre)
        won = np.array([np.sum(np.log1p(stake * gap)) + stake * shift for stake in STAKES])
        return cls(won, STAKES * total[-1])

    def log(self, m: float) -> float:
        """The logarithm of the mean over the stakes."""
        return float(np.logaddexp.reduce(self.won - self.loses * m)) - math.log(len(STAKES))


def _least(wealth: Wealth, need: float) -> float:
    """The smallest m in [0, 1] that is not rejected."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        m = (low + high) / 2
        low, high = (m, high) if wealth.log(m) >= need else (low, m)
    return low


def counted(s: np.ndarray | None, most: float) -> np.ndarray | None:
    """s over its bound (n,); None if all s are equal, since all rows count the same then."""
    return None if s is None or np.all(s == s[0]) else s / most


def interval(x: np.ndarray, *, level: float = 0.95, g: np.ndarray | None = None) -> Interval:
    """The interval after all of x (n,), values in [0, 1] in order. It is valid even if one looks and then stops.

    g (n,) : what each row counts, in (0, 1]; None: all 1. Both ends are NaN if every mean is rejected. Then the mean of
    x is not constant, or the interval fails, which happens with probability 1 - level.
    """
    lam, need = stakes(x, level, g), math.log(2 / (1 - level))
    low, high = _end(x, lam, need, g), 1 - _end(1 - x, lam, need, g)
    return (low, high) if low <= high else (math.nan, math.nan)


def stakes(x: np.ndarray, level: float, g: np.ndarray | None = None) -> np.ndarray:
    """λ (n,). Each depends only on earlier values."""
    n = len(x)
    s = np.arange(1, n + 1)
    if g is None:
        mean = (0.5 + np.cumsum(x)) / (s + 1)
        variance = (0.25 + np.cumsum((x - mean) ** 2)) / (s + 1)
    else:
        mean = (0.5 + np.cumsum(g * x)) / (1 + np.cumsum(g))
        variance = (0.25 + np.cumsum((g * (x - mean)) ** 2)) / (s + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.sqrt(2 * math.log(2 / (1 - level)) / (before * s * np.log1p(s)))


def _end(x: np.ndarray, lam: np.ndarray, need: float, g: np.ndarray | None) -> float:
    """The smallest m that K⁺ has never rejected."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        m = (low + high) / 2
        gap = x - m if g is None else g * (x - m)
        wealth = np.cumsum(np.log1p(np.minimum(lam, 0.5 / m) * gap))
        if np.max(wealth) >= need:
            low = m
        else:
            high = m
    return low

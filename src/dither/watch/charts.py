"""Charts as data: what the page's script draws with Plotly, and the same numbers as a table beside it."""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from dither.log import ArmDay, ArmDays
from dither.ope import verdicts
from dither.watch import wording

NORMAL = 1.96  # standard errors on either side, 95 %
CURVES = 5  # arms that are drawn; the others are one curve
LENGTH = 40  # characters of the name of a curve
OTHERS = "all others"
MOST_OTHERS = 0.6  # share of the others, above which they are not drawn: the arms would lie on the axis
COLORS = ("one", "two", "three", "four", "five", "rest")  # of the style; the last one is a quiet one
DAY = 86_400_000  # milliseconds, as the script counts
UNKNOWN = (
    "No decision of these days says which arm looked best. Those of Live(..., probabilities=True) do, as soon as "
    "something tells the arms apart."
)


class Series(NamedTuple):
    """One curve."""

    name: str
    y: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    color: str = "one"  # of `COLORS`


class Chart(NamedTuple):
    """A chart and its table."""

    name: str  # by which the script finds its numbers
    title: str
    says: str  # a sentence
    data: dict[str, Any]  # for the script
    series: list[Series]
    heads: list[str]
    rows: list[list[str]]  # the first cell of a row is its head
    empty: str = ""  # what is said where there is nothing to draw


def reward(days: Sequence[ArmDay]) -> Chart:
    """The mean reward of each day, with the interval of its mean."""
    y = [day.mean_reward for day in days]
    ends = [NORMAL * day.mean_reward_se for day in days]
    low, high = (
        _finite(v + sign * (e if math.isfinite(e) else 0.0) for v, e in zip(y, ends, strict=True)) for sign in (-1, 1)
    )
    series = [Series("reward", _finite(y), low, high)]
    rows = [
        [str(day.day), wording.reward(day.mean_reward), wording.interval(a, b), wording.count(day.rewarded)]
        for day, a, b in zip(days, low, high, strict=True)
    ]
    says = "Mean of the decisions of each day that have a reward by now; the band is its 95\u00a0% interval."
    hover = [f"{mean} ({ends}), {n} rewards" for _, mean, ends, n in rows]
    data = _by_day("lines", days, series, "") | {"hover": hover}
    heads = ["Day", "Mean", "95\u00a0% interval", "Rewards"]
    empty = "" if any(day.rewarded for day in days) else "No decision of these days has a reward yet."
    return Chart("reward", "Reward a decision", says, data, series, heads, _newest(rows), empty)


def traffic(days: Sequence[ArmDay]) -> Chart:
    """Decisions and rewards of each day."""
    series = [
        Series("with a reward", [day.rewarded for day in days], color="two"),
        Series("without one by now", [day.decisions - day.rewarded - day.erased for day in days], color="rest"),
    ]
    heads = ["Day", "Decisions", "With a reward"]
    rows = [[str(day.day), wording.count(day.decisions), wording.count(day.rewarded)] for day in days]
    if any(day.erased for day in days):
        series.append(Series("erased", [day.erased for day in days], color="five"))
        heads.append("Erased")
        rows = [[*row, wording.count(day.erased)] for row, day in zip(rows, days, strict=True)]
    says = "Decisions of each day, and how many of them have a reward by now."
    data = _by_day("bars", days, series, ",d")
    return Chart("traffic", "Decisions", says, data, series, heads, _newest(rows))


def shares(sums: ArmDays, days: Sequence[ArmDay]) -> Chart:
    """How often each of the arms that were shown most was shown, day by day."""
    arms = sorted(sums.by_arm(), key=lambda arm: -arm.decisions)
    most, rest = arms[:CURVES], sum(arm.decisions for arm in arms[CURVES:])
    shown = {(row.day, row.arm): row.decisions for row in sums.rows}
    curves = [(str(arm.arm), [_ratio(shown.get((day.day, arm.arm), 0), day.decisions) for day in days]) for arm in most]
    says = "Share of the decisions of each day."
    if len(arms) > CURVES:
        curves.append((OTHERS, [1 - math.fsum(parts) for parts in zip(*(y for _, y in curves), strict=True)]))
        says = f"Share of the decisions of each day, of the {CURVES} arms that were shown most."
    table = [[str(day.day), *(wording.share(y[i]) for _, y in curves)] for i, day in enumerate(days)]
    heads = ["Day", *(name for name, _ in curves)]
    others = _ratio(rest, rest + sum(arm.decisions for arm in most))
    if others > MOST_OTHERS:
        says += f" All {wording.count(len(arms) - CURVES)} others, {wording.share(others)} together, are not drawn."
        del curves[CURVES:]
    series = [
        Series(wording.plain(name, LENGTH), _finite(y), color=color)
        for (name, y), color in zip(curves, COLORS, strict=False)
    ]
    data = _by_day("lines", days, series, ".2~%", zero=True)
    return Chart("shares", "Arms shown", says, data, series, heads, _newest(table))


def exploration(days: Sequence[ArmDay]) -> Chart:
    """How much was explored, day by day."""
    series = [
        Series("did not show the best arm", _finite(day.exploration for day in days)),
        Series("uniform share", _finite(day.mean_floor for day in days), color="rest"),
    ]
    rows = [[str(day.day), wording.share(day.exploration), wording.share(day.mean_floor)] for day in days]
    says = "Share of the decisions of each day that did not show the arm which looked best then."
    data = _by_day("lines", days, series, ".2~%", zero=True)
    heads = ["Day", "Not the best", "Uniform share"]
    empty = "" if any(day.told for day in days) else UNKNOWN
    return Chart("exploration", "Exploration", says, data, series, heads, _newest(rows), empty)


def estimates(evaluation: Any) -> Chart:
    """The estimates of an evaluation, each with its interval."""
    named = [
        (wording.plain(f"{verdicts.named(who)}, {by}", LENGTH), e) for (who, by), e in evaluation.estimates.items()
    ]
    low, high = (_finite(e.interval[side] for _, e in named) for side in (0, 1))
    series = [Series("reward a decision", _finite(e.value for _, e in named), low, high)]
    rows = [[name, wording.reward(e.value), wording.interval(*e.interval)] for name, e in named]
    hover = [f"{value} ({ends})" for _, value, ends in rows]
    data = {"kind": "intervals", "x": [name for name, _ in named], "hover": hover, "series": _described(series)}
    says = f"Each with its {100 * evaluation.how.level:.0f}\u00a0% interval."
    return Chart("estimates", "Reward a decision", says, data, series, ["Policy, estimator", "Value", "Interval"], rows)


def whole_days(days: Sequence[ArmDay], *, most: int | None) -> list[ArmDay]:
    """The latest days, at most so many, in order; days without decisions are there too, unless they are very many."""
    there = {day.day: day for day in days if day.day is not None}
    if not there:
        return []
    last = max(there)
    first = min(there) if most is None else max(min(there), last - timedelta(days=most - 1))
    if (last - first).days > 4 * len(there) + 400:  # times that nobody meant
        return [there[day] for day in sorted(there) if day >= first]
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [there.get(day) or ArmDay(day, None) for day in every]


def _by_day(
    kind: str, days: Sequence[ArmDay], series: list[Series], format: str, *, zero: bool = False
) -> dict[str, Any]:
    x = [str(day.day) for day in days]
    return {"kind": kind, "x": x, "step": DAY, "format": format, "zero": zero, "series": _described(series)}


def _described(series: list[Series]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one._asdict().items() if value is not None} for one in series]


def _finite(values: Iterable[float]) -> list[float | None]:
    """The numbers with six figures, as JSON takes them."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _newest(rows: list[list[str]]) -> list[list[str]]:
    return rows[::-1]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan

"""Charts as data: what the page's script draws with Plotly, and the same numbers as a table beside it."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from dither.log import ArmDays
from dither.ope import verdicts
from dither.watch import wording
from dither.watch.timeline import Timeline

NORMAL = 1.96  # standard errors on either side, 95 %
CURVES = 5  # arms that are drawn; the others are one curve
LENGTH = 40  # characters of the name of a curve
OTHERS = "all others"
MOST_OTHERS = 0.6  # share of the others, above which they are not drawn: the arms would lie on the axis
COLORS = ("one", "two", "three", "four", "five", "rest")  # of the style; the last one is a quiet one
UNKNOWN = (
    "No decision of these {}s says which arm looked best. Those of Live(..., probabilities=True) do, as soon as "
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


def reward(points: Timeline) -> Chart:
    """The mean reward of each day or hour, with the interval of its mean."""
    word, rows = points.step.word, points.rows
    y = [row.mean_reward for row in rows]
    ends = [NORMAL * row.mean_reward_se for row in rows]
    low, high = (
        _finite(v + sign * (e if math.isfinite(e) else 0.0) for v, e in zip(y, ends, strict=True)) for sign in (-1, 1)
    )
    series = [Series("reward", _finite(y), low, high)]
    cells = [
        [wording.reward(v), wording.interval(v - e, v + e), wording.count(row.rewarded)]
        for row, v, e in zip(rows, y, ends, strict=True)
    ]
    says = f"Mean of the decisions of each {word} that have a reward by now; the band is its 95\u00a0% interval."
    hover = [f"{mean} ({ends}), {n} rewards" for mean, ends, n in cells]
    data = _over_time("lines", points, series, "") | {"hover": hover}
    heads = ["Mean", "95\u00a0% interval", "Rewards"]
    empty = "" if any(row.rewarded for row in rows) else f"No decision of these {word}s has a reward yet."
    return Chart("reward", "Reward a decision", says, data, series, *_newest(points, heads, cells), empty)


def traffic(points: Timeline) -> Chart:
    """Decisions and rewards of each day or hour."""
    rows = points.rows
    series = [
        Series("with a reward", [row.rewarded for row in rows], color="two"),
        Series("without one by now", [row.decisions - row.rewarded - row.erased for row in rows], color="rest"),
    ]
    heads = ["Decisions", "With a reward"]
    cells = [[wording.count(row.decisions), wording.count(row.rewarded)] for row in rows]
    if any(row.erased for row in rows):
        series.append(Series("erased", [row.erased for row in rows], color="five"))
        heads.append("Erased")
        cells = [[*some, wording.count(row.erased)] for some, row in zip(cells, rows, strict=True)]
    says = f"Decisions of each {points.step.word}, and how many of them have a reward by now."
    data = _over_time("bars", points, series, ",d")
    return Chart("traffic", "Decisions", says, data, series, *_newest(points, heads, cells))


def shares(sums: ArmDays, points: Timeline, *, beside_hours: bool = False) -> Chart:
    """How often each of the arms that were shown most was shown, day by day.

    beside_hours : the other charts draw hours
    """
    days = points.rows
    arms = sorted(sums.by_arm(), key=lambda arm: -arm.decisions)
    most, rest = arms[:CURVES], sum(arm.decisions for arm in arms[CURVES:])
    shown = {(row.day, row.arm): row.decisions for row in sums.rows}
    curves = [(str(arm.arm), [_ratio(shown.get((day.day, arm.arm), 0), day.decisions) for day in days]) for arm in most]
    says = "Share of the decisions of each day."
    if len(arms) > CURVES:
        curves.append((OTHERS, [1 - math.fsum(parts) for parts in zip(*(y for _, y in curves), strict=True)]))
        says = f"Share of the decisions of each day, of the {CURVES} arms that were shown most."
    cells = [[wording.share(y[i]) for _, y in curves] for i in range(len(days))]
    heads = [name for name, _ in curves]
    others = _ratio(rest, rest + sum(arm.decisions for arm in most))
    if others > MOST_OTHERS:
        says += f" All {wording.count(len(arms) - CURVES)} others, {wording.share(others)} together, are not drawn."
        del curves[CURVES:]
    if beside_hours:
        says += " By day, as arms are not counted by hour."
    series = [
        Series(wording.plain(name, LENGTH), _finite(y), color=color)
        for (name, y), color in zip(curves, COLORS, strict=False)
    ]
    data = _over_time("lines", points, series, ".2~%", zero=True)
    return Chart("shares", "Arms shown", says, data, series, *_newest(points, heads, cells))


def exploration(points: Timeline) -> Chart:
    """How much was explored, by day or by hour."""
    word, rows = points.step.word, points.rows
    series = [
        Series("did not show the best arm", _finite(row.exploration for row in rows)),
        Series("uniform share", _finite(row.mean_floor for row in rows), color="rest"),
    ]
    cells = [[wording.share(row.exploration), wording.share(row.mean_floor)] for row in rows]
    says = f"Share of the decisions of each {word} that did not show the arm which looked best then."
    data = _over_time("lines", points, series, ".2~%", zero=True)
    empty = "" if any(row.told for row in rows) else UNKNOWN.format(word)
    table = _newest(points, ["Not the best", "Uniform share"], cells)
    return Chart("exploration", "Exploration", says, data, series, *table, empty)


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


def _over_time(kind: str, points: Timeline, series: list[Series], format: str, *, zero: bool = False) -> dict[str, Any]:
    step = points.step
    x = points.times(step.sent)
    return {
        "kind": kind,
        "x": x,
        "step": step.milliseconds,
        "format": format,
        "zero": zero,
        "series": _described(series),
    }


def _described(series: list[Series]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one._asdict().items() if value is not None} for one in series]


def _finite(values: Iterable[float]) -> list[float | None]:
    """The numbers with six figures, as JSON takes them."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _newest(points: Timeline, heads: list[str], cells: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows of a table, the newest row first."""
    rows = [[at, *some] for at, some in zip(points.times(points.step.form), cells, strict=True)]
    return [points.step.head, *heads], rows[::-1]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan

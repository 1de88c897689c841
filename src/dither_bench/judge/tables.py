"""Tables of a figure, as polars frames: the regret beside the published one, and paired differences.

round       where the published curves of the panel end, and its horizon
ratio       regret/published, and the ends of its 95 % interval, which has the errors of both (`ratios`)
value       'reproduced', 'differs', 'open' or 'open: the published error decides', as `ratios` says; 'order only' in a
figure whose values are not compared
needs       how many runs would settle an open value, at the mean and the sd of these; null where none is known
hours       about how many hours of a core so many runs take (`costs`)
difference  regret - regret of the reference in the same run, which saw the same contexts and noise; mean and 95 %
t-interval over the runs
order       'agrees' or 'disagrees' with the sign of the published difference; 'open' where the interval holds 0, or
where 1.96 errors of the published difference do; '-' where nothing is published
lowest      whether the regret is below that of every other algorithm there: the intervals of all differences lie
below 0
each        where the figure shows every run: the regrets of the runs in their order, with * after a collapsed run. A
run has collapsed if over the last tenth of the rounds it lost more than twice as much as the median run, and more
than 20
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from dither.algorithms import Spec
from dither_bench.define import published
from dither_bench.define.panels import Figure, Panel, as_in, reference
from dither_bench.judge import ratios
from dither_bench.judge.ratios import Mean
from dither_bench.keep.asked import Codes
from dither_bench.keep.store import Store, of_panel
from dither_bench.plan import costs

LEVEL = 0.95  # of the intervals
COLLAPSED = 2.0  # times the median run's regret over the last tenth
LEAST = 20.0  # a run that lost no more than this over the last tenth has not collapsed: it may be chance
_PLACE: dict[str, Any] = {"panel": pl.String, "round": pl.Int64, "algorithm": pl.String}
MEASURED = _PLACE | dict.fromkeys(("regret", "se"), pl.Float64) | {"runs": pl.Int64}
MEASURED |= {"sd": pl.Float64, "median": pl.Float64, "each": pl.String, "lowest": pl.Boolean}
PAIRED = _PLACE | {"reference": pl.String} | dict.fromkeys(("difference", "low", "high"), pl.Float64)
PAIRED |= {"runs": pl.Int64}
BESIDE: dict[str, Any] = {"published": pl.Float64, "bound": pl.Boolean}
BESIDE |= dict.fromkeys(("ratio", "ratio_low", "ratio_high"), pl.Float64) | {
    "value": pl.String,
    "needs": pl.Int64,
    "hours": pl.Float64,
}
BESIDE |= dict.fromkeys(("note", "preset"), pl.String)
EACH = 20  # runs at most that are shown one by one


def curves(figure: Figure, store: Store, *, seed: int, codes: Codes) -> pl.DataFrame:
    """Columns panel, algorithm, run, round, and regret of the kind that the figure shows.

    They hold all stored runs of the codes that are named for each cell, or of the newest code where none is named.
    """
    frames = [
        store.read(cell, codes.get(cell.key)).select(
            panel=pl.lit(panel.name), algorithm=pl.lit(name), run="run", round="round", regret=figure.shows
        )
        for panel in figure.panels
        for name, cell in of_panel(panel, seed=seed).items()
    ]
    return pl.concat(frames)


def summary(curves: pl.DataFrame) -> pl.DataFrame:
    """Columns panel, algorithm, round, mean, se, low, median, high (the quartiles), runs; over the runs."""
    regret = pl.col("regret")
    return (
        curves.group_by("panel", "algorithm", "round", maintain_order=True)
        .agg(
            mean=regret.mean(),
            se=regret.std() / pl.len().sqrt(),
            low=regret.quantile(0.25, "linear"),
            median=regret.median(),
            high=regret.quantile(0.75, "linear"),
            runs=pl.len(),
        )
        .sort("panel", "algorithm", "round", maintain_order=True)
    )


def centred(rows: pl.DataFrame, band: str) -> pl.DataFrame:
    """The rows of `summary` with what a line shows in the column mean: the median where the band is called so."""
    return rows.with_columns(mean="median") if band == "median" else rows


def values(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """A row for each panel, round and algorithm that has results; bound: what is published is a lower bound.

    Columns panel, round, algorithm, published, bound, regret, se, ratio, ratio_low, ratio_high, runs, value, needs,
    hours, note, preset, sd, median, each, lowest.
    """
    return judged(figure, measured(figure, curves))


def measured(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """What only the runs can tell of `values`: panel, round, algorithm, regret, se, runs, sd, median, each, lowest."""
    rows = []
    surest = {(p.name, t): _certain(curves, p, t) for p in figure.panels for t in published.ends(figure, p)}
    for panel, t, spec in _places(figure):
        name = str(spec)
        regrets = at(curves, panel, t, algorithm=name)
        regret = np.array(list(regrets.values()))
        if regret.size == 0:
            continue
        se = standard_error(regret)
        each = _each(curves, panel, t, algorithm=name, regrets=regrets) if figure.each and regret.size <= EACH else ""
        sd, surely = None if se is None else se * math.sqrt(regret.size), surest[panel.name, t] == name
        mean, median = float(regret.mean()), float(np.median(regret))
        rows.append((panel.name, t, name, mean, se, regret.size, sd, median, each, surely))
    return pl.DataFrame(rows, schema=MEASURED, orient="row")


def judged(figure: Figure, measured: pl.DataFrame) -> pl.DataFrame:
    """The rows of `measured` beside what is published: `values`."""
    places = _named(figure)
    rows = []
    for row in measured.iter_rows(named=True):
        panel, spec = places[row["panel"], row["round"], row["algorithm"]]
        end = _end(figure, panel, row["round"], algorithm=spec)
        cells = _beside(row, end, compares=figure.compares)
        hours = cells[-1] and costs.seconds(panel, algorithms=[spec], runs=cells[-1]) / 3600
        note = _why(figure, panel, algorithm=spec) if ratios.DIFFERS in cells else ""
        rows.append((*cells, hours, note, as_in(panel, spec).preset))
    order = ["panel", "round", "algorithm", "published", "bound", "regret", "se", "ratio", "ratio_low", "ratio_high"]
    order += ["runs", "value", "needs", "hours", "note", "preset", "sd", "median", "each", "lowest"]
    beside = pl.DataFrame(rows, schema=BESIDE, orient="row")
    return pl.concat([measured, beside], how="horizontal").select(order)


def _beside(row: Mapping[str, Any], end: published.End | None, *, compares: str) -> tuple[Any, ...]:
    """What `judged` has of a row, from published to needs."""
    if end is None:
        return (None, False, None, None, None, "-", None)
    ours = Mean(row["regret"], row["se"], row["runs"])
    ratio = ours.value / end.mean if end.mean > 0 and not end.bound else None
    low, high = (None, None) if ratio is None else (x if math.isfinite(x) else None for x in ratios.interval(ours, end))
    if compares == "order":
        return (end.mean, end.bound, ratio, low, high, "order only", None)
    return (end.mean, end.bound, ratio, low, high, ratios.verdict(ours, end), ratios.needed(ours, end))


def differences(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """Columns panel, round, algorithm, reference, difference, low, high, runs, published, order."""
    return ordered(figure, paired(figure, curves))


def paired(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """What only the runs can tell of `differences`: all columns up to runs."""
    rows = []
    for panel, t, spec in _places(figure):
        base = reference(panel)
        regrets, of_base = (at(curves, panel, t, algorithm=str(a)) for a in (spec, base))
        pairs = np.array([x - of_base[run] for run, x in regrets.items() if run in of_base])
        if spec != base and pairs.size:
            rows.append((panel.name, t, str(spec), str(base), *interval(pairs), pairs.size))
    return pl.DataFrame(rows, schema=PAIRED, orient="row")


def ordered(figure: Figure, paired: pl.DataFrame) -> pl.DataFrame:
    """The rows of `paired` beside what is published: `differences`."""
    places = _named(figure)
    rows = []
    for row in paired.iter_rows(named=True):
        t = row["round"]
        both = (places[row["panel"], t, row[name]] for name in ("algorithm", "reference"))
        ends = [_end(figure, panel, t, algorithm=spec) for panel, spec in both]
        gap = _gap(*ends)
        error = math.hypot(*(end.se or 0.0 for end in ends if end and not end.bound))
        rows.append((gap, _order(row["low"], row["high"], published=gap, error=error)))
    beside = pl.DataFrame(rows, schema={"published": pl.Float64, "order": pl.String}, orient="row")
    return pl.concat([paired, beside], how="horizontal")


def interval(x: np.ndarray, *, level: float = LEVEL) -> tuple[float, float | None, float | None]:
    """The mean and the ends of its t-interval. The ends are None for one value, which says nothing of the spread."""
    mean, se = float(x.mean()), standard_error(x)
    if se is None:
        return mean, None, None
    half = float(stats.t.ppf((1 + level) / 2, x.size - 1)) * se
    return mean, mean - half, mean + half


def _places(figure: Figure) -> Iterator[tuple[Panel, int, Spec]]:
    """Every panel, round to look at and algorithm."""
    for panel in figure.panels:
        for t in published.ends(figure, panel):
            yield from ((panel, t, spec) for spec in panel.algorithms)


def _named(figure: Figure) -> dict[tuple[str, int, str], tuple[Panel, Spec]]:
    """Panel, round and algorithm, as tables name them -> the panel and the algorithm."""
    return {(panel.name, t, str(spec)): (panel, spec) for panel, t, spec in _places(figure)}


def at(curves: pl.DataFrame, panel: Panel, t: int, *, algorithm: str) -> dict[int, float]:
    """Run -> regret at round t."""
    rows = curves.filter(panel=panel.name, algorithm=algorithm, round=t).sort("run")
    return dict(rows.select("run", "regret").iter_rows())


def _each(curves: pl.DataFrame, panel: Panel, t: int, *, algorithm: str, regrets: dict[int, float]) -> str:
    """The regrets at round t of the runs, in their order, with * after those that have collapsed."""
    rounds = curves.filter(
        (pl.col("round") <= 0.9 * t + 1) & (pl.col("round") < t), panel=panel.name, algorithm=algorithm
    )
    start = rounds["round"].max()
    before = at(curves, panel, start, algorithm=algorithm) if isinstance(start, int) else {}
    failed = np.zeros(len(regrets), dtype=bool)
    if isinstance(start, int) and before.keys() == regrets.keys():
        failed = collapsed(np.array(list(regrets.values())) - np.array(list(before.values())))
    return " ".join(
        f"{x:.1f}".removesuffix(".0") + "*" * bool(bad) for x, bad in zip(regrets.values(), failed, strict=True)
    )


def collapsed(late: np.ndarray) -> np.ndarray:
    """Which runs (R,) have collapsed, from their regrets over the last tenth of the rounds (R,)."""
    return (late > COLLAPSED * np.median(late)) & (late > LEAST)


def lowest(curves: pl.DataFrame, panel: Panel, t: int) -> tuple[str | None, set[str]]:
    """The algorithm of the lowest mean regret at round t, and those that cannot be told apart from it.

    They cannot if the 95 % interval of the paired difference holds 0, or if there is one run alone. None: no results.
    """
    every = {name: at(curves, panel, t, algorithm=name) for name in map(str, panel.algorithms)}
    regrets = {name: regret for name, regret in every.items() if regret}
    if not regrets:
        return None, set()
    best = min(regrets, key=lambda name: float(np.mean(list(regrets[name].values()))))
    unclear = set()
    for name, other in regrets.items():
        gaps = np.array([other[run] - x for run, x in regrets[best].items() if run in other])
        low = interval(gaps)[1] if gaps.size else None
        if name != best and (low is None or low <= 0):
            unclear.add(name)
    return best, unclear


def _certain(curves: pl.DataFrame, panel: Panel, t: int) -> str | None:
    """The algorithm whose regret is certainly lower than that of every other one; None where there is none."""
    best, unclear = lowest(curves, panel, t)
    compared = curves.filter(panel=panel.name, round=t)["algorithm"].n_unique()
    return best if compared > 1 and not unclear else None


def _end(figure: Figure, panel: Panel, t: int, *, algorithm: Spec) -> published.End | None:
    """The end of the published curve, if that is at round t."""
    end = published.last(figure, panel, algorithm=algorithm)
    return end if end and end.round == t else None


def _gap(end: published.End | None, base: published.End | None) -> float | None:
    """The published difference; None where there is none, or where a bound leaves its sign open."""
    if end is None or base is None:
        return None
    gap = end.mean - base.mean
    least, most = (-math.inf if base.bound else gap), (math.inf if end.bound else gap)
    return gap if least > 0 or most < 0 or least == most else None


def standard_error(x: np.ndarray) -> float | None:
    """Of the mean of x (R,); None for one value."""
    return float(x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else None


def _order(low: float | None, high: float | None, *, published: float | None, error: float) -> str:
    """The word for an order. error : that of the published difference"""
    if published is None:
        return "-"
    if low is None or high is None or low <= 0 <= high or abs(published) <= ratios.DECIDES * error:
        return ratios.OPEN
    return "agrees" if (low > 0) == (published > 0) else "disagrees"


def _why(figure: Figure, panel: Panel, *, algorithm: Spec) -> str:
    return " ".join(note.text for note in figure.notes if note.explains(panel.name, algorithm))

"""Tables of a figure, as polars frames: the regret at the horizon beside the published one, and paired differences.

value       'within' if |ours - published| is at most 10 % of the published value, or at most three combined
standard errors √(se² + se_published²); else 'differs'
difference  regret - regret of the reference in the same run, which saw the same contexts and noise; mean and 95 %
t-interval over the runs
order       'agrees' or 'disagrees' with the sign of the published difference; 'undecided' where the interval
holds 0; '-' where nothing is published
"""

import math

import numpy as np
import polars as pl
from scipy import stats

from dither.experiments import published
from dither.experiments.cells import of_panel
from dither.experiments.figures import Figure, Panel, reference
from dither.experiments.store import Store

CLOSE = 0.10  # of the published value
ERRORS = 3.0  # combined standard errors
LEVEL = 0.95  # of the intervals


def curves(figure: Figure, store: Store, *, seed: int) -> pl.DataFrame:
    """Columns panel, algorithm, run, round, regret: all that is stored, of the kind of regret that the figure shows."""
    frames = [
        store.read(cell).select(
            panel=pl.lit(panel.name), algorithm=pl.lit(name), run="run", round="round", regret=figure.shows
        )
        for panel in figure.panels
        for name, cell in of_panel(panel, seed=seed).items()
    ]
    return pl.concat(frames)


def summary(curves: pl.DataFrame) -> pl.DataFrame:
    """Columns panel, algorithm, round, mean, se, low, high (the quartiles), runs; over the runs."""
    regret = pl.col("regret")
    return (
        curves.group_by("panel", "algorithm", "round", maintain_order=True)
        .agg(
            mean=regret.mean(),
            se=regret.std() / pl.len().sqrt(),
            low=regret.quantile(0.25, "linear"),
            high=regret.quantile(0.75, "linear"),
            runs=pl.len(),
        )
        .sort("panel", "algorithm", "round", maintain_order=True)
    )


def values(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """Columns panel, algorithm, published, regret, se, ratio, runs, value, note; a row for each that has results."""
    rows = []
    for panel in figure.panels:
        for name in panel.algorithms:
            regret = np.array(list(_last(curves, panel, algorithm=name).values()))
            if regret.size == 0:
                continue
            mean, se = float(regret.mean()), _se(regret)
            theirs, their_se = published.last(figure, panel, algorithm=name)
            verdict = _value(mean, se, published=theirs, published_se=their_se)
            note = "" if verdict != "differs" else _why(figure, panel, algorithm=name)
            ratio = mean / theirs if theirs else None
            rows.append((panel.name, name, theirs, mean, se, ratio, regret.size, verdict, note))
    kinds = [pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.Float64, pl.Int64, pl.String, pl.String]
    names = ["panel", "algorithm", "published", "regret", "se", "ratio", "runs", "value", "note"]
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def differences(figure: Figure, curves: pl.DataFrame) -> pl.DataFrame:
    """Columns panel, algorithm, reference, difference, low, high, runs, published, order."""
    rows = []
    for panel in figure.panels:
        base = reference(panel.algorithms)
        of_base = _last(curves, panel, algorithm=base)
        their_base, _ = published.last(figure, panel, algorithm=base)
        for name in panel.algorithms:
            found = _last(curves, panel, algorithm=name)
            pairs = np.array([found[run] - of_base[run] for run in found if run in of_base])
            if name == base or pairs.size == 0:
                continue
            theirs, _ = published.last(figure, panel, algorithm=name)
            gap = None if theirs is None or their_base is None else theirs - their_base
            mean, low, high = interval(pairs)
            rows.append((panel.name, name, base, mean, low, high, pairs.size, gap, _order(low, high, published=gap)))
    names = ["panel", "algorithm", "reference", "difference", "low", "high", "runs", "published", "order"]
    kinds = [pl.String] * 3 + [pl.Float64] * 3 + [pl.Int64, pl.Float64, pl.String]
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def interval(x: np.ndarray) -> tuple[float, float | None, float | None]:
    """The mean and its t-interval; None for the ends where one value alone tells nothing of the spread."""
    mean, se = float(x.mean()), _se(x)
    if se is None:
        return mean, None, None
    half = float(stats.t.ppf((1 + LEVEL) / 2, x.size - 1)) * se
    return mean, mean - half, mean + half


def _last(curves: pl.DataFrame, panel: Panel, *, algorithm: str) -> dict[int, float]:
    """Run -> regret at the horizon."""
    rows = curves.filter(panel=panel.name, algorithm=algorithm, round=panel.rounds).sort("run")
    return dict(rows.select("run", "regret").iter_rows())


def _se(x: np.ndarray) -> float | None:
    return float(x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else None


def _value(mean: float, se: float | None, *, published: float | None, published_se: float | None) -> str:
    if published is None:
        return "-"
    gap = abs(mean - published)
    if gap <= CLOSE * published:
        return "within"
    if se is None:
        return "undecided"
    return "within" if gap <= ERRORS * math.hypot(se, published_se or 0) else "differs"


def _order(low: float | None, high: float | None, *, published: float | None) -> str:
    if published is None:
        return "-"
    if low is None or high is None or low <= 0 <= high:
        return "undecided"
    return "agrees" if (low > 0) == (published > 0) else "disagrees"


def _why(figure: Figure, panel: Panel, *, algorithm: str) -> str:
    return " ".join(note.text for note in figure.notes if note.explains(panel.name, algorithm))

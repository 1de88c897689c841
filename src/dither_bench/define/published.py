"""The paper's own curves, to stand beside ours.

`published.csv` holds numbers read off the vector graphics of Figures 2b, 3 and H.1 to H.7 of Yi and Oh, "Feature
perturbation" (NeurIPS 2025). Columns: figure, panel, algorithm as in the legend without "(ours)", round, regret_mean,
and regret_low and regret_high where an error bar is drawn. The numbers are good to 0.1 % of the height of a panel, and
the ends of curves to 0.01 %. The regret is the realised one. The bars fit ±1 standard error over 100 runs, over 5 runs
in the neural panels, and over 10 in H.7. In Figure 2b, d is the axis: it has one row for each d, and no bars. A curve
belongs to an algorithm by its label, whichever preset the algorithm has.

A curve that leaves the drawing has one more row, at the last round of the panel, with clipped = 1. It is a lower bound.
"""

import functools
from importlib import resources
from typing import NamedTuple

import polars as pl

from dither.algorithms import Spec
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel

RUNS = {"fig3-neural": 5, "h6": 5, "h7": 10}  # behind a published mean, as its bars fit; elsewhere MOST
MOST = 100
READ = 1e-4  # of the height of a panel: how far off the end of a path is read, at most


class End(NamedTuple):
    """The last point of a curve."""

    round: int
    mean: float
    se: float | None  # that of the last bar, where bars are drawn
    bound: bool = False  # the mean is a lower bound: the curve has left the drawing
    runs: int = MOST
    off: float = 0.0  # how far off the mean was read, at most


@functools.cache
def rows() -> pl.DataFrame:
    """All numbers that were read off."""
    text = resources.files("dither_bench.define").joinpath("published.csv").read_bytes()
    schema = {"round": pl.Int64, "regret_mean": pl.Float64, "regret_low": pl.Float64, "regret_high": pl.Float64}
    return pl.read_csv(text, schema_overrides=schema)


def curve(figure: Figure, panel: Panel, *, algorithm: Spec) -> pl.DataFrame:
    """Columns round, mean, se (null: the curve has no bars), bound. No rows where the paper has no such curve.

    Only the figure's own algorithms at its own horizon have a curve. Other settings are another experiment.
    """
    if not _is_the_papers(figure, panel, algorithm=algorithm):
        return rows().clear().select("round", mean="regret_mean", se="regret_low", bound=pl.lit(False))
    theirs = figure.drawn or figure.name
    label = algorithm.algorithm.label[theirs].removesuffix(" (ours)")
    return (
        rows()
        .filter(figure=theirs, panel=panel.drawn or panel.name, algorithm=label)
        .sort("round")
        .with_columns(se=(pl.col("regret_high") - pl.col("regret_low")) / 2)
        .with_columns(se=pl.coalesce(pl.col("se").forward_fill(), pl.col("se").backward_fill()))
        .select("round", mean="regret_mean", se="se", bound=pl.col("clipped") == 1)
    )


def last(figure: Figure, panel: Panel, *, algorithm: Spec) -> End | None:
    """The end of the curve, which may come before the panel's horizon; None where the paper has no such curve."""
    theirs = curve(figure, panel, algorithm=algorithm)
    if theirs.is_empty():
        return None
    drawn = figure.drawn or figure.name
    off = READ * _height(drawn, panel.drawn or panel.name)
    return End(*theirs.row(-1))._replace(runs=RUNS.get(drawn, MOST), off=off)


@functools.cache
def _height(figure: str, panel: str) -> float:
    """The largest regret of the panel; of the figure, where the panels are the points of one axes."""
    drawn = rows().filter(figure=figure)
    if drawn["round"].n_unique() > 1:
        drawn = drawn.filter(panel=panel)
    return float(drawn.select(pl.col("regret_mean").max()).item())


def ends(figure: Figure, panel: Panel) -> list[int]:
    """The rounds at which a panel is compared: the ends of its published curves, and its horizon."""
    every = (last(figure, panel, algorithm=spec) for spec in panel.algorithms)
    return sorted({end.round for end in every if end is not None} | {panel.rounds})


def marks(panel: Panel) -> set[int]:
    """The rounds that a run must record: the ends of all published curves of this environment and horizon."""
    same = ((f, p) for f in FIGURES.values() for p in f.panels if (p.env, p.rounds) == (panel.env, panel.rounds))
    return {t for f, p in same for t in ends(f, p)}


def _is_the_papers(figure: Figure, panel: Panel, *, algorithm: Spec) -> bool:
    whole = FIGURES.get(figure.name)
    if whole is None:
        return False
    here = (panel.name, panel.env, panel.rounds, panel.preset)
    return any(algorithm in p.algorithms for p in whole.panels if (p.name, p.env, p.rounds, p.preset) == here)

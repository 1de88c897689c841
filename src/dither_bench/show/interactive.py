"""A figure as the page's script (`commands/curves.js`) takes it: curves, their looks, and the numbers of panels.

    x            rounds, or values of a setting: one list for all curves of a panel, and null where a curve has no value
    mean, se     over the runs; the band is made of them, or of low and high (the quartiles)
    published    x, mean and se of the paper's curve, without its lower bounds

The numbers have as many figures as a screen can show, so that a page with every figure of the paper stays small.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from dither.algorithms import Spec
from dither.base.drawing import DARK, PALETTE
from dither_bench.define import published
from dither_bench.define.panels import Figure
from dither_bench.judge import tables, words
from dither_bench.show import plots
from dither_bench.show.looks import looks
from dither_bench.show.pictures import PictureLook

SYMBOLS = {  # what Plotly calls a marker of matplotlib
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "<": "triangle-left",
    ">": "triangle-right",
    "*": "star",
    "p": "pentagon",
    "h": "hexagon",
}
DASHES = {"-": "solid", "-.": "dashdot", ":": "dot"}
ON_DARK = dict(zip(PALETTE, DARK, strict=True))
FIGURES = {"mean": 5, "se": 3, "low": 4, "high": 4}  # significant ones of each number

Rows = pl.DataFrame  # of `tables.summary`, with a column x
Paper = pl.DataFrame  # columns x, mean, se


def sketch(figure: Figure, curves: pl.DataFrame, look: PictureLook | None = None) -> dict[str, Any] | None:
    """Axes, curves and panels, as JSON holds them. None for a figure that the page shows as a picture.

    A page draws curves over rounds and over a setting of the environment. A figure over anything else, such as the
    settings of the algorithms, is a picture.
    """
    if figure.x != "round" and not all(figure.x in panel.env for panel in figure.panels):
        return None
    look = look or PictureLook()
    band = look.band
    rows = tables.centred(tables.summary(curves), band)
    if band == "median":
        rows = rows.with_columns(se=pl.lit(None, pl.Float64))  # which is the error of a mean
    drawn = [spec for spec in figure.algorithms if not rows.filter(algorithm=str(spec)).is_empty()]
    named, of = look.called(figure, "code"), looks(figure)
    over_rounds = figure.x == "round"
    panels = list((_over_rounds if over_rounds else _over_setting)(figure, rows, drawn, band=band))
    return {
        "x": look.xlabel or ("round" if over_rounds else {"dim": "d"}.get(figure.x, figure.x)),
        "y": look.ylabel or words.SHOWS[figure.shows].split(",")[0],
        "ends": {"x": look.xlim, "y": look.ylim},
        "scales": {"x": look.xscale, "y": look.yscale},
        "band": words.band(band, rows["runs"].unique().to_list()),
        "curves": [_curve(named[spec], of[spec], extra=spec in figure.extra) for spec in drawn],
        "published": any("published" in curve for panel in panels for curve in panel["curves"]),
        "panels": panels,
    }


def _curve(name: str, look: dict[str, Any], *, extra: bool) -> dict[str, Any]:
    """How an algorithm is named and drawn; extra: the paper does not have it."""
    return {
        "name": name,
        "extra": extra,
        "light": look["color"],
        "dark": ON_DARK[look["color"]],
        "symbol": SYMBOLS[look["marker"]],
        "dash": DASHES[look["linestyle"]],
    }


def _over_rounds(figure: Figure, rows: Rows, drawn: list[Spec], *, band: str) -> Iterator[dict[str, Any]]:
    """A panel for each panel of the figure that has results."""
    for panel in figure.panels:
        here = rows.filter(panel=panel.name).with_columns(x="round")
        if not here.is_empty():
            paper = {s: published.curve(figure, panel, algorithm=s).filter(bound=False) for s in panel.algorithms}
            paper = {spec: theirs.rename({"round": "x"}) for spec, theirs in paper.items()}
            yield {"name": panel.name} | _numbers(here, paper, drawn, band)


def _over_setting(figure: Figure, rows: Rows, drawn: list[Spec], *, band: str) -> Iterator[dict[str, Any]]:
    """One panel: the last regret against the setting of the environment in which the panels differ."""
    panels = plots.there(figure, rows)
    last = plots.at_horizon(figure, panels, rows)
    paper = {spec: plots.published_ends(figure, panels, spec) for spec in drawn}
    yield {"name": f"at round {panels[0].rounds:,}"} | _numbers(last, paper, drawn, band)


def _numbers(rows: Rows, paper: dict[Spec, Paper], drawn: list[Spec], band: str) -> dict[str, Any]:
    """x of a panel, and the numbers of its curves at these x. The place of a curve in `drawn` is its name there."""
    x = rows.select(pl.col("x").unique()).sort("x")
    curves = []
    for i, spec in enumerate(drawn):
        mine = rows.filter(algorithm=str(spec))
        if mine.is_empty():
            continue
        wanted = ["mean", "se", *(["low", "high"] if band in words.QUARTILES else [])]
        curve: dict[str, Any] = {"curve": i} | _lists(x.join(mine, on="x", how="left", maintain_order="left"), wanted)
        if spec in paper and not paper[spec].is_empty():
            curve["published"] = {"x": paper[spec]["x"].to_list()} | _lists(paper[spec], ["mean", "se"])
        curves.append(curve)
    return {"x": x["x"].to_list(), "curves": curves}


def _lists(frame: pl.DataFrame, columns: Iterable[str]) -> dict[str, list[float | None]]:
    return {name: [_short(y, FIGURES[name]) for y in frame[name]] for name in columns}


def _short(y: float | None, figures: int) -> float | int | None:
    """The number with so many significant figures, without ".0"; None for what is not finite."""
    if y is None or not math.isfinite(y):
        return None
    rounded = float(f"{y:.{figures}g}")
    return int(rounded) if rounded.is_integer() else rounded

"""The files of a figure: tables, curves, pictures, LaTeX if asked. They show all that was asked of it in the folder.

NAME.csv              the regret beside the published one        (`tables.values`)
NAME-differences.csv  paired differences                         (`tables.differences`)
NAME-curves.csv       what the picture shows, ours and published (`curves_table`)
NAME.png, .pdf, ...   the picture
NAME-table.tex, NAME-figure.tex
NAME-profile.csv, NAME-robust.csv, NAME-profile.png, ...   if asked: `profiles.profile`, `profiles.robust`
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from dither.algorithms import Spec
from dither.base import drawing, files
from dither_bench.define import published
from dither_bench.define.panels import Figure
from dither_bench.judge import profiles, tables
from dither_bench.keep.asked import FigureRequest
from dither_bench.keep.store import STORE, Store
from dither_bench.show import latex, plots, profile_plots
from dither_bench.show.pictures import PictureLook


class Written(NamedTuple):
    """What the files were made from (`tables.curves`), and their paths."""

    curves: pl.DataFrame
    paths: list[Path]
    no_profile: str = ""  # why there is none, where one was asked for


def write(request: FigureRequest, out: Path, *, look: PictureLook | None = None) -> Written:
    """Make the files from the stored results."""
    figure, look = request.figure, look or PictureLook()
    curves = tables.curves(figure, Store(out / STORE), seed=request.seed, codes=request.codes)
    rows = tables.summary(curves)
    canvas = plots.of_summary(figure, rows, look)
    frames = {
        "": tables.values(figure, curves),
        "-differences": tables.differences(figure, curves),
        "-curves": curves_table(figure, rows, look.called(figure, look.names)),
    }
    paths = _write(figure, out, frames, canvas, look=look)
    if look.latex:
        says = plots.says(figure, rows, band=look.band)
        titled = replace(figure, title=look.heading(figure.title) or figure.title)
        how: dict[str, Any] = dict(formats=look.formats, width=look.inches, caption=look.caption)
        picture = latex.figure(titled, says=says, **how)
        table = latex.table(titled, curves, called=look.called(figure, look.names))
        paths += [files.text(out / f"{figure.name}-{k}.tex", v) for k, v in (("table", table), ("figure", picture))]
    if not look.profile:
        return Written(curves, paths)
    try:
        scores = profiles.scores(figure, curves)
    except profiles.NoProfile as reason:  # all else is there
        return Written(curves, paths, f"No profile: {reason}.")
    profile = profiles.profile(scores)
    canvas = profile_plots.draw(figure, scores, profile, look)
    frames = {"-robust": profiles.robust(scores), "-profile": profile}
    return Written(curves, paths + _write(figure, out, frames, canvas, look=look, of="-profile"))


def _write(
    figure: Figure, out: Path, frames: dict[str, pl.DataFrame], canvas: Any, *, look: PictureLook, of: str = ""
) -> list[Path]:
    """The frames as CSV, and the picture in all formats."""
    paths = []
    for name, frame in frames.items():
        files.replace(path := out / f"{figure.name}{name}.csv", frame.write_csv, parents=True)
        paths.append(path)
    return paths + [drawing.save(canvas, out / f"{figure.name}{of}.{form}") for form in look.formats]


def curves_table(figure: Figure, rows: pl.DataFrame, called: Mapping[Spec, str]) -> pl.DataFrame:
    """Every point of the picture, from the rows of `tables.summary`. called : algorithm -> its name in the picture

    Columns panel, algorithm, name (as the picture has it), source ("ours" or "published"), round, mean, se, low,
    median, high (the quartiles of ours), runs, bound (of what is published: the mean is a lower bound).
    """
    frames = [rows.with_columns(source=pl.lit("ours"), bound=pl.lit(False), runs=pl.col("runs").cast(pl.Int64))]
    for panel in figure.panels:
        for spec in panel.algorithms:
            theirs = published.curve(figure, panel, algorithm=spec)
            place = {"panel": panel.name, "algorithm": str(spec), "source": "published"}
            frames.append(theirs.with_columns(pl.lit(value).alias(name) for name, value in place.items()))
    return (
        pl.concat(frames, how="diagonal")
        .with_columns(name=pl.col("algorithm").replace({str(spec): name for spec, name in called.items()}))
        .select("panel", "algorithm", "name", "source", "round", "mean", "se", "low", "median", "high", "runs", "bound")
    )

"""The files of a figure: tables, curves, pictures, LaTeX if asked. They show all that was asked of it in the folder.

NAME.csv              the regret beside the published one        (`tables.values`)
NAME-differences.csv  paired differences                         (`tables.differences`)
NAME-curves.csv       what the picture shows, ours and published (`curves_table`)
NAME.png, .pdf, ...   the picture
NAME-table.tex, NAME-figure.tex
NAME-profile.csv, NAME-robust.csv, NAME-profile.png, ...   if asked: `profiles.profile`, `profiles.robust`
"""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from dither.base import drawing, files
from dither_bench.define import published
from dither_bench.define.panels import Figure
from dither_bench.judge import profiles, tables
from dither_bench.keep.asked import Request
from dither_bench.keep.store import STORE, Store
from dither_bench.show import latex, names, plots, profile_plots
from dither_bench.show.pictures import Look


class Made(NamedTuple):
    """What the files were made from (`tables.curves`), and their paths."""

    curves: pl.DataFrame
    paths: list[Path]
    no_profile: str = ""  # why there is none, where one was asked for


def write(request: Request, out: Path, *, look: Look | None = None) -> Made:
    """Make the files from the stored results."""
    figure, look = request.figure, look or Look()
    curves = tables.curves(figure, Store(out / STORE), seed=request.seed, codes=request.codes)
    rows = tables.summary(curves)
    canvas = plots.of_summary(figure, rows, look)
    name = figure.name
    paths = [
        _csv(tables.values(figure, curves), out / f"{name}.csv"),
        _csv(tables.differences(figure, curves), out / f"{name}-differences.csv"),
        _csv(curves_table(figure, rows, kind=look.names), out / f"{name}-curves.csv"),
        *(drawing.save(canvas, out / f"{name}.{form}") for form in look.formats),
    ]
    if look.latex:
        says = plots.says(figure, rows, band=look.band)
        picture = latex.figure(figure, says=says, formats=look.formats, width=look.inches)
        paths += [
            files.text(out / f"{name}-table.tex", latex.table(figure, curves, kind=look.names)),
            files.text(out / f"{name}-figure.tex", picture),
        ]
    no_profile = ""
    if look.profile:
        try:
            paths += _profiles(figure, curves, out, look=look)
        except profiles.NoProfile as reason:  # all else is there
            no_profile = f"No profile: {reason}."
    return Made(curves, paths, no_profile)


def _profiles(figure: Figure, curves: pl.DataFrame, out: Path, *, look: Look) -> list[Path]:
    found = profiles.scores(figure, curves)
    rows = profiles.profile(found)
    canvas = profile_plots.draw(figure, found, rows, look)
    return [
        _csv(profiles.robust(found), out / f"{figure.name}-robust.csv"),
        _csv(rows, out / f"{figure.name}-profile.csv"),
        *(drawing.save(canvas, out / f"{figure.name}-profile.{form}") for form in look.formats),
    ]


def curves_table(figure: Figure, rows: pl.DataFrame, *, kind: str = "code") -> pl.DataFrame:
    """Every point of the picture, from the rows of `tables.summary`.

    Columns panel, algorithm, name (as the picture has it), source ("ours" or "published"), round, mean, se, low,
    median, high (the quartiles of ours), runs, bound (of what is published: the mean is a lower bound).
    """
    ours = rows.with_columns(source=pl.lit("ours"), bound=pl.lit(False), runs=pl.col("runs").cast(pl.Int64))
    frames = [ours]
    for panel in figure.panels:
        for spec in panel.algorithms:
            theirs = published.curve(figure, panel, algorithm=spec)
            frames.append(
                theirs.with_columns(panel=pl.lit(panel.name), algorithm=pl.lit(str(spec)), source=pl.lit("published"))
            )
    names_of = names.translated(figure, kind)
    return (
        pl.concat(frames, how="diagonal")
        .with_columns(name=pl.col("algorithm").replace(names_of))
        .select("panel", "algorithm", "name", "source", "round", "mean", "se", "low", "median", "high", "runs", "bound")
    )


def _csv(frame: pl.DataFrame, path: Path) -> Path:
    files.replace(path, frame.write_csv, parents=True)
    return path

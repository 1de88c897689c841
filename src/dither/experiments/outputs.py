"""The files of a figure: two tables, a PNG and a PDF. They show everything that was asked of it in the folder."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from dither import drawing, files
from dither.experiments import plots, tables
from dither.experiments.asked import Request
from dither.experiments.plan import STORE
from dither.experiments.store import Store


class Made(NamedTuple):
    """What the files were made from (`tables.curves`), and their paths."""

    curves: pl.DataFrame
    paths: list[Path]


def write(request: Request, out: Path, *, band: str = "se", log: bool = False) -> Made:
    """Make the files from the stored results."""
    figure = request.figure
    curves = tables.curves(figure, Store(out / STORE), seed=request.seed, codes=request.codes)
    values, differences = tables.values(figure, curves), tables.differences(figure, curves)
    canvas = plots.draw(figure, curves, band=band, log=log)
    paths = [
        _csv(values, out / f"{figure.name}.csv"),
        _csv(differences, out / f"{figure.name}-differences.csv"),
        drawing.save(canvas, out / f"{figure.name}.png"),
        drawing.save(canvas, out / f"{figure.name}.pdf"),
    ]
    return Made(curves, paths)


def _csv(frame: pl.DataFrame, path: Path) -> Path:
    files.replace(path, frame.write_csv, parents=True)
    return path

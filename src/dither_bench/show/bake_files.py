"""The files of a bake-off, beside those that every figure has.

NAME-table.csv   a row an algorithm: mean loss, normalised loss, ratio to the best    (`SetLosses.table`)
NAME-sets.csv    a row a set and algorithm                                            (`SetLosses.each`)
NAME-duels.csv   a row a set and pair: the paired difference, its t-interval, z       (`duels.paired`)
NAME-wins.csv, NAME-wins.png, ...   on how many sets each is significantly better     (`duels.matrix`)
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.base import drawing, files
from dither.base.drawing import STYLE
from dither_bench.define.panels import Figure
from dither_bench.judge import duels
from dither_bench.judge.set_losses import SetLosses
from dither_bench.show import strokes
from dither_bench.show.pictures import PictureLook

CELL = 0.42  # inches of a row of the matrix
DARK = 0.6  # of the largest number, from which on the letters in a cell are white


def write(figure: Figure, losses: SetLosses, out: Path, look: PictureLook) -> list[Path]:
    """Make the files. -> their paths"""
    frames = {"table": losses.table(), "sets": losses.each(), "duels": duels.every(losses), "wins": wins(losses)}
    paths = []
    for name, frame in frames.items():
        files.replace(path := out / f"{figure.name}-{name}.csv", frame.write_csv, parents=True)
        paths.append(path)
    canvas = matrix(figure, losses, look)
    return paths + [drawing.save(canvas, out / f"{figure.name}-wins.{form}") for form in look.formats]


def wins(losses: SetLosses) -> pl.DataFrame:
    """The matrix as a table: the column algorithm, and then one for each that it is better than."""
    counts = duels.matrix(losses)
    columns = {name: counts[:, i] for i, name in enumerate(losses.algorithms)}
    return pl.DataFrame({"algorithm": list(losses.algorithms)} | columns)


def matrix(figure: Figure, losses: SetLosses, look: PictureLook) -> Canvas:
    """The matrix as a picture: the darker a cell, the more sets on which its row is better than its column."""
    counts, shown = duels.matrix(losses), {str(k): v for k, v in look.called(figure, look.names).items()}
    names = [shown[name] for name in losses.algorithms]
    n, size = len(names), 9 if look.width is None else 7
    longest = max(map(len, names)) * size * 0.6 / 72  # inches
    wide = look.inches or CELL * n + longest + 0.6
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(wide, CELL * n + longest + 0.9), layout="constrained")
        ax = canvas.subplots()
        ax.imshow(counts, cmap="Blues", vmin=0, vmax=max(int(counts.max()), 1), aspect="auto")
        for i, j in np.ndindex(n, n):
            color = "white" if counts[i, j] > DARK * max(counts.max(), 1) else "black"
            how: Any = dict(ha="center", va="center", fontsize=size, color=color)
            ax.text(j, i, "–" if i == j else str(counts[i, j]), **how)
        ax.set_xticks(range(n), names, rotation=90, fontsize=size)
        ax.set_yticks(range(n), names, fontsize=size)
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.tick_params(length=0)
        if look.title:
            usual = f"sets of {len(losses.sets)} on which the row\nis better than the column"
            ax.set_title("\n".join(filter(None, [look.heading(""), usual])), fontsize=size)
        strokes.set_caption(canvas, look, size=size)
    return canvas

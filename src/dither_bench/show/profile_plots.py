"""The picture of performance profiles: for each algorithm, τ -> share of the runs with at most τ."""

import textwrap
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.base.drawing import STYLE
from dither_bench.define.panels import Figure, reference
from dither_bench.judge import words
from dither_bench.judge.choices import logarithmic
from dither_bench.judge.profiles import ProfileScores
from dither_bench.show import strokes
from dither_bench.show.looks import looks
from dither_bench.show.pictures import PictureLook

HEIGHT = 0.62  # of the width
AROUND = 0.04  # of what an axis shows: the room at its ends


def draw(figure: Figure, scores: ProfileScores, rows: pl.DataFrame, look: PictureLook) -> Canvas:
    """The picture; rows : as of `profiles.profile`."""
    width = look.inches or 7.0
    size = 10 if look.width is None else 8
    of, shown = looks(figure), look.called(figure, look.names)
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(width, HEIGHT * width + 0.9), layout="constrained")
        ax = canvas.subplots()
        for i, spec in enumerate(scores.algorithms):
            mine = rows.filter(algorithm=str(spec))
            how: Any = dict(drawstyle="steps-post", linewidth=1.5, markersize=4, label=shown[spec])
            every = (0.15 * i / len(scores.algorithms), 0.15)
            ax.plot(mine["tau"], mine["share"], markevery=every, **how, **of[spec])
            if not mine["low"].null_count():
                color = of[spec]["color"]
                ax.fill_between(mine["tau"], mine["low"], mine["high"], color=color, alpha=0.15, linewidth=0)
        positive = rows.filter(pl.col("tau") > 0)["tau"]
        ax.set_xscale("log" if rows["tau"].min() and logarithmic(positive) else "linear")
        ax.axvline(1.0, color="#444444", linewidth=0.8, linestyle=":")
        ax.set_ylim(0, 1)
        ax.set_xlim(*_ends(scores, log=ax.get_xscale() == "log"))
        strokes.numbers(ax.xaxis, thousands=False)
        ax.set_xlabel(f"τ: regret over the mean regret of {base(figure)}", fontsize=size)
        ax.set_ylabel("share of runs with at most τ", fontsize=size)
        strokes.name_axes(ax, look)
        strokes.set_axes(ax, look)
        ax.tick_params(labelsize=size)
        strokes.grid(ax)
        if look.title:
            says = f"{where(scores)}, {words.over([scores.runs])} of each; band: 95 % at each τ"
            wrapped = textwrap.fill(says, int(width * 72 / (0.55 * size)))
            canvas.suptitle(f"{look.heading(figure.title)}: performance profiles\n{wrapped}", fontsize=size)
        columns = strokes.columns([shown[spec] for spec in scores.algorithms], width=width, handle=0.7)
        canvas.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=size - 0.5)
        strokes.set_caption(canvas, look, size=size - 0.5)
    return canvas


def _ends(scores: ProfileScores, *, log: bool) -> tuple[float, float]:
    """Of the horizontal axis: from a little before the best run to a little behind the worst, with 1 among them."""
    x = scores.relative
    low, high = min(1.0, float(x[x > 0].min(initial=1.0) if log else x.min())), max(1.0, float(x.max()))
    if log:
        apart = (high / low) ** AROUND if high > low else 1.1
        return low / apart, high * apart
    apart = AROUND * (high - low) or 0.1
    return low - apart, high + apart


def where(scores: ProfileScores) -> str:
    """The panel, or how many there are."""
    return scores.panels[0] if len(scores.panels) == 1 else f"{len(scores.panels)} panels"


def base(figure: Figure) -> str:
    """The reference, or a word for it where panels have different ones."""
    bases = {reference(panel) for panel in figure.panels}
    return str(bases.pop()) if len(bases) == 1 else "the panel's reference"

"""The picture of performance profiles: for each algorithm, τ -> share of the runs with at most τ."""

import textwrap

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.base.drawing import STYLE
from dither_bench.define.panels import Figure, reference
from dither_bench.judge.profiles import Scores
from dither_bench.judge.tried import logarithmic
from dither_bench.show import names
from dither_bench.show.looks import looks
from dither_bench.show.pictures import Look

HEIGHT = 0.62  # of the width


def draw(figure: Figure, found: Scores, rows: pl.DataFrame, look: Look) -> Canvas:
    """The picture; rows : as of `profiles.profile`."""
    width = look.inches or 7.0
    size = 10 if look.width is None else 8
    of, shown = looks(figure), names.shown(figure, look.names)
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(width, HEIGHT * width + 0.9), layout="constrained")
        ax = canvas.subplots()
        for i, spec in enumerate(found.algorithms):
            mine = rows.filter(algorithm=str(spec))
            every = (0.15 * i / len(found.algorithms), 0.15)
            ax.plot(
                mine["tau"],
                mine["share"],
                drawstyle="steps-post",
                linewidth=1.5,
                markersize=4,
                markevery=every,
                label=shown[spec],
                **of[spec],
            )
            if not mine["low"].null_count():
                ax.fill_between(
                    mine["tau"], mine["low"], mine["high"], color=of[spec]["color"], alpha=0.15, linewidth=0
                )
        positive = rows.filter(pl.col("tau") > 0)["tau"]
        ax.set_xscale("log" if rows["tau"].min() and logarithmic(positive) else "linear")
        ax.axvline(1.0, color="#444444", linewidth=0.8, linestyle=":")
        ax.set_ylim(0, 1)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.set_xlabel(f"τ: regret over the mean regret of {base(figure)}", fontsize=size)
        ax.set_ylabel("share of runs with at most τ", fontsize=size)
        ax.tick_params(labelsize=size)
        ax.grid(alpha=0.25, linewidth=0.6)
        if look.title:
            says = textwrap.fill(of_what(found), int(width * 72 / (0.55 * size)))
            canvas.suptitle(f"{figure.title}: performance profiles\n{says}", fontsize=size)
        columns = max(1, min(4, int(width / (0.7 + 0.075 * max(len(shown[spec]) for spec in found.algorithms)))))
        canvas.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=size - 0.5)
    return canvas


def of_what(found: Scores) -> str:
    """What the profiles are made of."""
    panels, runs = len(found.panels), found.of_reference.shape[-1]
    where = found.panels[0] if panels == 1 else f"{panels} panels"
    return f"{where}, {runs} run{'s' * (runs > 1)} of each; band: 95 % at each τ"


def base(figure: Figure) -> str:
    """The reference, or a word for it where panels have different ones."""
    bases = {reference(panel) for panel in figure.panels}
    return str(bases.pop()) if len(bases) == 1 else "the panel's reference"

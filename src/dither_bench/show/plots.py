"""Plots of a figure: axes for each panel, mean and band over the runs, and the published curve dashed in its colour."""

import math
import textwrap
from typing import Any, NamedTuple

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from dither.base.drawing import STYLE
from dither_bench.define import published
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import words
from dither_bench.judge.tables import centred, summary
from dither_bench.show import names, sweep_plots
from dither_bench.show.looks import DASHED, looks
from dither_bench.show.pictures import Look

DEFAULT = Look()


class Sizes(NamedTuple):
    """Points, and inches where it is said, of what is drawn."""

    text: float
    small: float  # legends
    line: float
    marker: float
    panel: float  # inches: the least width of one


SCREEN = Sizes(text=10, small=9.5, line=1.6, marker=4.5, panel=4.4)
PAGE = Sizes(text=8, small=7, line=1.1, marker=3.2, panel=1.75)  # where a width is given


def draw(figure: Figure, curves: pl.DataFrame, look: Look = DEFAULT) -> Canvas:
    """The figure as matplotlib holds it, from the rows of `tables.curves`.

    Raises ValueError where there is nothing to draw.
    """
    return of_summary(figure, summary(curves), look)


def of_summary(figure: Figure, rows: pl.DataFrame, look: Look = DEFAULT) -> Canvas:
    """The same, from the rows of `tables.summary`."""
    if rows.is_empty():
        raise ValueError(f"there are no results of {figure.name} to draw")
    rows = centred(rows, look.band)
    with mpl.rc_context(STYLE):
        if figure.x == "setting":
            low, high = edges(rows, look.band)
            return sweep_plots.draw(figure, rows.with_columns(lower=low, upper=high), look)
        return _draw(figure, rows, look)


def says(figure: Figure, rows: pl.DataFrame, *, band: str) -> str:
    """What band and dashes of the figure are: the head of its legend, or a part of its caption."""
    said = words.band(band, rows["runs"].unique().to_list())
    panels = [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]
    if any(not published.curve(figure, p, algorithm=spec).is_empty() for p in panels for spec in p.algorithms):
        said += "; dashed: published (read off the figure)"
    return said


def _draw(figure: Figure, rows: pl.DataFrame, look: Look) -> Canvas:
    width = look.inches
    sizes = SCREEN if width is None else PAGE
    panels = [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]
    count = len(panels) if figure.x == "round" else 1
    columns = min(count, 3 if width is None else max(1, min(3, int(width / sizes.panel))))
    lines = math.ceil(count / columns)
    wide = max(sizes.panel * columns, 7.0) if width is None else width
    handles, labels = _legend(figure, rows, kind=look.names, sizes=sizes)
    ncols = _columns(labels, width=wide, size=sizes.small)
    below = (math.ceil(len(labels) / ncols) + 2) * 1.5 * sizes.small / 72  # inches of the legend
    each = 3.5 if width is None else max(1.5, 0.6 * wide / columns) + 0.4  # inches: the height of a panel
    canvas = Canvas(figsize=(wide, each * lines + (1.3 if width is None else below)), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    of = looks(figure)
    if figure.x == "round":
        for ax, panel in zip(axes, panels, strict=False):
            _over_rounds(ax, figure, panel, rows.filter(panel=panel.name), looks=of, band=look.band, sizes=sizes)
    else:
        _over_setting(axes[0], figure, panels, rows, looks=of, band=look.band, sizes=sizes)
    for i, ax in enumerate(axes):
        ax.set_visible(i < count)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.tick_params(labelsize=sizes.text)
        if look.log:
            ax.set_xscale("log")
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
            if figure.x == "round":
                ax.set_xlim(left=0)
            ax.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
        if figure.x == "round" and not look.log:
            ax.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
            ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5 if width is None else 3))
        ax.xaxis.label.set_size(sizes.text)
        if i % columns == 0:
            shows = words.SHOWS[figure.shows].split(",")[0]
            ax.set_ylabel(_wrapped(shows, each - 0.6, sizes.text), fontsize=sizes.text)
        ax.set_title(_wrapped(ax.get_title(), wide / columns - 0.5, sizes.text), fontsize=sizes.text + 0.5)
    if look.title:
        canvas.suptitle(figure.title, fontsize=sizes.text + 2, fontweight="bold")
    canvas.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=ncols,
        frameon=False,
        title=says(figure, rows, band=look.band) if look.title else None,
        title_fontsize=sizes.small,
        fontsize=sizes.small,
    )
    return canvas


def _wrapped(text: str, room: float, size: float) -> str:
    """The text in lines that fit into the room (inches)."""
    return textwrap.fill(text, max(8, int(room * 72 / (0.6 * size))))


def _over_rounds(
    ax: Any, figure: Figure, panel: Panel, rows: pl.DataFrame, *, looks: dict, band: str, sizes: Sizes
) -> None:
    for i, spec in enumerate(panel.algorithms):
        mine = rows.filter(algorithm=str(spec)).sort("round")
        if mine.is_empty():
            continue
        low, high = edges(mine, band)
        look = looks[spec]
        apart = (0.12 * i / len(panel.algorithms), 0.12)  # so that markers of curves that lie together do not
        ax.plot(mine["round"], mine["mean"], linewidth=sizes.line, markevery=apart, markersize=sizes.marker, **look)
        ax.fill_between(mine["round"], low, high, color=look["color"], alpha=0.18, linewidth=0)
        theirs = published.curve(figure, panel, algorithm=spec).filter(bound=False)
        _published(ax, theirs["round"], theirs["mean"], look=look, sizes=sizes, markevery=apart)
    ax.set_title(panel.name)
    ax.set_xlabel("round")


def _published(ax: Any, x: Any, y: Any, *, look: dict, sizes: Sizes, markevery: Any = None) -> None:
    """A published curve: dashed, with hollow markers."""
    if len(x):
        hollow = look | {"linestyle": DASHED, "markerfacecolor": "white", "markeredgewidth": sizes.line / 2}
        ax.plot(x, y, linewidth=0.7 * sizes.line, markersize=sizes.marker, markevery=markevery, **hollow)


def _over_setting(
    ax: Any, figure: Figure, panels: list, rows: pl.DataFrame, *, looks: dict, band: str, sizes: Sizes
) -> None:
    last = rows.join(
        pl.DataFrame(
            [(p.name, p.rounds, p.env[figure.x]) for p in panels], schema=["panel", "round", "x"], orient="row"
        ),
        on=["panel", "round"],
    )
    for spec in figure.algorithms:
        mine = last.filter(algorithm=str(spec)).sort("x")
        if mine.is_empty():
            continue
        low, high = edges(mine, band)
        ax.plot(mine["x"], mine["mean"], linewidth=sizes.line, markersize=sizes.marker, **looks[spec])
        ax.fill_between(mine["x"], low, high, color=looks[spec]["color"], alpha=0.18, linewidth=0)
        ends = ((p, published.last(figure, p, algorithm=spec)) for p in panels)
        theirs = sorted((p.env[figure.x], end.mean) for p, end in ends if end and end.round == p.rounds)
        if theirs:
            _published(ax, *zip(*theirs, strict=True), look=looks[spec], sizes=sizes)
    ax.set_xlabel({"dim": "d"}.get(figure.x, figure.x))
    if all(isinstance(panel.env[figure.x], int) for panel in panels):
        ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator("auto", integer=True))
    ax.set_title(f"at round {panels[0].rounds:,}")


def edges(rows: pl.DataFrame, band: str) -> tuple[pl.Series, pl.Series]:
    """The lower and the upper edge of the band, from the rows of `tables.summary`."""
    if band in words.QUARTILES:
        return rows["low"], rows["high"]
    se = rows["se"].fill_null(0.0)  # of one run
    return rows["mean"] - se, rows["mean"] + se


def _columns(labels: list[str], *, width: float, size: float) -> int:
    """As many columns of the legend as a canvas of `width` inches holds, four at most; size: points of a letter."""
    widest = size / 9.5 * (0.6 + 0.075 * max(map(len, labels)))  # a handle, and letters
    return max(1, min(4, len(labels), int(width / widest)))


def _legend(figure: Figure, rows: pl.DataFrame, *, kind: str, sizes: Sizes) -> tuple[list[Line2D], list[str]]:
    """The lines of the legend and their names."""
    of, shown = looks(figure), names.shown(figure, kind)
    found = [spec for spec in figure.algorithms if not rows.filter(algorithm=str(spec)).is_empty()]
    handles = [Line2D([], [], linewidth=sizes.line + 0.4, markersize=sizes.marker, **of[spec]) for spec in found]
    theirs = figure.extra if kind == "code" else ()
    return handles, [shown[spec] + (" (not in the paper)" if spec in theirs else "") for spec in found]

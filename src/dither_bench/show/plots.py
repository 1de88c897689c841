"""Plots of a figure: axes for each panel, mean and band over the runs, and the published curve dashed in its colour."""

import math
import textwrap
from typing import Any, NamedTuple

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.algorithms import Spec
from dither.base.drawing import STYLE
from dither_bench.define import published
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import words
from dither_bench.judge.tables import centred, summary
from dither_bench.show import strokes, sweep_plots
from dither_bench.show.looks import DASHED, looks
from dither_bench.show.pictures import PictureLook
from dither_bench.show.strokes import PAGE, SCREEN, Sizes

DEFAULT = PictureLook()


class Drawing(NamedTuple):
    """What the curves of a figure have in common."""

    figure: Figure
    panels: list[Panel]  # those that have results
    rows: pl.DataFrame  # of `tables.summary`, centred as the band wants it
    looks: dict[Spec, dict[str, Any]]
    band: str
    sizes: Sizes

    @property
    def over_rounds(self) -> bool:
        """Whether a panel is an axes of its own, over its rounds."""
        return self.figure.x == "round"


def draw(figure: Figure, curves: pl.DataFrame, look: PictureLook = DEFAULT) -> Canvas:
    """The figure as matplotlib holds it, from the rows of `tables.curves`.

    Raises ValueError where there is nothing to draw.
    """
    return of_summary(figure, summary(curves), look)


def of_summary(figure: Figure, rows: pl.DataFrame, look: PictureLook = DEFAULT) -> Canvas:
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
    text = words.band(band, rows["runs"].unique().to_list())
    panels = there(figure, rows)
    if any(not published.curve(figure, p, algorithm=spec).is_empty() for p in panels for spec in p.algorithms):
        text += "; dashed: published (read off the figure)"
    return text


def there(figure: Figure, rows: pl.DataFrame) -> list[Panel]:
    """The panels that have results."""
    return [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]


def _draw(figure: Figure, rows: pl.DataFrame, look: PictureLook) -> Canvas:
    width, sizes = look.inches, SCREEN if look.inches is None else PAGE
    of = Drawing(figure, there(figure, rows), rows, looks(figure), look.band, sizes)
    count = len(of.panels) if of.over_rounds else 1
    columns = min(count, 3 if width is None else max(1, min(3, int(width / sizes.panel))))
    wide, lines = max(sizes.panel * columns, 7.0) if width is None else width, math.ceil(count / columns)
    legend = _legend(of, look)
    ncols = strokes.columns(list(legend), width=wide, handle=0.6, scale=sizes.small / 9.5)
    below = (math.ceil(len(legend) / ncols) + 2) * 1.5 * sizes.small / 72  # inches of the legend
    each = 3.5 if width is None else max(1.5, 0.6 * wide / columns) + 0.4  # inches: the height of a panel
    canvas = Canvas(figsize=(wide, each * lines + (1.3 if width is None else below)), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    if of.over_rounds:
        for ax, panel in zip(axes, of.panels, strict=False):
            _over_rounds(ax, of, panel)
    else:
        _over_setting(axes[0], of)
    for i, ax in enumerate(axes):
        ax.set_visible(i < count)
        _settle(ax, of, log_axes=look.log, ticks=5 if width is None else 3)
        strokes.set_axes(ax, look)
        if i % columns == 0:
            shows = look.ylabel or words.SHOWS[figure.shows].split(",")[0]
            ax.set_ylabel(_wrapped(shows, each - 0.6, sizes.text), fontsize=sizes.text)
        ax.set_xlabel(ax.get_xlabel() if look.xlabel is None else look.xlabel)
        ax.set_title(_wrapped(ax.get_title(), wide / columns - 0.5, sizes.text), fontsize=sizes.text + 0.5)
    if look.title:
        canvas.suptitle(look.heading(figure.title), fontsize=sizes.text + 2, fontweight="bold")
    title = says(figure, rows, band=look.band) if look.title else None
    how = dict(linewidth=sizes.line + 0.4, markersize=sizes.marker)
    strokes.legend(canvas, legend, size=sizes.small, ncols=ncols, title=title, **how)
    strokes.set_caption(canvas, look, size=sizes.small)
    return canvas


def _settle(ax: Any, of: Drawing, *, log_axes: bool, ticks: int) -> None:
    """Grid, limits and numbers of axes."""
    strokes.grid(ax)
    ax.tick_params(labelsize=of.sizes.text)
    if log_axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
        strokes.numbers(ax.yaxis)
        if of.over_rounds:
            ax.set_xlim(left=0)
            strokes.numbers(ax.xaxis)
            ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(ticks))
    ax.xaxis.label.set_size(of.sizes.text)


def _wrapped(text: str, room: float, size: float) -> str:
    """The text in lines that fit into the room (inches)."""
    return textwrap.fill(text, max(8, int(room * 72 / (0.6 * size))))


def _over_rounds(ax: Any, of: Drawing, panel: Panel) -> None:
    for i, spec in enumerate(panel.algorithms):
        mine = of.rows.filter(panel=panel.name, algorithm=str(spec)).sort("round")
        if mine.is_empty():
            continue
        apart = (0.12 * i / len(panel.algorithms), 0.12)  # so that markers of curves that lie together do not
        _curve(ax, of, spec, mine, x="round", markevery=apart)
        theirs = published.curve(of.figure, panel, algorithm=spec).filter(bound=False)
        _published(ax, of, spec, theirs["round"], theirs["mean"], markevery=apart)
    ax.set_title(panel.name)
    ax.set_xlabel("round")


def _curve(ax: Any, of: Drawing, spec: Spec, rows: pl.DataFrame, *, x: str, **how: Any) -> None:
    """Our curve of an algorithm, with its band."""
    how |= dict(linewidth=of.sizes.line, markersize=of.sizes.marker)
    strokes.curve(ax, rows[x], rows["mean"], edges(rows, of.band), of.looks[spec], **how)


def _published(ax: Any, of: Drawing, spec: Spec, x: Any, y: Any, *, markevery: Any = None) -> None:
    """A published curve: dashed, with hollow markers."""
    if len(x):
        line = of.sizes.line
        hollow = of.looks[spec] | {"linestyle": DASHED, "markerfacecolor": "white", "markeredgewidth": line / 2}
        ax.plot(x, y, linewidth=0.7 * line, markersize=of.sizes.marker, markevery=markevery, **hollow)


def _over_setting(ax: Any, of: Drawing) -> None:
    x = of.figure.x
    last = at_horizon(of.figure, of.panels, of.rows)
    for spec in of.figure.algorithms:
        mine = last.filter(algorithm=str(spec)).sort("x")
        if mine.is_empty():
            continue
        _curve(ax, of, spec, mine, x="x")
        theirs = published_ends(of.figure, of.panels, spec)
        _published(ax, of, spec, theirs["x"], theirs["mean"])
    ax.set_xlabel({"dim": "d"}.get(x, x))
    if all(isinstance(panel.env[x], int) for panel in of.panels):
        ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator("auto", integer=True))
    ax.set_title(f"at round {of.panels[0].rounds:,}")


def at_horizon(figure: Figure, panels: list[Panel], rows: pl.DataFrame) -> pl.DataFrame:
    """The rows at the horizons, with the value of the setting in which the panels differ in the column x."""
    settings = [(panel.name, panel.rounds, float(panel.env[figure.x])) for panel in panels]
    return rows.join(pl.DataFrame(settings, schema=["panel", "round", "x"], orient="row"), on=["panel", "round"])


def published_ends(figure: Figure, panels: list[Panel], spec: Spec) -> pl.DataFrame:
    """Columns x, mean, se: the last published regret of each panel whose published curve reaches the horizon."""
    ends = ((panel, published.last(figure, panel, algorithm=spec)) for panel in panels)
    rows = [(float(p.env[figure.x]), end.mean, end.se) for p, end in ends if end and end.round == p.rounds]
    schema = dict.fromkeys(("x", "mean", "se"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").sort("x")


def edges(rows: pl.DataFrame, band: str) -> tuple[pl.Series, pl.Series]:
    """The lower and the upper edge of the band, from the rows of `tables.summary`."""
    if band in words.QUARTILES:
        return rows["low"], rows["high"]
    se = rows["se"].fill_null(0.0)  # of one run
    return rows["mean"] - se, rows["mean"] + se


def _legend(of: Drawing, look: PictureLook) -> dict[str, dict[str, Any]]:
    """The names of the legend and how their lines look."""
    shown, extra = look.called(of.figure, look.names), of.figure.extra if look.names == "code" else ()
    drawn = [spec for spec in of.figure.algorithms if not of.rows.filter(algorithm=str(spec)).is_empty()]
    return {shown[spec] + (" (not in the paper)" if spec in extra else ""): of.looks[spec] for spec in drawn}

"""Plots of a figure: axes for each panel, mean and band over the runs, and the published curve dashed in its colour."""

import math
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from dither import errors
from dither.algorithms import ALGORITHMS, Spec
from dither.drawing import PALETTE, STYLE
from dither.experiments import published, words
from dither.experiments.panels import Figure, Panel, without_shared
from dither.experiments.tables import summary

MARKERS = ("", "o", "s", "^", "D", "v")  # the settings of one algorithm, in order
DASHED = (0, (4, 2))


def draw(figure: Figure, curves: pl.DataFrame, *, band: str = "se", log: bool = False) -> Canvas:
    """The figure as matplotlib holds it; band: "se" (±1 standard error) or "quantiles" (the quartiles)."""
    errors.among("band", band, words.BANDS)
    if curves.is_empty():
        raise ValueError(f"there are no results of {figure.name} to draw")
    with mpl.rc_context(STYLE):
        return _draw(figure, summary(curves), band=band, log=log)


def _draw(figure: Figure, rows: pl.DataFrame, *, band: str, log: bool) -> Canvas:
    panels = [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]
    count = len(panels) if figure.x in ("round", "setting") else 1
    columns = min(count, 3)
    lines = math.ceil(count / columns)
    canvas = Canvas(figsize=(max(4.4 * columns, 7.0), 3.5 * lines + 1.3), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    look = looks(figure)
    if figure.x == "round":
        for ax, panel in zip(axes, panels, strict=False):
            _over_rounds(ax, figure, panel, rows.filter(panel=panel.name), looks=look, band=band)
    elif figure.x == "setting":
        for ax, panel in zip(axes, panels, strict=False):
            _over_values(ax, panel, rows.filter(panel=panel.name, round=panel.rounds), looks=look, band=band)
    else:
        _over_setting(axes[0], figure, panels, rows, looks=look, band=band)
    for i, ax in enumerate(axes):
        ax.set_visible(i < count)
        ax.grid(alpha=0.25, linewidth=0.6)
        if log:
            ax.set_xscale("linear" if figure.x == "setting" else "log")
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
            if figure.x == "round":
                ax.set_xlim(left=0)
            ax.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
        if figure.x == "round" and not log:
            ax.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
            ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
        if i % columns == 0:
            ax.set_ylabel(words.SHOWS[figure.shows].split(",")[0])
    canvas.suptitle(figure.title, fontsize=12, fontweight="bold")
    _legend(canvas, figure, rows, panels, looks=look, band=band)
    return canvas


def _over_rounds(ax: Any, figure: Figure, panel: Panel, rows: pl.DataFrame, *, looks: dict, band: str) -> None:
    for spec in panel.algorithms:
        mine = rows.filter(algorithm=str(spec)).sort("round")
        if mine.is_empty():
            continue
        low, high = edges(mine, band)
        look = looks[spec]
        ax.plot(mine["round"], mine["mean"], linewidth=1.6, markevery=0.12, markersize=4.5, **look)
        ax.fill_between(mine["round"], low, high, color=look["color"], alpha=0.18, linewidth=0)
        theirs = published.curve(figure, panel, algorithm=spec).filter(bound=False)
        ax.plot(theirs["round"], theirs["mean"], linestyle=DASHED, linewidth=1.1, color=look["color"])
    ax.set_title(panel.name, fontsize=10.5)
    ax.set_xlabel("round")


def _over_values(ax: Any, panel: Panel, rows: pl.DataFrame, *, looks: dict, band: str) -> None:
    """The last regret of each algorithm against the rank of its setting, as units differ; flat if it has one value."""
    most = 0
    for of in _values(panel.algorithms).values():
        mine = pl.concat([rows.filter(algorithm=str(spec)) for spec in of])
        if mine.is_empty():
            continue
        low, high = edges(mine, band)
        color = looks[next(iter(of))]["color"]
        if len(of) == 1:
            ax.axhline(mine["mean"][0], color=color, linewidth=1.6, linestyle=":")
            continue
        places = [[str(spec) for spec in of].index(name) for name in mine["algorithm"]]
        most = max(most, len(of))
        ax.plot(places, mine["mean"], color=color, linewidth=1.6, marker=".")
        ax.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
    ax.set_xticks(range(most), ["smallest", *[""] * (most - 2), "largest"] if most > 1 else [])
    ax.set_title(f"{panel.name}, round {panel.rounds:,}", fontsize=10.5)
    ax.set_xlabel("value of the setting")


def _values(specs: Iterable[Spec]) -> dict[str, dict[Spec, Any]]:
    """Algorithm -> its specs and the value of the one setting in which they differ, sorted by it; None: no such one."""
    found: dict[str, dict[Spec, Any]] = {}
    for spec in specs:
        found.setdefault(spec.name, {})[spec] = None
    for base, of in found.items():
        settings = {spec: dict(spec.settings) for spec in of}
        keys = {key for given in settings.values() for key in given}
        varied = [key for key in keys if len({given.get(key) for given in settings.values()}) > 1]
        if len(varied) == 1 and all(isinstance(given.get(varied[0]), (int, float)) for given in settings.values()):
            values = {spec: settings[spec][varied[0]] for spec in of}
            found[base] = dict(sorted(values.items(), key=lambda item: item[1]))
    return found


def _over_setting(ax: Any, figure: Figure, panels: list, rows: pl.DataFrame, *, looks: dict, band: str) -> None:
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
        look = looks[spec] | {"marker": looks[spec]["marker"] or "."}
        ax.plot(mine["x"], mine["mean"], linewidth=1.6, **look)
        ax.fill_between(mine["x"], low, high, color=look["color"], alpha=0.18, linewidth=0)
        ends = ((p, published.last(figure, p, algorithm=spec)) for p in panels)
        theirs = sorted((p.env[figure.x], end.mean) for p, end in ends if end and end.round == p.rounds)
        ax.plot(*zip(*theirs, strict=True), linestyle=DASHED, linewidth=1.1, color=look["color"]) if theirs else None
    ax.set_xlabel({"dim": "d"}.get(figure.x, figure.x))
    ax.set_title(f"at round {panels[0].rounds:,}", fontsize=10.5)


def edges(rows: pl.DataFrame, band: str) -> tuple[pl.Series, pl.Series]:
    """The lower and the upper edge of the band, from the rows of `tables.summary`."""
    if band == "quantiles":
        return rows["low"], rows["high"]
    se = rows["se"].fill_null(0.0)  # of one run
    return rows["mean"] - se, rows["mean"] + se


def looks(figure: Figure) -> dict[Spec, dict[str, str]]:
    """A colour for each algorithm, if possible the same in every figure, and a marker for each of its settings."""
    found: dict[Spec, dict[str, str]] = {}
    of_base: dict[str, list[Spec]] = {}
    for spec in figure.algorithms:
        of_base.setdefault(spec.name, []).append(spec)
    free = list(PALETTE)
    for base, specs in of_base.items():
        own = PALETTE[list(ALGORITHMS).index(base) % len(PALETTE)] if base in ALGORITHMS else None
        color = own if own and (own in free or not free) else (free or PALETTE)[0]
        free = [other for other in free if other != color]
        found |= {spec: {"color": color, "marker": MARKERS[i % len(MARKERS)]} for i, spec in enumerate(specs)}
    return found


def _ranges(specs: list[Spec], *, looks: dict) -> tuple[list[Line2D], list[str]]:
    """A line of the legend for each algorithm, with its range of values."""
    handles, labels = [], []
    for base, of in _values(specs).items():
        single = len(of) == 1
        color = looks[next(iter(of))]["color"]
        handles.append(Line2D([], [], linewidth=2, color=color, linestyle=":" if single else "-"))
        values = [value for value in of.values() if value is not None]
        labels.append(f"{base}, {values[0]:g} to {values[-1]:g}" if len(values) > 1 else base)
    return handles, labels


def _columns(labels: list[str], *, width: float) -> int:
    """As many columns of the legend as a canvas of this width (inches) holds, four at most."""
    widest = 0.6 + 0.075 * max(map(len, labels))  # a handle, and letters of 9.5 points
    return max(1, min(4, len(labels), int(width / widest)))


def _legend(canvas: Canvas, figure: Figure, rows: pl.DataFrame, panels: list, *, looks: dict, band: str) -> None:
    shown = [spec for spec in figure.algorithms if not rows.filter(algorithm=str(spec)).is_empty()]
    handles = [Line2D([], [], linewidth=2, markersize=4.5, **looks[spec]) for spec in shown]
    brief = [str(without_shared(spec, figure.shared)) for spec in shown]
    labels = [
        f"{text} (not in the paper)" if spec in figure.extra else text for spec, text in zip(shown, brief, strict=True)
    ]
    if figure.x == "setting":
        handles, labels = _ranges(shown, looks=looks)
    says = words.band(band, rows["runs"].unique().to_list())
    if any(not published.curve(figure, p, algorithm=spec).is_empty() for p in panels for spec in p.algorithms):
        says += "; dashed: published (read off the figure)"
    canvas.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=_columns(labels, width=canvas.get_figwidth()),
        frameon=False,
        title=says,
        title_fontsize=9.5,
        fontsize=9.5,
    )

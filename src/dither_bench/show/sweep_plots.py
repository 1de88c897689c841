"""Pictures of what was tried: the last regret of each algorithm against the values of its settings.

one setting varies    a line, with its band; algorithms that vary the same setting share axes
two settings vary     a map of all combinations, with the regrets written in
more, or drawn ones   for each setting every try as a dot, and a line through the best try of each value

An algorithm of which one setting was tried is a dotted line. The lowest of each algorithm is ringed.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import words
from dither_bench.judge.choices import TriedSettings, logarithmic, numbers, text, tried
from dither_bench.show import strokes
from dither_bench.show.looks import looks
from dither_bench.show.pictures import PictureLook

COLUMNS = 4  # axes side by side at most
NARROW = 1.75  # inches: the least width of one axes
NAMED = 8  # values at most that stand at an axis one by one
MAP = "cividis_r"  # dark is high: it can be told apart in grey and by the colour-blind

Groups = tuple[TriedSettings, ...]


@dataclass(frozen=True)
class TriedPanel:
    """A panel that has results: what was tried, where it ended, and how it looks."""

    panel: Panel
    groups: Groups  # without what has no results
    ends: Mapping[str, dict[str, Any]]  # algorithm -> its row at the horizon
    looks: Mapping[Spec, dict[str, Any]]

    @property
    def title(self) -> str:
        """The panel and its horizon."""
        return f"{self.panel.name}, round {self.panel.rounds:,}"

    def look(self, of: TriedSettings) -> dict[str, Any]:
        """How a group looks: dotted, where one setting was tried."""
        look = self.looks[_key(of)]
        return look if of.varied else {"color": look["color"], "linestyle": ":"}

    def mean(self, spec: Spec) -> float:
        """The regret at the horizon."""
        return self.ends[str(spec)]["mean"]


@dataclass(frozen=True)
class TriedAxes:
    """One axes: of one panel, what draws it and what it shows."""

    of: TriedPanel
    draw: Callable[[Any, "TriedAxes"], None]
    groups: Groups
    settings: tuple[str, ...]


def draw(figure: Figure, rows: pl.DataFrame, look: PictureLook) -> Canvas:
    """The picture; rows : as of `tables.summary`, with the ends of the band in the columns lower and upper."""
    panels, called = _panels(figure, rows, look)
    parts = [part for panel in panels for part in _parts(panel)]
    width, size, runs = look.inches, 10 if look.width is None else 8, rows["runs"].unique().to_list()
    columns = _columns([part.of.panel.name for part in parts], width=width)
    lines = math.ceil(len(parts) / columns)
    wide = max(3.7 * columns, 7.0) if width is None else width
    canvas = Canvas(figsize=(wide, (3.4 if width is None else 2.0) * lines + 1.3), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    for ax, part in zip(axes, parts, strict=False):
        part.draw(ax, part)
        title = [part.of.title] * (len(panels) > 1) + [called[_key(of)] for of in part.groups if part.draw is _map]
        ax.set_title("\n".join(title), fontsize=size + 0.5)
        ax.tick_params(labelsize=size)
    _share(axes, parts, look)
    for i, ax in enumerate(axes):
        ax.set_visible(i < len(parts))
        if i % columns == 0 and i < len(parts) and parts[i].draw is not _map:
            ax.set_ylabel(look.ylabel or words.SHOWS[figure.shows].split(",")[0])
        if look.xlabel is not None:
            ax.set_xlabel(look.xlabel)
        for label in (ax.xaxis.label, ax.yaxis.label):
            label.set_size(size)
    if look.title:
        lines_of_title = [look.heading(figure.title)] + [panels[0].title] * (len(panels) == 1)
        canvas.suptitle("\n".join(lines_of_title), fontsize=size + 1)
    if all(part.draw is _map for part in parts):
        _below_maps(canvas, panels, called, look, runs=runs)
        strokes.set_caption(canvas, look, size=9.5)
        return canvas
    legend = {called[_key(of)]: panel.look(of) for panel in panels for of in panel.groups}
    ncols = strokes.columns(list(legend), width=canvas.get_figwidth(), handle=0.7, scale=size / 10)
    head = f"{words.band(look.band, runs)}; ringed: the lowest of each algorithm" if look.title else None
    strokes.legend(canvas, legend, size=size - 0.5, ncols=ncols, title=head, linewidth=1.8, markersize=4.5)
    strokes.set_caption(canvas, look, size=size - 0.5)
    return canvas


def _key(of: TriedSettings) -> Spec:
    """The algorithm that stands for a group: it has its look and its name."""
    return of.base if of.varied else of.specs[0]


def _panels(figure: Figure, rows: pl.DataFrame, look: PictureLook) -> tuple[list[TriedPanel], dict[Spec, str]]:
    """The panels that have results, and the names of their groups."""
    last: list[tuple[Panel, Groups, dict[str, dict[str, Any]]]] = []
    for panel in figure.panels:
        at = rows.filter(panel=panel.name, round=panel.rounds)
        ends = {row["algorithm"]: row for row in at.iter_rows(named=True)}
        if not rows.filter(panel=panel.name).is_empty():
            groups = tried([spec for spec in panel.algorithms if str(spec) in ends], figure.varied)
            last.append((panel, groups, ends))
    tuned = tuple(replace(panel, algorithms=tuple(map(_key, groups))) for panel, groups, _ in last)
    brief = replace(figure, panels=tuned)
    return [TriedPanel(*of, looks(brief)) for of in last], look.called(brief, look.names)


def _parts(panel: TriedPanel) -> Iterator[TriedAxes]:
    single = [of for of in panel.groups if len(of.varied) == 1]
    for name in dict.fromkeys(of.varied[0] for of in single):
        yield TriedAxes(panel, _lines, tuple(of for of in single if of.varied == (name,)), (name,))
    several = [of for of in panel.groups if len(of.varied) > 1]
    maps = [of for of in several if len(of.varied) == 2 and of.whole]
    yield from (TriedAxes(panel, _map, (of,), of.varied) for of in maps)
    drawn = [of for of in several if of not in maps]
    for name in dict.fromkeys(name for of in drawn for name in of.varied):
        yield TriedAxes(panel, _dots, tuple(of for of in drawn if name in of.varied), (name,))
    if not any(of.varied for of in panel.groups):
        yield TriedAxes(panel, _lines, (), ())


def _columns(of_panels: list[str], *, width: float | None) -> int:
    """As many as a panel has parts, so that a panel is a line; where there is one panel, three at most."""
    most = max(of_panels.count(name) for name in of_panels)
    count = min(most, COLUMNS) if len(set(of_panels)) > 1 and most > 1 else min(len(of_panels), 3)
    return count if width is None else max(1, min(count, int(width / NARROW)))


def _lines(ax: Any, part: TriedAxes) -> None:
    places = _axis(ax, part)
    for of in part.groups:
        (name,), look = part.settings, part.of.look(of)
        points = sorted((places(spec.value(name)), i, spec) for i, spec in enumerate(of.specs))
        x, rows = [place for place, *_ in points], [part.of.ends[str(spec)] for *_, spec in points]
        mean, low, high = ([row[column] for row in rows] for column in ("mean", "lower", "upper"))
        strokes.curve(ax, x, mean, (low, high), look, alpha=0.15, linewidth=1.6, markersize=4.5)
        _ring(ax, x, mean, look)
    _single(ax, part)


def _dots(ax: Any, part: TriedAxes) -> None:
    (name,), places = part.settings, _axis(ax, part)
    for of in part.groups:
        look = part.of.look(of)
        x, y = [places(spec.value(name)) for spec in of.specs], [part.of.mean(spec) for spec in of.specs]
        ax.plot(x, y, marker=look["marker"], markersize=4, alpha=0.5, color=look["color"], linestyle="none")
        if len(of.values[name]) < len(of.specs):
            best = {place: min(b for a, b in zip(x, y, strict=True) if a == place) for place in sorted(set(x))}
            ax.plot(list(best), list(best.values()), linewidth=1.6, color=look["color"], linestyle=look["linestyle"])
        _ring(ax, x, y, look)
    _single(ax, part)


def _map(ax: Any, part: TriedAxes) -> None:
    (of,), (across, up) = part.groups, part.settings
    columns, rows = of.values[across], of.values[up]
    means = np.full((len(rows), len(columns)), np.nan)
    for spec in of.specs:
        means[rows.index(spec.value(up)), columns.index(spec.value(across))] = part.of.mean(spec)
    every = np.array([part.of.mean(spec) for other in part.of.groups for spec in other.specs])
    low, high = float(every.min()), float(every.max())
    norm: Any = mpl.colors.LogNorm(low, high) if logarithmic(every) else mpl.colors.Normalize(low, high)
    ax.imshow(means, origin="lower", aspect="auto", cmap=MAP, norm=norm)
    for (i, j), mean in np.ndenumerate(means):
        dark = norm(mean) > 0.55
        ax.text(j, i, words.number(mean), ha="center", va="center", fontsize=8, color="white" if dark else "black")
    i, j = np.unravel_index(np.argmin(means), means.shape)
    ax.add_patch(mpl.patches.Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, linewidth=2.5, edgecolor="#D55E00"))
    ax.set_xticks(range(len(columns)), [text(value) for value in columns])
    ax.set_yticks(range(len(rows)), [text(value) for value in rows])
    ax.set_xlabel(across)
    ax.set_ylabel(up)


def _axis(ax: Any, part: TriedAxes) -> Callable[[Any], float]:
    """Set the horizontal axis. -> where a value stands: numbers by size, other values one after another."""
    values = list(dict.fromkeys(value for of in part.groups for value in of.values[part.settings[0]]))
    if not values:
        ax.set_xticks([])
        return lambda value: 0.0
    ax.set_xlabel(part.settings[0])
    if numbers(values):
        ax.set_xscale("log" if logarithmic(values) else "linear")
        strokes.numbers(ax.xaxis, thousands=False)
        if len(values) <= NAMED:
            ax.set_xticks(sorted(values), [text(value) for value in sorted(values)])
            ax.minorticks_off()
        return float
    inner = sorted((value for value in values if numbers([value])), key=float)
    ticks = [text(value) for value in inner + [value for value in values if not numbers([value])]]
    ax.set_xticks(range(len(ticks)), ticks)
    return lambda value: float(ticks.index(text(value)))


def _ring(ax: Any, x: list[float], y: list[float], look: Mapping[str, Any]) -> None:
    i = int(np.argmin(y))
    ax.plot([x[i]], [y[i]], marker="o", markersize=11, fillstyle="none", linestyle="none", color=look["color"])


def _single(ax: Any, part: TriedAxes) -> None:
    for of in part.of.groups:
        if not of.varied:
            ax.axhline(part.of.mean(of.specs[0]), linewidth=1.6, **part.of.look(of))


def _share(axes: list[Any], parts: list[TriedAxes], look: PictureLook) -> None:
    """One vertical axis for all axes of a panel that have regret on it: its own scale, marked where it has no 0."""
    log_axes = (look.yscale or ("log" if look.log else "linear")) == "log"
    for panel in dict.fromkeys(part.of.panel.name for part in parts):
        of_panel = [ax for ax, p in zip(axes, parts, strict=False) if p.of.panel.name == panel and p.draw is not _map]
        for ax in of_panel:
            strokes.grid(ax)
            ax.set_yscale("log" if log_axes else "linear")
            if not log_axes:
                strokes.numbers(ax.yaxis)
        ends = [ax.get_ylim() for ax in of_panel]
        low, high = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)
        least = min((float(ax.dataLim.y0) for ax in of_panel), default=0.0)
        for ax in of_panel:
            ax.set_ylim(low if log_axes else strokes.bottom(low, high, least=least), high)
            strokes.set_axes(ax, look)
            strokes.mark_start(ax)


def _below_maps(
    canvas: Canvas, panels: list[TriedPanel], called: Mapping[Spec, str], look: PictureLook, *, runs: list[int]
) -> None:
    """What the colours and frames are, and the regret of the algorithms that have no map."""
    single = [(panel, of) for panel in panels for of in panel.groups if not of.varied]
    of_one = [f"{called[_key(of)]}: {words.number(panel.mean(of.specs[0]))}" for panel, of in single]
    what = "median" if look.band == "median" else "mean"
    says = [f"{what} of {words.over(runs)}; framed: the lowest of each algorithm"] if look.title else []
    canvas.supxlabel("\n".join([*says, *(["one setting: " + "; ".join(of_one)] if of_one else [])]), fontsize=9.5)

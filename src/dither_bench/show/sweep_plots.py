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
from matplotlib.lines import Line2D

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import words
from dither_bench.judge.tried import Tried, logarithmic, numbers, text, tried
from dither_bench.show import names
from dither_bench.show.looks import looks as looks_of
from dither_bench.show.pictures import Look

COLUMNS = 4  # axes side by side at most
NARROW = 1.75  # inches: the least width of one axes
NAMED = 8  # values at most that stand at an axis one by one
MAP = "cividis_r"  # dark is high: it can be told apart in grey and by the colour-blind


@dataclass(frozen=True)
class Part:
    """One axes: of one panel, what draws it and what it shows."""

    panel: Panel
    draw: Callable[..., None]
    groups: tuple[Tried, ...]
    settings: tuple[str, ...]


def draw(figure: Figure, rows: pl.DataFrame, look: Look) -> Canvas:
    """The picture; rows : as of `tables.summary`, with the ends of the band in the columns lower and upper."""
    panels = [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]
    ends = {panel.name: _ends(panel, rows) for panel in panels}
    groups = {panel.name: _shown(figure, panel, ends[panel.name]) for panel in panels}
    parts = [part for panel in panels for part in _parts(panel, groups[panel.name])]
    width, size, runs = look.inches, _letters(look), rows["runs"].unique().to_list()
    columns = _columns([part.panel.name for part in parts], width=width)
    lines = math.ceil(len(parts) / columns)
    wide = max(3.7 * columns, 7.0) if width is None else width
    canvas = Canvas(figsize=(wide, (3.4 if width is None else 2.0) * lines + 1.3), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    tuned = _tuned(figure, groups)
    looks, called = _known(looks_of(tuned)), _known(names.shown(tuned, look.names))
    for ax, part in zip(axes, parts, strict=False):
        part.draw(ax, part, ends[part.panel.name], looks=looks, groups=groups[part.panel.name])
        ax.set_title(_title(part, called, several=len(panels) > 1), fontsize=size + 0.5)
        ax.tick_params(labelsize=size)
    _share(axes, parts, log=look.log)
    for i, ax in enumerate(axes):
        ax.set_visible(i < len(parts))
        if i % columns == 0 and i < len(parts) and parts[i].draw is not _map:
            ax.set_ylabel(words.SHOWS[figure.shows].split(",")[0])
        for label in (ax.xaxis.label, ax.yaxis.label):
            label.set_size(size)
    if look.title:
        head = [figure.title] + [_place(panel) for panel in panels if len(panels) == 1]
        canvas.suptitle("\n".join(head), fontsize=size + 1)
    if all(part.draw is _map for part in parts):
        every = [(called(of), of, ends[panel.name]) for panel in panels for of in groups[panel.name]]
        _below_maps(canvas, every, look, runs=runs)
    else:
        _legend(canvas, {called(of): (of, looks(of)) for of in sum(groups.values(), ())}, look, runs=runs)
    return canvas


def _letters(look: Look) -> int:
    """Points of the letters."""
    return 10 if look.width is None else 8


def _tuned(figure: Figure, groups: Mapping[str, tuple[Tried, ...]]) -> Figure:
    """The figure with one algorithm for each group, which has its look and its name."""
    panels = tuple(
        replace(panel, algorithms=tuple(map(_key, groups[panel.name])))
        for panel in figure.panels
        if panel.name in groups
    )
    return replace(figure, panels=panels)


def _key(of: Tried) -> Spec:
    return of.base if of.varied else of.specs[0]


def _known(of: Mapping[Spec, Any]) -> Callable[[Tried], Any]:
    return lambda group: of[_key(group)]


def _ends(panel: Panel, rows: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Algorithm -> its row at the horizon."""
    at = rows.filter(panel=panel.name, round=panel.rounds)
    return {row["algorithm"]: row for row in at.iter_rows(named=True)}


def _shown(figure: Figure, panel: Panel, ends: Mapping[str, Any]) -> tuple[Tried, ...]:
    """The groups of the panel, without what has no results."""
    return tried([spec for spec in panel.algorithms if str(spec) in ends], figure.varied)


def _parts(panel: Panel, groups: tuple[Tried, ...]) -> Iterator[Part]:
    single = [of for of in groups if len(of.varied) == 1]
    for name in dict.fromkeys(of.varied[0] for of in single):
        yield Part(panel, _lines, tuple(of for of in single if of.varied == (name,)), (name,))
    several = [of for of in groups if len(of.varied) > 1]
    yield from (Part(panel, _map, (of,), of.varied) for of in several if _mapped(of))
    drawn = [of for of in several if not _mapped(of)]
    for name in dict.fromkeys(name for of in drawn for name in of.varied):
        yield Part(panel, _dots, tuple(of for of in drawn if name in of.varied), (name,))
    if not any(of.varied for of in groups):
        yield Part(panel, _lines, (), ())


def _mapped(of: Tried) -> bool:
    return len(of.varied) == 2 and of.whole


def _columns(of_panels: list[str], *, width: float | None) -> int:
    """As many as a panel has parts, so that a panel is a line; where there is one panel, three at most."""
    most = max(of_panels.count(name) for name in of_panels)
    found = min(most, COLUMNS) if len(set(of_panels)) > 1 and most > 1 else min(len(of_panels), 3)
    return found if width is None else max(1, min(found, int(width / NARROW)))


def _lines(
    ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Callable[[Tried], dict[str, Any]], groups: tuple[Tried, ...]
) -> None:
    places = _axis(ax, part, [value for of in part.groups for value in of.values[part.settings[0]]])
    for of in part.groups:
        found = sorted((places(spec.value(part.settings[0])), ends[str(spec)]) for spec in _sorted(of, part, places))
        x, rows = [place for place, _ in found], [row for _, row in found]
        look = looks(of)
        ax.plot(x, [row["mean"] for row in rows], linewidth=1.6, markersize=4.5, **look)
        low, high = ([row[end] for row in rows] for end in ("lower", "upper"))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        _ring(ax, x, [row["mean"] for row in rows], look)
    _single(ax, groups, ends, looks=looks)


def _sorted(of: Tried, part: Part, places: Callable[[Any], float]) -> list[Spec]:
    return sorted(of.specs, key=lambda spec: places(spec.value(part.settings[0])))


def _dots(
    ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Callable[[Tried], dict[str, Any]], groups: tuple[Tried, ...]
) -> None:
    (name,) = part.settings
    places = _axis(ax, part, [value for of in part.groups for value in of.values[name]])
    for of in part.groups:
        look = looks(of)
        x = [places(spec.value(name)) for spec in of.specs]
        y = [ends[str(spec)]["mean"] for spec in of.specs]
        ax.plot(x, y, marker=look["marker"], markersize=4, alpha=0.5, color=look["color"], linestyle="none")
        if len(of.values[name]) < len(of.specs):
            best = {place: min(b for a, b in zip(x, y, strict=True) if a == place) for place in sorted(set(x))}
            ax.plot(list(best), list(best.values()), linewidth=1.6, color=look["color"], linestyle=look["linestyle"])
        _ring(ax, x, y, look)
    _single(ax, groups, ends, looks=looks)


def _map(
    ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Callable[[Tried], dict[str, Any]], groups: tuple[Tried, ...]
) -> None:
    (of,), (across, up) = part.groups, part.settings
    columns, rows = of.values[across], of.values[up]
    means = np.full((len(rows), len(columns)), np.nan)
    for spec in of.specs:
        means[rows.index(spec.value(up)), columns.index(spec.value(across))] = ends[str(spec)]["mean"]
    every = np.array([ends[str(spec)]["mean"] for other in groups for spec in other.specs])
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


def _axis(ax: Any, part: Part, values: Any) -> Callable[[Any], float]:
    """Set the horizontal axis. -> where a value stands: numbers by size, other values one after another."""
    found = list(dict.fromkeys(values))
    if not found:
        ax.set_xticks([])
        return lambda value: 0.0
    ax.set_xlabel(part.settings[0])
    if numbers(found):
        ax.set_xscale("log" if logarithmic(found) else "linear")
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        if len(found) <= NAMED:
            ax.set_xticks(sorted(found), [text(value) for value in sorted(found)])
            ax.minorticks_off()
        return float
    inner = sorted((value for value in found if numbers([value])), key=float)
    names = [text(value) for value in inner + [value for value in found if not numbers([value])]]
    ax.set_xticks(range(len(names)), names)
    return lambda value: float(names.index(text(value)))


def _ring(ax: Any, x: list[float], y: list[float], look: Mapping[str, Any]) -> None:
    i = int(np.argmin(y))
    ax.plot([x[i]], [y[i]], marker="o", markersize=11, fillstyle="none", linestyle="none", color=look["color"])


def _single(
    ax: Any, groups: tuple[Tried, ...], ends: Mapping[str, Any], *, looks: Callable[[Tried], dict[str, Any]]
) -> None:
    for of in groups:
        if not of.varied:
            ax.axhline(ends[str(of.specs[0])]["mean"], linewidth=1.6, **_dotted(looks(of)))


def _share(axes: list[Any], parts: list[Part], *, log: bool) -> None:
    """One vertical axis for all axes of a panel that have regret on it."""
    for name in dict.fromkeys(part.panel.name for part in parts):
        own = [ax for ax, part in zip(axes, parts, strict=False) if part.panel.name == name and part.draw is not _map]
        for ax in own:
            ax.grid(alpha=0.25, linewidth=0.6)
            ax.set_yscale("log" if log else "linear")
            if not log:
                ax.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
        ends = [ax.get_ylim() for ax in own]
        for ax in own:
            ax.set_ylim(min(low for low, _ in ends) if log else 0, max(high for _, high in ends))


def _title(part: Part, called: Callable[[Tried], str], *, several: bool) -> str:
    """The panel where there are several, and the algorithm of a map."""
    panel = [_place(part.panel)] if several else []
    return "\n".join(panel + ([called(part.groups[0])] if part.draw is _map else []))


def _place(panel: Panel) -> str:
    return f"{panel.name}, round {panel.rounds:,}"


def _legend(canvas: Canvas, groups: Mapping[str, tuple[Tried, dict[str, Any]]], look: Look, *, runs: list[int]) -> None:
    handles = [
        Line2D([], [], linewidth=1.8, markersize=4.5, **(its if of.varied else _dotted(its)))
        for of, its in groups.values()
    ]
    size = _letters(look)
    widest = size / 10 * (0.7 + 0.075 * max(map(len, groups)))
    canvas.legend(
        handles,
        list(groups),
        loc="outside lower center",
        ncols=max(1, min(4, len(groups), int(canvas.get_figwidth() / widest))),
        frameon=False,
        title=f"{words.band(look.band, runs)}; ringed: the lowest of each algorithm" if look.title else None,
        title_fontsize=size - 0.5,
        fontsize=size - 0.5,
    )


def _dotted(look: Mapping[str, Any]) -> dict[str, Any]:
    return {"color": look["color"], "linestyle": ":"}


def _below_maps(canvas: Canvas, shown: list[tuple[str, Tried, dict[str, Any]]], look: Look, *, runs: list[int]) -> None:
    """What the colours and frames are, and the regret of the algorithms that have no map."""
    of_one = [f"{name}: {words.number(ends[str(of.specs[0])]['mean'])}" for name, of, ends in shown if not of.varied]
    what = "median" if look.band == "median" else "mean"
    says = [f"{what} of {words.over(runs)}; framed: the lowest of each algorithm"] if look.title else []
    canvas.supxlabel("\n".join([*says, *(["one setting: " + "; ".join(of_one)] if of_one else [])]), fontsize=9.5)

"""Pictures of what was tried: the last regret of each algorithm against the values of its settings.

one setting varies    a line, with its band; algorithms that vary the same setting share axes
two settings vary     a map of all combinations, with the regrets written in
more, or drawn ones   for each setting every try as a dot, and a line through the best try of each value

An algorithm of which one setting was tried is a dotted line. The lowest of each algorithm is ringed.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from dither.algorithms import Spec
from dither.experiments import words
from dither.experiments.panels import Figure, Panel
from dither.experiments.tried import Tried, logarithmic, numbers, text, tried

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
STYLES = ("-", "--", "-.", (0, (1, 1)))
COLUMNS = 4  # axes side by side at most
NAMED = 8  # values at most that stand at an axis one by one
MAP = "cividis_r"  # dark is high: it can be told apart in grey and by the colour-blind


@dataclass(frozen=True)
class Part:
    """One axes: of one panel, what draws it and what it shows."""

    panel: Panel
    draw: Callable[..., None]
    groups: tuple[Tried, ...]
    settings: tuple[str, ...]


def draw(figure: Figure, rows: pl.DataFrame, *, colors: Mapping[Spec, str], band: str, log: bool) -> Canvas:
    """The picture; rows : as of `tables.summary`, with the ends of the band in the columns lower and upper."""
    panels = [panel for panel in figure.panels if not rows.filter(panel=panel.name).is_empty()]
    ends = {panel.name: _ends(panel, rows) for panel in panels}
    groups = {panel.name: _shown(figure, panel, ends[panel.name]) for panel in panels}
    parts = [part for panel in panels for part in _parts(panel, groups[panel.name])]
    columns = _columns([part.panel.name for part in parts])
    lines = math.ceil(len(parts) / columns)
    canvas = Canvas(figsize=(max(3.7 * columns, 7.0), 3.4 * lines + 1.3), layout="constrained")
    axes = list(canvas.subplots(lines, columns, squeeze=False).flat)
    every = list(dict.fromkeys(of.base for of in sum(groups.values(), ())))
    looks = {base: _look(i, base, figure, colors) for i, base in enumerate(every)}
    for ax, part in zip(axes, parts, strict=False):
        part.draw(ax, part, ends[part.panel.name], looks=looks, groups=groups[part.panel.name])
        ax.set_title(_title(part, several=len(panels) > 1), fontsize=10.5)
    _share(axes, parts, log=log)
    for i, ax in enumerate(axes):
        ax.set_visible(i < len(parts))
        if i % columns == 0 and i < len(parts) and parts[i].draw is not _map:
            ax.set_ylabel(words.SHOWS[figure.shows].split(",")[0])
    canvas.suptitle("\n".join([figure.title] + [_place(panel) for panel in panels if len(panels) == 1]), fontsize=11)
    shown = {of.base: of for of in sum(groups.values(), ())}
    runs = rows["runs"].unique().to_list()
    if all(part.draw is _map for part in parts):
        _below_maps(canvas, [(of, ends[panel.name]) for panel in panels for of in groups[panel.name]], runs=runs)
    else:
        _legend(canvas, shown, looks=looks, says=words.band(band, runs))
    return canvas


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


def _columns(names: list[str]) -> int:
    """As many as a panel has parts, so that a panel is a line; where there is one panel, three at most."""
    most = max(names.count(name) for name in names)
    return min(most, COLUMNS) if len(set(names)) > 1 and most > 1 else min(len(names), 3)


def _lines(ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Mapping, groups: tuple[Tried, ...]) -> None:
    places = _axis(ax, part, [value for of in part.groups for value in of.values[part.settings[0]]])
    for of in part.groups:
        found = sorted((places(spec.value(part.settings[0])), ends[str(spec)]) for spec in _sorted(of, part, places))
        x, rows = [place for place, _ in found], [row for _, row in found]
        look = looks[of.base]
        ax.plot(x, [row["mean"] for row in rows], linewidth=1.6, markersize=4.5, **look)
        low, high = ([row[end] for row in rows] for end in ("lower", "upper"))
        ax.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        _ring(ax, x, [row["mean"] for row in rows], look)
    _single(ax, groups, ends, looks=looks)


def _sorted(of: Tried, part: Part, places: Callable[[Any], float]) -> list[Spec]:
    return sorted(of.specs, key=lambda spec: places(spec.value(part.settings[0])))


def _dots(ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Mapping, groups: tuple[Tried, ...]) -> None:
    (name,) = part.settings
    places = _axis(ax, part, [value for of in part.groups for value in of.values[name]])
    for of in part.groups:
        look = looks[of.base]
        x = [places(spec.value(name)) for spec in of.specs]
        y = [ends[str(spec)]["mean"] for spec in of.specs]
        ax.plot(x, y, marker=look["marker"], markersize=4, alpha=0.5, color=look["color"], linestyle="none")
        if len(of.values[name]) < len(of.specs):
            best = {place: min(b for a, b in zip(x, y, strict=True) if a == place) for place in sorted(set(x))}
            ax.plot(list(best), list(best.values()), linewidth=1.6, color=look["color"], linestyle=look["linestyle"])
        _ring(ax, x, y, look)
    _single(ax, groups, ends, looks=looks)


def _map(ax: Any, part: Part, ends: Mapping[str, Any], *, looks: Mapping, groups: tuple[Tried, ...]) -> None:
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


def _single(ax: Any, groups: tuple[Tried, ...], ends: Mapping[str, Any], *, looks: Mapping) -> None:
    for of in groups:
        if not of.varied:
            ax.axhline(ends[str(of.specs[0])]["mean"], linewidth=1.6, linestyle=":", color=looks[of.base]["color"])


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


def _title(part: Part, *, several: bool) -> str:
    """The panel where there are several, and the algorithm of a map."""
    panel = [_place(part.panel)] if several else []
    return "\n".join(panel + ([str(part.groups[0].base)] if part.draw is _map else []))


def _place(panel: Panel) -> str:
    return f"{panel.name}, round {panel.rounds:,}"


def _look(i: int, base: Spec, figure: Figure, colors: Mapping[Spec, str]) -> dict[str, Any]:
    """The colour of the algorithm, and a marker and a stroke that tell it in grey."""
    color = next(color for spec, color in colors.items() if spec.name == base.name)
    return {"color": color, "marker": MARKERS[i % len(MARKERS)], "linestyle": STYLES[i % len(STYLES)]}


def _legend(canvas: Canvas, groups: dict[Spec, Tried], *, looks: Mapping, says: str) -> None:
    handles, labels = [], []
    for base, of in groups.items():
        look = looks[base] if of.varied else {"color": looks[base]["color"], "linestyle": ":"}
        handles.append(Line2D([], [], linewidth=1.8, markersize=4.5, **look))
        labels.append(str(base) if of.varied else str(of.specs[0]))
    widest = 0.7 + 0.075 * max(map(len, labels))
    canvas.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=max(1, min(4, len(labels), int(canvas.get_figwidth() / widest))),
        frameon=False,
        title=f"{says}; ringed or framed: the lowest of each algorithm",
        title_fontsize=9.5,
        fontsize=9.5,
    )


def _below_maps(canvas: Canvas, shown: list[tuple[Tried, dict[str, Any]]], *, runs: list[int]) -> None:
    """What the colours and frames are, and the regret of the algorithms that have no map."""
    of_one = [f"{of.specs[0]}: {words.number(ends[str(of.specs[0])]['mean'])}" for of, ends in shown if not of.varied]
    says = f"mean of {words.over(runs)}; framed: the lowest of each algorithm"
    canvas.supxlabel("\n".join([says, *(["one setting: " + "; ".join(of_one)] if of_one else [])]), fontsize=9.5)

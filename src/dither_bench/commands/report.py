"""One HTML file that needs no other: what was run, plots, tables, and what they say."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dither.base import errors, files
from dither.cli import template
from dither_bench import sweeps
from dither_bench.define import environments, published
from dither_bench.define.panels import Panel, reference
from dither_bench.judge import sweep_words, tables, words
from dither_bench.judge.choices import SettingsSearch, choose
from dither_bench.keep import asked, provenance
from dither_bench.keep.asked import FigureRequest
from dither_bench.keep.store import STORE, Store
from dither_bench.show import interactive, plots
from dither_bench.show.pictures import PictureLook


def write(folder: str | Path, path: str | Path, **frame: Any) -> Path:
    """The report of all that was asked for in a folder of results.

    frame : band, log, and what is around the curves, as `PictureLook` takes them; the title is that of the page. The
        label of an algorithm that a figure lacks is passed over there, and that of one that none has is refused
    """
    look = PictureLook(**frame)
    folder, path = Path(folder), Path(path)
    requests = asked.figures(folder)
    if not requests:
        raise ValueError(f"{folder} holds no results: make some with 'dither reproduce NAME --out {folder}'")
    store = Store(folder / STORE)
    for name in look.labels:
        if not any(look.known_in(request.figure).get(name) for request in requests):
            names = {str(spec) for request in requests for spec in request.figure.algorithms}
            raise errors.unknown("algorithm of the report, for a label,", name, names=sorted(names))
    sections = [part for request in requests if (part := section(request, store, look=look, beside=requests))]
    if not sections:
        raise ValueError(f"{folder} holds no finished results yet: run the command that began them again")
    filters = {
        name: getattr(words, name) for name in ("number", "published", "ratio", "with_error", "interval", "short")
    }
    plotly = template.plotly() if any(part["sketch"] for part in sections) else ""
    content: dict[str, Any] = dict(sections=sections, log=look.log, plotly=plotly)
    content |= dict(title=look.heading(""), caption=look.caption)
    text = template.page("report.html.jinja", filters=filters, package="dither_bench.commands", **content)
    return files.text(path, text)


def section(
    request: FigureRequest, store: Store, *, look: PictureLook, beside: Sequence[FigureRequest] = ()
) -> dict[str, Any] | None:
    """What the template shows of a figure; None where nothing is stored yet. beside : all requests of the folder"""
    whole = request.figure
    curves = tables.curves(whole, store, seed=request.seed, codes=request.codes)
    if curves.is_empty():
        return None
    look = replace(look, title=True, labels=look.known_in(whole))
    sketch = interactive.sketch(whole, curves, look)
    figure, values, differences = words.briefly(whole, tables.values(whole, curves), tables.differences(whole, curves))
    panels: list[dict[str, Any]] = [
        {
            "name": panel.name,
            "setting": words.setting(panel.env),
            "constants": words.kappas(environments.kappas(panel.env, seed=request.seed)),
            "rounds": panel.rounds,
            "reference": str(reference(panel)),
            "tables": [words.section(panel, t, values, differences) for t in published.ends(whole, asked_for)],
            "search": list(_search(request, asked_for, curves, store, beside)),
        }
        for asked_for, panel in zip(whole.panels, figure.panels, strict=True)
    ]
    origin = provenance.of(request, store)
    return {
        "figure": figure,
        "extra": [str(spec) for spec in figure.extra],
        "shows": words.SHOWS[figure.shows],
        "shared": words.shared(figure),
        "sketch": sketch,
        "picture": None if sketch else template.embedded(plots.draw(whole, curves, replace(look, caption=""))),
        "says": {panel["name"]: panel["tables"][-1].verdict for panel in panels},
        "panels": panels,
        "origin": origin,
        "accepted": words.accepted(list(origin.accepted)),
    }


def _search(
    request: FigureRequest, panel: Panel, curves: pl.DataFrame, store: Store, beside: Sequence[FigureRequest]
) -> Iterator[str]:
    """Sentences on what a sweep found in a panel, with the fresh runs that the folder has; none for other figures."""
    if request.figure.name != sweeps.NAME or curves.filter(panel=panel.name, round=panel.rounds).is_empty():
        return
    there = set(curves.filter(panel=panel.name)["algorithm"])
    panel = replace(panel, algorithms=tuple(spec for spec in panel.algorithms if str(spec) in there))
    search = SettingsSearch(request.figure, request.seed, curves, tuple(choose(request.figure, panel, curves)))
    fresh, seed = tables.values(request.figure, curves.clear()), request.seed
    for other in beside:
        same = [p for p in other.figure.panels if (p.env, p.rounds) == (panel.env, panel.rounds)]
        if same and other.figure.x == "round" and sweeps.search_seed(other.seed) == request.seed:
            figure, seed = replace(other.figure, panels=tuple(same)), other.seed
            fresh = tables.values(figure, tables.curves(figure, store, seed=seed, codes=other.codes))
    yield from sweep_words.all_of(search, fresh, seed=seed)

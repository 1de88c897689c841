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
from dither_bench.define.panels import Figure, Panel, reference
from dither_bench.judge import sweep_words, tables, words
from dither_bench.judge.choices import Found, choose
from dither_bench.keep import asked, provenance
from dither_bench.keep.store import STORE, Store
from dither_bench.show import interactive, plots
from dither_bench.show.pictures import Look


def write(folder: str | Path, path: str | Path, *, band: str = "se", log: bool = False) -> Path:
    """The report of all that was asked for in a folder of results."""
    errors.among("band", band, words.BANDS)
    folder, path = Path(folder), Path(path)
    found = asked.figures(folder)
    if not found:
        raise ValueError(f"{folder} holds no results: make some with 'dither reproduce NAME --out {folder}'")
    store = Store(folder / STORE)
    made = (section(request, store, band=band, log=log, beside=found) for request in found)
    sections = [part for part in made if part is not None]
    if not sections:
        raise ValueError(f"{folder} holds no finished results yet: run the command that began them again")
    filters = {name: getattr(words, name) for name in ("number", "published", "with_error", "interval", "short")}
    plotly = template.plotly() if any(part["sketch"] for part in sections) else ""
    content: dict[str, Any] = dict(sections=sections, log=log, plotly=plotly)
    text = template.page("report.html.jinja", filters=filters, package="dither_bench.commands", **content)
    return files.text(path, text)


def section(
    request: asked.Request, store: Store, *, band: str, log: bool, beside: Sequence[asked.Request] = ()
) -> dict[str, Any] | None:
    """What the template shows of a figure; None where nothing is stored yet. beside : all requests of the folder"""
    whole, seed = request.figure, request.seed
    curves = tables.curves(whole, store, seed=seed, codes=request.codes)
    if curves.is_empty():
        return None
    sketch = interactive.sketch(whole, curves, band=band)
    picture = None if sketch else template.embedded(plots.draw(whole, curves, Look(band=band, log=log)))
    figure, values, differences = words.briefly(whole, tables.values(whole, curves), tables.differences(whole, curves))
    panels = [
        _panel(whole, wanted, panel, values, differences, seed=seed)
        | {"found": list(_found(request, wanted, curves, store, beside))}
        for wanted, panel in zip(whole.panels, figure.panels, strict=True)
    ]
    made = provenance.of(request, store)
    return {
        "figure": figure,
        "extra": [str(spec) for spec in figure.extra],
        "shows": words.SHOWS[figure.shows],
        "shared": words.shared(figure),
        "sketch": sketch,
        "picture": picture,
        "says": {panel["name"]: panel["tables"][-1]["verdict"] for panel in panels},
        "panels": panels,
        "made": made,
        "accepted": words.accepted(list(made.accepted)),
    }


def _panel(
    figure: Figure, asked: Panel, panel: Panel, values: pl.DataFrame, differences: pl.DataFrame, *, seed: int
) -> dict[str, Any]:
    """What the template shows of a panel. asked : with the names that were asked for; panel : with brief names."""
    constants = environments.kappas(panel.env, seed=seed)
    return {
        "name": panel.name,
        "setting": words.setting(panel.env),
        "constants": words.kappas(constants) if constants else "",
        "rounds": panel.rounds,
        "reference": str(reference(panel)),
        "tables": [_table(panel, t, values, differences) for t in published.ends(figure, asked)],
    }


def _found(
    request: asked.Request, panel: Panel, curves: pl.DataFrame, store: Store, beside: Sequence[asked.Request]
) -> Iterator[str]:
    """Sentences on what a sweep found in a panel, with the fresh runs that the folder has; none for other figures."""
    if request.figure.name != sweeps.NAME or curves.filter(panel=panel.name, round=panel.rounds).is_empty():
        return
    there = set(curves.filter(panel=panel.name)["algorithm"])
    panel = replace(panel, algorithms=tuple(spec for spec in panel.algorithms if str(spec) in there))
    found = Found(request.figure, request.seed, curves, tuple(choose(request.figure, panel, curves)))
    fresh, seed = tables.values(request.figure, curves.clear()), request.seed
    for other in beside:
        same = [p for p in other.figure.panels if (p.env, p.rounds) == (panel.env, panel.rounds)]
        if same and other.figure.x == "round" and sweeps.search_seed(other.seed) == request.seed:
            figure = replace(other.figure, panels=tuple(same))
            fresh, seed = (
                tables.values(figure, tables.curves(figure, store, seed=other.seed, codes=other.codes)),
                other.seed,
            )
    yield from sweep_words.all_of(found, fresh, seed=seed)


def _table(panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame) -> dict[str, Any]:
    """What the template shows of a panel at round t."""
    here = {"panel": panel.name, "round": t}
    gaps = {gap["algorithm"]: gap for gap in differences.filter(**here).iter_rows(named=True)}
    rows = [row | {"gap": gaps.get(row["algorithm"])} for row in values.filter(**here).iter_rows(named=True)]
    return {
        "round": t,
        "published": any(row["published"] is not None for row in rows),
        "rows": rows,
        "each": any(row["each"] for row in rows),
        "verdict": words.verdict(panel, t, values, differences),
        "of_each": words.of_each(values.filter(**here)),
        "collapsed": words.collapsed(values.filter(**here)),
        "not_reproduced": words.not_reproduced(panel, t, values, differences),
    }

"""One HTML file that needs no other: what was run, figures, tables, and what they say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dither import files
from dither.cli import template
from dither.experiments import asked, environments, plots, published, tables, words
from dither.experiments.cells import Cell, of_panel
from dither.experiments.panels import Figure, Panel, reference
from dither.experiments.run import STORE
from dither.experiments.store import Store


def write(folder: str | Path, path: str | Path, *, band: str = "se", log: bool = False) -> Path:
    """The report of all that was asked for in a folder of results."""
    folder, path = Path(folder), Path(path)
    found = asked.figures(folder)
    if not found:
        raise ValueError(f"{folder} holds no results: make some with 'dither reproduce NAME --out {folder}'")
    sections = [section(request, Store(folder / STORE), band=band, log=log) for request in found]
    if not any(part["picture"] for part in sections):
        raise ValueError(f"{folder} holds no finished results yet: run the command that began them again")
    sections = [part for part in sections if part["picture"]]
    filters = {name: getattr(words, name) for name in ("number", "published", "with_error", "interval", "short")}
    return files.text(path, template.page("report.html.jinja", filters=filters, sections=sections))


def section(request: asked.Request, store: Store, *, band: str, log: bool) -> dict[str, Any]:
    """What the template shows of a figure."""
    figure, seed = request.figure, request.seed
    curves = tables.curves(figure, store, seed=seed, codes=request.codes)
    whole, values, differences = figure, tables.values(figure, curves), tables.differences(figure, curves)
    picture = None if curves.is_empty() else template.embedded(plots.draw(figure, curves, band=band, log=log))
    figure, values, differences = words.briefly(whole, values, differences)
    return {
        "figure": figure,
        "extra": [str(spec) for spec in figure.extra],
        "seed": seed,
        "shows": words.SHOWS[figure.shows],
        "shared": words.shared(figure),
        "picture": picture,
        "panels": [
            _panel(whole, asked, panel, values, differences, seed=seed)
            for asked, panel in zip(whole.panels, figure.panels, strict=True)
        ],
        "algorithms": _configurations(request, store),
        "versions": _versions(request, store),
        "accepted": words.accepted(_accepted(request, store)),
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
        "reference": str(reference(panel.algorithms)),
        "tables": [_table(panel, t, values, differences) for t in published.ends(figure, asked)],
    }


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


def _stored(request: asked.Request, store: Store) -> Iterator[tuple[str, Cell, list[dict[str, Any]]]]:
    """Algorithm, cell, and what each of its files says, of every panel."""
    for panel in request.figure.panels:
        for name, cell in of_panel(panel, seed=request.seed).items():
            yield name, cell, store.about(cell, request.codes.get(cell.key))


def _configurations(request: asked.Request, store: Store) -> list[dict[str, str]]:
    """For each algorithm: the codes, and its model and policy in the first panel that has runs."""
    found: dict[str, dict[str, str]] = {}
    for name, cell, made in _stored(request, store):
        if made and name not in found:
            codes = dict.fromkeys(about["code"] or "not recorded" for about in made)
            configured = {k: made[0][k] for k in ("model", "policy")}
            found[name] = {"name": name, "preset": cell.algorithm.preset, "code": ", ".join(codes)} | configured
    return list(found.values())


def _versions(request: asked.Request, store: Store) -> list[str]:
    """The versions that made the results, each set once."""
    sets = {tuple(about["versions"].items()) for _, _, found in _stored(request, store) for about in found}
    return sorted(", ".join(f"{k} {v}" for k, v in versions) for versions in sets)


def _accepted(request: asked.Request, store: Store) -> list[str]:
    """The algorithms with runs of other code than that of the request."""
    own = {key: codes[0] for key, codes in request.codes.items()}
    found = [
        name
        for name, cell, abouts in _stored(request, store)
        if any(about["code"] != own.get(cell.key, about["code"]) for about in abouts)
    ]
    return list(dict.fromkeys(found))

"""One HTML file that stands alone: what was run, figures, tables, and what they say."""

import base64
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from dither import _version, files
from dither.experiments import asked, environments, plots, published, tables, words
from dither.experiments.cells import of_panel
from dither.experiments.panels import Figure, Panel, reference
from dither.experiments.run import STORE
from dither.experiments.store import Store


def write(folder: str | Path, path: str | Path, *, band: str = "se", log: bool = False) -> Path:
    """The report of all that was asked for in a folder of results."""
    folder, path = Path(folder), Path(path)
    found = asked.figures(folder)
    if not found:
        raise ValueError(f"{folder} holds no results: make some with 'dither reproduce NAME --out {folder}'")
    sections = [section(figure, Store(folder / STORE), seed=seed, band=band, log=log) for figure, seed in found]
    if not any(part["picture"] for part in sections):
        raise ValueError(f"{folder} holds no finished results yet: run the command that began them again")
    sections = [part for part in sections if part["picture"]]
    html = template().render(sections=sections, version=_version.__version__, now=datetime.now(UTC))
    files.replace(path, lambda file: file.write(html.encode()), parents=True)
    return path


def section(figure: Figure, store: Store, *, seed: int, band: str, log: bool) -> dict[str, Any]:
    """What the template shows of a figure."""
    curves = tables.curves(figure, store, seed=seed)
    whole, values, differences = figure, tables.values(figure, curves), tables.differences(figure, curves)
    picture = None if curves.is_empty() else plots.png(plots.draw(figure, curves, band=band, log=log))
    figure, values, differences = words.briefly(whole, values, differences)
    return {
        "figure": figure,
        "seed": seed,
        "shows": words.SHOWS[figure.shows],
        "shared": words.shared(figure),
        "error": words.error(figure),
        "picture": base64.b64encode(picture).decode() if picture else None,
        "panels": [
            _panel(whole, asked, panel, values, differences, seed=seed)
            for asked, panel in zip(whole.panels, figure.panels, strict=True)
        ],
        "algorithms": _configurations(whole, store, seed=seed),
        "versions": _versions(whole, store, seed=seed),
    }


def template() -> jinja2.Template:
    """The page."""
    env = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters |= {
        name: getattr(words, name) for name in ("number", "published", "with_error", "with_spread", "interval", "short")
    }
    return env.from_string(resources.files("dither.experiments").joinpath("report.html.jinja").read_text("utf-8"))


def _panel(
    figure: Figure, asked: Panel, panel: Panel, values: pl.DataFrame, differences: pl.DataFrame, *, seed: int
) -> dict[str, Any]:
    """What is known of a panel: as it was asked for, and with brief names as it is shown."""
    constants = environments.kappas(panel.env, seed=seed)
    return {
        "name": panel.name,
        "setting": words.setting(panel.env),
        "constants": words.kappas(constants) if constants else "",
        "rounds": panel.rounds,
        "reference": reference(panel.algorithms),
        "tables": [_table(panel, t, values, differences, sd=figure.each) for t in published.ends(figure, asked)],
    }


def _table(panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame, *, sd: bool) -> dict[str, Any]:
    """What is known of a panel at round t."""
    here = {"panel": panel.name, "round": t}
    gaps = {gap["algorithm"]: gap for gap in differences.filter(**here).iter_rows(named=True)}
    rows = [row | {"gap": gaps.get(row["algorithm"])} for row in values.filter(**here).iter_rows(named=True)]
    return {
        "round": t,
        "published": any(row["published"] is not None for row in rows),
        "lowest": min(rows, key=lambda row: row["regret"])["algorithm"] if rows else None,
        "rows": rows,
        "each": any(row["each"] for row in rows),
        "verdict": words.verdict(panel, t, values, differences, sd=sd),
        "of_each": words.of_each(values.filter(**here)),
        "collapsed": words.collapsed(values.filter(**here)),
        "not_reproduced": words.not_reproduced(panel, t, values, differences),
    }


def _configurations(figure: Figure, store: Store, *, seed: int) -> list[dict[str, str]]:
    """Algorithm -> model and policy as they were configured, the settings that panels differ in aside."""
    found: dict[str, dict[str, str]] = {}
    for panel in figure.panels:
        for name, cell in of_panel(panel, seed=seed).items():
            for about in store.about(cell)[:1]:
                found.setdefault(
                    name, {"name": name, "preset": cell.algorithm.preset} | {k: about[k] for k in ("model", "policy")}
                )
    return list(found.values())


def _versions(figure: Figure, store: Store, *, seed: int) -> list[str]:
    """The versions that made the results, each set once."""
    cells = (cell for panel in figure.panels for cell in of_panel(panel, seed=seed).values())
    sets = {tuple(about["versions"].items()) for cell in cells for about in store.about(cell)}
    return sorted(", ".join(f"{k} {v}" for k, v in versions) for versions in sets)

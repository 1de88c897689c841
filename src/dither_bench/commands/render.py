"""Figures in the terminal: what can be reproduced, the algorithms, and tables of results."""

from collections import Counter
from collections.abc import Callable, Iterable

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.base import errors
from dither.cli import inventory, terminal
from dither_bench.commands import analysis
from dither_bench.define import environments, published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, reference, without_shared
from dither_bench.judge import words
from dither_bench.judge.words import Section
from dither_bench.plan import costs

LINES = 12  # algorithms at most that the catalogue lists one by one
OF_PUBLISHED = ("published", "ratio", "value", "order")  # columns that are left out where nothing is published


def catalogue(console: Console) -> None:
    """What can be reproduced."""
    table = Table("name", "what", "panels", "algorithms", "runs", "cost", title="Figures", title_justify="left")
    for name, figure in FIGURES.items():
        cost = sum(costs.seconds(p, algorithms=p.algorithms, runs=figure.runs) for p in figure.panels)
        panels = [panel.name for panel in figure.panels]
        table.add_row(
            name,
            figure.title + _kappas(figure) + ("\n" + words.shared(figure) if figure.shared else ""),
            "\n".join(panels) if len(panels) < 7 else f"{panels[0]} ... {panels[-1]}",
            "\n".join(_algorithms(figure)),
            str(figure.runs),
            words.duration(cost),
        )
    console.print(table)
    console.print(
        "cost: one core, all panels and runs, roughly; --jobs, --panel and --runs bring it down\n"
        f"{', '.join(analysis.DRAWN)}: the paper's illustrations, drawn in seconds\n"
        "κ*: average μ' at the best arm of each panel, κ: smallest μ' for ‖θ‖ ≤ S, where the link is curved",
        highlight=False,
    )


def taxonomy(console: Console) -> None:
    """The algorithms by where they are random (paper, Table A.1 and more)."""
    listing = inventory.algorithms()
    table = terminal.table(listing.title)
    for name in listing.columns:
        table.add_column(name, no_wrap=name == listing.columns[0])
    for row in listing.rows:
        table.add_row(*map(Text, row))
    console.print(table)


def results(console: Console, figure: Figure, values: pl.DataFrame, differences: pl.DataFrame, *, seed: int) -> None:
    """A table for each panel and round that is looked at, and what it says."""
    terminal.headed(console, figure.title, f"{words.SHOWS[figure.shows]}, mean ± standard error")
    if figure.shared:
        console.print(words.shared(figure), highlight=False)
    brief, values, differences = words.briefly(figure, values, differences)
    for whole, panel in zip(figure.panels, brief.panels, strict=True):
        constants = words.kappas(environments.kappas(panel.env, seed=seed))
        for t in published.ends(figure, whole):
            section = words.section(panel, t, values, differences)
            table = _panel(section)
            table.caption = constants or None
            console.print(table)
            if section.each:
                console.print(_each(section.rows))
            terminal.said(console, filter(None, (section.verdict, section.of_each, section.collapsed)))
            _lines(console, "Not reproduced", section.not_reproduced)
            _lines(console, "Open", section.unsettled)
    # Those about some algorithms are reasons, told where they apply.
    _lines(console, "Note", [note.text for note in figure.notes if not note.algorithms])


def _lines(console: Console, head: str, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        console.print(f"{head}: {sentence}", highlight=False)


def _panel(section: Section) -> Table:
    """Published | ours | ratio | runs | difference. Without published values, their columns are left out."""
    base = str(reference(section.panel))

    def difference(row: dict) -> str:
        return words.interval(row["gap"]) if row["gap"] else "reference" if row["algorithm"] == base else "–"

    columns: dict[str, Callable[[dict], str]] = {
        "published": words.published,
        "ours": words.with_error,
        "ratio": lambda row: errors.DASH if row["ratio"] is None else f"{row['ratio']:.2f}",
        "value": lambda row: row["value"].partition(":")[0],  # a sentence says where the published error decides
        "runs": lambda row: str(row["runs"]),
        "difference [95 %]": difference,
        "order": lambda row: row["gap"]["order"] if row["gap"] else "–",
    }
    if not section.published:
        columns = {name: cell for name, cell in columns.items() if name not in OF_PUBLISHED}
    table = terminal.table(f"{section.panel.name}, round {section.round:,}")
    table.add_column("algorithm", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="left" if name in ("value", "order") else "right", no_wrap=True)
    for row in section.rows:
        table.add_row(row["algorithm"], *(cell(row) for cell in columns.values()))
    return table


def _each(rows: Iterable[dict]) -> Table:
    """A table with every run, and the preset of each algorithm."""
    table = terminal.table()
    for name in ("algorithm", "preset", "median", "sd"):
        table.add_column(name, justify="right" if name in ("median", "sd") else "left", no_wrap=True)
    table.add_column("each run")
    for row in rows:
        cells = (row["preset"], words.number(row["median"]), words.number(row["sd"]), row["each"])
        table.add_row(row["algorithm"], *cells)
    return table


def _kappas(figure: Figure) -> str:
    """κ* of each panel, and the different κ, of which most figures have only one."""
    constants = [k for k in (environments.kappas(panel.env, seed=0) for panel in figure.panels) if k]
    stars, least = ", ".join(f"{k.star:.2g}" for k in constants), dict.fromkeys(f"{k.least:.2g}" for k in constants)
    return f"\nκ* {stars}\nκ {', '.join(least)}" if constants else ""


def _algorithms(figure: Figure) -> list[str]:
    """A line for each algorithm, with brief names. If there are many, one line stands for all settings of one."""
    brief = [without_shared(spec, figure.shared) for spec in figure.algorithms]
    if len(brief) <= LINES:
        return [str(spec) for spec in brief]
    counts = Counter(spec.name for spec in brief)
    return [f"{base}, {n} settings" if n > 1 else base for base, n in counts.items()]

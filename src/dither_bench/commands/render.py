"""Figures in the terminal: what can be reproduced, the algorithms, and tables of results."""

from collections import Counter
from collections.abc import Callable

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli import inventory, terminal
from dither_bench.commands import analysis
from dither_bench.define import environments, published
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, Panel, reference, without_shared
from dither_bench.judge import words
from dither_bench.plan import costs

LINES = 12  # algorithms at most that the catalogue lists one by one


def catalogue(console: Console) -> None:
    """What can be reproduced."""
    table = Table("name", "what", "panels", "algorithms", "runs", "cost", title="Figures", title_justify="left")
    for name, figure in FIGURES.items():
        cost = sum(costs.seconds(p, algorithms=p.algorithms, runs=figure.runs) for p in figure.panels)
        table.add_row(
            name,
            figure.title + _kappas(figure) + ("\n" + words.shared(figure) if figure.shared else ""),
            "\n".join(p.name for p in figure.panels) if len(figure.panels) < 7 else _ends(figure),
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
    found = inventory.algorithms()
    table = terminal.table(found.title)
    for name in found.columns:
        table.add_column(name, no_wrap=name == found.columns[0])
    for row in found.rows:
        table.add_row(*map(Text, row))
    console.print(table)


def results(console: Console, figure: Figure, values: pl.DataFrame, differences: pl.DataFrame, *, seed: int) -> None:
    """A table for each panel and round that is looked at, and what it says."""
    terminal.headed(console, figure.title, f"{words.SHOWS[figure.shows]}, mean ± standard error")
    if figure.shared:
        console.print(words.shared(figure), highlight=False)
    brief, values, differences = words.briefly(figure, values, differences)
    for asked, panel in zip(figure.panels, brief.panels, strict=True):
        constants = environments.kappas(panel.env, seed=seed)
        for t in published.ends(figure, asked):
            here = {"panel": panel.name, "round": t}
            rows = values.filter(**here)
            table = _panel(panel, t, rows, differences.filter(**here))
            table.caption = words.kappas(constants) if constants else None
            console.print(table)
            if any(rows["each"]):
                console.print(_each(rows))
            verdict = words.verdict(panel, t, values, differences)
            terminal.said(console, filter(None, (verdict, words.of_each(rows), words.collapsed(rows))))
            for sentence in words.not_reproduced(panel, t, values, differences):
                console.print(f"Not reproduced: {sentence}", highlight=False)
    for note in figure.notes:
        if not note.algorithms:  # the others are reasons, told where they apply
            console.print(f"Note: {note.text}", highlight=False)


def _panel(panel: Panel, t: int, values: pl.DataFrame, differences: pl.DataFrame) -> Table:
    """Published | ours | ratio | runs | difference. Without published values, their columns are left out."""
    base, gaps = str(reference(panel)), {gap["algorithm"]: gap for gap in differences.iter_rows(named=True)}

    def difference(row: dict) -> str:
        gap = gaps.get(row["algorithm"])
        return words.interval(gap) if gap else "reference" if row["algorithm"] == base else "–"

    columns: dict[str, Callable[[dict], str]] = {
        "published": words.published,
        "ours": words.with_error,
        "ratio": lambda row: "–" if row["ratio"] is None else f"{row['ratio']:.2f}",
        "value": lambda row: row["value"],
        "runs": lambda row: str(row["runs"]),
        "difference [95 %]": difference,
        "order": lambda row: gaps[row["algorithm"]]["order"] if row["algorithm"] in gaps else "–",
    }
    if values["published"].null_count() == values.height:
        columns = {name: cell for name, cell in columns.items() if name not in ("published", "ratio", "value", "order")}
    table = terminal.table(f"{panel.name}, round {t:,}")
    table.add_column("algorithm", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="left" if name in ("value", "order") else "right", no_wrap=True)
    for row in values.iter_rows(named=True):
        table.add_row(row["algorithm"], *(cell(row) for cell in columns.values()))
    return table


def _each(values: pl.DataFrame) -> Table:
    """A table with every run, and the preset of each algorithm."""
    table = terminal.table()
    for name in ("algorithm", "preset", "median", "sd"):
        table.add_column(name, justify="right" if name in ("median", "sd") else "left", no_wrap=True)
    table.add_column("each run")
    for row in values.iter_rows(named=True):
        cells = (row["preset"], words.number(row["median"]), words.number(row["sd"]), row["each"])
        table.add_row(row["algorithm"], *cells)
    return table


def _kappas(figure: Figure) -> str:
    """κ* of each panel, and the different κ, of which most figures have only one."""
    found = [k for k in (environments.kappas(panel.env, seed=0) for panel in figure.panels) if k]
    stars, least = ", ".join(f"{k.star:.2g}" for k in found), dict.fromkeys(f"{k.least:.2g}" for k in found)
    return f"\nκ* {stars}\nκ {', '.join(least)}" if found else ""


def _algorithms(figure: Figure) -> list[str]:
    """A line for each algorithm, with brief names. If there are many, one line stands for all settings of one."""
    found = [without_shared(spec, figure.shared) for spec in figure.algorithms]
    if len(found) <= LINES:
        return [str(spec) for spec in found]
    counts = Counter(spec.name for spec in found)
    return [f"{base}, {n} settings" if n > 1 else base for base, n in counts.items()]


def _ends(figure: Figure) -> str:
    return f"{figure.panels[0].name} ... {figure.panels[-1].name}"

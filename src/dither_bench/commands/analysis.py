"""The command `dither theory`: parse the options, measure, show the result."""

from pathlib import Path
from typing import Annotated

import typer

from dither.cli import terminal

DRAWN = ("fig1", "fig2a")  # the paper's illustrations: drawn, not measured


def theory(
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="Run this part alone: coverage, optimism, width, slopes, curvature, fig1 or fig2a; may be repeated.",
            show_default="all",
        ),
    ] = None,
    more: Annotated[int, typer.Option(help="Multiply the number of runs of each part by this.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of all random streams.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the pictures, the table and the page.")] = Path("theory"),
) -> None:
    """Measure the paper's analysis and draw its figures 1 and 2a. Takes two minutes.

    Measured are coverage, the probability of optimism, widths, slopes and the effect of κ_*.
    """
    from dither_bench.theory import catalogue  # matplotlib takes a second to import

    names = catalogue.check(figure or (), more=more, seed=seed)
    parts = []
    with terminal.progress("theory") as tell:
        for i, name in enumerate(names):
            tell(i, len(names))
            parts.append(catalogue.measure(name, seed=seed, more=more))
        tell(len(names), len(names))
    console = terminal.console()
    for part in parts:
        table = terminal.table(part.title)
        for column in ("setting", "quantity"):
            table.add_column(column)
        for column in ("value", "theory"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in part.rows:
            table.add_row(row.setting, row.quantity, catalogue.number(row.value), catalogue.number(row.theory))
        console.print(table, markup=False)
        terminal.said(console, part.says)
    terminal.written(console, catalogue.write(parts, out))

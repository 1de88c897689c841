"""The commands of the figures that are known: `figures`, `reproduce`, `report`."""

from pathlib import Path
from typing import Annotated

import typer

from dither.cli import analysis, render, running, terminal
from dither.cli.options import Accept, Band, Block, Called, Formats, Jobs, Latex, Log, Out, Runs, Seed, Title, Width
from dither.experiments import figures, pictures
from dither.experiments.pictures import Look


def list_figures(
    table: Annotated[
        bool, typer.Option("--table", help="Instead, the algorithms: where each is random, and what is known of it.")
    ] = False,
) -> None:
    """List what can be reproduced, with the time it takes."""
    (render.taxonomy if table else render.catalogue)(terminal.console())


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Figures, as 'dither figures' lists them.")],
    runs: Runs = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    block: Block = None,
    out: Out = Path("results"),
    panel: Annotated[list[str] | None, typer.Option(help="Only this panel, for example d=10; may be repeated.")] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Only this one, or another, for example LinFP:c=0.3 or mine.py:BGE; may be repeated."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Another horizon.", show_default="the paper's")] = None,
    accept: Accept = False,
    band: Band = "se",
    log: Log = False,
    width: Width = None,
    title: Title = True,
    called: Called = "code",
    form: Formats = "png,pdf",
    latex: Latex = False,
) -> None:
    """Reproduce figures: what is missing is computed, then tables and plots are made. Interrupt and resume at will."""
    look = Look(band, log, width, title, called, pictures.formats(form), latex)
    drawn = [name for name in names if name in analysis.DRAWN]
    chosen = [
        figures.select(figures.find(name), panels=panel, algorithms=algorithm, rounds=rounds)
        for name in names
        if name not in drawn
    ]
    if drawn:
        analysis.theory(drawn, seed=seed, out=out / "theory")
    for figure in chosen:
        running.show(figure, seed=seed, out=out, look=look, runs=runs, jobs=jobs, block=block, accept=accept)


def write_report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    band: Band = "se",
    log: Log = False,
) -> None:
    """Write one HTML file with all figures and tables of a folder of results; it needs nothing beside it."""
    from dither.cli import report

    terminal.written(terminal.console(), [report.write(folder, output, band=band, log=log)])

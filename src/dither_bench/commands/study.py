"""The command `dither exact`: parse the options, run the study, show the result."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dither.base import files
from dither.cli import terminal

SHOWN = (10, 30, 100, 1000)  # n in the tables; the picture and exact.csv have more


def exact(
    logs: Annotated[int, typer.Option(help="Number of logs of each policy.")] = 300,
    rows: Annotated[int, typer.Option(help="Number of decisions in a log.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the world and of all random streams.")] = 0,
    draws: Annotated[int, typer.Option(help="Draws a context for the probabilities of Thompson sampling.")] = 200_000,
    repeats: Annotated[int, typer.Option(help="How often times are taken; the best one counts.")] = 15,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the tables.")] = Path("exact"),
) -> None:
    """Show what exact propensities buy. Takes one minute.

    IPS and DR are computed from logs of feature perturbation, which has exact propensities, and from logs of Thompson
    sampling, which has Monte Carlo ones, at equal cost.
    """
    from dither.base import drawing  # matplotlib takes a second to import
    from dither_bench import exact as experiment
    from dither_bench import exact_report

    lines: list[experiment.Line] = []
    here = experiment.world(seed)
    with terminal.progress("exact") as tell:
        probabilities, c = experiment.loggers(here, draws=draws)
        for i, case in enumerate(experiment.CASES):
            tell(i, len(experiment.CASES) + 1)
            lines += experiment.lines(case, probabilities, here=here, count=logs, rows=rows)
        tell(len(experiment.CASES), len(experiment.CASES) + 1)
        costs = exact_report.costs(seed=seed, repeats=repeats)
    text = [f"FP matched: c = {c:.3g}, at which FP earns what Thompson sampling does.\n"]
    for case in experiment.CASES:
        rules = ("exact", "smooth", "left out") + (experiment.FLOORED if case.floor else ())
        text.append(f"## {case.name}: {case.says}\n")
        text.append(exact_report.table(lines, case=case.name, rules=rules, draws=SHOWN))
    text += ["## Time of a decision, FP exact = 1\n", exact_report.costs_table(costs)]
    for size in exact_report.SIZES:
        n = exact_report.even(costs, size)
        text.append(
            f"K, d = {size[0]}, {size[1]}: in arithmetic alone, n = {n:.0f} draws cost what FP's exact one does.\n"
        )
    page = "\n".join(text)
    console = terminal.console()
    console.print(page, markup=False, highlight=False)
    paths = [
        drawing.save(exact_report.draw(lines, costs), out / "exact.png", dpi=exact_report.DPI),
        files.text(out / "exact.md", page),
        files.text(out / "exact.csv", _csv([experiment.Line._fields, *lines])),
    ]
    terminal.written(console, paths)


def _csv(rows: Sequence[Sequence[object]]) -> str:
    table = io.StringIO()
    csv.writer(table).writerows(rows)
    return table.getvalue()

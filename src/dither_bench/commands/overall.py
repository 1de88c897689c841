"""Several figures at once: a plan first, then one display over all of them."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from dither.base import errors
from dither.base.workers import Workers
from dither.cli import terminal
from dither_bench.commands import analysis
from dither_bench.define import figures
from dither_bench.define.panels import Figure
from dither_bench.judge import words
from dither_bench.plan import calibration, plan
from dither_bench.plan.calibration import Speeds
from dither_bench.plan.plan import FigurePlan
from dither_bench.run import run

ALL = "all"  # the name that stands for every figure
MERGE = "put the parts together with 'dither results merge', and run the command without --shard for tables and plots"


def named(names: Iterable[str], *, without: Iterable[str]) -> list[str]:
    """The figures that are meant: each once, "all" for all that are known, and none of those to be left out."""
    every = [*analysis.DRAWN, *figures.FIGURES]
    for name in without:
        errors.among("figure", name, every)
    meant = [each for name in names for each in (every if name == ALL else [name])]
    left = [name for name in dict.fromkeys(meant) if name not in set(without)]
    if not left:
        raise ValueError("no figure is left: name one that --without does not leave out")
    return left


def possible(chosen: Iterable[Figure]) -> list[Figure]:
    """The figures that can run here. The others are said with the reason: their data, or torch, are not here."""
    able, aside = [], terminal.console(stderr=True)
    for figure in chosen:
        try:
            figures.check(figure)
        except (OSError, ImportError) as reason:
            terminal.said(aside, [f"{figure.name} is left out: {' '.join(str(reason).split())}"])
        else:
            able.append(figure)
    return able


def compute(chosen: Sequence[Figure], *, out: Path, workers: Workers, stop: bool, **how: Any) -> None:
    """Show the plan of these figures; unless it is to stop there, compute what is missing under one display.

    how : runs, seed, block, accept and shard, as `plan.of_figures` takes them
    """
    parts = plan.of_figures(chosen, out=out, jobs=run.blocks_for(workers), **how)
    console, aside = terminal.console(), terminal.console(stderr=True)
    terminal.said(aside, (sentence for part in parts for sentence in part.of_codes))
    with terminal.progress("calibration") as tell:
        speeds = calibration.measure((block for part in parts for block in part.blocks), workers, tell=tell)
    _show(console, parts, speeds, workers)
    if stop:
        return
    start = time.monotonic()
    with terminal.progresses([part.figure.name for part in parts]) as show:
        blocks = run.compute(parts, out=out, workers=workers, seconds=speeds.seconds, on_progress=show)
    if blocks:
        terminal.said(console, [f"Computed {blocks} blocks in {words.duration(time.monotonic() - start)}."])


def _show(console: Console, parts: Sequence[FigurePlan], speeds: Speeds, workers: Workers) -> None:
    """A line for each figure: its panels, the runs that are stored and that are missing, and the time of these."""
    table = terminal.table("Plan")
    for name in ("figure", "panels", "runs there", "missing", "time of one core"):
        table.add_column(name, justify="left" if name == "figure" else "right", no_wrap=True)

    def line(name: str, those: Sequence[FigurePlan]) -> None:
        counts = ((len(part.figure.panels), part.there, part.lacking) for part in those)
        panels, there, lacking = map(sum, zip(*counts, strict=True))
        cost = words.duration(sum(seconds(those))) if lacking else "–"
        table.add_row(name, str(panels), f"{there:,}", f"{lacking:,}", cost)

    def seconds(those: Sequence[FigurePlan]) -> list[float]:
        return [speeds.seconds(block) for part in those for block in part.blocks]

    for part in parts:
        line(part.figure.name, [part])
    line("all of these", parts)
    console.print(table)
    each = seconds(parts)
    says = [
        "Runs are counted for each algorithm of each panel. Long times are estimated from short runs, made just now."
    ]
    if each and workers.cluster is None:
        says.append(f"With --jobs {workers.jobs}: about {words.duration(max(sum(each) / workers.jobs, *each))}.")
    terminal.said(console, says)

"""The commands of the figures that are known: `figures`, `reproduce`, `report`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dither.base import errors
from dither.cli import terminal
from dither.cli.app import expanded
from dither_bench.commands import analysis, overall, render, running
from dither_bench.commands.options import Computing, DrawnBy, Framing, Reference, Showing, Storing, keeping
from dither_bench.define import figures
from dither_bench.define.panels import Figure
from dither_bench.plan.plan import Shard


def list_figures(
    table: Annotated[
        bool, typer.Option("--table", help="Instead, the algorithms: where each is random, and what is known of it.")
    ] = False,
) -> None:
    """List what can be reproduced, with the time it takes."""
    (render.taxonomy if table else render.catalogue)(terminal.console())


@dataclass(frozen=True)
class FigureSelection:
    """Which part of the figures is run."""

    panel: Annotated[list[str] | None, typer.Option(help="Only this panel, for example d=10; may be repeated.")] = None
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Only this one, or another, for example LinFP:c=0.3 or mine.py:BGE; may be repeated."),
    ] = None
    rounds: Annotated[int | None, typer.Option(help="Another horizon.", show_default="the paper's")] = None

    def of(self, figure: Figure) -> Figure:
        """That part."""
        return figures.select(figure, panels=self.panel, algorithms=self.algorithm, rounds=self.rounds)


@expanded
@keeping
def reproduce(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Figures, as 'dither figures' lists them; or all.")
    ],
    without: Annotated[
        list[str] | None, typer.Option(help="Leave out this figure; may be repeated.", show_default=False)
    ] = None,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Show what is there, what is missing and the time it takes; then stop.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="Runs of each algorithm; what is stored counts.", show_default="the figure's")
    ] = None,
    computing: Computing,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Compute the K-th of N parts alone; the others are for other machines.",
            show_default=False,
        ),
    ] = None,
    storing: Storing,
    selection: FigureSelection,
    reference: Reference = None,
    drawn_by: DrawnBy,
    showing: Showing,
) -> None:
    """Reproduce figures: what is missing is computed, then tables and plots are made. Interrupt and resume at will.

    Several figures, or all, show a plan first.
    """
    look, meant, workers = showing.look, overall.named(names, without=without or ()), computing.workers
    part = None if shard is None else Shard.parse(shard)
    drawn = [name for name in meant if name in analysis.DRAWN]
    measured = [figures.find(name) for name in meant if name not in drawn]
    chosen = [selection.of(figure) for figure in measured]
    if overall.ALL in names:
        chosen = overall.possible(chosen)
    if drawn and not chosen:
        of_panels: dict[str, Any] = dict(vars(selection), runs=runs)
        of_panels |= dict(block=storing.block, reference=reference, latex=look.latex, profile=look.profile)
        _refuse_options(drawn, of_panels)
    chosen = [drawn_by.of(figure) for figure in chosen]
    if reference is not None:
        chosen = [figures.against(figure, reference) for figure in chosen]
    out = storing.out
    how: dict[str, Any] = dict(out=out, seed=computing.seed, runs=runs, block=storing.block, accept=showing.accept)
    if chosen and (only_plan or part is not None or len(chosen) > 1):
        overall.compute(chosen, workers=workers, stop=only_plan, shard=part, **how)
    if only_plan:
        return
    if drawn and (part is None or part.number == 1):
        analysis.theory(drawn, seed=computing.seed, out=out / "theory")
    if part is not None and part.of > 1:
        terminal.said(terminal.console(), [f"Part {shard} is in {out}: {overall.MERGE}"])
        return
    for figure in chosen:
        running.show(figure, look=look, earlier=showing.earlier, **computing.how, **how)


def _refuse_options(drawn: Sequence[str], of_panels: Mapping[str, Any]) -> None:
    """Refuse options of panels where figures of the analysis alone are meant."""
    if unread := [name for name, value in of_panels.items() if value]:
        raise ValueError(
            f"{errors.listed(drawn)} shows the analysis and has no panels of algorithms: leave out --{unread[0]}"
        )


@expanded
def write_report(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path("report.html"),
    framing: Framing,
) -> None:
    """Write one HTML file with all figures and tables of a folder of results; it needs nothing beside it."""
    from dither_bench.commands import report

    terminal.written(terminal.console(), [report.write(folder, output, **framing.framed)])

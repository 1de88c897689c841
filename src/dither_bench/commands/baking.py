"""The command `bakeoff`."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dither.base import errors
from dither.cli import terminal
from dither.cli.app import expanded
from dither_bench import bakeoff as bake
from dither_bench.commands import robustness, running
from dither_bench.commands.options import Computing, Reference, Showing, Storing, keeping
from dither_bench.define import bake_sets, others
from dither_bench.define.panels import Figure
from dither_bench.define.panels import reference as base_of
from dither_bench.judge import duel_words, duels, words
from dither_bench.judge.set_losses import SetLosses
from dither_bench.keep import asked
from dither_bench.run import run

USUAL = ("LinFP", "LinUCB", "LinTS", "RandLinUCB", "Greedy", "EpsGreedy", "Softmax", "SquareCB")


@dataclass(frozen=True)
class SetChoice:
    """Which sets are played, and how much of each."""

    sets: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help=f"Sets: {errors.either(bake_sets.BUNDLED)}, names of the folder or of 'dither datasets', FILE.npz, "
            "openml:ID, keel:NAME.",
            show_default="those of scikit-learn, and those of the folder",
        ),
    ] = None
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of .npz files with X and y.", show_default=f"{bake_sets.FOLDER}/ in DITHER_DATA"),
    ] = None
    rounds: Annotated[int, typer.Option(help="At most so many rounds of a shuffled pass; 0: the whole pass.")] = 1500
    levels: Annotated[int, typer.Option(help="Arms of a set of numbers: quantiles of the numbers.")] = 10
    pays: Annotated[
        str, typer.Option(help=f"What a level of a set of numbers pays: {errors.either(bake_sets.PAYMENTS)}.")
    ] = "distance"

    @property
    def how(self) -> dict[str, Any]:
        """As `bakeoff.baking` takes them."""
        names = None if self.sets is None else [name.strip() for name in self.sets.split(",") if name.strip()]
        settings: dict[str, Any] = dict(folder=self.folder, levels=self.levels, pays=self.pays)
        return {"sets": names, "rounds": self.rounds or None} | settings


@dataclass(frozen=True)
class OtherChoice:
    """Which other libraries play, and where they are."""

    other: Annotated[
        list[str] | None,
        typer.Option(
            "--others",
            metavar="A,B",
            help=f"Other libraries: {errors.either(others.USUAL)}; or NAME:setting=value,...; may be repeated.",
            show_default=False,
        ),
    ] = None
    python: Annotated[str, typer.Option(help="The interpreter that has these libraries.", show_default="this one")] = (
        sys.executable
    )


@expanded
@keeping
def bakeoff(
    *,
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ALGORITHM...",
            help="NAME, NAME:setting=value,... or 'NAME:setting=value|value'; FILE.py:NAME for one of your own.",
            show_default=" ".join(USUAL),
        ),
    ] = None,
    chosen: SetChoice,
    shuffles: Annotated[int, typer.Option(help="Shuffled passes over each set; what is stored counts.")] = 4,
    elsewhere: OtherChoice,
    reference: Reference = None,
    computing: Computing,
    storing: Storing,
    showing: Showing,
) -> None:
    """Play real data sets as bandits, and say who is significantly better on how many: a bake-off."""
    of_others = others.others(elsewhere.other or (), python=elsewhere.python)
    every = [*(algorithms or USUAL), *of_others]
    figure = bake.baking(every, shuffles=shuffles, reference=reference, **chosen.how)
    show(figure, showing, out=storing.out, seed=computing.seed, block=storing.block, **computing.how)


def show(figure: Figure, showing: Showing, *, out: Path, seed: int, **how: Any) -> None:
    """Compute what is missing; show the tables; write the files. how : as `run.reproduce` takes it"""
    from dither_bench.judge import set_losses
    from dither_bench.show import bake_files, outputs  # matplotlib takes a second to import

    look, console = showing.look, terminal.console()
    look.called(figure, look.names)
    with running.watched(figure.name) as (telling, of_codes):
        run.reproduce(figure, out=out, seed=seed, accept=showing.accept, **telling, **how)
    (whole,) = asked.figures(out, only=figure.name, seed=seed)
    profiled = replace(look, profile=True)
    written = outputs.write(whole if showing.earlier else replace(whole, figure=figure), out, look=profiled)
    losses = set_losses.of_curves(figure, written.curves)
    base = str(base_of(figure.panels[0]))
    terminal.headed(console, figure.title, *_heads(losses, seed))
    console.print(_table(losses, base))
    console.print(_matrix(losses))
    if not written.no_profile:
        robustness.show(console, figure, written.curves)
    terminal.said(console, filter(None, [*duel_words.sentences(losses, base), written.no_profile, *of_codes]))
    terminal.written(console, [*bake_files.write(figure, losses, out, look), *written.paths])


def _heads(losses: SetLosses, seed: int) -> list[str]:
    rounds = words.spread(losses.rounds.tolist())
    return [
        f"{len(losses.sets)} sets, {losses.shuffles} shuffled passes of {rounds} rounds, seed {seed}",
        "loss: mean over the sets; normalised: 0 the best of a set, 1 uniform play; ratio: to the lowest of a set",
    ]


def _table(losses: SetLosses, base: str) -> Table:
    """A row an algorithm, the best ratio first."""
    numbers = ["loss", "normalised", "ratio", "largest", "better–worse", "t: lower–higher", "median"]
    table = terminal.table(
        f"better, worse and lower, higher: sets, against {base}", texts=["algorithm"], numbers=numbers
    )
    for row in losses.table().sort("ratio", maintain_order=True).iter_rows(named=True):
        name = row["algorithm"]
        cells = [f"{row['loss']:.4f}", f"{row['normalised']:.3f}", f"{row['ratio']:.3f}", f"{row['largest']:.2f}"]
        against = ["reference", "", ""]
        if name != base:
            duel, size = duels.duel(losses, name, base), duels.sizes(losses, name, base)
            against = [f"{duel.wins}–{duel.losses}", f"{size.lower}–{size.higher}", f"{100 * size.median:+.1f} %"]
        table.add_row(name, *cells, *against)
    return table


def _matrix(losses: SetLosses) -> Table:
    """On how many sets the row is significantly better than the column, which has the number of a row."""
    heads = [str(i + 1) for i in range(len(losses.algorithms))]
    table = terminal.table("better than the numbered one, on so many sets", texts=["", "algorithm"])
    for head in heads:
        table.add_column(head, justify="right")
    for i, counts in enumerate(duels.matrix(losses)):
        cells = [errors.DASH if i == j else str(count) for j, count in enumerate(counts)]
        table.add_row(heads[i], losses.algorithms[i], *cells)
    return table

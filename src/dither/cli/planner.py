"""The command `dither plan`: parse the options, call `dither.ope.plan`, show what it found."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dither.cli.app import expanded
from dither.cli.evaluate import in_words_of_the_command, typed
from dither.cli.log_options import Given, LogReading
from dither.log import sources
from dither.ope import planning


@dataclass(frozen=True)
class RewardsToPlan:
    """What is known of the rewards, where a log does not say it."""

    rate: Annotated[float | None, Given(help="Mean of rewards of 0 or 1, such as clicks.")] = None
    spread: Annotated[float | None, Given(help="Standard deviation of other rewards.")] = None
    loss: Annotated[float | None, Given(help="Reward that a uniform choice costs.")] = None
    explained: Annotated[
        float, typer.Option(help="Share of the variance of rewards that a reward model explains, for dr.")
    ] = 0.0


@dataclass(frozen=True)
class Sureness:
    """How sure the answer is to be."""

    power: Annotated[float, typer.Option(help="Probability of telling the two apart.")] = 0.8
    level: Annotated[float, typer.Option(help="Level of the interval of the difference.")] = 0.95


@expanded
def plan(
    *,
    difference: Annotated[float, Given(help="What is to be told apart, in reward a decision.")],
    log: Annotated[
        str | None,
        Given("--from", metavar="LOG", help="A log or a ledger, which says arms, spread and loss that are not given."),
    ] = None,
    world: RewardsToPlan,
    floor: Annotated[
        list[float] | None,
        typer.Option(
            help="Share of uniform choices; may be repeated.", show_default=", ".join(f"{f:g}" for f in planning.FLOORS)
        ),
    ] = None,
    differs: Annotated[
        float, typer.Option(help="Share of requests in which a judged policy shows another arm than the one that runs.")
    ] = 1.0,
    how: Sureness,
    reading: LogReading,
) -> None:
    """Say how many decisions, at which floor, tell two policies apart: before a log is written, or from a first one."""
    from dither.cli import terminal

    logged = None
    with in_words_of_the_command():
        if log is not None:
            logged = sources.LogSource(log, **reading.source).whole({"K", "arms"}).usable(**reading.usable)
        planned = planning.plan(
            logged, difference=difference, arms=reading.arms, floors=floor or planning.FLOORS, differs=differs,
            **vars(world), **vars(how),
        )  # fmt: skip
    console = terminal.console()
    console.print(_table(planned))
    terminal.said(console, map(typed, planned.parts))


def _table(planned: planning.Plan) -> Any:
    from dither.cli import terminal

    table = terminal.table(
        f"Decisions that tell a difference of {planned.difference:g} a decision",
        texts=["difference"],
        numbers=["floor", "decisions", "uniform decisions", "reward given up"],
    )
    for floor, kind, *numbers in planned.cells():
        table.add_row(kind, floor, *numbers)
    return table

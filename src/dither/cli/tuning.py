"""The command `dither tune`: parse the options, call `dither.ope.tune`, show what it found."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dither import envs
from dither.base import files
from dither.cli.app import expanded
from dither.cli.evaluate import in_words_of_the_command
from dither.cli.log_options import Given, LogPath, LogReading
from dither.log import sources
from dither.ope import tuning


@dataclass(frozen=True)
class TuningInterval:
    """The estimator, and what its intervals are."""

    estimator: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(tuning.ESTIMATORS)}, with normal intervals.",
            show_default="dr; ips with anytime intervals where the policy that ran learnt",
        ),
    ] = None
    level: Annotated[float, typer.Option(help="Level of all intervals.")] = 0.95
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Bounds of rewards, for anytime.", show_default="what the log knows: 0 1 for a logistic link"
        ),
    ] = None


@dataclass(frozen=True)
class Saving:
    """Where the chosen bandit is written."""

    save: Annotated[
        Path | None, Given(help="File for the chosen bandit, as it was judged, if settings can be told apart.")
    ] = None
    save_tied: Annotated[bool, typer.Option("--save-tied", help="Save it also where nothing is told apart.")] = False


@expanded
def tune(
    log: LogPath,
    algorithm: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...", help="What to try: 'LinFP:c=0.3|1|3,lam=0.1|1' (in quotes), Greedy, mine.py:BGE."
        ),
    ],
    *,
    learn: Annotated[float, typer.Option(help="Share of the rows that teach.")] = 0.5,
    choose: Annotated[float, typer.Option(help="Share of the rows that choose; the others report.")] = 0.25,
    how: TuningInterval,
    floor: Annotated[float, typer.Option(help="Share of uniform choices of the bandit.")] = 0.0,
    slots: Annotated[int | None, Given(help="Number of disjoint slots, for a log of one context a row.")] = None,
    loss: Annotated[
        float | None,
        typer.Option(
            help="Reward of a decision that one gives up for exploring.", show_default="5 % of the highest estimate"
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Monte Carlo draws a row for policies that need them.")] = 1000,
    reading: LogReading,
    saving: Saving,
) -> None:
    """Choose the settings of a bandit from a log: some rows teach, the next choose, and the last report."""
    from dither.cli import terminal

    if saving.save is not None:
        files.inside(saving.save)
    rules = reading.usable
    _no_world(log)
    with in_words_of_the_command():
        logged = sources.LogSource(log, **reading.source).whole({"features", "K", "arms"})
        tuned = tuning.tune(
            logged, algorithm, learn=learn, choose=choose, floor=floor, slots=slots, loss=loss,
            draws=draws, **vars(how), **rules,
        )  # fmt: skip
    console = terminal.console()
    console.print(_table(tuned))
    terminal.said(console, tuned.says)
    if saving.save is not None and not (tuned.told or saving.save_tied):
        terminal.said(
            console, [f"Nothing is saved to {saving.save}, as nothing was told apart: ask for it with --save-tied."]
        )
    elif saving.save is not None:
        tuned.bandit.save(saving.save)
        terminal.written(console, [saving.save])


def _no_world(log: str) -> None:
    """Say how a setting is chosen in simulation, where an environment stands in place of a log."""
    if log in {name.lower() for name in envs.__all__} and not Path(log).exists():
        raise FileNotFoundError(
            f"no log at {log}. It is an environment: settings are chosen in simulation by dither compare --env {log} "
            "'LinFP:c=0.3|1', or by dither.experiments.tune"
        )


def _table(tuned: tuning.Tuned) -> Any:
    from dither.cli import terminal

    learnt, judged, _ = tuned.rows
    names = ("to the best, all at once", "arms shown, in effect", "effective rows")
    table = terminal.table(
        f"Reward a decision, learnt on {learnt:,} rows and judged on the next {judged:,}",
        texts=["setting"],
        numbers=[f"{tuned.tried[0].estimate.level:.0%} interval", *names],
    )
    for one in tuned.tried:
        gap = "highest" if one.spec == tuned.best else tuning.in_ends(one.gap, sign="+")
        value = tuning.in_ends(one.estimate)
        table.add_row(str(one.spec), value, gap, f"{one.explores:.2f}", f"{one.estimate.ess:,.0f}")
    return table

"""The command `dither tune`: parse the options, call `dither.ope.tune`, show what it found."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dither import envs
from dither.base import files
from dither.cli.evaluate import Given, in_words_of_the_command, missing_reward, options, rule
from dither.log import sources
from dither.ope import tuning


def tune(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV file, or a folder of Parquet parts.")],
    algorithm: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...", help="What to try: 'LinFP:c=0.3|1|3,lam=0.1|1' (in quotes), Greedy, mine.py:BGE."
        ),
    ],
    learn: Annotated[float, typer.Option(help="Share of the rows that teach.")] = 0.5,
    choose: Annotated[float, typer.Option(help="Share of the rows that choose; the others report.")] = 0.25,
    estimator: Annotated[str, typer.Option(help=f"{', '.join(tuning.ESTIMATORS)}.")] = "dr",
    floor: Annotated[float, typer.Option(help="Share of uniform choices of the bandit.")] = 0.0,
    slots: Annotated[int | None, Given(help="Number of disjoint slots, for a log of one context a row.")] = None,
    loss: Annotated[
        float | None,
        typer.Option(
            help="Reward of a decision that one gives up for exploring.", show_default="5 % of the highest estimate"
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of all intervals.")] = 0.95,
    draws: Annotated[int, typer.Option(help="Monte Carlo draws a row for policies that need them.")] = 1000,
    format: Annotated[str, typer.Option(help="Format of the log, as dither evaluate takes it.")] = "dither",
    option: Annotated[
        list[str] | None, Given("--with", metavar="NAME=VALUE", help="An option of the format; may be repeated.")
    ] = None,
    arm: Annotated[str | None, Given(help="Column of the arm shown, if not arm.")] = None,
    propensity: Annotated[str | None, Given(help="Column of its probability, if not propensity.")] = None,
    reward: Annotated[str | None, Given(help="Column of the reward, if not reward.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of the propensities, for a table without propensity_kind: exact, monte_carlo or estimated.",
            show_default="exact",
        ),
    ] = None,
    arms: Annotated[int | None, Given(help="Number of arms, where the log does not say it.")] = None,
    missing: Annotated[
        str, typer.Option(help="Rows without a reward: error, leave-out, or the number to take for it.")
    ] = "error",
    invalid: Annotated[str, typer.Option(help="Rows with impossible values: error or leave-out.")] = "error",
    duplicates: Annotated[str, typer.Option(help="Rows with the id of an earlier row: error or leave-out.")] = "error",
    save: Annotated[Path | None, Given(help="File for the chosen bandit, as it was judged.")] = None,
) -> None:
    """Choose the settings of a bandit from a log: some rows teach, the next choose, and the last report."""
    from dither.cli import terminal

    if save is not None:
        files.inside(save)
    names: dict[str, Any] = {"arm": arm, "propensity": propensity, "reward": reward, "kind": kind, "arms": arms}
    asked: dict[str, Any] = dict(
        learn=learn, choose=choose, estimator=estimator, floor=floor, slots=slots, loss=loss, level=level, draws=draws,
        missing=missing_reward(missing), invalid=rule("invalid", invalid), duplicates=rule("duplicates", duplicates),
    )  # fmt: skip
    _no_world(log)
    with in_words_of_the_command():
        source = sources.LogSource(log, format=format, options=options(option or []), **names)
        found = tuning.tune(source.whole({"features", "K", "arms"}), algorithm, **asked)
    console = terminal.console()
    console.print(_table(found))
    terminal.said(console, found.says)
    if save is not None:
        found.bandit.save(save)
        terminal.written(console, [save])


def _no_world(log: Path) -> None:
    """Say how a setting is chosen in simulation, where an environment stands in place of a log."""
    if str(log) in {name.lower() for name in envs.__all__} and not log.exists():
        raise FileNotFoundError(
            f"no log at {log}. It is an environment: settings are chosen in simulation by dither compare --env {log} "
            "'LinFP:c=0.3|1', or by dither.experiments.tune"
        )


def _table(found: tuning.Tuned) -> Any:
    from dither.cli import terminal

    learnt, judged, _ = found.rows
    level = f"{found.tried[0].found.level:.0%}"
    table = terminal.table(f"Reward a decision, learnt on {learnt:,} rows and judged on the next {judged:,}")
    table.add_column("setting", no_wrap=True)
    for name in (f"{level} interval", "to the best, all at once", "arms shown, in effect", "effective rows"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.tried:
        low, high = one.found.interval
        gap = "highest" if one.spec == found.best else _interval(one.gap.value, *one.gap.interval, sign="+")
        value = _interval(one.found.value, low, high)
        table.add_row(str(one.spec), value, gap, f"{one.explores:.2f}", f"{one.found.ess:,.0f}")
    return table


def _interval(value: float, low: float, high: float, *, sign: str = "") -> str:
    return f"{value:{sign}.4g} [{low:{sign}.4g}, {high:{sign}.4g}]"

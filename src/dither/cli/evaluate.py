"""The command `dither evaluate`: parse the options, call `dither.ope.evaluate`, show what it found."""

import inspect
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dither import ope
from dither.base import files
from dither.base.errors import Option, Refused
from dither.cli import inventory, placing
from dither.cli.app import expanded
from dither.cli.computing import Backend, Scheduler
from dither.cli.log_options import Given, LogPath, LogReading
from dither.log import address, reader, sources
from dither.ope.candidates import LOGGING

WORDS = {"estimators": "--estimator", "policies": "--policy", "options": "--with"}  # others are --name
WORDS |= {name: f"--{name}" for name in ("loss", "rate", "spread")}  # of `dither plan`


@dataclass(frozen=True)
class EvaluatedReading(LogReading):
    """How the log is read. Missing rewards may be anything in a range, too."""

    missing: Annotated[
        str,
        typer.Option(
            help="Rows without a reward: error, leave-out, a number to take for it, or bounds (any in --reward-range)."
        ),
    ] = "error"


@dataclass(frozen=True)
class IntervalChoice:
    """Which interval, and what it must know."""

    interval: Annotated[
        str | None,
        typer.Option(
            help=f"Kind of interval: {inventory.intervals()}.",
            show_default="normal; anytime for ips where the policy that ran learnt",
        ),
    ] = None
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Bounds of rewards and predictions, for anytime, bernstein and betting.",
            show_default="what the log knows: 0 1 for a logistic link",
        ),
    ] = None
    weight_max: Annotated[
        float | None, Given(help="Bound of the weights, such as K/floor, for bernstein and betting.")
    ] = None
    row_weight_max: Annotated[
        float | None, Given(help="Bound of the column weight of a thinned log, for bernstein and betting.")
    ] = None


@dataclass(frozen=True)
class Times:
    """What is asked about time."""

    horizon: Annotated[
        str | None,
        Given(help="How long after a decision a reward counts, such as 7d, 12h or 90s; needs --missing NUMBER."),
    ] = None
    late: Annotated[
        str, typer.Option(help="Decisions whose horizon has not passed: settled (leave them out) or weighted.")
    ] = "settled"
    now: Annotated[str | None, typer.Option(help="When the log was read.", show_default="the latest time in it")] = None
    half_life: Annotated[str | None, Given(help="Value now: a row that is older by this, such as 7d, counts half.")] = (
        None
    )
    window: Annotated[str | None, Given(help="Value now: by the rows of this last time, such as 7d.")] = None
    at: Annotated[
        str | None, typer.Option(help="The time that these two look back from.", show_default="the latest decision")
    ] = None
    by: Annotated[
        str | None,
        Given(help="Value of each period too: hour, day, week, month, year, or a column; and if it changed."),
    ] = None


@dataclass(frozen=True)
class Summing:
    """Who sums up the pieces."""

    jobs: Annotated[int, typer.Option(help="Number of threads, or of processes where a policy is a saved bandit.")] = 1
    backend: Backend = "loky"
    scheduler: Scheduler = None


@expanded
def evaluate(
    log: LogPath,
    *,
    policy: Annotated[
        list[str] | None,
        Given(
            help="uniform, logging, arm:NAME, column:NAME (lists with the probabilities of all arms, or the "
            "probability of the arm shown), column:q,g, FILE.npz (a saved bandit) or greedy:FILE.npz; may be repeated."
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{inventory.estimators()}; may be repeated. The first one gives the verdict.",
            show_default="dr (with predictions), snips, ips; ips first where the policy learnt",
        ),
    ] = None,
    how: IntervalChoice,
    cluster: Annotated[
        str | None, Given(help="Column, such as user. Rows with the same value may depend on each other.")
    ] = None,
    predictions: Annotated[
        str | None, Given(help="Column of reward predictions: lists for all arms, or numbers for the arm shown.")
    ] = None,
    model: Annotated[str | None, Given(help="Predict rewards, cross-fitted in memory: ridge or gbm.")] = None,
    reading: EvaluatedReading,
    times: Times,
    draws: Annotated[int, typer.Option(help="Monte Carlo draws a row for saved bandits that need them.")] = 1000,
    out: Annotated[Path | None, Given(help="Folder for the tables and the picture.")] = None,
    html: Annotated[Path | None, Given(help="File for an HTML page that needs no other file.")] = None,
    summing: Summing,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of the models.")] = 0,
) -> None:
    """Say from a log what other policies would have earned: estimates, intervals, and a verdict in plain words."""
    from dither.cli import answers, page  # polars and matplotlib take a second to import
    from dither.cli.terminal import console, progress, written

    if not policy:
        raise ValueError(f"no policy to evaluate: give at least one --policy, such as --policy uniform or {LOGGING}")
    placing.fits(out=out, html=html)
    shown = address.of(log).shown if reader.is_ledger(log) else log  # without secrets
    settings = reading.usable | reading.source | vars(how) | vars(times) | vars(summing)
    with warnings.catch_warnings(), in_words_of_the_command():
        warnings.simplefilter("ignore", RuntimeWarning)  # from NumPy; the notes say what was wrong
        with progress("evaluate") as tell:

            def show(done: int, rows: int) -> None:
                if rows > sources.ROWS and sys.stderr.isatty():
                    tell(done, rows)

            evaluation = ope.evaluate(
                log, policy, estimator, predictions=predictions, model=model, cluster=cluster, draws=draws, seed=seed,
                on_progress=show, **settings,
            )  # fmt: skip
        paths = []
        if html is not None:
            words = [shown if word == log else word for word in sys.argv[1:]]
            text = page.html(evaluation, source=shown, command=shlex.join(["dither", *words]))
            paths.append(files.text(html, text))
        if out is not None:
            paths += page.tables_and_picture(evaluation, out)
        answers.show(console(), evaluation, source=shown)
        written(console(), paths)


@contextmanager
def in_words_of_the_command() -> Iterator[None]:
    """A refusal names its options as they are typed."""
    try:
        yield
    except Refused as reason:
        raise ValueError(typed(reason.args)) from None


def typed(parts: Iterable[object]) -> str:
    """A sentence of texts and options, with its options as they are typed."""
    return "".join(_typed(part) if isinstance(part, Option) else str(part) for part in parts)


def _typed(option: Option) -> str:
    """How an option is typed: --name, or --with NAME=VALUE where it is one of a reader."""
    placeholder = option.means.strip("()").replace(",", "").upper()
    value = placeholder if option.value is None else str(option.value).replace(" ", "-")
    if option.name in WORDS or option.name in inspect.signature(evaluate).parameters:
        return f"{WORDS.get(option.name, '--' + option.name.replace('_', '-'))} {value}".rstrip()
    return f"--with {option.name}={value or 'VALUE'}"

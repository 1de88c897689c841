"""The command `dither evaluate`: parse the options, call `dither.ope.evaluate`, show what it found."""

import functools
import inspect
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dither import ope
from dither.base import files
from dither.base.errors import Option, Refused
from dither.cli import inventory
from dither.cli.computing import Backend, Scheduler
from dither.log import sources
from dither.ope.candidates import LOGGING

Given = functools.partial(typer.Option, show_default=False)  # an option without a default of its own
WORDS = {"estimators": "--estimator", "policies": "--policy", "options": "--with"}  # others are --name
RULES = {"error": "error", "leave-out": "leave out"}  # as typed -> as `Logged.usable` takes it


def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV file, or a folder of Parquet parts.")],
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
            show_default="dr (with predictions), snips, ips",
        ),
    ] = None,
    interval: Annotated[str, typer.Option(help=f"Kind of interval: {inventory.intervals()}.")] = "normal",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    reward_range: Annotated[
        tuple[float, float] | None, Given(help="Bounds of rewards and predictions, for bernstein and betting.")
    ] = None,
    weight_max: Annotated[
        float | None, Given(help="Bound of the weights, such as K/floor, for bernstein and betting.")
    ] = None,
    row_weight_max: Annotated[
        float | None, Given(help="Bound of the column weight of a thinned log, for bernstein and betting.")
    ] = None,
    cluster: Annotated[
        str | None, Given(help="Column, such as user. Rows with the same value may depend on each other.")
    ] = None,
    predictions: Annotated[
        str | None, Given(help="Column of reward predictions: lists for all arms, or numbers for the arm shown.")
    ] = None,
    model: Annotated[str | None, Given(help="Predict rewards, cross-fitted in memory: ridge or gbm.")] = None,
    format: Annotated[str, typer.Option(help=f"{inventory.formats()}.")] = "dither",
    option: Annotated[
        list[str] | None,
        Given(
            "--with",
            metavar="NAME=VALUE",
            help="An option of the format, as its reader in dither.log takes it: malformed=leave-out, cost=original, "
            "K=10, features=age,hour, id=event; may be repeated.",
        ),
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
        str,
        typer.Option(
            help="Rows without a reward: error, leave-out, a number to take for it, or bounds (any in --reward-range)."
        ),
    ] = "error",
    invalid: Annotated[str, typer.Option(help="Rows with impossible values: error or leave-out.")] = "error",
    duplicates: Annotated[str, typer.Option(help="Rows with the id of an earlier row: error or leave-out.")] = "error",
    horizon: Annotated[
        str | None,
        Given(help="How long after a decision a reward counts, such as 7d, 12h or 90s; needs --missing NUMBER."),
    ] = None,
    late: Annotated[
        str, typer.Option(help="Decisions whose horizon has not passed: settled (leave them out) or weighted.")
    ] = "settled",
    now: Annotated[
        str | None, typer.Option(help="When the log was read.", show_default="the latest time in it")
    ] = None,
    half_life: Annotated[
        str | None, Given(help="Value now: a row that is older by this, such as 7d, counts half.")
    ] = None,
    window: Annotated[str | None, Given(help="Value now: by the rows of this last time, such as 7d.")] = None,
    at: Annotated[
        str | None, typer.Option(help="The time that these two look back from.", show_default="the latest decision")
    ] = None,
    by: Annotated[
        str | None,
        Given(help="Value of each period too: hour, day, week, month, year, or a column; and if it changed."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Monte Carlo draws a row for saved bandits that need them.")] = 1000,
    out: Annotated[Path | None, Given(help="Folder for the tables and the picture.")] = None,
    html: Annotated[Path | None, Given(help="File for an HTML page that needs no other file.")] = None,
    jobs: Annotated[int, typer.Option(help="Number of threads, or of processes where a policy is a saved bandit.")] = 1,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of the models.")] = 0,
) -> None:
    """Say from a log what other policies would have earned: estimates, intervals, and a verdict in plain words."""
    from dither.cli import answers, page  # polars and matplotlib take a second to import
    from dither.cli.terminal import console, progress, written

    if not policy:
        raise ValueError(f"no policy to evaluate: give at least one --policy, such as --policy uniform or {LOGGING}")
    _places(out, html)
    names = {"arm": arm, "propensity": propensity, "reward": reward, "kind": kind}
    asked: dict[str, Any] = dict(
        predictions=predictions, model=model, cluster=cluster, interval=interval, level=level,
        reward_range=reward_range, weight_max=weight_max, row_weight_max=row_weight_max, arms=arms, draws=draws,
        horizon=horizon, late=late, now=now, half_life=half_life, window=window, at=at, by=by,
        missing=missing_reward(missing), invalid=rule("invalid", invalid), duplicates=rule("duplicates", duplicates),
        jobs=jobs, backend=backend, scheduler=scheduler, seed=seed, format=format, options=options(option or []),
        **names,
    )  # fmt: skip
    with warnings.catch_warnings(), in_words_of_the_command():
        warnings.simplefilter("ignore", RuntimeWarning)  # from NumPy; the notes say what was wrong
        with progress("evaluate") as tell:

            def show(done: int, rows: int) -> None:
                if rows > sources.ROWS and sys.stderr.isatty():
                    tell(done, rows)

            found = ope.evaluate(log, policy, estimator, on_progress=show, **asked)
        made = []
        if html is not None:
            text = page.html(found, log=str(log), command=shlex.join(["dither", *sys.argv[1:]]))
            made.append(files.text(html, text))
        if out is not None:
            made += page.tables_and_picture(found, out)
        answers.show(console(), found, log=str(log))
        written(console(), made)


def _places(out: Path | None, html: Path | None) -> None:
    """Refuse places that cannot be written to, before any work."""
    if html is not None and html.is_dir():
        raise ValueError(f"--html must name a file, and {html} is a folder: write --html {html / 'report.html'}")
    for option, folder in (("out", out), ("html", None if html is None else html.parent)):
        held = next((part for part in (folder, *folder.parents) if part.exists()), None) if folder else None
        if held is not None and not held.is_dir():
            raise ValueError(f"--{option} needs a folder, and {held} is a file: name another place")


def options(texts: list[str]) -> dict[str, str]:
    """What --with says."""
    found: dict[str, str] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not value or not name.strip():
            raise ValueError(f"write --with NAME=VALUE, got {text!r}")
        if name.strip() in found:
            raise ValueError(f"the option {name.strip()} is given twice with --with")
        found[name.strip()] = value
    return found


@contextmanager
def in_words_of_the_command() -> Iterator[None]:
    """A refusal names its options as they are typed."""
    try:
        yield
    except Refused as reason:
        parts = (_typed(part) if isinstance(part, Option) else str(part) for part in reason.args)
        raise ValueError("".join(parts)) from None


def _typed(option: Option) -> str:
    """How an option is typed: --name, or --with NAME=VALUE where it is one of a reader."""
    placeholder = option.means.strip("()").replace(",", "").upper()
    value = placeholder if option.value is None else str(option.value).replace(" ", "-")
    if option.name in WORDS or option.name in inspect.signature(evaluate).parameters:
        return f"{WORDS.get(option.name, '--' + option.name.replace('_', '-'))} {value}".rstrip()
    return f"--with {option.name}={value or 'VALUE'}"


def rule(name: str, text: str) -> str:
    """What --invalid or --duplicates says."""
    if text not in RULES:
        raise ValueError(f"--{name} must be {' or '.join(RULES)}, got {text!r}")
    return RULES[text]


def missing_reward(text: str) -> str | float:
    """What stands for a reward that never came."""
    try:
        return text if text == "bounds" else RULES[text] if text in RULES else float(text)
    except ValueError:
        raise ValueError(f"--missing must be {', '.join(RULES)} or a finite number, or bounds; got {text!r}") from None

"""The command `dither evaluate`: parse, call, render."""

import inspect
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dither import files, ope
from dither.cli import inventory
from dither.errors import Option, Refused
from dither.log import sources
from dither.ope.candidates import LOGGING

WORDS = {"estimators": "--estimator", "policies": "--policy", "options": "--with"}  # others are --name
RULES = {"error": "error", "leave-out": "leave out"}  # as typed -> as `Logged.usable` takes it


def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV file, or a folder of Parquet parts.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="uniform, logging, arm:NAME, column:NAME (lists of all arms' probabilities, or that of the arm "
            "shown), column:q,g, FILE.npz (a saved bandit) or greedy:FILE.npz; may be repeated.",
            show_default=False,
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{inventory.estimators()}; may be repeated. The verdict is by the first.",
            show_default="dr (with predictions), snips, ips",
        ),
    ] = None,
    interval: Annotated[str, typer.Option(help=f"{inventory.intervals()}.")] = "normal",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Bounds of rewards and predictions: bernstein, betting.", show_default=False),
    ] = None,
    weight_max: Annotated[
        float | None,
        typer.Option(help="Bound of the weights, such as K/floor: bernstein, betting.", show_default=False),
    ] = None,
    row_weight_max: Annotated[
        float | None,
        typer.Option(help="Bound of the column weight, of a log thinned out: bernstein, betting.", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Column, such as user: rows that share it may depend on each other.", show_default=False),
    ] = None,
    predictions: Annotated[
        str | None,
        typer.Option(
            help="Column of reward predictions: lists for all arms, or that of the arm shown.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Predict rewards, cross-fitted in memory: ridge or gbm.", show_default=False)
    ] = None,
    format: Annotated[str, typer.Option(help=f"{inventory.formats()}.")] = "dither",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="An option of the format, as its reader in dither.log takes it: malformed=leave-out, cost=original, "
            "K=10, features=age,hour, id=event; may be repeated.",
            show_default=False,
        ),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Column of the arm shown, if not arm.", show_default=False)] = None,
    propensity: Annotated[str | None, typer.Option(help="Column of its probability.", show_default=False)] = None,
    reward: Annotated[str | None, typer.Option(help="Column of the reward.", show_default=False)] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of the propensities of a table without propensity_kind: exact, monte_carlo or estimated.",
            show_default="exact",
        ),
    ] = None,
    arms: Annotated[
        int | None, typer.Option(help="Number of arms, where the log does not say.", show_default=False)
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Rows without a reward: error, leave-out, or a number for it.")
    ] = "error",
    invalid: Annotated[str, typer.Option(help="Rows that make no sense: error or leave-out.")] = "error",
    duplicates: Annotated[str, typer.Option(help="Rows whose id came before: error or leave-out.")] = "error",
    draws: Annotated[int, typer.Option(help="Monte Carlo draws a row for saved bandits that need them.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="Folder for tables and the picture.", show_default=False)] = None,
    html: Annotated[Path | None, typer.Option(help="File for a page that stands alone.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(help="Threads; with saved bandits, processes.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the bootstrap and the models.")] = 0,
) -> None:
    """Say what other policies would have earned, from a log: estimates, intervals, and a verdict in plain words."""
    from dither.cli import answers, page  # polars and matplotlib take a second to import
    from dither.cli.terminal import console, progress, written

    if not policy:
        raise ValueError(f"no policy to evaluate: give at least one --policy, such as --policy uniform or {LOGGING}")
    _places(out, html)
    names = {"arm": arm, "propensity": propensity, "reward": reward, "kind": kind}
    asked: dict[str, Any] = dict(
        predictions=predictions, model=model, cluster=cluster, interval=interval, level=level,
        reward_range=reward_range, weight_max=weight_max, row_weight_max=row_weight_max, missing=_missing(missing),
        invalid=_rule("invalid", invalid), duplicates=_rule("duplicates", duplicates), arms=arms, draws=draws,
        jobs=jobs, seed=seed, format=format, options=_options(option or []), **names,
    )  # fmt: skip
    with warnings.catch_warnings(), _in_words_of_the_command():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's; what they are about is in the notes
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


def _options(texts: list[str]) -> dict[str, str]:
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
def _in_words_of_the_command() -> Iterator[None]:
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


def _rule(name: str, text: str) -> str:
    """What --invalid or --duplicates says."""
    if text not in RULES:
        raise ValueError(f"--{name} must be {' or '.join(RULES)}, got {text!r}")
    return RULES[text]


def _missing(text: str) -> str | float:
    """What stands for a reward that never came."""
    try:
        return RULES[text] if text in RULES else float(text)
    except ValueError:
        raise ValueError(f"--missing must be {', '.join(RULES)} or a finite number, got {text!r}") from None

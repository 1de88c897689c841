"""The command `dither evaluate`: parse, call, render."""

import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dither import errors

SPOKEN = {  # how `Logged.usable` writes it -> how the command does
    **{f"{name}='leave out'": f"--{name} leave-out" for name in ("missing", "invalid", "duplicates")},
    "missing=<the reward that stands for it>": "--missing NUMBER",
    "missing must be 'error', 'leave out' or a finite number": "--missing must be error, leave-out or a finite number",
    **{f"{n} must be 'error' or 'leave out'": f"--{n} must be error or leave-out" for n in ("invalid", "duplicates")},
    "pass row_weight_max=": "give --row-weight-max",
    "estimate them, or": "estimate them with dither.ope.propensities_from and say --kind estimated, or",
}


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
            help="ips, snips, clipped_ips:C; with predictions dm, dr, sndr, switch_dr:τ, dros:λ, sgdr:λ; may be "
            "repeated. The verdict is by the first.",
            show_default="dr (with predictions), snips, ips",
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option(help="normal, bootstrap, bernstein, betting, clopper_pearson or asymptotic.")
    ] = "normal",
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
    format: Annotated[str, typer.Option(help="dither, table, obd, dsjson or dat.")] = "dither",
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
    from dither.log import sources
    from dither.ope import candidates, fitted
    from dither.ope import question as questions
    from dither.ope.judge import How
    from dither.ope.judge import evaluate as answer

    if not policy:
        raise ValueError(
            f"no policy to evaluate: give at least one --policy, such as --policy uniform or {candidates.LOGGING}"
        )
    if model is not None and predictions is not None:
        raise ValueError("give --predictions or --model, not both")
    _places(out, html)
    errors.at_least("draws", draws, 1)
    errors.at_least("jobs", jobs, 1)
    predictions = fitted.COLUMN if model is not None else predictions
    names = estimator or [*(["dr"] if predictions is not None else []), "snips", "ips"]
    asked = questions.Question(
        tuple(candidates.parse(text, draws=draws) for text in policy if text != candidates.LOGGING),
        tuple(questions.Asked.parse(text) for text in names),
        predictions=predictions,
        cluster=cluster,
        missing=_missing(missing),
        invalid=invalid.replace("-", " "),
        duplicates=duplicates.replace("-", " "),
        arms=arms if format == "dither" else None,
    )
    how = How(interval, level, reward_range, weight_max, row_weight_max, seed=seed)
    as_written = () if cluster is None else (cluster,)
    here = sources.Source(log, format, arm, propensity, reward, kind, arms, _options(option or []), as_written)
    report = None
    with warnings.catch_warnings(), _spoken(sources.FORMATS[format].options):
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's; what they are about is in the notes
        if model is None:
            pieces = here.pieces(asked, rows=sources.ROWS)
        else:
            whole, report = fitted.fit(here.whole(fitted.reads(asked)), asked, model, seed=seed)
            pieces = sources.Pieces(len(whole), sources.split(whole, sources.ROWS))
        if pieces.rows > sources.ROWS and sys.stderr.isatty():
            with progress("evaluate") as tell:
                found = answer(pieces.each, asked, how, jobs=jobs, on_progress=lambda rows: tell(rows, pieces.rows))
        else:
            found = answer(pieces.each, asked, how, jobs=jobs if pieces.rows > sources.ROWS else 1)
        if report is not None:
            found = replace(found, report=report)
        made = []
        if html is not None:
            text = page.html(found, log=str(log), command=shlex.join(["dither", *sys.argv[1:]]))
            made.append(page.write(html, text))
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
def _spoken(options: Iterable[str]) -> Iterator[None]:
    """Errors about the log say how an option is written on the command line; options : those of --with."""
    try:
        yield
    except ValueError as reason:
        said = str(reason)
        for python, here in SPOKEN.items():
            said = said.replace(python, here)
        if any(re.search(rf"\b{name}=", said) for name in options):
            said += ". On the command line: --with NAME=VALUE"
        raise ValueError(said) from None


def _missing(text: str) -> str | float:
    """What stands for a reward that never came."""
    try:
        return float(text)
    except ValueError:
        return text.replace("-", " ")

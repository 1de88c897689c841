"""The commands of `dither`, in one table. A new command is one function in a file of this folder and one line here,
among those that stand beside it in the help.

A command is imported when it is asked for: `dither evaluate` does not load the paper's figures. Options that belong
together are a group: a frozen dataclass whose fields they are. `expanded` puts them into a command.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from dither import _version
from dither.base import compiled
from dither.cli import terminal

BENCH = "dither_bench.commands."  # where the commands about the paper and about comparisons are
OWN = "dither.cli."


class Command(NamedTuple):
    """Where the function of a command is, and an example for its help."""

    module: str
    function: str
    example: str | None = None
    negative: bool = False  # whether an argument may be a negative number, which looks like an option


PANELS = {  # of the help, in the order of docs/run-it.md; each with its commands
    "From a log to a verdict": {
        "plan": Command(
            OWN + "planner",
            "plan",
            "dither plan --rate 0.05 --arms 10 --difference 0.01 | "
            "dither plan --from offers.db --difference 0.01 --floor 0.1",
        ),
        "evaluate": Command(
            OWN + "evaluate",
            "evaluate",
            "dither evaluate log.parquet --policy uniform --policy arm:3 --html report.html | "
            "dither evaluate offers.db --policy column:judged",
        ),
        "tune": Command(
            OWN + "tuning", "tune", "dither tune log.parquet 'LinFP:c=0.3|1|3,lam=0.1|1' --floor 0.05 --save tuned.npz"
        ),
        "export": Command(OWN + "exporting", "export", "dither export offers.db offers/"),
    },
    "Run a bandit, and watch it": {
        "serve": Command(OWN + "hosting", "serve", "dither serve news.db --workers 2"),
        "status": Command(OWN + "monitoring", "status", "dither status news.db --max-lag 5min"),
        "watch": Command(OWN + "watching", "watch", "dither watch news.db"),
        "explain": Command(OWN + "why", "explain", "dither explain offers.db 0192f1c2a3b4 --html why.html"),
        "events": Command(OWN + "happenings", "events", "dither events offers.db"),
    },
    "Change a running bandit": {
        "change": Command(OWN + "steering", "change", "dither change offers.db c=0.3 floor=0.1 --author ana"),
        "promote": Command(OWN + "steering", "promote", "dither promote offers.db --keep"),
        "rollback": Command(OWN + "steering", "rollback", "dither rollback offers.db 1200"),
        "relearn": Command(OWN + "steering", "relearn", "dither relearn offers.db"),
        "correct": Command(OWN + "mending", "correct", "dither correct offers.db 0192f1c2a3b4 0", negative=True),
        "erase": Command(OWN + "mending", "erase", "dither erase offers.db user=u7"),
    },
    "Compare algorithms in simulation": {
        "compare": Command(
            BENCH + "comparison",
            "compare",
            "dither compare --env linear --dim 20 --rounds 2000 --runs 20 LinFP LinFP:c=0.5 LinTS | "
            "dither compare --data my.csv --target label LinFP Greedy | dither compare --config comparisons.toml",
        ),
        "bakeoff": Command(
            BENCH + "baking",
            "bakeoff",
            "dither bakeoff LinFP LinFP:c=0.1 Greedy --sets iris,wine,digits --shuffles 4 | "
            "dither bakeoff LinFP Greedy --folder sets/ --others vw,mabwiser --python others/bin/python",
        ),
        "datasets": Command(OWN + "data", "list_data", "dither datasets --folder data/"),
        "report": Command(BENCH + "runs", "write_report", "dither report results/ -o report.html"),
        "gallery": Command(
            BENCH + "folder", "gallery", "dither gallery results/ -o docs/results/ --processor 'AMD EPYC'"
        ),
        "results check": Command(BENCH + "folder", "check", "dither results check results/"),
        "results merge": Command(BENCH + "folder", "merge", "dither results merge from-a/ from-b/ results/"),
    },
    "Reproduce the paper": {
        "figures": Command(BENCH + "runs", "list_figures"),
        "reproduce": Command(
            BENCH + "runs",
            "reproduce",
            "dither reproduce fig3-linear --panel d=10 --runs 20 --jobs 2 --out results/",
        ),
        "theory": Command(BENCH + "analysis", "theory", "dither theory --figure optimism --figure fig1 --out theory/"),
        "exact": Command(BENCH + "study", "exact", "dither exact --logs 300 --rows 1000 --out exact/"),
    },
}
COMMANDS = {name: command for commands in PANELS.values() for name, command in commands.items()}

GROUPS = {"results": "Check folders of results, and merge those of several machines."}  # first word of a name -> help


def build(first: str | None = None) -> typer.Typer:
    """The command line. first : its first word; a command of that name alone is imported, or all where it is none."""
    app = typer.Typer(
        help="Contextual bandits by feature perturbation: judge a log, run a bandit, compare algorithms. "
        "docs/run-it.md is the road.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_options)
    groups = {name: typer.Typer(help=text, no_args_is_help=True) for name, text in GROUPS.items()}
    words = {name.partition(" ")[0] for name in COMMANDS}
    for panel, commands in PANELS.items():
        begun = set()
        for name, command in commands.items():
            group, _, inner = name.rpartition(" ")
            if first == name.partition(" ")[0] or first not in words:
                within = groups[group] if group else app
                more: dict[str, Any] = {"name": inner, "rich_help_panel": panel if within is app else None}
                more["epilog"] = command.example and f"Example: {command.example}"
                more["context_settings"] = {"ignore_unknown_options": command.negative}
                function = getattr(importlib.import_module(command.module), command.function)
                within.command(**more)(_interruptible(function))
                begun |= {group} - {""}
        for group in begun:
            app.add_typer(groups[group], name=group, rich_help_panel=panel)
    return app


def _interruptible(function: Callable[..., None]) -> Callable[..., None]:
    """The command, which Ctrl-C ends with a word and the exit code for it."""

    @functools.wraps(function)
    def command(**options: Any) -> None:
        with terminal.interruptible():
            function(**options)

    return command


def _version_and_exit(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dither {_version.__version__}\n{compiled.in_words()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version_and_exit,
            is_eager=True,
            help="Show the version, and whether the compiled step is in use.",
        ),
    ] = False,
) -> None:
    pass


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The command, with the options of a group in the place of each parameter that is such a group."""
    parameters: list[tuple[str, Any, Any]] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if dataclasses.is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += [(f.name, f.default, f.type) for f in dataclasses.fields(parameter.annotation)]
        else:
            parameters.append((parameter.name, parameter.default, parameter.annotation))

    @functools.wraps(function)
    def command(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in dataclasses.fields(group)})
        function(**options)

    only = inspect.Parameter.KEYWORD_ONLY
    command.__annotations__ = {name: kind for name, _, kind in parameters}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
        [inspect.Parameter(name, only, default=default, annotation=kind) for name, default, kind in parameters]
    )
    return command

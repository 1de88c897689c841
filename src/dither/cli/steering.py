"""The commands that change a running bandit: `dither change`, `rollback`, `promote` and `relearn`. Each is an event.

The ledger has the bandit, the shadow and the terms, so a process that knows its home alone may write the event. It
takes no lease (`learn=False`): whoever learns goes on, and meets the event with its next batch.
"""

import inspect
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli import happenings
from dither.cli.ledger_options import Author, Home, pairs
from dither.cli.terminal import console, said

if TYPE_CHECKING:
    from dither.live import Live

FORM = "NAME=VALUE"
BUDGETS = '{"a17": [[100, "day"]]}'  # how they are typed, and how an event shows them


def change(
    home: Home,
    settings: Annotated[
        list[str],
        typer.Argument(
            metavar=f"{FORM}...",
            help="Settings of the policy and of the model, such as c=0.3 and discount=0.999; floor; budgets, as "
            f"'{BUDGETS}'; horizon, default, late and reward_range. A value is JSON, such as [0,1] and null, or else a "
            "text.",
        ),
    ],
    *,
    author: Author = None,
) -> None:
    """Let other settings hold for the decisions from now on, in all processes."""
    from dither.live import Live

    typed = pairs(settings, FORM)
    for name in typed.keys() & inspect.signature(Live.change).parameters.keys():
        how = "say --author NAME" if name == "author" else f"call dither.Live(home).change({name}=...)"
        raise ValueError(f"{name} is no setting that can be typed: {how}")
    new = {name: _value(name, text) for name, text in typed.items()}
    told = ", ".join(f"{name}={text}" for name, text in typed.items())
    _event(home, lambda live: live.change(**new, author=author), f"For the decisions from now on: {told}.")


def rollback(
    home: Home,
    batch: Annotated[int, typer.Argument(metavar="N", help="A batch, as `dither events` says it; 0: as it began.")],
    *,
    author: Author = None,
) -> None:
    """Go on from the state after an earlier batch, settings included. What came since is kept (`dither relearn`)."""
    told = f"The bandit is as it was after batch {batch}. What came since is kept: `dither relearn` learns it again."
    _event(home, lambda live: live.rollback(batch, author=author), told)


def promote(
    home: Home,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Let the bandit of before be the shadow.")] = False,
    author: Author = None,
) -> None:
    """Let the shadow act, with what it has learnt. The ledger keeps it, so nothing of it has to be passed."""
    before = "The bandit of before is the shadow." if keep else "There is no shadow now."
    told = f"The shadow of before acts from now on. {before}"
    _event(home, lambda live: live.promote(keep=keep, author=author), told)


def relearn(home: Home, *, author: Author = None) -> None:
    """Learn again what was rolled back, with the settings of now."""
    told, nothing = "All batches are learnt.", "Nothing was left out, so nothing is learnt again."
    _event(home, lambda live: live.relearn(author=author), told, nothing)


def _event(home: str, step: "Callable[[Live], None]", told: str, nothing: str | None = None) -> None:
    """Change a ledger, and show what is new among its events.

    told : what is said then; nothing : what is said where there is no event. What then fails is logged by the library,
    and makes the exit code 1
    """
    from dither.live import Live

    with Live(home, learn=False) as live:
        before = len(live.events())
        step(live)
        new, troubles = live.events()[before:], live.troubles
    happenings.show(new)
    said(console(), [told if new or nothing is None else nothing])
    if troubles:
        raise typer.Exit(1)


def _value(name: str, text: str) -> Any:
    """What was typed, as JSON has it; a text as it is where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return _budgets(value) if name == "budgets" else value


def _budgets(value: Any) -> Any:
    from dither.deciding import budget

    lists = value.values() if isinstance(value, dict) else [None]
    pairs = [pair for several in lists for pair in (several if isinstance(several, list) else [several])]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"budgets are typed as '{BUDGETS}', the most and the period of each; got {value!r}")
    return budget.of_description(value)

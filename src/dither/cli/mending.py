"""The commands about single decisions: `dither correct` and `dither erase`. Whoever learns hears of it."""

from typing import Annotated

import typer

from dither.cli.ledger_options import Home, pair
from dither.cli.log_options import Given
from dither.cli.terminal import console, said

FORM = "KEY=VALUE"
PATIENCE = 10.0  # seconds in which readers of a file go on, so that its journal can be emptied of what was erased


def correct(
    home: Home,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the decision.")],
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="What its reward is.")],
    *,
    part: Annotated[str | None, Given(help="Which part of the reward, where it has parts.")] = None,
) -> None:
    """Let another reward count in the place of the one that counts, as after a refund or a mistake."""
    from dither.log import Ledger

    with Ledger.to_go_on(home) as ledger:
        answer = ledger.correct(id, reward, part=part)
    said(console(), [f"{answer}: the reward of {id!r} is {reward:g}" + " already" * (answer == "known")])


def erase(
    home: Home,
    which: Annotated[
        list[str],
        typer.Argument(
            metavar=f"{FORM}...", help="One column of your own and its value, such as user=u7; or id=ID, once or more."
        ),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase what is known of some decisions, where somebody wants to be forgotten. Exit code 1: nothing was erased."""
    from dither.log import Ledger

    sought = [pair(text, FORM) for text in which]
    ids = [value for name, value in sought if name == "id"]
    if len(sought) > max(len(ids), 1):
        raise ValueError("erase takes one column and one value, or ids alone: run it again for each other value")
    whose = dict(sought) if not ids else {}
    with Ledger.to_go_on(home) as ledger:
        if not yes:
            _ask(ledger.database.where, which)
        erased = ledger.erase(ids or None, **whose)
        gone = ledger.database.wiped(PATIENCE)
    many = "s were" if erased > 1 else " was"
    told = f"{erased:,} decision{many} erased. The bandit is made again from all others."
    said(console(), [told if erased else "Nothing was erased: no decision is like that, or it was erased before."])
    if not gone:
        typer.echo("the journal of the file has copies still, as somebody reads it: run the same again", err=True)
    if not (erased and gone):
        raise typer.Exit(1)


def _ask(where: str, which: list[str]) -> None:
    """Go on where somebody says so."""
    question = (
        f"Erase features, columns, probabilities and rewards of the decisions with {', '.join(map(repr, which))} in "
        f"{where}? Only a backup can bring them back"
    )
    try:
        agreed = typer.confirm(question)
    except (typer.Abort, RuntimeError):  # the latter where stdin is closed
        typer.echo()
        agreed = False
    if not agreed:
        typer.echo("nothing was erased: answer y, or say --yes where nobody can be asked", err=True)
        raise typer.Exit(1)

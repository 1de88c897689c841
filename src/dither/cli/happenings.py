"""The command `dither events`: what has changed the bandit of a ledger, by whom, and when."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from dither.base.visible import visible
from dither.cli.ledger_options import Home
from dither.cli.terminal import console, said, table

if TYPE_CHECKING:
    from dither.live import BanditEvent


def events(
    home: Home,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List what has changed the bandit: settings, features, rollbacks, promotions. It reads, and changes nothing."""
    from dither.log import Ledger

    with Ledger.to_read(home) as ledger:
        every = ledger.events()
    if as_json:
        rows = [one.to_dict() for one in every]
        typer.echo(json.dumps(rows, indent=1, allow_nan=False))
    elif every:
        show(every)
    else:
        said(console(), ["No event: the bandit is as it began, with what it has learnt."])


def show(events: Sequence["BanditEvent"]) -> None:
    """Print events as a table."""
    if not events:
        return
    sheet = table(numbers=("event", "batch"))
    for name in ("time (UTC)", "author", "what"):
        sheet.add_column(name, no_wrap=True)
    sheet.add_column("details", overflow="fold")
    for one in events:
        time = f"{one.time:%Y-%m-%d %H:%M:%S}"
        cells = (str(one.number), str(one.batch), time, one.author, one.what, one.words())
        sheet.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(sheet)

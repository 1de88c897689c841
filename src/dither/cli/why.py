"""The command `dither explain`: why the arm of a stored decision was shown."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dither.base import files
from dither.cli import placing
from dither.cli.ledger_options import Home
from dither.cli.log_options import Given


def explain(
    home: Home,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the decision, as `choose` answered it.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    html: Annotated[Path | None, Given(help="File for an HTML page that needs no other file.")] = None,
) -> None:
    """Say why the arm of a decision was shown: what each mean is made of, and which chance chose."""
    from dither.cli import template
    from dither.cli.terminal import console, written
    from dither.live import explained
    from dither.log import Ledger

    placing.fits(html=html)
    with Ledger.to_read(home) as ledger:
        explanation = explained(ledger, id)
    if as_json:
        typer.echo(json.dumps(explanation.to_dict(), allow_nan=False, indent=2))
    else:
        typer.echo(str(explanation))
    if html is not None:
        text = template.page("why.html.jinja", filters={}, explanation=explanation)
        written(console(stderr=True), [files.text(html, text)])

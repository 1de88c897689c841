"""The command `dither watch`: parse the options, run the page."""

from typing import Annotated

import typer

from dither.cli import web_options
from dither.cli.ledger_options import Home


def watch(
    home: Home,
    *,
    port: web_options.Port = 8642,
    host: web_options.Host = "127.0.0.1",
    name: web_options.Names = None,
    show_context: Annotated[
        bool, typer.Option("--show-context", help="Show features and your own columns of decisions.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="After so long an estimate is given up.")] = 30.0,
) -> None:
    """Show a ledger as a page in the browser: what runs, what it earns, and why. It reads, and changes nothing."""
    from dither.base import errors
    from dither.serve import listening, secret
    from dither.watch import app

    errors.imported("uvicorn", "uvicorn", extra="watch")
    secret.fits(host)  # before the ledger is opened
    page = app(home, show_context=show_context, seconds=seconds, hosts=name or ())
    listening.run(page, host=host, port=port, ready=web_options.told(host, port), extra="watch")

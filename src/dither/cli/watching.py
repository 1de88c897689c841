"""The command `dither watch`: parse the options, run the page."""

from typing import Annotated

import typer


def watch(
    home: Annotated[str, typer.Argument(metavar="HOME", help="SQLite file of a ledger, or its PostgreSQL URL.")],
    *,
    port: Annotated[int, typer.Option(help="Port on which the page is served.", min=1, max=65535)] = 8642,
    host: Annotated[
        str, typer.Option(help="Address on which it listens; another one than this needs DITHER_TOKEN.")
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="Name by which it is reached, such as bandit.example.org; may be repeated.", show_default=False
        ),
    ] = None,
    show_context: Annotated[
        bool, typer.Option("--show-context", help="Show features and your own columns of decisions.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="After so long an estimate is given up.")] = 30.0,
) -> None:
    """Show a ledger as a page in the browser: what runs, what it earns, and why. It reads, and changes nothing."""
    from dither.base import errors
    from dither.cli.terminal import console
    from dither.serve import secret
    from dither.watch import app

    uvicorn = errors.imported("uvicorn", "uvicorn", extra="watch")
    secret.fits(host)
    page = app(home, show_context=show_context, seconds=seconds, hosts=name or ())
    console().print(f"http://{host}:{port}  (Ctrl-C ends it)", highlight=False)
    how = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none", "lifespan": "on"}
    uvicorn.run(page, host=host, port=port, proxy_headers=False, **how)  # so nobody is taken for this machine

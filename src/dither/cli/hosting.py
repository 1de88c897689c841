"""The command `dither serve`: parse the options, run the service."""

from typing import Annotated, Any

import typer

from dither.cli import web_options
from dither.cli.ledger_options import Home


def serve(
    home: Home,
    *,
    port: web_options.Port = 8641,
    host: web_options.Host = "127.0.0.1",
    name: web_options.Names = None,
    workers: Annotated[int, typer.Option(help="Processes; one of them learns.", min=1, max=64)] = 1,
    store: Annotated[
        str, typer.Option(help="What is kept of each decision: all, shown or records, as store= of dither.Live.")
    ] = "all",
    expire: Annotated[
        float | None,
        typer.Option(help="Seconds between two looks for horizons that have passed.", show_default="never"),
    ] = None,
    arms: Annotated[int, typer.Option(help="The most arms of one call.", min=1)] = 1000,
    requests: Annotated[int, typer.Option(help="The most decisions or rewards of one call.", min=1)] = 1000,
    may_erase: Annotated[
        bool, typer.Option("--may-erase", help="Let POST /erase take data out of the ledger, for good.")
    ] = False,
    body: Annotated[int, typer.Option(help="The most bytes of one call.", min=1)] = 1_000_000,
    at_once: Annotated[int, typer.Option(help="The most calls that a process answers at the same time.", min=1)] = 256,
) -> None:
    """Answer decisions and rewards over HTTP, from a ledger that has its bandit already (docs/serve.md)."""
    from dither.base import errors

    for package in ("fastapi", "uvicorn"):
        errors.imported(package, package, extra="serve")
    from dither.serve import launching

    kept: dict[str, Any] = {"store": store, "expire": expire}
    opening = launching.Opening(
        home, tuple(name or ()), **kept, arms=arms, requests=requests, may_erase=may_erase, body=body, at_once=at_once
    )
    launching.run(opening, host=host, port=port, workers=workers, ready=web_options.told(host, port))

"""A page over a ledger: `dither watch HOME`, or `dither.watch.app(home)` as an ASGI app. It reads, and never writes."""

from collections.abc import Sequence
from typing import Any

from dither.base import errors

__all__ = ["app"]


def app(
    home: Any,
    *,
    show_context: bool = False,
    seconds: float = 30.0,
    hosts: Sequence[str] = (),
    mounted: bool = False,
) -> Any:
    """The page over a ledger, as an ASGI app, to be run by uvicorn or mounted in another app.

    home : as for `dither.log.Ledger`: the path of a SQLite file, or a URL of PostgreSQL
    show_context : whether the page of a decision shows what was known of its request: features and your own columns
    seconds : after so long an estimate is given up
    hosts, mounted : as for `dither.serve.guard.Guard`: names by which it is reached besides this machine's; and whether
        it is part of an application that says who may ask. Else only this machine may, or who has DITHER_TOKEN

    Raises ImportError where a package of the extra `watch` is missing; FileNotFoundError where there is no such ledger;
    ValueError for a file that is no ledger; OSError where the database cannot be reached.
    """
    for package in ("starlette", "jinja2", "plotly", "polars"):
        errors.imported(package, package, extra="watch")
    from dither.serve.guard import PAGE, Guard
    from dither.watch import application
    from dither.watch.watched import WatchedLedger

    errors.positive("seconds", seconds, most=3600)
    page = application.pages_of(WatchedLedger(home, show_context=show_context, seconds=seconds))
    return Guard(page, hosts=hosts, mounted=mounted, policy=PAGE, browser=True)

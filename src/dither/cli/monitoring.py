"""The command `dither status`: how a running bandit stands, for people and for monitors."""

import json
from typing import Annotated

import typer

from dither.cli.ledger_options import Home
from dither.cli.log_options import Given


def status(
    home: Home,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Write the text format of Prometheus.")] = False,
    since: Annotated[str | None, Given(help="A time, such as 2026-03-01: the days from its day on.")] = None,
    max_lag: Annotated[
        str, typer.Option(help="How long a reward may wait to be learnt: seconds, or 90s, 5min, 2h, 1d.")
    ] = "5min",
    max_silence: Annotated[
        str | None, Given(help="How long there may be no decision, such as 1h.", show_default="any time")
    ] = None,
) -> None:
    """Say how a ledger stands. Exit code: 0 where all is fine, 1 with warnings, 2 where it cannot be read."""
    from dither.live import status as stands
    from dither.log import Ledger
    from dither.ope import timed

    if as_json and prometheus:
        raise ValueError("--json and --prometheus are two formats: ask for one of them")
    lag = timed.seconds("--max-lag", max_lag)
    limits = stands.WarningLimits(
        stands.WarningLimits.max_lag if lag is None else lag,
        None if max_silence is None else timed.seconds("--max-silence", max_silence),
    )
    with Ledger.to_read(home) as ledger:
        seen = stands.of(ledger, since=since, limits=limits)
    if as_json:
        typer.echo(json.dumps(seen.to_dict(), indent=1, allow_nan=False))
    else:
        typer.echo(seen.prometheus() if prometheus else seen.text(), nl=False)
    raise typer.Exit(seen.exit_code)

"""The command `dither export`: a ledger to Parquet."""

from pathlib import Path
from typing import Annotated

import typer

from dither.cli.ledger_options import Home
from dither.cli.terminal import console, said


def export(
    home: Home,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Gets a folder for each day (UTC).")],
    *,
    records: Annotated[
        bool, typer.Option("--records", help="Also contexts and records of arms, where they are kept.")
    ] = False,
) -> None:
    """Write a ledger to Parquet, a folder for each day, for `dither evaluate` and others. Again: what has changed."""
    from dither.log import Ledger

    with Ledger.to_go_on(home) as ledger:
        days = ledger.export(folder, records=records)
    span = f", {days[0].name} to {days[-1].name}" if days else ""
    said(console(), [f"{folder} has {len(days):,} day{'s' * (len(days) != 1)} of decisions{span}"])

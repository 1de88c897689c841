"""The options that say who computes: those of the commands that can do so on a cluster."""

from typing import Annotated, Any

import typer

from dither.base import workers

Backend = Annotated[
    str,
    typer.Option(help=f"Who computes: {' or '.join(workers.BACKENDS)}. loky are processes of this machine."),
]
_ADDRESS: dict[str, Any] = dict(
    metavar="ADDRESS",
    help="Scheduler of the cluster, such as tcp://HOST:8786 (dask) or HOST:6379 (ray).",
    show_default="--jobs workers on this machine",
)
Cluster = Annotated[str | None, typer.Option("--cluster", "--scheduler", **_ADDRESS)]
Scheduler = Annotated[str | None, typer.Option("--scheduler", **_ADDRESS)]  # where --cluster is a column

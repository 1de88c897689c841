"""The options that `reproduce` and `compare` share."""

from pathlib import Path
from typing import Annotated

import typer

from dither.experiments import run

Runs = Annotated[
    int | None, typer.Option(help="Runs of each algorithm; what is stored counts.", show_default="the figure's")
]
Seed = Annotated[int, typer.Option(help="Seed of all random streams.")]
Jobs = Annotated[int, typer.Option(help="Processes.")]
Block = Annotated[
    int | None,
    typer.Option(
        help="Runs computed at once and stored in one file: an interruption loses at most these. "
        f"If left out, up to {run.BLOCK * run.AT_ONCE} are computed at once, which is quickest, and {run.BLOCK} stand "
        "in a file.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of results; an earlier one is added to.")]
Band = Annotated[str, typer.Option(help="Band of the plots: se (±1 standard error) or quantiles (quartiles).")]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept-other-code",
        help="Take stored runs as they are although other code made them; by default they are computed anew.",
    ),
]
Log = Annotated[bool, typer.Option("--log", help="Logarithmic axes.")]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE,...",
        help="Try these values of a setting in every algorithm that has it, or draw them: NAME=LOW..HIGH, "
        "NAME=log:LOW..HIGH; may be repeated. The best of each algorithm is run anew.",
        show_default=False,
    ),
]
Tries = Annotated[
    int | None,
    typer.Option(help="So many settings of each algorithm are drawn at random (sweep).", show_default="all of them"),
]
Fair = Annotated[
    bool, typer.Option("--fair", help="Refuse a sweep unless as many settings of every algorithm are tried.")
]

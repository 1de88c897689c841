"""The options that `reproduce` and `compare` share."""

from pathlib import Path
from typing import Annotated

import typer

from dither_bench.plan import plan
from dither_bench.show import pictures

_WIDTHS = " or ".join(f"{name} ({inches:g} inches)" for name, inches in pictures.WIDTHS.items())
Runs = Annotated[
    int | None, typer.Option(help="Runs of each algorithm; what is stored counts.", show_default="the figure's")
]
Seed = Annotated[int, typer.Option(help="Seed of all random streams.")]
Jobs = Annotated[int, typer.Option(help="Processes.")]
Block = Annotated[
    int | None,
    typer.Option(
        help="Runs computed at once and stored in one file: an interruption loses at most these. "
        f"If left out, up to {plan.BLOCK * plan.AT_ONCE} are computed at once, which is quickest, and {plan.BLOCK} "
        "stand in a file.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(help="Folder of results; an earlier one is added to.")]
Earlier = Annotated[
    bool,
    typer.Option("--with-earlier", help="The files also have what was asked of the figure earlier in this folder."),
]
Band = Annotated[
    str,
    typer.Option(
        help="Band of the plots: se (±1 standard error), quantiles (quartiles), or median (quartiles round the median)."
    ),
]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept-other-code",
        help="Take stored runs as they are although other code made them; by default they are computed anew.",
    ),
]
Log = Annotated[bool, typer.Option("--log", help="Logarithmic axes.")]
Width = Annotated[
    str | None,
    typer.Option(
        help=f"Width of the pictures: inches, or {_WIDTHS}.", show_default="that of a screen", metavar="WIDTH"
    ),
]
Title = Annotated[bool, typer.Option("--title/--no-title", help="Title and words about the band in the pictures.")]
Called = Annotated[str, typer.Option("--names", help="Names of algorithms: code, or paper (as the paper has them).")]
Formats = Annotated[
    str, typer.Option("--format", help=f"Files of the pictures: some of {', '.join(pictures.FORMATS)}.", metavar="A,B")
]
Latex = Annotated[bool, typer.Option("--latex", help="Write the tables and the figure as LaTeX, too.")]
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
Profile = Annotated[
    bool, typer.Option("--profile", help="Performance profiles and interquartile means over the panels, too.")
]

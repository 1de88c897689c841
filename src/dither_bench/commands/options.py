"""The options that several commands share, in groups (`dither.cli.app.expanded`)."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dither.base.workers import Workers
from dither.cli import terminal
from dither.cli.computing import Backend, Cluster
from dither_bench.define import figures
from dither_bench.define.panels import Figure
from dither_bench.keep.store import STORE
from dither_bench.plan import plan
from dither_bench.show import frames, pictures
from dither_bench.show.pictures import PictureLook

Band = Annotated[
    str,
    typer.Option(
        help="Band of the plots: se (±1 standard error), quantiles (quartiles), or median (quartiles round the median)."
    ),
]
Log = Annotated[bool, typer.Option("--log", help="Logarithmic axes.")]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="ALGORITHM",
        help="The algorithm that the others are compared with.",
        show_default="LinFP or GLMFP, or else the first",
    ),
]
_BLOCK = (
    "Runs computed at once and stored in one file: an interruption loses at most these. "
    f"If left out, up to {plan.BLOCK * plan.AT_ONCE} are computed at once, which is quickest, and {plan.BLOCK} "
    "stand in a file."
)


@dataclass(frozen=True)
class Computing:
    """Who computes, and from which seed."""

    seed: Annotated[int, typer.Option(help="Seed of all random streams.")] = 0
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1
    backend: Backend = "loky"
    cluster: Cluster = None

    @property
    def workers(self) -> Workers:
        """Who computes. Raises ValueError or LookupError for options that exclude each other."""
        return Workers(self.backend, self.jobs, self.cluster)

    @property
    def how(self) -> dict[str, Any]:
        """Without the seed, as `run.reproduce` takes it."""
        return {"jobs": self.jobs, "backend": self.backend, "cluster": self.cluster}


@dataclass(frozen=True)
class DrawnBy:
    """What the runs are drawn by, and on which device."""

    chance: Annotated[
        str,
        typer.Option(
            help="What runs are drawn by: streams (NumPy's), or counter (Philox on the device: other runs of the same "
            "law)."
        ),
    ] = "streams"
    device: Annotated[
        str | None,
        typer.Option(
            help="Compute with torch on this device, as cuda; --block says how many runs at once.", show_default="NumPy"
        ),
    ] = None

    def of(self, figure: Figure) -> Figure:
        """The figure, drawn so. Raises ValueError for what cannot be."""
        return figures.drawn_by(figure, chance=self.chance, device=self.device)


@dataclass(frozen=True)
class Storing:
    """Where results are kept."""

    block: Annotated[int | None, typer.Option(help=_BLOCK, show_default=False)] = None
    out: Annotated[Path, typer.Option(help="Folder of results; an earlier one is added to.")] = Path("results")

    @property
    def store(self) -> Path:
        """The folder of the files of results."""
        return self.out / STORE


def keeping(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which says what is kept where Ctrl-C ends it, at whatever moment."""

    @functools.wraps(command)
    def interruptible(*, storing: Storing, **options: Any) -> None:
        with terminal.interruptible(storing.store):
            command(storing=storing, **options)

    return interruptible


@dataclass(frozen=True)
class Trying:
    """Which settings a sweep tries."""

    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Try these values of a setting in every algorithm that has it, or draw them: NAME=LOW..HIGH, "
            "NAME=log:LOW..HIGH; may be repeated. The best of each algorithm is run anew.",
            show_default=False,
        ),
    ] = None
    tries: Annotated[
        int | None,
        typer.Option(
            help="So many settings of each algorithm are drawn at random (sweep).", show_default="all of them"
        ),
    ] = None
    fair: Annotated[
        bool, typer.Option("--fair", help="Refuse a sweep unless as many settings of every algorithm are tried.")
    ] = False


@dataclass(frozen=True)
class Framing:
    """What is around the curves of a picture, and on which axes they are."""

    band: Band = "se"
    log: Log = False
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the pictures.", show_default="that of the figure")
    ] = None
    no_title: Annotated[
        bool, typer.Option("--no-title", help="Neither title nor words about the band in the pictures.")
    ] = False
    caption: Annotated[str, typer.Option(metavar="TEXT", help="Text below the pictures.", show_default="none")] = ""
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="ALGORITHM=TEXT", help="What the pictures call an algorithm; may be repeated."),
    ] = None
    xlabel: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Label of the horizontal axis.", show_default="what it shows")
    ] = None
    ylabel: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Label of the vertical axis.", show_default="what it shows")
    ] = None
    xlim: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Ends of the horizontal axis.", show_default="as needed")
    ] = None
    ylim: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Ends of the vertical axis.", show_default="as needed")
    ] = None
    xscale: Annotated[
        str | None, typer.Option(help="Horizontal axis: linear or log.", show_default="as --log says")
    ] = None
    yscale: Annotated[str | None, typer.Option(help="Vertical axis: linear or log.", show_default="as --log says")] = (
        None
    )

    @property
    def framed(self) -> dict[str, Any]:
        """As `PictureLook` takes it. Raises ValueError for what cannot be."""
        if self.no_title and self.title is not None:
            raise ValueError("--no-title leaves out the title that --title gives: leave out one of them")
        title: bool | str = not self.no_title if self.title is None else self.title
        ends = {name: end if end is None else frames.limits(end) for name, end in self._limits.items()}
        words: dict[str, Any] = dict(title=title, caption=self.caption, labels=frames.labels(self.label or ()))
        axes = dict(xlabel=self.xlabel, ylabel=self.ylabel, xscale=self.xscale, yscale=self.yscale)
        return {"band": self.band, "log": self.log} | words | axes | ends

    @property
    def _limits(self) -> dict[str, str | None]:
        return {"xlim": self.xlim, "ylim": self.ylim}


@dataclass(frozen=True)
class Showing(Framing):
    """Which results are shown, how the pictures look, and which files are made."""

    accept: Annotated[
        bool,
        typer.Option(
            "--accept-other-code",
            help="Take stored runs as they are although other code made them; by default they are computed anew.",
        ),
    ] = False
    earlier: Annotated[
        bool,
        typer.Option("--with-earlier", help="The files also have what was asked of the figure earlier in this folder."),
    ] = False
    width: Annotated[
        str | None,
        typer.Option(
            help=f"Width of the pictures: inches, or {pictures.NAMED_WIDTHS}.",
            show_default="that of a screen",
            metavar="WIDTH",
        ),
    ] = None
    called: Annotated[
        str, typer.Option("--names", help="Names of algorithms: code, or paper (as the paper has them).")
    ] = "code"
    form: Annotated[
        str,
        typer.Option("--format", help=f"Files of the pictures: some of {', '.join(pictures.FORMATS)}.", metavar="A,B"),
    ] = "png,pdf"
    latex: Annotated[bool, typer.Option("--latex", help="Write the tables and the figure as LaTeX, too.")] = False
    profile: Annotated[
        bool, typer.Option("--profile", help="Performance profiles and interquartile means over the panels, too.")
    ] = False

    @property
    def look(self) -> PictureLook:
        """How the pictures look. Raises ValueError or LookupError for what cannot be."""
        files: dict[str, Any] = dict(formats=pictures.formats(self.form), latex=self.latex, profile=self.profile)
        return PictureLook(width=self.width, names=self.called, **self.framed, **files)

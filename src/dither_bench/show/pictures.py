"""What a picture is made for: a screen or a column of a paper, with which names, and in which files."""

import shutil
from dataclasses import dataclass

from dither.base import errors
from dither_bench.judge import words
from dither_bench.show.frames import PictureFrame
from dither_bench.show.looks import KINDS

WIDTHS = {"column": 3.25, "text": 5.5}  # inches: a column of two, and the whole text of one column
LEAST = 2.0  # inches: a narrower picture has no room for a curve
FORMATS = ("png", "pdf", "svg", "pgf")
TEX = "xelatex"  # what matplotlib measures letters with, for pgf
NAMED_WIDTHS = " or ".join(f"{name} ({inches:g} inches)" for name, inches in WIDTHS.items())


@dataclass(frozen=True)
class PictureLook(PictureFrame):
    """What a picture is made for, and which files are made. What is around its curves: `PictureFrame`.

    band : "se" (±1 standard error), "quantiles" (the quartiles) or "median" (the same, round the median)
    log : logarithmic axes
    width : the width of the picture: inches, "column" or "text"; None: as wide as its panels are on a screen
    names : "code" or "paper", as `looks.names_in` takes them
    formats : of `FORMATS`
    latex : also write the tables and a figure with its caption as LaTeX
    profile : also write performance profiles and interquartile means (`profiles`)
    """

    band: str = "se"
    log: bool = False
    width: str | float | None = None
    names: str = "code"
    formats: tuple[str, ...] = ("png", "pdf")
    latex: bool = False
    profile: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.among("band", self.band, words.BANDS)
        errors.among("kind of names", self.names, KINDS)
        for one in self.formats:
            errors.among("format", one, FORMATS)
        if not self.formats:
            raise ValueError(f"formats names at least one of {', '.join(FORMATS)}")
        inches(self.width)
        if self.latex and set(self.formats) <= {"svg"}:
            raise ValueError("LaTeX includes no svg: add pdf, pgf or png to the formats")
        if "pgf" in self.formats and shutil.which(TEX) is None:
            raise ValueError(f"pgf is measured by {TEX}, which is not installed: install TeX, or take pdf or svg")

    @property
    def inches(self) -> float | None:
        """The width of the picture in inches; None: as wide as a screen likes it."""
        return inches(self.width)


def inches(width: str | float | None) -> float | None:
    """The width of a picture in inches. Raises ValueError for what is neither a known width nor a number."""
    if width is None or width in WIDTHS:
        return WIDTHS[width] if isinstance(width, str) else None
    try:
        wide = float(width)
    except ValueError:
        raise ValueError(f"width must be a number of inches, {NAMED_WIDTHS}; got {width!r}") from None
    errors.within("width, in inches,", wide, LEAST, 50.0)
    return wide


def formats(text: str) -> tuple[str, ...]:
    """("png", "pdf") of "png,pdf"."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))

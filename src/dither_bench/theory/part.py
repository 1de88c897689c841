"""What a part of `dither theory` returns: rows of a table, a picture and sentences."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from dither.base import drawing


class Row(NamedTuple):
    """One number."""

    part: str
    setting: str  # which environment, estimate, scale
    quantity: str
    value: float
    theory: float | None = None  # the value that the paper has, if it has one


class Part(NamedTuple):
    """A part, after it was measured."""

    name: str
    title: str
    rows: Sequence[Row]
    says: Sequence[str]
    canvas: Canvas


def canvas(panels: int, *, title: str, width: float = 4.6, height: float = 3.9) -> tuple[Canvas, list[Any]]:
    """An empty picture with `panels` axes in a row -> the picture, its axes."""
    with mpl.rc_context(drawing.STYLE):
        made = Canvas(figsize=(width * panels, height), layout="constrained")
        axes = list(made.subplots(1, panels, squeeze=False).flat)
    made.suptitle(title, fontsize=11, fontweight="bold")
    for ax in axes:
        ax.grid(alpha=0.25, linewidth=0.6)
    return made, axes


def colours(names: Sequence[str]) -> Mapping[str, str]:
    """A colour for each name."""
    return {name: drawing.PALETTE[i % len(drawing.PALETTE)] for i, name in enumerate(names)}

"""What a part of `dither theory` returns: rows of a table, a picture and sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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


@dataclass
class Measurement:
    """A part, as it is measured."""

    name: str
    title: str
    canvas: Canvas
    axes: list[Any]
    rows: list[Row] = field(default_factory=list)
    says: list[str] = field(default_factory=list)

    def note(self, setting: str, *numbers: tuple[Any, ...]) -> None:
        """Add rows. numbers : (quantity, value) each, or (quantity, value, theory)"""
        self.rows += [Row(self.name, setting, quantity, float(value), *theory) for quantity, value, *theory in numbers]


def begin(name: str, title: str, *, panels: int, head: str, width: float = 4.6, height: float = 3.9) -> Measurement:
    """An empty part, with a picture of that head and `panels` axes in a row."""
    with mpl.rc_context(drawing.STYLE):
        canvas = Canvas(figsize=(width * panels, height), layout="constrained")
        axes = list(canvas.subplots(1, panels, squeeze=False).flat)
    canvas.suptitle(head, fontsize=11, fontweight="bold")
    for ax in axes:
        ax.grid(alpha=0.25, linewidth=0.6)
    return Measurement(name, title, canvas, axes)


def coloured(names: Iterable[Any]) -> list[tuple[Any, str]]:
    """Each name with a colour of its own."""
    return [(name, drawing.PALETTE[i % len(drawing.PALETTE)]) for i, name in enumerate(names)]


def legends(axes: Sequence[Any], *, size: float, **more: Any) -> None:
    """A legend without a frame in each of the axes."""
    for ax in axes:
        ax.legend(fontsize=size, frameon=False, **more)

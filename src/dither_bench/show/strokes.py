"""What all pictures of figures share: sizes, curves with their bands, numbers at axes, and legends."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D


class Sizes(NamedTuple):
    """Points, and inches where it is said, of what is drawn."""

    text: float
    small: float  # legends
    line: float
    marker: float
    panel: float  # inches: the least width of one


SCREEN = Sizes(text=10, small=9.5, line=1.6, marker=4.5, panel=4.4)
PAGE = Sizes(text=8, small=7, line=1.1, marker=3.2, panel=1.75)  # where a width is given


def curve(
    ax: Any, x: Any, y: Any, edges: tuple[Any, Any], look: dict[str, Any], *, alpha: float = 0.18, **how: Any
) -> None:
    """A line, and a band of its colour between the edges. how : as `Axes.plot` takes it"""
    ax.plot(x, y, **how, **look)
    ax.fill_between(x, *edges, color=look["color"], alpha=alpha, linewidth=0)


def grid(ax: Any) -> None:
    """Faint lines behind the curves."""
    ax.grid(alpha=0.25, linewidth=0.6)


def numbers(axis: Any, *, thousands: bool = True) -> None:
    """Plain numbers at an axis."""
    axis.set_major_formatter((lambda x, _: f"{x:,g}") if thousands else (lambda x, _: f"{x:g}"))


def columns(labels: Sequence[str], *, width: float, handle: float, scale: float = 1.0) -> int:
    """As many columns of a legend as fit into `width` inches, four at most. handle : inches of a line"""
    widest = scale * (handle + 0.075 * max(map(len, labels)))
    return max(1, min(4, len(labels), int(width / widest)))


def legend(
    canvas: Canvas, lines: dict[str, dict[str, Any]], *, size: float, ncols: int, title: str | None, **how: Any
) -> None:
    """Names and how their lines look, below the axes. how : as `Line2D` takes it"""
    handles = [Line2D([], [], **how, **look) for look in lines.values()]
    canvas.legend(
        handles,
        list(lines),
        loc="outside lower center",
        ncols=ncols,
        frameon=False,
        title=title,
        title_fontsize=size,
        fontsize=size,
    )

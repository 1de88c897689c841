"""What all pictures of figures share: sizes, curves with their bands, numbers at axes, and legends."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.offsetbox import TextArea

from dither_bench.show.frames import PictureFrame, check_limits


class Sizes(NamedTuple):
    """Points, and inches where it is said, of what is drawn."""

    text: float
    small: float  # legends
    line: float
    marker: float
    panel: float  # inches: the least width of one


EMPTY = 0.25  # of an axis: so much may lie below all values before it gets a scale of its own

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


def bottom(low: float, high: float, *, least: float) -> float:
    """Where an axis that would show `low` to `high` begins: at 0, unless much of it were empty then.

    least : the least number on it
    """
    return low if low > EMPTY * high or least < 0 else 0.0


def mark_start(ax: Any) -> None:
    """Two strokes across the foot of a vertical axis that does not begin at 0, as a picture of heights would."""
    if ax.get_yscale() == "linear" and ax.get_ylim()[0] > 0:
        how: dict[str, Any] = dict(xycoords="axes fraction", ha="center", va="center", rotation=70, fontsize=9)
        ax.annotate("//", (0, 0.02), annotation_clip=False, gid="broken", **how)


def set_axes(ax: Any, frame: PictureFrame) -> None:
    """Scales and limits, as the user has said them."""
    for name, scale, ends in (("x", frame.xscale, frame.xlim), ("y", frame.yscale, frame.ylim)):
        if scale is not None and scale != getattr(ax, f"get_{name}scale")():
            getattr(ax, f"set_{name}scale")(scale)
            if scale == "linear":
                numbers(getattr(ax, f"{name}axis"))
        if ends is not None:
            check_limits(f"{name}lim", ends, getattr(ax, f"get_{name}scale")())
            getattr(ax, f"set_{name}lim")(*ends)


def name_axes(ax: Any, frame: PictureFrame) -> None:
    """Labels, as the user has said them."""
    ax.set_xlabel(ax.get_xlabel() if frame.xlabel is None else frame.xlabel)
    ax.set_ylabel(ax.get_ylabel() if frame.ylabel is None else frame.ylabel)


def set_caption(canvas: Canvas, frame: PictureFrame, *, size: float) -> None:
    """The caption below the axes and what stands there, in a picture that becomes higher by it."""
    if not frame.caption:
        return
    wide = max(20, int(canvas.get_figwidth() * 72 / (0.6 * size)))
    text = "\n".join(textwrap.fill(line, wide) for line in frame.caption.splitlines())
    more = (text.count("\n") + 2) * 1.3 * size / 72  # inches
    canvas.set_figheight(canvas.get_figheight() + more)
    if not canvas.legends:
        canvas.supxlabel("\n".join(filter(None, [canvas.get_supxlabel(), text])), fontsize=size)
        return
    (legend,) = canvas.legends  # the caption is the last part of its box, so the layout leaves room for both
    area = TextArea(text, textprops={"fontsize": size, "multialignment": "center"})
    area.set_figure(canvas)
    box: Any = legend
    box._legend_box.get_children().append(area)


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

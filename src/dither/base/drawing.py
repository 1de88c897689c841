"""How pictures look and how they are written: everything that the library draws has one palette and one style."""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from dither.base import files

# Okabe and Ito's palette, which colour-blind readers can tell apart. Its yellow is left out: it is lost on white paper.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444", "#8C6D31")
# The same on dark paper.
DARK = ("#FF8A3D", "#3D93E6", "#35C79A", "#E59CC4", "#9ADBFF", "#F5BD3D", "#B9C0C7", "#BF9B56")
# Letters stay letters in vector files: TrueType in PDF, text in SVG.
STYLE: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
STYLE |= {"pdf.fonttype": 42, "svg.fonttype": "none"}


def save(canvas: Canvas, path: Path, *, dpi: int = 160, metadata: dict[str, Any] | None = None) -> Path:
    """Write the picture whole, or write nothing. The suffix of the path is the format; metadata: what a PNG carries."""
    how: Any = {"format": path.suffix[1:], "dpi": dpi} | ({} if metadata is None else {"metadata": metadata})
    with mpl.rc_context(STYLE):
        files.replace(path, lambda file: canvas.savefig(file, **how), parents=True)
    return path


def png(canvas: Canvas) -> bytes:
    """The bytes of the picture as PNG."""
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=144)
    return buffer.getvalue()

"""How pictures look, and how they are written: one palette and one style for all that the library draws."""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from dither import files

# Okabe and Ito's palette (colour-blind safe) without its yellow, which white paper swallows.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444", "#8C6D31")
STYLE: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "pdf.fonttype": 42}


def save(canvas: Canvas, path: Path) -> Path:
    """Write the whole picture or nothing. The suffix of the path says the format."""
    with mpl.rc_context(STYLE):
        files.replace(path, lambda file: canvas.savefig(file, format=path.suffix[1:], dpi=160), parents=True)
    return path


def png(canvas: Canvas) -> bytes:
    """The bytes of the picture as PNG."""
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=144)
    return buffer.getvalue()

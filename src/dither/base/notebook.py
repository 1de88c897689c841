"""What a notebook shows of a result: tables of text and numbers as HTML.

Every text is escaped. Nothing sets a colour of its own, so the tables can be read in light and dark notebooks alike. A
wide table scrolls within itself.
"""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:.2em .7em;border-bottom:1px solid;border-color:color-mix(in srgb,currentColor 25%,transparent)"


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", says: Iterable[str] = (), texts: int = 1
) -> str:
    """A table, with a title above it and sentences below. texts : so many columns, from the left, are texts"""
    lines = [f"<p><strong>{escape(title)}</strong></p>"] if title else []
    lines.append('<div style="overflow-x:auto;max-width:100%"><table style="border-collapse:collapse">')
    lines.append(f"<thead><tr>{_cells(heads, 'th', texts)}</tr></thead><tbody>")
    lines += [f"<tr>{_cells(row, 'td', texts)}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table></div>", sentences(says)])


def sentences(says: Iterable[str]) -> str:
    """Each sentence as a paragraph."""
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in says)


def _cells(row: Sequence[object], kind: str, texts: int) -> str:
    side = ["left" if i < texts else "right" for i in range(len(row))]
    return "".join(
        f'<{kind} style="{CELL};text-align:{at}">{escape(str(cell))}</{kind}>'
        for at, cell in zip(side, row, strict=True)
    )

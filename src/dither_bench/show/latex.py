"""Tables and figures as LaTeX, for a paper: `\\usepackage{booktabs}` and `\\usepackage{graphicx}` are all they need.

± is one standard error of the mean over the runs, everywhere. Bold is the lowest mean of a column. A dagger marks what
cannot be told apart from it: the 95 % interval of the paired difference, over the same runs, holds 0.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from dither import _version
from dither.algorithms import Spec
from dither.base import templates
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables, words
from dither_bench.show.looks import names_in

ACROSS = 4  # panels side by side; more are set below one another
DAGGER = r"$^\dagger$"
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"$\vert$",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "‖": r"$\Vert$",
    "√": r"$\surd$",
    "∞": r"$\infty$",
    "×": r"$\times$",
    "…": r"\dots{}",
    "′": "$'$",
    "²": "$^2$",
    "*": r"$\ast$",
}
GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "π": "pi",
    "σ": "sigma",
    "τ": "tau",
    "Φ": "Phi",
    "Σ": "Sigma",
}
_LETTERS = str.maketrans(SPECIAL | {letter: f"$\\{name}$" for letter, name in GREEK.items()})


class Tabular(NamedTuple):
    """A tabular: the panels that stand side by side."""

    columns: list[str]
    rows: list[list[str]]


def escape(text: str) -> str:
    """The text as LaTeX sets it. Letters with accents stay, as LaTeX reads UTF-8."""
    return text.translate(_LETTERS)


def table(figure: Figure, curves: pl.DataFrame, *, kind: str = "code", called: Mapping[Spec, str] | None = None) -> str:
    """A table of the regret at the horizon: a row for each algorithm and a column for each panel.

    curves : as of `tables.curves`
    kind : that of the names of algorithms, "code" or "paper"; called : algorithm -> its name, in their place
    """
    panels = [panel for panel in figure.panels if not curves.filter(panel=panel.name, round=panel.rounds).is_empty()]
    if not panels:
        raise ValueError(f"there are no results of {figure.name} at its horizon to set in a table")
    shown = called or names_in(figure, kind)
    parts = [_part(figure, panels[i : i + ACROSS], curves, shown) for i in range(0, len(panels), ACROSS)]
    return _filled("table.tex.jinja", figure, parts=parts, caption=_caption(figure, panels, curves))


def figure(figure: Figure, *, says: str, formats: tuple[str, ...], width: float | None, caption: str = "") -> str:
    """The picture of a figure with its caption.

    says : as of `plots.says`; width : inches, None: as wide as the text; caption : a text in the place of ours
    """
    form = next(form for form in ("pdf", "pgf", "png") if form in formats)
    size = r"\linewidth" if width is None else f"{width:g}in"
    shows = words.SHOWS[figure.shows]
    against = " at the horizon against the value of the setting" if figure.x == "setting" else ""
    ours = f"{figure.title}. {shows[0].upper()}{shows[1:]}{against}: mean over the runs; {says}."
    return _filled("figure.tex.jinja", figure, form=form, size=size, caption=escape(caption or ours))


def _filled(name: str, figure: Figure, **content: Any) -> str:
    brackets = {"block": ("<%", "%>"), "variable": ("<<", ">>"), "comment": ("<#", "#>")}
    starts = {f"{kind}_start_string": start for kind, (start, _) in brackets.items()}
    ends = {f"{kind}_end_string": end for kind, (_, end) in brackets.items()}
    env = templates.environment("dither_bench.show", keep_trailing_newline=True, **starts, **ends)
    return env.get_template(name).render(name=figure.name, version=_version.__version__, **content)


def _part(figure: Figure, panels: list[Panel], curves: pl.DataFrame, shown: Mapping[Spec, str]) -> Tabular:
    columns = {panel.name: _column(panel, curves) for panel in panels}
    rows = [
        [escape(shown[spec]), *(column.get(str(spec), "--") for column in columns.values())]
        for spec in figure.algorithms
        if any(str(spec) in column for column in columns.values())
    ]
    return Tabular([escape(name) for name in columns], rows)


def _column(panel: Panel, curves: pl.DataFrame) -> dict[str, str]:
    """Algorithm -> its cell: mean ± se; the lowest is bold, and what cannot be told apart from it has a dagger."""
    last = curves.filter(panel=panel.name, round=panel.rounds)
    rows = {row["algorithm"]: row for row in tables.summary(last).iter_rows(named=True)}
    best, unclear = tables.lowest(curves, panel, panel.rounds)
    cells = {}
    for name, row in rows.items():
        cell = escape(words.with_error({"regret": row["mean"], "se": row["se"]}))
        cells[name] = rf"\textbf{{{cell}}}" if name == best else cell + DAGGER * (name in unclear)
    return cells


def _caption(figure: Figure, panels: list[Panel], curves: pl.DataFrame) -> str:
    last = (tables.summary(curves.filter(panel=panel.name, round=panel.rounds)) for panel in panels)
    runs = [n for rows in last for n in rows["runs"]]
    at = " or ".join(f"{t:,}" for t in sorted({panel.rounds for panel in panels}))
    shows = words.SHOWS[figure.shows]
    what = f"{shows[0].upper()}{shows[1:]} after {at} rounds"
    text = f"{figure.title}. {what}: mean over {words.spread(runs)} runs ± standard error. "
    if set(runs) == {1}:
        text = f"{figure.title}. {what}, of one run alone. "
    marks = f"Bold: the lowest mean. {DAGGER}: not told apart from it (95\\,\\% interval of the paired difference)."
    return escape(text + words.shared(figure) + " " * bool(figure.shared)) + marks

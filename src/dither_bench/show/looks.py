"""How algorithms are called and look in pictures and tables.

The name is the one of the code, or the one that the paper writes: its label in the legend of the figure, and in other
figures that of `PAPER`. An algorithm of somebody's own file loses the name of the file.

An algorithm is known by its colour, and also without colour: no two in one figure share both marker and line. So the
curves can be told apart in grey, and by the colour-blind.

colour  that of the algorithm; if possible, it is the same in every figure
marker  that of the algorithm with its settings; filled for ours, hollow for what is published
line    unbroken, until the markers are used up; dashes are kept for what is published
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dither.algorithms import ALGORITHMS, Spec
from dither.base.drawing import PALETTE
from dither.base.parts import UserPart
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, without_shared

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h")
LINES = ("-", "-.", ":")
DASHED = (0, (4, 2))  # what is published


def looks(figure: Figure) -> dict[Spec, dict[str, Any]]:
    """Algorithm of the figure -> color, marker and linestyle, as matplotlib takes them."""
    of_base: dict[str, list[Spec]] = {}
    for spec in figure.algorithms:
        of_base.setdefault(spec.name, []).append(spec)
    places = {base: list(ALGORITHMS).index(base) if base in ALGORITHMS else i for i, base in enumerate(of_base)}
    colors, free = list(PALETTE), [(marker, line) for line in LINES for marker in MARKERS]
    color_of = {base: _taken(PALETTE[places[base] % len(PALETTE)], colors) for base in of_base}
    mark_of = {}
    # The first setting of each algorithm has its marker before the other settings take what is left.
    for spec in (spec for turn in itertools.zip_longest(*of_base.values()) for spec in turn if spec):
        mark_of[spec] = _taken((MARKERS[places[spec.name] % len(MARKERS)], LINES[0]), free)
    return {
        spec: {"color": color_of[spec.name], "marker": mark_of[spec][0], "linestyle": mark_of[spec][1]}
        for of in of_base.values()
        for spec in of
    }


def _taken(wanted: Any, free: list) -> Any:
    """Take what is wanted off the free ones, or else the first of them. Where none is free: what is wanted."""
    if not free:
        return wanted
    taken = wanted if wanted in free else free[0]
    free.remove(taken)
    return taken


KINDS = ("code", "paper")
# Where no legend of the paper names it; an algorithm that is not here has the paper's name already.
PAPER = {
    "GLMFP": "GLM-FP",
    "EpsGreedy": "ε-Greedy",
    "LogEpsGreedy": "ε-Greedy",
    "LogGreedy": "Greedy",
    "DeepEpsGreedy": "deep ε-Greedy",
    "DeepGreedy": "deep Greedy",
}
LETTERS = {"lam": "λ", "nu": "ν", "sigma": "σ", "epsilon": "ε", "alpha": "α", "delta": "δ"}  # settings


def names_in(figure: Figure, kind: str = "code") -> dict[Spec, str]:
    """Algorithm -> its name in this figure; each name stands for one algorithm.

    kind : "code", such as "LinFP:c=0.3"; or "paper", such as "LinFP (c = 0.3)"

    Settings that all algorithms of the figure share are left out.
    """
    brief = {spec: without_shared(spec, figure.shared) for spec in figure.algorithms}
    code = {spec: str(one) for spec, one in brief.items()}
    if kind == "code":
        return code
    bases = {spec: _base(figure, spec) for spec in brief}
    count = Counter(bases.values())
    # The algorithms that the figure itself names, before somebody asked it for others: their settings are the figure's.
    settled = set(FIGURES[figure.name].algorithms) if figure.name in FIGURES else set()
    paper = {
        spec: base if spec in settled and count[base] == 1 else base + _settings(brief[spec])
        for spec, base in bases.items()
    }
    count = Counter(paper.values())
    return {spec: name if count[name] == 1 else code[spec] for spec, name in paper.items()}


def translations(figure: Figure, kind: str) -> Mapping[str, str]:
    """The name of an algorithm in tables -> its name in this figure."""
    return {str(spec): name for spec, name in names_in(figure, kind).items()}


def _base(figure: Figure, spec: Spec) -> str:
    usual = spec.origin.name if isinstance(spec.origin, UserPart) else PAPER.get(spec.name, spec.name)
    if spec.origin is None and spec.name not in ALGORITHMS:  # as stored: of another library, or of Python alone
        return usual
    return spec.algorithm.label.get(figure.drawn or figure.name, usual).removesuffix(" (ours)")


def _settings(spec: Spec) -> str:
    parts = [f"{LETTERS.get(name, name)} = {value}" for name, value in spec.settings]
    parts += [spec.preset.replace("_", " ")] if spec.preset != "default" else []
    return f" ({', '.join(parts)})" if parts else ""

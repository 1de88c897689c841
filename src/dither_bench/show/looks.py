"""How algorithms look in pictures.

An algorithm is known by its colour, and also without colour: no two in one figure share both marker and line. So the
curves can be told apart in grey, and by the colour-blind.

colour  that of the algorithm; if possible, it is the same in every figure
marker  that of the algorithm with its settings; filled for ours, hollow for what is published
line    unbroken, until the markers are used up; dashes are kept for what is published
"""

import itertools
from typing import Any

from dither.algorithms import ALGORITHMS, Spec
from dither.base.drawing import PALETTE
from dither_bench.define.panels import Figure

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
    """What is wanted if it is free, or else the first that is free, which is taken then. If none is free: wanted."""
    if not free:
        return wanted
    taken = wanted if wanted in free else free[0]
    free.remove(taken)
    return taken

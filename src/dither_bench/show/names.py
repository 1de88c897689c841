"""The names of algorithms as readers see them: as the code has them, or as the paper writes them.

The paper's name of an algorithm is its label in the legend of the figure. In other figures it is the one of `PAPER`.
An algorithm of somebody's own file loses the name of the file.
"""

from collections import Counter
from collections.abc import Mapping

from dither.algorithms import Spec
from dither.base.parts import Part
from dither_bench.define.figures import FIGURES
from dither_bench.define.panels import Figure, without_shared

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


def shown(figure: Figure, kind: str = "code") -> dict[Spec, str]:
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
    found = {}
    for spec, base in bases.items():
        settled = spec in _own(figure) and count[base] == 1  # its settings are the figure's, as in the paper
        found[spec] = base if settled else base + _settings(brief[spec])
    count = Counter(found.values())
    return {spec: name if count[name] == 1 else code[spec] for spec, name in found.items()}


def translated(figure: Figure, kind: str) -> Mapping[str, str]:
    """The name of an algorithm in tables -> its name in this figure."""
    return {str(spec): name for spec, name in shown(figure, kind).items()}


def _own(figure: Figure) -> set[Spec]:
    """The algorithms that the figure itself names, before somebody asked it for others."""
    return set(FIGURES[figure.name].algorithms) if figure.name in FIGURES else set()


def _base(figure: Figure, spec: Spec) -> str:
    own = spec.origin.name if isinstance(spec.origin, Part) else PAPER.get(spec.name, spec.name)
    return spec.algorithm.label.get(figure.drawn or figure.name, own).removesuffix(" (ours)")


def _settings(spec: Spec) -> str:
    parts = [f"{LETTERS.get(name, name)} = {value}" for name, value in spec.settings]
    parts += [spec.preset.replace("_", " ")] if spec.preset != "default" else []
    return f" ({', '.join(parts)})" if parts else ""

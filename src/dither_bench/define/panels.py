"""What a figure is: panels, each an environment, a horizon and algorithms. Nothing here runs anything.

Every figure shows the regret of the means. The paper's curves show the realised regret, r(best) - r(chosen): it has the
same expectation and a larger error. The store keeps both, and `shows="realised"` shows the realised one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dither.algorithms import Spec
from dither.algorithms.spec import settings
from dither.base import errors

REFERENCES = ("LinFP", "GLMFP", "DeepFP")  # feature perturbation: a panel compares the others with the first of these


@dataclass(frozen=True)
class Note:
    """What is known about a figure, or about some algorithms in some panels; () for panels: in all."""

    text: str
    algorithms: tuple[Spec, ...] = ()
    panels: tuple[str, ...] = ()

    def explains(self, panel: str, algorithm: Spec) -> bool:
        """Whether the note says why this algorithm may differ from its published curve in this panel."""
        return algorithm in self.algorithms and (not self.panels or panel in self.panels)


@dataclass(frozen=True)
class Panel:
    """One axes of a figure."""

    name: str
    env: Mapping[str, Any]  # as of `environments.describe`
    rounds: int
    algorithms: tuple[Spec, ...]
    drawn: str = ""  # the panel of the paper's figure that it belongs to, if that has another name
    reference: str = ""  # the name of the algorithm that the others are compared with, if it is chosen (`reference`)
    preset: str = "default"  # of the library's algorithms that name none (`as_in`): "paper" in the paper's figures
    chance: str = "streams"  # as `simulate` takes it: it makes other runs
    device: str | None = None  # where they are computed, as `simulate` takes it: the same runs, up to rounding


@dataclass(frozen=True)
class Figure:
    """What is run and shown."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    runs: int = 100
    shows: str = "regret"  # "regret" (of the means) or "realised"
    compares: str = "values"  # with what is published: "values" and their order, or the "order" alone
    # The horizontal axis: "round"; or the last regret against "setting", which is the one setting of each algorithm
    # that varies, or against a named setting of the environment.
    x: str = "round"
    varied: tuple[str, ...] = ()  # where x is "setting": those that a sweep tries; (): what differs for one algorithm
    extra: tuple[Spec, ...] = ()  # those of the algorithms that the paper's figure does not have
    notes: tuple[Note, ...] = ()
    each: bool = False  # the runs are few, and single ones may fail: every run is shown, and their sd
    drawn: str = ""  # the paper's figure that it is compared with, if that has another name
    shared: str = ""  # settings, as a spec writes them, that all algorithms have and that tables do not repeat

    @property
    def algorithms(self) -> tuple[Spec, ...]:
        """The algorithms of all panels, each once."""
        return tuple(dict.fromkeys(name for panel in self.panels for name in panel.algorithms))

    def panel(self, name: str) -> Panel:
        """The panel of that name, or an error with the nearest one."""
        panels = {panel.name: panel for panel in self.panels}
        errors.among(f"panel of {self.name}", name, panels)
        return panels[name]


def as_in(panel: Panel, spec: Spec) -> Spec:
    """The spec as the panel runs it. An algorithm of somebody's own keeps its default, of which the paper says nothing.

    Pictures, tables and requests have the name without it: "LinFP" in a figure of the paper.
    """
    return replace(spec, preset=panel.preset) if spec.built_in and spec.preset == "default" else spec


def with_shared(spec: Spec, shared: str) -> Spec:
    """The spec with the shared settings of a figure, if its algorithm has such settings. Its own settings win."""
    every = settings(shared)
    if not every.keys() <= spec.algorithm.__signature__.parameters.keys():
        return spec
    return replace(spec, settings=tuple(sorted((every | dict(spec.settings)).items())))


def without_shared(spec: Spec, shared: str) -> Spec:
    """The spec without the shared settings, where it has the same values."""
    every = settings(shared).items()
    return replace(spec, settings=tuple(item for item in spec.settings if item not in every))


def reference(panel: Panel) -> Spec:
    """The algorithm that the others are compared with: the chosen one, the first feature perturbation, or the first."""
    every = panel.algorithms
    chosen = (spec for spec in every if str(spec) == panel.reference)
    return next(chosen, next((spec for spec in every if spec.name in REFERENCES), every[0]))


def named(name: str, algorithms: Iterable[Spec]) -> Spec:
    """The one of the algorithms that is called so, with its settings, or without them where that names one alone.

    Raises LookupError where there is none, and ValueError where there are several.
    """
    every = list(algorithms)
    meant = [spec for spec in every if str(spec) == name or spec.text == name] or [s for s in every if s.name == name]
    if len(meant) > 1:
        raise ValueError(f"{name} names several of {', '.join(map(str, every))}: give its settings too")
    if not meant:
        raise errors.unknown("algorithm of the comparison", name, names=list(map(str, every)))
    return meant[0]

"""What a figure is: panels, each an environment, a horizon and algorithms. Nothing here runs anything.

Every figure shows the regret of the means: the paper's curves are the realised regret, r(best) - r(chosen), whose
expectation is the same and whose error is larger. The store keeps both, and `shows="realised"` shows the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dither import errors
from dither.algorithms import ALGORITHMS, Spec
from dither.experiments.environments import describe

REFERENCES = ("LinFP", "GLMFP", "DeepFP")  # feature perturbation: the others are compared with a panel's first of these


@dataclass(frozen=True)
class Note:
    """What is known about a figure, or about some algorithms in some of its panels (none named: all of them)."""

    text: str
    algorithms: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()

    def explains(self, panel: str, algorithm: str) -> bool:
        """Whether it is a reason why this algorithm may differ from its published curve in this panel."""
        return algorithm in self.algorithms and (not self.panels or panel in self.panels)


@dataclass(frozen=True)
class Panel:
    """One axes of a figure."""

    name: str
    env: Mapping[str, Any]  # as of `environments.describe`
    rounds: int
    algorithms: tuple[str, ...]  # as of `Spec.parse`
    drawn: str = ""  # the panel of the paper's figure that it belongs to, if that has another name


@dataclass(frozen=True)
class Figure:
    """What is run and shown."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    runs: int = 100
    shows: str = "regret"  # "regret" (of the means) or "realised"
    compares: str = "values"  # with what is published: "values" and their order, or the "order" alone
    x: str = "round"  # the horizontal axis; or "setting", the values of each algorithm's one that varies, or a setting
    # of the environment: the last regret against it
    extra: tuple[str, ...] = ()  # of the algorithms, those that the paper's figure does not have
    notes: tuple[Note, ...] = ()
    each: bool = False  # the runs are few and may fail one by one: every run is shown, and their sd
    shared: str = ""  # settings, as a spec writes them, that all algorithms have and that tables do not repeat

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Those of all panels, each once."""
        return tuple(dict.fromkeys(name for panel in self.panels for name in panel.algorithms))

    def panel(self, name: str) -> Panel:
        """The panel of that name, or an error with the nearest one."""
        panels = {panel.name: panel for panel in self.panels}
        if name not in panels:
            raise errors.unknown(f"panel of {self.name}", name, known=panels)
        return panels[name]


def with_shared(name: str, shared: str) -> str:
    """The spec with the settings that all algorithms of a figure have, if it can have them; its own settings win."""
    spec = Spec.parse(name)
    settings = dict(Spec.parse(f"{spec.name}:{shared}").settings)
    if not settings.keys() <= ALGORITHMS[spec.name].__signature__.parameters.keys():
        return str(spec)
    return str(Spec(spec.name, tuple(sorted((settings | dict(spec.settings)).items())), spec.preset))


def without_shared(name: str, shared: str) -> str:
    """The spec without those of these settings that it has as they are."""
    spec = Spec.parse(name)
    known = Spec.parse(f"{spec.name}:{shared}").settings
    return str(Spec(spec.name, tuple(item for item in spec.settings if item not in known), spec.preset))


def reference(algorithms: Iterable[str]) -> str:
    """Of these, the one that the others are compared with: the first feature perturbation, or else the first."""
    names = list(algorithms)
    return next((name for name in names if Spec.parse(name).name in REFERENCES), names[0])


def over(
    dims: Iterable[int], env: str, /, *, algorithms: tuple[str, ...], rounds: int, prefix: str = "", **settings: Any
) -> tuple[Panel, ...]:
    """A panel for each number d of features."""
    return tuple(Panel(f"{prefix}d={d}", describe(env, dim=d, **settings), rounds, algorithms) for d in dims)

"""The figures as data: `FIGURES` has all, and what is asked of one is a smaller one. Nothing here runs anything."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from dither import errors
from dither.algorithms import Spec
from dither.experiments import costs, glm_figures, linear_figures, neural_figures
from dither.experiments.environments import build, describe
from dither.experiments.panels import Figure, Note, Panel, with_shared
from dither.simulate import check_rewards, configured

FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in (*linear_figures.FIGURES, *glm_figures.FIGURES, *neural_figures.FIGURES)
}


def find(name: str) -> Figure:
    """The figure of that name, or an error with the nearest one."""
    if name not in FIGURES:
        raise errors.unknown("figure", name, known=FIGURES)
    return FIGURES[name]


def select(
    figure: Figure,
    *,
    panels: Iterable[str] | None = None,
    algorithms: Iterable[str] | None = None,
    rounds: int | None = None,
) -> Figure:
    """The figure with some of its panels, other algorithms or another horizon; None leaves it as it is."""
    chosen = [figure.panel(name) for name in panels] if panels else list(figure.panels)
    if algorithms:
        names = tuple(dict.fromkeys(with_shared(name, figure.shared) for name in algorithms))
        chosen = [replace(panel, algorithms=names) for panel in chosen]
    if rounds is not None:
        errors.at_least("rounds", rounds, 1)
        chosen = [replace(panel, rounds=rounds) for panel in chosen]
    return replace(figure, panels=tuple(chosen))


def check(figure: Figure) -> None:
    """Raise what a panel's environment or algorithms would raise, before anything runs."""
    for panel in figure.panels:
        errors.at_least("rounds", panel.rounds, 1)
        env = build(panel.env)
        agents = [configured(Spec.parse(name), env, rounds=panel.rounds) for name in panel.algorithms]
        check_rewards(env, [model for model, _ in agents])


def adhoc(env: Mapping[str, Any], algorithms: Iterable[str], *, rounds: int, runs: int) -> Figure:
    """A figure of one panel that compares these algorithms; the panel is named after what is not default."""
    defaults = describe(env["name"])
    parts = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in env.items() if v != defaults[k]]
    name = ", ".join([env["name"], *parts, f"T={rounds}"])
    names = tuple(dict.fromkeys(str(Spec.parse(name)) for name in algorithms))
    if not names:
        raise ValueError("name at least one algorithm to compare")
    each = any(costs.settings(name) for name in names)
    return Figure("compare", "Comparison", (Panel(name, env, rounds, names),), runs=runs, each=each)


def to_data(figure: Figure) -> dict[str, Any]:
    """The figure as JSON holds it."""
    return asdict(figure)


def from_data(data: Mapping[str, Any]) -> Figure:
    """The figure that `to_data` wrote."""
    panels = tuple(Panel(**panel | {"algorithms": tuple(panel["algorithms"])}) for panel in data["panels"])
    notes = tuple(Note(n["text"], tuple(n["algorithms"]), tuple(n["panels"])) for n in data["notes"])
    return Figure(**dict(data) | {"panels": panels, "notes": notes, "extra": tuple(data["extra"])})

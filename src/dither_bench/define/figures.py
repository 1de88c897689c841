"""The figures as data. `FIGURES` has them all; `select` makes a smaller figure of one. Nothing here runs anything."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from dither.algorithms import Spec, alone, specs
from dither.algorithms.algorithm import UNSTATED
from dither.base import errors, parts
from dither.deciding import policy as policy_contract
from dither.simulation.simulate import check_environment, check_rewards, configured
from dither_bench.define import glm_figures, linear_figures, networks, neural_figures
from dither_bench.define.environments import build, defaults
from dither_bench.define.panels import Figure, Note, Panel, named, with_shared

FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in (*linear_figures.FIGURES, *glm_figures.FIGURES, *neural_figures.FIGURES)
}


def find(name: str) -> Figure:
    """The figure of that name, or an error with the nearest one."""
    errors.among("figure", name, FIGURES)
    return FIGURES[name]


def select(
    figure: Figure,
    *,
    panels: Iterable[str] | None = None,
    algorithms: Iterable[str | Spec] | None = None,
    rounds: int | None = None,
) -> Figure:
    """The figure with some of its panels, other algorithms or another horizon; None leaves it as it is."""
    chosen = [figure.panel(name) for name in panels] if panels else list(figure.panels)
    if algorithms:
        found = specs(*(with_shared(spec, figure.shared) for spec in specs(*algorithms)))
        chosen = [replace(panel, algorithms=found) for panel in chosen]
    if rounds is not None:
        errors.at_least("rounds", rounds, 1)
        chosen = [replace(panel, rounds=rounds) for panel in chosen]
    return replace(figure, panels=tuple(chosen))


def against(figure: Figure, reference: str) -> Figure:
    """The figure whose algorithms are compared with this one, in the panels that have it.

    Raises LookupError where no panel has it, and ValueError where several algorithms are called so.
    """
    name = str(named(reference, dict.fromkeys(spec for panel in figure.panels for spec in panel.algorithms)))
    panels = (replace(p, reference=name) if name in map(str, p.algorithms) else p for p in figure.panels)
    return replace(figure, panels=tuple(panels))


def check(figure: Figure) -> None:
    """Raise the errors that a panel's environment or algorithms would raise later, before anything runs."""
    for panel in figure.panels:
        errors.at_least("rounds", panel.rounds, 1)
        env = build(panel.env)
        check_environment(env)
        agents = [_fitting(spec, env, rounds=panel.rounds) for spec in panel.algorithms]
        check_rewards(env, [model for model, _ in agents])
    specs(*(spec for panel in figure.panels for spec in panel.algorithms))


def _fitting(spec: Spec, env: Any, *, rounds: int) -> tuple[Any, Any]:
    """The model and the policy. Raises TypeError where the policy needs another model."""
    model, policy = configured(spec, env, rounds=rounds)
    try:
        policy_contract.check(policy, model, dim=env.dim)
    except TypeError as error:
        if spec.algorithm.perturbs != UNSTATED:
            raise
        raise TypeError(f"{error}; {alone.CURE}") from None
    return model, policy


def adhoc(
    env: Mapping[str, Any], algorithms: Iterable[str | Spec], *, rounds: int, runs: int, reference: str | None = None
) -> Figure:
    """A figure of one panel that compares these algorithms; the panel is named after what is not default.

    reference : the algorithm that the others are compared with; None: as `panels.reference` has it
    """
    name = called(env, rounds=rounds, known=defaults(env["name"]))
    found = specs(*algorithms)
    if not found:
        raise ValueError("name at least one algorithm to compare")
    each = any(networks.settings(spec) for spec in found)
    base = "" if reference is None else str(named(reference, found))
    panel = Panel(name, env, rounds, found, reference=base)
    return Figure("compare", "Comparison", (panel,), runs=runs, each=each)


def called(env: Mapping[str, Any], *, rounds: int, known: Mapping[str, Any]) -> str:
    """The name of a panel: the environment, its settings that are not those that are known, and the horizon."""
    given = {k: v for k, v in env.items() if k != "name" and v != known.get(k)}
    said = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in given.items()]
    return ", ".join([parts.short(env["name"]), *said, f"T={rounds}"])


def to_data(figure: Figure) -> dict[str, Any]:
    """The figure as JSON holds it: algorithms as text."""
    return asdict(
        replace(
            figure,
            panels=tuple(replace(panel, algorithms=_texts(panel.algorithms)) for panel in figure.panels),
            notes=tuple(replace(note, algorithms=_texts(note.algorithms)) for note in figure.notes),
            extra=_texts(figure.extra),
        )
    )


def from_data(data: Mapping[str, Any]) -> Figure:
    """The figure that `to_data` wrote."""
    panels = tuple(Panel(**panel | {"algorithms": _specs(panel["algorithms"])}) for panel in data["panels"])
    notes = tuple(Note(n["text"], _specs(n["algorithms"]), tuple(n["panels"])) for n in data["notes"])
    varied = {"varied": tuple(data.get("varied", ()))}
    return Figure(**dict(data) | {"panels": panels, "notes": notes, "extra": _specs(data["extra"]), **varied})


def _texts(found: Iterable[Spec]) -> Any:
    return tuple(spec.text for spec in found)


def _specs(texts: Iterable[str]) -> tuple[Spec, ...]:
    """Of what may be gone by now: a file of the user's is not looked at."""
    return tuple(dict.fromkeys(map(Spec.shown, texts)))

"""The figures as data. `FIGURES` has them all; `select` makes a smaller figure of one. Nothing here runs anything."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from importlib import resources
from typing import Any

from dither.algorithms import Spec, alone, specs
from dither.algorithms.algorithm import UNSTATED, fields
from dither.base import arrays, errors, parts
from dither.deciding import policy as policy_contract
from dither.simulation import draws
from dither.simulation.simulate import check_environment, check_rewards, configured
from dither_bench.define.environments import CLASSES, build, defaults, describe, standardised
from dither_bench.define.others import OtherLibrary
from dither_bench.define.panels import Figure, Note, Panel, as_in, named, with_shared
from dither_bench.define.replayed import ReplayedLog

_DEFAULT = re.compile(r"[:,]\s*preset\s*=\s*default\s*(,|$)")
PAPER = "paper"  # the preset of the paper's figures, and of every panel that was written before panels had one


def _read() -> dict[str, Figure]:
    """The figures of `figures.toml`, by name."""
    rows = tomllib.loads(resources.files("dither_bench.define").joinpath("figures.toml").read_text("utf-8"))
    texts = rows.pop("notes")
    return {name: _figure(name, row, texts) for name, row in rows.items()}


def _figure(name: str, row: dict[str, Any], texts: Mapping[str, str]) -> Figure:
    """The figure of a row. texts : the notes that rows name"""

    def algorithms(names: Iterable[str], shared: str = "") -> tuple[Spec, ...]:
        return tuple(with_shared(spec, shared) for spec in specs(*names))

    def note(of: str | dict[str, Any]) -> Note:
        if isinstance(of, str):
            return Note(texts.get(of, of))
        return Note(of["text"], algorithms(of["algorithms"]), tuple(of.get("panels", ())))

    shared = row.get("shared", "")
    how: Any = dict(algorithms=algorithms(row.pop("algorithms"), shared), preset=row.pop("preset", PAPER))
    panels = tuple(panel for line in row.pop("panels") for panel in _panels(**how, **line))
    notes, extra = tuple(map(note, row.pop("notes", ()))), algorithms(row.pop("extra", ()), shared)
    return Figure(name, panels=panels, notes=notes, extra=extra, **row)


def _panels(
    *,
    env: str,
    rounds: int,
    algorithms: tuple[Spec, ...],
    preset: str,
    name: str = "",
    prefix: str = "",
    drawn: str = "",
    **more: Any,
) -> Iterator[Panel]:
    """The panels of a line: one for each number of features, where `dim` has several. more : settings of env"""
    dims = more.get("dim")
    if not isinstance(dims, list):
        yield Panel(name, describe(env, **more), rounds, algorithms, drawn, preset=preset)
        return
    for dim in dims:
        paper = f"d={dim}"
        here = describe(env, **more | {"dim": dim})
        yield Panel(prefix + paper, here, rounds, algorithms, drawn or (paper if prefix else ""), preset=preset)


FIGURES: dict[str, Figure] = _read()


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
        algorithms = list(algorithms)
        if any(panel.preset == PAPER for panel in chosen):
            _check_presets(figure.name, algorithms)
        others = specs(*(with_shared(spec, figure.shared) for spec in specs(*algorithms)))
        chosen = [replace(panel, algorithms=others) for panel in chosen]
    if rounds is not None:
        errors.at_least("rounds", rounds, 1)
        chosen = [replace(panel, rounds=rounds) for panel in chosen]
    return replace(figure, panels=tuple(chosen))


def _check_presets(figure: str, algorithms: Iterable[str | Spec]) -> None:
    """Raise ValueError where a text names the default, which in a figure of the paper stands for "paper"."""
    for text in algorithms:
        if isinstance(text, str) and _DEFAULT.search(text):
            raise ValueError(f"{text}: {figure} runs with the preset paper: dither compare has the default")


def drawn_by(figure: Figure, *, chance: str, device: str | None) -> Figure:
    """The figure whose runs are drawn and computed so, as `simulate` takes it.

    Raises ValueError for chance of no kind, and for panels whose runs `simulate` does not draw.
    """
    draws.check(chance)
    if device is not None:
        arrays.backend(device)
    for panel in figure.panels:
        if (chance != "streams" or device is not None) and isinstance(build(panel.env), ReplayedLog):
            raise ValueError(f"{panel.name} replays a log, which draws from streams on no device: leave --chance out")
    return replace(figure, panels=tuple(replace(panel, chance=chance, device=device) for panel in figure.panels))


def against(figure: Figure, reference: str) -> Figure:
    """The figure whose algorithms are compared with this one, in the panels that have it.

    Raises LookupError where no panel has it, and ValueError where several algorithms are called so.
    """
    name = str(named(reference, figure.algorithms))
    panels = (replace(p, reference=name) if name in map(str, p.algorithms) else p for p in figure.panels)
    return replace(figure, panels=tuple(panels))


def check(figure: Figure) -> None:
    """Raise the errors that a panel's environment or algorithms would raise later, before anything runs."""
    for panel in figure.panels:
        errors.at_least("rounds", panel.rounds, 1)
        env = build(panel.env)
        check_environment(env)
        _check_others(panel, env)
        ours = [as_in(panel, spec) for spec in panel.algorithms if not isinstance(spec.origin, OtherLibrary)]
        check_rewards(env, [_model(spec, env, rounds=panel.rounds) for spec in ours])
    specs(*(spec for panel in figure.panels for spec in panel.algorithms))


def _check_others(panel: Panel, env: Any) -> None:
    """Raise ValueError for an algorithm of another library where it cannot play."""
    for spec in panel.algorithms:
        if isinstance(spec.origin, OtherLibrary) and (not env.disjoint or isinstance(env, ReplayedLog)):
            kind = "is a log" if env.disjoint else "has arms with features of their own"
            raise ValueError(f"{spec} plays data sets alone, and {panel.name} {kind}: leave out one of them")


def _model(spec: Spec, env: Any, *, rounds: int) -> Any:
    """The model of an algorithm. Raises TypeError where the policy needs another model."""
    model, policy = configured(spec, env, rounds=rounds)
    try:
        policy_contract.check(policy, model, dim=env.dim)
    except TypeError as error:
        if spec.algorithm.perturbs != UNSTATED:
            raise
        raise TypeError(f"{error}; {alone.CURE}") from None
    return model


def adhoc(
    env: Mapping[str, Any], algorithms: Iterable[str | Spec], *, rounds: int, runs: int, reference: str | None = None
) -> Figure:
    """A figure of one panel that compares these algorithms; the panel is named after what is not default.

    reference : the algorithm that the others are compared with; None: as `panels.reference` has it
    """
    name = called(env, rounds=rounds, usual=defaults(env["name"]))
    run = specs(*algorithms)
    if not run:
        raise ValueError("name at least one algorithm to compare")
    base = "" if reference is None else str(named(reference, run))
    panel = Panel(name, env, rounds, run, reference=base)
    each = any("hidden" in fields(spec.algorithm.model) for spec in run)  # of a network
    return Figure("compare", "Comparison", (panel,), runs=runs, each=each)


def called(env: Mapping[str, Any], *, rounds: int, usual: Mapping[str, Any]) -> str:
    """The name of a panel: the environment, its settings that are not the usual ones, and the horizon."""
    if env["name"] in CLASSES:
        env, usual = dict(env), dict(usual) | {"intercept": standardised(env)}
        env.setdefault("intercept", False)
    settings = {k: v for k, v in env.items() if k != "name" and v != usual.get(k)}
    texts = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items()]
    return ", ".join([parts.short(env["name"]), *texts, f"T={rounds}"])


def to_data(figure: Figure) -> dict[str, Any]:
    """The figure as JSON holds it: algorithms as text."""
    data = asdict(
        replace(
            figure,
            panels=tuple(replace(panel, algorithms=_texts(panel.algorithms)) for panel in figure.panels),
            notes=tuple(replace(note, algorithms=_texts(note.algorithms)) for note in figure.notes),
            extra=_texts(figure.extra),
        )
    )
    usual = {"chance": "streams", "device": None}  # earlier versions wrote neither
    panels = ({k: v for k, v in panel.items() if k not in usual or v != usual[k]} for panel in data["panels"])
    return data | {"panels": tuple(panels)}


def from_data(data: Mapping[str, Any]) -> Figure:
    """The figure that `to_data` wrote."""
    panels = tuple(
        Panel(**{"preset": PAPER} | panel | {"algorithms": _specs(panel["algorithms"])}) for panel in data["panels"]
    )
    notes = tuple(Note(n["text"], _specs(n["algorithms"]), tuple(n["panels"])) for n in data["notes"])
    varied = {"varied": tuple(data.get("varied", ()))}
    return Figure(**dict(data) | {"panels": panels, "notes": notes, "extra": _specs(data["extra"]), **varied})


def _texts(algorithms: Iterable[Spec]) -> Any:
    return tuple(spec.text for spec in algorithms)


def _specs(texts: Iterable[str]) -> tuple[Spec, ...]:
    """The algorithms of these texts. A file of the user's is not looked at: it may be gone by now."""
    return tuple(dict.fromkeys(map(Spec.shown, texts)))

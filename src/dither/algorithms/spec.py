"""An algorithm with settings as text: "LinFP:c=0.3,preset=as_run"."""

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

from dither import errors
from dither.algorithms import grids
from dither.algorithms.algorithm import Algorithm, fields
from dither.algorithms.table import find


@dataclasses.dataclass(frozen=True)
class Spec:
    """An algorithm with settings, as the command line and the results store write it: "LinFP:c=0.3,preset=as_run"."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()  # in sorted order
    preset: str = "default"

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """From text; values are Python literals, or else strings."""
        name, _, rest = text.partition(":")
        given = settings(rest, inside=text)
        preset = given.pop("preset", "default")
        algorithm = find(name)
        errors.among("preset", preset, algorithm.presets)
        return cls(name, tuple(sorted(given.items())), preset)

    def __str__(self) -> str:
        parts = [f"{k}={_written(v)}" for k, v in self.settings]
        parts += [f"preset={self.preset}"] if self.preset != "default" else []
        return self.name + (":" + ",".join(parts) if parts else "")

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm of that name in the table."""
        return find(self.name)

    def also(self, text: str) -> "Spec":
        """The same with the settings of the text, which win."""
        given = settings(text)
        preset = given.pop("preset", self.preset)
        errors.among("preset", preset, self.algorithm.presets)
        return dataclasses.replace(self, settings=tuple(sorted((dict(self.settings) | given).items())), preset=preset)

    @property
    def takes(self) -> dict[str, Any]:
        """The settings that it may have, and their types as they are declared."""
        own = ("dim", "disjoint", "seed", "floor", "monte_carlo")  # the caller's, not the text's
        declared = {name: p.annotation for name, p in self.algorithm.__signature__.parameters.items()}
        policy = self.algorithm.policy_of.get(self.preset, self.algorithm.policy)
        return {name: kind for name, kind in (declared | fields(policy)).items() if name not in own}

    def value(self, setting: str) -> Any:
        """Its value of a setting: the one given, or else that of its preset, or else the default."""
        if setting == "preset":
            return self.preset
        known = self.algorithm.__signature__.parameters.get(setting)
        preset = self.algorithm.presets.get(self.preset, {})
        default = (preset if isinstance(preset, Mapping) else {}).get(setting, known.default if known else None)
        return dict(self.settings).get(setting, default)

    def told(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its settings, and those facts of the environment that the algorithm is told and that are not set."""
        algorithm, given = self.algorithm, dict(self.settings)
        known = algorithm.told.items()
        told = {k: of(facts[k]) for k, of in known if k in facts and algorithm.knows(k, preset=self.preset)}
        return told | given

    def configure(self, dim: int, *, disjoint: int | None, facts: Mapping[str, Any]) -> tuple[Any, Any]:
        """The model and the policy in an environment of these facts."""
        return self.algorithm.configure(dim, preset=self.preset, disjoint=disjoint, **self.told(facts))


def specs(*names: "str | Spec") -> tuple[Spec, ...]:
    """Specs from text, each once; what is a Spec stays as it is. "LinFP:c=0.3|1" is two of them (`grids`)."""
    found = []
    for grid in map(grids.Grid.parse, names):
        base = Spec.parse(grid.base) if isinstance(grid.base, str) else grid.base
        found += [base.also(text) for text in grid.texts()]
    return tuple(dict.fromkeys(found))


def settings(text: str, *, inside: str | None = None) -> dict[str, Any]:
    """The settings in "c=0.3,preset=as_run"; values are Python literals, or else strings. inside: what errors show."""
    found: dict[str, Any] = {}
    for part in filter(None, grids.split(text, ",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"a setting is written key=value, got {part!r} in {inside or text!r}")
        if key.strip() in found:
            raise ValueError(f"{key.strip()} is set twice in {inside or text!r}")
        found[key.strip()] = _literal(value.strip())
    return found


def _written(value: Any) -> str:
    """The text that is read as this value."""
    plain = grids.written(value)
    return repr(value) if isinstance(value, str) and _literal(plain) != value else plain


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
        hash(value)  # a Spec is a key of tables
    except (ValueError, SyntaxError, TypeError):
        return text
    return value

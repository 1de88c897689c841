"""An algorithm with settings as text: "LinFP:c=0.3,preset=as_run", or "mine.py:BGE:C=0.3" for one of the user's own."""

import ast
import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dither.algorithms import alone, grids
from dither.algorithms.algorithm import Algorithm, defaults, fields, of_any_dim
from dither.algorithms.table import BUILT_IN, find
from dither.base import errors, parts
from dither.base.parts import UserPart

NAMES = frozenset(algorithm.name for algorithm in BUILT_IN)
SHAPE = ("dim", "disjoint")
OF_THE_CALLER = (*SHAPE, "seed", "floor", "monte_carlo")  # settings that no text has


@dataclasses.dataclass(frozen=True)
class Spec:
    """An algorithm with settings, as the command line and the results store write it: "LinFP:c=0.3,preset=as_run".

    An algorithm of a file is known by the name of the file, and not by its folder: "mine.py:BGE". What else tells two
    such algorithms apart is their code, which the results store knows.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()  # in sorted order
    preset: str = "default"
    # Of the user's own: where it is, or the algorithm itself.
    origin: UserPart | Algorithm | None = dataclasses.field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """From text; values are Python literals, or else strings. A file of the user's is looked at anew."""
        spec = cls.read(text)
        if isinstance(spec.origin, UserPart):
            parts.fresh(spec.origin.source)
        algorithm = spec.algorithm
        errors.among("preset", spec.preset, algorithm.presets)
        told = next((name for name, _ in spec.settings if name in SHAPE), None)
        if told is not None:
            raise ValueError(
                f"{told}= is no setting of {text!r}: the environment says it, or the log (for slots, dither tune "
                "--slots K): leave it out"
            )
        elsewhere = spec.origin is not None or algorithm in BUILT_IN
        return spec if elsewhere else dataclasses.replace(spec, origin=algorithm)  # other processes are sent it

    @classmethod
    def read(cls, text: str) -> "Spec":
        """The same, and nothing is looked up: what was stored can be shown when its code is gone."""
        part, rest = parts.split(text) or (None, text.partition(":")[2])
        values = settings(rest, inside=text)
        preset = values.pop("preset", "default")
        name = text.partition(":")[0] if part is None else str(part)
        return cls(name, tuple(sorted(values.items())), preset, part)

    @classmethod
    def shown(cls, text: str) -> "Spec":
        """The same; or a label alone, where the text is not written as an algorithm writes itself: "FP: c=0.30"."""
        try:
            spec = cls.read(text)
        except ValueError:
            return cls(text)
        return spec if spec.origin is not None or str(spec) == text else cls(text)

    @classmethod
    def of(cls, thing: Any) -> "Spec":
        """Of a text, or of what is given in Python: an `Algorithm`, the class of a policy, or a policy."""
        if isinstance(thing, (str, Spec)):
            return cls.parse(thing) if isinstance(thing, str) else thing
        kind = type(thing) if dataclasses.is_dataclass(thing) and not isinstance(thing, type) else thing
        algorithm = alone.algorithm(kind, name=getattr(kind, "__name__", repr(kind)))
        if algorithm in BUILT_IN:
            return cls(algorithm.name)
        if algorithm.name in NAMES:
            raise ValueError(f"{algorithm.name} is an algorithm of this library: give yours another name")
        return cls(algorithm.name, _differing(thing), origin=algorithm)

    def __str__(self) -> str:
        return self._with_settings(self.name)

    @property
    def text(self) -> str:
        """The text that finds it again: with the whole path of a file."""
        return self._with_settings(self.origin.text if isinstance(self.origin, UserPart) else self.name)

    def _with_settings(self, name: str) -> str:
        texts = [f"{k}={_written(v)}" for k, v in self.settings]
        texts += [f"preset={self.preset}"] if self.preset != "default" else []
        return name + (":" + ",".join(texts) if texts else "")

    @property
    def built_in(self) -> bool:
        """Whether this library has it; known of what is stored, too, when the code of others is gone."""
        return self.origin is None and self.name in NAMES

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm of that name in the table, or of the user's own."""
        if isinstance(self.origin, UserPart):
            return alone.algorithm(parts.find(self.origin), name=self.name)
        return find(self.name) if self.origin is None else self.origin

    def also(self, text: str) -> "Spec":
        """The same with the settings of the text, which win."""
        values = dict(self.settings) | settings(text)
        preset = values.pop("preset", self.preset)
        errors.among("preset", preset, self.algorithm.presets)
        return dataclasses.replace(self, settings=tuple(sorted(values.items())), preset=preset)

    @property
    def takes(self) -> dict[str, Any]:
        """The settings that it may have, and their types as they are declared."""
        declared = {name: p.annotation for name, p in self.algorithm.__signature__.parameters.items()}
        policy = self.algorithm.policy_of.get(self.preset, self.algorithm.policy)
        return {name: kind for name, kind in (declared | fields(policy)).items() if name not in OF_THE_CALLER}

    def value(self, setting: str) -> Any:
        """Its value of a setting: the one that is set, or else that of its preset, or else the default."""
        if setting == "preset":
            return self.preset
        algorithm, settings = self.algorithm, dict(self.settings)
        every: dict[str, Any] = {name: shown.default for name, shown in algorithm.__signature__.parameters.items()}
        for kind in (algorithm.model, algorithm.policy_of.get(self.preset, algorithm.policy)):
            every |= defaults(kind)
        every |= dict(of_any_dim(algorithm.presets.get(self.preset, {}), settings)) | settings
        return every.get(setting)

    def told(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Its settings, and those facts of the environment that the algorithm is told and that are not set."""
        told, knows = self.algorithm.told.items(), self.algorithm.knows
        values = {k: of(facts[k]) for k, of in told if k in facts and knows(k, preset=self.preset)}
        return values | dict(self.settings)

    def configure(self, dim: int, *, disjoint: int | None, facts: Mapping[str, Any]) -> tuple[Any, Any]:
        """The model and the policy in an environment of these facts."""
        return self.algorithm.configure(dim, preset=self.preset, disjoint=disjoint, **self.told(facts))


def specs(*things: Any) -> tuple[Spec, ...]:
    """Specs of texts and of what `Spec.of` takes, each once. "LinFP:c=0.3|1" is two of them (`grids`).

    Raises ValueError where two parts of the user's have one name.
    """
    origins: dict[Spec, Any] = {}
    for grid in map(grids.Grid.parse, things):
        base = Spec.of(grid.base)
        if odd := [f"{name}={value!r}" for name, value in base.settings if not isinstance(value, Hashable)]:
            raise TypeError(
                f"a setting of {base.name} cannot be part of its name, since it can change: {odd[0]}. Make it a tuple, "
                "or give the policy a label, as in {'mine': policy}"
            )
        for spec in map(base.also, grid.texts()):
            other = origins.setdefault(spec, spec.origin)
            if other != spec.origin:
                both = (origin.text if isinstance(origin, UserPart) else origin for origin in (other, spec.origin))
                raise ValueError(
                    f"two algorithms are called {spec}, {errors.listed(both)}: give one of them another name"
                )
    return tuple(origins)


def _differing(part: Any) -> tuple[tuple[str, Any], ...]:
    """The settings of a policy that are not the defaults of its class; () for a class or an algorithm itself."""
    if isinstance(part, type) or not dataclasses.is_dataclass(part):
        return ()
    values = {f.name: value for f in dataclasses.fields(part) if (value := getattr(part, f.name)) is not f.default}
    return tuple(sorted((name, v.item() if isinstance(v, np.generic) else v) for name, v in values.items()))


def settings(text: str, *, inside: str | None = None) -> dict[str, Any]:
    """The settings in "c=0.3,preset=as_run"; values are Python literals, or else strings. inside: what errors show."""
    values: dict[str, Any] = {}
    for part in filter(None, grids.split(text, ",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(
                f"a setting is written key=value, got {part!r} in {inside or text!r}; "
                "a part of your own is FILE.py:NAME"
            )
        if key in values:
            raise ValueError(f"{key} is set twice in {inside or text!r}")
        values[key] = _literal(value)
    return values


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

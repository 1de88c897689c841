"""An algorithm with settings as text: "LinFP:c=0.3,preset=as_run", or "mine.py:BGE:C=0.3" for one of the user's own."""

import ast
import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from dither.algorithms import alone, grids
from dither.algorithms.algorithm import Algorithm, fields
from dither.algorithms.table import BUILT_IN, find
from dither.base import errors, parts
from dither.base.parts import UserPart


@dataclasses.dataclass(frozen=True)
class Spec:
    """An algorithm with settings, as the command line and the results store write it: "LinFP:c=0.3,preset=as_run".

    An algorithm of a file is known by the name of the file, and not by its folder: "mine.py:BGE". What else tells two
    such algorithms apart is their code, which the results store knows.
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()  # in sorted order
    preset: str = "default"
    own: UserPart | Algorithm | None = field(
        default=None, compare=False, repr=False
    )  # of the user's: where it is, or it

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """From text; values are Python literals, or else strings. A file of the user's is looked at anew."""
        spec = cls.read(text)
        if isinstance(spec.own, UserPart):
            parts.fresh(spec.own.source)
        algorithm = spec.algorithm
        errors.among("preset", spec.preset, algorithm.presets)
        known_elsewhere = spec.own is not None or algorithm in BUILT_IN
        return spec if known_elsewhere else dataclasses.replace(spec, own=algorithm)  # other processes are sent it

    @classmethod
    def read(cls, text: str) -> "Spec":
        """The same, and nothing is looked up: what was stored can be shown when its code is gone."""
        found = parts.split(text)
        name, _, rest = text.partition(":") if found is None else (str(found[0]), ":", found[1])
        given = settings(rest, inside=text)
        preset = given.pop("preset", "default")
        return cls(name, tuple(sorted(given.items())), preset, found and found[0])

    @classmethod
    def shown(cls, text: str) -> "Spec":
        """The same; or a label alone, where the text is not written as an algorithm writes itself: "FP: c=0.30"."""
        try:
            spec = cls.read(text)
        except ValueError:
            return cls(text)
        return spec if spec.own is not None or str(spec) == text else cls(text)

    @classmethod
    def of(cls, thing: Any) -> "Spec":
        """Of a text, or of what is given in Python: an `Algorithm`, the class of a policy, or a policy."""
        if isinstance(thing, (str, Spec)):
            return cls.parse(thing) if isinstance(thing, str) else thing
        given: tuple[tuple[str, Any], ...] = ()
        if isinstance(thing, Algorithm):
            own = thing
        else:
            kind = thing if isinstance(thing, type) or not dataclasses.is_dataclass(thing) else type(thing)
            own, given = alone.algorithm(kind, name=getattr(kind, "__name__", repr(kind))), _differing(thing)
        if own in BUILT_IN:
            return cls(own.name, given)
        if own.name in (algorithm.name for algorithm in BUILT_IN):
            raise ValueError(f"{own.name} is an algorithm of this library: give yours another name")
        return cls(own.name, given, own=own)

    def __str__(self) -> str:
        return self._with_settings(self.name)

    @property
    def text(self) -> str:
        """The text that finds it again: with the whole path of a file."""
        return self._with_settings(self.own.text if isinstance(self.own, UserPart) else self.name)

    def _with_settings(self, name: str) -> str:
        said = [f"{k}={_written(v)}" for k, v in self.settings]
        said += [f"preset={self.preset}"] if self.preset != "default" else []
        return name + (":" + ",".join(said) if said else "")

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm of that name in the table, or of the user's own."""
        if isinstance(self.own, UserPart):
            return alone.algorithm(parts.find(self.own), name=self.name)
        return find(self.name) if self.own is None else self.own

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


def specs(*things: Any) -> tuple[Spec, ...]:
    """Specs of texts and of what `Spec.of` takes, each once. "LinFP:c=0.3|1" is two of them (`grids`).

    Raises ValueError where two parts of the user's have one name.
    """
    found: dict[Spec, Spec] = {}
    for grid in map(grids.Grid.parse, things):
        base = Spec.of(grid.base)
        if odd := [f"{name}={value!r}" for name, value in base.settings if not isinstance(value, Hashable)]:
            raise TypeError(
                f"a setting of {base.name} cannot be part of its name, since it can change: {odd[0]}. Make it a tuple, "
                "or give the policy a label, as in {'mine': policy}"
            )
        for spec in map(base.also, grid.texts()):
            other = found.setdefault(spec, spec).own
            if other != spec.own:
                both = " and ".join(own.text if isinstance(own, UserPart) else str(own) for own in (other, spec.own))
                raise ValueError(f"two algorithms are called {spec}, {both}: give one of them another name")
    return tuple(found)


def _differing(part: Any) -> tuple[tuple[str, Any], ...]:
    """The settings of a policy that are not the defaults of its class; () for the class itself."""
    if isinstance(part, type) or not dataclasses.is_dataclass(part):
        return ()
    values = {f.name: (getattr(part, f.name), f.default) for f in dataclasses.fields(part)}
    found = {name: value for name, (value, default) in values.items() if value is not default}
    return tuple(
        sorted((name, value.item() if isinstance(value, np.generic) else value) for name, value in found.items())
    )


def settings(text: str, *, inside: str | None = None) -> dict[str, Any]:
    """The settings in "c=0.3,preset=as_run"; values are Python literals, or else strings. inside: what errors show."""
    found: dict[str, Any] = {}
    for part in filter(None, grids.split(text, ",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(
                f"a setting is written key=value, got {part!r} in {inside or text!r}; "
                "a part of your own is FILE.py:NAME"
            )
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

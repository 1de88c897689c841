"""Which settings of which algorithm a figure tries: its specs in groups, one for each algorithm that is tuned."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dither.algorithms import Spec

SPAN = 20  # values whose largest is so many times their smallest are drawn on an axis of logarithms


@dataclass(frozen=True)
class TriedSettings:
    """One algorithm, and what was tried of it."""

    base: Spec  # without the settings that vary
    varied: tuple[str, ...]  # the names of the settings that vary; () where one setting was tried
    specs: tuple[Spec, ...]

    @cached_property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of each setting that varies, each once: numbers in their order, others as they came."""
        every = {name: dict.fromkeys(spec.value(name) for spec in self.specs) for name in self.varied}
        return {name: tuple(sorted(values) if numbers(values) else values) for name, values in every.items()}

    @property
    def whole(self) -> bool:
        """Whether every combination of the values was tried."""
        return math.prod(map(len, self.values.values())) == len(self.specs)

    def setting(self, spec: Spec) -> str:
        """What the spec has of what varies: "c = 0.3, lam = 1"."""
        return ", ".join(f"{name} = {text(spec.value(name))}" for name in self.varied)

    def ends(self, spec: Spec) -> list[str]:
        """The settings of which the spec has the smallest or the largest number of three or more."""
        return [
            name
            for name, values in self.values.items()
            if len(values) > 2 and numbers(values) and spec.value(name) in (values[0], values[-1])
        ]


def tried(specs: Iterable[Spec], varied: Iterable[str] = ()) -> tuple[TriedSettings, ...]:
    """The groups. varied : the settings that tell specs of one group apart; (): those that differ for one name."""
    specs = tuple(specs)
    names = tuple(varied) or _differing(specs)
    groups: dict[Spec, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(without(spec, names), []).append(spec)
    return tuple(
        TriedSettings(base, tuple(name for name in names if len({spec.value(name) for spec in of}) > 1), tuple(of))
        for base, of in groups.items()
    )


def without(spec: Spec, names: Iterable[str]) -> Spec:
    """The spec without these settings."""
    gone = set(names)
    settings = tuple((name, value) for name, value in spec.settings if name not in gone)
    return replace(spec, settings=settings, preset="default" if "preset" in gone else spec.preset)


def numbers(values: Iterable[Any]) -> bool:
    """Whether all of them are numbers."""
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def logarithmic(values: Iterable[float]) -> bool:
    """Whether the values span so much that an axis of logarithms shows them better."""
    values = list(values)
    return min(values) > 0 and max(values) >= SPAN * min(values)


def text(value: Any) -> str:
    """A value in a label."""
    return f"{value:g}" if numbers([value]) else str(value)


def _differing(specs: tuple[Spec, ...]) -> tuple[str, ...]:
    """The settings in which specs of one algorithm differ, in alphabetical order."""
    differing = set()
    for base in {spec.name for spec in specs}:
        of = [spec for spec in specs if spec.name == base]
        names = {name for spec in of for name, _ in spec.settings} | {"preset"}
        differing |= {name for name in names if len({spec.value(name) for spec in of}) > 1}
    return tuple(sorted(differing))

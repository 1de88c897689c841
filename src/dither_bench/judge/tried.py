"""Which settings of which algorithm a figure tries: its specs in groups, one for each algorithm that is tuned."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dither.algorithms import Spec

SPAN = 20  # values whose largest is so many times their smallest are drawn on an axis of logarithms


@dataclass(frozen=True)
class Tried:
    """One algorithm, and what was tried of it."""

    base: Spec  # without the settings that vary
    varied: tuple[str, ...]  # the names of the settings that vary; () where one setting was tried
    specs: tuple[Spec, ...]

    @cached_property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of each setting that varies, each once: numbers in their order, others as they came."""
        found = {name: dict.fromkeys(spec.value(name) for spec in self.specs) for name in self.varied}
        return {name: tuple(sorted(values) if numbers(values) else values) for name, values in found.items()}

    @property
    def whole(self) -> bool:
        """Whether every combination of the values was tried."""
        combinations = 1
        for values in self.values.values():
            combinations *= len(values)
        return combinations == len(self.specs)

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


def tried(specs: Iterable[Spec], varied: Iterable[str] = ()) -> tuple[Tried, ...]:
    """The groups. varied : the settings that tell specs of one group apart; (): those that differ for one name."""
    found = tuple(specs)
    names = tuple(varied) or _differing(found)
    groups: dict[Spec, list[Spec]] = {}
    for spec in found:
        groups.setdefault(without(spec, names), []).append(spec)
    return tuple(
        Tried(base, tuple(name for name in names if len({spec.value(name) for spec in of}) > 1), tuple(of))
        for base, of in groups.items()
    )


def without(spec: Spec, names: Iterable[str]) -> Spec:
    """The spec without these settings."""
    gone = set(names)
    kept = tuple((name, value) for name, value in spec.settings if name not in gone)
    return replace(spec, settings=kept, preset="default" if "preset" in gone else spec.preset)


def numbers(values: Iterable[Any]) -> bool:
    """Whether all of them are numbers."""
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def logarithmic(values: Iterable[float]) -> bool:
    """Whether the values span so much that an axis of logarithms shows them better."""
    found = list(values)
    return min(found) > 0 and max(found) >= SPAN * min(found)


def text(value: Any) -> str:
    """A value in a label."""
    return f"{value:g}" if numbers([value]) else str(value)


def _differing(specs: tuple[Spec, ...]) -> tuple[str, ...]:
    """The settings in which specs of one algorithm differ, in alphabetical order."""
    by_name: dict[str, list[Spec]] = {}
    for spec in specs:
        by_name.setdefault(spec.name, []).append(spec)
    found = set()
    for of in by_name.values():
        names = {name for spec in of for name, _ in spec.settings} | {"preset"}
        found |= {name for name in names if len({spec.value(name) for spec in of}) > 1}
    return tuple(sorted(found))

"""Which settings of each algorithm a figure tries, and the best of them: what a search found.

The algorithms of a figure stand in groups, one for each algorithm that is tuned.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables

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
    """The groups. varied : the settings that tell specs of one group apart; (): those that vary within an algorithm."""
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


Gap = tuple[float, float | None, float | None]  # mean, and the ends of its 95 % interval


@dataclass(frozen=True)
class BestSetting:
    """The setting of one algorithm that the search found."""

    of: TriedSettings
    winner: Spec
    mean: float  # regret at the horizon, on the runs of the search
    se: float | None
    runs: int
    gaps: Mapping[Spec, Gap]  # of every other setting: how far its regret lies above the winner's, run by run

    @property
    def alike(self) -> tuple[Spec, ...]:
        """The settings that cannot be told apart from the winner (`alike`)."""
        return alike(self.gaps)

    @property
    def equal(self) -> tuple[Spec, ...]:
        """The settings with the same regret as the winner."""
        return tuple(spec for spec, (mean, _, _) in self.gaps.items() if mean == 0)


@dataclass(frozen=True)
class SettingsSearch:
    """What a search found."""

    figure: Figure
    seed: int  # of the search
    curves: pl.DataFrame  # as of `tables.curves`
    choices: tuple[BestSetting, ...]
    failed: Mapping[str, str] = field(default_factory=dict)  # setting -> the error that it ended with

    @property
    def winners(self) -> tuple[Spec, ...]:
        """The chosen setting of each algorithm."""
        return tuple(choice.winner for choice in self.choices)


def choose(
    figure: Figure, panel: Panel, curves: pl.DataFrame, *, failed: Mapping[str, str] | None = None
) -> list[BestSetting]:
    """The setting of each algorithm with the lowest mean regret at the horizon, over the runs that all of them have.

    The first of several with the same mean is taken.
    """
    failed, choices = failed or {}, []
    for of in tried(panel.algorithms, figure.varied):
        last = horizon(panel, curves, of.specs, failed=failed)
        if not last:
            reasons = "; ".join(f"{name}: {failed.get(name, 'no runs')}" for name in map(str, of.specs))
            raise ValueError(f"no setting of {of.base} came to an end, so there is none to choose ({reasons})")
        winner, gaps = lowest(last)
        regret = last[winner]
        if not regret.size:
            raise ValueError(f"the settings of {of.base} share no run, so they cannot be compared: run them anew")
        mean, se = float(regret.mean()), tables.standard_error(regret)
        choices.append(BestSetting(of, winner, mean, se, regret.size, gaps))
    return choices


def horizon(
    panel: Panel, curves: pl.DataFrame, specs: Iterable[Spec], *, failed: Mapping[str, str]
) -> dict[Spec, np.ndarray]:
    """The regrets at the horizon of those that have runs and have not failed, over the runs that all of them have."""
    regrets = {spec: tables.at(curves, panel, panel.rounds, algorithm=str(spec)) for spec in specs}
    regrets = {spec: of for spec, of in regrets.items() if of and str(spec) not in failed}
    runs = sorted(set.intersection(*map(set, regrets.values()))) if regrets else []
    return {spec: np.array([of[run] for run in runs]) for spec, of in regrets.items()}


def lowest(last: Mapping[Spec, np.ndarray], *, level: float = tables.LEVEL) -> tuple[Spec, dict[Spec, Gap]]:
    """The one with the lowest mean, and how far each other one lies above it, run by run."""
    if not next(iter(last.values())).size:
        return next(iter(last)), {}
    best = min(last, key=lambda spec: float(last[spec].mean()))
    return best, {spec: tables.interval(x - last[best], level=level) for spec, x in last.items() if spec != best}


def alike(gaps: Mapping[Spec, Gap]) -> tuple[Spec, ...]:
    """Those that cannot be told apart from the lowest: the interval is missing or reaches 0."""
    return tuple(spec for spec, (_, low, _) in gaps.items() if low is None or low <= 0)

"""The best setting of each algorithm: what a search found, and how it lies beside the other settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables
from dither_bench.judge.tried import TriedSettings, tried

Gap = tuple[float, float | None, float | None]  # mean, and the ends of its 95 % interval


@dataclass(frozen=True)
class Choice:
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
class Search:
    """What a search found."""

    figure: Figure
    seed: int  # of the search
    curves: pl.DataFrame  # as of `tables.curves`
    choices: tuple[Choice, ...]
    failed: Mapping[str, str] = field(default_factory=dict)  # setting -> the error that it ended with

    @property
    def winners(self) -> tuple[Spec, ...]:
        """The chosen setting of each algorithm."""
        return tuple(choice.winner for choice in self.choices)


def choose(
    figure: Figure, panel: Panel, curves: pl.DataFrame, *, failed: Mapping[str, str] | None = None
) -> list[Choice]:
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
        choices.append(Choice(of, winner, mean, se, regret.size, gaps))
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

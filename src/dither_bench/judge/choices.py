"""The best setting of each algorithm: what a search found, and how it lies beside the other settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from dither.algorithms import Spec
from dither_bench.define.panels import Figure, Panel
from dither_bench.judge import tables
from dither_bench.judge.tried import Tried, tried

Gap = tuple[float, float | None, float | None]  # mean, and the ends of its 95 % interval


@dataclass(frozen=True)
class Choice:
    """The setting of one algorithm that the search found."""

    of: Tried
    winner: Spec
    mean: float  # regret at the horizon, on the runs of the search
    se: float | None
    runs: int
    gaps: Mapping[Spec, Gap]  # of every other setting: how far its regret lies above the winner's, run by run

    @property
    def alike(self) -> tuple[Spec, ...]:
        """The settings that cannot be told apart from the winner: the interval is missing or reaches 0."""
        return tuple(spec for spec, (_, low, _) in self.gaps.items() if low is None or low <= 0)

    @property
    def equal(self) -> tuple[Spec, ...]:
        """Those with the same regret as the winner."""
        return tuple(spec for spec, (mean, _, _) in self.gaps.items() if mean == 0)


@dataclass(frozen=True)
class Found:
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
    at = curves.filter(panel=panel.name, round=panel.rounds)
    found = []
    for of in tried(panel.algorithms, figure.varied):
        regret = {
            spec: dict(rows.select("run", "regret").iter_rows())
            for spec in of.specs
            if str(spec) not in (failed or {}) and not (rows := at.filter(algorithm=str(spec))).is_empty()
        }
        if not regret:
            reasons = "; ".join(f"{name}: {(failed or {}).get(name, 'no runs')}" for name in map(str, of.specs))
            raise ValueError(f"no setting of {of.base} came to an end, so there is none to choose ({reasons})")
        runs = sorted(set.intersection(*(set(runs) for runs in regret.values())))
        if not runs:
            raise ValueError(f"the settings of {of.base} share no run, so they cannot be compared: run them anew")
        last = {spec: np.array([of_runs[run] for run in runs]) for spec, of_runs in regret.items()}
        winner = min(last, key=lambda spec: float(last[spec].mean()))
        mean, se = float(last[winner].mean()), tables.standard_error(last[winner])
        gaps = {spec: tables.interval(x - last[winner]) for spec, x in last.items() if spec != winner}
        found.append(Choice(of, winner, mean, se, len(runs), gaps))
    return found

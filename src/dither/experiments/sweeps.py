"""Sweeps: settings of algorithms are tried, and the best of each algorithm is run anew.

search   every setting, on the runs of the seed of the search (`search_seed`), which nothing reports
choice   of each algorithm the setting with the lowest mean regret at the horizon
report   the chosen settings, on the runs of the reported seed, which had no part in the choice

Both are figures: their results are ordinary cells of the store, and a later command adds to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dither import errors
from dither.algorithms import Spec, grids, specs
from dither.algorithms.algorithm import fields
from dither.experiments import asked, environments, figures, run, tables
from dither.experiments.panels import Figure, Panel
from dither.experiments.store import Store
from dither.experiments.tried import Tried, tried

NAME = "sweep"
APART = 10**9  # from the reported seed to that of the search
Gap = tuple[float, float | None, float | None]  # mean, and the ends of its 95 % interval
Settings = Mapping[str, Iterable[object]] | Iterable[str]


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


@dataclass(frozen=True)
class Sweep:
    """A search, and what the chosen settings do on the reported runs."""

    found: Found
    figure: Figure
    seed: int
    curves: pl.DataFrame

    @property
    def settings(self) -> pl.DataFrame:
        """Every setting on the runs of the search: a table as `tables.values` makes it."""
        return tables.values(self.found.figure, self.found.curves)

    @property
    def winners(self) -> pl.DataFrame:
        """The chosen settings on the reported runs: a table as `tables.values` makes it."""
        return tables.values(self.figure, self.curves)

    @property
    def differences(self) -> pl.DataFrame:
        """The paired differences of the chosen settings on the reported runs."""
        return tables.differences(self.figure, self.curves)

    def __str__(self) -> str:
        from dither.experiments import sweep_words

        return "\n".join(sweep_words.all_of(self.found, self.winners, seed=self.seed))

    def draw(self) -> Any:
        """The picture of the search, as a matplotlib figure: `.savefig(path)` writes it."""
        from dither.experiments import plots

        return plots.draw(self.found.figure, self.found.curves)


def sweep(
    algorithms: Iterable[Any],
    env: str | Mapping[str, Any] = "linear",
    *,
    settings: Settings = (),
    tries: int | None = None,
    fair: bool = False,
    rounds: int = 2000,
    runs: int = 20,
    seed: int = 0,
    out: str | Path = "results",
    **how: Any,
) -> Sweep:
    """Try settings of algorithms, and run the best of each algorithm anew on fresh runs.

    algorithms : "LinFP:c=0.1|0.3|1" tries three values
    env : the name of an environment, or its settings as of `environments.describe`
    settings : {"c": [0.1, 0.3, 1]} or ["c=0.1,0.3,1"]: tried of every algorithm that has the setting and leaves it open
    tries : so many combinations are drawn at random; None: all of them
    fair : refuse the sweep unless as many settings are tried of every algorithm
    rounds, runs, seed : of each run; the search has the seed `search_seed(seed)`
    out : the folder of the store; what it holds is not computed anew
    how : jobs, block and accept, as `run.reproduce` takes them

    Raises ValueError or LookupError for a setting that no algorithm has, and where all settings of an algorithm fail.
    """
    described = environments.describe(env) if isinstance(env, str) else env
    over = widened(algorithms, grids.axes(settings))
    figure = searching(described, over, rounds=rounds, runs=runs, tries=tries, seed=seed)
    if fair:
        check_fair(figure)
    found = search(figure, out=Path(out), seed=seed, **how)
    fresh = figures.adhoc(described, found.winners, rounds=rounds, runs=runs)
    run.reproduce(fresh, out=out, seed=seed, **how)
    return Sweep(found, fresh, seed, _curves(fresh, Path(out), seed=seed))


def search_seed(seed: int) -> int:
    """The seed of the search for a comparison that reports this seed."""
    return seed + APART


def widened(algorithms: Iterable[Any], axes: Iterable[tuple[str, grids.Values]]) -> list[grids.Grid]:
    """The grids of the algorithms, each with those of these settings that it has and leaves open.

    Raises LookupError for a setting that none of the algorithms has.
    """
    found = [grids.Grid.parse(text) for text in algorithms]
    bases, axes = [_base(grid) for grid in found], list(axes)
    takes = [base.takes for base in bases]
    for name, _ in axes:
        if not any(name in names for names in takes):
            known = dict.fromkeys(known for names in takes for known in names)
            raise errors.unknown(f"setting of {' or '.join(map(str, bases))}", name, known=known)
    return [
        grid.over(axis for axis in axes if axis[0] in names and axis[0] not in _set(grid))
        for grid, names in zip(found, takes, strict=True)
    ]


def searching(
    env: Mapping[str, Any], over: Iterable[grids.Grid], *, rounds: int, runs: int, tries: int | None, seed: int
) -> Figure:
    """The figure of the search."""
    over = list(over)
    every = [_base(grid).also(text) for grid in over for text in _texts(grid, tries=tries, seed=seed)]
    varied = tuple(dict.fromkeys(name for grid in over for name, _ in grid.axes))
    if not varied:
        raise ValueError("a sweep needs several values: write NAME:setting=value|value, or --sweep setting=value,value")
    figure = figures.adhoc(env, every, rounds=rounds, runs=runs)
    return replace(figure, name=NAME, title="Sweep of settings", x="setting", varied=varied)


def check_fair(figure: Figure) -> None:
    """Raise ValueError unless as many settings are tried of every algorithm whose policy has settings."""
    for panel in figure.panels:
        groups = tried(panel.algorithms, figure.varied)
        counts = {str(of.base): len(of.specs) for of in groups if len(of.specs) > 1 or _explores(of.base)}
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(
                f"a fair comparison tries as many settings of every algorithm, got {said}: give each its own values, "
                "as in NAME:setting=value|value, or draw them with --tries"
            )


def search(figure: Figure, *, out: Path, seed: int, **how: Any) -> Found:
    """Run every setting that is missing, and choose. how : as `run.reproduce` takes it.

    A setting that ends with an error is left out of the choice. Raises ValueError where an algorithm has no other.
    """
    figures.check(figure)
    failed: dict[str, str] = {}
    of_search = search_seed(seed)
    try:
        run.reproduce(figure, out=out, seed=of_search, **how)
    except (ValueError, ArithmeticError, RuntimeError):
        failed = _one_by_one(figure, out=out, seed=of_search, **how)
    curves = _curves(figure, out, seed=of_search)
    choices = tuple(choice for panel in figure.panels for choice in choose(figure, panel, curves, failed=failed))
    return Found(figure, of_search, curves, choices, failed)


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


def _base(grid: grids.Grid) -> Spec:
    (spec,) = specs(grid.base)
    return spec


def _set(grid: grids.Grid) -> set[str]:
    """The settings that a grid gives."""
    base = _base(grid)
    own = {name for name, _ in base.settings} | {name for name, _ in grid.axes}
    return own | ({"preset"} if base.preset != "default" else set())


def _texts(grid: grids.Grid, *, tries: int | None, seed: int) -> list[str]:
    if tries is None:
        return grid.texts()
    kinds = _base(grid).takes
    return grid.tries(tries, seed=seed, fractions=[name for name, kind in kinds.items() if "float" in str(kind)])


def _explores(base: Spec) -> bool:
    """Whether the policy has a setting: greedy has none."""
    return bool(fields(base.algorithm.policy_of.get(base.preset, base.algorithm.policy)))


def _one_by_one(figure: Figure, *, out: Path, seed: int, **how: Any) -> dict[str, str]:
    """Run each setting by itself. -> the errors of those that end with one; raises the error if all have the same."""
    failed: dict[str, Exception] = {}
    for spec in figure.algorithms:
        try:
            run.reproduce(figures.select(figure, algorithms=[spec]), out=out, seed=seed, **how)
        except (ValueError, ArithmeticError, RuntimeError) as error:
            failed[str(spec)] = error
    if len(failed) == len(figure.algorithms) and len({str(error) for error in failed.values()}) == 1:
        raise next(iter(failed.values()))
    return {name: str(error) for name, error in failed.items()}


def _curves(figure: Figure, out: Path, *, seed: int) -> pl.DataFrame:
    """The stored results of the figure, of the codes that it was last asked for with."""
    (whole,) = asked.figures(out, only=figure.name)
    return tables.curves(figure, Store(out / run.STORE), seed=seed, codes=whole.codes)

"""Sweeps: settings of algorithms are tried, and the best of each algorithm is run anew.

search   every setting, on the runs of the seed of the search (`search_seed`), which nothing reports
choice   of each algorithm the setting with the lowest mean regret at the horizon
report   the chosen settings, on the runs of the reported seed, which had no part in the choice

Both are figures: their results are ordinary cells of the store, and a later command adds to them. `tuned` chooses one
setting of all instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from dither.algorithms import Spec, grids, specs
from dither.algorithms.algorithm import fields
from dither.base import errors, notebook
from dither_bench.define import environments, figures
from dither_bench.define.panels import Figure
from dither_bench.judge import sweep_words, tables
from dither_bench.judge.choices import SettingsSearch, choose, tried
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store
from dither_bench.results import Comparison
from dither_bench.run import run

NAME = "sweep"
TITLE = "Search for settings: these runs choose, and are not to be reported"
APART = 10**9  # from the reported seed to that of the search
Settings = Mapping[str, Iterable[object]] | Iterable[str]


@dataclass(frozen=True)
class Sweep:
    """A search, and what the chosen settings do on the reported runs."""

    search: SettingsSearch
    fresh: Comparison  # of the chosen settings

    @property
    def settings(self) -> pl.DataFrame:
        """Every setting on the runs of the search: a table as `tables.values` makes it."""
        return tables.values(self.search.figure, self.search.curves)

    @property
    def winners(self) -> pl.DataFrame:
        """The chosen settings on the reported runs: a table as `tables.values` makes it."""
        return self.fresh.values()

    def __str__(self) -> str:
        return "\n".join(sweep_words.all_of(self.search, self.winners, seed=self.fresh.seed))

    def _repr_html_(self) -> str:
        """What a notebook shows: the chosen settings on the reported runs, and what the search found."""
        says = sweep_words.all_of(self.search, self.winners, seed=self.fresh.seed)
        return f"{self.fresh._repr_html_()}\n{notebook.sentences(says)}"

    def draw(self, **look: Any) -> Any:
        """The picture of the search, as a matplotlib figure: `.savefig(path)` writes it.

        look : as `Comparison.plot` takes it
        """
        from dither_bench.show import pictures, plots

        return plots.draw(self.search.figure, self.search.curves, pictures.PictureLook(**look))


def sweep(
    algorithms: Iterable[Any],
    env: Any = "linear",
    *,
    settings: Settings = (),
    tries: int | None = None,
    fair: bool = False,
    reference: str | None = None,
    rounds: int = 2000,
    runs: int = 20,
    seed: int = 0,
    out: str | Path = "results",
    **how: Any,
) -> Sweep:
    """Try settings of algorithms, and run the best of each algorithm anew on fresh runs.

    algorithms : "LinFP:c=0.1|0.3|1" tries three values; a policy or an algorithm of your own may stand beside it
    env : a name ("linear", "world.py:Drift"), a dict of its name and settings, or an environment itself
    settings : {"c": [0.1, 0.3, 1]} or ["c=0.1,0.3,1"]: tried of every algorithm that has the setting and leaves it open
    tries : so many combinations are drawn at random; None: all of them
    fair : refuse the sweep unless as many settings are tried of every algorithm
    reference : the algorithm that the winners of the others are compared with; None: LinFP, GLMFP, or else the first
    rounds, runs, seed : of each run; the search has the seed `search_seed(seed)`
    out : the folder of the store; what it holds is not computed anew
    how : jobs, block and accept, as `run.reproduce` takes them

    Raises ValueError or LookupError for a setting that no algorithm has, and where all settings of an algorithm fail.
    """
    data = environments.described(env)
    figure = searching(data, algorithms, settings, rounds=rounds, runs=runs, tries=tries, seed=seed, fair=fair)
    of_search = search(figure, out=Path(out), seed=seed, **how)
    fresh = figures.adhoc(data, of_search.winners, rounds=rounds, runs=runs, reference=reference)
    return Sweep(of_search, anew(fresh, out=Path(out), seed=seed, **how))


def search_seed(seed: int) -> int:
    """The seed of the search for a comparison that reports this seed."""
    return seed + APART


def anew(figure: Figure, *, out: Path, seed: int, **how: Any) -> Comparison:
    """What was chosen, run with the reported seed. how : as `run.reproduce` takes it"""
    run.reproduce(figure, out=out, seed=seed, **how)
    return Comparison.stored(out, figure, seed=seed)


def widened(algorithms: Iterable[Any], axes: Iterable[tuple[str, grids.Values]]) -> list[grids.Grid]:
    """The grids of the algorithms, each with those of these settings that it has and leaves open.

    Raises TypeError for a setting that none of the algorithms has.
    """
    over, axes = [grids.Grid.parse(text) for text in algorithms], list(axes)
    bases = [_base(grid) for grid in over]
    takes = [base.takes for base in bases]
    for name, _ in axes:
        if not any(name in names for names in takes):
            every = dict.fromkeys(setting for names in takes for setting in names)
            raise errors.unknown_setting(f"setting of {' or '.join(map(str, bases))}", name, names=every)
    return [
        grid.over(axis for axis in axes if axis[0] in names and axis[0] not in _set(grid))
        for grid, names in zip(over, takes, strict=True)
    ]


def searching(
    env: Mapping[str, Any],
    algorithms: Iterable[Any],
    settings: Settings = (),
    *,
    rounds: int,
    runs: int,
    tries: int | None,
    seed: int,
    varies: bool = True,
    fair: bool = False,
) -> Figure:
    """The figure of the search. env : as data; algorithms, settings : as for `sweep`

    varies : refuse it where each algorithm has one setting; fair : refuse it where some have more settings than others
    """
    over = widened(algorithms, grids.axes(settings))
    every = [_base(grid).also(text) for grid in over for text in _texts(grid, tries=tries, seed=seed)]
    varied = tuple(dict.fromkeys(name for grid in over for name, _ in grid.axes))
    if varies and not varied:
        raise ValueError("a sweep needs several values: write NAME:setting=value|value, or --sweep setting=value,value")
    figure = figures.adhoc(env, every, rounds=rounds, runs=runs)
    figure = replace(figure, name=NAME, title=TITLE, x="setting", varied=varied)
    if fair:
        check_fair(figure)
    return figure


def check_fair(figure: Figure) -> None:
    """Raise ValueError unless as many settings are tried of every algorithm whose policy has settings."""
    for panel in figure.panels:
        groups = tried(panel.algorithms, figure.varied)
        counts = {str(of.base): len(of.specs) for of in groups if len(of.specs) > 1 or _explores(of.base)}
        if len(set(counts.values())) > 1:
            numbers = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(
                f"a fair comparison tries as many settings of every algorithm, got {numbers}: give each its own "
                "values, as in NAME:setting=value|value, or draw them with --tries"
            )


def search(figure: Figure, *, out: Path, seed: int, **how: Any) -> SettingsSearch:
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
    requests = asked.figures(out, only=figure.name, seed=of_search)  # nothing, where no setting came to an end
    codes = requests[0].codes if requests else {}
    curves = tables.curves(figure, Store(out / STORE), seed=of_search, codes=codes)
    choices = tuple(choice for panel in figure.panels for choice in choose(figure, panel, curves, failed=failed))
    return SettingsSearch(figure, of_search, curves, choices, failed)


def _base(grid: grids.Grid) -> Spec:
    (spec,) = specs(grid.base)
    return spec


def _set(grid: grids.Grid) -> set[str]:
    """The settings that a grid gives."""
    base = _base(grid)
    names = {name for name, _ in base.settings} | {name for name, _ in grid.axes}
    return names | ({"preset"} if base.preset != "default" else set())


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
    if len(failed) == len(figure.algorithms) and len(set(map(str, failed.values()))) == 1:
        raise next(iter(failed.values()))
    return {name: str(error) for name, error in failed.items()}

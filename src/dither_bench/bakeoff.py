"""A bake-off: algorithms on many sets that are played as bandits, in one shuffled pass each.

A set is a panel of a figure, and a shuffle is a run. So results are kept, resumed, merged and reported as those of any
other figure, and every algorithm plays the same shuffles.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dither.algorithms import Spec, specs
from dither.base import errors
from dither.simulation.simulate import Algorithms, entries
from dither_bench.define import bake_sets, environments
from dither_bench.define.panels import Figure, Panel, named
from dither_bench.judge import set_losses
from dither_bench.judge.set_losses import SetLosses
from dither_bench.results import Comparison
from dither_bench.run import computing, run

NAME, TITLE = "bakeoff", "Bake-off: real data sets as bandits"


def play(
    algorithms: Algorithms,
    sets: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    rounds: int | None = 1500,
    shuffles: int = 4,
    seed: int = 0,
    jobs: int = 1,
    out: str | Path | None = None,
    levels: int = 10,
    pays: str = "distance",
    **how: Any,
) -> SetLosses:
    """The losses of the algorithms on each set and shuffle.

    Parameters
    ----------
    algorithms : names ("LinFP", "LinFP:c=0.1,lam=1e-4"), algorithms or policies of your own; without out also a dict of
        label -> such a thing or (model, policy), as `simulate` takes them
    sets : names of sets (`bake_sets`), or paths of .npz files; None: the bundled ones, and those of the folder
    folder : of .npz files with X and y; None: the folder "bakeoff" in that of DITHER_DATA, where there is one
    rounds : at most so many rounds of a pass; None: the whole pass
    shuffles, seed : the number of passes, and the seed of all random streams; shuffle 3 is the same for all algorithms
    jobs : processes
    out : a folder that keeps the results, and what it holds is not computed anew; None: nothing is kept
    levels, pays : of sets of numbers: how many levels are arms, and "distance" or "price"
    how : with out, also block, accept, backend and cluster, as `run.reproduce` takes them
    """
    of_sets: dict[str, Any] = dict(folder=folder, rounds=rounds, levels=levels, pays=pays)
    if out is not None:
        if isinstance(algorithms, Mapping):
            raise TypeError("with out=, algorithms are a list: results are kept under their names")
        figure = baking(algorithms, sets, shuffles=shuffles, **of_sets)
        run.reproduce(figure, out=out, seed=seed, jobs=jobs, **how)
        return set_losses.of_curves(figure, Comparison.stored(Path(out), figure, seed=seed).curves)
    if how:
        raise TypeError(f"{', '.join(how)} is for results that are kept: name a folder, as in out='results'")
    errors.at_least("shuffles", shuffles, 1)
    agents = entries(algorithms if isinstance(algorithms, (str, Mapping)) else specs(*algorithms))
    panels = panels_of(sets, (), **of_sets)
    facts = tuple(set_losses.facts_of(panel.env) for panel in panels)
    losses = []
    for panel, of in zip(panels, facts, strict=True):
        T, last = panel.rounds, np.array([panel.rounds])
        size: dict[str, Any] = dict(runs=range(shuffles), rounds=T, marks=last, seed=seed, jobs=jobs)
        regrets = computing.regrets(environments.build(panel.env), agents, **size)
        losses.append(np.column_stack([regrets[name][0][:, -1] for name in agents]) / (T * of.worst))
    return SetLosses(np.array(losses), np.array([panel.rounds for panel in panels]), facts, tuple(agents))


def baking(
    algorithms: Iterable[Any],
    sets: Sequence[str] | None = None,
    *,
    shuffles: int = 4,
    reference: str | None = None,
    **how: Any,
) -> Figure:
    """The figure of a bake-off. how : folder, rounds, levels and pays, as `play` takes them.

    reference : the algorithm that the others are compared with; None: LinFP, or else the first
    """
    every = specs(*algorithms)
    if not every:
        raise ValueError("name at least one algorithm")
    errors.at_least("shuffles", shuffles, 1)
    base = "" if reference is None else str(named(reference, every))
    panels = panels_of(sets, every, reference=base, **how)
    return Figure(NAME, TITLE, tuple(panels), runs=shuffles)


def panels_of(
    sets: Sequence[str] | None,
    algorithms: tuple[Spec, ...],
    *,
    folder: str | Path | None = None,
    rounds: int | None = 1500,
    levels: int = 10,
    pays: str = "distance",
    reference: str = "",
) -> list[Panel]:
    """A panel for each set."""
    errors.at_least("rounds", rounds, 1, or_none=True)
    panels = []
    for name, data in bake_sets.chosen(sets, folder).items():
        env = environments.describe(**bake_sets.described(data, levels=levels, pays=pays))
        N = set_losses.facts_of(env).rows
        panels.append(Panel(name, env, N if rounds is None else min(rounds, N), algorithms, reference=reference))
    return panels

"""The losses of algorithms on many sets: S sets, R shuffles, A algorithms.

loss        the mean loss of one shuffled pass, each round scored before it is learnt from (progressive); with labels
            the share of errors
normalised  (loss - lowest) / (loss of uniform play - lowest), of the means over the shuffles: 0 is the best algorithm
            on this set, 1 is random
ratio       loss over the lowest on this set; over all sets the geometric mean and the largest
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dither.base import errors, notebook
from dither_bench.define import bake_sets
from dither_bench.define.bake_sets import SetFacts
from dither_bench.define.environments import build
from dither_bench.define.panels import Figure
from dither_bench.judge import tables


@dataclass(frozen=True, eq=False)
class SetLosses:
    """The losses of one bake-off."""

    loss: np.ndarray  # (S, R, A)  mean loss of a pass, from 0 to 1
    rounds: np.ndarray  # (S,)  rounds of a pass
    sets: tuple[SetFacts, ...]  # (S,)
    algorithms: tuple[str, ...]  # (A,)

    @property
    def shuffles(self) -> int:
        """R."""
        return int(self.loss.shape[1])

    @property
    def mean(self) -> np.ndarray:
        """The mean loss over the shuffles, (S, A)."""
        return np.asarray(self.loss.mean(axis=1))

    @property
    def normalised(self) -> np.ndarray:
        """0 is the best of a set and 1 is random, (S, A)."""
        lowest = self.mean.min(axis=1, keepdims=True)
        random = np.array([[of.random] for of in self.sets])
        return np.asarray((self.mean - lowest) / np.maximum(random - lowest, self._least))

    @property
    def _least(self) -> np.ndarray:
        """The least loss that is told from none, (S, 1): that of one error in all shuffles."""
        return 1.0 / (self.rounds[:, None] * self.shuffles)

    def ratios(self, to: Sequence[str] | None = None) -> np.ndarray:
        """The loss over the lowest of these algorithms on each set, (S, A); None: of all.

        A loss of less than one error in all shuffles counts as one.
        """
        mean = np.maximum(self.mean, self._least)
        chosen = list(range(len(self.algorithms))) if to is None else [self.index(name) for name in to]
        return np.asarray(mean / mean[:, chosen].min(axis=1, keepdims=True))

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, the lowest ratio first."""
        frame = self.table().sort("ratio", maintain_order=True)
        rows = [(name, *(f"{x:.4g}" for x in numbers)) for name, *numbers in frame.iter_rows()]
        title = f"{len(self.sets)} sets, {self.shuffles} shuffled passes of each"
        return notebook.table(frame.columns, rows, title=title)

    def index(self, algorithm: str) -> int:
        """The place of an algorithm. Raises LookupError with the nearest name."""
        errors.among("algorithm of the bake-off", algorithm, self.algorithms)
        return self.algorithms.index(algorithm)

    def select(self, algorithms: Sequence[str]) -> "SetLosses":
        """The losses of these algorithms alone."""
        at = [self.index(name) for name in algorithms]
        return SetLosses(self.loss[:, :, at], self.rounds, self.sets, tuple(algorithms))

    def each(self) -> pl.DataFrame:
        """A row a set and algorithm: its loss, normalised and as a ratio, and the sd over the shuffles."""
        sd = self.loss.std(axis=1, ddof=1) if self.shuffles > 1 else np.full_like(self.mean, np.nan)
        normalised, ratios, rows = self.normalised, self.ratios(), []
        for s, of in enumerate(self.sets):
            for a, name in enumerate(self.algorithms):
                numbers = (float(kind[s, a]) for kind in (self.mean, sd, normalised, ratios))
                rows.append((of.name, int(self.rounds[s]), of.arms, of.dim, name, *numbers))
        names = ["set", "rounds", "arms", "dim", "algorithm", "loss", "sd", "normalised", "ratio"]
        return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("sd").fill_nan(None))

    def table(self, to: Sequence[str] | None = None) -> pl.DataFrame:
        """A row an algorithm: loss, normalised, ratio (geometric mean over the sets), largest (ratio)."""
        ratios = self.ratios(to)
        columns: dict[str, Any] = {"algorithm": list(self.algorithms), "loss": self.mean.mean(axis=0)}
        columns |= {"normalised": self.normalised.mean(axis=0), "ratio": np.exp(np.log(ratios).mean(axis=0))}
        return pl.DataFrame(columns | {"largest": ratios.max(axis=0)})


def of_curves(figure: Figure, curves: pl.DataFrame) -> SetLosses:
    """Of the rows of `tables.curves`: the sets are the panels, and the shuffles are the runs that were asked for.

    Every set counts alike: as many shuffles of each are taken as every algorithm has on every set. An algorithm that
    lacks a set is left out. Raises ValueError where nothing is left.
    """
    panels, curves = figure.panels, curves.filter(pl.col("run") < figure.runs)
    of_names = {
        name: [tables.at(curves, panel, panel.rounds, algorithm=name) for panel in panels]
        for name in map(str, figure.algorithms)
    }
    names = tuple(name for name, of_sets in of_names.items() if all(of_sets))
    ends = [[of_names[name][s] for name in names] for s in range(len(panels))]
    common = [sorted(set.intersection(*map(set, of_set))) if names else [] for of_set in ends]
    n = min(map(len, common), default=0)
    if n == 0:
        raise ValueError("the sets have no algorithm and shuffle in common: run the command again")
    sets, rounds = tuple(facts_of(panel.env) for panel in panels), np.array([panel.rounds for panel in panels])
    regret = np.array(
        [[[end[run] for end in of_set] for run in runs[:n]] for of_set, runs in zip(ends, common, strict=True)]
    )
    worst = np.array([of.worst for of in sets])
    return SetLosses(regret / (rounds * worst)[:, None, None], rounds, sets, names)


def facts_of(env: Any) -> SetFacts:
    """The facts of the set that an environment as data describes."""
    return bake_sets.facts(build(env))

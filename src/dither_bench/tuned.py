"""One setting out of many, chosen in simulation: the lowest regret of all that were tried, judged on fresh runs.

A `sweep` finds the best setting of each algorithm. Here all settings of all algorithms are rivals, and one is chosen.
The runs that choose have the seed of the search (`sweeps.search_seed`), so they are none of those that report.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dither.algorithms import Spec, grids
from dither.base import errors
from dither_bench import sweeps
from dither_bench.define import environments, figures
from dither_bench.judge import sweep_words, tables, words
from dither_bench.judge.choices import Found, Gap
from dither_bench.results import Results
from dither_bench.run import run


@dataclass(frozen=True)
class Tuned:
    """What `tune` found."""

    best: Spec  # the lowest mean regret on the runs of the search
    tied: tuple[Spec, ...]  # `best`, and those that these runs cannot tell apart from it
    gaps: dict[Spec, Gap]  # of the others: how far each lies above `best`; the intervals hold for all pairs at once
    regret: Gap  # of `best` on the fresh runs: mean, and the ends of its 95 % interval
    found: Found  # the search: all settings
    fresh: Results  # the fresh runs of `best`

    def __str__(self) -> str:
        return "\n".join(self.says)

    @property
    def says(self) -> list[str]:
        """What was found, in sentences."""
        tried, runs = len(self.gaps) + 1, self.found.choices[0].runs
        said = [
            f"Of {tried} settings, {self.best} has the lowest regret on {runs} run{'s' * (runs != 1)} of the search "
            f"(seed {self.found.seed})."
        ]
        if runs == 1:
            said.append("One run alone decides nothing.")
        elif len(self.tied) > 1:
            names = errors.listed([str(spec) for spec in self.tied if spec != self.best])
            said.append(f"It cannot be told apart from {names}: the intervals of the paired differences hold 0.")
        else:
            said.append("It is below all others by more than the error of the paired comparisons.")
        mean, low, high = self.regret
        ends = "" if low is None else f" [{words.number(low)}, {words.number(high)}]"
        said.append(
            f"On fresh runs (seed {self.fresh.seed}), which had no part in the choice, its regret is "
            f"{words.number(mean)}{ends}."
        )
        return said + list(sweep_words.failures(self.found))


def tune(
    env: Any,
    algorithms: Iterable[Any],
    *,
    settings: sweeps.Settings = (),
    tries: int | None = None,
    rounds: int = 2000,
    runs: int = 20,
    seed: int = 0,
    out: str | Path = "results",
    **how: Any,
) -> Tuned:
    """Choose one setting of all by simulation, and run it anew on fresh runs.

    env, settings, tries, rounds, runs, seed, out, how : as for `sweep`
    algorithms : texts with all values to try ("LinFP:c=0.3|1|3", "Greedy"), and policies or algorithms of your own

    A setting that ends with an error is left out and named. Raises ValueError for fewer than two settings, and as
    `sweep` does.
    """
    if isinstance(algorithms, str):
        raise ValueError(f"algorithms must be a list of texts; got {algorithms!r}: write [{algorithms!r}]")
    described = environments.described(env)
    over = sweeps.widened(algorithms, grids.axes(settings))
    figure = sweeps.searching(described, over, rounds=rounds, runs=runs, tries=tries, seed=seed, varies=False)
    if len(figure.algorithms) < 2:
        raise ValueError(
            f"tune needs at least two settings, as in LinFP:c=0.3|1; got {', '.join(map(str, figure.algorithms))}"
        )
    found = sweeps.search(figure, out=Path(out), seed=seed, **how)
    best, gaps = _lowest(found)
    fresh = figures.adhoc(described, [best], rounds=rounds, runs=runs)
    run.reproduce(fresh, out=out, seed=seed, **how)
    results = Results.stored(Path(out), fresh, seed=seed)
    last = results.curves.filter(algorithm=str(best), round=rounds)["regret"].to_numpy()
    tied = (best, *(spec for spec, (_, low, _) in gaps.items() if low is None or low <= 0))
    return Tuned(best, tied, gaps, tables.interval(last), found, results)


def _lowest(found: Found) -> tuple[Spec, dict[Spec, Gap]]:
    """The setting of the lowest mean regret over the runs that all have, and how far the others lie above it."""
    (panel,) = found.figure.panels
    at = found.curves.filter(panel=panel.name, round=panel.rounds)
    regret = {
        spec: dict(at.filter(algorithm=str(spec)).select("run", "regret").iter_rows())
        for spec in panel.algorithms
        if str(spec) not in found.failed
    }
    shared = sorted(set.intersection(*(set(of) for of in regret.values())))
    last = {spec: np.array([of[run] for run in shared]) for spec, of in regret.items()}
    best = min(last, key=lambda spec: float(last[spec].mean()))
    pairs = max(len(last) * (len(last) - 1) / 2, 1)
    level = 1 - (1 - tables.LEVEL) / pairs
    return best, {spec: tables.interval(x - last[best], level=level) for spec, x in last.items() if spec != best}

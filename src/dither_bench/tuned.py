"""One setting out of many, chosen in simulation: the lowest regret of all that were tried, judged on fresh runs.

A `sweep` finds the best setting of each algorithm. Here all settings of all algorithms are rivals, and one is chosen.
The runs that choose have the seed of the search (`sweeps.search_seed`), so they are none of those that report.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither.algorithms import Spec
from dither.base import errors, notebook
from dither_bench import sweeps
from dither_bench.define import environments, figures
from dither_bench.judge import sweep_words, tables, words
from dither_bench.judge.choices import Gap, SettingsSearch, alike, horizon, lowest
from dither_bench.results import Comparison


@dataclass(frozen=True)
class ChosenSetting:
    """What `tune` found."""

    best: Spec  # the lowest mean regret on the runs of the search
    tied: tuple[Spec, ...]  # `best`, and those that these runs cannot tell apart from it
    gaps: dict[Spec, Gap]  # of the others: how far each lies above `best`; the intervals hold for all pairs at once
    regret: Gap  # of `best` on the fresh runs: mean, and the ends of its 95 % interval
    search: SettingsSearch  # all settings
    fresh: Comparison  # the fresh runs of `best`

    def __str__(self) -> str:
        return "\n".join(self.says)

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentences."""
        return notebook.sentences(self.says)

    @property
    def says(self) -> list[str]:
        """What was found, in sentences."""
        tried, runs = len(self.gaps) + 1, self.search.choices[0].runs
        sentences = [
            f"Of {tried} settings, {self.best} has the lowest regret on {words.over([runs])} of the search "
            f"(seed {self.search.seed})."
        ]
        if runs == 1:
            sentences.append(words.ONE_RUN)
        elif len(self.tied) > 1:
            names = errors.listed([str(spec) for spec in self.tied if spec != self.best])
            sentences.append(f"It cannot be told apart from {names}: the intervals of the paired differences hold 0.")
        else:
            sentences.append("It is below all others by more than the error of the paired comparisons.")
        sentences.append(
            f"On fresh runs (seed {self.fresh.seed}), which had no part in the choice, its regret is "
            f"{words.number(self.regret[0])}{words.between(*self.regret[1:])}."
        )
        return [*sentences, *sweep_words.failures(self.search)]


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
) -> ChosenSetting:
    """Choose one setting of all by simulation, and run it anew on fresh runs.

    env, settings, tries, rounds, runs, seed, out, how : as for `sweep`
    algorithms : texts with all values to try ("LinFP:c=0.3|1|3", "Greedy"), and policies or algorithms of your own

    A setting that ends with an error is left out and named. Raises ValueError for fewer than two settings, and as
    `sweep` does.
    """
    if isinstance(algorithms, str):
        raise ValueError(f"algorithms must be a list of texts; got {algorithms!r}: write [{algorithms!r}]")
    data = environments.described(env)
    size: dict[str, Any] = dict(rounds=rounds, runs=runs)
    figure = sweeps.searching(data, algorithms, settings, tries=tries, seed=seed, varies=False, **size)
    if len(figure.algorithms) < 2:
        raise ValueError(
            f"tune needs at least two settings, as in LinFP:c=0.3|1; got {', '.join(map(str, figure.algorithms))}"
        )
    search = sweeps.search(figure, out=Path(out), seed=seed, **how)
    (panel,) = figure.panels
    last = horizon(panel, search.curves, panel.algorithms, failed=search.failed)
    pairs = max(len(last) * (len(last) - 1) / 2, 1)
    best, gaps = lowest(last, level=1 - (1 - tables.LEVEL) / pairs)
    fresh = sweeps.anew(figures.adhoc(data, [best], **size), out=Path(out), seed=seed, **how)
    regret = fresh.curves.filter(algorithm=str(best), round=rounds)["regret"].to_numpy()
    return ChosenSetting(best, (best, *alike(gaps)), gaps, tables.interval(regret), search, fresh)

"""What the searches for a figure's unstated settings share: the published values, the score, the table of results.

A setting is the same for all algorithms, so that no single one is tuned. The score of a setting is

    the mean of |log(ours/published)|  over the rounds looked at, then over the algorithms, then over the panels

0.1 is "about 10 % off". Values at which the published curve has left the drawing do not count. A regret below
`LEAST` counts as `LEAST`, since a logarithm of 0 would decide everything.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import dither
from dither.simulation.simulate import configured
from dither_bench.define import published

LEAST = 0.1
SEED = 1  # of the search; the figures are run with seed 0, so that the winner meets runs that it was not chosen by

Values = dict[str, dict[str, np.ndarray]]  # panel -> algorithm -> values at the rounds looked at


def of_paper(figure: str, labels: Iterable[str], looks: Mapping[str, tuple[int, ...]]) -> Values:
    """The published values of these labels of the legend; NaN where the curve has left the drawing."""
    rows = published.rows().filter(figure=figure, clipped=0)
    found: Values = {}
    for panel, rounds in looks.items():
        found[panel] = {}
        for label in labels:
            curve = rows.filter(panel=panel, algorithm=label)
            known = dict(zip(curve["round"].to_list(), curve["regret_mean"].to_list(), strict=True))
            found[panel][label] = np.array([known.get(t, np.nan) for t in rounds])
    return found


def measured(
    worlds: Mapping[str, Any], agents: Mapping[str, Any], *, looks: Mapping[str, tuple[int, ...]], runs: int, T: int
) -> tuple[Values, Values]:
    """Our mean regrets and their standard errors. worlds: panel -> environment; agents: label -> spec; T is told."""
    mean, se = {}, {}
    for panel, env in worlds.items():
        crew = {label: configured(spec, env, rounds=T) for label, spec in agents.items()}
        found = dither.simulate(env, crew, runs=runs, rounds=max(looks[panel]), record=looks[panel], seed=SEED).regret
        mean[panel] = dict(zip(crew, found.mean(axis=1), strict=True))
        se[panel] = dict(zip(crew, found.std(axis=1, ddof=1) / np.sqrt(runs), strict=True))
    return mean, se


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The mean of |log(ours/published)| over the rounds with a published value; NaN where there is none."""
    known = np.isfinite(theirs)
    return float(np.abs(np.log(np.maximum(ours[known], LEAST) / theirs[known])).mean()) if known.any() else np.nan


def score(ours: Values, theirs: Values) -> dict[str, float]:
    """The score of each panel, and of "all"."""
    each = {
        panel: float(np.nanmean([distance(ours[panel][label], values) for label, values in curves.items()]))
        for panel, curves in theirs.items()
    }
    return each | {"all": float(np.mean(list(each.values())))}


def search(names: Iterable[str], play: Callable[[str], tuple[Values, Values]], theirs: Values, out: Path) -> None:
    """Play the settings that the file `out` lacks, in order, and append a line of JSON for each."""
    done = {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else set()
    for name in names:
        if name in done:
            continue
        start = time.process_time()
        ours, se = play(name)
        line = dict(name=name, score=score(ours, theirs), seconds=round(time.process_time() - start, 1))
        line |= {"mean": _plain(ours), "se": _plain(se)}
        with out.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(f"{name}: {line['score']['all']:.2f}, {line['seconds']} s", flush=True)


def table(out: Path, theirs: Values) -> str:
    """The settings from the best to the worst, as a table of Markdown."""
    lines = sorted((json.loads(line) for line in out.read_text().splitlines()), key=lambda line: line["score"]["all"])
    head = ["setting", "score", *theirs]
    rows = [[line["name"], *(f"{line['score'][key]:.2f}" for key in ("all", *theirs))] for line in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def _plain(values: Values) -> dict[str, dict[str, list[float]]]:
    return {panel: {label: v.round(3).tolist() for label, v in curves.items()} for panel, curves in values.items()}

"""Which variant gives the published curves of Figure H.3? And how far is each algorithm of H.1 from its curve?

The caption of H.3 says new contexts in each round, ‖θ*‖ = 2 and noise of sd 0.1. The published LinUCB and RandLinUCB
keep growing, and no variant with new contexts does. `VARIANTS` was written before any of them was run. An earlier
search, whose record was lost, pointed to one fixed set of arms, ‖θ*‖ = 1, the preset "as_run" and √λ in place of S;
this list was written with that knowledge, before its runs.

    python benchmarks/figures_h1_h3.py --table                          the table of what was run: its record
    python benchmarks/figures_h1_h3.py [--runs 10] [--out FILE.jsonl]   runs what the file lacks; all take 5 minutes
    python benchmarks/figures_h1_h3.py --gaps results [--figure h1]     how many errors each stored curve is away

A variant is the same for all six algorithms, but for S, which LinUCB and RandLinUCB alone have. σ = 0.1 is told to
those that take it (not to the pseudo-rewards of LinPHE as run), unless the variant says otherwise. `settings_search`
has the score. T = 20,000 is told, and the runs end where `LOOKS` ends.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import settings_search

from dither import envs
from dither.algorithms import Spec, specs
from dither_bench.define import published
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store, of_panel

T = 20_000
LOOKS = {"d=10": (501, 1001, 2001, 5001), "d=40": (501, 1001, 2001, 5001)}
LEGEND = {
    "LinFP": "LinFP",
    "ε-Greedy": "EpsGreedy",
    "LinUCB": "LinUCB",
    "LinTS": "LinTS",
    "LinPHE": "LinPHE",
    "RandLinUCB": "RandLinUCB",
}
ROOT_OF_LAMBDA = 0.01  # √λ of λ = 1e-4


@dataclass(frozen=True)
class Variant:
    """One try."""

    contexts: int | None  # the number of fixed sets of arms; None: new arms in each round
    norm: float  # ‖θ*‖
    preset: str = "paper"
    S: float | None = None  # in the radius of LinUCB and RandLinUCB; None: that of the preset
    told: bool = True  # whether σ is told
    lam: float | None = None  # λ; None: that of the preset

    @property
    def name(self) -> str:
        """What it is, in words."""
        parts = ["new arms" if self.contexts is None else "one set", f"‖θ*‖ = {self.norm:g}"]
        parts += ["default" if self.preset == "paper" else self.preset]  # what the record calls it
        parts += [] if self.S is None else [f"S = {self.S:g}"]
        parts += [] if self.told else ["σ not told"]
        return ", ".join(parts + ([] if self.lam is None else [f"λ = {self.lam:g}"]))


VARIANTS = (
    *(Variant(contexts, norm) for contexts in (None, 1) for norm in (2.0, 1.0)),
    *(Variant(contexts, 1.0, "as_run") for contexts in (None, 1)),
    *(Variant(contexts, 1.0, "as_run", S=ROOT_OF_LAMBDA) for contexts in (None, 1)),
    Variant(1, 1.0, "as_run", S=1.0),
    Variant(1, 1.0, S=ROOT_OF_LAMBDA),
    Variant(1, 1.0, told=False),
    Variant(1, 1.0, lam=1.0),
)
NAMES = {variant.name: variant for variant in VARIANTS}
assert len(NAMES) == len(VARIANTS) == 12


def agents(variant: Variant) -> dict[str, Spec]:
    """Label -> algorithm with the settings."""
    found = {}
    for label, name in LEGEND.items():
        (spec,) = specs(name)
        wanted: dict[str, Any] = {"sigma": 0.1 if variant.told else None, "lam": variant.lam}
        wanted |= {"S": variant.S if name in ("LinUCB", "RandLinUCB") else None}
        given = {"preset": variant.preset}
        known = {key for key in wanted if key == "lam" or spec.algorithm.knows(key, preset=variant.preset)}
        given |= {key: value for key, value in wanted.items() if value is not None and key in known}
        (found[label],) = specs(f"{name}:" + ",".join(f"{key}={value}" for key, value in given.items()))
    return found


def play(name: str, runs: int) -> tuple[settings_search.Values, settings_search.Values]:
    """Our means and errors in all panels."""
    variant = NAMES[name]
    worlds = {
        panel: envs.Linear(dim=int(panel[2:]), contexts=variant.contexts, norm=variant.norm, noise=0.1)
        for panel in LOOKS
    }
    return settings_search.measured(worlds, agents(variant), looks=LOOKS, runs=runs, T=T)


def gaps(folder: Path, figure: str) -> None:
    """For each panel and algorithm of stored runs: the mean, the sd over runs, the quartiles, the gap in errors.

    The gap is (ours - published)/√(se² + se²), at the last readable round of the published curve that was recorded.
    """
    (request,) = asked.figures(folder, only=figure)
    store = Store(folder / STORE)
    print("| panel | algorithm | round | ours, mean ± se | sd over runs | quartiles | published ± se | gap in se |")
    print("|---|---|---|---|---|---|---|---|")
    for panel in request.figure.panels:
        for name, cell in of_panel(panel, seed=request.seed).items():
            curve = published.curve(request.figure, panel, algorithm=cell.algorithm).filter(bound=False)
            rows = store.read(cell, request.codes[cell.key])
            both = sorted(set(curve["round"]) & set(rows["round"]))
            if not both:
                continue
            (drawn,) = curve.filter(round=both[-1]).to_dicts()
            ours = rows.filter(round=both[-1])["regret"].to_numpy()
            se, theirs = ours.std(ddof=1) / np.sqrt(len(ours)), drawn["se"] or 0.0
            low, middle, high = np.quantile(ours, [0.25, 0.5, 0.75])
            print(
                f"| {panel.name} | {name} | {both[-1]} | {ours.mean():.0f} ± {se:.0f} | {ours.std(ddof=1):.0f} "
                f"| {low:.0f}, {middle:.0f}, {high:.0f} | {drawn['mean']:.0f} ± {theirs:.0f} "
                f"| {(ours.mean() - drawn['mean']) / np.hypot(se, theirs):+.1f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--table", action="store_true", help="print what was run, and run nothing")
    parser.add_argument("--gaps", type=Path, help="a folder of results: print how far its runs are from the paper's")
    parser.add_argument("--figure", default="h1", help="of which figure")
    given = parser.parse_args()
    if given.gaps is not None:
        gaps(given.gaps, given.figure)
        return
    theirs = settings_search.of_paper("h3", LEGEND, LOOKS)
    if not given.table:
        settings_search.search(NAMES, lambda name: play(name, given.runs), theirs, given.out)
    print(settings_search.table(given.out, theirs))


if __name__ == "__main__":
    main()

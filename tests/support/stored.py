"""Results that were never computed: random walks in a store, where a test asks how results are shown."""

import numpy as np

from dither.simulation.simulate import recorded
from dither_bench.define import published
from dither_bench.keep import asked
from dither_bench.keep.store import STORE, Store, of_panel


def fabricated(figure, *, out, runs=3, seed=0):
    """Let the folder hold runs of every cell of the figure, at the rounds that real runs record."""
    rng, store = np.random.default_rng(seed), Store(out / STORE)
    for panel in figure.panels:
        rounds = np.array(sorted({*recorded(panel.rounds).tolist(), *published.marks(panel)}))
        for cell in of_panel(panel, seed=0).values():
            steps = rng.uniform(0.2, 1.0, size=(runs, 1)) * rng.exponential(size=(runs, len(rounds)))
            regret = np.cumsum(steps * np.diff(np.sqrt(rounds), prepend=0), axis=1)
            about = {"model": "Ridge(lam=1.0)", "policy": "Greedy()"}
            store.write(cell, range(runs), code="made-up", rounds=rounds, regret=regret, realised=regret, **about)
    asked.record(out, figure, seed=0)

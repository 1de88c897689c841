"""Random streams: one for each (seed, run, purpose), so that a run does not know its neighbours.

A stream is a `numpy.random.Generator` on SFC64 (7.5 ns a normal). Whatever is drawn in one call for n rounds is the
same as n calls of one round each; a purpose therefore never mixes two kinds of draws whose order could depend on n.
"""

import numpy as np

# Append only: a number that changes its meaning changes every published run.
PURPOSES = {"policy": 0, "ties": 1, "instance": 2, "contexts": 3, "noise": 4, "monte_carlo": 5, "delay": 6, "floor": 7}
PURPOSES |= {"weights": 8, "training": 9}


def stream(seed: int, run: int, purpose: str, *more: int) -> np.random.Generator:
    """The stream of one purpose in one run; `more` (for example a decision's number) derives streams below it."""
    sequence = np.random.SeedSequence(seed, spawn_key=(run, PURPOSES[purpose], *more))
    return np.random.Generator(np.random.SFC64(sequence))


def entropy(seed: int | None) -> int:
    """The seed itself; fresh entropy for None, to be recorded by whoever asked."""
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed.__index__() < 0:
        raise ValueError(f"seed must be a whole number of at least 0, or None for fresh entropy; got {seed!r}")
    return seed.__index__()

"""What the tests of the log share: a log that is filled."""

from datetime import UTC, datetime

import numpy as np

import dither
from dither import log

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def filled(path=None, *, n=40, seed=0, floor=0.1, rewards=True, **settings):
    """A log of n decisions with 1 to 5 arms each."""
    bandit = dither.LinFP(dim=3, seed=seed, floor=floor)
    rng = np.random.default_rng(seed)
    written = log.Log(path, bandit=bandit, **settings)
    for i in range(n):
        X = rng.normal(size=(rng.integers(1, 6), 3))
        d = written.decide(X, id=f"d{i}", time=i, extra={"user": f"u{i % 7}"})
        if rewards:
            written.reward(d.id, X[d.arm] @ [1, 0, -1] + rng.normal(), i + 0.5)
        bandit.update(X[d.arm], 0.5)
    return written

"""Arms that are not always on offer: any environment, with a random mask in each round.

    share   each arm is on offer with this probability, by itself; where that leaves none, one arm is drawn uniformly
    least   in its place: the number on offer is uniform from `least` to `most`, and each set of that size is as likely

With `share` = p, an arm is on offer with probability p + (1 - p)^K/K. Policies are told the mask, as `choose(mask=)`
tells a live bandit. The regret is measured against the best arm on offer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors
from dither.envs import base
from dither.envs.around import Around


@dataclass(frozen=True)
class Masked(Around):
    """An environment whose arms come and go.

    env : the environment
    share : p, the probability that an arm is on offer; None: 1/2, unless `least` and `most` say how many are
    least, most : the smallest and the largest number of arms on offer; most=None: all K
    """

    env: Any
    share: float | None = None
    least: int | None = None
    most: int | None = None
    lockstep = True

    def __post_init__(self) -> None:
        if self.share is not None and self.least is not None:
            raise ValueError(f"give share or least, not both: got {self.share} and {self.least}")
        if hasattr(self.env, "offered"):
            raise ValueError(f"arms are masked once: {type(self.env).__name__} has a mask of its own")
        if self.least is None:
            errors.within("share", 0.5 if self.share is None else self.share, 0, 1)
            if self.most is not None:
                raise ValueError(f"most goes with least, which is not given: got most={self.most}")
            return
        errors.at_least("least", self.least, 1)
        errors.at_least("most", self.most, 1, or_none=True)
        most = self.env.arms if self.most is None else self.most
        if not self.least <= most <= self.env.arms:
            raise ValueError(
                f"least and most must be in order and at most arms={self.env.arms}, got {self.least} and {most}"
            )

    def offered(self, run: Any, rng: np.random.Generator, X: np.ndarray, more: Any) -> np.ndarray:
        """The arms on offer in n rounds: (n, K)."""
        n, K = base.rounds(self, X), self.env.arms
        if self.least is None:
            u = rng.random((n, K))
            xp = arrays.namespace(u)
            return (u < (0.5 if self.share is None else self.share)) | (u == xp.min(u, axis=-1, keepdims=True))
        u = rng.random((n, K + 1))  # the first says how many; the others put the arms in order
        xp, most = arrays.namespace(u), K if self.most is None else self.most
        number = self.least + xp.astype(xp.floor(u[..., :1] * (most - self.least + 1)), xp.int64)
        return xp.argsort(xp.argsort(u[..., 1:], axis=-1), axis=-1) < number

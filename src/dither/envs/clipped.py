"""A linear mean that is cut to [0, 1], with rewards of 0 or 1: the world that Figure 3 (middle) seems to come from.

    E r = min(max(x'θ*, 0), 1),   r ~ Bernoulli

A generalised linear model is misspecified here, since the mean is no smooth function of x'θ*. Arms with x'θ* >= 1 are
all best: they cost nothing. κ* and κ do not exist. `sphere` says how θ* and the contexts are drawn.
"""

from typing import Any

import numpy as np

from dither.base import arrays
from dither.envs.generalised import OnSphere, bernoulli
from dither.envs.sphere import SphereRun


class Clipped(OnSphere):
    """K arms of d features; the reward is 1 with probability x'θ* cut to [0, 1], else 0.

    dim, arms : d and K
    contexts : |C|, the number of arm sets; each round draws one of them. None: every round draws new arms
    norm : S = ‖θ*‖
    unit : whether features are scaled to length 1
    """

    rewards = bernoulli
    lockstep = True

    def means(self, run: SphereRun, X: np.ndarray, more: Any) -> np.ndarray:
        """x'θ* cut to [0, 1]: (n, K)."""
        return arrays.namespace(X).clip(run.along(X), 0.0, 1.0)

"""Replay: an environment from a log and predictions.

A log tells the reward of the arm shown, and of no other arm. So this environment takes predictions M of the rewards of
all arms as the truth, such as those of a cross-fitted model. `simulate` then runs any policy on the logged contexts.
The answer is as good as the model. Without M there is no regret to simulate. `dither.ope.replay` plays a policy that
learns against the log itself, by rejection.
"""

from typing import Any

import numpy as np

from dither.deciding import inputs
from dither.envs.classification import ShuffledRows


class DrawnRows(ShuffledRows):
    """Rows drawn one by one. The probability of a row is in proportion to the rows of the traffic it stands for."""

    def __init__(self, rng: np.random.Generator, s: np.ndarray) -> None:
        self.rng, self.rows, self.edges = rng, len(s), np.cumsum(s / np.sum(s))

    def next(self, n: int) -> np.ndarray:
        """The next n row numbers."""
        return np.minimum(np.searchsorted(self.edges, self.rng.random(n), side="right"), self.rows - 1)


class Replay:
    """An environment from a `dither.log.Logged`.

    log : rewards and propensities of all rows (`log.usable(...)`), and features
    M : (n, K) predicted rewards; None: it cannot be simulated
    """

    sigma = 1.0
    S = 1.0

    def __init__(self, log: Any, *, M: Any = None) -> None:
        from dither.ope.rows import row_weights  # the other environments need neither ope nor log

        if len(log) == 0:
            raise ValueError("a replay needs a log with rows")
        self.r = log.r
        valid = (log.p > 0) & (log.p <= 1 + inputs.ROUNDING)
        for name, bad in (("reward", ~np.isfinite(self.r)), ("propensity", ~valid)):
            if bad.any():
                rows = ", ".join(map(str, log.numbers[bad][:10].tolist()))
                raise ValueError(f"{int(bad.sum())} rows have no valid {name} (rows {rows}): replay log.usable(...)")
        self.disjoint, self.X, mask, s = log.slots, log.X, log.mask, log.weight
        self.arms, self.dim = mask.shape[1], self.X.shape[-1]
        self.s = None if s is None or np.all(s == s[0]) else row_weights(s, len(log))
        self.M: Any = None
        if M is not None:
            self.M = inputs.numbers(M, name="M")
            if self.M.shape != mask.shape:
                raise ValueError(f"M must be {mask.shape}, a reward for each arm of each row, got {self.M.shape}")
            inputs.finite(self.M, name="M", mask=None)
            if not mask.all():
                raise ValueError("simulate needs the same number of arms in each row of the log")

    def __repr__(self) -> str:
        return f"Replay({len(self.r)} rows, arms={self.arms}, dim={self.dim})"

    def start(self, rng: np.random.Generator) -> ShuffledRows:
        """The rows in an order of this run alone: shuffled passes, or draws by weight if rows have weights."""
        if self.M is None:
            raise ValueError(
                "a log has the reward of the shown arm alone: give Replay(log, M=predicted rewards), or play a bandit "
                "against the log with dither.ope.replay(bandit, log)"
            )
        return ShuffledRows(rng, len(self.r)) if self.s is None else DrawnRows(rng, self.s)

    def fill(self, run: ShuffledRows, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """Write the features of the next n rows into `out`; return the numbers of these rows."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return rows

    def means(self, run: ShuffledRows, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """The predicted rewards of all arms, (n, K)."""
        return self.M[more]

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """Returns None: the rewards are the predictions, without noise."""

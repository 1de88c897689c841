"""Replay: an environment from a log.

A log tells the reward of the arm that was shown and of no other, so a policy that learns can be run on it in two ways:

    run         rejection (Li et al. 2011; Dudík et al. 2012, Section 4): the policy chooses in each logged round;
                where it shows another arm than the log, or a coin of probability C/p does not fall, the round is
                passed over. What is left has the law of the policy running live: a round is kept with probability
                C whatever its context, as Σ_a q_a p_a C/p_a = C, and then shows arm a with probability q_a. That
                needs C <= min p and a log whose rounds are independent, with every arm that the policy may show.
                A row that stands for s rows of a log that was thinned out (its column weight) is kept with
                probability C s/(p S), S the largest s: then the rounds that are left come as the traffic did.
    simulate    with predictions M of all arms' rewards (a model's, say cross-fitted) as the truth: `means` are M,
                and the answer is as good as the model

Without M, `simulate` is refused: a plain replay of partial feedback has no regret.
"""

from typing import Any, NamedTuple

import numpy as np

from dither import errors, inputs, streams
from dither.bandit import Bandit
from dither.envs.classification import Run
from dither.ope.rows import row_weights


class Replayed(NamedTuple):
    """What a policy got on the log. T accepted rounds."""

    r: np.ndarray  # (T,) rewards
    rows: np.ndarray  # (T,) rows of the log
    read: int  # rounds offered
    disagreed: int  # the policy showed another arm
    thinned: int  # it agreed, and the coin C/p did not fall

    @property
    def value(self) -> float:
        """The mean reward of the accepted rounds; NaN where there is none."""
        return float(np.mean(self.r)) if self.r.size else float("nan")

    @property
    def se(self) -> float:
        """Its standard error, of rounds as if they were independent; NaN below two."""
        return float(np.std(self.r, ddof=1) / np.sqrt(self.r.size)) if self.r.size > 1 else float("nan")


class _Drawn(Run):
    """Rows drawn one by one, each as often as it stands for rows of the traffic."""

    def __init__(self, rng: np.random.Generator, s: np.ndarray) -> None:
        self.rng, self.rows, self.edges = rng, len(s), np.cumsum(s / np.sum(s))

    def next(self, n: int) -> np.ndarray:
        """The next n row numbers."""
        return np.minimum(np.searchsorted(self.edges, self.rng.random(n), side="right"), self.rows - 1)


class Replay:
    """An environment from a `dither.log.Logged`.

    log : rewards and propensities of all rows (`log.usable(...)`), and features
    M : (n, K) predicted rewards, for `simulate`; None: `run` alone
    C : the acceptance constant; None: the least p S/s of the log, its least propensity where nothing was thinned.
        Larger ones keep more rounds and bias the answer:
        where C/p is above 1 the coin always falls.
    """

    sigma = 1.0
    S = 1.0

    def __init__(self, log: Any, *, M: Any = None, C: float | None = None) -> None:
        if len(log) == 0:
            raise ValueError("a replay needs a log with rows")
        self.log, self.r, self.a, self.p = log, log.r, log.a, log.p
        for name, bad in (("reward", ~np.isfinite(self.r)), ("propensity", ~((self.p > 0) & (self.p <= 1 + 1e-6)))):
            if bad.any():
                rows = ", ".join(map(str, log.numbers[bad][:10].tolist()))
                raise ValueError(f"{int(bad.sum())} rows have no valid {name} (rows {rows}): replay log.usable(...)")
        self.disjoint = log.slots
        self.X, self.mask = log.X, log.mask
        self.arms, self.dim = self.mask.shape[1], self.X.shape[-1]
        if C is not None:
            errors.within("C", C, 0, 1)
            errors.positive("C", C)
        s = log.weight
        self.s = None if s is None or np.all(s == s[0]) else row_weights(s, len(log))
        with np.errstate(divide="ignore"):
            self.rarity = self.p if self.s is None else self.p * (self.s.max() / self.s)  # infinite: never kept
        self.C = float(self.rarity.min()) if C is None else float(C)
        self.M = None
        if M is not None:
            self.M = inputs.numbers(M, name="M")
            if self.M.shape != self.mask.shape:
                raise ValueError(f"M must be {self.mask.shape}, a reward for each arm of each row, got {self.M.shape}")
            inputs.finite(self.M, name="M", mask=None)
            if not self.mask.all():
                raise ValueError("simulate needs the same number of arms in each row of the log")

    def __repr__(self) -> str:
        return f"Replay({len(self.r)} rows, arms={self.arms}, dim={self.dim})"

    def run(self, bandit: Any, *, seed: int | None = 0) -> Replayed:
        """Let a bandit choose and learn on the log, in its order: rounds that are kept are learnt from, others are not.

        bandit : a `Bandit`, or anything with choose(X, mask=) -> .arm and update(x, r) (with slots, arm=)
        seed : of the coins; None draws one
        """
        coin = streams.stream(streams.entropy(seed), 0, "noise").random(len(self.r))
        ragged = not self.mask.all()
        X = self.X if not isinstance(bandit, Bandit) or bandit.columns is None else self.log.aligned(bandit).X
        kept, disagreed = [], 0
        for i in range(len(self.r)):
            decision = bandit.choose(X[i], mask=self.mask[i]) if ragged else bandit.choose(X[i])
            if decision.arm != self.a[i]:
                disagreed += 1
            elif coin[i] * self.rarity[i] < self.C:
                kept.append(i)
                if self.disjoint:
                    bandit.update(X[i], self.r[i], arm=decision.arm)
                else:
                    bandit.update(X[i, decision.arm], self.r[i])
        rows = np.array(kept, dtype=np.int64)
        return Replayed(
            self.r[rows], self.log.numbers[rows], len(self.r), disagreed, len(self.r) - disagreed - len(rows)
        )

    def start(self, rng: np.random.Generator) -> Run:
        """The rows in an order of the run's own: shuffled passes, or drawn by their weights where they have any."""
        if self.M is None:
            raise ValueError(
                "a log has the reward of the shown arm alone: give Replay(log, M=predicted rewards), or use run(bandit)"
            )
        return Run(rng, len(self.r)) if self.s is None else _Drawn(rng, self.s)

    def fill(self, run: Run, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The next n rows' features into out; their numbers."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return rows

    def means(self, run: Run, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """The predicted rewards of all arms, (n, K)."""
        if self.M is None:
            raise ValueError("means needs M")
        return self.M[more]

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None: the predictions are the rewards."""

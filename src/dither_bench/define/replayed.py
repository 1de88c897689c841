"""Rows of a log of arms that were shown uniformly, to be played by replay: the Open Bandit Dataset (Saito et al. 2021).

A policy meets the rows in a shuffled order. A row counts where the policy chooses the arm that was shown, and the
policy learns from these rows alone (`dither.ope.replay`). A round is a row that counts, and its loss is 1 - click.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors, reading
from dither.datasets.preprocessing import one_hot
from dither.envs.classification import ShuffledRows, scaled

NAME = "replayed"  # of the environment
ENDINGS = (".csv", ".parquet")
COLUMNS = ("item_id", "click", "propensity_score", "position")
SURE = 4.0  # standard deviations by which the rounds lie below the expected number of rows that count


@dataclass(frozen=True, eq=False)
class ReplayedLog:
    """A log of K arms, each of which was shown with probability 1/K, in disjoint slots.

    X (n, d) contexts; y (n,) the arms that were shown; r (n,) what they earned, from 0 to 1
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    r: Any = field(repr=False)
    arms: int
    name: str = "log"
    disjoint = True
    sigma = 1.0
    S = 1.0

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return int(self.X.shape[1])

    @property
    def rounds(self) -> int:
        """How many rows count, whatever plays: a little below n/K, so that chance takes no pass below it."""
        n, p = len(self.X), 1 / self.arms
        return max(1, math.floor(n * p - SURE * math.sqrt(n * p * (1 - p))))

    def start(self, rng: np.random.Generator) -> ShuffledRows:
        """The shuffled rows."""
        return ShuffledRows(rng, self.X.shape[0])

    def fill(self, run: ShuffledRows, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The contexts of the next n rows into out (n, d); their numbers."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return rows

    def means(self, run: ShuffledRows, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """What the arm that was shown earned, (n, K), and 0 for the others, of which a log says nothing."""
        return np.where(self.y[more, None] == np.arange(self.arms), self.r[more, None], 0.0)

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None: rewards are as logged."""


def log(data: str = "all.csv", checksum: str | None = None) -> ReplayedLog:
    """A table of the Open Bandit Dataset: position and user_feature_* as 0 and 1, standardised, and an intercept.

    checksum : what `fingerprint(data)` must be; None: anything
    """
    import polars as pl

    if checksum is not None and checksum != (now := fingerprint(data)):
        raise ValueError(f"{data} has changed: its checksum is {now} and not {checksum}; start the command again")
    frame = reading.scan(Path(data)).collect()
    for name in COLUMNS:
        errors.among(f"column of {data}", name, frame.columns)
    p = frame["propensity_score"].cast(pl.Float64).to_numpy()
    items, arms = np.unique(frame["item_id"].to_numpy(), return_inverse=True)
    if not np.allclose(p, 1 / len(items), rtol=1e-6):
        raise ValueError(
            f"a replay needs rows whose arms were shown uniformly, and {data} has {len(items)} items with propensities "
            f"from {p.min():.4g} to {p.max():.4g}: take a table of the folder random/"
        )
    users = [name for name in frame.columns if name.startswith("user_feature_")]
    columns = [
        one_hot(frame[name].cast(pl.String).fill_null("").to_numpy().astype(str)) for name in ("position", *users)
    ]
    X = scaled(np.column_stack(columns), "standard")
    r = frame["click"].cast(pl.Float64).to_numpy()
    return ReplayedLog(np.column_stack([X, np.ones(len(X))]), arms, r, len(items), Path(data).stem)


def fingerprint(data: str) -> str:
    """The checksum of the file."""
    return reading.checksum(Path(data))

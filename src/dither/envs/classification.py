"""Classification as a bandit (paper, Appendix H.1.2): an arm a class, reward 1 for the right one and else 0.

The context is one row of X, which all arms share in disjoint slots. Each run shuffles the rows and passes over them;
a longer run shuffles again. Regret is the number of errors.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import inputs


class Run:
    """The rows of one run: shuffled passes from a stream of its own."""

    def __init__(self, rng: np.random.Generator, rows: int) -> None:
        self.rng, self.rows = rng, rows
        self.order = rng.permutation(rows)
        self.at = 0

    def next(self, n: int) -> np.ndarray:
        """The next n row numbers."""
        while len(self.order) - self.at < n:
            self.order = np.r_[self.order[self.at :], self.rng.permutation(self.rows)]
            self.at = 0
        self.at += n
        return self.order[self.at - n : self.at]


@dataclass(frozen=True, eq=False)
class Classification:
    """A bandit from any data set.

    X : (N, d) features; y : (N,) labels of any type, the arms being the distinct ones in sorted order
    scale : "standard" (mean 0, sd 1; constant columns dropped), "unit" (rows of length 1) or None
    name : what reports call it
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    scale: str | None = None
    name: str = "classification"
    disjoint = True
    sigma = 1.0
    S = 1.0

    def __post_init__(self) -> None:
        X = inputs.numbers(self.X, name="X")
        if X.ndim != 2 or X.shape[0] == 0:
            raise ValueError(f"X must be (N, d) with at least one row, got {X.shape}")
        inputs.finite(X, name="X")
        labels, y = np.unique(np.asarray(self.y), return_inverse=True)
        if y.shape != X.shape[:1]:
            raise ValueError(
                f"y must hold one label for each of the {X.shape[0]} rows of X, got shape {np.shape(self.y)}"
            )
        if self.scale == "standard":
            X = X[:, X.max(axis=0) > X.min(axis=0)]
            X = (X - X.mean(axis=0)) / X.std(axis=0)
        elif self.scale == "unit":
            largest = np.max(np.abs(X), axis=1, keepdims=True, initial=0.0)  # first: squares of tiny rows are 0
            X = X / np.where(largest > 0, largest, 1.0)
            X = X / np.where(largest > 0, np.linalg.norm(X, axis=1, keepdims=True), 1.0)
        elif self.scale is not None:
            raise ValueError(f"scale must be 'standard', 'unit' or None, got {self.scale!r}")
        if X.shape[1] == 0:
            raise ValueError("X has no column, or none that is not constant: nothing to learn from")
        for key, value in {"X": X, "y": y, "labels": labels}.items():
            object.__setattr__(self, key, value)

    @property
    def arms(self) -> int:
        """K, the number of classes."""
        return len(self.labels)  # type: ignore[attr-defined]

    @property
    def dim(self) -> int:
        """d, the number of features after scaling."""
        return self.X.shape[1]

    def start(self, rng: np.random.Generator) -> Run:
        """The first shuffled pass."""
        return Run(rng, self.X.shape[0])

    def fill(self, run: Run, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The next n rows into out (n, d); their labels."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return self.y[rows]

    def means(self, run: Run, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """1 for the right class, else 0: (n, K)."""
        return (more[:, None] == np.arange(self.arms)).astype(np.float64)

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None: a label is certain."""

"""Classification as a bandit (paper, Appendix H.1.2): one arm for each class, reward 1 for the right class and 0 else.

The context is a row of X, which all arms share in disjoint slots. Each run shuffles the rows and passes over them; a
run that is longer than the data shuffles them again. Regret is the number of errors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding import inputs

NUMBERS_AT_ONCE = 2**19  # that are scaled, so that temporaries stay small beside a large X


class ShuffledRows:
    """The order of the rows in one run: shuffled passes, drawn from a stream of its own."""

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

    X : (N, d) features. float32 stays float32, which halves the memory; all else becomes float64. Where nothing is
        scaled, X is not copied
    y : (N,) labels of any type. The distinct labels in sorted order are the arms
    scale : "standard" (mean 0, sd 1; constant columns are dropped), "unit" (rows of length 1) or None
    name : the name in reports
    intercept : whether a column of ones comes last. None: where the columns are standardised, which takes from a linear
        model the constant that it had in columns with a mean
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    scale: str | None = None
    name: str = "classification"
    intercept: bool | None = None
    labels: Any = field(init=False, repr=False, default=())  # (K,) the classes in order
    disjoint = True
    sigma = 1.0
    S = 1.0

    def __post_init__(self) -> None:
        slim = isinstance(self.X, np.ndarray) and self.X.dtype == np.float32
        X = self.X if slim else inputs.numbers(self.X, name="X")
        if X.ndim != 2 or X.shape[0] == 0:
            raise ValueError(f"X must be (N, d) with at least one row, got {X.shape}")
        for rows in blocks(X):
            if not _small(X[rows]):
                inputs.finite(X.astype(np.float64), name="X")
        labels, y = np.unique(_labels(self.y), return_inverse=True)
        if y.shape != X.shape[:1]:
            raise ValueError(
                f"y must hold one label for each of the {X.shape[0]} rows of X, got shape {np.shape(self.y)}"
            )
        intercept = with_intercept(self.intercept, self.scale)
        X = scaled(X, self.scale, dtype=X.dtype, intercept=intercept)
        if X.shape[1] == intercept:
            raise ValueError("X has no column, or none that is not constant: nothing to learn from")
        for key, value in {"X": X, "y": y, "labels": labels}.items():
            object.__setattr__(self, key, value)

    @property
    def arms(self) -> int:
        """K, the number of classes."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """d, the number of features after scaling, with the intercept."""
        return self.X.shape[1]

    def start(self, rng: np.random.Generator) -> ShuffledRows:
        """The first shuffled pass."""
        return ShuffledRows(rng, self.X.shape[0])

    def fill(self, run: ShuffledRows, rng: np.random.Generator, out: np.ndarray) -> np.ndarray:
        """The next n rows into out (n, d); their labels."""
        rows = run.next(out.shape[0])
        out[:] = self.X[rows]
        return self.y[rows]

    def means(self, run: ShuffledRows, X: np.ndarray, more: np.ndarray) -> np.ndarray:
        """1 for the right class, else 0: (n, K)."""
        return (more[:, None] == np.arange(self.arms)).astype(np.float64)

    def reward_noise(self, rng: np.random.Generator, n: int) -> None:
        """None: the reward of a class is certain."""


def with_intercept(intercept: bool | None, scale: str | None) -> bool:
    """Whether there is a column of ones: as is said, and else where the columns are standardised."""
    if intercept is None:
        return scale == "standard"
    errors.true_or_false("intercept", intercept)
    return bool(intercept)


def scaled(X: np.ndarray, scale: str | None, *, dtype: Any = np.float64, intercept: bool = False) -> np.ndarray:
    """X (N, d) of any real dtype, scaled as `Classification` says, in this dtype; X itself where nothing changes.

    intercept : whether a column of ones comes last

    Every number is computed in float64 and rounded once, for all dtypes. Raises ValueError for an unknown scale.
    """
    if scale not in ("standard", "unit", None):
        raise ValueError(f"scale must be 'standard', 'unit' or None, got {scale!r}")
    if scale is None and not intercept:
        return X.astype(dtype, copy=False)
    more: dict[str, Any] = dict(dtype=dtype, intercept=intercept)
    if scale != "standard":
        return _by_blocks(X, unit if scale == "unit" else np.asarray, d=X.shape[1], **more)
    low, high = (edge.astype(np.float64) for edge in (X.min(axis=0), X.max(axis=0)))
    keep = np.flatnonzero(high > low)
    mean, spread = X.mean(axis=0, dtype=np.float64)[keep], (high - low)[keep]
    squares = np.zeros_like(mean)
    for rows in blocks(X):
        squares += np.sum(((X[rows][:, keep] - mean) / spread) ** 2, axis=0)  # divided first: the square of 1e-170 is 0
    sd = spread * np.sqrt(squares / X.shape[0])
    return _by_blocks(X, lambda block: (block[:, keep] - mean) / sd, d=len(keep), **more)


def _by_blocks(
    X: np.ndarray, function: Callable[[np.ndarray], np.ndarray], *, d: int, dtype: Any, intercept: bool
) -> np.ndarray:
    """function of the rows of X, (N, d), and perhaps a column of ones; a block at a time, so temporaries stay small."""
    out = np.empty((X.shape[0], d + intercept), dtype=dtype)
    out[:, d:] = 1.0
    for rows in blocks(X):
        out[rows, :d] = function(X[rows].astype(np.float64, copy=False))
    return out


def unit(X: np.ndarray) -> np.ndarray:
    """The rows (n, d), scaled to length 1; rows of zeros stay zeros."""
    largest = np.max(np.abs(X), axis=1, keepdims=True, initial=0.0)  # divided first: squares of a tiny row are 0
    X = X / np.where(largest > 0, largest, 1.0)
    return X / np.where(largest > 0, np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def blocks(X: np.ndarray) -> Iterator[slice]:
    """All rows of X (N, d) as slices of about `NUMBERS_AT_ONCE` numbers each."""
    step = max(1, NUMBERS_AT_ONCE // max(1, X.shape[1]))
    return (slice(i, i + step) for i in range(0, X.shape[0], step))


def _small(X: np.ndarray) -> bool:
    """Whether all numbers are finite and small enough to be squared, as their sum of squares shows."""
    x = X.astype(np.float64, copy=False)
    return bool(np.vdot(x, x) < inputs.LARGEST**2)


def _labels(y: Any) -> np.ndarray:
    """The labels as an array. Raises ValueError where one is missing."""
    y = np.asarray(y)
    lost = [i for i, label in enumerate(y.flat) if label is None or label != label] if y.dtype.kind in "fO" else []
    if lost:
        raise ValueError(
            f"y must hold a label for each row, got {y.flat[lost[0]]} at row {lost[0]} ({len(lost)} such rows): drop "
            "them first"
        )
    return y

"""From a data set to the features that a bandit sees.

In all pipelines a text column becomes one-hot: a column of 0 and 1 for each level that occurs, in sorted order. The
text `?` is missing and gets no column. Then

    standard   every column is scaled to mean 0 and sd 1. Constant columns are dropped: an image is no longer 28 x 28.
               A column of ones comes last, unless intercept=False
    unit       every row is scaled to length 1
    raw        the numbers stay as published; pixels are divided by 255, which is white
    paper      what the paper most likely did, as the code it builds on does: NaN becomes -1, then rows get length 1

None of the five data sets has NaN (the `?` of mushroom is a text). So `paper` is `unit` on them; on a table of the
user's it also replaces missing numbers. Pixels are kept in float32 (MNIST: 220 MB), all else in float64.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dither import envs
from dither.base import errors
from dither.datasets.data_sets import MISSING
from dither.datasets.loading import load
from dither.envs.classification import scaled, with_intercept


@dataclass(frozen=True)
class Pipeline:
    """What is done to numbers."""

    scale: str | None  # as in `envs.Classification`
    fill: float | None = None  # takes the place of NaN; None: NaN is refused


PREPROCESSING: dict[str, Pipeline] = {
    "standard": Pipeline("standard"),
    "unit": Pipeline("unit"),
    "raw": Pipeline(None),
    "paper": Pipeline("unit", fill=-1.0),
}


def pipeline(name: str) -> Pipeline:
    """The pipeline of that name, or an error with the nearest one."""
    errors.among("preprocessing", name, PREPROCESSING)
    return PREPROCESSING[name]


def environment(
    name: str,
    preprocessing: str = "standard",
    folder: str | Path | None = None,
    *,
    cache: str | Path | None = None,
    intercept: bool | None = None,
) -> envs.Classification:
    """A data set as a bandit: one arm for each class; regret is the number of errors.

    Before the rows are shuffled, they are put in an order that depends on nothing but the rows. So a run is the same
    run, wherever the data came from.
    name, folder, cache : as in `load`
    preprocessing : a name in `PREPROCESSING`
    intercept : as in `envs.Classification`, which a network with a bias of its own does not need

    Raises what `load` raises, and LookupError for another preprocessing.
    """
    chosen = pipeline(preprocessing)
    data = load(name, folder=folder, cache=cache)
    order = data.order()
    X, y = data.X[order], data.y[order]
    image = data.shape is not None
    if X.dtype.kind == "U":
        X = np.column_stack([one_hot(text) for text in X.T])
    if image and chosen.scale is None:
        X = X / np.float32(255)
    last = with_intercept(intercept, chosen.scale)
    X = scaled(X, chosen.scale, dtype=np.float32 if image else np.float64, intercept=last)
    return envs.Classification(X, y, name=name)


def one_hot(text: np.ndarray) -> np.ndarray:
    """A column (N,) as (N, levels): 1.0 for the level of the row, in sorted order. `?` is no level."""
    levels, codes = np.unique(text, return_inverse=True)
    return (codes[:, None] == np.flatnonzero(levels != MISSING)).astype(np.float64)

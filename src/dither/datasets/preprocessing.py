"""From a data set to the features that a bandit sees.

Text columns become one-hot in all pipelines: a column of 0 and 1 for each level that occurs, in sorted order, and none
for `?`. Then

    standard   every column to mean 0 and sd 1 (constant ones are dropped, so an image is no longer 28 x 28)
    unit       every row to length 1
    raw        the numbers as published; pixels divided by 255, the white that their byte stands for
    paper      what the paper most likely did (its ancestor's code does): NaN becomes -1, then rows to length 1

None of the five data sets has NaN (mushroom's `?` is a text), so on them `paper` is `unit`; on a table of the user's it
also replaces missing numbers. Pixels are kept in float32 (MNIST: 220 MB), all else in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dither import envs, errors
from dither.datasets.loading import load
from dither.envs.classification import scaled

MISSING = "?"  # in a column of text


@dataclass(frozen=True)
class Pipeline:
    """What is done to numbers."""

    scale: str | None  # as of `envs.Classification`
    fill: float | None = None  # in the place of NaN; None: NaN is refused


PREPROCESSING: dict[str, Pipeline] = {
    "standard": Pipeline("standard"),
    "unit": Pipeline("unit"),
    "raw": Pipeline(None),
    "paper": Pipeline("unit", fill=-1.0),
}


def pipeline(name: str) -> Pipeline:
    """The pipeline of that name, or an error with the nearest one."""
    if name not in PREPROCESSING:
        raise errors.unknown("preprocessing", name, known=PREPROCESSING)
    return PREPROCESSING[name]


def environment(
    name: str, preprocessing: str = "standard", folder: str | Path | None = None, *, cache: str | Path | None = None
) -> envs.Classification:
    """A data set as a bandit: an arm a class, regret the number of errors.

    Rows are put in an order that depends on them alone before they are shuffled, so that a run is the same run wherever
    the data came from. name, folder, cache : as of `load`; preprocessing : a name in `PREPROCESSING`
    Raises what `load` raises, and LookupError for another preprocessing.
    """
    chosen = pipeline(preprocessing)
    data = load(name, folder=folder, cache=cache)
    order = data.order()
    X, y = data.X[order], data.y[order]
    image = data.shape is not None
    if X.dtype.kind == "U":
        X = np.column_stack([column for text in X.T for _, column in one_hot(text)])
    if image and chosen.scale is None:
        X = X / np.float32(255)
    return envs.Classification(scaled(X, chosen.scale, dtype=np.float32 if image else np.float64), y, name=name)


def one_hot(text: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Each level of a column (N,) that occurs, in sorted order, and where: (N,) of 0.0 and 1.0. `?` is no level."""
    levels, codes = np.unique(text, return_inverse=True)
    for code, level in enumerate(levels.tolist()):
        if level != MISSING:
            yield level, (codes == code).astype(np.float64)

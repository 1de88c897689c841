"""The sizes of raw columns, of the first rows that are learnt: no one λ is right where they differ very much.

    size of column j = √(mean x_j² over the rows where x_j is not 0)

So a rare category has the size 1, as a frequent one. A column that is hardly ever other than 0 says too little of its
size, and is left out. It is looked at 32, 64 and 128 rows, whatever the batches, and never again.
"""

import numpy as np

from dither.base import errors

MOMENTS = (32, 64, 128)  # rows
FEWEST = 4  # entries other than 0 that a column must have: of so many, none of a bell curve's look 30 times too small
RATIO = 30.0  # of the largest size to the smallest one
NAMED = 3  # columns of either end that the warning names


class ColumnSizeWarning(UserWarning):
    """The columns of raw features have very different sizes, and λ is one number for all of them."""


class ColumnSizes:
    """What the rows so far add up to."""

    def __init__(self, dim: int) -> None:
        self.rows = 0
        self.done = False  # whether there is nothing more to look at
        self.entries = np.zeros(dim)  # (d,) that are not 0
        self.squares = np.zeros(dim)  # (d,) Σ x²

    def learnt(self, X: np.ndarray, columns: tuple[str, ...] | None) -> str | None:
        """Take in rows X (d,) or (n, d); -> the words of a `ColumnSizeWarning`, which come at most once.

        columns : the names of the columns; None: they go by place
        """
        X = X.reshape(-1, X.shape[-1])
        for moment in MOMENTS:
            part, X = X[: max(0, moment - self.rows)], X[max(0, moment - self.rows) :]
            if not len(part):
                continue
            self.rows += len(part)
            self.entries += (part != 0).sum(axis=0)
            self.squares += (part * part).sum(axis=0)
            if self.rows < moment:
                return None
            words = self.told(columns)
            self.done = words is not None or moment == MOMENTS[-1]
            if self.done:
                return words
        return None

    @property
    def sizes(self) -> np.ndarray:
        """(d,) NaN for a column that is left out."""
        enough = self.entries >= FEWEST
        return np.sqrt(np.divide(self.squares, self.entries, out=np.full_like(self.squares, np.nan), where=enough))

    def told(self, columns: tuple[str, ...] | None) -> str | None:
        """The words of the warning, of the rows so far; None where sizes are alike."""
        sizes = self.sizes
        order = np.argsort(sizes)[: np.count_nonzero(~np.isnan(sizes))]  # NaN comes last
        if len(order) < 2 or sizes[order[-1]] < RATIO * sizes[order[0]]:
            return None

        def names(places: np.ndarray) -> str:
            return errors.listed(
                f"{f'column {j}' if columns is None else repr(columns[j])} ({errors.number(sizes[j])})" for j in places
            )

        least = order[: min(NAMED, len(order) // 2)]
        most = order[::-1][: min(NAMED, len(order) // 2)]
        ratio = sizes[order[-1]] / sizes[order[0]]
        return (
            f"the columns of x have very different sizes, up to {errors.number(ratio)} to 1 in the first {self.rows} "
            f"rows: {names(most)}, but {names(least)}. λ is one number for all of them (lam='auto': the mean of "
            "‖x‖²/d), and none is right for such columns. Declare them as fields that are standardised, "
            "dither.Features(context={'income': 'standard'}, ...), or standardise them yourself; or state lam="
        )

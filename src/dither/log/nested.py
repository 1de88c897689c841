"""Columns of lists from NumPy arrays, without a Python object a number."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dither.log import schema


def numbers(name: str, arrays: list[np.ndarray | None]) -> Any:
    """A column of lists of numbers: arrays of shape (K,), or None for null."""
    return _grouped(name, schema.polars().Series("values", _joined(arrays, 1)), arrays)


def rows(name: str, arrays: list[np.ndarray | None]) -> Any:
    """A column of lists of rows: arrays of shape (K, d), all of one d, or None for null."""
    pl = schema.polars()
    flat = pl.Series("values", _joined(arrays, 2)).cast(pl.List(pl.Float64))
    return _grouped(name, flat, arrays)


def flat(lists: Any) -> np.ndarray:
    """All numbers of a column of lists, one after the other; NaN for null."""
    full = lists.filter((lists.list.len() > 0).fill_null(False))
    return full.explode().fill_null(np.nan).to_numpy() if len(full) else np.empty(0)


def placed(column: Any, have: Sequence[str], want: Sequence[str]) -> Any:
    """Lists of rows with the columns `have`, as lists of rows with the columns `want`, 0 where there was none."""
    counts = column.list.len().fill_null(0).to_numpy().astype(np.int64)
    full = column.filter((column.list.len() > 0).fill_null(False))
    values = flat(full.explode()).reshape(-1, len(have)) if len(full) else np.empty((0, len(have)))
    place = {name: i for i, name in enumerate(want)}
    made = np.zeros((len(values), len(want)))
    made[:, [place[name] for name in have]] = values
    absent = column.is_null().to_numpy()
    arrays = np.split(made, np.cumsum(counts)[:-1])
    return rows(column.name, [None if none else array for array, none in zip(arrays, absent, strict=True)])


def _joined(arrays: list[np.ndarray | None], ndim: int) -> np.ndarray:
    full = [array for array in arrays if array is not None]
    return np.concatenate(full) if full else np.empty((0, 1)[:ndim])


def _grouped(name: str, values: Any, arrays: list[np.ndarray | None]) -> Any:
    """Consecutive values as lists, one for each array, as many as it is long."""
    pl = schema.polars()
    counts = [0 if array is None else len(array) for array in arrays]
    place = pl.Series("place", np.repeat(np.arange(len(arrays)), counts))
    lists = pl.DataFrame([place, values]).group_by("place", maintain_order=True).agg("values")
    every = pl.DataFrame({"place": np.arange(len(arrays))}).join(lists, on="place", how="left", maintain_order="left")
    return every["values"].alias(name)

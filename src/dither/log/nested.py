"""Columns of lists from NumPy arrays, without a Python object a number."""

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

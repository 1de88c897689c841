"""Labels that group rows or order them. All must be of one type, and none may be missing. NumPy alone would take '1'
and 1 in a list as one label, and NaN as a cluster."""

import numbers
from typing import Any

import numpy as np

TYPES = (bool, numbers.Real, str, bytes)  # numbers of all types compare as numbers; a bool is not one here


def numbered(cluster: Any, n: int, rows: np.ndarray | None = None, *, name: str = "cluster") -> np.ndarray | None:
    """Labels (n,) of the rows used, as numbers from 0 in the order of the labels; None for None.

    Raises ValueError for missing labels and labels of mixed types, naming the first row and how many there are.
    """
    if cluster is None:
        return None
    labels = _values(cluster, name, "one label for each row", n, rows)
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as reason:
        raise ValueError(f"{name} must hold labels that sort: {reason}; turn them into str") from None


def order(time: Any, n: int, rows: np.ndarray | None = None) -> np.ndarray | None:
    """The places of the rows used, sorted by time (n,), stably. None for None. Raises as `numbered`."""
    if time is None:
        return None
    times = _values(time, "time", "one for each row", n, rows)
    try:
        return np.argsort(times, kind="stable")
    except TypeError as reason:
        raise ValueError(f"time must hold values that sort: {reason}; pass numbers or dates") from None


def _values(given: Any, name: str, what: str, n: int, rows: np.ndarray | None) -> np.ndarray:
    values = np.asarray(given) if hasattr(given, "dtype") else np.asarray(given, dtype=object)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), {what}; got {values.shape}")
    places = np.arange(n) if rows is None else rows
    values = values if rows is None else values[rows]
    kind = values.dtype.kind
    missing = np.array([_missing(v) for v in values], dtype=bool) if kind == "O" else values != values
    if missing.any():
        i, count = int(np.argmax(missing)), int(missing.sum())
        raise ValueError(
            f"{name} must not be missing; got {values[i]} at row {places[i]} "
            f"({count} such row{'s' * (count > 1)} of {n}): fill it in, or leave these rows out with mask="
        )
    if kind == "O" and len(values):
        types = [_type(v) for v in values]
        other = np.array([one is not types[0] for one in types])
        if other.any():
            i, count = int(np.argmax(other)), int(other.sum())
            raise ValueError(
                f"{name} must hold values of one type; got {values[i]!r} at row {places[i]} ({count} such "
                f"row{'s' * (count > 1)} of {n}) beside {values[0]!r} at row {places[0]}: turn all into numbers or str"
            )
    return values


def _missing(value: Any) -> bool:
    """None, NaN, NaT, and the NA of pandas, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _type(value: Any) -> type:
    if isinstance(value, np.bool_):
        return bool
    return next((one for one in TYPES if isinstance(value, one)), type(value))

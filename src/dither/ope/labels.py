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


def first(wrong: np.ndarray, n: int, rows: np.ndarray | None = None) -> tuple[int, str]:
    """The place of the first row that is wrong, and words for it: "at row 3 (2 such rows of 9)".

    rows : the numbers of the rows among all n; None: their places
    """
    place, count = int(np.argmax(wrong)), int(wrong.sum())
    row = place if rows is None else rows[place]
    return place, f"at row {row} ({count} such row{'s' * (count > 1)} of {n})"


def _values(labels: Any, name: str, what: str, n: int, rows: np.ndarray | None) -> np.ndarray:
    values = np.asarray(labels) if hasattr(labels, "dtype") else np.asarray(labels, dtype=object)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), {what}; got {values.shape}")
    values = values if rows is None else values[rows]
    kind = values.dtype.kind
    missing = np.array([_missing(v) for v in values], dtype=bool) if kind == "O" else values != values
    if missing.any():
        place, where = first(missing, n, rows)
        raise ValueError(
            f"{name} must not be missing; got {values[place]} {where}: fill it in, or leave these rows out with mask="
        )
    if kind == "O" and len(values):
        types = [_type(v) for v in values]
        other = np.array([one is not types[0] for one in types])
        if other.any():
            place, where = first(other, n, rows)
            raise ValueError(
                f"{name} must hold values of one type; got {values[place]!r} {where} beside {values[0]!r} at row "
                f"{0 if rows is None else rows[0]}: turn all into numbers or str"
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

"""What users pass in (features, rewards, masks, arms), checked once and turned into float64 NumPy.

Anything like an array is taken: lists, NumPy of any real dtype and layout, torch tensors, scipy.sparse, data frames
(pandas, Polars, Arrow). The columns of a data frame go by name: the first names that are seen are the columns, and a
frame with another order is put into that order.
"""

import numbers as numeric
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.base import compiled, errors
from dither.base.errors import LARGEST

ROUNDING = 1e-6  # how far off a probability may be that was written with six digits or in float32
MOST_OFF = 1e-3  # how far the sum of the probabilities of many arms may be from 1
LONGEST = 1000  # bytes of an id: what the index of any database holds
EXACT = 1e-12  # probabilities whose sum is as near to 1 as this are left as they are


class Named:
    """Features with the names of their columns, as data frames have them: array (..., d), names (d,)."""

    def __init__(self, array: np.ndarray, names: Sequence[str]) -> None:
        self.array, self.column_names = array, list(names)

    def to_numpy(self) -> np.ndarray:
        """The array."""
        return self.array


def storable(id: str, *, what: str = "id") -> str:
    """The id itself, or the name of a part.

    Raises ValueError for an id that one of the databases cannot hold, so that all homes of a log have one rule.
    """
    if id.isascii() and "\0" not in id and len(id) <= LONGEST:
        return id
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} must be Unicode, and {id!r} has half of a surrogate pair: decode it rightly"
        ) from None
    if "\0" in id:
        raise ValueError(f"{what} must not have the character NUL, got {id!r}: leave it out")
    if size > LONGEST:
        raise ValueError(f"{what} must have at most {LONGEST} bytes, got {size} ({id[:20]!r}...): take a hash of it")
    return id


def features(
    X: Any, *, name: str, dim: int, columns: tuple[str, ...] | None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """X as float64 (..., dim) in C order, and its column names. X is not copied where it is that already.

    The order matters, because products round differently in another order. In C order equal values give equal bits, in
    whatever order the user had them in memory. The values themselves are not checked.
    """
    if type(X) is np.ndarray and X.dtype == np.float64:
        array = X
    else:
        names = column_names(X)
        if names is not None:
            X, columns = _in_order(X, names, name=name, columns=columns)
        array = numbers(X, name=name)
    if array.ndim == 0 or array.shape[-1] != dim:
        turned = ""
        if array.ndim == 2 and array.shape[0] == dim:
            turned = f" It looks transposed: pass {name}.T, {array.T.shape}."
        got = f"width {array.shape[-1]}, shape {array.shape}" if array.ndim else "a single number"
        raise ValueError(f"{name} must have width {dim} (its last axis, dim={dim}); got {got}.{turned}")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array), columns


def plain(X: np.ndarray, ndim: int, width: int, most: float = LARGEST**2) -> bool:
    """Whether X is float64 in C order with so many axes, the last of this width, not empty, and surely `finite`.

    most : the sum of squares is below it; math.inf: no number need be below LARGEST
    """
    if compiled.STEP is not None:
        return compiled.STEP.plain(X, ndim, width, most)
    fits = X.dtype == np.float64 and X.ndim == ndim and X.shape[-1] == width and X.size and X.flags.c_contiguous
    return bool(fits and np.vdot(X, X) < most)


def numbers(x: Any, *, name: str) -> np.ndarray:
    """Anything like an array of real numbers, as float64 in C order."""
    sparse = sys.modules.get("scipy.sparse")  # whoever passes a sparse matrix has imported it
    if sparse is not None and sparse.issparse(x):
        x = x.toarray()
    elif hasattr(x, "detach"):  # a torch tensor, wherever it is
        x = x.detach().cpu()
        x = (x.double() if x.is_floating_point() else x).numpy()
    elif np.ma.is_masked(x):
        raise ValueError(f"{name} hides {np.ma.count_masked(x)} values behind a mask: fill them in first")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError) as reason:
        raise ValueError(f"{name} must be a rectangular array of real numbers: {reason}") from None
    if array.dtype.kind == "O" and all(isinstance(value, (numeric.Real, np.bool_)) for value in array.flat):
        try:
            array = array.astype(np.float64)  # as nullable columns are
        except OverflowError:
            raise ValueError(f"{name} holds whole numbers too large for float64") from None
    if array.dtype.kind not in "biuf":
        odd = next((v for v in array.flat if not isinstance(v, (numeric.Real, np.bool_))), None)
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}"
            + f" with {odd!r}" * (array.size > 0)
            + ": dither.Features makes numbers of named fields" * isinstance(odd, Mapping)
        )
    return array.astype(np.float64, order="C", copy=False)


def finite(array: np.ndarray, *, name: str, mask: np.ndarray | None = None, axes: Sequence[str] = ()) -> None:
    """Raise ValueError, with the place, for NaN, infinity and numbers that are too large to be squared.

    axes : the names of the axes; (): the last is called column, and the one before it row
    mask : the rows that are read (the shape of array without its last axis); the others are not looked at
    """
    if np.vdot(array, array) < LARGEST**2:
        return  # NaN and infinity show in the sum of squares, in one pass
    bad = ~(np.abs(array) < LARGEST)
    if mask is not None:
        bad &= mask[..., None]
    if bad.any():
        place = np.argwhere(bad)[0].tolist()
        words = axes or {1: ("column",), 2: ("row", "column")}.get(array.ndim)
        where = ", ".join(f"{w} {i}" for w, i in zip(words, place, strict=True)) if words else f"index {tuple(place)}"
        raise ValueError(
            f"{name} must be finite and below {LARGEST:g}; got {array[tuple(place)]} at {where} "
            f"({int(bad.sum())} such values): drop, impute or scale them first"
        )


def shares(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities Q (..., K) scaled to sum to 1, and whether they did sum to 1 up to rounding (...).

    A sum may be off by K times `ROUNDING`, which is what writing with six digits does. Such rows are normalised and not
    left out. Which rows these are depends on the policy, so an estimate without them would be biased.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.sum(Q, axis=-1)
        off = np.abs(total - 1)
    proper = (np.min(Q, axis=-1, initial=0.0) >= 0) & (off <= min(ROUNDING * max(Q.shape[-1], 2), MOST_OFF))
    again = proper & (off > EXACT)
    if again.any():
        Q = np.where(again[..., None], Q / np.where(again, total, 1.0)[..., None], Q)
    return Q, proper


def whole(x: Any, *, name: str, below: int, shape: tuple[int, ...]) -> np.ndarray:
    """Arm numbers as int64 of a given shape. Raises ValueError where one does not lie in [0, below)."""
    array = numbers(x, name=name)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, one for each observation; got {array.shape}")
    wrong = ~((array >= 0) & (array < below) & (array == np.floor(array)))
    if np.any(wrong):
        row = f" at row {int(np.argmax(wrong))} ({int(np.sum(wrong))} such values)" if array.ndim else ""
        value = float(np.ravel(array)[np.argmax(wrong)])
        raise ValueError(f"{name} must be whole numbers from 0 to {below - 1}, got {value:g}{row}")
    return array.astype(np.int64)


def offered(mask: Any, *, shape: tuple[int, ...]) -> np.ndarray:
    """The arms on offer as bool (..., K)."""
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        values = numbers(mask, name="mask")
        if not np.all((values == 0) | (values == 1)):
            raise ValueError("mask must hold booleans (True: on offer), or 0 and 1")
        array = values == 1
    if array.shape != shape and array.shape != shape[-1:]:
        raise ValueError(f"mask must have shape {shape} (or {shape[-1:]} for all requests alike), got {array.shape}")
    array = np.broadcast_to(array, shape)
    empty = ~array.any(axis=-1)
    if empty.any():
        place = np.argwhere(empty)[0].tolist()
        where = (
            f" in request {place[0] if len(place) == 1 else tuple(place)} ({int(empty.sum())} such)" if place else ""
        )
        raise ValueError(f"mask leaves no arm on offer{where}: at least one must be True in each request")
    return array


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a data frame, or the labels of a pandas row; None for anything else."""
    names = getattr(X, "column_names", None)  # of Arrow, where `columns` are the data
    if names is None:
        names = getattr(X, "columns", None)
    if names is None and hasattr(X, "to_numpy") and hasattr(X, "index") and not callable(X.index):
        names = X.index  # of a pandas Series, which is one arm
        if all(not isinstance(name, str) for name in names):
            return None
    return None if names is None or callable(names) else tuple(str(name) for name in names)


def _in_order(
    X: Any, names: tuple[str, ...], *, name: str, columns: tuple[str, ...] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The values of a data frame in the order of `columns`, and `columns`; None: they are the names of this frame.

    narwhals is used only where a frame cannot turn itself into NumPy, because it takes twice (Polars) to eight times
    (pandas) as long as `to_numpy`.
    """
    columns = columns or names
    if len(set(names)) < len(names):
        raise ValueError(f"{name} has two columns of one name: {list(names)}")
    if sorted(names) != sorted(columns):
        odd = sorted(set(names) ^ set(columns))
        raise ValueError(f"{name} must have the columns {list(columns)}, the first that were seen; {odd} differ")
    place = {label: i for i, label in enumerate(names)}
    order = [place[label] for label in columns]
    if not hasattr(X, "to_numpy"):
        try:
            import narwhals
        except ImportError:
            raise errors.missing_extra("narwhals", extra="frames") from None
        X = narwhals.from_native(X, eager_only=True)
    return numbers(X.to_numpy(), name=name)[..., order], columns

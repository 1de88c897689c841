"""A bandit from a table of the user's own, or from any data set of OpenML: `table` takes a CSV or Parquet file or id.

Numbers stay numbers, booleans become 0 and 1, text becomes one-hot (at most 100 levels). `missing` says what becomes of
missing values: they are refused; or imputed, a number by the mean of its column and a text by a level of its own; or
their rows are dropped. The preprocessing `paper` has its own rule: a missing number becomes -1, and a missing text has
no level at all.
"""

from pathlib import Path
from typing import Any

import numpy as np

from dither import envs
from dither.base import errors, reading
from dither.datasets import openml, tabular
from dither.datasets.preprocessing import MISSING, one_hot, pipeline
from dither.deciding import inputs

MISSING_RULES = ("refuse", "impute", "drop")
LEVELS = 100  # of a column of text, at most
NUMBERS = 50  # distinct numbers in the target, at most
CLASSES = 1000  # distinct texts in the target, at most
NAMED = 5  # columns that a message names, at most
OWN_LEVEL = "(missing)"  # the level of imputed text
OPENML = "openml:"


def table(
    data: str | Path | None = None,
    target: str | None = None,
    preprocessing: str = "standard",
    missing: str = "refuse",
    checksum: str | None = None,
    *,
    cache: str | Path | None = None,
    intercept: bool | None = None,
) -> envs.Classification:
    """A table as a bandit: one arm for each class of the target column; regret is the number of errors.

    Parameters
    ----------
    data : a CSV or Parquet file, or "openml:ID" (or ID)
    target : the column of labels; None: the one that OpenML states
    preprocessing : a name in `PREPROCESSING`
    missing : "refuse", "impute" or "drop"
    checksum : what `fingerprint(data)` must be; None: anything
    cache : scikit-learn's `data_home`, for OpenML
    intercept : as in `envs.Classification`: None is a column of ones where the preprocessing is "standard"

    Raises ValueError, LookupError, OSError or ImportError, each with what to do.
    """
    if data is None:
        raise ValueError("name the table: a CSV or Parquet file, or openml:ID (data=, or --data)")
    errors.among("rule for missing values", missing, MISSING_RULES)
    fill = pipeline(preprocessing).fill
    if checksum is not None and checksum != (now := fingerprint(data, cache=cache)):
        raise ValueError(f"{data} has changed: its checksum is {now} and not {checksum}; start the command again")
    frame, target = _frame(data, target, cache=cache)
    frame = _complete(frame, target=target, missing=missing, fill=fill, data=data)
    y = _labels(frame[target], target=target, data=data)
    X = _features(frame.drop(target), fill=fill, data=data)
    name = _openml_id(data) and f"OpenML {_openml_id(data)}"
    scale = pipeline(preprocessing).scale
    return envs.Classification(X, y, scale=scale, name=name or Path(data).stem, intercept=intercept)


def fingerprint(data: str | Path, *, cache: str | Path | None = None) -> str:
    """16 hexadecimal digits that change with the content: of a file's SHA-256, or of the MD5 that OpenML states."""
    number = _openml_id(data)
    return reading.checksum(Path(data)) if number is None else openml.fetch(number, cache=cache).md5[:16]


def _openml_id(data: str | Path) -> int | None:
    """The number at OpenML; None for a file."""
    text = str(data).lower()
    number = text.removeprefix(OPENML)
    if number.isdecimal() and not (number == text and Path(data).exists()):
        return int(number)
    if text.startswith(OPENML):
        raise ValueError(f"OpenML data sets are numbered: openml:40685, for example; got {data}")
    return None


def _frame(data: str | Path, target: str | None, *, cache: str | Path | None) -> tuple[Any, str]:
    """The table, with null for all missing values and with text as strings, and the name of its target."""
    pl, number = errors.imported("polars", "polars", extra="experiments"), _openml_id(data)
    if number is None:
        frame = tabular.read(Path(data))
    else:
        table = openml.fetch(number, cache=cache)
        target = table.target if target is None else target
        columns = {name: table.column(j) for j, name in enumerate(table.columns)}
        frame = pl.DataFrame({n: x.tolist() if x.dtype == object else x for n, x in columns.items()})
    frame = frame.fill_nan(None).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    frame = frame.with_columns(pl.col(pl.String).str.normalize("NFC"))  # an accent is one however it was typed
    if target is None:
        raise ValueError(f"name the column of labels (target=, or --target): {data} has {', '.join(frame.columns)}")
    errors.among(f"column of {data}", target, frame.columns)
    if frame.width == 1:
        raise ValueError(f"{data} has no column besides the target {target}: nothing to learn from")
    return frame, target


def _complete(frame: Any, *, target: str, missing: str, fill: float | None, data: object) -> Any:
    """The frame after the rule for missing values; with `fill`, missing features are left for `_features`."""
    counts = {name: n for name in frame.columns if (n := frame[name].null_count())}
    empty = [name for name, n in counts.items() if n == frame.height]
    if empty:
        raise ValueError(f"{data} has no value at all in {_some(empty)}: remove what is empty")
    if missing == "drop":
        whole = frame.drop_nulls()
        if whole.height == 0:
            raise ValueError(f"every row of {data} has a missing value: drop leaves nothing; try impute")
        return whole
    if target in counts:
        raise ValueError(f"{counts[target]} labels are missing in {target} of {data}: --missing drop drops their rows")
    if counts and missing == "refuse" and fill is None:
        total, where = sum(counts.values()), _some([f"{name}: {n}" for name, n in counts.items()])
        raise ValueError(f"{total} values are missing in {data} ({where}): pass --missing impute or --missing drop")
    return frame if fill is not None else frame.with_columns(_imputed(frame[name]) for name in counts)


def _imputed(column: Any) -> Any:
    """A column whose missing values are a level of their own, or the mean."""
    import polars as pl

    return (
        column.fill_null(OWN_LEVEL) if column.dtype == pl.String else column.cast(pl.Float64).fill_null(strategy="mean")
    )


def _labels(column: Any, *, target: str, data: object) -> np.ndarray:
    """The target as whole numbers, other numbers, or text."""
    import polars as pl

    if not column.dtype.is_numeric() and column.dtype not in (pl.Boolean, pl.String):
        raise _no_feature(target, column.dtype, data)
    distinct = column.n_unique()
    if distinct < 2:
        raise ValueError(f"the target {target} of {data} has one class only, {column[0]!r}: nothing to choose")
    if column.dtype.is_numeric():
        if distinct > NUMBERS:
            raise ValueError(
                f"the target {target} of {data} has {distinct:,} distinct numbers: it looks like a regression target, "
                f"and an arm is a class (at most {NUMBERS}); cut it into classes first"
            )
        if column.dtype.is_integer() and column.abs().max() >= 2**53:  # as floats two of them may be one
            return np.array(column.cast(pl.String).to_list())
        y = column.cast(pl.Float64).to_numpy()
        if not np.isfinite(y).all():
            raise ValueError(f"the target {target} of {data} holds infinity: a label must be known")
        return y.astype(np.int64) if np.array_equal(y, np.floor(y)) and np.abs(y).max() < 2**53 else y
    if distinct > CLASSES:
        raise ValueError(
            f"the target {target} of {data} has {distinct:,} classes in {len(column):,} rows: it looks like an "
            f"identifier, and an arm is a class (at most {CLASSES:,})"
        )
    return np.array(column.cast(pl.String).to_list())


def _features(frame: Any, *, fill: float | None, data: object) -> np.ndarray:
    """X (N, d): the columns in their order, with text as one-hot."""
    import polars as pl

    parts: list[np.ndarray] = []
    for column in frame:
        if column.dtype == pl.String:
            levels = column.n_unique()
            if levels > LEVELS:
                tabular.no_numbers_with_zeros(column, data)
                raise ValueError(
                    f"column {column.name} of {data} has {levels:,} distinct texts, such as {column[0]!r}, and one-hot "
                    f"takes at most {LEVELS}: remove it, or put its levels into groups"
                )
            parts += [*one_hot(np.array(column.fill_null(MISSING).to_list())).T]
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            numbers = column.cast(pl.Float64)
            x = (numbers if fill is None else numbers.fill_null(fill)).to_numpy()
            huge = np.flatnonzero(np.abs(x) >= inputs.LARGEST)
            if huge.size:
                raise ValueError(
                    f"column {column.name} of {data} has {x[huge[0]]:g} in row {huge[0] + 1} ({huge.size} such "
                    f"values): numbers must be below {inputs.LARGEST:g}"
                )
            parts.append(x)
        else:
            raise _no_feature(column.name, column.dtype, data)
    if all(x.min() == x.max() for x in parts):
        raise ValueError(f"every column of {data} besides the target is constant: nothing to learn from")
    return np.column_stack(parts)


def _no_feature(name: str, dtype: object, data: object) -> ValueError:
    return ValueError(f"column {name} of {data} is a {dtype}: turn it into numbers or text, or remove it")


def _some(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} columns more" if more > 0 else "")

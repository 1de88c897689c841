"""One order for the features of rows that come with names: one name, one column.

The rule is that of a `Bandit`. The first names are the columns; rows with the same names in another order are put into
that order; rows without names go by place. So two runs that saw the columns of a frame in other orders make one log.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dither.log import schema


def agreed(columns: Sequence[str] | None, names: Sequence[str] | None, *, where: Any) -> Sequence[str] | None:
    """The columns after a part with these names has come. None: there are no names yet.

    where : how the error calls the part

    Raises ValueError for names that are not those of the columns.
    """
    if columns is None or names is None or set(columns) == set(names):
        return names if columns is None else columns
    raise ValueError(
        f"the parts of a log must have the same names of features; {where} has {some(names)}, and the first with names "
        f"has {some(columns)}: {some(sorted(set(columns) ^ set(names)))} differ. Log other features into a folder of "
        "its own; a part that is there can be read alone, as a file: dither.log.read(path, require=('arm',))"
    )


def ordered(frame: Any, names: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
    """A frame whose features have these names, or none, with its features in the order of the columns."""
    if names is None or columns is None or list(names) == list(columns) or "features" not in frame.columns:
        return frame
    return frame.with_columns(placed(frame["features"], names, columns))


def placed(lists: Any, names: Sequence[str], columns: Sequence[str]) -> Any:
    """Lists of rows of features with these names, as rows with these columns. A column without a name is 0.

    Raises ValueError for rows that are not as wide as the names are many.
    """
    counts = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    rows = lists.filter((lists.list.len() > 0).fill_null(False)).explode()
    odd = rows.filter(rows.list.len() != len(names))
    if len(odd):
        raise ValueError(
            f"rows of {len(odd[0])} features cannot have the {len(names)} names {some(names)}: beside rows with names, "
            "those without go by place. Log other features into a folder of their own"
        )
    place = {name: i for i, name in enumerate(columns)}
    values = np.zeros((len(rows), len(columns)))
    values[:, [place[name] for name in names]] = schema.flat(rows).reshape(-1, len(names))
    parts = np.split(values, np.cumsum(counts)[:-1])
    return schema.lists_of_rows(
        lists.name, [None if null else part for part, null in zip(parts, lists.is_null(), strict=True)]
    )


def some(names: Sequence[str]) -> str:
    """The first names, in quotes, and how many more there are."""
    return ", ".join(map(repr, names[:5])) + f" and {len(names) - 5} more" * (len(names) > 5)

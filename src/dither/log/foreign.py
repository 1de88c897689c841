"""Logs that others wrote as tables: any table whose columns are named, and the Open Bandit Dataset.

Open Bandit Dataset (Saito et al. 2021, Section 3): one row a shown position, with columns timestamp, item_id, position,
click, propensity_score, user_feature_0, ..., user-item_affinity_0, ...
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding import inputs
from dither.log import logged, reader, schema, storage
from dither.log.logged import Logged, by_value

UNMISTAKABLE = ("propensity", "propensity_kind", "propensity_se")  # names that can mean nothing else
LISTED = (
    10_000_000  # at most so many ids of a catalogue are listed row by row (16 bytes each); of more, K alone is kept
)


def from_columns(
    frame: Any,
    *,
    arm: str,
    reward: str | None = None,
    cost: str | None = None,
    propensity: str | None = None,
    kind: str | None = None,
    arms: str | int | Sequence[Any] | None = None,
    features: str | Sequence[str] | None = None,
    text: Sequence[str] = (),
    **columns: str,
) -> Logged:
    """A log from any table: the path of a file, as `read` takes it, or a frame (polars, pandas, Arrow).

    arm : the column with the id of the arm shown, of any type; in a CSV file ids are text as written
    reward, or cost : the column with the reward, or the column with the cost (the reward is then minus the cost)
    propensity : the column with the probability of the arm shown; None: the column "propensity". A table without it
        has propensities of kind "none"
    kind : kind of the propensities, one of `schema.KINDS`; None: as the column "propensity_kind" says, or "exact"
        where there is no such column
    arms : the column with lists of the ids on offer; or the ids on offer in every row (the catalogue); or the number of
        arms, where some were never shown. None: the catalogue holds the ids that were shown, and there may be more.
        `check` reports an arm that is not among the ids on offer
    features : the column with lists of features, (K, d) or (d,); or the column or columns of numbers that make the
        context of each row
    text : columns of your own whose values in a CSV file stay as written, such as ids of users
    columns : other columns of a log by name, as in id="event", time="ts", probabilities="ps", floor="eps"

    A column that is not named is your own, whatever it is called. If it has the name of a log's column, such as K, it
    becomes "K (yours)" in the frame, and `Logged.column("K")` finds it. Three names are read even if they are not
    named, because they can mean nothing else: propensity, propensity_kind and propensity_se.

    Raises as `read` does, and for columns that are not there.
    """
    pl = schema.polars()
    where = reader.words(frame)
    if (reward is None) == (cost is None):
        raise ValueError("give reward or cost, the column with what came of each decision")
    odd = [name for name in columns if name not in schema.COLUMNS or name in ("arm", "K")]
    if odd:
        raise ValueError(f"a log has no column {odd[0]!r} to fill; it has {', '.join(schema.COLUMNS)}")
    if kind is not None and (kind not in schema.KINDS or "propensity_kind" in columns):
        rule = "and without propensity_kind=, the column that says it" if kind in schema.KINDS else f"got {kind!r}"
        raise ValueError(f"kind must be one of {', '.join(schema.KINDS)}: {rule}")
    given = {"arm": arm, "reward": reward or cost, "propensity": propensity, **columns}
    as_written = {arm, *text, *(columns[name] for name in reader.TEXTS if name in columns)}
    table = reader.scanned(Path(frame), as_written) if isinstance(frame, (str, Path)) else reader.framed(frame)
    with storage.readable(where):
        table = table.lazy().collect()
    given |= {name: name for name in UNMISTAKABLE if given.get(name) is None and name in table.columns}
    if isinstance(features, str) and features in table.columns and not _listed(table.schema[features]):
        features = [features]
    context = list(features) if features is not None and not isinstance(features, str) else []
    lists = {"arms": arms, "features": features}
    given |= {name: column for name, column in lists.items() if isinstance(column, str)}
    named: dict[str, str] = {name: column for name, column in given.items() if column is not None}
    missing = [column for column in [*named.values(), *context] if column not in table.columns]
    if missing:
        raise ValueError(
            f"{where} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, table.columns))}"
            + schema.separated(table.columns)
        )
    if table.height == 0:
        raise ValueError(f"{where} holds no rows: there is nothing to evaluate")
    found = table.select(
        *(pl.col(column).alias(name) for name, column in named.items()),
        *(
            pl.col(c).alias(f"{c}{logged.YOURS}" if c in schema.COLUMNS else c)
            for c in table.columns
            if c not in named.values() and c not in context
        ),
    )
    if context or _flat(found.schema.get("features")):
        values = inputs.numbers(table.select(context), name="features") if context else _even(found["features"])
        found = found.with_columns(pl.Series("features", values[:, None, :]).cast(schema.dtype("rows")))
    shown, catalogue = texts(found["arm"]), None
    if "arms" in named:
        found = found.with_columns(_texts_in_lists(found["arms"]))
        position = _within(shown, found["arms"])
    else:
        catalogue = _catalogue(shown, arms)
        position = shown.replace_strict(list(catalogue), range(len(catalogue)), default=None, return_dtype=pl.Int64)
    position = pl.select(pl.when(shown.is_null()).then(None).otherwise(position.fill_null(-1))).to_series()
    found = found.with_columns(position.alias("arm"))
    if "propensity" not in named:
        if kind not in (None, "none"):
            raise ValueError(f"kind={kind!r} needs propensity=, the column with the probabilities; {where} has none")
        kind, found = "none", found.with_columns(pl.lit(None, dtype=pl.Float64).alias("propensity"))
    if kind is not None or "propensity_kind" not in found.columns:
        found = found.with_columns(pl.lit(kind or "exact").alias("propensity_kind"))
    if catalogue is not None and arms is not None and "K" not in found.columns:
        found = found.with_columns(pl.lit(len(catalogue), dtype=pl.Int64).alias("K"))
        if found.height * len(catalogue) <= LISTED:
            ids = pl.Series([list(catalogue)], dtype=schema.dtype("texts"))
            found = found.with_columns(pl.lit(ids).first().alias("arms"))
    found = schema.checked(found, where=where, names=named)
    if cost is not None:
        found = found.with_columns(-pl.col("reward"))
    shown_only = catalogue is not None and arms is None
    return Logged(found, catalogue=catalogue, names=tuple(context) or None, shown_only=shown_only)


def _catalogue(shown: Any, arms: int | Sequence[Any] | None) -> tuple[str, ...]:
    """The ids by position: the ids given, or the ids shown. A given number adds ids up to it."""
    if arms is None or isinstance(arms, (int, np.integer)):
        seen = sorted(shown.drop_nulls().unique().to_list(), key=by_value)
        return tuple(seen) if arms is None else filled_up(seen, int(arms))
    ids = tuple(str(one) for one in arms)
    if len(set(ids)) < len(ids) or not ids:
        raise ValueError(f"arms must be different ids, and at least one; got {len(ids)}")
    return ids


def filled_up(seen: Sequence[str], number: int) -> tuple[str, ...]:
    """`number` ids that hold the ids seen.

    Where the ids seen are positions from 0 or from 1, all are such positions. Else the others get names of their own.
    """
    errors.at_least("arms", number, 1)
    if len(seen) > number:
        raise ValueError(f"arms must be at least {len(seen)}, as so many arms were shown; got {number}")
    for first in (0, 1):
        count = tuple(str(i) for i in range(first, first + number))
        if set(seen) <= set(count):
            return count
    return (*seen, *(f"(never shown {i + 1})" for i in range(number - len(seen))))


def open_bandit(frame: Any, *, arms: int | Sequence[Any] | None = None) -> Logged:
    """A log of the Open Bandit Dataset: item_id is the arm, click the reward, propensity_score its probability.

    frame : a path of a file, or a frame
    arms : the items that could be shown, or their number; None: the items that were shown

    A row is one item at one position. The columns position and user_feature_* stay (`log.column("position")`).
    """
    named = {"arm": "item_id", "reward": "click", "propensity": "propensity_score", "time": "timestamp"}
    return from_columns(frame, arms=arms, **named)


def texts(column: Any) -> Any:
    """Ids of any type as text. A float without a fraction is written as a whole number."""
    pl = schema.polars()
    if column.dtype.is_float() and bool((column.drop_nulls() == column.drop_nulls().round()).all()):
        column = column.cast(pl.Int64)
    return column.cast(pl.String)


def _texts_in_lists(column: Any) -> Any:
    if not _listed(column.dtype):
        raise ValueError(f"arms must name a column of lists of ids, got {column.dtype}; or pass the ids themselves")
    return column.cast(schema.dtype("texts"))


def _listed(dtype: Any) -> bool:
    return isinstance(dtype, (schema.polars().List, schema.polars().Array))


def _flat(dtype: Any) -> bool:
    return _listed(dtype) and dtype.inner.is_numeric()


def _even(lists: Any) -> np.ndarray:
    """Lists of one length d as an array (n, d)."""
    lengths = lists.list.len().unique().to_list()
    if len(lengths) != 1 or lengths[0] is None:
        raise ValueError(f"features must be lists of one length, got lengths {lengths}")
    return inputs.numbers(lists.explode(), name="features").reshape(len(lists), lengths[0])


def _within(shown: Any, lists: Any) -> Any:
    """The position of each id in its list; null where the list does not have the id."""
    pl = schema.polars()
    counts = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    full = lists.filter((lists.list.len() > 0).fill_null(False))
    flat = full.explode().to_numpy() if len(full) else np.empty(0, dtype=object)
    rows = np.repeat(np.arange(len(counts)), counts)
    hits = np.flatnonzero(flat == shown.to_numpy()[rows]) if flat.size else np.empty(0, dtype=np.int64)
    found, first = np.unique(rows[hits], return_index=True)
    position = np.full(len(counts), -1)
    position[found] = hits[first] - (np.cumsum(counts) - counts)[found]
    series = pl.Series("arm", position)
    return series.set(series < 0, None)

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
from dither.features import tokens
from dither.log import logged, reader, schema, storage
from dither.log.logged import Logged, by_value

UNMISTAKABLE = ("propensity", "propensity_kind", "propensity_se")  # names that can mean nothing else
LISTED = 10_000_000  # ids that are listed row by row at most (16 bytes each); of a larger catalogue K alone is kept


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
    where = reader.words(frame)
    if (reward is None) == (cost is None):
        raise ValueError("give reward or cost, the column with what came of each decision")
    odd = [name for name in columns if name not in schema.COLUMNS or name in ("arm", "K")]
    if odd:
        raise ValueError(f"a log has no column {odd[0]!r} to fill; it has {', '.join(schema.COLUMNS)}")
    if kind is not None and (kind not in schema.KINDS or "propensity_kind" in columns):
        rule = "and without propensity_kind=, the column that says it" if kind in schema.KINDS else f"got {kind!r}"
        raise ValueError(f"kind must be one of {', '.join(schema.KINDS)}: {rule}")
    as_written = [columns[name] for name in reader.TEXTS if name in columns]
    counted = [column for column in (reward, cost, propensity, *_listed_names(features)) if column is not None]
    if isinstance(frame, (str, Path)):
        table = reader.scanned(Path(frame), as_written, names={arm, *text}, numbers=counted)
    else:
        table = reader.framed(frame)
    with storage.readable(where):
        table = table.lazy().collect()
    names = {"arm": arm, "reward": reward or cost, "propensity": propensity, **columns}
    names |= {name: name for name in UNMISTAKABLE if names.get(name) is None and name in table.columns}
    if isinstance(features, str) and features in table.columns and not _listed(table.schema[features]):
        features = [features]
    context = list(features) if features is not None and not isinstance(features, str) else []
    names |= {name: column for name, column in {"arms": arms, "features": features}.items() if isinstance(column, str)}
    named: dict[str, str] = {name: column for name, column in names.items() if column is not None}
    missing = [column for column in [*named.values(), *context] if column not in table.columns]
    if missing:
        raise ValueError(
            f"{where} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, table.columns))}"
            + schema.separated(table.columns)
        )
    if table.height == 0:
        raise ValueError(f"{where} holds no rows: there is nothing to evaluate")
    rows, catalogue = _placed(_renamed(table, named, context), arms)
    rows = schema.checked(_with_kind(rows, kind, where), where=where, names=named)
    if cost is not None:
        rows = rows.with_columns(-schema.polars().col("reward"))
    return Logged(
        rows, catalogue=catalogue, names=tuple(context) or None, shown_only=catalogue is not None and arms is None
    )


def _renamed(table: Any, named: dict[str, str], context: list[str]) -> Any:
    """The table with our names of columns, and with the columns of the context, or lists of numbers, as features."""
    pl = schema.polars()
    theirs = [name for name in table.columns if name not in named.values() and name not in context]
    rows = table.select(
        *(pl.col(column).alias(name) for name, column in named.items()),
        *(pl.col(name).alias(f"{name}{logged.YOURS}" if name in schema.COLUMNS else name) for name in theirs),
    )
    if context:
        _numeric(table, context)
        values = inputs.numbers(table.select(context), name="features")
    elif _listed(dtype := rows.schema.get("features")) and dtype.inner.is_numeric():
        values = _even(rows["features"])
    else:
        return rows
    return rows.with_columns(pl.Series("features", values[:, None, :]).cast(schema.dtype("rows")))


def _listed_names(features: str | Sequence[str] | None) -> list[str]:
    """The columns that a user names as features."""
    return [features] if isinstance(features, str) else list(features or ())


def _numeric(table: Any, names: Sequence[str]) -> None:
    """Raise ValueError for a column of text, with the first value that is no number and its row."""
    for name in names:
        column = table[name]
        if column.dtype != schema.polars().String:
            continue
        odd = column.is_not_null() & column.cast(schema.polars().Float64, strict=False).is_null()
        row, what = (int(odd.arg_max() or 0), "text") if odd.any() else (0, "numbers as text")
        raise ValueError(
            f"column {name!r} must hold real numbers to be a feature, got {what}, such as {column[row]!r} in row {row}"
            ": correct it, leave the column out, or make columns of names by dither.Features"
        )


def _placed(rows: Any, arms: str | int | Sequence[Any] | None) -> tuple[Any, tuple[str, ...] | None]:
    """The rows with the position of each arm in place of its id, and the catalogue; None where each row lists its ids.

    arms : as for `from_columns`
    """
    pl, shown = schema.polars(), texts(rows["arm"])
    if not isinstance(arms, (str, int, np.integer, type(None))) and "" in arms:
        shown = shown.fill_null("")  # an arm without a name, which the user names
    if isinstance(arms, str):
        if not _listed(rows.schema["arms"]):
            dtype = rows.schema["arms"]
            raise ValueError(f"arms must name a column of lists of ids, got {dtype}; or pass the ids themselves")
        if rows.schema["arms"].inner.is_nested():
            raise ValueError(f"arms must name a column of lists of ids, got {rows.schema['arms']}: {_NESTED}")
        ids = pl.col("arms").cast(schema.dtype("texts")).list.eval(pl.element().str.normalize("NFC"))
        catalogue, rows = None, rows.with_columns(ids)
        _different(rows["arms"], arms)
        position = _within(shown, rows["arms"])
    else:
        catalogue = _catalogue(shown, arms)
        position = shown.replace_strict(list(catalogue), range(len(catalogue)), default=None, return_dtype=pl.Int64)
    rows = rows.with_columns(arm=pl.when(shown.is_null()).then(None).otherwise(position.fill_null(-1)))
    if catalogue is not None and arms is not None and "K" not in rows.columns:
        rows = rows.with_columns(pl.lit(len(catalogue), dtype=pl.Int64).alias("K"))
        if rows.height * len(catalogue) <= LISTED:
            ids = pl.Series([list(catalogue)], dtype=schema.dtype("texts"))
            rows = rows.with_columns(pl.lit(ids).first().alias("arms"))
    return rows, catalogue


def _different(lists: Any, name: str) -> None:
    """Raise ValueError for a list of ids on offer, in the column of this name, that has one of them twice."""
    twice = (lists.list.n_unique() < lists.list.len()).fill_null(False)
    if twice.any():
        row = int(twice.arg_max())
        id = errors.repeated(lists[row].to_list())
        raise ValueError(f"{name!r} lists the arm {id!r} twice in row {row}: each arm on offer has one place")


def _with_kind(rows: Any, kind: str | None, where: str) -> Any:
    """The rows with a propensity and its kind, where the table has no such columns."""
    pl = schema.polars()
    if "propensity" not in rows.columns:
        if kind not in (None, "none"):
            raise ValueError(f"kind={kind!r} needs propensity=, the column with the probabilities; {where} has none")
        kind, rows = "none", rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("propensity"))
    if kind is not None or "propensity_kind" not in rows.columns:
        rows = rows.with_columns(pl.lit(kind or "exact").alias("propensity_kind"))
    return rows


def _catalogue(shown: Any, arms: int | Sequence[Any] | None) -> tuple[str, ...]:
    """The ids by position: those that the user passes, or those that were shown. A number adds ids up to it."""
    if arms is None or isinstance(arms, (int, np.integer)):
        ids = sorted(shown.drop_nulls().unique().to_list(), key=by_value)
        return tuple(ids) if arms is None else filled_up(ids, int(arms))
    ids = [_id_text(one) for one in arms]
    if len(set(ids)) < len(ids) or not ids:
        raise ValueError(f"arms must be different ids, and at least one; got {len(ids)}")
    return tuple(ids)


def filled_up(ids: Sequence[str], number: int) -> tuple[str, ...]:
    """`number` ids that hold these, which were shown.

    Where they are positions from 0 or from 1, all are such positions. Else the others get names of their own.
    """
    errors.at_least("arms", number, 1)
    if len(ids) > number:
        raise ValueError(f"arms must be at least {len(ids)}, as so many arms were shown; got {number}")
    for first in (0, 1):
        count = tuple(str(i) for i in range(first, first + number))
        if set(ids) <= set(count):
            return count
    return (*ids, *(f"(never shown {i + 1})" for i in range(number - len(ids))))


def open_bandit(frame: Any, *, arms: int | Sequence[Any] | None = None) -> Logged:
    """A log of the Open Bandit Dataset: item_id is the arm, click the reward, propensity_score its probability.

    frame : a path of a file, or a frame
    arms : the items that could be shown, or their number; None: the items that were shown

    A row is one item at one position. The columns position and user_feature_* stay (`log.column("position")`).
    """
    named = {"arm": "item_id", "reward": "click", "propensity": "propensity_score", "time": "timestamp"}
    rows = from_columns(frame, arms=arms, **named)
    happened(rows.r, name="click", rows=rows.numbers, where=reader.words(frame))
    return rows


def happened(r: np.ndarray, *, name: str, rows: np.ndarray, where: str) -> None:
    """Raise ValueError for a signal that says whether something happened, r (n,), and is neither 0, 1 nor missing."""
    odd = ~(np.isin(r, (0.0, 1.0)) | np.isnan(r))
    if odd.any():
        i = int(np.argmax(odd))
        raise ValueError(
            f"{name} must be 0 or 1, got {r[i]:g} in row {rows[i]} of {where}: correct it, or leave the row out"
        )


def texts(column: Any) -> Any:
    """Ids of any type as text in the form NFC. A float without a fraction is written as a whole number.

    Raises ValueError for values that are no ids, such as lists.
    """
    pl = schema.polars()
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise ValueError(
            f"the column of the arm must hold one id a row, got {column.dtype}, such as {_example(column)}: {_NESTED}"
        )
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.drop_nulls()
        column = column.cast(pl.Int64) if ((whole == whole.round()) & (whole.abs() < 2.0**53)).all() else column
    return column.cast(pl.String).str.normalize("NFC")


def _id_text(id: Any) -> str:
    """The text that `texts` makes of this id."""
    if isinstance(id, (bool, np.bool_)):
        return str(bool(id)).lower()
    if isinstance(id, (float, np.floating)) and float(id).is_integer() and abs(float(id)) < 2.0**53:
        return str(int(id))
    return tokens.nfc(str(id))


_NESTED = (
    "an arm has one id, a text or a number. Give each arm an id of its own, or each arm of a list that was shown a row"
)


def _example(column: Any) -> str:
    value = next((value for value in column.head(100).to_list() if value is not None), None)
    return repr(value)[:60]


def _listed(dtype: Any) -> bool:
    return isinstance(dtype, (schema.polars().List, schema.polars().Array))


def _even(lists: Any) -> np.ndarray:
    """Lists of one length d as an array (n, d)."""
    lengths = lists.list.len().unique().to_list()
    if len(lengths) != 1 or lengths[0] is None:
        raise ValueError(f"features must be lists of one length, got lengths {lengths}")
    return inputs.numbers(lists.explode(), name="features").reshape(len(lists), lengths[0])


def _within(shown: Any, lists: Any) -> Any:
    """The position of each id in its list; null where the list does not have the id."""
    pl = schema.polars()
    pairs = pl.DataFrame({"shown": shown, "id": lists}).with_row_index("row").explode("id")
    places = pairs.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("row").alias("place"))
    same = places.filter(pl.col("id") == pl.col("shown")).group_by("row").agg(pl.col("place").min())
    rows = pl.DataFrame({"row": pl.int_range(len(shown), dtype=pl.UInt32, eager=True)})
    return rows.join(same, on="row", how="left", maintain_order="left")["place"]

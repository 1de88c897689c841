"""Decisions into the table."""

import json
import math
import operator
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa

from dither.deciding import inputs
from dither.log import schema
from dither.log.database import sql_tables
from dither.log.database.home import Home

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
TOGETHER = 500  # ids that are looked up by one statement
_TABLE = sql_tables.decisions.c
_COLUMNS = [column.name for column in _TABLE if column.name not in ("number", "erased")]
_INSERT = sql_tables.decisions.insert()
_ARRAYS = ("features", "m", "w", "probabilities", "x")
_NOTHING = dict.fromkeys(_COLUMNS) | {"closed": False}
_IN_ORDER = operator.itemgetter(*_COLUMNS)
_FLOAT = np.dtype("<f8")
_LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _TICK  # the last moment that there is


def micros(time: datetime) -> int:
    """Microseconds since 1970."""
    return (time - EPOCH) // _TICK


def values(row: Mapping[str, Any], *, horizon: int | None, more: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
    """What the table holds of a row that `record.Maker` made.

    horizon : microseconds after which a reward is late; None: never
    more : x, slot and batch, where a learner needs them; x is taken from the features where they are there

    Raises ValueError for an id that not every database can hold, and for a column of the user's that JSON cannot.
    """
    inputs.storable(row["id"])
    extra = None
    if not row.keys() <= schema.COLUMNS.keys():
        extra = {name: value for name, value in row.items() if name not in schema.COLUMNS}
        row = {name: value for name, value in row.items() if name in schema.COLUMNS}
    held = {**_NOTHING, **row, **(more or {})}
    held["extra"] = None if extra is None else _json(extra)
    held["time"] = micros(row["time"])
    if row["arms"] is not None:
        for arm in row["arms"]:
            inputs.storable(arm)
        held["arms"] = json.dumps(row["arms"])
    features = row.get("features")
    if features is not None:
        held["width"] = features.shape[1]
        if held["x"] is None:
            held["x"] = features[row["arm"] if len(features) == row["K"] else 0]
    for name in _ARRAYS:
        if held[name] is not None:
            held[name] = np.asarray(held[name], dtype=_FLOAT).tobytes()
    if horizon is not None:
        held["deadline"] = min(held["time"] + horizon, _LAST)
    return _IN_ORDER(held)


def _json(extra: dict[str, Any]) -> str:
    for name, value in extra.items():
        if isinstance(value, dict):
            raise ValueError(f"extra must hold texts, numbers, times, lists of these or None, got {name}={value!r}")
    try:
        return _encodable(_dumped(extra))
    except UnicodeEncodeError:
        raise ValueError(f"extra must be Unicode, and half of a surrogate pair is in {extra!r}") from None


def _encodable(text: str) -> str:
    """The JSON itself. Raises UnicodeEncodeError where a text in it can never be written."""
    if "\\ud" in text:  # rare: what is beyond 16 bits, in a pair, or half of one
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    return text


def _dumped(extra: dict[str, Any]) -> str:
    try:
        return json.dumps(extra, default=held, allow_nan=False)
    except ValueError:  # NaN, which JSON has not: missing
        return json.dumps({name: None if _nan(value) else value for name, value in extra.items()}, default=held)


def _nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def held(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise ValueError(f"extra must hold texts, numbers, times, lists of these or None, got {value!r}")


def taken(connection: sa.Connection, ids: list[str]) -> set[str]:
    """Those of the ids that decisions have."""
    found: set[str] = set()
    for at in range(0, len(ids), TOGETHER):
        found.update(connection.scalars(sa.select(_TABLE.id).where(_TABLE.id.in_(ids[at : at + TOGETHER]))))
    return found


def enter(connection: sa.Connection, home: Home, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows that `values` made."""
    home.many(connection, _INSERT, _COLUMNS, rows)


def id_of(row: tuple[Any, ...]) -> str:
    """The id in a row that `values` made."""
    return row[0]

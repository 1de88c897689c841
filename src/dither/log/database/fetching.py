"""Decisions and rewards out of the tables, as polars frames with the columns of `schema`.

Rows come as tuples of the driver, many at a time, and become columns at once: a list of arrays is the bytes of all of
them, joined.
"""

import contextlib
import gc
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from dither.log import reward_rules, schema
from dither.log.database import sql_tables
from dither.log.database.home import Home

ROWS = 50_000  # fetched together
_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
_HELD = (*schema.DECISION, "width", "extra", "number")


def rows(connection: sa.Connection, home: Home, statement: Any) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a statement without parameters, in pieces."""
    driver = home.driver(connection)
    cursor = driver.cursor(name="dither") if home.postgres else driver.cursor()
    try:
        cursor.execute(home.text(statement))
        while part := cursor.fetchmany(ROWS):
            yield part
    finally:
        cursor.close()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which looks at millions of tuples again and again: a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def decisions(connection: sa.Connection, home: Home) -> Iterator[Any]:
    """Frames of the decisions, in order: `schema.DECISION`, the user's columns, and `__decision`, their numbers."""
    fields = [_DECISION[name] for name in _HELD]
    for part in rows(connection, home, sa.select(*fields).order_by(_DECISION.number)):
        yield _frame(dict(zip(_HELD, zip(*part, strict=True), strict=True)))


def count(connection: sa.Connection) -> int:
    """How many decisions there are."""
    return connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.decisions)) or 0


def events(connection: sa.Connection, home: Home) -> Any:
    """All rewards that were received and not erased: the number of the decision, and `schema.EVENT` but for its id.

    A conflict and a late reward are marked as `conflict`: they never count.
    """
    names = ("decision", "part", "reward", "time", "standing")
    there = _REWARD.reward.is_not(None) & _REWARD.standing.in_(
        [sa.literal_column(f"'{one}'") for one in reward_rules.EVENTS]
    )
    mine = sa.select(*[_REWARD[name] for name in names]).where(there).order_by(_REWARD.seq)
    pl, types = schema.polars(), schema.dtypes(schema.EVENT)
    frames = []
    for part in rows(connection, home, mine):
        decision, of_part, reward, time, standing = zip(*part, strict=True)
        columns = {"decision": decision, "reward": reward}
        frame = pl.DataFrame({name: pl.Series(name, column, dtype=types[name]) for name, column in columns.items()})
        frames.append(
            frame.with_columns(
                pl.Series("part", of_part, dtype=pl.String).replace("", None),
                pl.Series("time", time, dtype=pl.Int64).cast(types["time"]),
                ~pl.Series("conflict", standing, dtype=pl.String).is_in(["counted", "default"]),
            )
        )
    empty = pl.DataFrame(schema={name: types[name] for name in ("decision", "reward", "part", "time", "conflict")})
    return pl.concat([empty, *frames])


def _frame(held: dict[str, Sequence[Any]]) -> Any:
    pl, types = schema.polars(), schema.dtypes(schema.DECISION)
    columns = []
    for name in schema.DECISION:
        what, values = schema.COLUMNS[name], held[name]
        if what == "time":
            columns.append(pl.Series(name, values, dtype=pl.Int64).cast(types[name]))
        elif what == "texts":
            columns.append(pl.Series(name, values, dtype=pl.String).str.json_decode(types[name]))
        elif what == "numbers":
            columns.append(_lists(name, values, None))
        elif what == "rows":
            columns.append(_lists(name, values, held["width"]))
        else:
            columns.append(pl.Series(name, values, dtype=types[name]))
    columns.append(pl.Series("__decision", held["number"], dtype=pl.Int64))
    return pl.DataFrame([*columns, *_extras(held["extra"])])


def _lists(name: str, blobs: Sequence[Any], widths: Sequence[Any] | None) -> Any:
    """Arrays as a column of lists of numbers, or of rows where widths are given."""
    pl = schema.polars()
    dtype = schema.dtype("numbers" if widths is None else "rows")
    there = [blob for blob in blobs if blob is not None]
    if not there:
        return pl.Series(name, [None] * len(blobs), dtype=dtype)
    sizes = {len(blob) for blob in there}
    wide = {width for width in widths or () if width is not None}
    if len(there) == len(blobs) and len(sizes) == 1 and len(wide) <= 1:  # all of one shape
        flat = np.frombuffer(b"".join(there), dtype="<f8")
        shape = (len(blobs), -1) if widths is None else (len(blobs), -1, *wide)
        return pl.Series(name, flat.reshape(shape)).cast(dtype)
    arrays = [None if blob is None else np.frombuffer(blob, dtype="<f8") for blob in blobs]
    if widths is None:
        return schema.lists_of_numbers(name, arrays)
    if len(wide) == 1:
        return schema.lists_of_rows(name, [None if a is None else a.reshape(-1, *wide) for a in arrays])
    nested = [None if a is None else a.reshape(-1, d).tolist() for a, d in zip(arrays, widths, strict=True)]
    return pl.Series(name, nested, dtype=dtype)


def _extras(texts: Sequence[str | None]) -> list[Any]:
    """The user's own columns."""
    if not any(texts):
        return []
    pl = schema.polars()
    extras = json.loads("[" + ",".join([text or "null" for text in texts]) + "]")
    names = dict.fromkeys(itertools.chain.from_iterable([one for one in extras if one]))
    empty: dict[str, Any] = {}
    return [_column(pl, name, [(one or empty).get(name) for one in extras]) for name in names]


def _column(pl: Any, name: str, values: list[Any]) -> Any:
    """A column of the user's. Where lists stand beside other values, all of them are texts, and lists are JSON."""
    kinds = {isinstance(value, list) for value in values if value is not None}
    return pl.Series(name, values if len(kinds) < 2 else [_text(value) for value in values], strict=False)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def together(frames: list[Any]) -> Any:
    """One frame of those that `decisions` gives. A column that is lists in some of them alone becomes texts."""
    pl = schema.polars()
    lists: dict[str, set[bool]] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            if name not in schema.DECISION and dtype != pl.Null:
                lists.setdefault(name, set()).add(isinstance(dtype, pl.List))
    mixed = [name for name, kinds in lists.items() if len(kinds) == 2]
    for name in mixed:
        frames = [
            frame.with_columns(pl.Series(name, [_text(one) for one in frame[name].to_list()], dtype=pl.String))
            if name in frame.columns
            else frame
            for frame in frames
        ]
    return pl.concat(frames, how="diagonal_relaxed")

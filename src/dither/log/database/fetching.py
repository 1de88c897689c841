"""Decisions and rewards out of the tables, as polars frames with the columns of `schema`.

Rows come as tuples of the driver, many at a time, and become columns at once: a list of arrays is the bytes of all of
them, joined.
"""

import contextlib
import gc
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import sqlalchemy as sa

from dither.features import raw_records
from dither.log import reward_rules, schema
from dither.log.database import sql_tables
from dither.log.database.encodings import Encoder
from dither.log.database.home import Home
from dither.log.logged import YOURS
from dither.log.record import Span
from dither.log.storage import DAY

ROWS = 50_000  # fetched together, of a frame
TOGETHER = 10_000  # fetched together, of what is looked at row by row
_DECISION, _REWARD = sql_tables.decisions.c, sql_tables.rewards.c
Which: TypeAlias = Sequence[sa.ColumnElement[bool]]  # conditions on decisions, all of which hold
_HELD = (*("batch" if name == "learnt" else name for name in schema.DECISION), "width", "extra", "number", "erased")


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


def decisions(
    connection: sa.Connection,
    home: Home,
    which: Which = (),
    *,
    leave: Collection[str] = (),
    records: bool = False,
    encoder: Encoder | None = None,
) -> Iterator[Any]:
    """Frames of the decisions that fulfil all conditions, in order.

    leave : columns that are not read, and are null

    They have the columns `schema.DECISION`, the user's, and `__decision`, the numbers. A frame with decisions that were
    erased has the column `was_erased` too. With `records` they have those of `schema.RAW` too.

    encoder : has X as the features in force make it; None: it is as it was stored
    """
    fields: list[Any] = [sa.null().label(name) if name in leave else _DECISION[name] for name in _HELD]
    held, encoder = _HELD, None if "features" in leave else encoder
    some = sa.select(*fields).where(*which).order_by(_DECISION.number)
    if records or encoder is not None:
        some = some.add_columns(_DECISION.encoded, sql_tables.records.c.bytes)
        some = some.outerjoin_from(sql_tables.decisions, sql_tables.records)
        held = (*_HELD, "encoded", "raw")
    for part in rows(connection, home, some):
        columns: dict[str, Sequence[Any]] = dict(zip(held, zip(*part, strict=True), strict=True))
        if encoder is not None:
            columns |= _encoded(connection, encoder, columns)
        yield _frame(columns, records=records)


def _encoded(connection: sa.Connection, encoder: Encoder, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """X and its width, as an encoder has them."""
    parts = [columns[one.name] for one in encoder.fields[:-1]]  # the last is called `raw`
    encoded: dict[str, list[Any]] = {"features": [], "width": []}
    for X, d, *of in zip(columns["features"], columns["width"], *parts, columns["raw"], strict=True):
        again = None if X is None else encoder.rows(connection, np.frombuffer(X, dtype="<f8").reshape(-1, d), of)
        encoded["features"].append(None if again is None else np.ascontiguousarray(again, dtype="<f8").tobytes())
        encoded["width"].append(None if again is None else again.shape[1])
    return encoded


def with_extra(connection: sa.Connection, *names: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Decisions with columns of the user's, in order: `number` and the columns of these names, and the user's."""
    columns, at = [_DECISION[name] for name in ("number", "extra", *names)], 0
    fields = sa.select(*columns).where(_DECISION.extra.is_not(None)).order_by(_DECISION.number).limit(TOGETHER)
    while page := connection.execute(fields.where(_DECISION.number > at)).all():
        yield from ((row, json.loads(row.extra)) for row in page)
        at = page[-1].number


def count(connection: sa.Connection) -> int:
    """How many decisions there are."""
    return connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.decisions)) or 0


def latest(connection: sa.Connection, most: int, *, before: int | None = None) -> list[int]:
    """The numbers of the latest decisions, at most so many, the newest first. before : of those with lower numbers"""
    fields = sa.select(_DECISION.number).order_by(_DECISION.number.desc()).limit(most)
    return list(connection.scalars(fields if before is None else fields.where(_DECISION.number < before)))


def number(connection: sa.Connection, id: str) -> int | None:
    """The number of the decision with this id; None: there is none."""
    return connection.scalar(sa.select(_DECISION.number).where(_DECISION.id == id))


def numbered(numbers: Iterable[int]) -> Which:
    """Whether a decision has one of these numbers, as SQL without parameters."""
    return [_DECISION.number.in_([_whole(number) for number in numbers])]


def since(number: int) -> Which:
    """Whether a decision has this number or a higher one, as SQL without parameters."""
    return [_DECISION.number >= _whole(number)]


def within(span: Span) -> Which:
    """Whether the time of a decision lies in a span, as SQL without parameters."""
    low, high = (None if end is None else _whole(end) for end in span)
    after = [] if low is None else [_DECISION.time >= low]
    return after + ([] if high is None else [_DECISION.time < high])


def _whole(number: int) -> Any:
    """A whole number as SQL without a parameter."""
    return sa.literal_column(str(number))


def days(connection: sa.Connection) -> dict[int, list[int]]:
    """Number of a day from 1970 -> what changes where a decision or a reward of the day comes or goes.

    These are counts, and sums of what the times leave of a day: of the decisions, of those that were erased, and of all
    rewards and of those that were not erased. Rows come and are erased, and nothing else happens to them.
    """
    length = _whole(DAY)  # of which no parameter is made, so that the expressions are the same
    rest, number = (_DECISION.time % length + length) % length, sa.func.count()
    of_day = _DECISION.time - rest
    prints: dict[int, list[int]] = {}
    received = sa.select(of_day, number, sa.func.count(_REWARD.reward), sa.func.sum(_REWARD.time % length))
    for fields in (
        sa.select(of_day, number, sa.func.sum(rest)),
        sa.select(of_day, number).where(_DECISION.erased.is_not(None)),
        received.select_from(sql_tables.decisions).join(sql_tables.rewards),
    ):
        for day, *numbers in connection.execute(fields.group_by(of_day)):
            prints.setdefault(int(day) // DAY, []).extend(map(int, numbers))
    return prints


def events(connection: sa.Connection, home: Home, which: Which = ()) -> Any:
    """All rewards that were received and not erased: the number of the decision, and `schema.EVENT` but for its id.

    which : conditions on the decisions

    A conflict, a late reward and one that was corrected are marked as `conflict`: they do not count.
    """
    pl = schema.polars()
    types = {"decision": pl.Int64, "part": pl.String, "reward": pl.Float64, "time": pl.Int64, "standing": pl.String}
    there = _REWARD.reward.is_not(None) & sql_tables.among(_REWARD.standing, reward_rules.EVENTS)
    received = sa.select(*[_REWARD[name] for name in types]).where(there).order_by(_REWARD.seq)
    if which:
        received = received.join(sql_tables.decisions).where(*which)
    frames = [pl.DataFrame(schema=types)]
    for part in rows(connection, home, received):
        frames.append(pl.DataFrame(dict(zip(types, zip(*part, strict=True), strict=True)), schema=types))
    every = pl.concat(frames)
    counts = pl.col("standing").is_in([*reward_rules.COUNTS, reward_rules.CORRECTION])
    if (every["standing"] == reward_rules.CORRECTION).any():  # then the latest counts
        places = every.with_row_index("place").filter(counts)
        latest = places.group_by("decision", "part").agg(pl.col("place").max())["place"]
        counts = pl.int_range(pl.len()).is_in(latest.implode())
    return every.select(
        "decision",
        "reward",
        pl.col("part").replace("", None),
        pl.col("time").cast(schema.dtype("time")),
        conflict=~counts,
    )


def _frame(held: Mapping[str, Sequence[Any]], *, records: bool) -> Any:
    pl, types = schema.polars(), schema.dtypes(schema.DECISION)
    columns = []
    for name in schema.DECISION:
        what, values = schema.COLUMNS[name], held["batch" if name == "learnt" else name]
        if what in ("numbers", "rows"):
            columns.append(_lists(name, values, held["width"] if what == "rows" else None))
            continue
        column = pl.Series(name, values, dtype={"time": pl.Int64, "texts": pl.String}.get(what, types[name]))
        columns.append(column.str.json_decode(types[name]) if what == "texts" else column.cast(types[name]))
    columns.append(pl.Series("__decision", held["number"], dtype=pl.Int64))
    if any(held["erased"]):
        columns.append(pl.Series("was_erased", [number is not None for number in held["erased"]]))
    if records:
        texts = [(None, None) if data is None else raw_records.texts(bytes(data)) for data in held["raw"]]
        for name, each in zip(schema.RAW, zip(*texts, strict=True), strict=True):
            columns.append(pl.Series(name, each, dtype=pl.String))
    return pl.DataFrame([*columns, *_extras(held["extra"], {column.name for column in columns})])


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
        return schema.lists(name, arrays, "numbers")
    arrays = [None if array is None else array.reshape(-1, d) for array, d in zip(arrays, widths, strict=True)]
    if len(wide) == 1:
        return schema.lists(name, arrays, "rows")
    return pl.Series(name, [None if array is None else array.tolist() for array in arrays], dtype=dtype)


def _extras(texts: Sequence[str | None], taken: set[str]) -> list[Any]:
    """The user's own columns. taken : names of the log's own"""
    if not any(texts):
        return []
    extras = json.loads("[" + ",".join([text or "{}" for text in texts]) + "]")
    names, taken = dict.fromkeys(itertools.chain.from_iterable(extras)), taken | schema.COLUMNS.keys()
    return [_column(f"{name}{YOURS}" if name in taken else name, [one.get(name) for one in extras]) for name in names]


def _column(name: str, values: list[Any]) -> Any:
    """A column of the user's. Where lists stand beside other values, all of them are texts, and lists are JSON."""
    mixed = len({isinstance(value, list) for value in values if value is not None}) == 2
    return schema.polars().Series(name, [_text(value) for value in values] if mixed else values, strict=False)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def together(frames: list[Any]) -> Any:
    """One frame of those that `decisions` gives. A column that is lists in some of them alone becomes texts."""
    pl = schema.polars()
    frames = [pl.DataFrame(schema=schema.dtypes(schema.DECISION) | {"__decision": pl.Int64}), *frames]
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

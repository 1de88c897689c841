"""The columns of a decision log, in one place: their names, what they hold, and which types a reader takes for them.

Each row is a decision. A column that a log lacks counts as null. Columns with other names are the user's own and stay
as they are. Below, NumPy arrays are turned into columns of lists and back, without a Python object for each number.
Then come ranges of rewards, as files say them.

The end of the file has one rule for features that come with names, which is that of a `Bandit`: the first names are the
columns; rows with the same names in another order are put into that order; rows without names go by place. So two runs
that saw the columns of a frame in other orders make one log.
"""

import math
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np

from dither.base import errors

Range: TypeAlias = tuple[float, float]
COLUMNS = {  # name -> what it holds
    "id": "text",  # of the decision; a reward finds its decision by it
    "time": "time",  # of the decision
    "arms": "texts",  # (K,) ids of the arms on offer; null: their positions, or the catalogue of the log
    "K": "whole",  # number of arms on offer
    "arm_set": "text",  # digest of the features on offer (writer.digest)
    "features": "rows",  # (K, d) of the arms on offer; with disjoint slots (1, d), the context
    "arm": "whole",  # position of the arm shown among those on offer, from 0
    "propensity": "number",  # P(arm) at the moment of the decision; null where there is none
    "propensity_kind": "text",  # one of KINDS
    "propensity_se": "number",  # standard error; null where exact
    "floor": "number",  # share of uniform choices: each arm on offer had at least floor/K
    "z": "number",  # the scalar that was drawn, where the policy draws one
    "z_law": "text",  # the kind of law of z: "continuous" or "points"; null: not known
    "m": "numbers",  # (K,) means of the arms on offer, before the link
    "w": "numbers",  # (K,) widths of the arms on offer
    "probabilities": "numbers",  # (K,) of all arms on offer
    "policy": "text",  # policy and model, as configured
    "preset": "text",
    "version": "text",  # of dither
    "learnt": "whole",  # how much the policy had learnt: another number says that it has learnt; null: not known
    "reward": "number",  # by the rule of the log; null: none came
    "reward_time": "time",  # time of the latest reward that counts
    "rewards": "whole",  # number of rewards that were received and count
    "weight": "number",  # how many decisions the row stands for, where a log was thinned
    "was_erased": "flag",  # whether its data was erased: it is left out, whatever a missing reward counts
}
KINDS = ("exact", "monte_carlo", "estimated", "none")  # of propensities; the most exact comes first
USABLE = KINDS[:3]
BETWEEN = (631_152_000, 4_102_444_800)  # seconds since 1970 of 1990 and of 2100, where a number is read as a time
REQUIRED = ("arm", "reward", "propensity")
DECISION = tuple(name for name in COLUMNS if name not in ("reward", "reward_time", "rewards", "weight", "was_erased"))
RAW = ("raw_context", "raw_arms")  # JSON of what X was made of (`features.raw_records`), where a reader asked for it
EVENT = {  # columns of the file of rewards; each row is a reward that was received
    "decision": "whole",  # number of its decision in this folder
    "id": "text",
    "part": "text",  # which of several rewards of the decision; null for the only one
    "reward": "number",
    "time": "time",
    "conflict": "flag",  # whether the part had another value before: then this one is kept and never counts
}


def polars() -> Any:
    """polars, imported where it is used. From now on this process counts as a user of it."""
    global _user
    pl = usable_polars()
    _user = os.getpid()
    return pl


def usable_polars() -> Any:
    """polars, if this process can use it. After a fork it cannot: it would wait for threads that the fork lost."""
    if _user not in (None, os.getpid()):
        raise RuntimeError(
            f"a log was written or read by process {_user}, and this is a fork of it: the threads of polars do not "
            f"survive a fork. Fork before that, or start processes by multiprocessing.get_context('spawn')"
        )
    return errors.imported("polars", "polars", extra="log")


_user: int | None = None  # the process that has used polars here


def dtype(what: str) -> Any:
    """The polars type of a kind of column."""
    pl = polars()
    return {
        "text": pl.String,
        "time": pl.Datetime("us", "UTC"),
        "whole": pl.Int64,
        "number": pl.Float64,
        "flag": pl.Boolean,
        "texts": pl.List(pl.String),
        "numbers": pl.List(pl.Float64),
        "rows": pl.List(pl.List(pl.Float64)),
    }[what]


def dtypes(names: Any = COLUMNS) -> dict[str, Any]:
    """Name -> polars type, for columns of decisions or of events."""
    return {name: dtype((COLUMNS | EVENT)[name]) for name in names}


def checked(frame: Any, *, where: str, require: tuple[str, ...] = REQUIRED, names: dict[str, str] | None = None) -> Any:
    """The frame (eager or lazy) with its known columns in their types. names : our name of a column -> the user's.

    Raises ValueError for a missing column (naming it and those present) and for a column of the wrong type.
    """
    present = frame.collect_schema()
    missing = [name for name in require if name not in present]
    if missing:
        raise ValueError(
            f"{where} has no column {', '.join(map(repr, missing))}; it has {', '.join(map(repr, present)) or 'none'}: "
            f"name your columns with dither.log.from_columns(..., arm=, reward=, propensity=){separated(present)}"
        )
    casts = []
    for name, what in COLUMNS.items():
        have = present.get(name)
        if have is None or have == dtype(what):
            continue
        fits = _fits(have, what) or (what == "whole" and _whole(frame, name, have))
        odd = "" if fits and what == "number" else _odd(frame, name, have, what)
        kind = "text" if fits and have == polars().String else "numbers" if fits else have
        if not fits or odd:
            theirs = (names or {}).get(name, name)
            raise ValueError(
                f"column {name!r}{'' if theirs == name else f' (your {theirs!r})'} of {where} must hold "
                f"{_WORDS[what]}, got {kind}{odd}"
                + (": name it with dither.log.from_columns(..., arm=...)" if name == "arm" else "")
            )
        casts.append(_cast(name, have, what))
    return frame.with_columns(casts)


def separated(names: Any) -> str:
    """A hint for a CSV file whose fields are separated by another character than a comma; else ""."""
    for mark in ";\t|" if len(names) == 1 else "":
        if mark in next(iter(names)):
            read = f"polars.read_csv(path, separator={mark!r})"
            return f". Its fields look separated by {mark!r}: pass {read} in place of the path"
    return ""


_EPOCH = re.compile(r"[0-9]{9,10}")  # seconds since 1970 as text; ISO 8601 has no such text
_WORDS = {
    "text": "text",
    "time": "dates with times, or text in ISO 8601 (2026-01-31T12:00:00Z), or seconds (or milli-, micro-, "
    "nanoseconds) since 1970, from 1990 to 2100",
    "whole": "whole numbers",
    "number": "numbers",
    "texts": "lists of arm ids",
    "numbers": "lists of numbers",
    "rows": "lists of lists of numbers",
    "flag": "true or false",
}


def _fits(have: Any, what: str) -> bool:
    pl = polars()
    if have == pl.Null:
        return True
    inner = {"texts": "text", "numbers": "number", "rows": "numbers"}.get(what)
    if inner is not None:
        return isinstance(have, (pl.List, pl.Array)) and _fits(have.inner, inner)
    if what == "text":
        return have in (pl.String, pl.Categorical, pl.Enum) or have.is_integer()
    if what == "flag":
        return have == pl.Boolean or have.is_integer()
    if what == "time":
        calendar = have.is_temporal() and have != pl.Duration and have != pl.Time
        return have == pl.String or have.is_numeric() or calendar
    return have.is_numeric() or have == pl.Boolean if what == "number" else have.is_integer()


def _whole(frame: Any, name: str, have: Any) -> bool:
    """Whether a column of floats holds whole numbers, as pandas writes those of which some are missing."""
    column = polars().col(name).fill_nan(None)
    return have.is_float() and frame.lazy().select((column == column.round()).all()).collect().item()


def _cast(name: str, have: Any, what: str) -> Any:
    pl = polars()
    column = pl.col(name)
    if what == "time" and (have == pl.String or have.is_numeric()):
        return _moments(column) if have == pl.String else _since_1970(column)
    if what == "time" and have != pl.Null:
        zone = have.time_zone if have == pl.Datetime else None
        column = column.cast(pl.Datetime("us", zone))
        return column.dt.convert_time_zone("UTC") if zone else column.dt.replace_time_zone("UTC")
    column = column.fill_nan(None) if what == "whole" and have.is_float() else column
    return column.cast(dtype(what))


def _moments(column: Any) -> Any:
    """ISO 8601 texts as times; null for a text that is no time. A time without a zone is in UTC."""
    day = r"^(\d{4}-\d\d-\d\d)$"
    whole = column.str.replace(day, "${1}T00:00:00").str.replace(" ", "T", literal=True)
    zoned = whole.str.replace(r"Z$", "+00:00").str.replace(r"(T.*[+-]\d\d)(\d\d)$", "${1}:${2}")
    zoned = zoned.str.replace(r"(T.*[+-]\d\d)$", "${1}:00")
    zoned = zoned.str.replace(r"(T\d\d:\d\d)($|[+-])", "${1}:00${2}").str.replace(r"(T[\d:.]+)$", "${1}+00:00")
    return zoned.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_unit="us", strict=False).alias(
        column.meta.output_name()
    )


def _since_1970(column: Any) -> Any:
    """Numbers as times: seconds, or milli-, micro- or nanoseconds, since 1970; null outside `BETWEEN`.

    The four do not overlap there, so each number says itself what it is.
    """
    pl = polars()
    number = column.cast(pl.Float64, strict=False).fill_nan(None)
    micros = pl.lit(None, dtype=pl.Int64)
    for factor in (1, 10**3, 10**6, 10**9):  # parts of a second
        least, most = (year * factor for year in BETWEEN)
        exact = column.cast(pl.Int64, strict=False)  # a float64 does not have every nanosecond
        if factor > 10**6:
            value = exact // (factor // 10**6)
        else:
            value = ((number * (10**6 // factor)).round()).cast(pl.Int64, strict=False)
        micros = pl.when(number.is_between(least, most, closed="left")).then(value).otherwise(micros)
    return micros.cast(pl.Datetime("us", "UTC")).alias(column.meta.output_name())


def _odd(frame: Any, name: str, have: Any, what: str) -> str:
    """Words for the first value in a column that is not of the kind wanted, with its row; "" where there is none."""
    pl = polars()
    if what not in ("number", "whole", "time") or not (have == pl.String or have.is_numeric()):
        return ""
    if what == "time":
        read = _moments(pl.col(name)) if have == pl.String else _since_1970(pl.col(name))
    else:
        read = pl.col(name).cast(dtype(what), strict=False)
    wrong = frame.lazy().select(name, read.is_null().alias("wrong")).with_row_index("row")
    there = pl.col(name).is_not_null() & (pl.col(name).is_not_nan() if have.is_float() else True)
    first = wrong.filter(pl.col("wrong") & there).head(1).collect()
    return f", such as {first[name][0]!r} in row {first['row'][0]}" if first.height else ""


def moment(time: Any) -> datetime:
    """A datetime (without a zone: UTC), an ISO 8601 text or seconds since 1970; None: now."""
    if time is None:
        return datetime.now(UTC)
    try:
        if isinstance(time, datetime):
            at = time
        elif isinstance(time, str):
            at = datetime.fromtimestamp(int(time), UTC) if _EPOCH.fullmatch(time) else datetime.fromisoformat(time)
        else:
            at = datetime.fromtimestamp(float(time), UTC)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        raise ValueError(f"time must be a datetime, an ISO 8601 text or seconds since 1970, got {time!r}") from None


def lists(name: str, arrays: list[np.ndarray | None], what: str) -> Any:
    """A column of lists, one for each array; null for None.

    what : "numbers", of arrays (K,), or "rows", of arrays (K, d), all of one d
    """
    pl, full = polars(), [array for array in arrays if array is not None]
    joined = np.concatenate(full) if full else np.empty((0, 1) if what == "rows" else 0)
    values = pl.Series("values", joined).cast(dtype(what).inner)
    counts = [0 if array is None else len(array) for array in arrays]
    place = pl.Series("place", np.repeat(np.arange(len(arrays)), counts))
    grouped = pl.DataFrame([place, values]).group_by("place", maintain_order=True).agg("values")
    every = pl.DataFrame({"place": np.arange(len(arrays))}).join(grouped, on="place", how="left", maintain_order="left")
    return every["values"].alias(name)


def flat(column: Any) -> np.ndarray:
    """All numbers of a column of lists, one after the other; NaN for null."""
    full = column.filter(column.list.len() > 0)
    return full.explode().fill_null(np.nan).to_numpy() if len(full) else np.empty(0)


def ends(span: Range | None) -> list[float | None] | None:
    """A range as JSON has it: None for an end that is infinite. None: there are no limits."""
    return None if span is None else [end if math.isfinite(end) else None for end in span]


def of_ends(pair: Any) -> Range | None:
    """A range of what `ends` gives."""
    if pair is None or list(pair) == [None, None]:
        return None
    return (-math.inf if pair[0] is None else pair[0], math.inf if pair[1] is None else pair[1])


def hull(spans: Iterable[Range | None]) -> Range | None:
    """The least range in which all of these lie; None where one has no limits, or where there is none."""
    each = list(spans)
    if not each or None in each:
        return None
    both = [span for span in each if span is not None]
    joined = min(low for low, _ in both), max(high for _, high in both)
    return None if joined == (-math.inf, math.inf) else joined


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


def placed(column: Any, names: Sequence[str], columns: Sequence[str]) -> Any:
    """Lists of rows of features with these names, as rows with these columns. A column without a name is 0.

    Raises ValueError for rows that are not as wide as the names are many.
    """
    counts = column.list.len().fill_null(0).to_numpy().astype(np.int64)
    rows = column.filter(column.list.len() > 0).explode()
    odd = rows.filter(rows.list.len() != len(names))
    if len(odd):
        raise ValueError(
            f"rows of {len(odd[0])} features cannot have the {len(names)} names {some(names)}: beside rows with names, "
            "those without go by place. Log other features into a folder of their own"
        )
    place = {name: i for i, name in enumerate(columns)}
    values = np.zeros((len(rows), len(columns)))
    values[:, [place[name] for name in names]] = flat(rows).reshape(-1, len(names))
    parts = np.split(values, np.cumsum(counts)[:-1])
    return lists(
        column.name, [None if null else part for part, null in zip(parts, column.is_null(), strict=True)], "rows"
    )


def some(names: Sequence[str]) -> str:
    """The first names, in quotes, and how many more there are."""
    return ", ".join(map(repr, names[:5])) + f" and {len(names) - 5} more" * (len(names) > 5)

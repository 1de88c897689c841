"""Contexts and arms as users have them, turned into the values of each field.

    one record      a dict, a dataclass, a named tuple, a row of a database, a pandas row
    n records       a list or tuple of them, or a data frame (pandas, Polars, Arrow: through narwhals)

A field that the records do not have is not the same as a missing value: mostly it is a slip of the pen.
"""

import dataclasses
import numbers
import sys
from collections.abc import Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.features import values

ABSENT = ("error", "missing")
TAKEN = "a dict, a dataclass, a named tuple, a list of these, or a data frame"


class Table(NamedTuple):
    """n records by field."""

    fields: list[list[Any]]  # the values of each field, (n,) each
    n: int
    single: bool  # whether it was one record, and not a list


def table(given: Any, names: Sequence[str], *, what: str, absent: str) -> Table:
    """The values of these fields. what : how errors call a record, "context" or "arm".

    Raises TypeError for what is no record; ValueError for a field that is absent, unless absent is "missing".
    """
    if type(given) is dict:
        return Table(_of_records([given], names, [what], absent), 1, True)
    if type(given) is list and given and set(map(type, given)) == {dict}:
        return Table(_of_records(given, names, Numbered(what, len(given)), absent), len(given), False)
    given = listed(given)
    if (frame := _frame(given)) is not None:
        return _of_frame(frame, names, what, absent)
    if (single := named(given)) is not None:
        return Table(_of_records([single], names, [what], absent), 1, True)
    if not sequence(given):
        raise TypeError(f"{what} must be {TAKEN}; got {type(given).__name__}")
    called = Numbered(what, len(given))
    found = [record(one, called[i]) for i, one in enumerate(given)]
    return Table(_of_records(found, names, called, absent), len(found), False)


def listed(given: Any) -> Any:
    """A list of what a generator, or the keys or values of a dict, give; anything else as it is."""
    return list(given) if isinstance(given, (KeysView, ValuesView, Iterator)) else given


def column(given: Any) -> Any:
    """A list of the values of an array, or of a column of pandas, Polars or Arrow; anything else as `listed`."""
    for name in ("to_pylist", "to_list", "tolist"):
        if callable(method := getattr(given, name, None)):
            return method()
    return listed(given)


def sequence(given: Any) -> bool:
    """Whether it is a list of records, or of lists of records."""
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))


def several(given: Any) -> bool:
    """Whether it is n records and not one."""
    return _frame(given) is not None or (named(given) is None and sequence(given))


def plain(one: Any, names: Sequence[str], *, what: str, absent: str) -> dict[str, Any]:
    """One record as a dict that JSON can hold: texts, numbers, lists of texts, and None for missing values."""
    read = table(one, names, what=what, absent=absent)
    if not read.single:
        raise TypeError(f"{what} must be one record; got {read.n} of them")
    return {name: _json(value[0], f"{name!r} of {what}") for name, value in zip(names, read.fields, strict=True)}


def keyed(given: Any, field: str) -> list[tuple[Any, dict[str, Any]]]:
    """n records as (id, record), where a field of each has the id."""
    if (frame := _frame(given)) is not None:
        given = list(frame.iter_rows(named=True))
    if not sequence(given):
        raise TypeError(f"arms must be a dict id -> record, a list of records or a frame; got {type(given).__name__}")
    found = []
    for i, one in enumerate(given):
        fields = record(one, f"arm {i}")
        if field not in fields:
            raise _absent(f"arm {i}", field, list(fields))
        found.append((fields[field], fields))
    return found


def record(one: Any, called: str) -> dict[str, Any]:
    """One record as a dict. called : how the error calls it. Raises TypeError for what is no record."""
    found = named(one)
    if found is None:
        raise TypeError(f"{called} must be a dict, a dataclass or a named tuple; got {type(one).__name__}")
    return dict(found)


def _json(value: Any, where: str) -> Any:
    """A value as JSON has it, which encodes to the same. What no field can take is refused."""
    if values.missing(value):
        return None
    try:
        if isinstance(value, str):
            return values.text(value)
        if values.bag(value):
            return values.words(value)
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        found = values.number(value)
        return int(value) if isinstance(value, numbers.Integral) else found
    except values.Odd as reason:
        told = reason if values.real(value) else f"must be a text, a number or a list of texts; got {value!r}"
        raise ValueError(f"{where} {told}") from None


def _of_records(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], what: Sequence[str], absent: str
) -> list[list[Any]]:
    """The values by field. what : how an error calls each of the records."""
    try:
        return [[record[name] for record in records] for name in names]
    except KeyError:
        for record, called in zip(records, what, strict=True):
            for name in names:
                if name not in record and absent != "missing":
                    raise _absent(called, name, list(record)) from None
        return [[record.get(name) for record in records] for name in names]


def _absent(what: str, name: str, known: Sequence[Any]) -> ValueError:
    near = errors.nearest(name, [str(each) for each in known])
    like = f" (it has {near!r})" if near else ""
    return ValueError(
        f"{what} has no field {name!r}{like}: give None where the value is missing, or make Features with "
        "absent='missing'"
    )


def named(one: Any) -> Mapping[str, Any] | None:
    """A record by the names of its fields; None for what is no record."""
    if isinstance(one, Mapping):
        return dict(one)  # a copy: a defaultdict would grow when it is asked
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    if hasattr(one, "_asdict"):  # a named tuple
        return one._asdict()
    if hasattr(one, "_mapping"):  # a row of SQLAlchemy
        return dict(one._mapping)
    if hasattr(one, "keys") and hasattr(one, "__getitem__"):  # a row of sqlite3, a pandas Series
        return {name: one[name] for name in one.keys()}  # noqa: SIM118 - not every such row iterates over its keys
    return None


def _frame(given: Any) -> Any:
    """A data frame as narwhals has it; None for anything else."""
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):
        raise TypeError("a lazy frame has no rows yet: collect() it first")
    if type(given).__name__ == "RecordBatch":  # of Arrow
        given = sys.modules["pyarrow"].Table.from_batches([given])
    names = getattr(given, "column_names", None)  # of Arrow
    if names is None:
        names = getattr(given, "columns", None)
    if names is None or callable(names) or isinstance(given, Mapping):
        return None
    if twice := sorted({str(name) for name in names if list(names).count(name) > 1}):
        raise ValueError(f"the frame has two columns of the name {twice[0]!r}: leave one out")
    try:
        import narwhals
    except ImportError:
        raise errors.missing_extra("narwhals", extra="frames") from None
    return narwhals.from_native(given, eager_only=True)


def _of_frame(frame: Any, names: Sequence[str], what: str, absent: str) -> Table:
    fields, known = [], list(frame.columns)
    for name in names:
        if name in known:
            fields.append(frame[name].to_list())
        elif absent == "missing":
            fields.append([None] * len(frame))
        else:
            raise _absent(f"the frame of {what}s", name, known)
    return Table(fields, len(frame), False)


class Numbered(Sequence[str]):
    """How errors call n records: "arm 0", "arm 1", ..."""

    def __init__(self, what: str, n: int) -> None:
        self.what, self.n = what, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        if not -self.n <= i < self.n:
            raise IndexError(i)
        return f"{self.what} {i}"

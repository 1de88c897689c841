"""Contexts and arms as users have them, turned into the values of each field.

    one record      a dict, a dataclass, a named tuple, a row of a database, a pandas row
    n records       a list or tuple of them, or a data frame (pandas, Polars, Arrow: through narwhals)

A field that the records do not have is not the same as a missing value: mostly it is a slip of the pen.
"""

import dataclasses
import numbers
import sys
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors
from dither.features import slips, values

TAKEN = "a dict, a dataclass, a named tuple, a list of these, or a data frame"


class FieldValues(NamedTuple):
    """n records by field."""

    fields: list[list[Any]]  # the values of each field, (n,) each
    n: int
    single: bool  # whether it was one record, and not a list
    slips: Sequence[tuple[str, str]] = ()  # of each record: a field that it lacks, and what it has nearly so


def table(data: Any, names: Sequence[str], *, what: str, optional: Collection[str]) -> FieldValues:
    """The values of these fields.

    what : how errors call a record, "context" or "arm"
    optional : the fields that a record may lack, which are None then

    Raises TypeError for what is no record; ValueError for another field that is absent.
    """
    single = type(data) is dict
    if single:
        records = [data]
    elif type(data) is list and data and set(map(type, data)) == {dict}:
        records = data
    else:
        data = listed(data)
        if (frame := data_frame(data)) is not None:
            return _of_frame(frame, names, what, optional)
        one = named(data)
        single = one is not None
        if not single and not sequence(data):
            raise TypeError(f"{what} must be {TAKEN}; got {type(data).__name__}")
        records = [one] if single else [record(each, f"{what} {i}") for i, each in enumerate(data)]
    try:
        fields = [[record[name] for record in records] for name in names]
    except KeyError:
        for i, fields_of in enumerate(records):
            for name in names:
                if name not in fields_of and name not in optional:
                    raise _absent(what if single else f"{what} {i}", name, list(fields_of)) from None
        fields = [[record.get(name) for record in records] for name in names]
        near = [slip for fields_of in records for slip in slips.nearly(tuple(fields_of), tuple(names))]
        return FieldValues(fields, len(records), single, near)
    return FieldValues(fields, len(records), single)


def listed(data: Any) -> Any:
    """A list of what a generator, or the keys or values of a dict, give; anything else as it is."""
    return list(data) if isinstance(data, (KeysView, ValuesView, Iterator)) else data


def column(data: Any) -> Any:
    """A list of the values of an array, or of a column of pandas, Polars or Arrow; anything else as `listed`."""
    for name in ("to_pylist", "to_list", "tolist"):
        if callable(method := getattr(data, name, None)):
            return method()
    return listed(data)


def sequence(data: Any) -> bool:
    """Whether it is a list of records, or of lists of records."""
    return isinstance(data, Sequence) and not isinstance(data, (str, bytes))


def several(data: Any) -> bool:
    """Whether it is n records and not one."""
    return data_frame(data) is not None or (named(data) is None and sequence(data))


def plain(read: FieldValues, kinds: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """One record as a dict that JSON can hold: texts, numbers, lists of texts, and None for missing values.

    read : of `table`, for the fields of kinds; kinds : field -> its kind, which may take times
    """
    if not read.single:
        raise TypeError(f"{what} must be one record; got {read.n} of them")
    return {
        name: as_json(value[0], f"{name!r} of {what}", kind.takes_times)
        for (name, kind), value in zip(kinds.items(), read.fields, strict=True)
    }


def keyed(arms: Any, field: str) -> Iterable[tuple[Any, Any]]:
    """The ids and the records of arms: of a dict id -> record, or of n records of which a field has the id."""
    if isinstance(arms, Mapping):
        return arms.items()
    if (frame := data_frame(arms)) is not None:
        arms = list(frame.iter_rows(named=True))
    if not sequence(arms):
        raise TypeError(f"arms must be a dict id -> record, a list of records or a frame; got {type(arms).__name__}")
    records = [record(one, f"arm {i}") for i, one in enumerate(arms)]
    for i, fields in enumerate(records):
        if field not in fields:
            raise _absent(f"arm {i}", field, list(fields))
    return [(fields[field], fields) for fields in records]


def record(one: Any, called: str) -> dict[str, Any]:
    """One record as a dict. called : how the error calls it. Raises TypeError for what is no record."""
    fields = named(one)
    if fields is None:
        raise TypeError(f"{called} must be a dict, a dataclass or a named tuple; got {type(one).__name__}")
    return dict(fields)


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


def as_json(value: Any, where: str, times: bool) -> Any:
    """A value as JSON has it, which encodes to the same. What no field can take is refused.

    times : whether a time is a value, which becomes its text
    """
    if values.missing(value):
        return None
    if times and not isinstance(value, str) and (time := values.time(value)) is not None:
        return time.isoformat()
    try:
        if isinstance(value, str):
            return values.text(value)
        if values.bag(value):
            return values.texts(value)
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        x = values.number(value)
        return int(value) if isinstance(value, numbers.Integral) else x
    except values.Odd as reason:
        words = reason if values.real(value) else f"must be a text, a number or a list of texts; got {value!r}"
        raise ValueError(f"{where} {words}") from None


def _of_frame(frame: Any, names: Sequence[str], what: str, optional: Collection[str]) -> FieldValues:
    columns = list(frame.columns)
    for name in names:
        if name not in columns and name not in optional:
            raise _absent(f"the frame of {what}s", name, columns)
    n = len(frame)
    near = [*slips.nearly(tuple(columns), tuple(names))] * n
    return FieldValues([frame[name].to_list() if name in columns else [None] * n for name in names], n, False, near)


def _absent(what: str, name: str, names: Sequence[Any]) -> ValueError:
    near = errors.nearest(name, [str(each) for each in names])
    like = f" (it has {near!r})" if near else ""
    return ValueError(
        f"{what} has no field {name!r}{like}: give None where the value is missing, or make Features with "
        f"absent={{{name!r}: 'missing'}}, or with a value that stands for it"
    )


def data_frame(data: Any) -> Any:
    """A data frame as narwhals has it; None for anything else."""
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        raise TypeError("a lazy frame has no rows yet: collect() it first")
    if type(data).__name__ == "RecordBatch":  # of Arrow
        data = sys.modules["pyarrow"].Table.from_batches([data])
    names = getattr(data, "column_names", None)  # of Arrow
    if names is None:
        names = getattr(data, "columns", None)
    if names is None or callable(names) or isinstance(data, Mapping):
        return None
    if twice := sorted({str(name) for name in names if list(names).count(name) > 1}):
        raise ValueError(f"the frame has two columns of the name {twice[0]!r}: leave one out")
    return errors.imported("narwhals", "narwhals", extra="frames").from_native(data, eager_only=True)

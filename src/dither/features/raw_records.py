"""Contexts and arms as users have them, as compressed JSON; and back, so that Features make the same X of them.

    texts, whole numbers, True, False      as JSON has them
    other numbers                          as float64, which is what Features make of them
    None, NaN, NA, NaT                     null: each of them is a missing value
    lists, tuples, arrays, sets of texts   a list
    times, infinities, a dict with "~"     {"~kind": text}, since JSON has none of them

A record keeps all of its fields: those that no field was declared for may be declared later.
"""

import json
import math
import numbers
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import date, datetime, time
from typing import Any, NamedTuple

import numpy as np

from dither.features import records, values

MARK = "~"  # begins the only key of what stands for a value that JSON has not
LEVEL = 1  # of zlib: the quickest, and for records of a kilobyte as small as others to a tenth
_NAMES, _PLAIN = {str}, {str, int, float, bool, type(None)}
_READ: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime64": lambda parts: np.datetime64(*parts),
    "number": float,
    "dict": dict,
}


class RawRequest(NamedTuple):
    """What a request was made of, before any Features."""

    context: dict[str, Any] | None  # None: the Features have no fields of the context
    arms: Any = None  # records of the arms on offer, in order; or id -> record, beside a catalogue; None: it has them


def packed(request: RawRequest) -> bytes:
    """A request as bytes. Raises ValueError, naming the field, for what neither JSON nor a field can hold."""
    text = _plain(request) or json.dumps(_told(request, _record), separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), LEVEL)


def _told(request: RawRequest, as_json: Callable[[Mapping[str, Any], str], Any]) -> dict[str, Any]:
    """A request as JSON has it, where records become what JSON has by `as_json`."""
    context, arms = request
    told: dict[str, Any] = {} if context is None else {"context": as_json(context, "the context")}
    if isinstance(arms, Mapping):
        told["arms"] = _dict({id: as_json(one, f"arm {id!r}") for id, one in arms.items()})
    elif arms is not None:
        told["arms"] = [as_json(one, f"arm {i}") for i, one in enumerate(arms)]
    return told


def _plain(request: RawRequest) -> str | None:
    """The JSON of a request whose values are all as JSON has them; None: some are not. It is ten times as quick."""
    context, arms = request
    for one in (context or {}, *(arms.values() if isinstance(arms, Mapping) else arms or ())):
        if not (_PLAIN.issuperset(map(type, one.values())) and _NAMES.issuperset(map(type, one))):
            return None
    try:
        text = json.dumps(_told(request, lambda record, called: record), separators=(",", ":"), allow_nan=False)
    except ValueError:  # NaN, or infinity
        return None
    return None if f'"{MARK}' in text else text


def unpacked(data: bytes) -> RawRequest:
    """The request of which `packed` made bytes. Raises ValueError for other bytes."""
    try:
        told = json.loads(zlib.decompress(data), object_hook=_read)
        return RawRequest(told.get("context"), told.get("arms"))
    except (zlib.error, ValueError, TypeError, AttributeError, KeyError) as reason:
        raise ValueError(f"these {len(data)} bytes are no records, or damaged ones: {reason!r}") from None


def texts(data: bytes) -> tuple[str | None, str | None]:
    """The JSON of the context, and that of the arms; None: there are none."""
    told = json.loads(zlib.decompress(data))
    return tuple(json.dumps(told[name]) if name in told else None for name in RawRequest._fields)  # type: ignore[return-value]


def of_texts(context: str | None, arms: str | None) -> bytes | None:
    """The bytes of which `texts` gave these; None: there were none."""
    if context is None and arms is None:
        return None
    pairs = zip(RawRequest._fields, (context, arms), strict=True)
    told = {name: json.loads(one) for name, one in pairs if one is not None}
    return zlib.compress(json.dumps(told, separators=(",", ":"), allow_nan=False).encode(), LEVEL)


def fields(request: RawRequest) -> Iterator[tuple[str, Any]]:
    """Each field with its value, of the context and of all arms."""
    arms = request.arms or ()
    for one in (request.context or {}, *(arms.values() if isinstance(arms, Mapping) else arms)):
        yield from one.items()


def listed(data: Any) -> list[dict[str, Any]]:
    """n records with all of their fields; of one record a list of one. data : as for `Features.encode`"""
    if (frame := records.data_frame(data)) is not None:
        columns = {name: frame[name].to_list() for name in frame.columns}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    one = records.named(data)
    each = [one] if one is not None else data
    return [records.record(one, f"record {i}") for i, one in enumerate(each)]


def _record(record: Mapping[str, Any], called: str) -> dict[str, Any]:
    """A record as JSON has it. What is no text is no name of a field, so no Features can ever ask for it."""
    return _dict({name: _json(value, name, called) for name, value in record.items() if isinstance(name, str)})


def _dict(inner: dict[str, Any]) -> dict[str, Any]:
    return {f"{MARK}dict": list(inner.items())} if any(key.startswith(MARK) for key in inner) else inner


def _json(value: Any, name: str, called: str) -> Any:
    if type(value) is str or type(value) is bool or type(value) is int:
        return value
    if values.missing(value):
        return None
    if isinstance(value, str):
        return values.text(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if values.real(value):
        return _number(value)
    if isinstance(value, (datetime, date, time)):
        kind: Any = next(one for one in (datetime, date, time) if isinstance(value, one))
        return {MARK + kind.__name__: kind.isoformat(value)}  # of Python's, as those of others have more digits
    if isinstance(value, np.datetime64):
        return {f"{MARK}datetime64": [str(value), np.datetime_data(value.dtype)[0]]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return _dict({key: _json(one, name, called) for key, one in value.items()})
    if isinstance(value, Set) and all(isinstance(one, str) for one in value):
        return values.texts(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_json(one, name, called) for one in value]
    raise ValueError(
        f"{name!r} of {called} is {value!r}, which cannot be kept: store='records' keeps texts, numbers, times, lists "
        "and dicts of these, and None. Leave the field out, or write it as one of them"
    )


def _number(value: Any) -> Any:
    if isinstance(value, numbers.Integral):
        return int(value)
    try:
        x = float(value)
    except OverflowError:
        x = math.inf if value > 0 else -math.inf
    return x if math.isfinite(x) else {f"{MARK}number": repr(x)}


def _read(read: dict[str, Any]) -> Any:
    """A value of a dict as JSON has it."""
    if len(read) == 1:
        ((key, value),) = read.items()
        if key.startswith(MARK):
            return _READ[key[len(MARK) :]](value)
    return read

"""What a request was made of, as bytes and back. The oracle: X of what is read is X of what was written."""

import dataclasses
import decimal
import enum
import math
import zlib
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import dither
from dither.features import Category, Hashed, Hour, Numeric, Text, Weekday, Words, raw_records
from dither.features.raw_records import RawRequest

KINDS = {
    "number": Numeric(mean=1, scale=3, missing="column"),
    "category": Category(["a", "1", "True", "é", "0.5"], missing="column", unknown="column"),
    "hashed": Hashed(width=8),
    "text": Text(width=8),
    "words": Words(vocabulary=["a", "b"]),
    "hour": Hour(),
    "weekday": Weekday(),
}


class Colour(enum.StrEnum):
    RED = "a"


class Size(enum.IntEnum):
    ONE = 1


def encoded(kind, value):
    """The factors of a value; None where the kind does not take it."""
    f = dither.Features(arm={"x": kind})
    try:
        return f.of_arm({"x": value})
    except ValueError:
        return None


numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.decimals(),
    st.fractions(),
    st.floats(width=32).map(np.float32),
    st.floats(width=16).map(np.float16),
    st.integers(-(2**62), 2**62).map(np.int64),
    st.booleans().map(np.bool_),
)
words = st.one_of(st.text(), st.sampled_from(["a", "1", "é", "é", "\ud800", Colour.RED, np.str_("a")]))
gone = st.sampled_from(
    [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), decimal.Decimal("sNaN")]
)
times = st.one_of(
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])),
    st.dates(),
    st.times(),
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(pd.Timestamp),
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(np.datetime64),
)
bags = st.one_of(
    st.lists(words),
    st.lists(words).map(tuple),
    st.sets(words),
    st.lists(words.filter(lambda one: type(one) is str), min_size=1).map(np.array),
)
any_value = st.one_of(numbers, words, gone, times, bags, st.just(Size.ONE))


@given(any_value)
def test_what_is_read_is_encoded_as_what_was_written(value):
    request = RawRequest({"x": value}, [{"x": value}])
    read = raw_records.unpacked(raw_records.packed(request))
    for back in (read.context["x"], read.arms[0]["x"]):
        for kind in KINDS.values():
            expected = encoded(kind, value)
            if expected is not None:
                assert_array_equal(encoded(kind, back), expected)
        if isinstance(value, (date, time)) and value is not pd.NaT:
            assert back == value
            assert type(back) in (datetime, date, time)
            assert getattr(back, "utcoffset", lambda: None)() == getattr(value, "utcoffset", lambda: None)()
    # seen red: a bool of NumPy as 0 or 1


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
names = st.one_of(st.text(), st.sampled_from(["~datetime", "~dict", "~number", "~"]))
nested = st.recursive(leaves, lambda one: st.lists(one) | st.dictionaries(names, one, max_size=3), max_leaves=6)
records = st.dictionaries(names, nested, max_size=3)


@given(st.none() | records, st.none() | st.lists(records, max_size=3) | st.dictionaries(names, records, max_size=2))
def test_what_json_has_comes_back_as_it_was(context, arms):
    data = raw_records.packed(RawRequest(context, arms))
    assert raw_records.unpacked(data) == RawRequest(context, arms)
    texts = raw_records.texts(data)
    assert (texts[0] is None, texts[1] is None) == (context is None, arms is None)
    again = raw_records.of_texts(*texts)
    assert again == (None if texts == (None, None) else data)
    # seen red: a key with the mark that is not escaped


def test_a_record_keeps_the_fields_that_nobody_declared():
    Row = namedtuple("Row", "a b")

    @dataclasses.dataclass
    class Person:
        name: str
        age: int

    assert raw_records.listed(Row(1, 2)) == [{"a": 1, "b": 2}]
    assert raw_records.listed([Person("u", 3), {"x": None}]) == [{"name": "u", "age": 3}, {"x": None}]
    for frame in (pd.DataFrame, pl.DataFrame):
        assert raw_records.listed(frame({"a": [1, 2], "b": ["x", "y"]})) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    read = raw_records.unpacked(raw_records.packed(RawRequest({"a": 1, 7: "of no Features", "b": (1, {"c": {"d"}})})))
    assert read == RawRequest({"a": 1, "b": [1, {"c": ["d"]}]})
    request = RawRequest({"a": 1}, {"x": {"b": 2}})
    assert list(raw_records.fields(request)) == [("a", 1), ("b", 2)]
    assert list(raw_records.fields(RawRequest(None, [{"b": 2}]))) == [("b", 2)]


@pytest.mark.parametrize("value", [object(), 1j, b"bytes", {1: "a"}, {1, 2}, timedelta(1)])
def test_a_value_that_cannot_be_kept_is_refused_by_its_name(value):
    with pytest.raises(ValueError, match=r"'who' of the context is .*cannot be kept: store='records' keeps texts"):
        raw_records.packed(RawRequest({"who": [value]}))
    with pytest.raises(ValueError, match=r"'who' of arm 'a1' is "):
        raw_records.packed(RawRequest(None, {"a1": {"who": value}}))


@pytest.mark.parametrize(
    "data", [b"", b"no", zlib.compress(b"{"), zlib.compress(b"[]"), zlib.compress(b'{"arms":{"~odd":1}}')]
)
def test_damaged_bytes_are_refused(data):
    with pytest.raises(ValueError, match="are no records, or damaged ones"):
        raw_records.unpacked(data)


def test_numbers_that_no_float_has():
    for value in (Fraction(10**400, 1), decimal.Decimal("-Infinity"), np.float64("inf")):
        back = raw_records.unpacked(raw_records.packed(RawRequest({"x": value}))).context["x"]
        assert back == (math.inf if value > 0 else -math.inf)

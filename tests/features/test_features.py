"""`dither.Features`: fields by name become columns. The oracle is written with dicts and loops."""

import dataclasses
import datetime
import decimal
import enum
import hashlib
import itertools
import json
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from collections import defaultdict, namedtuple
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither.features import Category, Hashed, Hour, MisspeltWarning, Numeric, Standard, Text, Weekday, Words, slips

CONTEXTS = [{"age": 20, "country": "FR"}, {"age": 40, "country": "DE"}, {"age": 60, "country": "FR"}]
ARMS = [
    {"price": 1.5, "topic": "sport", "title": "The cat, the hat"},
    {"price": 3.0, "topic": "news", "title": "Dogs"},
    {"price": 2.5, "topic": "sport", "title": ""},
]


def features(**settings):
    fields = dict(
        context={"age": Numeric(mean=40, scale=10), "country": ["DE", "FR"]},
        arm={"price": Numeric(mean=2, scale=0.5), "topic": ["news", "sport"], "title": Text(width=5)},
        cross=[("country", "topic"), ("age", "price")],
    )
    return dither.Features(**fields | settings)


# --- the oracle: one cell at a time, by the words of the documents, with names for columns


def hashed(text, width):
    n = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    return n // 2 % width, -1 if n % 2 else 1


def gone(value):
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def text_of(value):
    if isinstance(value, bool):
        return "True" if value else "False"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def bag_of(value):
    words = re.findall(r"\w+", value.casefold()) if isinstance(value, str) else value
    return {word: list(words).count(word) for word in words}


def place_of(kind, value):
    """Where a value is on the circle, in exact fractions of its unit."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        return Fraction(value)
    if isinstance(kind, Weekday):
        return (value.toordinal() - 1) % 7  # the first of January of the year 1 was a Monday
    since = value - value.replace(hour=0, minute=0, second=0, microsecond=0)
    return Fraction(since // datetime.timedelta(microseconds=1), 3_600_000_000)


def cells(field, kind, value):
    """{column: number} of one value of a field, without the zeros."""
    found = {}
    if gone(value):
        return {f"{field} (missing)": 1.0} if kind.missing == "column" else {}
    if isinstance(kind, Numeric):
        found[field] = (float(value) - kind.mean) / kind.scale
    if isinstance(kind, Standard):
        found[field] = max(-kind.clip, min(kind.clip, found[field]))
    if isinstance(kind, Category):
        if text_of(value) in kind.values:
            found[f"{field}={text_of(value).replace('*', chr(92) + '*')}"] = 1.0
        elif kind.unknown == "column":
            found[f"{field} (unknown)"] = 1.0
    if isinstance(kind, Hashed):
        found[f"{field}#{hashed(text_of(value), kind.width)[0]}"] = 1.0
    if isinstance(kind, Text):
        for word, n in bag_of(value).items():
            column, sign = hashed(word, kind.width)
            found[f"{field}#{column}"] = found.get(f"{field}#{column}", 0.0) + sign * n
    if isinstance(kind, Words):
        for word, n in bag_of(value).items():
            if word in kind.vocabulary:
                found[f"{field}^{word}"] = float(n)
        if bag_of(value) and not found and kind.unknown == "column":
            return {f"{field} (unknown)": 1.0}
    if isinstance(kind, (Hour, Weekday)):
        turn = place_of(kind, value) * 2 * math.pi / kind.period
        found = {f"{field} (sin)": round(math.sin(turn), 15), f"{field} (cos)": round(math.cos(turn), 15)}
    if isinstance(kind, (Text, Words)):
        length = math.sqrt(sum(number**2 for number in found.values()))
        found = {column: number / length for column, number in found.items() if number}
    return found


def row(f, context, arm, slot=None):
    """{column: number} of one arm for one context."""
    kinds = {**f.context, **f.arm}
    of_context = {field: cells(field, kind, context[field]) for field, kind in f.context.items()}
    of_arm = {field: cells(field, kind, arm[field]) for field, kind in f.arm.items()}
    both = of_context | of_arm
    found = {"intercept": 1.0} if f.intercept else {}
    for own in both.values():
        found |= own
    for cross in f.cross:
        order = [name for name in cross if name in f.context] + [name for name in cross if name in f.arm]
        for parts in itertools.product(*(both[name].items() for name in order)):
            found["*".join(column for column, _ in parts)] = math.prod(number for _, number in parts)
    if slot is not None:
        own = {"intercept": 1.0} if f.intercept else {}
        for part in of_context.values():
            own |= part
        found |= {f"slot {slot}*{column}": number for column, number in own.items()}
    assert set(kinds) == set(both)
    return found


def slow(f, context, arms, slots=None):
    """X of one request."""
    rows = [row(f, context, arm, None if slots is None else slots[k]) for k, arm in enumerate(arms)]
    assert set().union(*rows) <= set(f.columns)
    return np.array([[one.get(column, 0.0) for column in f.columns] for one in rows])


# --- exact values


def test_an_example_by_hand():
    f = features()
    X = f.encode({"age": 50, "country": "FR"}, ARMS)
    names = ["intercept", "age", "country=DE", "country=FR", "price", "topic=news", "topic=sport"]
    names += [f"title#{i}" for i in range(5)]
    names += ["country=DE*topic=news", "country=DE*topic=sport", "country=FR*topic=news", "country=FR*topic=sport"]
    assert f.columns == (*names, "age*price")
    assert f.dim == len(f.columns) == 17
    main = [[1, 1, 0, 1, -1, 0, 1], [1, 1, 0, 1, 2, 1, 0], [1, 1, 0, 1, 1, 0, 1]]
    assert_array_equal(X[:, :7], main)
    assert_array_equal(X[:, 12:], [[0, 0, 0, 1, -1], [0, 0, 1, 0, 2], [0, 0, 0, 1, 1]])
    assert_allclose(np.linalg.norm(X[:, 7:12], axis=1), [1, 1, 0])
    assert_array_equal(X, slow(f, {"age": 50, "country": "FR"}, ARMS))
    assert X.flags.c_contiguous
    # seen red: the columns of a cross in the other order; the scale left out


def test_hashed_values_are_pinned():
    """These numbers are the format: bandits that learnt by them would be wrong under others."""
    words = ["", "FR", "a", "Zürich", "日本", "17", "True", "x" * 1000]
    wide = dither.Features(arm={"id": Hashed(width=1000)}, intercept=False)
    X = wide.encode(None, [{"id": word} for word in words])
    assert X.argmax(axis=1).tolist() == [378, 430, 464, 184, 580, 128, 934, 805]  # of b2sum -l 64, by hand
    assert X.sum() == len(words)
    text = dither.Features(arm={"t": Text(width=4)}, intercept=False)
    X = text.encode(None, [{"t": "the cat, the HAT"}, {"t": ["the", "cat", "The"]}, {"t": "日本 Zürich"}])
    assert X[0].tolist() == [0, -1 / 6**0.5, -1 / 6**0.5, 2 / 6**0.5]
    assert X[1].tolist() == [0, -1 / 5**0.5, 0, 2 / 5**0.5]
    assert X[2].tolist() == [1 / 2**0.5, 0, 0, -1 / 2**0.5]
    assert features().fingerprint == "7d0b6e842eb476d0"
    topic, title = Category(["news", "sport"], version=1), Text(width=5, version=1)
    before = features(
        context={"age": Numeric(mean=40, scale=10), "country": Category(["DE", "FR"], version=1)},
        arm={"price": Numeric(mean=2, scale=0.5), "topic": topic, "title": title},
    )
    assert before.fingerprint == "e4a56bbf46b2c14e"
    # seen red: big endian; the sign from another bit


def test_values_that_are_one_category_and_values_that_are_not():
    f = dither.Features(arm={"c": ["3", "True", "1", "2.5", "", "-0"]}, intercept=False)
    same = [3, 3.0, "3", np.int64(3), np.float32(3), True, np.True_, "True", 1, 1.0, "1", 2.5, "", "-0"]
    columns = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5]
    X = f.encode(None, [{"c": value} for value in same])
    assert X.argmax(axis=1).tolist() == columns  # seen red: True taken for 1, which Python's dict does
    assert X.sum() == len(same)
    assert not f.unknown


class Topic(str, enum.Enum):  # noqa: UP042  a text whose `str` is another text
    NEWS = "news"
    SPORT = "sport"


def test_texts_of_other_classes_are_the_texts_that_they_are():
    kinds = {"a": ["news", "sport"], "b": Hashed(10_000), "c": Text(64), "d": Words(["news", "sport"])}
    plain = {"a": "sport", "b": "sport", "c": ["sport", "news"], "d": ["sport"]}
    other = {"a": Topic.SPORT, "b": Topic.SPORT, "c": [Topic.SPORT, Topic.NEWS], "d": [Topic.SPORT]}
    X = dither.Features(arm=kinds).of_arm(other)  # nothing is remembered yet
    assert_array_equal(X, dither.Features(arm=kinds).of_arm(plain))
    assert Category(list(Topic)).values == ("news", "sport")
    shop = dither.Catalogue(dither.Features(arm=kinds), {Topic.NEWS: other})
    assert shop.ids == ("news",)
    assert shop.records["news"] == plain
    assert type(shop.ids[0]) is type(shop.records["news"]["a"]) is str
    # seen red: `str(value)`, which is 'Topic.SPORT'


@pytest.mark.parametrize("gone", [np.datetime64("NaT"), np.timedelta64("NaT"), decimal.Decimal("NaN")])
def test_what_is_missing_in_numpy_and_decimal(gone):
    f = dither.Features(arm={"a": Numeric(0, 1, missing="column"), "b": Category(["x"], missing="column")})
    assert_array_equal(f.of_arm({"a": gone, "b": gone}), [1, 0, 1, 0, 1])
    assert f.missing == {"a": 1, "b": 1}
    # seen red: "must be finite; got nan", and "must be a text"


def test_a_span_of_time_and_an_array_are_no_values():
    f = dither.Features(arm={"a": Numeric(0, 1), "b": Hashed(4), "c": Text(4)})
    known = {"a": 1, "b": "x", "c": "y"}
    for field, value in (("a", np.timedelta64(3, "D")), ("b", np.timedelta64(3, "D")), ("c", np.array("a b"))):
        with pytest.raises(ValueError, match=f"'{field}' of arm 0 must be a"):
            f.of_arms([known | {field: value}])
    with pytest.raises(ValueError, match="write a time as a text"):
        f.of_arms([known | {"b": pd.Timestamp("2026-01-01")}])
    # seen red: errors of `float` and of the iteration over an array


@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, pd.Categorical, pl.Series, pa.array, lambda x: dict.fromkeys(x).keys()]
)
def test_values_are_a_column_of_any_library(make):
    assert dither.Features(arm={"a": make(["x", "y"])}).columns == ("intercept", "a=x", "a=y")
    assert Words(make(["x", "y"])).vocabulary == ("x", "y")
    # seen red: Polars, keys of a dict


def test_columns_for_what_is_missing_and_for_what_is_unknown():
    both = dict(unknown="column", missing="column")
    arm = {"c": Category(["x"], **both), "w": Words(["x"], **both), "h": Hashed(1, missing="column")}
    f = dither.Features(arm=arm, intercept=False)
    names = ["c=x", "c (unknown)", "c (missing)", "w^x", "w (unknown)", "w (missing)", "h#0", "h (missing)"]
    assert list(f.columns) == names
    X = f.encode(None, [{"c": v, "w": v, "h": v} for v in ("x", "y", None)])
    assert_array_equal(X, [[1, 0, 0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 1]])
    # seen red: (missing) of Category where (unknown) is


def test_numbers_that_are_numbers():
    f = dither.Features(arm={"x": Numeric(mean=1, scale=2)}, intercept=False)
    taken = [3, 3.0, np.float32(3), np.int8(3), decimal.Decimal("3"), Fraction(3), True, False]
    assert_array_equal(f.encode(None, [{"x": x} for x in taken])[:, 0], [1] * 6 + [0, -0.5])


def test_hybrid_and_disjoint_by_hand():
    f = dither.Features(
        context={"age": Numeric(mean=0, scale=1)}, arm={"new": ["no", "yes"]}, cross=(), form="hybrid", slots=3
    )
    X = f.encode({"age": 7}, [{"new": "yes"}, {"new": "no"}], slots=[2, 0])
    assert f.columns[4:] == tuple(f"slot {s}*{name}" for s in range(3) for name in ("intercept", "age"))
    assert_array_equal(X, [[1, 7, 0, 1, 0, 0, 0, 0, 1, 7], [1, 7, 1, 0, 1, 7, 0, 0, 0, 0]])
    g = dither.Features(context={"age": Numeric(mean=0, scale=1), "c": ["a"]}, form="disjoint", cross=[("age", "c")])
    assert g.columns == ("intercept", "age", "c=a", "age*c=a")
    assert_array_equal(g.encode({"age": 7, "c": "a"}), [1, 7, 1, 7])
    assert_array_equal(g.encode([{"age": 7, "c": "b"}]), [[1, 7, 0, 0]])
    # seen red: a block in the slot of the arm's place


# --- by properties

names = st.sampled_from(["a", "b", "c d", "é"])
values = {
    Numeric: st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-1000, 1000), st.booleans(), st.just(math.nan)),
    Standard: st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-100, 100), st.booleans(), st.just(math.nan)),
    Category: st.sampled_from(["x", "y", "z*", "w", None, 1, 1.0, True, "1", math.nan]),
    Hashed: st.one_of(st.none(), st.text(max_size=3), st.integers(-5, 5), st.booleans()),
    Text: st.one_of(st.none(), st.text(alphabet="aB é", max_size=6), st.lists(st.sampled_from(["a", "A b", "é"]))),
    Words: st.one_of(st.none(), st.text(alphabet="aB é", max_size=6), st.lists(st.sampled_from(["a", "b", "q"]))),
}
quarters = st.datetimes().map(lambda time: time.replace(minute=15 * (time.minute // 15), second=0, microsecond=0))
moments = st.one_of(quarters, quarters.map(datetime.datetime.isoformat))  # hours that floats have to the bit
values[Hour] = st.one_of(st.none(), st.floats(0, 23.99), st.integers(0, 23), moments)
values[Weekday] = st.one_of(st.none(), st.integers(0, 6), moments)
rules = st.sampled_from(["zero", "column"])
kinds = st.one_of(
    st.builds(Numeric, mean=st.floats(-10, 10), scale=st.floats(0.1, 10), missing=rules),
    st.builds(Standard, mean=st.floats(-10, 10), scale=st.floats(0.1, 10), missing=rules, clip=st.floats(0.1, 10)),
    st.builds(Category, values=st.just(("x", "z*", "1", "True")), unknown=rules, missing=rules),
    st.builds(Hashed, width=st.integers(1, 4), missing=rules),
    st.builds(Text, width=st.integers(1, 4), missing=rules),
    st.builds(Words, vocabulary=st.just(("a", "b", "é")), unknown=rules, missing=rules),
    st.builds(Hour, missing=rules),
    st.builds(Weekday, missing=rules, zone=st.sampled_from([None, "Europe/Vienna"])),
)


@st.composite
def requests(draw, form=None):
    """Features, B contexts and K arms for them, and slots."""
    of = [f"c{i}" for i in range(draw(st.integers(0, 3)))]
    own = [f"a{i}" for i in range(draw(st.integers(1, 3)))]
    context, arm = {name: draw(kinds) for name in of}, {name: draw(kinds) for name in own}
    pairs = list(itertools.combinations(of + own, 2)) + list(itertools.combinations(of + own, 3))
    cross = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True)) if pairs else []
    form = form or draw(st.sampled_from(["shared", "hybrid"]))
    slots = draw(st.integers(1, 3)) if form == "hybrid" else None
    f = dither.Features(context=context, arm=arm, cross=cross, intercept=draw(st.booleans()), form=form, slots=slots)
    one = st.fixed_dictionaries({name: values[type(kind)] for name, kind in context.items()})
    each = st.fixed_dictionaries({name: values[type(kind)] for name, kind in arm.items()})
    contexts = draw(st.lists(one, min_size=1, max_size=3))
    arms = draw(st.lists(each, min_size=1, max_size=4))
    at = draw(st.lists(st.integers(0, slots - 1), min_size=len(arms), max_size=len(arms))) if slots else None
    return f, contexts, arms, at


pytestmark = pytest.mark.filterwarnings("ignore:all arms of the request")


@given(requests())
def test_what_is_encoded_is_what_the_words_say(case):
    f, contexts, arms, slots = case
    for context in contexts:
        assert_allclose(f.encode(context, arms, slots=slots), slow(f, context, arms, slots), rtol=1e-15, atol=0)
    # seen red: products of three fields without the last; bags not of length 1; no column for what is missing


@given(requests(), st.randoms())
def test_one_by_one_is_the_batch_and_arms_change_places(case, random):
    f, contexts, arms, slots = case
    X = f.encode(contexts, arms, slots=slots)
    assert X.shape == (len(contexts), len(arms), f.dim)
    for b, context in enumerate(contexts):
        assert f.encode(context, arms, slots=slots).tobytes() == X[b].tobytes()
        for k, arm in enumerate(arms):
            assert f.encode(context, [arm], slots=slots and [slots[k]]).tobytes() == X[b, k : k + 1].tobytes()
    each = f.encode(contexts, [arms] * len(contexts), slots=slots and [slots] * len(contexts))
    assert each.tobytes() == X.tobytes()
    order = list(range(len(arms)))
    random.shuffle(order)
    moved = f.encode(contexts, [arms[k] for k in order], slots=slots and [slots[k] for k in order])
    assert moved.tobytes() == np.ascontiguousarray(X[:, order]).tobytes()
    # seen red: a sum that begins where the row before it ended


@given(requests())
def test_what_is_saved_encodes_to_the_same_bytes(case):
    f, contexts, arms, slots = case
    data = f.to_bytes()
    for again in (dither.Features.from_bytes(data), pickle.loads(pickle.dumps(f))):
        assert again == f
        assert hash(again) == hash(f)
        assert again.to_bytes() == data
        assert (again.fingerprint, again.columns) == (f.fingerprint, f.columns)
        assert again.encode(contexts, arms, slots=slots).tobytes() == f.encode(contexts, arms, slots=slots).tobytes()


@given(requests(form="shared"))
def test_an_unknown_category_is_counted_and_changes_nothing_else(case):
    f, contexts, arms, _ = case
    field = next((name for name, kind in f.arm.items() if isinstance(kind, Category)), None)
    if field is None:
        return
    known = [arm | {field: "x"} for arm in arms]
    X = f.encode(contexts[0], known)
    before = dict(f.unknown)
    Y = f.encode(contexts[0], [known[0] | {field: "never seen"}, *known[1:]])
    more = {name: n - before.get(name, 0) for name, n in f.unknown.items()}
    again = {name: n for name, n in before.items() if name != field}
    assert more[field] == 1
    assert again.keys() <= f.unknown.keys()
    others = [j for j, name in enumerate(f.columns) if not re.search(rf"(^|\*){field}(=| \()", name)]
    assert_array_equal(X[:, others], Y[:, others])
    assert_array_equal(X[1:], Y[1:])
    assert not any(Y[0, j] for j, name in enumerate(f.columns) if name.startswith(f"{field}="))


gone_or_odd = [np.nan, pd.NA, pd.NaT, object, np.datetime64("NaT"), np.float32(np.inf), 10**5000, 1e308, 5e-324]
written = [np.str_("é"), np.int64(2**62), np.bool_(True), -0.0, "\ud800", "a*b\\", np.array(["a"]), np.array([1.0])]
odd = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.complex_numbers()),
    *(
        st.decimals(),
        st.fractions(),
        st.dates(),
        st.times(),
        st.lists(st.text(max_size=2)),
        st.sets(st.text(max_size=2)),
    ),
    *(st.lists(st.none()), st.dictionaries(st.text(), st.none()), st.sampled_from([*gone_or_odd, *written])),
)


@given(st.lists(kinds, min_size=1, max_size=3), st.lists(st.lists(odd, min_size=3, max_size=3), min_size=1, max_size=3))
def test_any_value_is_finite_or_refused_by_name(fields, rows):
    f = dither.Features(arm={f"a{i}": kind for i, kind in enumerate(fields)})
    arms = [{f"a{i}": value for i, value in enumerate(row)} for row in rows]
    X = refused = None
    try:
        X = f.encode(None, arms)
    except ValueError as error:
        refused = str(error)
    if X is None:
        assert re.search(r"^'a[012]' of arm [012] ", refused)
        assert (f.missing, f.unknown) == ({}, {})
        return
    assert np.isfinite(X).all()
    shop = dither.Catalogue(f, dict(enumerate(arms)))
    assert dither.Catalogue.from_bytes(shop.to_bytes()).encode(None).tobytes() == X.tobytes()
    # seen red: X of a number that its JSON rounds


def test_names_of_columns_are_those_of_other_processes():
    code = """
import sys, dither
from dither.features import *
f = dither.Features(context={"c": Hashed(8), "g": ["x", "y"]}, arm={"t": Text(6), "id": "hashed"}, cross="all")
X = f.encode([{"c": "é", "g": "x"}, {"c": 3, "g": None}], [{"t": "a b a", "id": "u7"}, {"t": {"z", "y", "x"}, "id": 7}])
sys.stdout.buffer.write(f.to_bytes() + repr(f.columns).encode() + X.tobytes())
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = {
        subprocess.run([sys.executable, "-c", code], env=path | seed, capture_output=True, check=True).stdout
        for seed in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"}, {})
    }
    assert len(found) == 1  # seen red: `hash` of Python
    assert len(found.pop()) > 1000


# --- the shapes in which users have contexts and arms


@dataclasses.dataclass
class User:
    age: float
    country: str
    name: str = "not a feature"


Row = namedtuple("Row", ["country", "age"])


class Keyed:
    """A row of sqlite3: keys and items."""

    def keys(self):
        return ["age", "country"]

    def __getitem__(self, name):
        return {"age": 20, "country": "FR"}[name]


class Mapped:
    """A row of SQLAlchemy."""

    def __init__(self):
        self._mapping = {"age": 20, "country": "FR"}


def test_records_of_all_kinds_are_one():
    f = features()
    X = f.encode(CONTEXTS[0], ARMS)
    grown = defaultdict(int, CONTEXTS[0])
    series = pd.Series(CONTEXTS[0])
    for one in (User(20, "FR"), Row("FR", 20), Keyed(), Mapped(), grown, series):
        assert f.encode(one, ARMS).tobytes() == X.tobytes()
        assert f.encode([one], ARMS).tobytes() == X.tobytes()
        assert f.encode([one], ARMS).ndim == 3
    grown = defaultdict(int, country="FR")
    with pytest.raises(ValueError, match="has no field 'age'"):
        f.encode(grown, ARMS)
    assert set(grown) == {"country"}  # seen red: the user's dict, which grows when it is asked
    assert f.encode((CONTEXTS[0], CONTEXTS[1]), tuple(ARMS)).shape == (2, 3, f.dim)
    by_id = dict(enumerate(ARMS))
    assert f.encode(CONTEXTS[0], by_id.values()).tobytes() == X.tobytes()
    assert f.encode(CONTEXTS[0], (arm for arm in ARMS)).tobytes() == X.tobytes()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=["pandas", "polars", "arrow"])
def test_frames_are_lists_of_records(frame):
    f = features()
    contexts = [*CONTEXTS, {"age": None, "country": None}]
    X = f.encode(contexts, ARMS)
    shuffled = [dict(reversed(arm.items())) | {"more": 1} for arm in ARMS]
    assert f.encode(frame(contexts), frame(shuffled)).tobytes() == X.tobytes()
    assert f.missing == {"age": 2, "country": 2}
    assert f.encode(frame(contexts[:1]), ARMS).shape == (1, 3, f.dim)  # a batch of one is a batch
    each = f.encode(contexts[:2], [frame(ARMS), frame(ARMS[::-1])])
    assert_array_equal(each, [X[0], X[1][::-1]])
    with pytest.raises(ValueError, match=r"the frame of contexts has no field 'country' \(it has 'contry'\)"):
        f.encode(frame([{"age": 1, "contry": "FR"}]), ARMS)


def test_frames_that_cannot_be_read_say_why():
    f = features()
    with pytest.raises(TypeError, match=r"a lazy frame has no rows yet: collect\(\) it first"):
        f.encode(pl.LazyFrame(CONTEXTS), ARMS)
    twice = pd.DataFrame([[1, 2, "FR"]], columns=["age", "age", "country"])
    with pytest.raises(ValueError, match="the frame has two columns of the name 'age': leave one out"):
        f.encode(twice, ARMS)
    batch = pa.RecordBatch.from_pylist(CONTEXTS)
    assert f.encode(batch, ARMS).tobytes() == f.encode(CONTEXTS, ARMS).tobytes()


def test_pandas_words_for_what_is_missing():
    f = features()
    frame = pd.DataFrame({"age": pd.array([20, None], dtype="Int64"), "country": pd.Categorical(["FR", None])})
    X = f.encode(frame, ARMS)
    assert X.tobytes() == f.encode([CONTEXTS[0], {"age": None, "country": math.nan}], ARMS).tobytes()
    f.encode({"age": pd.NA, "country": pd.NaT}, ARMS)
    assert f.missing == {"age": 3, "country": 3}
    assert not f.unknown


def test_missing_and_unknown_are_counted_once_each_and_not_after_an_error():
    f = features(
        context={"age": Numeric(mean=0, scale=1, missing="column"), "country": Category(["FR"], unknown="error")}
    )
    with pytest.raises(ValueError, match="'country' of context 1 is 'UK', which is unknown: fit or state"):
        f.encode([{"age": None, "country": "FR"}, {"age": None, "country": "UK"}], ARMS)
    assert (f.missing, f.unknown) == ({}, {})  # seen red: counted as it goes
    X = f.encode({"age": None, "country": None}, [ARMS[0] | {"topic": "chess"}, ARMS[1] | {"title": None}])
    assert (f.missing, f.unknown) == ({"age": 1, "country": 1, "title": 1}, {"topic": 1})
    assert_array_equal(X[:, list(f.columns).index("age (missing)")], [1, 1])
    f.missing["age"] = 100
    assert f.missing["age"] == 1
    assert pickle.loads(pickle.dumps(f)).missing == {}


def test_many_threads_count_every_value():
    f = features()
    run = lambda: [f.encode({"age": None, "country": "UK"}, ARMS) for _ in range(500)]  # noqa: E731
    threads = [threading.Thread(target=run) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(before)
    assert (f.missing, f.unknown) == ({"age": 2000}, {"country": 2000})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_counts():
    f = features()
    with f._counts._lock:
        child = os.fork()
        if child == 0:
            f.encode({"age": None, "country": "FR"}, ARMS)  # seen red: waits for ever
            os._exit(0 if f.missing == {"age": 1} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert f.missing == {}


def test_inputs_stay_untouched():
    f = features()
    contexts, arms = [dict(one) for one in CONTEXTS], [dict(one) for one in ARMS]
    f.encode(contexts, arms)
    assert (contexts, arms) == (CONTEXTS, ARMS)


# --- fitting


def test_a_fit_learns_what_was_not_stated():
    f = dither.Features(
        context={"age": "numeric", "country": "category", "vip": Category([True, False])},
        arm={"price": Numeric(mean=1, scale=2), "title": Words(most=3, least=2), "one": "numeric"},
        cross=(),
    )
    assert not f.fitted
    assert "not fitted" in repr(f)
    assert str(f).startswith("Features, shared, not fitted")
    contexts = [{"age": age, "country": c} for age, c in [(20, "FR"), (None, "DE"), (50, None), (20, 3)]]
    arms = [{"title": t, "one": 5.0} for t in ("a b b", "b c A", "a d c", None)]
    g = f.fit(contexts, arms)
    assert not f.fitted  # seen red: fitted in place
    assert g.fitted
    assert g.context["age"].mean == pytest.approx(30)
    assert g.context["age"].scale == pytest.approx(math.sqrt(200))
    assert (g.arm["one"].mean, g.arm["one"].scale) == (5.0, 1.0)
    assert g.context["country"].values == ("3", "DE", "FR")
    assert g.arm["title"].vocabulary == ("a", "b", "c")
    assert g.context["vip"] == f.context["vip"]
    assert g.fit() is not g
    assert g.fit() == g  # all is stated now
    for frame in (pd.DataFrame, pl.DataFrame):
        assert f.fit(frame([c | {"country": str(c["country"] or "FR")} for c in contexts]), frame(arms)).fitted
    assert f.fit(contexts, {f"a{k}": arm for k, arm in enumerate(arms)}) == g
    ids = dither.Features(arm={"id": "category"}).fit(arms={"a": {}, 7: {"id": "b"}}).arm["id"]
    assert ids.values == ("a", "b")
    assert dither.Features.from_bytes(g.to_bytes()) == g
    assert dither.Features.from_bytes(f.to_bytes()) == f


def test_the_first_rows_standardise_and_then_it_stays():
    """Mean and sd by their definitions. Seen red without a cut, and with one of many rows alone."""
    f = dither.Features(context={"age": "standard", "same": "standard", "x": Standard(3, 2, clip=1)}, form="disjoint")
    ages = [20.0 + (7 * i) % 32 for i in range(32)]
    rows = [{"age": age, "same": 4, "x": i} for i, age in enumerate(ages)]
    with pytest.raises(ValueError, match="'age' has 31 values, and mean and scale are learnt from 32 at least: fit to"):
        f.fit([*rows[:31], rows[31] | {"age": None}])  # seen red: the missing value counted
    g = f.fit(rows)
    mean = sum(ages) / 32
    sd = math.sqrt(sum((age - mean) ** 2 for age in ages) / 32)
    assert (g.context["age"].mean, g.context["age"].scale) == pytest.approx((mean, sd), rel=1e-14)
    assert (g.context["same"].mean, g.context["same"].scale) == (4.0, 1.0)
    assert g.context["x"] == f.context["x"]
    assert g.columns == ("intercept", "age", "same", "x")
    age, same = g.context["age"], g.context["same"]
    for value in (mean + 4.9 * sd, mean + 5.1 * sd, -1e90, 1e90, 36, Fraction(72, 2)):
        z = max(-5.0, min(5.0, (float(value) - age.mean) / age.scale))
        one = g.encode({"age": value, "same": value, "x": value})
        assert_array_equal(one, [1, z, max(-5, min(5, float(value) - same.mean)), max(-1, min(1, (value - 3) / 2))])
        many = g.encode([{"age": value, "same": value, "x": value}] * 3)
        assert_array_equal(many, [one] * 3)
    assert g.fit([{"age": 1e6 + i, "same": i, "x": 0} for i in range(50)]) == g  # it never learns again
    assert "standard, mean 35.5, scale 9.23309, cut at 5" in str(g)
    assert dither.Features.from_bytes(g.to_bytes()) == g
    assert dither.Features.from_bytes(f.to_bytes()) == f
    assert dither.Features(context={"age": Standard(least=2)}, form="disjoint").fit(rows[:2]).fitted
    # in a tiny scale even the largest value is cut, where `numeric` refuses it
    assert_array_equal(
        dither.Features(context={"x": Standard(0, 1e-50)}, form="disjoint").encode({"x": -1e60}), [1, -5]
    )


def test_features_of_earlier_versions_are_read():
    """Their bytes, as they were written before there was `Standard`.

    Seen red with `clip` as a setting of `Numeric`, and with `version` written where it is 1.
    """
    f = dither.Features(
        context={"age": Numeric(mean=40, scale=15)}, arm={"topic": Category(["a", "b"], version=1)}, cross="all"
    )
    written = (
        b'{"features":{"absent":"error","arm":[["topic",{"kind":"category","least":1,"missing":"zero","most":null,'
        b'"unknown":"zero","values":["a","b"]}]],"context":[["age",{"kind":"numeric","mean":40.0,"missing":"zero",'
        b'"scale":15.0}]],"cross":[["age","topic"]],"form":"shared","intercept":true,"slots":null},'
        b'"fingerprint":"3b3219030c85c3e0","format":1}'
    )
    assert f.to_bytes() == written
    assert dither.Features.from_bytes(written) == f


def test_frequent_categories_are_kept():
    seen = [{"c": c} for c in "aaaabbbccde"]
    fit = lambda **more: dither.Features(arm={"c": Category(**more)}).fit(arms=seen).arm["c"].values  # noqa: E731
    assert fit() == ("a", "b", "c", "d", "e")
    assert fit(most=2) == ("a", "b")
    assert fit(most=5) == ("a", "b", "c", "d", "e")
    assert fit(most=3) == ("a", "b", "c")
    assert fit(least=2) == ("a", "b", "c")
    assert fit(most=1, least=2) == ("a",)
    # seen red: `most` with the infrequent as one of them


def test_a_missing_extra_is_named():
    code = """
import sys
sys.modules["sklearn"] = sys.modules["narwhals"] = None
import dither
f = dither.Features(arm={"x": "numeric", "c": ["a", "b"]})
stated = dither.Features(arm={"x": dither.features.Numeric(0, 1), "c": ["a", "b"]})
print(stated.encode(None, [{"x": 1, "c": "a"}]).tolist())
class Frame: columns = ["x", "c"]
for call in (lambda: f.fit(arms=[{"x": 1, "c": "a"}]), lambda: stated.encode(None, Frame())):
    try: call()
    except ImportError as error: print(error)
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    one, two, three = done.stdout.splitlines()
    assert one == "[[1.0, 1.0, 1.0, 0.0]]"
    assert "dither[features]" in two
    assert "dither[frames]" in three


# --- refusals name the field and the cure


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(context={"age": "numeral"}), "'age': .*no kind of field 'numeral'.*did you mean 'numeric'"),
        (dict(context={"age": Numeric}), "'age' must have a kind: one of numeric, category"),
        (dict(context={"age": 3}), "'age' must have a kind"),
        (dict(context={3: "hashed"}), "name of a field must be a text, got 3"),
        (dict(context={"price": "hashed"}, cross=()), "'price' is a field of the context and of the arm"),
        (dict(cross=[("contry", "topic")]), "no field 'contry': did you mean 'country'"),
        (dict(cross=["country"]), "each cross must be a pair of fields"),
        (dict(cross=[("country",)]), "each cross must be a pair of fields"),
        (dict(cross="some"), "or 'all'; got 'some'"),
        (dict(cross=[("country", "country")]), "has a field twice"),
        (dict(cross=[("country", "topic"), ("topic", "country")]), "comes twice"),
        (dict(form="block"), "form must be one of 'shared', 'disjoint', 'hybrid'; got 'block'"),
        (dict(form="hybrid"), "slots.*whole number of at least 1, got None"),
        (dict(slots=3), "slots is for the hybrid form alone"),
        (dict(form="disjoint"), "disjoint form has no fields of the arm"),
        (dict(arm={}, cross=()), "shared form needs fields of the arm"),
        (dict(absent="zero"), "absent must be one of"),
        (dict(intercept=2), "intercept must be True or False"),
        (dict(arm={"topic": ["a", "a"]}, cross=()), "'a' comes twice"),
        (dict(arm={"topic": []}, cross=()), "values must be a list of at least one value, got none"),
        (dict(form="disjoint", context={}, arm={}, intercept=False, cross=()), "there are no columns"),
        (
            dict(arm={"topic": Hashed(400), "x": Hashed(400)}, cross=[("topic", "x")]),
            "160,.* columns, more than 100,000",
        ),
        (dict(arm={"a": ["x=y"], "a=x": ["y"]}, cross=()), "two columns would have the name 'a=x=y'"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        features(**settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Numeric(mean=3), "mean and scale must both be stated"),
        (lambda: Numeric(mean=3, scale=0), r"scale must lie in \[1e-100, 1e\+100\], got 0"),
        (lambda: Numeric(mean=math.nan, scale=1), "mean must lie in"),
        (lambda: Standard(scale=3), "mean and scale must both be stated"),
        (lambda: Standard(clip=0), r"clip must lie in \[1e-100, 1e\+100\], got 0"),
        (lambda: Standard(clip=math.inf), "clip must lie in"),
        (lambda: Standard(least=0), "least must be a whole number of at least 1"),
        (lambda: Numeric(missing="drop"), "missing must be one of 'zero', 'column', 'error'; got 'drop'"),
        (lambda: Category(unknown="drop"), "unknown must be one of"),
        (lambda: Category("ab"), "values must be a list of different values, got 'ab'"),
        (lambda: Category([None]), "values must be a text, a number"),
        (lambda: Category([1, "1"]), "values must be different; '1' comes twice"),
        (lambda: Category(most=0), "most must be a whole number of at least 1"),
        (lambda: Hashed(0), "width must be a whole number of at least 1"),
        (lambda: Text(width=1.5), "width must be a whole number"),
        (lambda: Words(["a", "a"]), "vocabulary must be different"),
    ],
)
def test_kinds_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("context", "arms", "words"),
    [
        (
            {"age": 1},
            ARMS,
            r"context has no field 'country': give None where the value is missing, or .*absent={'country': 'missing'}",
        ),
        ({"age": 1, "contry": "FR"}, ARMS, r"no field 'country' \(it has 'contry'\)"),
        ([CONTEXTS[0], {"age": 1}], ARMS, "context 1 has no field 'country'"),
        (
            {"age": "20", "country": "FR"},
            ARMS,
            "'age' of the context must be a number, got '20': turn it into a number",
        ),
        ({"age": math.inf, "country": "FR"}, ARMS, "'age' of the context must be finite and below 1e.100; got inf"),
        ({"age": 10**400, "country": "FR"}, ARMS, "'age' of the context must be finite"),
        ({"age": [1], "country": "FR"}, ARMS, r"'age' of the context must be a number, got \[1\]"),
        ({"age": 1, "country": ["FR"]}, ARMS, r"'country' of the context must be a text, a number.*got \['FR'\]"),
        ({"age": 1, "country": b"FR"}, ARMS, "'country' of the context must be a text"),
        ([CONTEXTS[0], {"age": "x", "country": "FR"}], ARMS, "'age' of context 1 must be a number"),
        (CONTEXTS[0], [ARMS[0], ARMS[1] | {"title": 3}], "'title' of arm 1 must be a text or a list of texts, got 3"),
        (CONTEXTS[0], [ARMS[0] | {"price": -math.inf}], "'price' of arm 0 must be finite"),
        (CONTEXTS[0], [], "at least one arm"),
        (CONTEXTS[0], None, "the shared form needs arms"),
        (CONTEXTS[0], [ARMS], "arms holds 1 lists of arms for one context"),
        (CONTEXTS, [ARMS], "arms holds 1 lists of arms for 3 context"),
        (CONTEXTS[:2], [ARMS, ARMS[:2]], r"as many arms; got \[2, 3\]"),
    ],
)
def test_values_that_a_field_cannot_take(context, arms, words):
    f = features()
    with pytest.raises(ValueError, match=words):
        f.encode(context, arms)
    assert (f.missing, f.unknown) == ({}, {})


def test_things_that_are_no_records():
    f = features()
    with pytest.raises(TypeError, match=r"arms must be a list of records .* got a dict: list\(arms\.values\(\)\)"):
        f.encode(CONTEXTS[0], {"a": ARMS[0]})
    for wrong in (3, "age", np.zeros(2), {1, 2}, User, None):
        with pytest.raises(TypeError, match="context must be a dict, a dataclass, a named tuple, a list"):
            f.encode(wrong, ARMS)
    with pytest.raises(TypeError, match="context 1 must be a dict, a dataclass or a named tuple; got tuple"):
        f.encode([CONTEXTS[0], (20, "FR")], ARMS)
    with pytest.raises(TypeError, match="arms must be a list of records"):
        f.encode(CONTEXTS[0], ARMS[0])
    with pytest.raises(TypeError, match=r"arms must be a list of records .* got a single record"):
        f.encode(CONTEXTS[0], namedtuple("Arm", ARMS[0])(**ARMS[0]))
    with pytest.raises(TypeError, match=r"context must be a dict field -> kind, .* got \['age'\]"):
        dither.Features(context=["age"])
    with pytest.raises(ValueError, match="slots is for the hybrid form"):
        f.encode(CONTEXTS[0], ARMS, slots=[0, 1, 2])
    h = features(form="hybrid", slots=2)
    for slots, words in [(None, "needs the slot of each arm"), ([0, 1, 2], "from 0 to 1"), ([0], "3 whole numbers")]:
        with pytest.raises(ValueError, match=words):
            h.encode(CONTEXTS[0], ARMS, slots=slots)
    with pytest.raises(ValueError, match="disjoint form has no features of arms"):
        dither.Features(context={"age": Numeric(0, 1)}, form="disjoint").encode({"age": 3}, ARMS)


def test_fits_that_cannot_be():
    f = dither.Features(context={"age": "numeric"}, arm={"topic": "category", "title": "words"}, cross="all")
    with pytest.raises(ValueError, match=r"'age', 'topic', 'title' must be fitted first: f = f\.fit"):
        f.encode({"age": 1}, [{"topic": "a", "title": "b"}])
    for ask in (lambda: f.dim, lambda: f.columns):
        with pytest.raises(ValueError, match="must be fitted first"):
            ask()
    with pytest.raises(ValueError, match=r"fit needs contexts, for 'age': fit\(contexts="):
        f.fit(arms=[{"topic": "a", "title": "b"}])
    with pytest.raises(TypeError, match="arm 'topic' must be a dict, a dataclass or a named tuple; got str"):
        f.fit([{"age": 3}], {"topic": "a", "title": "b"})
    with pytest.raises(ValueError, match="fit needs a list of contexts"):
        f.fit({"age": 3}, [{"topic": "a", "title": "b"}])
    with pytest.raises(ValueError, match="'age' has no value to be fitted to: state mean and scale"):
        f.fit([{"age": None}], [{"topic": "a", "title": "b"}])
    with pytest.raises(ValueError, match="'age' of context 1 must be a number"):
        f.fit([{"age": 3}, {"age": "x"}], [{"topic": "a", "title": "b"}])
    with pytest.raises(ValueError, match="'topic' has no value to be fitted to"):
        f.fit([{"age": 3}], [{"topic": None, "title": "b"}])
    with pytest.raises(ValueError, match="'title' has no word in at least 1 texts"):
        f.fit([{"age": 3}], [{"topic": "a", "title": "!"}])


def test_absent_fields_can_be_missing_values():
    f = features(absent="missing")
    X = f.encode([{"age": 50}, {"country": "FR"}], ARMS)
    assert_array_equal(X[:, 0, 1:4], [[1, 0, 0], [0, 0, 1]])
    assert f.missing == {"country": 1, "age": 1}
    assert_array_equal(f.encode(pd.DataFrame({"age": [50]}), ARMS)[0], X[0])


def test_what_stands_for_a_field_is_said_field_by_field():
    f = dither.Features(
        context={"age": Numeric(40, 10), "country": ["DE", "FR"]},
        arm={"price": Numeric(2, 0.5), "topic": ["news", "sport"], "title": Text(4), "at": "hour"},
        absent={"age": 50, "country": "column", "price": "missing", "topic": "sport", "title": "error", "at": 6},
        cross=(),
    )
    names = ["intercept", "age", "country=DE", "country=FR", "country (missing)", "price", "topic=news", "topic=sport"]
    assert list(f.columns) == [*names, *(f"title#{i}" for i in range(4)), "at (sin)", "at (cos)"]
    X = f.encode({}, [{"title": ""}])
    assert_array_equal(X, [[1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0]])
    every = ("age", "country", "price", "topic", "at")
    assert f.missing == dict.fromkeys(every, 1)
    gone = dict.fromkeys(("age", "country")), [dict.fromkeys(("price", "topic", "at"), math.nan) | {"title": None}]
    assert f.encode(*gone).tobytes() == X.tobytes()  # seen red: the value stands for what is absent alone
    assert f.missing == dict.fromkeys(every, 2) | {"title": 1}
    frames = f.encode(pd.DataFrame({"age": [None, 20]}), pl.DataFrame({"title": [""]}))
    assert frames[0].tobytes() == X.tobytes()
    assert frames[1, 0, 1] == -2
    with pytest.raises(ValueError, match=r"arm 0 has no field 'title': give None .*absent=\{'title': 'missing'\}"):
        f.encode({}, [{}])
    with pytest.raises(ValueError, match=r"arm 'a' has no field 'title'"):
        dither.Catalogue(f, {"a": {}})
    shop = dither.Catalogue(f, {"a": {"title": ""}})
    assert shop.records["a"] == {"price": None, "topic": None, "title": "", "at": None}
    assert shop.encode({}).tobytes() == X.tobytes()
    assert shop.encode({}, {"a": {"at": 18}})[0, -2:].tolist() == [-1, 0]
    again = dither.Features.from_bytes(f.to_bytes())
    assert again == f
    assert again.encode({}, [{"title": ""}]).tobytes() == X.tobytes()
    for newer in (f, dither.Features(arm={"x": Text(4)}, absent={"x": ""}), dither.Features(arm={"at": "hour"})):
        assert json.loads(newer.to_bytes())["format"] == 3  # seen red: 1, which earlier versions would have misread
    assert f.absent == {"age": 50, "country": "missing", "price": "missing", "topic": "sport", "at": 6}
    same = dither.Features(arm={"price": Numeric(2, 0.5)}, absent={"price": "error"})
    assert same == dither.Features(arm={"price": Numeric(2, 0.5)})
    g = dither.Features(context={"age": "numeric"}, form="disjoint", absent={"age": 7})
    assert g.fit([{"age": 1}, {}, {"age": 3}]).context["age"].mean == 2  # what stands for a value is none to learn from
    assert_allclose(g.fit([{"age": 1}, {}, {"age": 3}]).encode({}), [1, 5])


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        ({"aeg": "missing"}, "absent: no field 'aeg': did you mean 'age'"),
        ({"age": "zero"}, "what stands for 'age' must be a number, got 'zero'"),
        ({"age": None}, "absent must have a value, or one of 'error', 'missing', 'column', for 'age'; got none"),
        ({"country": "UK"}, "what stands for 'country' is 'UK', which the field does not know: state it among"),
        ({"country": b"DE"}, "what stands for 'country' must be a text, a number or a list of texts"),
        ({"price": "column"}, "absent says 'column' for 'price', whose kind has missing='error': say one of the two"),
        ({"topic": "news"}, "absent says 'news' for 'topic', whose kind has missing='column': say one of the two"),
        ("column", "absent must be one of 'error', 'missing'"),
        (["age"], "absent must be one of"),
    ],
)
def test_what_cannot_stand_for_a_field(absent, words):
    arm = {"price": Numeric(2, 1, missing="error"), "topic": Category(["news"], missing="column")}
    with pytest.raises(ValueError, match=words):
        dither.Features(context={"age": Numeric(0, 1), "country": ["DE"]}, arm=arm, cross=(), absent=absent)
    if absent == {"country": "UK"}:
        unfitted = dither.Features(context={"country": "category"}, form="disjoint", absent=absent)
        with pytest.raises(ValueError, match=words):
            unfitted.fit([{"country": "DE"}])
        hashed = dither.Features(context={"country": "hashed"}, form="disjoint", absent=absent)
        assert_array_equal(hashed.encode({}), hashed.encode({"country": "UK"}))


def test_a_misspelt_field_is_told_once_and_counted():
    f = features(absent="missing")
    known = {"age": 50, "country": "FR"}
    with pytest.warns(MisspeltWarning, match=r"context has no field 'country', and has 'contry', .*a slip of the pen"):
        X = f.encode({"age": 50, "contry": "FR"}, ARMS)
    assert X.tobytes() == f.encode({"age": 50}, ARMS).tobytes()
    assert (f.unknown, f.missing) == ({"country": 1}, {"country": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.encode([{"age": 50, "contry": "FR"}, {"age": 50, "Country": "FR"}], ARMS)  # it was said
        f.encode(known | {"contry": "DE", "ages": 3}, ARMS)  # the fields are there, so these are the user's own
        f.encode({"age": 3, "city": "Wien", "topic": "x"}, ARMS)  # near to nothing, and a field of the arm
        f.encode({"age": 3, 7: "FR"}, ARMS)
        assert f.unknown == {"country": 3}
    for slip, name in [("AGE", "age"), ("a-g-e", "age"), ("agee", "age")]:
        other = features(absent="missing")
        with pytest.warns(MisspeltWarning, match=f"no field '{name}', and has '{slip}'"):
            other.encode(pd.DataFrame([{"country": "FR", slip: 3}] * 3), ARMS)
        assert other.unknown == {name: 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = dither.Features(
            context={"price_at": Numeric(0, 1)}, arm={"price": Numeric(0, 1)}, cross=(), absent="missing"
        )
        both.encode({"price": 3}, [{"price": 3}])  # known, if not here
        both.of_arm({"prize": 3}, count=False)
    assert slips.nearly(("ages", "agee"), ("age", "ages")) == (("age", "agee"),)
    # seen red: ignored without a word; warned of with every request


def test_a_misspelt_field_of_an_arm_is_told():
    f = features(absent={"price": "missing"})
    shop = dither.Catalogue(f, dict(zip("abc", ARMS, strict=True)))
    asked = [
        lambda: shop.add("d", {"topic": "news", "title": "", "prize": 3}),
        lambda: shop.change("a", {"topic": "news", "prize": 3}),
        lambda: shop.encode(CONTEXTS[0], {"a": {"topic": "news", "prize": 3}, "b": None}),
        lambda: f.encode(CONTEXTS[0], [{"topic": "news", "title": "", "prize": 3}]),
    ]
    for n, call in enumerate(asked, start=1):
        f._told.clear()
        with pytest.warns(MisspeltWarning, match="a record of the arm has no field 'price', and has 'prize'"):
            call()
        assert f.unknown == {"price": n}
    with pytest.warns(MisspeltWarning, match="has 'prize'"):
        dither.Features(arm={"price": "numeric"}, absent="missing").fit(arms=[{"price": 3}, {"prize": 3}])
    assert shop.at(3).features.unknown == {"price": len(asked)}


# --- hours and days of the week


def test_hours_by_hand():
    f = dither.Features(context={"at": "hour"}, form="disjoint", intercept=False)
    assert f.columns == ("at (sin)", "at (cos)")
    half = math.sqrt(0.5)
    day = [(0, [0, 1]), (3, [half, half]), (6, [1, 0]), (12, [0, -1]), (18, [-1, 0]), (21, [-half, half])]
    for hour, point in day:
        minutes = datetime.time(hour, 0)
        ways = [hour, float(hour), np.int8(hour), decimal.Decimal(hour), minutes, minutes.isoformat()]
        moment = datetime.datetime(2026, 11, 30, hour)
        ways += [moment, str(moment), moment.isoformat(), np.datetime64(moment), pd.Timestamp(moment)]
        for way in ways:
            assert_allclose(f.encode({"at": way}), point, atol=1e-15)
            assert f.encode({"at": way}).tobytes() == f.encode({"at": hour}).tobytes()
    X = f.encode([{"at": 23.5}, {"at": 0.5}, {"at": 12.5}, {"at": datetime.time(13, 30)}, {"at": None}])
    assert_allclose(np.linalg.norm(X, axis=1), [1, 1, 1, 1, 0])
    assert_allclose(X[0] @ X[1], X[2] @ X[3])
    assert not np.signbit(f.encode({"at": 18})[1])
    assert_allclose(X[0] @ X[1], math.cos(math.pi / 12))
    last = f.encode({"at": datetime.time(23, 59, 59, 999_999)})
    assert_allclose(last, [-2 * math.pi / 86_400 * 1e-6, 1], rtol=1e-4)
    assert str(f).splitlines()[1].split() == ["context", "at", "hour,", "on", "a", "circle", "2"]
    # seen red: a period of 12; the cosine first


def test_days_of_the_week_by_hand():
    f = dither.Features(context={"day": "weekday"}, form="disjoint", intercept=False)
    monday = datetime.date(2026, 11, 30)
    for day, name in enumerate(["Monday", "tue", "WED", "Thursday", "fri", "sat", "Sun"]):
        date = monday + datetime.timedelta(days=day)
        noon = datetime.datetime.combine(date, datetime.time(12))
        turn = 2 * math.pi * day / 7
        for way in (day, float(day), name, date, noon, str(date), str(noon), np.datetime64(date), pd.Timestamp(noon)):
            assert_allclose(f.encode({"day": way}), [math.sin(turn), math.cos(turn)], atol=1e-15)
    # seen red: `isoweekday`, which begins with 1


def test_zones_of_times():
    """The rule: a time is read as it stands; where a zone is set, one that knows its zone is read on those clocks."""
    f = dither.Features(
        context={"here": "hour", "vienna": Hour(zone="Europe/Vienna"), "day": Weekday(zone="Europe/Vienna")},
        form="disjoint",
        intercept=False,
    )
    utc = datetime.datetime(2026, 7, 5, 22, 30, tzinfo=datetime.UTC)  # a Sunday; in Vienna 0:30 of the Monday
    read = lambda time: f.encode({"here": time, "vienna": time, "day": time})  # noqa: E731
    expected = f.encode({"here": 22.5, "vienna": 0.5, "day": 0})
    for way in (utc, utc.isoformat(), "2026-07-05T22:30Z", pd.Timestamp(utc)):
        assert_array_equal(read(way), expected)
    west = utc.astimezone(datetime.timezone(datetime.timedelta(hours=-3)))
    assert_array_equal(read(west)[2:], expected[2:])
    assert_array_equal(read(west)[:2], f.encode({"here": 19.5, "vienna": 0, "day": 0})[:2])
    naive = utc.replace(tzinfo=None)
    assert_array_equal(read(naive), f.encode({"here": 22.5, "vienna": 22.5, "day": 6}))
    winter = datetime.datetime(2026, 12, 6, 22, 30, tzinfo=datetime.UTC)
    assert_array_equal(read(winter), f.encode({"here": 22.5, "vienna": 23.5, "day": 6}))
    again = dither.Features.from_bytes(f.to_bytes())
    assert_array_equal(again.encode({"here": utc, "vienna": utc, "day": utc}), expected)
    assert "hour, on a circle, in Europe/Vienna" in str(f)
    shop = dither.Catalogue(dither.Features(arm={"at": Hour(zone="Europe/Vienna")}), {"a": {"at": utc}})
    assert shop.records == {"a": {"at": "2026-07-05T22:30:00+00:00"}}
    assert dither.Catalogue.from_bytes(shop.to_bytes()).encode(None).tobytes() == shop.encode(None).tobytes()
    for zone in ("Europe/Wien", "", 3, "../x"):
        with pytest.raises(ValueError, match=r"zone must be the name of a time zone, .* got .*install .* tzdata"):
            Hour(zone=zone)
    # seen red: the day of the moment's own zone


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("hour", 24, "'at' of the context must be at least 0 and below 24, got 24: 24 o'clock is 0"),
        ("hour", -0.5, "must be at least 0 and below 24, got -0.5"),
        ("hour", math.inf, "must be finite"),
        ("hour", True, "must be an hour: a number from 0 to below 24, or a time; got True"),
        ("hour", "18", "must be an hour: .* got '18'"),
        ("hour", "25:00", "must be an hour: .* got '25:00'"),
        ("hour", datetime.date(2026, 11, 30), r"must have an hour, and datetime.date\(2026, 11, 30\) is a day"),
        ("hour", "2026-11-30", "must have an hour, and '2026-11-30' is a day: give the time"),
        ("hour", datetime.timedelta(hours=3), "must be an hour"),
        (Hour(zone="Asia/Tokyo"), datetime.time(3, tzinfo=datetime.UTC), "has a zone and no day, so Asia/Tokyo cannot"),
        (
            Hour(zone="Asia/Tokyo"),
            datetime.datetime.max.replace(tzinfo=datetime.UTC),
            "must be a time that Asia/Tokyo has",
        ),
        (Hour(missing="error"), None, "'at' of the context is missing: fill it in"),
        ("weekday", 7, "must be a whole number from 0, Monday, to 6, Sunday; got 7: subtract 1 from days"),
        ("weekday", 2.5, "must be a whole number from 0, Monday"),
        ("weekday", -1, "must be a whole number from 0, Monday"),
        ("weekday", False, "must be a day of the week: .* got False"),
        ("weekday", "Montag", "must be a day of the week, such as 'Monday' or 'Mon', got 'Montag'"),
        ("weekday", "3", "must be a day of the week: a number from 0 to 6, its name, or a date; got '3'"),
        ("weekday", datetime.time(3), "must have a day, and .* is a time of any: give the date too"),
    ],
)
def test_places_that_a_circle_has_not(kind, value, words):
    f = dither.Features(context={"at": kind}, form="disjoint")
    with pytest.raises(ValueError, match=words):
        f.encode({"at": value})
    assert (f.missing, f.unknown) == ({}, {})


def test_bytes_that_are_no_features():
    data = features().to_bytes()
    known = json.loads(data)
    for wrong, words in [
        (b"", "no Features, or damaged"),
        (data[:-5], "no Features, or damaged"),
        (b"[" * 100_000, "no Features, or damaged"),
        (b"3", "no Features"),
        (json.dumps(known | {"format": 9}).encode(), "reads up to 3: upgrade dither"),
        (json.dumps(known | {"format": "1"}).encode(), "format is '1'"),
        (data.replace(b'"mean":40.0', b'"mean":41.0'), "their fingerprint is .* was saved"),
        (data.replace(b'"kind":"text"', b'"kind":"tensor"'), "no Features"),
        (data.replace(b'"width":5', b'"width":0'), "width must be"),
    ]:
        assert wrong != data
        with pytest.raises(ValueError, match=words):
            dither.Features.from_bytes(wrong)


def test_settings_of_numpy_are_settings():
    one = dither.Features(
        arm={"c": Category(np.array([1, 2]), most=np.int64(3)), "h": Hashed(np.int32(4))},
        form="hybrid",
        slots=np.int64(2),
    )
    two = dither.Features(arm={"c": Category(range(1, 3), most=3), "h": Hashed(4)}, form="hybrid", slots=2)
    assert one.to_bytes() == two.to_bytes()
    assert dither.Features(arm={"c": range(3)}).columns[1:] == ("c=0", "c=1", "c=2")


def test_the_fingerprint_tells_apart_what_encodes_differently():
    one = features()
    others = [
        features(context={"age": Numeric(mean=40, scale=11), "country": ["DE", "FR"]}),
        features(context={"country": ["DE", "FR"], "age": Numeric(mean=40, scale=10)}),
        features(cross=[("age", "price"), ("country", "topic")]),
        features(intercept=False),
        features(form="hybrid", slots=3),
        features(arm={"price": Numeric(mean=2, scale=0.5), "topic": ["sport", "news"], "title": Text(width=5)}),
    ]
    assert len({f.fingerprint for f in (one, *others)}) == 7
    assert all(one != other for other in others)
    assert features() == one
    assert features().fingerprint == one.fingerprint
    assert one != 3


# --- contexts that cancel (T9)


def test_a_context_that_cancels_is_told():
    with pytest.warns(UserWarning, match=r"cancels .* cross=\[\('age', 'price'\)\], or say cross=\(\)"):
        features(cross=None)
    for meant in ((), [("country", "topic")]):
        features(cross=meant)
    every = itertools.product(("age", "country"), ("price", "topic", "title"))
    assert features(cross="all").cross == tuple(every)  # seen red: the first field of the arm alone
    with pytest.warns(UserWarning, match="cancels"):
        dither.Features(context={"a": Numeric(0, 1), "b": Numeric(0, 1)}, arm={"c": ["x"]})
    features(cross=None, form="hybrid", slots=2)
    dither.Features(arm={"c": ["x"]})
    dither.Features(context={"a": "numeric"}, arm={"c": "hashed"}, cross=()).fit([{"a": 1}])


@pytest.mark.filterwarnings("default:all arms of the request")
def test_arms_without_a_difference_are_told():
    f = features()
    with pytest.warns(UserWarning, match="all arms of the request have the same features"):
        f.encode(CONTEXTS[0], [ARMS[0], dict(ARMS[0])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.encode(CONTEXTS[0], [ARMS[0]])
        f.encode(CONTEXTS[0], ARMS)


def test_a_context_that_is_crossed_decides():
    """Two arms, two groups that like one each. Main effects learn nothing; crosses learn it."""
    fields = dict(context={"group": ["a", "b"]}, arm={"topic": ["x", "y"]})
    found = []
    for cross in ((), "all"):
        f = dither.Features(**fields, cross=cross)
        bandit = dither.Greedy(dim=f.dim, lam=1.0, seed=0)
        for group, topic in itertools.product("ab", "xy"):
            X = f.encode({"group": group}, [{"topic": topic}])
            bandit.update(np.repeat(X, 20, axis=0), np.full(20, float((group, topic) in {("a", "x"), ("b", "y")})))
        means = [bandit.mean(f.encode({"group": g}, [{"topic": t} for t in "xy"])) for g in "ab"]
        found.append([means[0][0] - means[0][1], means[1][1] - means[1][0]])
    assert_allclose(found[0], [0, 0], atol=1e-12)
    assert min(found[1]) > 0.9


# --- what print shows


def test_width_and_memory_are_printed():
    text = str(features())
    lines = {line.split()[1]: line.split()[-1] for line in text.splitlines()[1:6]}
    assert lines == {"age": "1", "country": "2", "price": "1", "topic": "2", "title": "5"}
    assert "country × topic" in text
    assert "17 columns" in text.splitlines()[0]
    assert features().fingerprint in text
    assert "136 bytes an arm on offer, 2.31 kB a linear model" in text
    assert repr(features()) == f"Features(17 columns, shared, fingerprint {features().fingerprint})"
    hybrid = str(features(form="hybrid", slots=50))
    assert re.search(r"slots +50 blocks +200\n", hybrid)
    assert "217 columns" in hybrid
    disjoint = str(dither.Features(context={"age": "numeric"}, form="disjoint").fit([{"age": 3}]))
    assert "32 bytes a slot" in disjoint


def test_the_page_shows_what_is_printed(capsys):
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
    code, shown = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("python", "text"))
    exec(code, {})
    plain = [re.sub(r"fingerprint \w+", "fingerprint", text) for text in (capsys.readouterr().out, shown)]
    assert plain[0] == plain[1]  # the fingerprint may differ, since another kernel may round a mean in another way

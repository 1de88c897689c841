"""`dither.Catalogue`: arms by id. The oracle keeps a dict of records and encodes all of them anew."""

import collections
import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.testing import assert_array_equal

import dither
from dither.features import Category, Hashed, Numeric, Text
from dither.features.arm_ids import id_texts

CONTEXT = {"age": 50}
ARMS = {
    "a17": {"price": 1.0, "topic": "news"},
    "a23": {"price": 2.0, "topic": "sport"},
    "b1": {"price": 3.0, "topic": "news"},
}


def features(**given):
    fields = dict(
        context={"age": Numeric(40, 10)}, arm={"price": Numeric(2, 0.5), "topic": ["news", "sport"]}, cross="all"
    )
    return dither.Features(**fields | given)


def disjoint():
    return dither.Features(context={"age": Numeric(40, 10)}, form="disjoint")


def test_a_life_by_hand():
    f = features()
    shop = dither.Catalogue(f, ARMS)
    assert (shop.version, shop.ids, len(shop), shop.slots) == (3, ("a17", "a23", "b1"), 3, 3)
    X = shop.encode(CONTEXT)
    assert X.tobytes() == f.encode(CONTEXT, list(ARMS.values())).tobytes()
    assert shop.retire("a23") == 4
    assert shop.ids == ("a17", "b1")
    assert_array_equal(shop.encode(CONTEXT), X[[0, 2]])  # seen red: a cache of what was on offer
    assert shop.change("a17", {"price": 5.0}) == 5
    assert shop.records["a17"] == {"price": 5.0, "topic": "news"}
    assert shop.encode(CONTEXT, ["a17"])[0, list(f.columns).index("price")] == 6.0
    assert shop.add("c", {"price": 2, "topic": "other"}) == 6
    assert f.unknown == {"topic": 1}
    assert [shop.slot(id) for id in ("a17", "a23", "b1", "c")] == [0, 1, 2, 3]
    assert [shop.id(slot) for slot in range(4)] == ["a17", "a23", "b1", "c"]
    assert shop.everything == ("a17", "a23", "b1", "c")
    assert_array_equal(shop.mask(), [True, False, True, True])
    assert_array_equal(shop.mask(["c", "a23"]), [True, False])
    kept = shop.encode(CONTEXT, shop.everything, retired="keep")
    assert_array_equal(kept[1:3], X[1:])
    assert shop.restore("a23") == 7
    assert shop.ids == ("a17", "a23", "b1", "c")
    assert "a23" in shop
    assert "a99" not in shop
    past = shop.at(4)
    assert (past.version, past.ids) == (4, ("a17", "b1"))
    assert_array_equal(past.encode(CONTEXT), X[[0, 2]])  # the price that a17 had
    assert shop.at(0).slots == 0
    assert shop.at(6).ids == ("a17", "b1", "c")
    assert f.unknown == {"topic": 1}  # seen red: counted again by `at`
    assert [event.what for event in shop.events] == ["add"] * 3 + ["retire", "change", "add", "restore"]
    assert "4 arms on offer of 4, version 7" in repr(shop)


def test_arms_come_as_dicts_records_and_frames():
    f = features()
    rows = [{"id": id, **record} for id, record in ARMS.items()]
    Arm = collections.namedtuple("Arm", ["id", "topic", "price"])
    ways = [
        dither.Catalogue(f, rows),
        dither.Catalogue(f, pd.DataFrame(rows)),
        dither.Catalogue(f, pl.DataFrame(rows)),
        dither.Catalogue(f, [Arm(**row) for row in rows]),
        dither.Catalogue(f, [{"sku": row["id"], **row} for row in rows], id="sku"),
    ]
    for one in ways[:4]:
        assert one.to_bytes() == dither.Catalogue(f, ARMS).to_bytes()
    assert ways[4].events == ways[0].events
    shop = ways[0]
    for ids in (np.array(["b1", "a17"]), pd.Series(["b1", "a17"]), pl.Series(["b1", "a17"]), ("b1", "a17")):
        assert_array_equal(shop.encode(CONTEXT, ids), shop.encode(CONTEXT)[[2, 0]])
    assert list(shop) == list(ARMS)
    assert [id in shop for id in ("a17", 3, None, 1.5, "")] == [True, False, False, False, False]
    numbers = dither.Catalogue(f, {5: ARMS["a17"], np.int64(7): ARMS["b1"]})
    assert numbers.ids == ("5", "7")
    assert_array_equal(numbers.encode(CONTEXT, [7, "5"]), numbers.encode(CONTEXT)[::-1])
    with pytest.raises(ValueError, match="arm 1 has no field 'id'"):
        dither.Catalogue(f, [rows[0], ARMS["b1"]])
    with pytest.raises(TypeError, match="arms must be a dict id -> record, a list of records or a frame; got int"):
        dither.Catalogue(f, 3)
    with pytest.raises(TypeError, match="arm 0 must be a dict"):
        dither.Catalogue(f, ["a17"])
    with pytest.raises(TypeError, match=r"features must be dither\.Features, got dict"):
        dither.Catalogue({})


def test_an_id_can_be_a_feature():
    f = dither.Features(arm={"id": Hashed(8), "price": Numeric(0, 1)})
    shop = dither.Catalogue(f, {"a": {"price": 1}, "b": {"price": 1, "id": "other"}})
    X = f.encode(None, [{"id": "a", "price": 1}, {"id": "other", "price": 1}])
    assert_array_equal(shop.encode(None), X)


@pytest.mark.parametrize(
    "make",
    [
        *(list, tuple, np.array, pd.Series, pd.Index, pd.Categorical, pl.Series, pa.array, iter),
        lambda ids: np.array(ids, dtype=object),
        lambda ids: pa.chunked_array([ids[:1], ids[1:]]),
        lambda ids: pa.array(ids).dictionary_encode(),
        lambda ids: dict.fromkeys(ids).keys(),
    ],
)
def test_ids_are_a_column_of_any_library(make):
    shop = dither.Catalogue(features(), ARMS)
    assert_array_equal(shop.encode(CONTEXT, make(["b1", "a17"])), shop.encode(CONTEXT, ["b1", "a17"]))
    each = shop.encode([CONTEXT, CONTEXT], [make(["b1", "a17"]), make(["a17", "b1"])])
    assert_array_equal(each, shop.encode([CONTEXT, CONTEXT], [["b1", "a17"], ["a17", "b1"]]))
    # seen red: Arrow, categoricals, keys; arrays in a list, which were an index out of nowhere


def test_who_changes_what_was_given_out_changes_nothing():
    f = dither.Features(arm={"tags": Text(8)})
    shop = dither.Catalogue(f, {"a": {"tags": ["x", "y"]}})
    before, told = shop.to_bytes(), shop.events
    other = dither.Catalogue(f)
    other.extend(told)
    told[0].record["tags"].append("z")
    shop.records["a"]["tags"].append("z")
    shop.events[0].record["tags"] = None
    assert shop.to_bytes() == other.to_bytes() == before
    # seen red: the records of the events themselves


def test_batches():
    f = features()
    shop = dither.Catalogue(f, ARMS)
    contexts = [{"age": age} for age in (20, 30, 70)]
    X = shop.encode(contexts)
    assert_array_equal(X, [shop.encode(one) for one in contexts])
    assert_array_equal(shop.encode(pd.DataFrame(contexts)), X)
    ids = [["a17", "b1"], ["b1", "a23"], ["a23", "a17"]]
    each = shop.encode(contexts, ids)
    assert_array_equal(each, [shop.encode(one, own) for one, own in zip(contexts, ids, strict=True)])
    with pytest.raises(ValueError, match="arms has the ids of 3 requests, and there is 2 contexts"):
        shop.encode(contexts[:2], ids)
    with pytest.raises(ValueError, match="and there is one context"):
        shop.encode(contexts[0], ids)
    with pytest.raises(ValueError, match="as many arms"):
        shop.encode(contexts[:2], [["a17"], ["a17", "b1"]])


def test_disjoint_slots_are_those_of_the_ids():
    shop = dither.Catalogue(disjoint(), {"a": None, "b": {}})
    shop.add("c")
    assert_array_equal(shop.encode(CONTEXT), [1, 1])
    assert_array_equal(shop.encode([CONTEXT], ["b"]), [[1, 1]])
    assert_array_equal(shop.mask(), [True, True, True])
    assert_array_equal(shop.mask(["c", "a"]), [True, False, True])
    shop.retire("c")
    assert_array_equal(shop.mask(["c", "a"], slots=5), [True, False, False, False, False])
    assert_array_equal(shop.mask(slots=5), [True, True, False, False, False])  # seen red: room for more on offer
    with pytest.raises(ValueError, match=r"the catalogue has 3 ids for 2 slots: bandit.grow\(3\)"):
        shop.mask(slots=2)
    with pytest.raises(ValueError, match="'c' is retired"):
        shop.encode(CONTEXT, ["c"])
    with pytest.raises(ValueError, match="slots is for the disjoint form"):
        dither.Catalogue(features(), ARMS).mask(slots=3)


def test_hybrid_blocks_are_those_of_the_slots():
    f = features(form="hybrid", slots=3)
    shop = dither.Catalogue(f, {id: ARMS[id] for id in ("a17", "a23")})
    shop.retire("a17")
    shop.add("b1", ARMS["b1"])
    records = [ARMS["a23"], ARMS["b1"]]
    assert_array_equal(shop.encode(CONTEXT), f.encode(CONTEXT, records, slots=[1, 2]))
    before = shop.to_bytes()
    with pytest.raises(ValueError, match="no slot is left for 'x': the features have slots=3"):
        shop.add("x", ARMS["b1"])
    assert shop.to_bytes() == before


def test_ids_of_a_request_are_texts_by_the_rule_of_the_catalogue():
    ways = [["a17", 3], ("a17", 3), np.array(["a17", 3], dtype=object), pd.Series(["a17", 3]), iter(["a17", 3])]
    assert {id_texts(arms) for arms in ways} == {("a17", "3")}
    assert id_texts(np.array([2, 7])) == ("2", "7")
    assert id_texts({"a17": ARMS["a17"]}.keys()) == id_texts({"a17": ARMS["a17"]}) == ("a17",)
    for odd in ([1.0], [True], [None], [""], [["a17"]], [b"a17"], [], "a17", b"a17", None, 3, {"a17"}, {}):
        with pytest.raises(ValueError, match=r"an id must be a text|arms must be a list of"):
            id_texts(odd)  # seen red: a float as "1.0"


REFUSED = [
    (lambda s: s.add("a17", ARMS["a17"]), ValueError, "'a17' is in the catalogue: change it; or take another id"),
    (lambda s: s.add("b1", ARMS["a17"]), ValueError, "'b1' is in the catalogue: restore it"),
    (lambda s: s.add("", ARMS["a17"]), ValueError, "an id must be a text that is not empty"),
    (lambda s: s.add(1.5, ARMS["a17"]), ValueError, "an id must be a text.*got 1.5"),
    (lambda s: s.add(True, ARMS["a17"]), ValueError, "an id must be a text.*got True"),
    (lambda s: s.add("x", {"price": 1}), ValueError, "arm 'x' has no field 'topic'"),
    (lambda s: s.add("x", {"price": "1", "topic": "news"}), ValueError, "'price' of arm 'x' must be a number, got '1'"),
    (lambda s: s.add("x", {"price": 1, "topic": b"n"}), ValueError, "'topic' of arm 'x' must be a text, a number"),
    (lambda s: s.add("x", 3), TypeError, "arm 'x' must be a dict"),
    (lambda s: s.add("x", [ARMS["a17"]]), TypeError, "arm 'x' must be one record"),
    (lambda s: s.change("x", {}), LookupError, "no arm 'x' in the catalogue"),
    (lambda s: s.change("a17", {"prize": 3}), ValueError, "record for 'a17' has no field of an arm: 'price', 'topic'"),
    (lambda s: s.change("a17", {"price": [3]}), ValueError, "'price' of arm 'a17' must be"),
    (lambda s: s.change("a17", 3), TypeError, "arm 'a17' must be a dict"),
    (lambda s: s.retire("a71"), LookupError, "no arm 'a71' in the catalogue: spelt alike are 'a17'"),
    (lambda s: s.retire("b1"), ValueError, "'b1' is retired already"),
    (lambda s: s.restore("a17"), ValueError, "'a17' is on offer"),
    (lambda s: s.encode(CONTEXT, ["a17", "a2"]), LookupError, "no arm 'a2' in the catalogue: spelt alike are 'a23'"),
    (lambda s: s.encode(CONTEXT, ["zzz"]), LookupError, "no arm 'zzz' in the catalogue: it has 3 ids; add it first"),
    (lambda s: s.encode(CONTEXT, ["a17", "b1"]), ValueError, "'b1' is retired: leave it out, restore it, or pass"),
    (lambda s: s.encode(CONTEXT, []), ValueError, "arms must be a list of at least one id"),
    (lambda s: s.encode(CONTEXT, "a17"), ValueError, "arms must be a list of at least one id, got 'a17'"),
    (lambda s: s.encode(CONTEXT, [1.0]), ValueError, r"an id must be a text.*or a whole number; got 1.0"),
    (
        lambda s: s.encode(CONTEXT, {"a17": {"prize": 9}}),
        ValueError,
        r"record for 'a17' has no field of an arm: 'price', 'topic'; got \['prize'\]",
    ),
    (
        lambda s: s.encode(CONTEXT, {"a17": {"price": "9"}}),
        ValueError,
        "'price' of arm 'a17' must be a number, got '9'",
    ),
    (lambda s: s.encode(CONTEXT, {"a23": None, "a17": 3}), TypeError, "arm 'a17' must be a dict"),
    (lambda s: s.encode(CONTEXT, {"b1": {"price": 9}}), ValueError, "'b1' is retired: leave it out, restore it"),
    (lambda s: s.encode(CONTEXT, {"a2": {"price": 9}}), LookupError, "no arm 'a2' in the catalogue"),
    (lambda s: s.encode(CONTEXT, {}), ValueError, "arms must be a list of at least one id"),
    (lambda s: s.encode(CONTEXT, ["a17"], retired="ok"), ValueError, "retired must be one of 'error', 'keep'"),
    (lambda s: s.encode({}), ValueError, "context has no field 'age'"),
    (lambda s: s.mask(["a17", "x"]), LookupError, "no arm 'x'"),
    (lambda s: s.slot("x"), LookupError, "no arm 'x'"),
    (lambda s: s.id(3), LookupError, "no slot 3: the catalogue has 3 slots"),
    (lambda s: s.id(-1), LookupError, "no slot -1"),
    (lambda s: s.at(5), ValueError, "version must be from 0 to 4, got 5"),
    (lambda s: s.at(True), ValueError, "version must be from 0 to 4"),
    (lambda s: s.extend([(6, "retire", "a17", None)]), ValueError, "go on from version 4 without a gap"),
    (lambda s: s.extend([(1, "retire", "a17", None)]), ValueError, "two histories"),
    (lambda s: s.extend([(5, "retire", "a17", None), (6, "retire", "x", None)]), ValueError, "cannot follow version 5"),
    (lambda s: s.extend([(5, "add", "x", None)]), ValueError, "cannot follow"),
    (lambda s: s.id(True), LookupError, "no slot True"),
    (lambda s: s.id(1.0), LookupError, "no slot 1.0"),
    (lambda s: s.at(1.0), ValueError, "version must be from 0 to 4, got 1.0"),
    (lambda s: s.extend([3]), ValueError, "an event must be .version, what, id, record., got 3"),
    (lambda s: s.extend([(5, "add", 7, ARMS["a17"])]), ValueError, "an id that is a text"),
    (lambda s: s.extend([(5, "add", "", ARMS["a17"])]), ValueError, "an id that is a text"),
    (lambda s: s.extend([(5.0, "add", "x", ARMS["a17"])]), ValueError, "must have a whole number"),
    (lambda s: s.extend([("5", "add", "x", ARMS["a17"])]), ValueError, "must have a whole number"),
    (lambda s: s.extend([(5, "add", "x", [1])]), ValueError, "a record or None"),
    (lambda s: s.extend([(5, "lose", "a17", None)]), ValueError, "what happened must be one of"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2][:40])
def test_what_is_refused_changes_nothing(case):
    call, kind, words = case
    shop = dither.Catalogue(features(), ARMS)
    shop.retire("b1")
    before, X = shop.to_bytes(), shop.encode(CONTEXT)
    with pytest.raises(kind, match=words):
        call(shop)
    assert shop.to_bytes() == before
    assert (shop.version, shop.ids) == (4, ("a17", "a23"))
    assert_array_equal(shop.encode(CONTEXT), X)
    assert shop.features.unknown == shop.features.missing == {}


# --- records of one request


@pytest.mark.parametrize("form", ["shared", "hybrid"])
def test_what_a_request_brings_counts_in_it_alone(form):
    """By the oracle: the catalogue's record, and over it the fields of the request, encoded by the features."""
    f = features(form=form, slots=3 if form == "hybrid" else None)
    shop = dither.Catalogue(f, ARMS)
    before = shop.to_bytes()
    arms = {"b1": {"price": 7.0}, "a17": None, "a23": {"topic": "news", "more": 1}}
    whole = [ARMS["b1"] | {"price": 7.0}, ARMS["a17"], ARMS["a23"] | {"topic": "news"}]
    slots = [2, 0, 1] if form == "hybrid" else None
    X = f.encode(CONTEXT, whole, slots=slots)
    assert shop.encode(CONTEXT, arms).tobytes() == X.tobytes()
    assert shop.encode(CONTEXT, {id: {} for id in arms}).tobytes() == shop.encode(CONTEXT, list(arms)).tobytes()
    assert shop.encode([CONTEXT] * 2, arms).tobytes() == np.stack([X, X]).tobytes()
    each = [arms, {"a17": None, "a23": None, "b1": {"price": 1.5}}]
    assert shop.encode([CONTEXT] * 2, each)[1].tobytes() == shop.encode(CONTEXT, each[1]).tobytes()
    mixed = shop.encode([CONTEXT] * 2, [list(arms), arms])
    assert mixed[0].tobytes() == shop.encode(CONTEXT, list(arms)).tobytes()
    assert mixed[1].tobytes() == X.tobytes()
    assert_array_equal(shop.mask(arms), [True, True, True])
    assert shop.to_bytes() == before
    assert shop.records == ARMS
    shop.change("b1", {"price": 7.0})
    assert shop.encode(CONTEXT, ["b1"]).tobytes() == X[:1].tobytes()
    # seen red: records by the place and not by the id; the slot of the place; a list of ids beside one with records


def test_an_arm_without_fields_can_bring_none():
    shop = dither.Catalogue(disjoint(), {"a": None, "b": {}})
    assert_array_equal(shop.encode(CONTEXT, {"a": None, "b": {}}), [1, 1])
    with pytest.raises(ValueError, match=r"the record for 'a' has no field of an arm: the features have none; got"):
        shop.encode(CONTEXT, {"a": {"price": 3}})
    hybrid = dither.Features(context={"age": Numeric(40, 10)}, form="hybrid", slots=2)
    shop = dither.Catalogue(hybrid, {"a": None, "b": {}})
    assert_array_equal(shop.encode(CONTEXT, {"a": None, "b": {}}), shop.encode(CONTEXT))


def test_nothing_on_offer():
    shop = dither.Catalogue(features())
    with pytest.raises(ValueError, match="no arm is on offer: all 0 are retired, or none was added"):
        shop.encode(CONTEXT)
    shop.add("x", ARMS["a17"])
    shop.retire("x")
    with pytest.raises(ValueError, match="no arm is on offer: all 1 are retired"):
        shop.encode(CONTEXT)


def test_arms_that_nothing_tells_apart_are_told():
    shop = dither.Catalogue(features(), {"a": ARMS["a17"], "b": ARMS["a17"]})
    assert shop.ids == ("a", "b")
    with pytest.warns(UserWarning, match="all arms of the request have the same features"):
        shop.encode(CONTEXT)
    shop.encode(CONTEXT)  # said once for each version
    shop.encode(CONTEXT, ["a", "b"])  # a request of one's own may ask for these


def test_files_hold_the_history():
    f = features()
    shop = dither.Catalogue(f, ARMS)
    shop.retire("a23")
    data = shop.to_bytes()
    for again in (dither.Catalogue.from_bytes(data), pickle.loads(pickle.dumps(shop)), copy.deepcopy(shop)):
        assert again.to_bytes() == data
        assert again.fingerprint == shop.fingerprint
        assert again.features == f
        assert again.encode(CONTEXT).tobytes() == shop.encode(CONTEXT).tobytes()
        again.add("new", ARMS["b1"])
        assert again.version == 5
    assert shop.version == 4
    other = dither.Catalogue(f, dict(reversed(ARMS.items())))
    assert other.fingerprint != shop.fingerprint
    known = json.loads(data)
    for wrong, words in [
        (b"", "no Catalogue, or a damaged one"),
        (data[:-3], "no Catalogue"),
        (b"[]", "no Catalogue"),
        (json.dumps(known | {"format": 2}).encode(), "its format is 2, and this version reads up to 1"),
        (json.dumps(known | {"events": known["events"][1:]}).encode(), "cannot follow version 0"),
        (data.replace(b'"mean":40.0', b'"mean":41.0'), "their fingerprint"),
        (data.replace(b'"retire"', b'"remove"'), "what happened must be one of"),
        (data.replace(b'"price":3.0', b'"price":"3"'), "'price' of arm 'b1' must be a number"),
    ]:
        assert wrong != data
        with pytest.raises(ValueError, match=words):
            dither.Catalogue.from_bytes(wrong)


def test_values_survive_the_way_through_a_file():
    from decimal import Decimal

    f = dither.Features(
        arm={"price": Numeric(0, 1), "tags": Text(8), "c": Category(["3", "True", "2.5"]), "h": Hashed(8)}
    )
    given = [
        {"price": Decimal("1.25"), "tags": {"x", "y", "z"}, "c": np.int64(3), "h": np.float64(2.0)},
        {"price": np.float32(0.1), "tags": ("a", "b", "a"), "c": np.True_, "h": None},
        {"price": True, "tags": "Some words", "c": 2.5, "h": 10**20},
    ]
    shop = dither.Catalogue(f, dict(enumerate(given)))
    again = dither.Catalogue.from_bytes(shop.to_bytes())
    assert again.encode(None).tobytes() == shop.encode(None).tobytes() == f.encode(None, given).tobytes()
    assert not f.unknown
    json.loads(shop.to_bytes())


def test_a_set_of_words_is_saved_in_one_order():
    code = """
import sys, dither
shop = dither.Catalogue(dither.Features(arm={"t": "text"}), {"a": {"t": {"x", "yy", "z", "ü", "w"}}})
sys.stdout.buffer.write(shop.to_bytes())
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = {
        subprocess.run([sys.executable, "-c", code], env=path | {"PYTHONHASHSEED": seed}, capture_output=True).stdout
        for seed in "12345"
    }
    assert len(found) == 1  # seen red: in the order of the set
    assert b'["w","x","yy","z","\\u00fc"]' in found.pop()


def test_another_process_follows_by_events():
    one, two = dither.Catalogue(features(), ARMS), dither.Catalogue(features())
    assert two.extend(one.events) == 3
    one.retire("a17")
    one.add("x", ARMS["b1"])
    told = json.loads(json.dumps(one.events))  # as a table of a database gives them
    assert two.extend(told) == 5
    assert two.extend(told) == 5
    assert two.to_bytes() == one.to_bytes()
    two.retire("x")
    one.retire("b1")
    with pytest.raises(ValueError, match=r"event 6 .* another one here: two histories"):
        two.extend(one.events)


def test_features_that_are_fitted_anew_take_the_history_over():
    shop = dither.Catalogue(features(), ARMS)
    shop.retire("a17")
    again = shop.encoded_by(features(arm={"price": Numeric(0, 1), "topic": ["news"]}))
    assert again.events == shop.events
    assert again.encode(CONTEXT, ["b1"])[0, list(again.features.columns).index("price")] == 3.0
    with pytest.raises(ValueError, match="arm 'a17' has no field 'title'"):
        shop.encoded_by(features(arm={"title": Text(4)}))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_is_at_work():
    shop = dither.Catalogue(features(), ARMS)
    held, go = threading.Event(), threading.Event()

    def hold():
        with shop._lock:
            held.set()
            go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    child = os.fork()
    if child == 0:
        os._exit(0 if shop.encode(CONTEXT).shape == (3, shop.features.dim) else 1)  # seen red: waits for ever
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_see_whole_arms():
    f = dither.Features(arm={"x": Numeric(0, 1), "y": Numeric(0, 1)}, intercept=False)
    shop = dither.Catalogue(f, {"a": {"x": 0, "y": 0}})
    done, wrong = threading.Event(), []

    def look():
        while not done.is_set():
            X = shop.encode(None, ["a"])
            if X[0, 0] != X[0, 1]:
                wrong.append(X)

    threads = [threading.Thread(target=look) for _ in range(2)]
    [thread.start() for thread in threads]
    for n in range(300):
        shop.change("a", {"x": n, "y": n})
        shop.add(str(n), {"x": 0, "y": 0})
    done.set()
    [thread.join() for thread in threads]
    assert not wrong
    assert shop.version == 601


class Lives(RuleBasedStateMachine):
    """Any interleaving of changes, against a dict that is encoded anew each time."""

    form = "shared"

    def __init__(self):
        super().__init__()
        self.f = features(form=self.form, **({"slots": 50} if self.form == "hybrid" else {}))
        self.shop = dither.Catalogue(self.f)
        self.order, self.records, self.retired, self.past = [], {}, set(), []

    values = st.fixed_dictionaries(
        {"price": st.one_of(st.none(), st.floats(-5, 5)), "topic": st.sampled_from(["news", "sport", "new", None])}
    )

    def remember(self):
        self.past.append((list(self.order), copy.deepcopy(self.records), set(self.retired)))

    @precondition(lambda self: len(self.order) < 50)
    @rule(record=values)
    def add(self, record):
        id = f"id{len(self.order)}"
        self.shop.add(id, record)
        self.order.append(id)
        self.records[id] = record
        self.remember()

    @precondition(lambda self: self.order)
    @rule(data=st.data(), record=values, part=st.sampled_from([("price",), ("topic",), ("price", "topic")]))
    def change(self, data, record, part):
        id = data.draw(st.sampled_from(self.order))
        self.shop.change(id, {name: record[name] for name in part})
        self.records[id] = self.records[id] | {name: record[name] for name in part}
        self.remember()

    @precondition(lambda self: len(self.order) > len(self.retired))
    @rule(data=st.data())
    def retire(self, data):
        id = data.draw(st.sampled_from([id for id in self.order if id not in self.retired]))
        self.shop.retire(id)
        self.retired.add(id)
        self.remember()

    @precondition(lambda self: self.retired)
    @rule(data=st.data())
    def restore(self, data):
        id = data.draw(st.sampled_from(sorted(self.retired)))
        self.shop.restore(id)
        self.retired.discard(id)
        self.remember()

    @rule()
    def save_and_load(self):
        self.shop = dither.Catalogue.from_bytes(self.shop.to_bytes())

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def look_back(self, data):
        version = data.draw(st.integers(1, len(self.past)))
        self.agrees(self.shop.at(version), *self.past[version - 1])

    @invariant()
    def is_the_dict(self):
        self.agrees(self.shop, self.order, self.records, self.retired)
        assert self.shop.version == len(self.past)

    def agrees(self, shop, order, records, retired):
        offered = [id for id in order if id not in retired]
        assert shop.ids == tuple(offered)
        assert shop.everything == tuple(order)
        assert_array_equal(shop.mask(), [id not in retired for id in order])
        if offered:
            slots = [order.index(id) for id in offered] if self.form == "hybrid" else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # arms that are drawn may be the same
                X = self.f.encode(CONTEXT, [records[id] for id in offered], slots=slots)
                assert shop.encode(CONTEXT).tobytes() == X.tobytes()
                assert shop.encode(CONTEXT, offered[::-1]).tobytes() == X[::-1].tobytes()


class HybridLives(Lives):
    form = "hybrid"


TestLives = Lives.TestCase
TestHybridLives = HybridLives.TestCase
TestLives.settings = settings(max_examples=30, stateful_step_count=20)
TestHybridLives.settings = TestLives.settings

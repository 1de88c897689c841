"""Logs of others: tables by naming their columns, the Open Bandit Dataset, Vowpal Wabbit's JSON and text."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dither import log

TABLE = {"what": ["b", "é", "b", "a"], "paid": [1.0, 0.0, 0.5, 1.0], "q": [0.5, 0.25, 0.8, 0.1], "user": [1, 2, 1, 3]}

# Any table


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow", "dict", "csv", "parquet"])
def test_any_table_by_naming_its_columns(kind, tmp_path):
    frame = pl.DataFrame(TABLE)
    frame.write_csv(tmp_path / "t.csv"), frame.write_parquet(tmp_path / "t.parquet")
    source = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": pd.DataFrame(TABLE),
        "arrow": pa.table(TABLE),
        "dict": TABLE,
        "csv": tmp_path / "t.csv",
        "parquet": str(tmp_path / "t.parquet"),
    }[kind]
    read = log.from_columns(source, arm="what", reward="paid", propensity="q")
    assert read.catalogue == ("a", "b", "é")
    assert_array_equal(read.a, [1, 2, 1, 0])
    assert_array_equal(read.r, TABLE["paid"])
    assert_array_equal(read.p, TABLE["q"])
    assert_array_equal(read.K, [3] * 4)
    assert_array_equal(read.column("user"), TABLE["user"])
    assert read.check().ok
    read.write(tmp_path / "log.parquet")
    again = log.read(tmp_path / "log.parquet")
    assert again.catalogue == read.catalogue
    assert_array_equal(again.a, read.a)
    assert_array_equal(next(log.batches(tmp_path / "log.parquet")).K, [3] * 4)
    assert again.by_arm().arms == ("a", "b", "é")
    # seen red: the catalogue in the order of appearance; not written with the file


def test_what_a_table_may_say():
    named = dict(arm="what", reward="paid", propensity="q")
    given_ = log.from_columns(TABLE, arms=["a", "b"], **named)
    assert_array_equal(given_.a, [1, -1, 1, 0])
    assert_array_equal(given_.check().findings[0].rows, [1])  # an arm that is not known
    offered = log.from_columns(
        TABLE | {"menu": [["a", "b"], ["é"], ["c", "d"], ["a"]], "ps": [[0.5, 0.5], [1.0], [0.2, 0.8], [1.0]]},
        arms="menu",
        probabilities="ps",
        **named,
    )
    assert_array_equal(offered.a, [1, 0, -1, 0])
    assert_array_equal(offered.K, [2, 1, 2, 1])
    assert_array_equal(offered.P[:, 0], [0.5, 1, 0.2, 1])
    assert_array_equal(log.from_columns(TABLE, arm="what", cost="paid", propensity="q").r, [-1, 0, -0.5, -1])
    none = log.from_columns(TABLE, arm="what", reward="paid")
    assert none.kind == "none"
    with pytest.raises(ValueError, match="kind 'none' cannot be used"):
        none.usable()
    assert log.from_columns(TABLE, kind="estimated", **named).kind == "estimated"
    whole = log.from_columns(TABLE | {"what": [3, 10, 3, 2]}, **named)
    assert whole.catalogue == ("2", "3", "10")
    assert log.from_columns(TABLE | {"what": [3.0, 10.0, 3.0, None]}, **named).catalogue == ("3", "10")
    assert list(log.from_columns(TABLE | {"e": ["x", "y", "z", "x"]}, id="e", **named).check().findings[0].rows) == [3]


def test_features_of_a_table():
    named = dict(arm="what", reward="paid", propensity="q")
    columns = TABLE | {"x1": [1, 2, 3, 4], "x2": [0.5, 0.25, 0.0, 1.0]}
    read = log.from_columns(columns, features=["x2", "x1"], **named)
    assert_array_equal(read.x, np.c_[columns["x2"], columns["x1"]])
    assert read.slots
    assert read.names == ("x2", "x1")
    flat = log.from_columns(TABLE | {"v": [[1.0, 2.0]] * 4}, features="v", **named)
    assert_array_equal(flat.x, [[1, 2]] * 4)
    rows = log.from_columns(TABLE | {"v": [[[1.0], [2.0], [3.0]]] * 4}, features="v", **named)
    assert_array_equal(rows.x, [[2], [3], [2], [1]])
    with pytest.raises(ValueError, match="lists of one length"):
        log.from_columns(TABLE | {"v": [[1.0], [1.0, 2.0]] * 2}, features="v", **named)
    with pytest.raises(ValueError, match="real numbers"):
        log.from_columns(TABLE, features=["user", "what"], arm="what", reward="paid")


def test_an_arm_on_offer_has_one_place():
    """Seen red with the first of two places, and with two arms of one id; and with an IndexError in `check`."""
    for ids in (["a", "a"], ["caf\u00e9", "cafe\u0301"]):
        frame = pl.DataFrame({"arm": ["b", ids[0]], "r": [1, 0], "propensity": [0.5, 0.5], "on": [["a", "b"], ids]})
        with pytest.raises(ValueError, match=f"'on' lists the arm '{ids[0]}' twice in row 1: each arm"):
            log.from_columns(frame, arm="arm", reward="r", arms="on")
    rows = {"arm": [0, 1], "reward": [1, 0], "propensity": [0.5, 0.5], "arms": [["a", "b"]] * 2, "K": [2, 3]}
    with pytest.raises(ValueError, match="row 1 lists 2 ids in 'arms', and says that K is 3"):
        log.read(rows).check()


def test_a_probability_that_is_missing_among_others_is_said():
    """Seen red without a word. A row without any has no list."""
    P = [[0.5, None], [0.5, 0.5], None]
    rows = {"arm": [0, 1, 0], "reward": [1, 0, 1], "propensity": [0.5] * 3, "probabilities": P, "K": [2] * 3}
    found = {f.text: f.rows.tolist() for f in log.read(pl.DataFrame(rows, strict=False)).check().findings}
    assert found == {"probabilities are missing for some arms on offer, or are no numbers": [0]}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(arm="item", reward="paid"), r"no column 'item'; it has 'what', 'paid', 'q', 'user'"),
        (dict(arm="what", reward="paid", propensity="p"), "no column 'p'"),
        (dict(arm="what", reward="paid", features=["x", "q"]), "no column 'x'"),
        (dict(arm="what"), "reward or cost"),
        (dict(arm="what", reward="paid", cost="q"), "reward or cost"),
        (dict(arm="what", reward="paid", zz="q"), "no column 'zz' to fill"),
        (dict(arm="what", reward="user", propensity="what"), "column 'propensity' .* must hold numbers, got String"),
        (dict(arm="what", reward="paid", arms=["a", "a"]), "different ids"),
        (dict(arm="what", reward="paid", arms="user"), "column of lists"),
    ],
)
def test_tables_that_do_not_fit(settings, words):
    with pytest.raises(ValueError, match=words):
        log.from_columns(pl.DataFrame(TABLE), **settings)


def test_tables_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no log at"):
        log.from_columns(tmp_path / "x.csv", arm="a", reward="r")
    with pytest.raises(ValueError, match="holds no rows"):
        log.from_columns(pl.DataFrame(TABLE).head(0), arm="what", reward="paid")


def test_the_open_bandit_dataset(tmp_path):
    lines = [
        ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1",
        "0,2019-11-24 00:00:13.004101+00:00,14,3,0,0.0125,81ce,0.0,1.0",
        "1,2019-11-24 00:00:14.004101+00:00,9,1,1,0.0125,81ce,0.0,0.0",
        "2,2019-11-24 00:00:15.004101+00:00,14,2,0,0.0125,abcd,2.0,0.0",
    ]
    (tmp_path / "men.csv").write_text("\n".join(lines))
    read = log.open_bandit(tmp_path / "men.csv", arms=range(34))
    assert_array_equal(read.a, [14, 9, 14])
    assert_array_equal(read.r, [0, 1, 0])
    assert_array_equal(read.p, [0.0125] * 3)
    assert_array_equal(read.K, [34] * 3)
    assert_array_equal(read.column("position"), [3, 1, 2])
    assert list(read.column("user_feature_0")) == ["81ce", "81ce", "abcd"]
    assert read.time[1] == np.datetime64("2019-11-24T00:00:14.004101")
    assert log.open_bandit(tmp_path / "men.csv").catalogue == ("9", "14")
    with pytest.raises(ValueError, match="no column 'item_id'"):
        log.open_bandit(pl.DataFrame(TABLE))
    (tmp_path / "men.csv").write_text("\n".join(lines).replace("9,1,1,", "9,1,2,"))
    with pytest.raises(ValueError, match=r"click must be 0 or 1, got 2 in row 1 of .*men\.csv: correct it"):
        log.open_bandit(tmp_path / "men.csv")  # seen red with a click that earns 2


# Vowpal Wabbit: JSON


def event(**changes):
    made = {
        "_label_cost": -1.5,
        "_label_probability": 0.7,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.5, "EventId": "e1"}],
        "Timestamp": "2026-02-03T04:05:06.7890000Z",
        "Version": "1",
        "EventId": "e1",
        "a": [2, 3, 1],
        "c": {
            "User": {"age": 3, "city": "Köln", "new": True, "old": False, "_id": "u"},
            "_multi": [{"T": {"a": 1}}, {"T": {"b": 0.5}}, {"T": [{"a": 2.0}]}],
        },
        "p": [0.7, 0.2, 0.1],
        "VWState": {"m": "N/A"},
    } | changes
    return json.dumps({k: v for k, v in made.items() if v is not None}, ensure_ascii=False)


def test_a_line_of_json_is_a_decision(tmp_path):
    path = tmp_path / "log.dsjson"
    lines = [event(), "", event(EventId="e2", _label_cost=0, pdrop=0.75), event(EventId="e3", _label_cost=None)]
    path.write_text("\n".join(lines), encoding="utf-8")
    read = log.dsjson(path, features=True)
    assert list(read.id) == ["e1", "e2", "e3"]
    assert_array_equal(read.a, [1] * 3)
    assert_array_equal(read.p, [0.7] * 3)
    assert_array_equal(read.r, [1.5, 0, np.nan])
    assert not math.copysign(1, read.r[1]) < 0
    assert_array_equal(read.P[0], [0.1, 0.7, 0.2])  # p is in the order of a
    assert_array_equal(read.column("weight"), [1, 4, 1])
    assert read.time[0] == np.datetime64("2026-02-03T04:05:06.789")
    assert read.names == ("T^a", "T^b", "User^age", "User^city=Köln", "User^new")
    assert_array_equal(read.X[0], [[1, 0, 3, 1, 1], [0, 0.5, 3, 1, 1], [2, 0, 3, 1, 1]])
    assert read.arm_ids()[0] == ["1", "2", "3"]
    found = {f.kind: f.rows.tolist() for f in read.check().findings}
    assert found == {"missing": [2], "thinned": [1]}
    # seen red: P in the order of p; the cost as the reward


def test_what_lines_of_json_may_lack():
    read = log.dsjson([event(_label_probability=None, _label_Action=None, _labelIndex=None)])
    assert (read.a, read.p) == (1, 0.7)
    tagged = event(c={"_multi": [{"_tag": "x"}, {"_tag": "y"}, {"_tag": "z"}]})
    assert log.dsjson([tagged]).arm_ids() == [["x", "y", "z"]]
    assert log.dsjson([event(a=[1, 2, 0])]).P.tolist() == [[0.1, 0.7, 0.2]]  # counted from 0
    fewer = log.dsjson([event(a=[2, 1], p=[0.7, 0.3])])
    assert fewer.P.tolist() == [[0.3, 0.7, 0]]
    assert log.dsjson([event(c={})]).K == 3


BAD_JSON = {
    "json": ("{not json", "it is no JSON"),
    "list": ("[1]", "is a JSON object, got list"),
    "lists": (event(p=[0.5]), "a has 3 actions and p 1 probabilities"),
    "no p": (event(p=None), "lists a and p"),
    "index": (event(_labelIndex=2), "not the same action"),
    "range": (event(_label_Action=9, _labelIndex=8), "number 9 of 3"),
    "twice": (event(a=[1, 1, 2]), "different actions"),
    "cost": (event(_label_cost="cheap"), "_label_cost must be a number, got 'cheap'"),
    "nan": (event(_label_cost=math.nan), "must be finite"),
    "pdrop": (event(pdrop=1.0), r"pdrop must be in \[0, 1\)"),
    "time": (event(Timestamp="yesterday"), "time must be"),
    "sum": (
        event(p=[0.7, 0.2, 0.2]),
        r"p must hold probabilities that sum to 1, got \[0.7, 0.2, 0.2\], which sum to 1.1",
    ),
    "negative": (event(p=[0.7, 0.4, -0.1]), "p must hold probabilities that sum to 1"),
    "true": (event(_label_cost=True), "_label_cost must be a number, got True"),
    "digits": (event(_label_cost="1_0"), "_label_cost must be a number, got '1_0'"),
    "long": (event(_label_cost=10**400), "_label_cost must be below 1.8e308"),
    "name twice": (event()[:-1] + ', "p": [0.1, 0.2, 0.7]}', "the name 'p' stands twice in one object"),
    "feature twice": (
        event(c={"_multi": [{}] * 3, "x": 1}).replace('"x": 1', '"x": 1, "x": 2'),
        "name 'x' stands twice",
    ),
    "case": (event(_Label_Cost=9), "_label_cost stands there twice, as -1.5 and as 9"),
    "reward line": ('{"EventId": "e1", "RewardValue": 1}', "object c and lists a and p"),
}


@pytest.mark.parametrize("fault", BAD_JSON)
def test_a_malformed_line_is_named_or_counted(fault):
    line, words = BAD_JSON[fault]
    lines = [event(), "\n", line, event(EventId="e2")]
    with pytest.raises(ValueError, match=words) as refused:
        log.dsjson(lines)
    assert "line 3 of the lines" in str(refused.value)
    read = log.dsjson(lines, malformed="leave out")
    assert len(read) == 2
    assert (read.report.read, read.report.used, read.report.left_out) == (3, 2, {"malformed": 1})
    used = read.usable()
    assert (used.report.read, used.report.used, used.report.left_out) == (3, 2, {"malformed": 1})
    with pytest.raises(ValueError, match="holds no decisions"):
        log.dsjson([line], malformed="leave out")


def test_lines_that_were_never_shown():
    lines = [event(), event(_skipLearn=True, EventId="e2")]
    with pytest.raises(ValueError, match="line 2 of the lines was never shown"):
        log.dsjson(lines)
    assert log.dsjson(lines, skipped="leave out").report.left_out == {"_skipLearn: never shown": 1}
    assert len(log.dsjson(lines, skipped="keep")) == 2
    with pytest.raises(ValueError, match="skipped must be"):
        log.dsjson(lines, skipped="drop")
    with pytest.raises(ValueError, match="several slots"):
        log.dsjson([event(_outcomes=[])], malformed="leave out")
    with pytest.raises(ValueError, match="more than 2 different features"):
        log.dsjson(lines[:1], features=True, most=2)
    with pytest.raises(FileNotFoundError, match="no log at"):
        log.dsjson("/nowhere/x.dsjson")


# Vowpal Wabbit: text


def test_a_line_of_text_is_a_decision(tmp_path):
    path = tmp_path / "cb.dat"
    path.write_text("1:2:0.4 'first | a c\n3:-0.5:0.2 | b:0.5 d\n\n4:1:0.5 |u:2 b city:Köln\n", encoding="utf-8")
    read = log.vw_text(path, features=True)
    assert_array_equal(read.a, [0, 2, 3])
    assert_array_equal(read.r, [-2, 0.5, -1])
    assert_array_equal(read.p, [0.4, 0.2, 0.5])
    assert_array_equal(read.K, [4] * 3)
    assert read.column("tag").tolist() == ["first", None, None]
    assert read.names == ("a", "b", "c", "d", "u^b", "u^city=Köln")
    assert_array_equal(read.X, [[1, 0, 1, 0, 0, 0], [0, 0.5, 0, 1, 0, 0], [0, 0, 0, 0, 2, 2]])
    assert read.slots
    assert_array_equal(log.vw_text(path, K=6, adf=False).K, [6] * 3)
    with pytest.raises(ValueError, match="K must be at least 4"):
        log.vw_text(path, K=3, adf=False)
    # seen red: actions from 0


@pytest.mark.parametrize("text", ["| a:1\n0:1:0.5 | b:12\n", "1:2:0.5 | a:3\n2:1:0.5 | a:12\n"])
def test_text_without_a_last_line_end_may_be_cut(tmp_path, text):
    """Seen red without a word, and with the feature 1 for 12."""
    path = tmp_path / "cut.dat"
    path.write_text(text)
    assert log.vw_text(path).r[-1] == -1
    path.write_text(text[:-2])
    with pytest.warns(UserWarning, match=r"cut.dat ends without the end of a line, as a file does that was cut"):
        log.vw_text(path)


def test_a_name_is_one_however_its_accents_were_typed():
    """Seen red with two columns, and with two arms of one name."""
    one, other = "caf\u00e9", "cafe\u0301"
    assert log.vw_text([f"1:1:0.5 | {one}", f"2:1:0.5 | {other}"], features=True).names == (one,)
    read = log.dsjson([event(c={"_multi": [{"x": name}, {}, {}]}) for name in (one, other)], features=True)
    assert read.names == (f"x={one}",)
    tagged = log.dsjson([event(c={"_multi": [{"_tag": other}, {"_tag": "b"}, {"_tag": "c"}]})])
    assert tagged.arm_ids() == [[one, "b", "c"]]


def test_actions_without_a_cost_were_on_offer():
    read = log.vw_text(["1 2:0.5:0.3 5 | x", "3:1:0.5 | x"])
    assert_array_equal(read.K, [3, 5])
    assert_array_equal(read.a, [1, 2])
    assert read.arm_ids() == [["1", "2", "5"], ["1", "2", "3", "4", "5"]]


def test_a_block_of_lines_is_a_decision():
    lines = ["shared | s:2", "| a:1", "0:-1:0.25 'e1 | b:3", "| a:0.5 b", "", "", "0:2:0.5 | a", "| b", ""]
    read = log.vw_text(lines, features=True)
    assert_array_equal(read.K, [3, 2])
    assert_array_equal(read.a, [1, 0])
    assert_array_equal(read.r, [1, -2])
    assert_array_equal(read.p, [0.25, 0.5])
    assert read.column("tag").tolist() == ["e1", None]
    assert read.names == ("a", "b", "s")
    assert_array_equal(read.X, [[[1, 0, 2], [0, 3, 2], [0.5, 1, 2]], [[1, 0, 0], [0, 1, 0], [0, 0, 0]]])


BAD_TEXT = {
    "bar": ("1:2:0.4 a c", "no | before the features"),
    "label": ("1:2 | a", "action:cost:probability, got '1:2'"),
    "none": ("1 2 | a", "one label action:cost:probability, got 0"),
    "two": ("1:1:0.5 2:1:0.5 | a", "got 2"),
    "cost": ("1:x:0.5 | a", "cost must be a number, got 'x'"),
    "nan": ("1:nan:0.5 | a", "cost must be finite"),
    "zero": ("0:1:0.5 | a", "actions count from 1, got 0"),
    "touch": ("1:1:0.5| a", "touches the |"),
    "scale": ("1:1:0.5 |n:x a", "scale of a namespace must be a number"),
    "infinite": ("1:1:0.5 | a:inf", "feature 'a' must be finite"),
    "digits": ("1_0:1:0.5 | a", "action must be a number, got '1_0'"),
}


@pytest.mark.parametrize("fault", BAD_TEXT)
def test_malformed_text_is_named_or_counted(fault):
    line, words = BAD_TEXT[fault]
    lines = ["1:1:0.5 | a", line, "2:1:0.5 | a"]
    with pytest.raises(ValueError, match=words.replace("|", r"\|")) as refused:
        log.vw_text(lines, features=True)
    assert "line 2 of the lines" in str(refused.value)
    read = log.vw_text(lines, features=True, malformed="leave out")
    assert (len(read), read.report.left_out) == (2, {"malformed": 1})


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (["| a", "| b"], "0 of 2 have one"),
        (["0:1:0.5 | a", "1:1:0.5 | b"], "2 of 2 have one"),
        (["| a", "shared | s", "0:1:0.5 | b"], "shared line must be the first"),
        (["0:1:0.5 1:1:0.5 | a"], "one label at most"),
    ],
)
def test_malformed_blocks(block, words):
    lines = ["shared | s", "0:1:0.5 | a", "", *block, "", "0:1:0.5 | a"]
    with pytest.raises(ValueError, match=words) as refused:
        log.vw_text(lines)
    assert "line 4 of" in str(refused.value)
    assert len(log.vw_text(lines, malformed="leave out")) == 2


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(-1e6, 1e6), st.floats(1e-6, 1)), min_size=1, max_size=20))
def test_labels_survive_the_text(rows):
    read = log.vw_text([f"{a}:{c!r}:{p!r} | x" for a, c, p in rows], K=9, adf=False)
    assert_array_equal(read.a, [a - 1 for a, _, _ in rows])
    assert_array_equal(read.r, [-c for _, c, _ in rows])
    assert_allclose(read.p, [p for *_, p in rows], rtol=0)


@pytest.mark.parametrize("number", ["1.5", "3000000000", "1e300"])
def test_actions_are_whole_numbers(number):
    """Seen red where 1.5 was action 1, and with an error of polars for what no int64 holds."""
    with pytest.raises(ValueError, match="line 2 of the lines: action"):
        log.vw_text(["1:1:0.5 | a", f"{number}:1:0.5 | a"])
    for wrong in ({"a": [1.5, 2, 3]}, {"_label_Action": 1.5}, {"_labelIndex": 0.5}):
        with pytest.raises(ValueError, match=r"line 1 of the lines: (a|_label_?\w+) must be a whole number"):
            log.dsjson([event(**wrong)])

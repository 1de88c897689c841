"""What Vowpal Wabbit means by its files: labels in any case, words, tags, other policies, apprentices, crosses."""

import gzip
import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log


def event(context=None, **changes):
    made = {
        "_label_cost": -1.0,
        "_label_probability": 0.5,
        "_label_Action": 1,
        "_labelIndex": 0,
        "a": [1, 2],
        "p": [0.5, 0.5],
        "c": context or {"_multi": [{"x": 1}, {"y": 1}]},
    } | changes
    return json.dumps({key: value for key, value in made.items() if value is not None})


# Labels


@pytest.mark.parametrize(
    "label",
    [
        {"_label_Cost": -2.0, "_label_Probability": 0.25, "_labelindex": 1},
        {"_label_COST": -2.0, "_label_PROBABILITY": 0.25, "_label_action": 2},
        {"_label": {"Cost": -2.0, "Probability": 0.25, "Action": 2}},
    ],
)
def test_labels_in_any_case(label):
    none = dict.fromkeys(("_label_cost", "_label_probability", "_label_Action", "_labelIndex"))
    read = log.dsjson([event(**none | label)])
    assert (read.r, read.p, read.a) == (2, 0.25, 1)  # seen red: no reward, p = 0.5, the first action


def test_apprentice_mode_is_said_and_read_by_choice():
    lines = [event(_label_cost=0.0, _original_label_cost=0.0), event(_label_cost=-0.0, _original_label_cost=-7.5)]
    with pytest.raises(ValueError, match=r"line 2 of the lines is of apprentice mode: .*cost='original'"):
        log.dsjson(lines)  # seen red: r = 0, and no word
    assert_array_equal(log.dsjson(lines, cost="original").r, [0, 7.5])
    assert_array_equal(log.dsjson(lines, cost="label").r, [0, 0])
    same = [event(_original_label_cost=-1.0)] * 3  # as a log that is not of that mode has it
    assert_array_equal(log.dsjson(same).r, [1] * 3)
    with pytest.raises(ValueError, match="cost must be"):
        log.dsjson(lines, cost="other")


# Features


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("| :1 :2", {"[0]": 1, "[1]": 2}),
        ("| :1 a :3", {"[0]": 1, "a": 1, "[1]": 3}),
        ("| the cat the", {"the": 2, "cat": 1}),
        ("|n:2 :3 b:0.5", {"n^[0]": 6, "n^b": 1}),
        ("|n a |n a", {"n^a": 2}),
    ],
)
def test_features_of_a_line_of_text(line, wanted):
    read = log.vw_text([f"1:0:0.5 {line}"], features=True)
    assert dict(zip(read.names, read.x[0], strict=True)) == wanted


def test_a_name_of_context_and_arm_counts_twice():
    block = ["shared | price:3", "0:1:0.5 | price:5", "| price:1", ""]
    assert_array_equal(log.vw_text(block, features=True).X[0], [[8], [4]])  # seen red: 5 and 1
    read = log.dsjson([event({"price": 3, "_multi": [{"price": 5}, {"price": 1}]})], features=True)
    assert_array_equal(read.X[0], [[8], [4]])


def test_text_is_words():
    context = {"q": {"_text": "the cat the"}, "_multi": [{"_text": "a b"}, {"t": {"_text": "a"}, "_note": "no"}]}
    read = log.dsjson([event(context)], features=True)
    assert read.names == ("a", "b", "q^cat", "q^the", "t^a")  # seen red: no words at all
    assert_array_equal(read.X[0], [[1, 1, 1, 2, 0], [0, 0, 1, 2, 1]])


def test_no_features_are_said():
    with pytest.raises(ValueError, match="holds no features: pass features=False"):
        log.dsjson([event({"_multi": [{}, {}]})], features=True)
    empty = log.read({"arm": [0], "reward": [1.0], "propensity": [0.5], "features": [[[], []]]})
    with pytest.raises(
        ValueError, match="features of the log have width 0"
    ):  # seen red: cannot reshape array of size 0
        _ = empty.X


# Lines and blocks


def test_a_tag_is_no_id():
    read = log.vw_text(["1:1:0.5 'u7| x", "2:1:0.5 'u7| x", "1:1:0.5 seed=1234| x"])
    assert read.column("tag").tolist() == ["u7", "u7", "seed=1234"]
    assert read.id.tolist() == [None] * 3
    assert not [f for f in read.check().findings if f.refused]  # seen red: "id came before"


def test_the_action_of_another_policy():
    read = log.vw_text(["3 1:1:0.5 | x", "1 2:1:0.5 | x"])
    assert_array_equal(read.K, [3, 3])  # seen red: 2, the arms 1 and 3 on offer
    assert_array_equal(read.a, [0, 1])
    assert read.column("other").tolist() == ["3", "1"]
    assert "other" not in log.vw_text(["1:1:0.5 | x"]).frame.columns


def test_a_line_without_a_label_is_a_line_to_predict_for():
    lines = ["1:1:0.5 | a", "2:0:0.5 | b", "| c", "1:0:0.5 | d"]
    read = log.vw_text(lines)  # seen red: taken for blocks, "3 of 4 have one"
    assert_array_equal(read.a, [0, 1, 0])
    assert read.report.left_out == {"no label: a line to predict for": 1}
    assert (read.report.read, read.usable().report.read) == (4, 4)
    apart = log.vw_text([line for text in lines for line in (text, "")])
    assert_array_equal(apart.a, read.a)
    block = log.vw_text(["| a", "0:1:0.5 | b", "", "0:1:0.5 | a", "| b"])
    assert_array_equal(block.K, [2, 2])


@pytest.mark.parametrize(
    "lines", [["ccb shared | a", "ccb action | b", "ccb slot 0:1:0.5 0:0.5 | c"], ["slates shared 1 | a"]]
)
def test_slots_are_refused_as_such(lines):
    with pytest.raises(ValueError, match=r"several slots \(CCB or slates\)"):  # seen red: "one label, got 0"
        log.vw_text(lines)


def test_K_and_cross_are_for_one_form_each():
    with pytest.raises(ValueError, match="K is for files with one line a decision"):  # seen red: ignored
        log.vw_text(["shared | s", "0:1:0.5 | a", "| b"], K=3)
    for more, words in [({"cross": True}, "cross=True is for"), ({"names": ["x"]}, "names= is for")]:
        with pytest.raises(ValueError, match=f"{words} features that are read: pass features=True"):
            log.dsjson([event()], **more)  # seen red: ignored
    with pytest.raises(ValueError, match="cross is for blocks of lines"):
        log.vw_text(["1:1:0.5 | a"], features=True, cross=True)


def test_packed_lines(tmp_path):
    lines = [event(), event(_label_cost=-3.0)]
    path = tmp_path / "log.dsjson.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert_array_equal(log.dsjson(path).r, [1, 3])  # seen red: "not UTF-8"
    (tmp_path / "cb.dat").write_bytes(gzip.compress(b"1:1:0.5 | x\n2:0:0.5 | x\n"))
    assert_array_equal(log.vw_text(tmp_path / "cb.dat").a, [0, 1])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        log.dsjson(path)


# A context that all arms share


def test_a_shared_context_is_crossed_with_the_arms():
    rng = np.random.default_rng(0)
    lines = []
    for i in range(200):
        place, arm = ("north", "south")[i % 2], int(rng.integers(2))
        reward = float((place == "north") == (arm == 0))  # the arm to show depends on the context alone
        more = {"_label_cost": -reward, "_label_Action": arm + 1, "_labelIndex": arm}
        lines.append(event({"place": place, "_multi": [{"red": 1}, {"blue": 1}]}, **more))
    plain, crossed = (log.dsjson(lines, features=True, cross=cross) for cross in (False, True))
    assert crossed.names == (
        *("blue", "place=north", "place=north*blue", "place=north*red"),
        *("place=south", "place=south*blue", "place=south*red", "red"),
    )
    right = {}
    for name, read in (("plain", plain), ("crossed", crossed)):
        bandit = dither.LinFP(dim=len(read.names), lam=1.0, seed=0)
        log.warm_start(bandit, read)
        best = np.argmax(bandit.mean(read.X), axis=1)
        right[name] = np.mean(best == np.arange(200) % 2)
    assert right == {"plain": 0.5, "crossed": 1.0}


def test_arms_with_the_same_features_are_said_once():
    same = event({"place": "north", "_multi": [{}, {}]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read = log.dsjson([same] * 5, features=True)
    assert [str(one.message)[:60] for one in caught] == [
        "the arms of each row of the lines have the same features: a "[:60]
    ]
    assert_array_equal(read.X[0, 0], read.X[0, 1])
    made = log.dsjson([same], features=True, cross=True)  # without features of its own an arm is crossed by its id
    assert made.names == ("arm=1", "arm=2", "place=north", "place=north*arm=1", "place=north*arm=2")
    assert_array_equal(made.X[0], [[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]])
    apart = log.dsjson(
        [same, event()], features=True
    )  # one row tells the arms apart: no warning, which is an error here
    assert len(apart) == 2


# Probabilities of six digits


def test_probabilities_of_six_digits_are_normalised():
    from dither import ope
    from dither.deciding import inputs

    Q = np.array([[0.333333, 0.333333, 0.333333], [0.5, 0.25, 0.25], [0.2, 0.2, 0.2], [0.5, 0.6, -0.1]])
    made, proper = inputs.shares(Q)
    assert proper.tolist() == [True, True, False, False]
    assert_allclose(made[0], 1 / 3, rtol=1e-15)
    assert_array_equal(made[1:], Q[1:])
    n = 30
    r, a = np.arange(n) % 2 * 1.0, np.arange(n) % 3
    got = ope.ips(r, a, np.full(n, 1 / 3), np.tile(Q[0], (n, 1)))  # seen red: "Q must hold probabilities that sum to 1"
    assert_allclose(got.value, r.mean(), rtol=1e-12)
    with pytest.raises(ValueError, match="Q must hold probabilities"):
        ope.ips(r, a, np.full(n, 1 / 3), np.tile([0.33333, 0.33333, 0.33333], (n, 1)))
    read = log.dsjson([event(p=[0.999999 / 2, 0.5]), event(p=[0.4999995, 0.4999995], _label_probability=0.4999995)])
    assert not [f for f in read.check().findings if f.kind == "weights" and "sum" in f.text]

"""Names of features: one name, one column, over files, logs that are read together, and bandits."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log
from dither.ope import candidates


def lines(cost, *actions, n=20):
    event = {
        "_label_cost": cost,
        "_label_probability": 1 / len(actions),
        "_label_Action": 1,
        "_labelIndex": 0,
        "a": list(range(1, len(actions) + 1)),
        "p": [1 / len(actions)] * len(actions),
        "c": {"_multi": [{name: 1} for name in actions]},
    }
    return [json.dumps(event)] * n


def taught(monday):
    bandit = dither.LinFP(dim=2, lam=1.0, seed=0, preset="paper")
    log.warm_start(bandit, monday)
    return bandit


def test_a_name_is_one_column_in_every_file():
    monday = log.dsjson(lines(-1, "red", "blue"), features=True)
    tuesday = log.dsjson(lines(0, "blue", "red"), features=True)
    assert monday.names == tuesday.names == ("blue", "red")
    bandit = taught(monday)
    slow = dither.LinFP(dim=2, lam=1.0, seed=0, preset="paper")
    slow.update(np.tile([1.0, 0.0], (20, 1)), np.ones(20))  # red alone, here first
    assert_allclose(bandit.propensities(tuesday.X)[0], slow.propensities([[0.0, 1.0], [1.0, 0.0]]), rtol=1e-12)
    assert_allclose(bandit.propensities(tuesday.X)[0], [0.112, 0.888], atol=5e-4)
    # seen red: columns by order of appearance, [0.888, 0.112]
    texts = [log.vw_text([f"0:-1:0.5 | {a}", f"| {b}", ""], features=True) for a, b in (("x", "y"), ("y", "x"))]
    assert texts[0].names == texts[1].names == ("x", "y")
    assert_array_equal(texts[0].X[0], texts[1].X[0][::-1])


def test_logs_that_are_read_together_get_the_columns_of_all(tmp_path):
    one = log.dsjson(lines(-1, "red", "blue", n=3), features=True)
    two = log.dsjson(lines(0, "green", "red", n=2), features=True)
    one.write(tmp_path / "one.parquet"), two.write(tmp_path / "two.parquet")
    for sources in ([one, two], [tmp_path / "one.parquet", two], [tmp_path / "one.parquet", tmp_path / "two.parquet"]):
        for both in (log.read(sources), log.read(sources[::-1]).filter(np.array([False] * 2 + [True] * 3))):
            assert both.names == ("blue", "green", "red")
            assert_array_equal(both.X[0], [[0, 0, 1], [1, 0, 0]])
        assert_array_equal(log.read(sources).X[-1], [[0, 1, 0], [0, 0, 1]])
        parts = list(log.batches(sources, rows=2))
        assert {part.names for part in parts} == {("blue", "green", "red")}
        assert_array_equal(np.concatenate([part.X for part in parts]), log.read(sources).X)
    log.read([one, two]).write(tmp_path / "both.parquet")
    again = log.read(tmp_path / "both.parquet")
    assert (again.names, again.sparse) == (("blue", "green", "red"), True)  # seen red: names lost by `write`
    fixed = log.dsjson(lines(0, "red", "blue"), features=True, names=["red", "green", "blue"])
    assert_array_equal(fixed.X[0], [[1, 0, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="line 1 of the lines has the feature 'green', which names= lacks"):
        log.dsjson(lines(0, "green", "red"), features=True, names=one.names)
    with pytest.raises(ValueError, match="names must be different"):
        log.dsjson(lines(0, "green", "red"), features=True, names=["a", "a"])


def test_columns_that_a_table_lacks_are_not_zero():
    table = {"arm": [0, 1], "r": [1.0, 0.0], "x": [1.0, 2.0], "y": [3.0, 4.0]}
    named = dict(arm="arm", reward="r", arms=2)
    xy, yx = (log.from_columns(table, features=list(names), **named) for names in ("xy", "yx"))
    assert_array_equal(log.read([xy, yx]).x, [[1, 3], [2, 4]] * 2)  # seen red: concatenated by place
    with pytest.raises(ValueError, match="lack 'y', which other files have"):
        log.read([xy, log.from_columns(table, features=["x"], **named)])
    plain = log.read({"arm": [0], "reward": [1.0], "propensity": [0.5], "features": [[[1.0, 2.0]]]})
    with pytest.raises(ValueError, match=r"have names and those of .* have none"):
        log.read([xy, plain])


def test_a_bandit_that_learnt_names_gets_the_log_by_name_or_not_at_all(tmp_path):
    monday = log.dsjson(lines(-1, "red", "blue"), features=True)
    live = dither.LinFP(dim=2, lam=1.0, seed=0, preset="paper")
    frame = pd.DataFrame([[1.0, 0.0], [0.0, 1.0]], columns=["red", "blue"])
    live.choose(frame)
    log.warm_start(live, monday)  # seen red: blue learnt as red
    assert live.columns == ("red", "blue")
    assert_allclose(live.theta, [20 / 21, 0], atol=1e-12)
    green = log.dsjson(lines(0, "green", "red"), features=True)
    with pytest.raises(ValueError, match=r"other features than the bandit learnt: 'blue', 'green' differ.*names="):
        log.warm_start(live, green)
    assert live.observations == 20
    bandit = taught(monday)
    assert bandit.columns == ("blue", "red")  # seen red: None, so that a frame in another order went by place
    bandit.save(tmp_path / "b.npz")
    again = dither.load(tmp_path / "b.npz")
    assert again.columns == ("blue", "red")
    assert_allclose(again.mean(frame), [20 / 21, 0], atol=1e-12)
    with pytest.raises(ValueError, match="other features than the bandit learnt"):
        candidates.Saved("b", again).shown(green)
    assert_allclose(candidates.Saved("b", live).shown(monday).Q, live.propensities(np.tile(np.eye(2), (20, 1, 1))))


def test_names_travel_with_what_a_live_bandit_writes(tmp_path):
    bandit = dither.LinFP(dim=2, lam=1.0, seed=0, preset="paper")
    frames = [pl.DataFrame({"b": [1.0, 0.0], "a": [0.0, 1.0]}), pl.DataFrame({"a": [2.0, 0.0], "b": [0.0, 2.0]})]
    with log.Log(tmp_path / "log", bandit=bandit) as written:
        for frame in frames:
            written.reward(written.decide(frame).id, 1.0)
    for read in (log.read(tmp_path / "log"), next(log.batches(tmp_path / "log"))):
        assert read.names == ("b", "a")  # seen red: None
        assert_array_equal(read.X, [[[1, 0], [0, 1]], [[0, 2], [2, 0]]])
    memory = log.Log(bandit=bandit)
    memory.decide(frames[0])
    assert memory.read().names == ("b", "a")


def test_slots_of_actions_that_count_from_1():
    events = [
        json.dumps(
            {
                "_label_cost": -r,
                "_label_probability": 0.5,
                "_label_Action": i + 1,
                "_labelIndex": i,
                "a": [1, 2, 3],
                "p": [0.5, 0.25, 0.25],
                "c": {"x": 1, "_multi": [{}, {}, {}]},
            }
        )
        for i, r in enumerate([0.1, 0.9, 0.0])
    ]
    read = log.dsjson(events)
    context = pl.Series("features", [[[1.0]]] * 3)
    bandit = dither.LinFP(dim=1, disjoint=3, lam=1e-9, seed=0, preset="paper")
    log.warm_start(bandit, log.Logged(read.frame.with_columns(context), catalogue=read.catalogue))
    assert_allclose(bandit.theta[:, 0], [0.1, 0.9, 0], atol=1e-6)  # seen red: [0, 0.1, 0.9]
    some = log.vw_text(["2 5:-1:0.5 6| x", "1:-0.5:0.5 | x"], features=True)  # offered 2, 5, 6; slot 4 was shown
    bandit = dither.LinFP(dim=1, disjoint=6, lam=1e-9, seed=0, preset="paper")
    log.warm_start(bandit, some)
    assert_allclose(bandit.theta[:, 0], [0.5, 0, 0, 0, 1, 0], atol=1e-6)  # seen red: the place among those on offer


def test_logs_of_more_and_of_fewer_actions_are_read_together():
    one, two = log.dsjson(lines(-1, "x", "y", n=2)), log.dsjson(lines(0, "x", "y", "z", n=1))
    both = log.read([one, two])
    assert both.arm_ids() == [["1", "2"]] * 2 + [["1", "2", "3"]]
    assert_array_equal(both.K, [2, 2, 3])
    plain = {"arm": [0], "reward": [1.0], "propensity": [0.5]}
    with pytest.raises(ValueError, match="does not say which arms its positions are"):  # seen red: took the other's
        log.read([log.from_columns({"c": ["b"], "r": [1.0]}, arm="c", reward="r"), plain])


def test_a_replay_goes_by_name():
    monday = log.dsjson(lines(-1, "red", "blue"), features=True)
    live = dither.Bandit(dither.models.Ridge(lam=1.0), dither.policies.Greedy(), dim=2, seed=0)
    live.update(pd.DataFrame([[1.0, 0.0]], columns=["red", "blue"]), [1.0])
    got = dither.ope.replay(live, monday)  # its best guess is red, the arm that was shown
    assert (got.left_out, got.value) == ({}, 1.0)  # seen red: 20 disagreed

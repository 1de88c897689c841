"""Logs that were shown uniformly are played by replay. Each test says what was broken to see it red."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from dither.bandit.bandit import Bandit
from dither.base import streams
from dither.simulation.simulate import configured
from dither_bench import bakeoff
from dither_bench.define import environments, others, replayed
from dither_bench.run import replaying

ARMS = 3


@pytest.fixture
def table(tmp_path):
    """A table as the Open Bandit Dataset has it: a click where the user's letter is the item."""
    rng = np.random.default_rng(0)
    n = 300
    user, item = rng.integers(ARMS, size=n), rng.integers(ARMS, size=n)
    columns = {
        "timestamp": np.arange(n),
        "item_id": 10 * item,
        "position": rng.integers(1, 4, size=n),
        "click": (user == item).astype(int),
        "propensity_score": np.full(n, 1 / ARMS),
        "user_feature_0": [f"hash{u}" for u in user],
    }
    path = tmp_path / "all.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_a_table_of_open_bandit(table):
    """Position and user features are 0 and 1, standardised, with an intercept. Seen red with item_id as the arm."""
    env = replayed.log(str(table))
    assert (env.arms, env.dim, env.disjoint, env.name) == (ARMS, 7, True, "all")
    assert sorted(set(env.y)) == [0, 1, 2]
    assert np.all(env.X[:, -1] == 1)
    assert env.rounds == int(100 - 4 * np.sqrt(300 * 2 / 9))


def test_rows_count_where_the_arm_is_the_one_shown(table):
    """By a loop. Seen red with rows in the order of the file."""
    (spec,) = bakeoff.baking(["LinTS"], ["iris"]).panels[0].algorithms
    env, T = replayed.log(str(table)), 40
    (lost, _) = replaying.play(
        env, {"a": spec}, runs=range(2), rounds=T, marks=np.arange(1, T + 1), seed=7, tell=lambda part: None
    )["a"]
    for run in range(2):
        order = env.start(streams.stream(7, run, "instance")).next(len(env.X))
        seed = int(streams.stream(7, run, "policy").integers(2**63))
        bandit = Bandit(*configured(spec, env, rounds=T), dim=env.dim, seed=seed)
        wanted = []
        for i in order:
            if int(bandit.choose(env.X[i]).arm) == env.y[i]:
                bandit.update(env.X[i], env.r[i], arm=int(env.y[i]))
                wanted.append(1 - env.r[i])
        assert_allclose(lost[run], np.cumsum(wanted)[:T])


def test_a_log_is_a_set_of_the_bake_off(table, tmp_path):
    """Kept or not, the losses are the same; a row that counts and was clicked costs nothing.

    Seen red with the simulator in the place of the replay: an arm that was not shown costs the click.
    """
    size = dict(folder=table.parent, rounds=None, shuffles=2)
    loose = bakeoff.play(["Greedy", "EpsGreedy"], ["all"], **size)
    kept = bakeoff.play(["Greedy", "EpsGreedy"], ["all"], out=tmp_path / "out", **size)
    assert_allclose(loose.loss, kept.loss, rtol=1e-12)
    assert loose.mean.max() < loose.sets[0].random
    pl.read_csv(table).with_columns(click=pl.lit(1)).write_csv(table.parent / "clicked.csv")
    assert np.all(bakeoff.play(["Greedy"], ["clicked"], **size).loss == 0)


def test_what_cannot_be_replayed(table):
    """Seen red without the checks."""
    frame = pl.read_csv(table)
    frame.with_columns(propensity_score=pl.lit(0.2)).write_csv(table.parent / "skewed.csv")
    with pytest.raises(ValueError, match="shown uniformly"):
        replayed.log(str(table.parent / "skewed.csv"))
    frame.drop("click").write_csv(table.parent / "lacking.csv")
    with pytest.raises(LookupError, match="click"):
        replayed.log(str(table.parent / "lacking.csv"))
    with pytest.raises(ValueError, match="has changed"):
        replayed.log(str(table), checksum="0" * 16)
    with pytest.raises(RuntimeError, match="rounds were asked for"):
        replaying.play(
            replayed.log(str(table)),
            {"a": bakeoff.baking(["Greedy"], ["iris"]).panels[0].algorithms[0]},
            runs=range(1), rounds=299, marks=np.array([299]), seed=0, tell=lambda part: None,
        )  # fmt: skip


def test_other_libraries_do_not_replay(table, monkeypatch):
    """Seen red without the check: the arms that were not shown would earn nothing."""
    monkeypatch.setattr(others, "version_of", lambda *where: "1.0")
    with pytest.raises(ValueError, match="all is a log"):
        bakeoff.play(others.others(["coba"]), ["all"], folder=table.parent, out=table.parent / "out")


def test_a_log_is_known_by_name_and_content(table, tmp_path):
    """Seen red with the folder in its identity."""
    there = environments.identity(environments.describe("replayed", data=str(table)))
    assert (there["data"], there["checksum"]) == ("all", replayed.fingerprint(str(table)))

"""`evaluate` where nothing is known of missing rewards but their range."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from dither import ope
from longer import size

BETTER = np.array([0.2, 0.2, 0.6])


def table(seed, n=600, lost=0.05):
    """Three arms at random, rewards of 0 and 1; rewards of 1 are lost far more often, and those of arm 2 most."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    r = (rng.random(n) < BETTER[a]).astype(float)
    gone = rng.random(n) < lost * (1 + 2 * r * (a == 2))
    seen = [None if g else x for g, x in zip(gone.tolist(), r.tolist(), strict=True)]
    return pl.DataFrame(dict(arm=a, propensity=np.full(n, 1 / 3), reward=seen, K=np.full(n, 3))), r, a


def test_values_are_those_of_the_arrays():
    frame, _, a = table(0)
    seen = frame["reward"].to_numpy()
    found = ope.evaluate(frame, ["arm:2"], ["ips", "snips"], missing="bounds", reward_range=(0, 1))
    assert found.unknown == frame["reward"].null_count()
    for name in ("ips", "snips"):
        e = ope.bounds(
            name, seen, a, np.full(600, 1 / 3), np.tile([0.0, 0, 1], (600, 1)), reward_range=(0, 1), level=0.975
        )
        one = found.estimates["arm:2", name]
        assert_allclose(one.interval, e.interval, rtol=1e-10)
        assert_allclose(one.value, (e.low.value + e.high.value) / 2, rtol=1e-10)
    assert any("the intervals hold whatever they were" in note for note in found.notes())


def test_what_was_lost_where_the_policy_differs_counts_against_it():
    """Three in ten rewards of arm 0 are lost, and all were 1. seen red: the hull of the two differences alone."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 3000)
    r = np.where(a == 0, 1.0, (rng.random(3000) < 0.6).astype(float))
    seen = pl.Series("reward", np.where((a == 0) & (rng.random(3000) < 0.3), None, r).tolist(), dtype=pl.Float64)
    frame = pl.DataFrame(dict(arm=a, propensity=np.full(3000, 1 / 3), reward=seen, K=np.full(3000, 3)))
    found = ope.evaluate(frame, ["arm:1", "arm:2"], ["ips"], missing="bounds", reward_range=(0, 1))
    assert found.gap("arm:2", "ips").interval[0] < 0.6 - 2.2 / 3 < found.gap("arm:2", "ips").interval[1]
    by_zero = ope.evaluate(frame, ["arm:2"], ["ips"], missing=0).gap("arm:2", "ips")
    assert by_zero.interval[0] > 0.6 - 2.2 / 3  # 0 for what is missing misses it


@pytest.mark.parametrize("other", ["logging", "arm:0"])
def test_differences_hold_whatever_was_lost(other):
    """The difference to what ran, and to another policy. At most 5 % of logs may miss it; all hold what was lost."""
    logs, missed = size(60, longer=150), 0
    truth = 0.6 - (1 / 3 if other == "logging" else 0.2)
    for seed in range(logs):
        frame, r, a = table(seed, lost=0.1)
        policies = ["arm:2"] if other == "logging" else ["arm:0", "arm:2"]
        found = ope.evaluate(frame, policies, ["ips"], missing="bounds", reward_range=(0, 1)).gap("arm:2", "ips", other)
        missed += not found.interval[0] <= truth <= found.interval[1]
        w = 3 * (a == 2) - (np.ones(600) if other == "logging" else 3 * (a == 0))
        assert found.interval[0] <= np.mean(w * r) <= found.interval[1]
    assert missed / logs <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / logs)


def test_every_way_to_fill_in_is_within():
    """Eight rows, three lost: the differences of all fillings lie within the bounds of the point estimates."""
    frame, r, a = table(3, n=60)
    lost = [5, 20, 41]
    seen = np.where(np.isin(np.arange(60), lost), None, r)
    frame = frame.with_columns(pl.Series("reward", seen.tolist(), dtype=pl.Float64))
    found = ope.evaluate(frame, ["arm:2"], ["ips"], missing="bounds", reward_range=(0, 1))
    for filled in itertools.product((0.0, 1.0), repeat=3):
        full = r.copy()
        full[lost] = filled
        gap = np.mean((3 * (a == 2) - 1) * full)
        assert found.gap("arm:2", "ips").interval[0] < gap < found.gap("arm:2", "ips").interval[1]


def test_verdicts_and_the_command(tmp_path, dither):
    frame, _, _ = table(0, n=3000)
    frame.write_parquet(tmp_path / "log.parquet")
    common = ("evaluate", tmp_path / "log.parquet", "--policy", "arm:2", "--missing", "bounds")
    code, out, _ = dither(*common, "--reward-range", "0", "1")
    assert code == 0
    assert "arm:2: better than what ran" in out
    table(0, n=3000, lost=0.25)[0].write_parquet(tmp_path / "log.parquet")
    code, out, _ = dither(*common, "--reward-range", "0", "1")
    assert "rewards are missing, and what they were can turn it" in " ".join(out.split())
    code, _, err = dither(*common)
    assert code == 2
    assert "--reward-range LOW HIGH" in err


def test_nothing_missing_costs_half_the_probability():
    frame, _, _ = table(1, lost=0.0)
    found = ope.evaluate(frame, ["arm:2"], ["ips"], missing="bounds", reward_range=(0, 1))
    plain = ope.evaluate(frame, ["arm:2"], ["ips"], level=0.975)
    assert_allclose(found.gap("arm:2", "ips").interval, plain.gap("arm:2", "ips").interval, rtol=1e-12)
    assert found.unknown == 0

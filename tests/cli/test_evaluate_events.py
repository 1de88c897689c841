"""Verdicts where few events came, or none; where weights are constant; how a policy without support is drawn."""

import warnings

import numpy as np
import polars as pl
import pytest
from test_evaluate_verdicts import judge, log

import dither as library
from dither import log as logs
from dither.cli import picture
from dither.ope import verdicts
from dither.ope.bounded import IntervalSettings

RATES = np.array([0.0005, 0.004, 0.0005, 0.0005])


def shop(tmp_path, rng, n, rates, **columns):
    a = rng.integers(0, 4, n)
    return log(tmp_path, a, (rng.random(n) < rates[a]).astype(float), np.full(n, 0.25), K=4, **columns)


@pytest.mark.parametrize("estimator", ["snips", "ips"])
def test_no_event_is_not_the_same(tmp_path, estimator):
    """seen red: "the same as what ran", interval [0, 0]."""
    path = shop(tmp_path, np.random.default_rng(0), 400, np.zeros(4))
    found, (said,) = judge(path, "arm:1", estimators=[estimator])
    assert said.word == "unclear"
    assert said.text.startswith("cannot be told apart from what ran: 0.0")
    assert "none of the " in said.text
    assert "differs from 0; the interval holds for rewards from 0 to 1 that these rows do not show" in said.text
    shown = int((pl.read_parquet(path)["arm"] == 1).sum())
    value, gap = found.estimates["arm:1", estimator], found.gap("arm:1", estimator)
    assert value.interval == pytest.approx((0, 1 - 0.025 ** (1 / shown)))
    assert gap.interval == pytest.approx((-(1 - 0.0125 ** (1 / 400)), 1 - 0.0125 ** (1 / shown)))
    assert any("widened to hold for events that these rows do not show" in note for note in verdicts.notes(found))


def test_rare_events_do_not_deceive(tmp_path):
    """60 logs of 300 rows, an arm worth 2.9 times what ran: never the same, never worse, and the interval holds it.

    seen red: "the same" in 43 of 60
    """
    rng, truth, held = np.random.default_rng(1), 0.004 - RATES.mean(), 0
    for _ in range(60):
        found, (said,) = judge(shop(tmp_path, rng, 300, RATES), "arm:1")
        assert said.word in ("unclear", "better")
        low, high = found.gap("arm:1", "snips").interval
        held += low <= truth <= high
    assert held >= 57 - 5 * np.sqrt(60 * 0.05 * 0.95)


def test_clicks_of_others_make_no_arm_worse(tmp_path):
    """Shown 75 times without a click, where others had 6 in 225: chance in one of six. seen red: "worse"."""
    a = np.repeat([0, 1, 2, 3], 75)
    r = np.zeros(300)
    r[[0, 10, 160, 170, 240, 250]] = 1
    _, (said,) = judge(log(tmp_path, a, r, np.full(300, 0.25), K=4), "arm:1")
    assert said.word == "unclear"
    r[a != 1] = np.arange(225) % 2  # but every second time is no chance
    _, (said,) = judge(log(tmp_path, a, r, np.full(300, 0.25), K=4), "arm:1")
    assert said.word == "worse"


def test_one_reward_of_unknown_range_has_no_interval(tmp_path):
    a = np.arange(200) % 4
    path = log(tmp_path, a, np.full(200, 3.7), np.full(200, 0.25), K=4)
    _, (said,) = judge(path, "arm:1")
    assert said.word == "unclear"
    assert (
        "differs from 3.7, and nothing says what others there could have been: say it with --reward-range" in said.text
    )
    found, (said,) = judge(path, "arm:1", how=IntervalSettings(reward_range=(0.0, 10.0)))
    assert said.word == "unclear"
    assert "rewards from 0 to 10" in said.text
    low, high = found.gap("arm:1", "snips").interval
    assert low < 0 < high


def test_weights_that_are_constant_and_not_1_are_not_supported(tmp_path):
    """seen red: a verdict, as no test tells in eight rows."""
    n = 8
    path = log(tmp_path, np.ones(n, int), np.arange(n) / n, np.full(n, 0.5))
    _, (said,) = judge(path, "arm:1")
    assert said.word == "unsupported"
    assert said.text == (
        "not supported by this log: all weights are 2 and not 1, so no row shows what the policy would show less "
        "often. Log more, or check the propensities."
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_right_log_with_a_floor_is_not_accused(tmp_path, known):
    """30 arms, floor 0.05, "always arm 3", 900 rows: few effective rows, and no word against the propensities.

    seen red: "not what they are said to be" in 19 to 36 of 100 logs
    """
    rng, n, K = np.random.default_rng(2), 900, 30
    for _ in range(20):
        best = np.where(rng.random(n) < 0.03, 3, 4 + rng.integers(0, K - 4, n))
        P = np.full((n, K), 0.05 / K)
        P[np.arange(n), best] += 0.95
        a = np.where(rng.random(n) < 0.05, rng.integers(0, K, n), best)
        columns = {"probabilities": P.tolist()} if known else {"floor": np.full(n, 0.05)}
        _, (said,) = judge(log(tmp_path, a, rng.random(n), P[np.arange(n), a], K=K, **columns), "arm:3")
        assert said.word == "unsupported"
        assert "of 900 rows, as it were, carry the estimate" in said.text


def test_four_rows_of_which_one_carries_all(tmp_path):
    path = log(tmp_path, [0, 1, 1, 1], [1.0, 0.0, 1.0, 0.0], [0.01, 0.99, 0.99, 0.99], q=[0.7, 0.3, 0.3, 0.3])
    _, (said,) = judge(path, "column:q")
    assert said.text.startswith("not supported by this log: only 1 of 4 rows, as it were, carry the estimate")


def test_a_policy_that_is_not_supported_is_not_drawn_as_sure(tmp_path):
    """seen red: a full point with a line."""
    a = np.arange(400) % 2
    path = log(
        tmp_path, a, np.random.default_rng(0).random(400), np.full(400, 0.5), K=3, probabilities=[[0.5, 0.5, 0]] * 400
    )
    found, said = judge(path, "uniform", "arm:1")
    assert [one.word for one in said] == ["unsupported", "unclear"]
    ax = picture.draw(found).axes[0]
    lines = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() == "none" for line in lines] == [True, False]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["uniform\nnot supported", "arm:1"]


def test_clopper_pearson_and_the_asymptotic_sequence_by_name(dither, tmp_path):
    path = shop(tmp_path, np.random.default_rng(3), 400, np.array([0.2, 0.4, 0.1, 0.3]))
    for how in ("clopper-pearson", "asymptotic"):
        code, _, err = dither("evaluate", path, "--policy", "arm:1", "--interval", how, "--out", tmp_path / how)
        assert code == 0, err
        found = pl.read_csv(tmp_path / how / "estimates.csv").filter(policy="arm:1", estimator="snips")
        read = logs.read(path)
        Q = np.eye(4)[np.ones(400, int)]
        theirs = library.ope.snips(read.r, read.a, read.p, Q, interval=how.replace("-", "_"))
        assert (found["low"][0], found["high"][0]) == pytest.approx(theirs.interval, rel=1e-9)
    code, _, err = dither("evaluate", path, "--policy", "arm:1", "--estimator", "dm", "--interval", "clopper-pearson")
    assert code == 2


@pytest.mark.parametrize("form", ["memory", "file"])
def test_clicks_only_are_said_before_they_are_learnt(tmp_path, form):
    """446 of 500 rewards missing, all that came are 1. seen red: 0.99998 learnt without a word."""
    r = [1.0 if i % 9 == 0 and i < 486 else None for i in range(500)]
    frame = pl.DataFrame({"arm": [0] * 500, "K": [1] * 500, "reward": pl.Series(r, dtype=pl.Float64),
                          "propensity": [1.0] * 500, "features": [[[1.0]]] * 500})  # fmt: skip
    frame.write_parquet(tmp_path / "log.parquet")
    source = logs.read(frame) if form == "memory" else tmp_path / "log.parquet"
    bandit = library.LinFP(dim=1, lam=1.0, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            logs.RewardWarning, match=r"446 of 500 rewards are missing, and all 54 that came are 1.*missing=0"
        ):
            logs.warm_start(bandit, source, missing="leave out", chunk=77)
        assert bandit.state.theta[0] == 0  # nothing was learnt before it was said
        logs.warm_start(bandit, source, missing=0.0)
        assert bandit.state.theta[0] == pytest.approx(54 / 501)
        some = frame.with_columns(reward=pl.when(pl.int_range(500) == 0).then(0.0).otherwise(pl.col("reward")))
        logs.warm_start(library.LinFP(dim=1, seed=0), some, missing="leave out")
    found, _ = judge(tmp_path / "log.parquet", "uniform", missing="leave out")
    assert any("446 of 500 rewards are missing, and all 54 that came are 1" in note for note in verdicts.notes(found))


def test_several_policies_are_said_to_be_several(tmp_path):
    path = shop(tmp_path, np.random.default_rng(4), 400, np.array([0.2, 0.4, 0.1, 0.3]))
    found, _ = judge(path, "arm:0", "arm:1", "arm:2")
    assert any(
        "3 policies are judged, each by its own 95% interval: about 0.15" in note for note in verdicts.notes(found)
    )
    found, _ = judge(path, "arm:0")
    assert not any("policies are judged" in note for note in verdicts.notes(found))

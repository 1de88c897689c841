"""A log that was thinned out, as `pdrop` of Vowpal Wabbit thins it: what it says is of the traffic."""

import json
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from test_evaluate_verdicts import judge

import dither as library
from dither import envs, log, ope
from dither.log.sources import LogSource
from dither.ope import verdicts
from dither.ope.bounded import Bounded, IntervalSettings
from dither.ope.contributions import Contributions, Estimator, NamedEstimator
from dither.ope.judge import judged
from dither.ope.question import Question
from longer import size

TRUTH = 0.105  # clicks of the traffic, whatever the arm


def traffic(n=20_000, seed=0, rates=(TRUTH, TRUTH)):
    """n decisions between two arms, and which of them are kept: clicks all, of the others one in ten."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    r = (rng.random(n) < np.asarray(rates)[a]).astype(float)
    chance = np.where(r == 1, 1.0, 0.1)
    return a, r, chance, rng.random(n) < chance


def table(a, r, chance, kept, **columns):
    m = int(kept.sum())
    return pl.DataFrame({"id": [f"d{i}" for i in range(m)], "arm": a[kept], "K": np.full(m, 2), "reward": r[kept],
                         "propensity": np.full(m, 0.5), "weight": 1 / chance[kept], **columns})  # fmt: skip


@pytest.fixture(scope="module")
def thinned(tmp_path_factory):
    path = tmp_path_factory.mktemp("thinned") / "log.parquet"
    frame = table(*traffic())
    frame.with_columns(features=pl.Series([[[1.0, 0.0], [0.0, 1.0]]] * len(frame))).write_parquet(path)
    return path


def test_the_value_is_that_of_the_traffic(thinned):
    """seen red: 0.540 [0.524, 0.556] where the traffic is 0.105."""
    found, _ = judge(thinned, "arm:1", "uniform", estimators=("snips", "ips"))
    assert found.logging.interval[0] < TRUTH < found.logging.interval[1]
    for estimate in found.estimates.values():
        assert abs(estimate.value - TRUTH) < 5 * estimate.se
        assert estimate.interval[1] - estimate.interval[0] < 0.05
    read = log.read(thinned)
    Q = np.tile([0.0, 1.0], (len(read), 1))
    theirs = ope.snips(read.r, read.a, read.p, Q, weight=read.weight)
    mine = found.estimates["arm:1", "snips"]
    for field in ("value", "se", "ess", "weight_mean", "weight_sd", "weight_max"):
        assert_allclose(getattr(mine, field), getattr(theirs, field), rtol=1e-10, err_msg=field)
    gap, pair = (
        found.gap("arm:1", "snips"),
        ope.compare(theirs, ope.ips(read.r, read.a, read.p, Q * 0 + 0.5, weight=read.weight)),
    )
    assert_allclose([gap.value, gap.se], [pair.value, pair.se], rtol=1e-9)


def test_vowpal_wabbits_pdrop(dither, tmp_path):
    """The same log as VW writes it. seen red: 0.540."""
    a, r, chance, kept = traffic(4000)
    lines = [
        {"_label_cost": -r[i], "_label_probability": 0.5, "_label_Action": int(a[i]) + 1, "_labelIndex": int(a[i]),
         "o": [], "Timestamp": "2026-01-01T00:00:00Z", "Version": "1", "EventId": f"e{i}",
         "a": [int(a[i]) + 1, 2 - int(a[i])],
         "c": {"_multi": [{"x": 1}, {"y": 1}]}, "p": [0.5, 0.5], "pdrop": 1 - float(chance[i])}
        for i in np.flatnonzero(kept)
    ]  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text("\n".join(map(json.dumps, lines)))
    code, out, err = dither("evaluate", path, "--format", "dsjson", "--policy", "uniform", "--out", tmp_path / "out")
    assert code == 0, err
    found = pl.read_csv(tmp_path / "out" / "estimates.csv").filter(policy="what ran")
    assert found["low"][0] < TRUTH < found["high"][0]
    assert "as many times" in " ".join(out.split())


@pytest.mark.parametrize("interval", ["normal", "bootstrap"])
def test_intervals_cover_the_traffic(tmp_path, interval):
    """Of "always arm 1" in thinned logs, and of its paired difference; five binomial errors."""
    covered, rates, logs = np.zeros(2), (0.05, 0.2), size(100, longer=400)
    for seed in range(logs):
        path = tmp_path / "log.parquet"
        table(*traffic(1500, seed, rates)).write_parquet(path)
        found, _ = judge(path, "arm:1", estimators=("snips",), how=IntervalSettings(interval, resamples=200, seed=0))
        for k, (ends, truth) in enumerate(((found.estimates["arm:1", "snips"].interval, 0.2),
                                           (found.gap("arm:1", "snips").interval, 0.075))):  # fmt: skip
            covered[k] += ends[0] <= truth <= ends[1]
    assert np.all(np.abs(covered / logs - 0.95) <= 5 * math.sqrt(0.95 * 0.05 / logs))
    # seen red: the covariance of the weights left out of the difference


@pytest.mark.parametrize("how", ["normal", "bootstrap", "bernstein", "betting", "asymptotic"])
def test_pieces_and_a_factor_change_nothing(thinned, tmp_path, how):
    bounds = dict(reward_range=(0.0, 1.0), weight_max=2.0) if how in ("bernstein", "betting") else {}
    question = Question(_policies("arm:1"), (NamedEstimator.parse("ips"),))

    def run(path, factor, rows):
        most = {"row_weight_max": 10 * factor} if bounds else {}
        found = judged(
            LogSource(path).pieces(question.columns, rows=rows).each,
            question,
            IntervalSettings(how, seed=3, **bounds, **most),
        )
        return found.estimates["arm:1", "ips"], found.gap("arm:1", "ips")

    scaled = tmp_path / "scaled.parquet"
    pl.read_parquet(thinned).with_columns(pl.col("weight") * 0.3).write_parquet(scaled)
    (one, gap), (two, other) = run(thinned, 1.0, 100_000), run(scaled, 0.3, 700)
    for field in ("value", "se", "interval", "ess", "weight_mean", "weight_sd"):
        assert_allclose(getattr(one, field), getattr(two, field), rtol=1e-8, atol=1e-12, err_msg=field)
    assert_allclose([gap.value, gap.se, *gap.interval], [other.value, other.se, *other.interval], rtol=1e-7, atol=1e-10)
    read = log.read(thinned)
    options = dict(interval=how, seed=3, **bounds) | ({"row_weight_max": 10.0} if bounds else {})
    Q = np.tile([0.0, 1.0], (len(read), 1))
    theirs = ope.ips(read.r, read.a, read.p, Q, weight=read.weight, **options)
    assert_allclose(one.interval, theirs.interval, rtol=1e-9)


def _policies(*texts):
    from dither.ope import candidates

    return tuple(candidates.parse(text, draws=10) for text in texts)


def test_bounds_of_the_weights_are_asked_for(dither, thinned):
    ask = ("evaluate", thinned, "--policy", "arm:1", "--estimator", "ips", "--interval", "betting",
           "--reward-range", 0, 1, "--weight-max", 2)  # fmt: skip
    code, _, err = dither(*ask)
    assert (code, "pass --row-weight-max, such as 1/(1 - pdrop)" in err) == (2, True), err
    code, _, err = dither(*ask, "--row-weight-max", 10)
    assert (code, err) == (0, "")
    code, _, err = dither(*ask[:-6], "clopper-pearson")
    assert (code, "the weights of rows differ" in err) == (2, True), err


def test_weights_that_make_no_sense_are_refused_or_left_out(dither, thinned, tmp_path):
    frame = pl.read_parquet(thinned)
    s = frame["weight"].to_list()
    s[5], s[9], s[11] = -1.0, math.inf, 0.0
    path = tmp_path / "log.parquet"
    frame.with_columns(pl.Series("weight", s)).write_parquet(path)
    code, _, err = dither("evaluate", path, "--policy", "uniform")
    assert (code, "weight is negative, not finite" in err, "(2 rows: 5, 9)" in err) == (2, True, True)
    code, out, err = dither("evaluate", path, "--policy", "uniform", "--invalid", "leave-out")
    assert code == 0, err
    assert f"{len(frame)} rows read, {len(frame) - 3} used, 3 left out" in " ".join(out.split())
    # seen red: a negative weight summed


def test_clusters_with_weights_are_those_in_memory(thinned, tmp_path):
    frame = pl.read_parquet(thinned)
    user = np.arange(len(frame)) % 50
    path = tmp_path / "log.parquet"
    frame.with_columns(user=user).write_parquet(path)
    question = Question(_policies("arm:1"), (NamedEstimator.parse("snips"),), cluster="user")
    found = judged(LogSource(path).pieces(question.columns, rows=333).each, question).estimates["arm:1", "snips"]
    read = log.read(path)
    Q = np.tile([0.0, 1.0], (len(read), 1))
    theirs = ope.snips(read.r, read.a, read.p, Q, weight=read.weight, cluster=user)
    assert_allclose([found.value, found.se], [theirs.value, theirs.se], rtol=1e-10)


def test_a_warm_start_learns_the_traffic(thinned):
    """seen red: 0.54 learnt for 0.1."""
    learnt = {}
    for factor in (1.0, 0.25):
        bandit = library.LinFP(dim=2, lam=1.0, seed=0)
        read = log.read(thinned)
        scaled = log.read(read.frame.with_columns(pl.col("weight") * factor))
        got = log.warm_start(bandit, scaled, chunk=313)
        assert got.used == len(read)
        learnt[factor] = bandit
    theta, width = learnt[1.0].state.theta, learnt[1.0].model.width(learnt[1.0].state, np.eye(2))
    s = read.weight
    assert np.all(np.abs(theta - TRUTH) < 0.03)
    assert_allclose(theta, learnt[0.25].state.theta, rtol=1e-10)  # seen red: twice the rows for twice the weight
    for k in range(2):  # the ridge regression of rows that count s Σs/Σs² times
        mine = read.a == k
        n = np.sum(s[mine]) * np.sum(s) / np.sum(s * s)
        mean = np.sum((s * read.r)[mine]) / np.sum(s[mine])
        assert_allclose([theta[k], width[k]], [n * mean / (n + 1), 1 / math.sqrt(n + 1)], rtol=1e-9)
    again = library.LinFP(dim=2, lam=1.0, seed=0)
    log.warm_start(again, thinned, chunk=99)  # streamed from the file
    assert_allclose(again.state.theta, theta, rtol=1e-10)
    inverse = library.LinFP(dim=2, lam=1.0, seed=0)
    log.warm_start(inverse, thinned, weights="ips")
    assert np.all(np.abs(inverse.state.theta - TRUTH) < 0.03)


class Second:
    """Always the second arm."""

    def choose(self, X, mask=None):
        return type("Shown", (), {"arm": 1})

    def update(self, x, r):
        pass


def test_a_replay_meets_the_traffic(thinned):
    """seen red: 0.54 ± 0.01."""
    read = log.read(thinned)
    got = ope.replay(Second(), read, seed=0)
    assert abs(got.value - TRUTH) < 5 * got.se
    assert got.se < 0.03
    scaled = ope.replay(Second(), log.read(read.frame.with_columns(pl.col("weight") * 3.0)), seed=0)
    assert scaled.value == got.value
    M = np.tile(read.r[:, None], (1, 2))  # the reward of each row whatever the arm: means are those of the traffic
    world = envs.Replay(read, M=M)
    rng = np.random.default_rng(0)
    rows = world.start(rng).next(40_000)
    mean = read.r[rows].mean()
    assert abs(mean - np.average(read.r, weights=read.weight)) < 5 * math.sqrt(TRUTH * (1 - TRUTH) / 40_000)


def every_arm(rows, _):
    """What each row's best arm would have earned by the predictions: reads all of Q and M."""
    best = np.max(np.where(rows.Q > 0, rows.M, -np.inf), axis=1)
    return Contributions("best", rows, best, None, None, None, Bounded("model", 0.0))


@pytest.mark.parametrize(
    "declared", [Estimator(every_arm, "all arms", predicts=True), Estimator(every_arm, predicts=True)]
)
def test_an_estimator_that_reads_all_arms_is_given_them(path, arrays, monkeypatch, declared):
    """seen red: a two-armed stand-in, and another number than `ope` gives."""
    monkeypatch.setitem(ope.ESTIMATORS, "best", declared)
    question = Question(_policies("column:Q"), (NamedEstimator.parse("best"),), predictions="M")
    found = judged(LogSource(path).pieces(question.columns, rows=400).each, question)
    assert_allclose(found.estimates["Q", "best"].value, np.mean(arrays["M"].max(axis=1)), rtol=1e-12)
    made = ope.contributions("best", arrays["r"], arrays["a"], arrays["p"], arrays["Q"], arrays["M"])
    assert_allclose(found.estimates["Q", "best"].se, ope.estimate(made, warn=False).se, rtol=1e-10)
    for policy, column, says in (
        ("column:q,m_policy", "M", "reads the probabilities of all arms, and q gives that of the arm shown alone"),
        ("column:Q", "m_shown", "predicts for the arm shown alone"),
    ):
        question = Question(_policies(policy), (NamedEstimator.parse("best"),), predictions=column)
        with pytest.raises(ValueError, match=says):
            judged(LogSource(path).pieces(question.columns).each, question)


def test_a_bare_function_is_taken_to_read_all_arms(path, arrays, monkeypatch):
    def second(rows, _):
        return Contributions("second", rows, rows.Q[:, 1], None, None, None, Bounded("model", 0.0))

    monkeypatch.setitem(ope.ESTIMATORS, "second", second)
    question = Question(_policies("column:Q"), (NamedEstimator.parse("second"),))
    found = judged(LogSource(path).pieces(question.columns).each, question)
    assert_allclose(found.estimates["Q", "second"].value, arrays["Q"][:, 1].mean(), rtol=1e-12)


def test_rows_without_a_weight_among_others_count_once(thinned, tmp_path):
    """The first rows say nothing of a weight. seen red: no weight at all learnt; the bets of other rows' weights."""
    read = log.read(thinned)
    at = pl.int_range(len(read))
    path = tmp_path / "log.parquet"
    read.frame.with_columns(weight=pl.when(at < 500).then(None).otherwise(pl.col("weight"))).write_parquet(path)
    s = np.where(np.arange(len(read)) < 500, 1.0, read.weight)
    bounds = dict(reward_range=(0.0, 1.0), weight_max=2.0, row_weight_max=10.0)
    question = Question(_policies("arm:1"), (NamedEstimator.parse("ips"),))
    found = judged(
        LogSource(path).pieces(question.columns, rows=250).each, question, IntervalSettings("betting", **bounds)
    )
    theirs = ope.ips(read.r, read.a, read.p, np.tile([0.0, 1.0], (len(s), 1)), weight=s, interval="betting", **bounds)
    mine = found.estimates["arm:1", "ips"]
    assert_allclose([mine.value, mine.se, *mine.interval], [theirs.value, theirs.se, *theirs.interval], rtol=1e-9)
    one, two = library.LinFP(dim=2, lam=1.0, seed=0), library.LinFP(dim=2, lam=1.0, seed=0)
    log.warm_start(one, path, chunk=250)
    two.update(read.x, read.r, weight=ope.learning.effective(s))
    assert_allclose(one.state.theta, two.state.theta, rtol=1e-9)


def test_notes_of_a_thinned_log(thinned):
    found, _ = judge(thinned, "uniform")
    assert not found.report.inverse.n  # the mean of 1/p of rows left over says nothing
    assert any("Not checkable" in note for note in verdicts.notes(found))

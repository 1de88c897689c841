"""Learning from logs: a policy by DR scores, a warm start, and c chosen by a log."""

import math
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeRegressor

import dither
from dither import models, ope, policies
from dither.log import warm_start
from dither.ope import choosing, learning
from dither.ope.learning import choose_c, fit
from dither.ope.rows import with_arms
from dither.ope.synthetic import ScoreSoftmax, World, uniform

WORLD = World(dim=4, arms=6, contexts=100, seed=0)
BENT = World(dim=4, arms=6, contexts=100, bend=0.7, seed=0)
LOGGER = ScoreSoftmax(np.ones(4), 1.0)
SQUARES = make_pipeline(PolynomialFeatures(2), Ridge(1.0))


def columns(log):
    return log.r, log.a, log.p, log.X


# A policy


@pytest.mark.parametrize(
    ("world", "regressor"),
    [(WORLD, None), (BENT, SQUARES), (BENT, None)],
    ids=["linear", "squares", "wrong model"],
)
def test_it_beats_the_logging_policy(world, regressor):
    """In true value, which has no error here: the gain over independent logs, five standard errors from 0."""
    earned, gains, runs = world.value(LOGGER).value, [], 12
    for run in range(runs):
        log = world.log(LOGGER, 800, run=run)
        gains.append(world.value(fit(*columns(log), regressor=regressor)).value - earned)
    se = np.std(gains, ddof=1) / math.sqrt(runs)
    assert np.mean(gains) - 5 * se > 0  # seen red: argmin of the scores
    assert min(gains) > 0


def test_the_gain_can_be_shown_from_the_second_half_of_a_log():
    log = BENT.log(LOGGER, 3000, run=7)
    first, second = (slice(0, 1500), slice(1500, 3000))
    learnt = fit(*(column[first] for column in columns(log)), regressor=SQUARES)
    r, a, p, X = (column[second] for column in columns(log))
    Q = learnt.probabilities(X)
    gain = ope.compare(ope.ips(r, a, p, Q), ope.ips(r, a, p, log.P[second]))
    true = BENT.value(learnt).value - BENT.value(LOGGER).value
    assert gain.interval[0] > 0
    assert abs(gain.value - true) < 5 * gain.se


def test_scores_are_unbiased_whatever_the_model():
    log = BENT.log(LOGGER, 40_000)
    rows = with_arms(*columns(log), None)
    M = np.full(log.P.shape, 0.3)  # a model that knows nothing
    error = learning.dr_scores(rows, M, 1 / rows.p) - BENT.mean(log.X)
    assert np.all(np.abs(error.mean(axis=0)) < 5 * error.std(axis=0) / math.sqrt(len(log.r)))
    # seen red: weight 1 in place of 1/p
    assert_array_equal(M, 0.3)


def test_scores_by_hand():
    rows = with_arms([1.0, 0.0], [1, 0], [0.5, 0.25], np.zeros((2, 2, 1)), None)
    M = np.array([[0.2, 0.6], [0.4, 0.1]])
    assert_allclose(learning.dr_scores(rows, M, 1 / rows.p), [[0.2, 0.6 + 2 * 0.4], [0.4 - 4 * 0.4, 0.1]])


class Nosy(LinearRegression):
    """Notes what it was trained on and what it was asked."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.rows_ = {tuple(x) for x in X.tolist()}
        Nosy.seen.append(self)
        return super().fit(X, y)

    def predict(self, X):
        self.asked_ = {tuple(x) for x in X.tolist()}
        return super().predict(X)


def test_no_row_is_scored_by_a_model_that_saw_it():
    world = World(dim=3, arms=4, contexts=None)
    log, Nosy.seen = world.log(uniform, 60), []
    fit(*columns(log), regressor=Nosy(), folds=3)
    *outcome, final = Nosy.seen
    assert len(outcome) == 3
    for model in outcome:
        assert not model.rows_ & model.asked_  # seen red: train on all rows
        assert len(model.asked_) == 4 * 20
    assert len(final.rows_) == 4 * 60


def test_a_regressor_for_each_arm():
    rng = np.random.default_rng(0)
    n, slopes = 900, np.array([1.0, -1.0, 0.0])
    x = rng.uniform(-1, 1, size=(n, 1))
    X = np.repeat(x[:, None], 3, axis=1)  # one context, three arms: nothing but the arm tells them apart
    a = rng.integers(3, size=n)
    r = slopes[a] * x[:, 0] + 0.1 * rng.normal(size=n)
    learnt = fit(r, a, np.full(n, 1 / 3), X, regressor=LinearRegression(), per_arm=True)
    assert_array_equal(learnt.choose(np.repeat(np.array([[[0.5]], [[-0.5]]]), 3, axis=1)), [0, 1])
    with pytest.raises(ValueError, match=r"X must be \(n, 3, 1\)"):
        learnt.scores(np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match="arm 2 has 0"):
        fit(r, np.where(a == 2, 0, a), np.full(n, 1 / 3), X, per_arm=True)


def test_ties_share_and_are_broken_by_chance():
    log = WORLD.log(uniform, 300)
    learnt = fit(*columns(log), regressor=DecisionTreeRegressor(max_depth=1))
    P = learnt.probabilities(log.X)
    s = learnt.scores(log.X)
    best = s == s.max(axis=1, keepdims=True)
    assert best.sum(axis=1).max() > 1
    assert_allclose(P, best / best.sum(axis=1, keepdims=True))
    row = int(np.argmax(best.sum(axis=1)))
    shown = {learnt.choose(log.X[row], rng=np.random.default_rng(seed)) for seed in range(60)}
    assert shown == set(np.flatnonzero(best[row]).tolist())  # seen red: np.argmax
    assert_array_equal(
        learnt.choose(log.X, rng=np.random.default_rng(1)), learnt.choose(log.X, rng=np.random.default_rng(1))
    )


def test_arms_not_on_offer_are_neither_learnt_nor_chosen():
    log = WORLD.log(uniform, 400)
    mask = np.ones(log.P.shape, dtype=bool)
    mask[np.arange(400), (log.a + 1) % 6] = False
    X = log.X.copy()
    X[~mask] = np.nan
    learnt = fit(log.r, log.a, log.p, X, mask=mask)
    Q = learnt.probabilities(log.X, mask=mask)
    assert_allclose(Q.sum(axis=1), 1)
    assert not Q[~mask].any()
    assert np.all(mask[np.arange(400), learnt.choose(log.X, mask=mask)])


def test_clipping_is_counted():
    log = WORLD.log(LOGGER, 300)
    learnt = fit(*columns(log), clip=5.0)
    assert learnt.clipped == np.sum(1 / log.p > 5) > 0
    assert fit(*columns(log)).clipped == 0


def test_any_regressor():
    log = WORLD.log(uniform, 300)
    learnt = fit(*columns(log), regressor=HistGradientBoostingRegressor(max_iter=5), policy_regressor=Ridge())
    assert isinstance(learnt.regressors[0], Ridge)
    assert WORLD.value(learnt).value > WORLD.value(uniform).value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(p=[0.5, 0.0] * 10), r"p must lie in \(0, 1\], as the arm was shown; got 0.0 at row 1 \(10 such rows\)"),
        (dict(p=[0.5, math.nan] * 10), r"got nan at row 1"),
        (dict(a=[7] * 20), "a must be whole numbers from 0 to 2"),
        (dict(r=[math.inf] * 20), "r must be finite"),
        (dict(r=[1.0] * 19), r"r must have shape \(20,\)"),
        (dict(X=np.zeros((20, 3))), r"X must be \(n, K, d\)"),
        (dict(mask=np.arange(3) > 0), "row 0 shows arm 0, which mask rules out"),
        (dict(folds=1), "folds must be"),
        (dict(folds=11), "11 folds needs at least 22 rows, got 20"),
        (dict(regressor=Ridge), "an instance with fit and predict"),
    ],
)
def test_bad_logs_are_refused(change, says):
    good = dict(r=[0.0, 1.0] * 10, a=[0, 1] * 10, p=[0.5] * 20, X=np.eye(3)[None].repeat(20, axis=0))
    fit(**good)
    with pytest.raises((ValueError, TypeError), match=says):
        fit(**good | change)


def test_the_extra_is_named():
    code = """
import sys
for name in [name for name in sys.modules if name.startswith("sklearn")]: del sys.modules[name]
sys.modules["sklearn"] = sys.modules["sklearn.linear_model"] = None
from dither.ope import learning
try: learning.fit([0.0] * 20, [0] * 20, [1.0] * 20, [[[1.0]]] * 20)
except ImportError as e: assert "scikit-learn" in str(e) and "dither[" in str(e), e
else: raise SystemExit("no error")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# A warm start


def taught(bandit, log):
    """What a warm start makes of arrays."""
    warm_start(bandit, {"arm": log.a, "reward": log.r, "features": log.X})
    return bandit


def test_a_warm_start_is_having_shown_the_arms_oneself():
    log = WORLD.log(uniform, 50)
    warm = taught(dither.LinFP(dim=4, lam=1.0, seed=0), log)
    own = dither.LinFP(dim=4, lam=1.0, seed=0)
    for x, a, r in zip(log.X, log.a, log.r, strict=True):
        own.update(x[a], r)
    assert_allclose(warm.theta, own.theta, rtol=1e-10)
    assert_allclose(warm.propensities(log.X[0]), own.propensities(log.X[0]), atol=1e-10)
    assert warm.t == own.t
    slots = taught(dither.LinFP(dim=4, disjoint=6, seed=0), log._replace(X=log.X[:, :1]))
    assert slots.observations == 50
    with pytest.raises(ValueError, match="needs a bandit with disjoint=K"):
        taught(own, log._replace(X=log.X[:, :1]))


def test_a_warm_start_earns_more_than_a_cold_one():
    log = WORLD.log(LOGGER, 300)
    cold = dither.LinFP(dim=4, lam=1.0, seed=0)
    assert WORLD.value(taught(dither.LinFP(dim=4, lam=1.0, seed=0), log)).value > (WORLD.value(cold).value + 0.2)


# c


def test_c_is_judged_by_what_fp_would_have_done_after_the_first_half():
    """The table against the estimators called by hand; and no peeking: later rewards do not change earlier models."""
    log, cs, cut = WORLD.log(uniform, 600), (0.5, 8.0), 300
    found = choose_c(*columns(log), cs=cs, model=models.Ridge(0.5), share=0.5)
    assert found.rows == (cut, 300)
    made = []
    for c in cs:
        bandit = dither.Bandit(models.Ridge(0.5), policies.FeaturePerturbation(c=c), dim=4, seed=9)
        bandit.update(log.x[:cut], log.r[:cut])
        late = log.X[cut:]
        made.append(ope.dr(log.r[cut:], log.a[cut:], log.p[cut:], bandit.propensities(late), late @ bandit.theta))
    for row, one in zip(found.table, made, strict=True):
        assert_allclose([row.value, row.se, row.low, row.high], [one.value, one.se, *one.interval], rtol=1e-9)
    gap = ope.compare(*made, level=0.95)  # two candidates: one pair
    sign = 1 if found.best == cs[1] else -1
    other = found.table[0 if found.best == cs[1] else 1]
    assert_allclose(other.gap, sign * gap.value, rtol=1e-8)
    assert_allclose([other.gap_low, other.gap_high], sorted(sign * end for end in gap.interval), rtol=1e-7)


def test_c_that_wastes_is_told_apart_and_what_is_close_is_not():
    log = WORLD.log(uniform, 6000)
    found = choose_c(*columns(log), cs=(40.0, 0.5, 1.0, 20_000.0))
    assert [row.c for row in found.table] == [0.5, 1.0, 40.0, 20_000.0]
    truth = {}
    for c in (0.5, 20_000.0):
        bandit = taught(dither.LinFP(dim=4, c=c, seed=0), log._replace(r=log.r[:3000], a=log.a[:3000], X=log.X[:3000]))
        truth[c] = WORLD.value(bandit).value
    row = found.table[-1]
    assert row.gap_high < 0  # seen red: the gap without its sign
    assert row.low - 5 * row.se < truth[20_000.0] < row.high + 5 * row.se
    assert truth[0.5] > truth[20_000.0]
    assert found.best in found.tied
    assert {0.5, 1.0} <= set(found.tied)
    assert found.c < 20_000
    assert "cannot tell c = 0.5, 1" in found.says
    assert "What exploring teaches for later rounds is not in these numbers." in found.says


def test_a_log_that_says_little_recommends_little():
    log = WORLD.log(uniform, 60)
    found = choose_c(*columns(log), cs=(0.5, 1.0, 10.0), estimator="snips", loss=0.01)
    assert found.tied == (0.5, 1.0, 10.0)
    assert found.c == found.best
    assert all(row.gap_low < -0.01 for row in found.table if row.c > found.c)  # seen red: the largest c that is tied


def test_c_that_the_log_cannot_judge_is_not_chosen():
    bandit = taught(dither.LinFP(dim=4, lam=1.0, seed=0, c=0.1), WORLD.log(uniform, 200))
    log = WORLD.log(bandit, 1000)
    found = choose_c(*columns(log), cs=(0.1, 100.0))
    assert [row.supported for row in found.table] == [True, False]
    assert found.table[1].weight_mean < 0.9
    assert found.c == found.best == 0.1
    assert "too little of what it would show: c = 100" in found.says
    none = choose_c(*columns(log), cs=(100.0, 200.0))
    assert "log with a floor" in none.says


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(cs=(1.0, 1.0)), "at least two different"),
        (dict(cs=(1.0, -1.0)), "c must lie in"),
        (dict(estimator="ips"), "no estimator 'ips'"),
        (dict(share=1.0), "share must lie in"),
        (dict(loss=-1.0), "loss must lie in"),
        (dict(policy=policies.ThompsonSampling()), "exact propensities"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, says):
    log = WORLD.log(uniform, 20)
    with pytest.raises((ValueError, LookupError), match=says):
        choose_c(*columns(log), **change)


def test_the_defaults_of_choose_c_are_candidates():
    log = WORLD.log(uniform, 100)
    assert tuple(row.c for row in choose_c(*columns(log)).table) == choosing.CANDIDATES

"""Weights of rows: a row stands for several of the traffic. Replication, derivatives, plain loops, thinned logs."""

import functools
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from test_ope import HAND, ROWWISE, SETTINGS, call, log
from test_ope_sums import policies

import dither
from dither import ope
from dither.ope import bounded, choosing, learning
from dither.ope.intervals import INTERVALS

pytestmark = pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
BOUNDS = dict(weight_max=40.0, reward_range=(0.0, 1.0))
RATIOS = ("snips", "sndr")


def clicks(n, seed, K=3):
    r, a, p, Q, M, P = log(n, K, seed, floor=0.3)
    s = np.random.default_rng([seed, 1]).choice([1.0, 2.0, 3.0, 5.0], n)
    return (r > 0).astype(float), a, p, Q, np.clip(M, 0, 1), P, s


def held(name, how):
    """Whether an interval is for this estimator."""
    if how in ("bernstein", "betting"):
        return name not in RATIOS
    if how == "anytime":
        return name == "ips"
    return how != "clopper_pearson" or name in ("ips", "snips")


CASES = [(name, how) for name in ROWWISE for how in INTERVALS if held(name, how)]


@pytest.mark.parametrize(("name", "how"), CASES)
@pytest.mark.parametrize("factor", [1 / 3, 7.0, 1e-60])
def test_a_constant_factor_changes_nothing(name, how, factor):
    """seen red: Σsb/n for Σsb/Σs; the bets on s itself; e of Monte Carlo without s̄."""
    r, a, p, Q, M, _, s = clicks(150, 3)
    if how == "clopper_pearson":
        s, p, Q = np.full(150, 2.0), np.full(150, 1 / 3), np.eye(3)[np.zeros(150, dtype=int)]
    options = dict(interval=how, seed=1, resamples=100, row_weight_max=8.0, time=np.arange(150), **BOUNDS)
    if how == "normal":
        options |= dict(kind="monte_carlo", p_se=0.1 * p, cluster=np.arange(150) // 3)
    one = call(name, r, a, p, Q, M, weight=s, **options)
    two = call(name, r, a, p, Q, M, weight=factor * s, **options | {"row_weight_max": factor * 8.0})
    for field in ("value", "se", "interval", "ess", "weight_mean", "weight_sd", "weight_test", "drift"):
        assert_allclose(getattr(two, field), getattr(one, field), rtol=1e-9, atol=1e-12, err_msg=field)
    same = call(name, r, a, p, Q, M, weight=np.full(150, factor), **options)
    none = call(name, r, a, p, Q, M, **options)
    assert_allclose([*same.interval, same.se, same.ess], [*none.interval, none.se, none.ess], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ROWWISE)
def test_whole_weights_are_rows_repeated(name):
    """seen red: weights left out of the value, of ess, of the mean weight."""
    r, a, p, Q, M, P, s = clicks(60, 4)
    times = s.astype(int)
    many = [np.repeat(x, times, axis=0) for x in (r, a, p, Q, M)]
    once, all_rows = call(name, r, a, p, Q, M, weight=s, P=P), call(name, *many, P=np.repeat(P, times, axis=0))
    assert_allclose(
        [once.value, once.weight_mean, once.weight_sd, once.unsupported],
        [all_rows.value, all_rows.weight_mean, all_rows.weight_sd, all_rows.unsupported], rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    # and repeated rows that say no more than once, as clusters: the same standard error
    clustered = call(name, *many, cluster=np.repeat(np.arange(60), times))
    assert_allclose(once.se, clustered.se, rtol=1e-12)
    w = Q[np.arange(60), a] / p
    assert_allclose(once.ess, np.sum(s * w) ** 2 / np.sum((s * w) ** 2), rtol=1e-12)


@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize("clustered", [False, True])
def test_the_standard_error_is_that_of_derivatives(name, clustered):
    """The infinitesimal jackknife: what s_i ∂V̂/∂s_i, by central differences, adds up to. seen red: ψ without s/s̄."""
    r, a, p, Q, M, _, s = clicks(40, 5)
    group = np.arange(40) // 4 if clustered else np.arange(40)
    slopes = []
    for i in range(40):
        h = np.zeros(40)
        h[i] = 1e-6 * s[i]
        up, down = (call(name, r, a, p, Q, M, weight=s + sign * h).value for sign in (1, -1))
        slopes.append((up - down) / 2e-6)
    sums = np.bincount(group, weights=slopes)
    G = len(sums)
    expected = math.sqrt(np.sum(sums**2) * (1.0 if name in RATIOS else G / (G - 1)))
    found = call(name, r, a, p, Q, M, weight=s, **({"cluster": group} if clustered else {}))
    assert_allclose(found.se, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ROWWISE)
def test_a_row_of_weight_0_is_no_row(name):
    r, a, p, Q, M, _, s = clicks(50, 6)
    s[::5] = 0.0
    p = p.copy()
    p[0] = math.nan  # what a row of weight 0 holds does not matter
    keep = s > 0
    e = call(name, r, a, p, Q, M, weight=s)
    f = call(name, r[keep], a[keep], p[keep], Q[keep], M[keep], weight=s[keep])
    assert (e.value, e.se, e.ess, e.n, e.left_out) == (
        f.value,
        f.se,
        f.ess,
        40,
        {"weight is 0": 10},
    )  # seen red: n = 50


@pytest.mark.parametrize("cuts", [[0, 500], [0, 3, 200, 500]])
def test_parts_add_up_with_weights(cuts):
    """seen red: Σψψ' over n² and not (Σs)²; the part's own scale of the bets kept in the merge."""
    r, a, p, Q, M, P, _ = clicks(500, 7)
    s = np.random.default_rng(8).choice([0.5, 1.0, 40.0], 500)
    arrays, options = (r, a, p, Q, M), dict(weight=s, P=P, kind=np.full(500, "monte_carlo"), p_se=0.05 * p)
    parts = [
        ope.sums(policies(*(x[i:j] for x in arrays), **{k: v[i:j] for k, v in options.items()}))
        for i, j in itertools.pairwise(cuts)
    ]
    total = functools.reduce(ope.merge, parts)
    whole = {name: ope.estimate(made) for name, made in policies(*arrays, **options).items()}
    for name, found in ope.estimates(total).items():
        for field in ("value", "se", "interval", "ess", "weight_mean", "weight_max", "weight_sd"):
            assert_allclose(getattr(found, field), getattr(whole[name], field), rtol=1e-9, atol=1e-12, err_msg=field)
    for name, found in ope.differences(total, "dr").items():
        paired = ope.compare(whole[name], whole["dr"])
        assert_allclose([found.value, found.se], [paired.value, paired.se], rtol=1e-8, atol=1e-12)
    bounds = dict(**BOUNDS, row_weight_max=50.0)
    made = {"x": ope.contributions("ips", r, a, p, Q, weight=s)}
    of_sums = ope.estimates(ope.sums(made), interval="bernstein", **bounds)["x"].interval
    assert_allclose(of_sums, ope.estimate(made["x"], interval="bernstein", **bounds).interval, rtol=1e-12)
    for how in ("normal", "asymptotic"):
        found = ope.estimates(ope.sums(made), interval=how)["x"].interval
        assert_allclose(found, ope.estimate(made["x"], interval=how).interval, rtol=1e-9)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ([1, 2, 3], r"weight must have shape \(4,\)"),
        ([1, -2, 3, -1], r"weight must be 0 or lie in .*got -2.0 at row 1 \(2 such rows of 4\)"),
        ([1, 2, math.nan, 1], "got nan at row 2"),
        ([1, 2, 1, math.inf], "got inf at row 3"),
        ([1, 2, 1, 1e-300], "got 1e-300 at row 3"),
        ([0, 0, 0, 0], "weight must not be 0 in all 4 rows"),
    ],
)
def test_bad_weights_are_refused(weight, says):
    with pytest.raises(ValueError, match=says):
        ope.ips(**HAND, weight=weight)
    with pytest.raises(ValueError, match=says):
        learning.fit(HAND["r"], HAND["a"], HAND["p"], np.ones((4, 3, 1)), weight=weight, folds=2)


def test_what_weights_have_no_bound_for_is_refused_by_name():
    r, a, p, Q, _, _, s = clicks(50, 0)
    for how in ("bernstein", "betting"):
        with pytest.raises(
            ValueError, match="needs a bound on the weights of rows known beforehand: pass row_weight_max"
        ):
            ope.ips(r, a, p, Q, weight=s, interval=how, **BOUNDS)
        with pytest.raises(ValueError, match="row_weight_max=4 is no bound: the largest weight of a row is 5"):
            ope.ips(r, a, p, Q, weight=s, interval=how, row_weight_max=4, **BOUNDS)
    with pytest.raises(ValueError, match="needs equal weights, and the weights of rows differ: take 'betting'"):
        ope.snips(r, a, np.full(50, 0.5), np.eye(3)[a], weight=s, interval="clopper_pearson")
    one, two = ope.ips(r, a, p, Q, weight=s), ope.ips(r, a, p, Q)
    with pytest.raises(ValueError, match="the same weight="):
        ope.compare(one, two)


@pytest.mark.parametrize("n", [1, 5, 300])
def test_betting_with_weights_leaves_what_no_wealth_refuses(n):
    rng = np.random.default_rng(n)
    x, g = rng.beta(2, 5, n), rng.choice([0.1, 0.5, 1.0], n)

    def wealth(m):
        """Both capitals by a loop: oracle."""
        up, down, mass, weight, squares, variance, most = 0.0, 0.0, 0.5, 1.0, 0.25, 0.25, -math.inf
        for t, (value, part) in enumerate(zip(x, g, strict=True), start=1):
            lam = math.sqrt(2 * math.log(2 / 0.1) / (variance * t * math.log(1 + t)))
            up += math.log(1 + min(lam, 0.5 / m) * part * (value - m))
            down += math.log(1 - min(lam, 0.5 / (1 - m)) * part * (value - m))
            most = max(most, up, down)
            mass, weight = mass + part * value, weight + part
            squares += (part * (value - mass / weight)) ** 2
            variance = squares / (t + 1)
        return most

    low, high = bounded.interval(x, level=0.9, g=g)
    grid = (np.arange(300) + 0.5) / 300
    kept = [wealth(m) < math.log(20) for m in grid]
    assert_allclose(kept, (grid > low) & (grid < high))  # seen red: bets on x - m


def test_bernstein_with_weights_leaves_what_the_inequality_does():
    r, a, p, Q, _, _, s = clicks(3000, 2)
    made = ope.contributions("ips", r, a, p, Q, weight=s)
    low, high = ope.estimate(made, interval="bernstein", row_weight_max=6.0, **BOUNDS).interval
    L = math.log(4 / 0.05)

    def kept(m):
        y = s * (made.b - m)
        return abs(y.mean()) <= math.sqrt(2 * y.var(ddof=1) * L / 3000) + 7 * 6 * 40 * L / (3 * 2999)

    for end, inwards in ((low, 1), (high, -1)):
        assert kept(end + inwards * 1e-9)
        assert not kept(end - inwards * 1e-9)  # seen red: the covariance of s and s b left out


def thinned(rng, n, mu, P, keep):
    """A log of n decisions in 5 contexts, of which those without a click stay with chance `keep`, or less of arm 0."""
    x = rng.integers(0, 5, n)
    a = np.minimum((rng.random(n)[:, None] > np.cumsum(P[x], axis=1)).sum(axis=1), 3)
    r = (rng.random(n) < mu[x, a]).astype(float)
    chance = np.where(r == 1, 1.0, np.where(a == 0, keep / 2, keep))
    here = rng.random(n) < chance
    return x[here], a[here], r[here], 1 / chance[here]


def coverage(name, how, logs, n, seed):
    """The share of thinned logs whose interval holds the value, a sum over contexts and arms."""
    world = np.random.default_rng(seed)
    mu, P = world.uniform(0.05, 0.5, (5, 4)), 0.05 + 0.8 * world.dirichlet(np.ones(4), 5)
    Q, M = world.dirichlet(np.ones(4), 5), world.uniform(0, 1, (5, 4))
    value, covered = np.mean(np.sum(Q * mu, axis=1)), 0
    bounds = dict(weight_max=float((Q / P).max()), reward_range=(0, 1), row_weight_max=8.0)
    for k in range(logs):
        x, a, r, s = thinned(np.random.default_rng([seed, k]), n, mu, P, 0.25)
        made = ope.contributions(name, r, a, P[x, a], Q[x], M[x] if "dr" in name else None, weight=s)
        low, high = ope.estimate(made, interval=how, seed=k, resamples=200, warn=False, **bounds).interval
        covered += low <= value <= high
    return covered / logs


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
@pytest.mark.parametrize("how", ["normal", "bootstrap", "bca", "bernstein", "betting", "asymptotic"])
def test_intervals_cover_the_value_of_the_traffic(name, how):
    """200 thinned logs each, five binomial errors. seen red: s left out of ψ; of the value; of the bets."""
    if not held(name, how):
        return
    share, slack = coverage(name, how, 200, 900, seed=11), 5 * math.sqrt(0.95 * 0.05 / 200)
    assert share >= 0.95 - slack
    if how in ("normal", "bootstrap", "bca"):
        assert share <= 0.95 + slack


@pytest.mark.parametrize("weights", ["uniform", "stablevar", "minvar"])
def test_adaptive_takes_weights(weights):
    r, a, _, Q, M, P, s = clicks(400, 9)
    one, two = (ope.adaptive(r, a, P, Q, M, weights=weights, weight=part) for part in (s, 5 * s))
    assert_allclose([one.value, one.se], [two.value, two.se], rtol=1e-12)
    plain = ope.adaptive(r, a, P, Q, M, weights=weights)
    assert one.value != plain.value
    if weights == "uniform":
        dr = ope.dr(r, a, P[np.arange(400), a], Q, M, weight=s)
        assert_allclose(one.value, dr.value, rtol=1e-12)


def test_models_are_fitted_to_the_traffic():
    """Whole weights are rows repeated, in every fit. seen red: fits without sample_weight."""
    rng = np.random.default_rng(0)
    n = 200
    X, a = rng.normal(size=(n, 3, 2)), rng.integers(0, 3, n)
    r, p, s = rng.normal(size=n), np.full(n, 1 / 3), rng.integers(1, 4, n).astype(float)
    made = [learning.fit(r, a, p, X, regressor=LinearRegression(), weight=factor * s, seed=0) for factor in (1.0, 9.0)]
    plain = learning.fit(r, a, p, X, regressor=LinearRegression(), seed=0)
    scores = [one.scores(X) for one in (*made, plain)]
    assert_allclose(scores[0], scores[1], rtol=1e-9)
    assert np.max(np.abs(scores[0] - scores[2])) > 1e-3
    zeros = np.where(np.arange(n) < 150, s, 0.0)
    cut = learning.fit(r[:150], a[:150], p[:150], X[:150], regressor=LinearRegression(), weight=s[:150], seed=0)
    assert_allclose(
        learning.fit(r, a, p, X, regressor=LinearRegression(), weight=zeros, seed=0).scores(X), cut.scores(X)
    )
    assert_allclose(learning.effective([1.0, 3.0]), learning.effective([2.0, 6.0]))
    assert_allclose(np.sum(learning.effective([1.0, 3.0])), 16 / 10)


def test_choosing_c_weighs_its_rows(monkeypatch):
    rng = np.random.default_rng(1)
    X, a = rng.normal(size=(400, 3, 2)), rng.integers(0, 3, 400)
    r, p = X[np.arange(400), a, 0] + rng.normal(size=400), np.full(400, 1 / 3)
    s = rng.integers(0, 4, 400).astype(float)
    one, two = (learning.choose_c(r, a, p, X, weight=factor * s) for factor in (1.0, 3.0))
    assert_allclose([row.value for row in one.table], [row.value for row in two.table], rtol=1e-9)
    assert one.table[0].value != learning.choose_c(r, a, p, X).table[0].value
    taught, real = [], choosing.Bandit.update
    monkeypatch.setattr(
        choosing.Bandit, "update", lambda self, x, r, weight: taught.append(weight) or real(self, x, r, weight=weight)
    )
    learning.choose_c(r, a, p, X, weight=s)
    half = s[s > 0][: int(0.5 * np.sum(s > 0))]
    assert_allclose(taught[0], half * half.sum() / (half @ half), rtol=1e-12)  # seen red: learnt unweighted


class Fixed:
    """Always one arm, and nothing learnt."""

    def choose(self, X):
        return type("Shown", (), {"arm": 1})

    def update(self, x, r):
        pass


def test_replay_of_a_thinned_log_finds_the_value_of_the_traffic():
    """Clicks of arm 1 come in 0.2 of the traffic; nine of ten rows without one were dropped. seen red: p alone."""
    rng, n = np.random.default_rng(3), 60_000
    a, P = rng.integers(0, 2, n), np.full(n, 0.5)
    r = (rng.random(n) < np.where(a == 1, 0.2, 0.4)).astype(float)
    here = (r == 1) | (rng.random(n) < 0.1)
    a, r, p, s = a[here], r[here], P[here], np.where(r[here] == 1, 1.0, 10.0)
    e = ope.replay(Fixed(), np.zeros((len(a), 2, 1)), a, r, p, weight=s, seed=0)
    assert abs(e.value - 0.2) < 5 * e.se
    assert e.se < 0.02
    same = ope.replay(Fixed(), np.zeros((len(a), 2, 1)), a, r, p, weight=4 * s, seed=0)
    assert same.value == e.value
    assert abs(ope.replay(Fixed(), np.zeros((len(a), 2, 1)), a, r, p, seed=0).value - 0.2) > 0.3  # what it was


def test_propensities_of_a_thinned_log():
    """Of two arms shown alike, clicks only of arm 1: thinned rows show arm 1 more. seen red: no sample_weight."""
    from sklearn.dummy import DummyClassifier

    rng, n = np.random.default_rng(4), 20_000
    a = rng.integers(0, 2, n)
    r = (a == 1) & (rng.random(n) < 0.5)
    here = r | (rng.random(n) < 0.1)
    s = np.where(r[here], 1.0, 10.0)
    found = ope.propensities_from(
        a[here], np.ones((here.sum(), 1)), arms=2, classifier=DummyClassifier(strategy="prior"), weight=s, seed=0
    )
    se = math.sqrt(np.sum(s**2) / np.sum(s) ** 2) / 2
    assert abs(found.P[0, 1] - 0.5) < 5 * se


def test_labels_of_frames_must_agree():
    """seen red: rows matched by place, 0.0 for 0.5; columns of Q in another order."""
    index = [3, 2, 1, 0]
    r, a = pd.Series([1, 0, 0, 0], index=index), pd.Series([0, 1, 1, 1])
    p, Q = [0.5] * 4, [[1.0, 0.0]] * 4
    with pytest.raises(ValueError, match=r"r and a have different indices, \[3, 2, 1, 0\] and \[0, 1, 2, 3\].*reindex"):
        ope.ips(r, a, p, Q)
    assert ope.ips(r, a.reindex(r.index), p, Q).value == 0.0
    assert ope.ips(r.reindex(a.index), a, p, Q).value == 0.0
    assert ope.ips(r.to_numpy(), a, p, Q).n == 4
    frame = pd.DataFrame(Q, columns=["red", "blue"])
    with pytest.raises(ValueError, match=r"Q and M must have the same columns in one order"):
        ope.dr([1, 0, 0, 0], a, p, frame, frame[["blue", "red"]])
    with pytest.raises(ValueError, match=r"column k of Q is arm k, and its columns are \[1, 0\]"):
        ope.ips([1, 0, 0, 0], a, p, pd.DataFrame(Q, columns=[1, 0]))
    for options in (dict(weight=pd.Series([1.0] * 4, index=index)), dict(cluster=pd.Series([1] * 4, index=index))):
        with pytest.raises(ValueError, match="different indices"):
            ope.ips([1, 0, 0, 0], a, p, Q, **options)
    with pytest.raises(ValueError, match="different indices"):
        ope.replay(dither.LinFP(dim=1, seed=0), np.ones((4, 2, 1)), a, r, p)
    with pytest.raises(ValueError, match="different indices"):
        learning.fit(r, a, p, np.ones((4, 2, 1)))


def test_one_row_with_a_weight_has_no_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        e = ope.snips([1.0], [0], [0.5], [[0.5, 0.5]], weight=[3.0])
    assert (e.value, e.n) == (1.0, 1)
    assert math.isnan(e.se)


def test_settings_are_those_of_the_table():
    assert {name for name, one in ope.ESTIMATORS.items() if one.setting} == set(SETTINGS)

"""Intervals against scipy, simple loops, and the share of logs that they cover."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from test_ope import HAND, log

from dither import ope
from dither.ope import bounded

BOUNDS = dict(weight_max=20.0, reward_range=(0.0, 1.0))
HOWS = ("normal", "bootstrap", "bca", "bernstein", "betting")


def clicks(n, seed):
    r, a, p, Q, M, _ = log(n, 3, seed, floor=0.3)
    return (r > 0).astype(float), a, p, Q, np.clip(M, 0, 1)


@pytest.mark.parametrize("name", ["ips", "snips"])
@pytest.mark.parametrize(("how", "method"), [("bootstrap", "percentile"), ("bca", "BCa")])
def test_the_bootstrap_is_scipys(name, how, method):
    """50,000 resamples each: a quantile's Monte Carlo error is about √(0.025 × 0.975/50,000)/0.058 = 0.012 sd."""
    r, a, p, Q, _ = clicks(80, 1)
    Q = np.repeat([[0.9, 0.05, 0.05]], 80, axis=0)  # long right tails: the acceleration matters
    rows = ope.contributions(name, r, a, p, Q)
    ours = ope.estimate(rows, interval=how, seed=3, resamples=50_000, warn=False)

    def ratio(u, v, axis):
        return np.sum(u, axis=axis) / np.sum(v, axis=axis)

    pair = (rows.u, rows.v) if name == "snips" else (rows.b, np.ones(80))
    theirs = stats.bootstrap(
        pair, ratio, paired=True, vectorized=True, n_resamples=50_000, method=method, batch=1000,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert_allclose(ours.interval, theirs.confidence_interval, atol=5 * 0.012 * math.sqrt(2) * theirs.standard_error)
    assert ope.estimate(rows, interval=how, seed=3, resamples=50_000, warn=False).interval == ours.interval
    # seen red: the acceleration's sign


def test_the_bootstrap_draws_clusters_whole():
    r, a, p, Q, M = clicks(60, 2)
    two = [np.repeat(x, 2, axis=0) for x in (r, a, p, Q, M)]
    once = ope.dr(r, a, p, Q, M, interval="bootstrap", seed=5)
    twice = ope.dr(*two, interval="bootstrap", seed=5, cluster=np.repeat(np.arange(60), 2))
    assert_allclose(twice.interval, once.interval, rtol=1e-12)  # seen red: rows drawn one by one


def test_bernstein_by_hand():
    many = {name: np.repeat(x, 300, axis=0) for name, x in HAND.items()}
    made = ope.contributions("ips", **many)
    e = ope.estimate(made, interval="bernstein", weight_max=4, reward_range=(-1, 2), warn=False)
    b = np.repeat([0.5, 0, 0.25, 2], 300)
    half = math.sqrt(2 * b.var(ddof=1) * math.log(80) / 1200) + 7 * 12 * math.log(80) / (3 * 1199)
    assert_allclose(e.interval, [b.mean() - half, b.mean() + half])  # seen red: ln(2/δ)
    few = ope.ips(**HAND, interval="bernstein", weight_max=4, reward_range=(-1, 2))
    assert few.interval == (-4, 8)  # cut to what is possible


def wealth(x, m, level):
    """The two capitals at each time, by a loop: oracle."""
    up, down, total, squares, variance, path = 0.0, 0.0, 0.5, 0.25, 0.25, []
    for s, value in enumerate(x, start=1):
        lam = math.sqrt(2 * math.log(2 / (1 - level)) / (variance * s * math.log(1 + s)))
        up += math.log(1 + min(lam, 0.5 / m) * (value - m))
        down += math.log(1 - min(lam, 0.5 / (1 - m)) * (value - m))
        path.append((up, down))
        total += value
        squares += (value - total / (s + 1)) ** 2
        variance = squares / (s + 1)
    return np.array(path)


@pytest.mark.parametrize("n", [1, 5, 300])
def test_betting_leaves_what_no_wealth_refuses(n):
    x = np.random.default_rng(n).beta(2, 5, n)
    low, high = bounded.interval(x, level=0.9)
    grid = (np.arange(400) + 0.5) / 400
    kept = [bool(np.all(wealth(x, m, 0.9) < math.log(20))) for m in grid]
    assert_allclose(kept, (grid > low) & (grid < high))  # seen red: bets on the value itself; wealth at the end alone
    mirrored = bounded.interval(1 - x, level=0.9)
    assert_allclose(mirrored, [1 - high, 1 - low], atol=1e-12)


def test_betting_without_a_constant_mean_is_no_interval():
    assert np.isnan(bounded.interval(np.repeat([0.0, 1.0], 500))).all()


def test_a_confidence_sequence_narrows_and_ends_in_the_interval():
    r, a, p, Q, M = clicks(500, 4)
    e = ope.dr(r, a, p, Q, M, interval="betting", **BOUNDS)
    times, ends = ope.confidence_sequence(e, at=8, **BOUNDS)
    assert times[-1] == 500
    assert np.all(np.diff(ends[:, 0]) >= 0)
    assert np.all(np.diff(ends[:, 1]) <= 0)
    assert_allclose(ends[-1], e.interval, rtol=1e-9)
    assert_allclose(ope.confidence_sequence(e, at=[500], **BOUNDS)[1][0], e.interval)
    with pytest.raises(ValueError, match="a confidence sequence needs a mean"):
        ope.confidence_sequence(ope.snips(r, a, p, Q), **BOUNDS)


@pytest.mark.parametrize("how", ["bernstein", "betting"])
def test_bounds_are_asked_for_and_checked(how):
    r, a, p, Q, M = clicks(50, 0)
    for options, message in (
        ({}, r"reward_range=\(low, high\) and weight_max=, such as K/floor"),
        (dict(weight_max=20.0), "pass reward_range"),
        (dict(weight_max=0.1, reward_range=(0, 1)), "weight_max=0.1 is no bound: the largest weight is"),
        (dict(weight_max=20.0, reward_range=(0, 0.5)), r"is no bound: rewards and predictions go from 0 to 1"),
        (dict(weight_max=20.0, reward_range=(1, 0)), "the lower first"),
        (dict(**BOUNDS, cluster=np.arange(50) // 2), "takes the rows as independent"),
    ):
        with pytest.raises(ValueError, match=message):
            ope.dr(r, a, p, Q, M, interval=how, **options)
    with pytest.raises(ValueError, match="is a ratio: take ips or dr"):
        ope.snips(r, a, p, Q, interval=how, **BOUNDS)
    low, high = ope.clipped_ips(r, a, p, Q, clip=2, interval=how, reward_range=(0, 1)).interval  # knows its bound
    assert 0 <= low < high <= 2
    for e in (ope.dros(r, a, p, Q, M, lam=4, interval=how, reward_range=(0, 1)),
              ope.sgdr(r, a, p, Q, M, lam=0.1, interval=how, reward_range=(0, 1)),
              ope.switch_dr(r, a, p, Q, M, tau=2, interval=how, reward_range=(0, 1))):  # fmt: skip
        assert e.interval[0] <= e.value <= e.interval[1]


@pytest.mark.parametrize("lam", [0.5, 4.0, 30.0])
def test_the_weights_that_know_their_bound_keep_it(lam):
    w = np.append(np.geomspace(1e-3, 1e4, 500), math.sqrt(lam))
    q, a, r = np.minimum(w, 1), np.zeros(len(w), dtype=int), np.ones(len(w))
    Q, p = np.stack([q, 1 - q], axis=1), q / w
    for made in (ope.contributions("dros", r, a, p, Q, 0 * Q, setting=lam),
                 ope.contributions("sgdr", r, a, p, Q, 0 * Q, setting=1 / (1 + lam)),
                 ope.contributions("clipped_ips", r, a, p, Q, setting=lam)):  # fmt: skip
        assert 0.99 < made.b.max() / made.bounded.weight < 1 + 1e-12  # seen red: √lam for √lam/2


@pytest.mark.parametrize("how", HOWS)
def test_monte_carlo_errors_widen_every_interval(how):
    r, a, p, Q, M = clicks(4000, 0)
    plain = ope.dr(r, a, p, Q, M, interval=how, seed=0, resamples=200, **BOUNDS)
    wide = ope.dr(r, a, p, Q, M, interval=how, seed=0, resamples=200, kind="monte_carlo", p_se=0.3 * p, **BOUNDS)
    assert wide.interval[0] < plain.interval[0]
    assert wide.interval[1] > plain.interval[1]


@pytest.mark.parametrize("how", HOWS)
def test_intervals_cover(how):
    """The value of five contexts and four arms is a sum; benchmarks/coverage.py has the measured table."""
    rng, logs, n = np.random.default_rng(7), 200, 400
    mu, P = rng.uniform(0.1, 0.9, (5, 4)), 0.05 + 0.8 * rng.dirichlet(np.ones(4), 5)
    Q, M = rng.dirichlet(np.ones(4), 5), rng.uniform(0, 1, (5, 4))
    value, covered = np.mean(np.sum(Q * mu, axis=1)), 0
    bounds = dict(weight_max=float((Q / P).max()), reward_range=(0, 1))
    for k in range(logs):
        x = rng.integers(0, 5, n)
        a = np.minimum((rng.random(n)[:, None] > np.cumsum(P[x], axis=1)).sum(axis=1), 3)
        r = (rng.random(n) < mu[x, a]).astype(float)
        made = ope.contributions("dr", r, a, P[x, a], Q[x], M[x])
        low, high = ope.estimate(made, interval=how, seed=k, resamples=200, warn=False, **bounds).interval
        covered += low <= value <= high
    slack = 5 * math.sqrt(0.95 * 0.05 / logs)
    assert covered / logs >= 0.95 - slack  # seen red: a z for 80 %
    if how in ("normal", "bootstrap", "bca"):
        assert covered / logs <= 0.95 + slack


def test_one_row_has_no_error():
    e = ope.ips([1.0], [0], [0.5], [[0.5, 0.5]])
    assert (e.value, e.n) == (1.0, 1)
    assert math.isnan(e.se)

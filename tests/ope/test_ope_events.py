"""Intervals that hold for events that were not seen, and at all times at once."""

import functools
import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from test_ope import HAND

from dither import ope
from dither.ope import intervals

LOGS = 1000
RATES = np.array([0.0005, 0.004, 0.0005, 0.0005])


def shop(rng, n=300, rates=RATES):
    """Four arms shown at random; few clicks, or none."""
    a = rng.integers(0, 4, n)
    return a, (rng.random(n) < rates[a]).astype(float)


def tally(a, r, arm=1, s=None):
    return intervals.tallied(r, np.where(a == arm, 4.0, 0.0), s)


def test_clopper_pearson_is_scipys():
    r = np.repeat([1.0, 0.0], [3, 17])
    a, p, Q = np.zeros(20, dtype=int), np.full(20, 0.5), np.tile([1.0, 0.0], (20, 1))
    a[10:] = 1
    shown = ope.snips(r, a, p, Q, interval="clopper_pearson", level=0.9)
    assert_allclose(shown.interval, stats.binomtest(3, 10).proportion_ci(0.9), rtol=1e-9)  # of the ten of arm 0
    every = ope.ips(r, a, p, Q, interval="clopper_pearson", level=0.9)
    assert_allclose(every.interval, 2 * np.array(stats.binomtest(3, 20).proportion_ci(0.9)), rtol=1e-9)
    scaled = ope.snips(5 * r - 1, a, p, Q, interval="clopper_pearson", level=0.9)  # two other values
    assert_allclose(scaled.interval, 5 * np.array(shown.interval) - 1, rtol=1e-9)
    # seen red: n for N in the one, N for n in the other


def test_what_clopper_pearson_refuses():
    how = dict(interval="clopper_pearson")
    with pytest.raises(ValueError, match="needs rewards of two values"):
        ope.snips(**HAND, **how)
    r, a, p, Q = [1.0, 0.0, 1.0], [0, 1, 0], [0.5, 0.5, 0.25], [[1.0, 0.0]] * 3
    with pytest.raises(ValueError, match=r"needs equal weights, and the weights q/p above 0 differ: take 'betting'"):
        ope.snips(r, a, p, Q, **how)
    p = [0.5] * 3
    with pytest.raises(ValueError, match="for means of rewards: take ips or snips, not dr"):
        ope.dr(r, a, p, Q, Q, **how)
    with pytest.raises(ValueError, match="takes the rows as independent"):
        ope.snips(r, a, p, Q, cluster=[1, 1, 2], **how)
    with pytest.raises(ValueError, match="needs rewards of 0 and another value: take snips"):
        ope.ips([1.0, 3.0, 1.0], a, p, Q, **how)
    assert ope.snips([1.0, 1.0, 1.0], a, p, Q, **how).interval[1] == 1.0


@pytest.mark.parametrize("name", ["ips", "snips"])
def test_clopper_pearson_covers_where_events_are_rare(name):
    """2,000 logs of 300 rows, most without a click of the arm. seen red: the normal interval, in a quarter of them."""
    rng, held, normal = np.random.default_rng(1), 0, 0
    for _ in range(LOGS):
        a, r = shop(rng)
        made = ope.contributions(name, r, a, np.full(300, 0.25), np.tile([0.0, 1.0, 0.0, 0.0], (300, 1)))
        low, high = ope.estimate(made, interval="clopper_pearson", warn=False).interval
        held += low <= 0.004 <= high
        low, high = ope.estimate(made, warn=False).interval
        normal += low <= 0.004 <= high
    assert held / LOGS >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / LOGS)
    assert normal / LOGS < 0.4  # what a log without events says of itself


@pytest.mark.parametrize("case", ["weights", "thinned", "no event at all"])
def test_the_interval_for_events_not_seen_covers(case):
    """Weights 1 or 7 with known bound, rows of weight 1 or 4, rewards that come in 1 of 250. seen red: A for S A."""
    rng, held = np.random.default_rng(2), 0
    mu = 0.0 if case == "no event at all" else 0.004
    for _ in range(LOGS):
        w = np.where(rng.random(400) < 0.25, 7.0, np.where(rng.random(400) < 5 / 6, 0.0, 1.0))
        w *= 1 / (0.25 * 7 + 0.75 / 6)
        r = (rng.random(400) < mu).astype(float)
        s = None
        if case == "thinned":
            s = np.where(w > 1, 1.0, 4.0)
            here = rng.random(400) < 1 / s
            w, r, s = w[here], r[here], s[here]
        low, high = intervals.unseen(intervals.tallied(r, w, s), 0.95, (0.0, 1.0), bound=7.0)
        held += low <= mu <= high
    assert held / LOGS >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / LOGS)


def test_the_interval_leaves_what_chernoffs_bound_does():
    rng = np.random.default_rng(3)
    w, r, s = rng.choice([0.0, 1.0, 3.0], 200), (rng.random(200) < 0.1) * 1.0, rng.choice([1.0, 2.0], 200)
    low, high = intervals.unseen(intervals.tallied(r, w, s), 0.9, (0.0, 1.0), bound=5.0)

    def kept(v):
        z = np.mean(s / 2 * (w * r - v) / 5 + v / 5)
        return 200 * stats.entropy([z, 1 - z], [v / 5, 1 - v / 5]) <= math.log(2 / 0.1)

    for v in np.linspace(0.001, 0.999, 700):
        assert kept(v) == (low <= v <= high)
    assert 0 <= low < high <= 1


@pytest.mark.parametrize("cuts", [[0, 300], [0, 1, 50, 300]])
def test_tallies_of_parts_add_up(cuts):
    rng = np.random.default_rng(4)
    a, r = shop(rng, rates=np.array([0.1, 0.3, 0.2, 0.0]))
    r = r * rng.integers(1, 4, 300)
    s = rng.choice([1.0, 2.0], 300)
    parts = [tally(a[i:j], r[i:j], s=s[i:j]) for i, j in itertools.pairwise(cuts)]
    assert functools.reduce(intervals.merge_tallies, parts) == tally(a, r, s=s)
    many = intervals.tallied(np.arange(20.0), np.ones(20), None)
    assert not intervals.few(many)
    assert intervals.merge_tallies(many, tally(a, r)).values == ()


def test_few_are_counted_by_what_the_policy_shows():
    a = np.repeat([0, 1], 100)
    r = np.r_[np.ones(50), np.zeros(50), np.ones(9), np.zeros(91)]
    assert intervals.few(tally(a, r))
    assert not intervals.few(tally(a, r, arm=0))
    assert not intervals.few(tally(a, np.r_[r[:109], 1, r[110:]]))
    assert intervals.few(tally(a, 1 - r))  # rewards that nearly all came, too
    assert not intervals.few(intervals.tallied(r, np.zeros(200), None))


def test_no_event_is_said():
    """seen red: [0, 0] and no word."""
    a = np.arange(400) % 4
    with pytest.warns(ope.EventWarning, match="no reward differs.*clopper_pearson"):
        e = ope.snips(np.zeros(400), a, np.full(400, 0.25), np.tile([0.0, 1.0, 0.0, 0.0], (400, 1)))
    assert e.interval == (0.0, 0.0)
    held = ope.snips(np.zeros(400), a, np.full(400, 0.25), np.eye(4)[np.ones(400, int)], interval="clopper_pearson")
    assert_allclose(held.interval, [0, 1 - 0.025 ** (1 / 100)])


def boundary(n, alpha, rho2):
    """Where the mixture over N(0, ρ²) of likelihood ratios reaches 1/α, by quadrature: oracle."""
    from scipy import integrate, optimize

    def excess(S):
        density = stats.norm(scale=math.sqrt(rho2)).pdf
        return integrate.quad(lambda m: math.exp(m * S - n * m * m / 2) * density(m), -1, 1, limit=200)[0] - 1 / alpha

    return optimize.brentq(excess, 0, 20 * math.sqrt(n)) / n


@pytest.mark.parametrize("n", [200, 1000, 4000])
def test_the_asymptotic_sequence_is_a_normal_mixture(n):
    low, high = intervals.about_always(2.0, 1 / math.sqrt(n), n, 0.95, 1000)
    grid = np.linspace(1e-4, 0.2, 20_000)
    x = 1000 * grid
    rho2 = grid[np.argmin((x + 1) / x * (np.log(x + 1) / 2 + math.log(20)))]  # the narrowest at 1,000, by search
    assert_allclose((high - low) / 2, boundary(n, 0.05, rho2), rtol=1e-4)
    assert_allclose(low + high, 4.0)
    # seen red: α/2; ρ² of another time


def test_the_asymptotic_sequence_holds_at_all_times():
    """2,000 logs looked at 60 times from 50 rows on; the normal interval misses in more than a quarter of them."""
    rng, missed, normal, n = np.random.default_rng(5), 0, 0, 3000
    at = np.unique(np.geomspace(50, n, 60).astype(int))
    for _ in range(LOGS):
        b = 4.0 * (rng.random(n) < 0.25) * (rng.random(n) < 0.4)
        mean = np.cumsum(b)[at - 1] / at
        se = np.sqrt((np.cumsum(b * b)[at - 1] / at - mean**2) / (at - 1))
        ends = np.array(
            [intervals.about_always(m, e, t, 0.95, 1000) for m, e, t in zip(mean, se, at.tolist(), strict=True)]
        )
        missed += bool(np.any((ends[:, 0] > 0.4) | (ends[:, 1] < 0.4)))
        normal += bool(np.any(np.abs(mean - 0.4) > 1.96 * se))
    assert missed / LOGS <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / LOGS)
    assert normal / LOGS > 0.25


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
@pytest.mark.parametrize("name", ["ips", "snips"])
def test_a_path_of_asymptotic_intervals(name):
    rng = np.random.default_rng(6)
    a, r = shop(rng, 800, np.array([0.2, 0.5, 0.3, 0.1]))
    p, Q, s = np.full(800, 0.25), np.tile([0.1, 0.7, 0.1, 0.1], (800, 1)), rng.choice([1.0, 2.0], 800)
    e = getattr(ope, name)(r, a, p, Q, weight=s, interval="asymptotic")
    times, ends = ope.confidence_sequence(e, at=[100, 800], interval="asymptotic")
    assert times.tolist() == [100, 800]
    assert_allclose(ends[-1], e.interval)
    first = getattr(ope, name)(r[:100], a[:100], p[:100], Q[:100], weight=s[:100], interval="asymptotic")
    assert_allclose(ends[0], first.interval)
    with pytest.raises(ValueError, match="'betting', 'anytime' or 'asymptotic'"):
        ope.confidence_sequence(e, interval="normal")

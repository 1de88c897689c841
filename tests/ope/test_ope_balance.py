"""The test of the weights: its false alarms are at most what it says for every law, and it finds what is wrong."""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_ope import log

from dither import ope
from dither.log import bets
from dither.ope import diagnostics

LOGS = 2000


def two(high, n, logs, rng):
    """Weights 0 or `high`, of mean 1."""
    return np.where(rng.random((logs, n)) < 1 / high, high, 0.0)


def lognormal(sd, n, logs, rng):
    return np.exp(sd * rng.normal(size=(logs, n)) - sd**2 / 2)


def pareto(n, logs, rng):
    """A tail without variance: index 1.3."""
    return rng.pareto(1.3, size=(logs, n)) * 0.3


def adapted(n, logs, rng):
    """Each row's law depends on the mean of the weights before it, as in the log of a policy that learns."""
    w, total = np.empty((logs, n)), np.zeros(logs)
    for t in range(n):
        high = np.where(total > t, 50.0, 1.5)
        w[:, t] = np.where(rng.random(logs) < 1 / high, high, 0.0)
        total += w[:, t]
    return w


LAWS = {
    "two, 4": functools.partial(two, 4.0),
    "two, 600": functools.partial(two, 600.0),
    "two, 1e6": functools.partial(two, 1e6),
    "lognormal 1": functools.partial(lognormal, 1.0),
    "lognormal 2.5": functools.partial(lognormal, 2.5),
    "pareto": pareto,
    "adapted": adapted,
}


def p_values(w, limit=None, s=None):
    p = np.full(w.shape[1], 0.5)
    return np.array([bets.p_value(bets.balance(row, p, s, limit)) for row in w])


@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_are_at_most_what_is_said(law):
    """2,000 logs of 900 rows; the bound of a log's weights is told where there is one. seen red: a normal test."""
    w = LAWS[law](900, LOGS, np.random.default_rng(1))
    limit = {"two, 4": 4.0, "two, 600": 600.0, "two, 1e6": 1e6, "adapted": 50.0}.get(law)
    p = p_values(w, limit)
    for level in (0.05, 1e-2):
        assert np.mean(p <= level) <= level + 5 * math.sqrt(level * (1 - level) / LOGS)


@pytest.mark.parametrize(("rows", "tiny", "lost"), [(4, 0.1, 3), (20, 0.04, 11), (40, 0.004, 21)])
def test_the_bets_are_fair_where_the_bound_depends_on_the_draws(rows, tiny, lost):
    """Over all logs of a policy that learns. "Always arm 1" has weights of 2 and 0 in some rows. Where `lost` of them
    or more were 2, the large bets have lost, and the policy makes arm 1 rare in one more row: the bound rises.

    seen red: the mean over the bets that the bound allows: 1.03, 1.06, 1.08
    """
    total = 0.0
    for k in range(rows + 1):
        q = tiny if k >= lost else 0.5
        for shown, chance in ((1.0, q), (0.0, 1 - q)):
            w = np.concatenate([np.full(k, 2.0), np.zeros(rows - k), [shown / q]])
            made = bets.balance(w, np.full(rows + 1, 0.5), None, max(2.0, 1 / q))
            total += math.comb(rows, k) * 0.5**rows * chance * math.exp(bets.below(made))
    assert total <= 1 + 1e-12


def test_false_alarms_with_weights_of_rows():
    """Rows kept with chance 1/s, s by what they weigh. seen red: a bet on w - 1 alone."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(LOGS):
        w = np.where(rng.random(2000) < 0.25, 4.0, 0.0)
        s = np.where(w > 0, 1.0, 10.0)
        here = rng.random(2000) < 1 / s
        found.append(bets.p_value(bets.balance(w[here], np.full(here.sum(), 0.5), s[here], 4.0)))
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / LOGS)
    wrong = bets.p_value(bets.balance(w[here], np.full(here.sum(), 0.5), None, 4.0))
    assert wrong < 1e-4  # the rows as they stand do weigh more than 1


@pytest.mark.parametrize("n", [60, 240, 1000, 5000])
def test_false_alarms_of_the_test_of_support(n):
    """K = 8 arms at random, always one of them: 2,000 logs, no bound but what is seen. seen red: a normal test."""
    w = two(8.0, n, LOGS, np.random.default_rng(3))
    found = np.array([bets.support(bets.balance(row, np.full(n, 0.1), None, None)) for row in w])
    for level in (0.05, 1e-2):
        assert np.mean(found <= level) <= level + 5 * math.sqrt(level * (1 - level) / LOGS)
    assert np.mean(found <= 1e-4) <= 1e-4 + 5 * math.sqrt(1e-4 / LOGS)


def test_what_is_wrong_is_found():
    rng = np.random.default_rng(4)
    w, p = two(4.0, 900, 200, rng), np.full(900, 0.5)
    assert np.all(p_values(2 * w) < 1e-4)  # p said to be half of what it was
    assert np.all(p_values(0.5 * w, 4.0) < 1e-4)  # and half of the policy on arms that were not shown
    assert np.all(p_values(0.5 * w) == 1)  # which no test tells from arms that are rare,
    assert all(bets.support(bets.balance(0.5 * row, p, None, None)) < 1e-4 for row in w)  # and that is what is said
    mixed = np.where(rng.random((200, 20_000)) < 0.002, 100.0, 0.8 / 0.998)  # a few weigh much; a quarter is gone
    found = [bets.support(bets.balance(0.75 * row, np.full(20_000, 0.5), None, None)) for row in mixed]
    assert np.mean(np.array(found) < 1e-4) > 0.9


def test_parts_add_up_whatever_their_weights():
    """seen red: the bets of a part left at the place that they had."""
    rng = np.random.default_rng(5)
    w, p = rng.exponential(1.3, 300), np.full(300, 0.5)
    s = np.repeat([1.0, 3.0, 700.0], 100)
    whole = bets.balance(w, p, s, 30.0)
    parts = [bets.balance(w[k : k + 100], p[:100], s[k : k + 100], 30.0) for k in (0, 100, 200)]
    total = functools.reduce(bets.merged, parts)
    known = np.isfinite(total.high)
    for one, other in ((total.high, whole.high), (total.low, whole.low)):
        assert_allclose(one[known], other[known], rtol=1e-9, atol=1e-9)
    assert known.sum() == len(bets.STAKES) - (whole.scale - parts[0].scale)
    assert_allclose([total.mass, total.total, total.scale], [whole.mass, whole.total, 5])
    one = functools.reduce(bets.merged, [bets.balance(w[k : k + 100], p[:100], None, None) for k in (0, 100, 200)])
    assert_allclose(bets.p_value(one), bets.p_value(bets.balance(w, p, None, None)), rtol=1e-9)


def rare(rng, n=900, K=30, floor=0.05):
    """A right log of a policy that knows what is best: arm 3 is best in 3 % of the contexts. w of "always arm 3"."""
    best = np.where(rng.random(n) < 0.03, 3, 4 + rng.integers(0, K - 4, n))
    P = np.full((n, K), floor / K)
    P[np.arange(n), best] += 1 - floor
    a = np.where(rng.random(n) < floor, rng.integers(0, K, n), best)
    return a, P


def test_a_right_log_with_a_floor_is_not_accused():
    """30 arms, floor 0.05, "always arm 3", 900 rows: no accusation in 2,000 logs at 1e-4, by P or by p alone.

    seen red: the normal test of the mean weight, in 49 % of them
    """
    rng, accused, normal = np.random.default_rng(6), 0, 0
    for _ in range(LOGS):
        a, P = rare(rng)
        rows = np.arange(900)
        w = np.where(a == 3, 1 / P[rows, a], 0.0)
        for limit in (600.0, None):
            accused += bets.p_value(bets.balance(w, P[rows, a], None, limit)) < 1e-4
        normal += abs(w.mean() - 1) > 3.89 * w.std() / 30
    assert accused <= 2 * (LOGS * 1e-4 + 5 * math.sqrt(LOGS * 1e-4))
    assert normal > 0.1 * LOGS


@pytest.mark.filterwarnings("ignore::dither.ope.EvaluationWarning")
def test_few_effective_rows_come_first():
    a, P = rare(np.random.default_rng(7))
    Q = np.zeros(P.shape)
    Q[:, 3] = 1
    e = ope.ips(np.ones(900), a, P[np.arange(900), a], Q, P=P)
    assert e.ess < 30
    said = diagnostics.complaints(e, has_P=True, certain=0.0)
    assert [category for category, _ in said] == [ope.WeightWarning]


def test_four_rows_of_which_one_carries_all_are_said():
    """seen red: no word below 100 rows."""
    r, a, p = [1.0, 0.0, 1.0, 0.0], [0, 1, 1, 1], [0.01, 0.99, 0.99, 0.99]
    with pytest.warns(ope.WeightWarning, match="few rows carry it all: 1.*effective of 4"):
        ope.ips(r, a, p, [[0.7, 0.3]] * 4)


@pytest.mark.parametrize("n", [5, 20, 60, 99, 100, 3000])
def test_even_weights_of_small_logs_are_not_few(n):
    r, a, p, _, _, P = log(n, 3, seed=n, floor=0.9)
    e = ope.ips(r, a, p, np.full((n, 3), 1 / 3), P=P)
    assert not diagnostics.few(e)


def test_no_row_that_shows_the_policy_is_said():
    with pytest.warns(ope.SupportWarning, match="all weights are 0"):
        ope.ips([1.0, 0.0], [0, 0], [0.5, 0.5], [[0.0, 1.0]] * 2)


def test_a_known_bound_is_what_tells():
    """Half of the policy on an arm that is never shown: told with P or weight_max, which bound what can be missed."""
    n = 300
    a = np.arange(n) % 2
    Q, p = np.tile([0.25, 0.25, 0.5], (n, 1)), np.full(n, 0.5)
    made = ope.contributions("ips", np.ones(n), a, p, Q)
    assert ope.estimate(made, warn=False).weight_test == 1
    assert ope.estimate(made, warn=False, weight_max=4.0).weight_test < 1e-4
    with pytest.warns(ope.SupportWarning, match="about 0.5 .* could not show, or shows too rarely"):
        ope.estimate(made)

"""One arm on offer is certain: its probability is 1, exactly, whoever is asked and in whatever way."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither

ALONE, ALL = [True, False, False], [True, True, True]
X = np.eye(3)
NAMES = [name for name in dither.ALGORITHMS if name not in ("OFUGLB", "Logistic-UCB-2")]  # slow, and as UCB here


def bandit(name, draws, **settings):
    if name == "FP":
        settings |= {"Sigma": 1.0}
    made = dither.ALGORITHMS[name](dim=3, seed=0, monte_carlo=draws, **settings)
    made.update(X[0], 1.0)
    made.update(X[1], 0.0)
    return made


def certain(d, arm=0):
    assert d.arm == arm
    assert d.propensity == 1  # not 1 - 2e-16
    assert d.propensity_kind == "exact"
    assert d.propensity_se is None


@pytest.mark.parametrize("draws", [0, 50])
@pytest.mark.parametrize("name", NAMES)
def test_one_arm_is_certain_on_every_road(name, draws):
    for settings in ({}, {"floor": 0.3}):
        b = bandit(name, draws, **settings)
        certain(b.choose(X, mask=ALONE))
        certain(b.choose(X[:1]))
        certain(b.choose(X, mask=ALONE, minimum=[0.2, 0.1, 0.0]))
        both = b.choose(np.stack([X, X]), mask=[ALONE, ALONE])
        assert_array_equal(both.propensity, [1, 1])
        assert both.propensity_kind == "exact"
        assert both.propensity_se is None
        listed = b.choose_list(X, k=1, mask=ALONE)
        assert (listed.arms.tolist(), listed.propensity, listed.propensity_kind) == ([0], 1, "exact")
        assert listed.propensity_se is None
        lists = b.list_propensities(X, k=1, mask=ALONE, draws=20)
        assert_array_equal(lists.membership, [1, 0, 0])
        assert_array_equal(lists.propensity, [1])
        assert lists.kind == "exact"
        for asked in ({}, {"minimum": [0.2, 0.1, 0.0]}):
            p, se, kind = b.propensities(X, mask=ALONE, draws=20, detail=True, **asked)
            assert_array_equal(p, [1, 0, 0])
            assert se is None
            assert kind == "exact"
            assert_array_equal(b.propensities(X, mask=ALONE, draws=20, log=True, **asked), [0, -np.inf, -np.inf])
    # seen red: LinTS, 50 draws: kind Monte Carlo; 0 draws: propensities Monte Carlo; EpsGreedy: 1 - 1e-16


@pytest.mark.parametrize("draws", [0, 50])
@pytest.mark.parametrize("name", ["LinFP", "LinTS", "FTPL", "EpsGreedy", "Softmax"])
def test_one_arm_is_certain_beside_requests_with_more(name, draws):
    b = bandit(name, draws, floor=0.1)
    d = b.choose(np.stack([X, X, X]), mask=[ALL, ALONE, ALL])
    assert d.arm[1] == 0
    assert d.propensity[1] == 1
    if d.propensity_se is not None:
        assert d.propensity_se[1] == 0
    alone = bandit(name, draws, floor=0.1).choose(X)
    assert d.propensity_kind == alone.propensity_kind
    assert np.isnan(d.propensity[0]) == np.isnan(alone.propensity)
    listed = b.choose_list(np.stack([X, X]), k=1, mask=[ALONE, ALL])
    assert listed.propensity[0] == 1
    p = b.propensities(np.stack([X, X]), mask=[ALONE, ALL], draws=20)
    assert_array_equal(p[0], [1, 0, 0])
    # seen red: in a batch, 0 draws, NaN


@pytest.mark.parametrize("draws", [0, 50])
@pytest.mark.parametrize("name", ["LinFP", "LinTS", "FTPL", "EpsGreedy"])
def test_one_safe_arm_is_certain(name, draws):
    """A baseline that must be shown has probability 1, and the arm that one slot has too."""
    slots = dither.ALGORITHMS[name](dim=3, disjoint=3, seed=0, monte_carlo=draws)
    certain(slots.choose(X[0], mask=[False, True, False]), arm=1)
    if name in ("LinFP", "LinTS", "EpsGreedy"):
        kept = bandit(name, draws, baseline=dither.Baseline(arm=2, loss=0.01, reward=5.0))
        certain(kept.choose(X), arm=2)
        p, se, kind = kept.propensities(X, detail=True, draws=20)
        assert_array_equal(p, [0, 0, 1])
        assert (se, kind) == (None, "exact")


@pytest.mark.parametrize("draws", [0, 50])
@pytest.mark.parametrize("name", ["LinFP", "LinTS", "FTPL", "EpsGreedy"])
@pytest.mark.parametrize("batched", [False, True])
def test_one_arm_is_certain_in_every_log(name, draws, batched, tmp_path):
    request = (np.stack([X, X]), np.array([ALONE, ALL])) if batched else (X, np.array(ALONE))
    log = dither.log.Log(bandit=bandit(name, draws), probabilities=name != "FTPL")
    log.decide(request[0], mask=request[1])
    ledger = dither.log.Ledger()
    b = bandit(name, draws)
    ledger.record(b.choose(request[0], mask=request[1]), X=request[0], mask=request[1])
    b = dither.ALGORITHMS[name](dim=3, seed=0, monte_carlo=draws)
    with dither.Live(None, bandit=b, probabilities=name != "FTPL") as live:
        live.choose(request[0], mask=request[1])
        for rows in (log.read(), ledger.read(), live.read()):
            assert rows.frame["propensity"][0] == 1
            assert rows.frame["propensity_kind"][0] == "exact"
            assert rows.frame["propensity_se"][0] is None
    ledger.close()
    # seen red: kind none and no propensity, in a batch


EMPTY = np.zeros((0, 3, 3))


@pytest.mark.parametrize("name", ["LinFP", "LinTS", "Greedy"])
def test_a_batch_without_requests_is_decided_on_every_road(name):
    b = bandit(name, 20, floor=0.1)
    before = b.decisions
    for d in (b.choose(EMPTY), b.choose(EMPTY, minimum=[0.1, 0.2, 0.0])):
        assert d.arm.shape == d.propensity.shape == (0,)
    assert b.choose_list(EMPTY, k=2).arms.shape == (0, 2)
    assert b.propensities(EMPTY).shape == (0, 3)
    alone = b.choose(np.zeros((0, 1, 3)))
    assert (alone.propensity.shape, alone.propensity_kind) == ((0,), "exact")
    kept = dither.ALGORITHMS[name](dim=3, seed=0, monte_carlo=20, baseline=dither.Baseline(0, loss=0.3, sigma=0.1))
    assert kept.choose(EMPTY).arm.shape == (0,)
    assert kept.propensities(EMPTY).shape == (0, 3)
    assert (b.decisions, kept.kept.rounds) == (before, 0)
    with dither.log.Log(None, bandit=b, probabilities=True) as log:
        assert log.decide(EMPTY).arm.shape == (0,)
        assert log.record(b.choose(EMPTY), X=EMPTY).arm.shape == (0,)
    # seen red: "zero-size array to reduction operation minimum", "need at least one array to stack"


@pytest.mark.parametrize("name", ["Greedy", "EpsGreedy", "LinUCB", "LinFP", "LinTS", "UCB-GLM", "LogGreedy"])
@pytest.mark.parametrize("settings", [{}, {"disjoint": 1}])
def test_a_list_of_the_only_arm_is_certain(name, settings):
    b = dither.ALGORITHMS[name](dim=3, seed=0, **settings)
    x = X[0] if settings else X[:1]
    for lists in (True, False):
        every = b.list_propensities(x, k=1, draws=10, lists=lists)
        assert (every.membership.tolist(), every.kind) == ([1.0], "exact")
        assert every.lists.tolist() == ([[0]] if lists else [])
        assert every.propensity.tolist() == ([1.0] if lists else [])
    # seen red: "object of too small depth for desired array"


def test_the_kind_of_a_batch_is_that_of_its_weakest_request():
    b = bandit("LinTS", 0, baseline=dither.Baseline(0, loss=0.3, sigma=0.1))
    for i in range(60):
        b.choose(X)
        b.update(X[i % 3], [0.0, 0.9, 1.0][i % 3])
    both, masks = np.stack([X, X]), [ALONE, ALL]
    with dither.log.Log(None, bandit=b, probabilities=True) as log:
        log.decide(both, mask=masks)
        first, second = log.read().P
    assert first.tolist() == [1, 0, 0]
    assert second.sum() == pytest.approx(1)
    chosen = b.decide(b.request(both, masks))
    p, se, kind = chosen.probabilities(draws=200)
    assert (p[0].tolist(), se[0].tolist(), kind) == ([1, 0, 0], [0, 0, 0], "monte_carlo")
    assert np.all(se[1] > 0) or np.count_nonzero(p[1]) == 1
    # seen red: "truth value of an array is ambiguous"; "exact", as the first request is

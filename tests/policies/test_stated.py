"""Softmax and inverse gap weighting: their laws by hand, their draws, their lists."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import models, testing, theory
from dither.policies import Softmax, SquareCB


def knowing(r, policy, *, seed=0, lam=1e-12, **settings):
    """A bandit that predicts r for the arms eye(len(r))."""
    b = dither.Bandit(models.Ridge(lam), policy, dim=len(r), seed=seed, **settings)
    b.update(np.eye(len(r)), np.asarray(r, dtype=float))
    return b


def softmax(r, *, temperature, on):
    """One exponential after the other."""
    weights = [math.exp(r[i] / temperature) if i in on else 0.0 for i in range(len(r))]
    return [w / math.fsum(weights) for w in weights]


def inverse_gaps(r, *, gamma, on):
    """Each arm in turn is the best one that the paper speaks of, and the average over those that tie is the law."""
    most = max(r[i] for i in on)
    best = [i for i in on if r[i] == most]
    p = [0.0] * len(r)
    for b in best:
        others = {i: 1 / (len(on) + gamma * (most - r[i])) for i in on if i != b}
        for i, q in {**others, b: 1 - math.fsum(others.values())}.items():
            p[i] += q / len(best)
    return p


R = [0.2, 0.9, 0.4, 0.9, -0.3]


@pytest.mark.parametrize("on", [[0, 1, 2, 3, 4], [0, 2, 4], [1, 3], [2]])
def test_the_laws_are_the_formulas(on):
    mask, X = np.isin(np.arange(5), on), np.eye(5)
    p = knowing(R, Softmax(0.3)).propensities(X, mask=mask)
    assert_allclose(p, softmax(R, temperature=0.3, on=on), atol=1e-9)
    p = knowing(R, SquareCB(7.0, power=0.0)).propensities(X, mask=mask)
    assert_allclose(p, inverse_gaps(R, gamma=7.0, on=on), atol=1e-9)
    # seen red: K of all arms; the best one alone has the rest where two tie


def test_gamma_grows_with_the_round():
    r = [1.0, 0.0]
    b = knowing(r, SquareCB(10.0))  # two rewards: t = 3
    assert_allclose(b.propensities(np.eye(2))[1], 1 / (2 + 10 * math.sqrt(3)), rtol=1e-9)
    b = knowing(r, SquareCB("theory", horizon=1000))
    gamma = math.sqrt(2 * 1000 / (2 * math.log(1 + 500) + math.log(2000)))
    assert_allclose(b.propensities(np.eye(2))[1], 1 / (2 + gamma), rtol=1e-9)
    assert_allclose(theory.squarecb_gamma(1000, K=2, d=2, delta=1e-3), gamma, rtol=1e-12)
    assert dither.ALGORITHMS["SquareCB"].configure(2, preset="own_paper")[1].gamma == "theory"


def test_rewards_and_not_logits_are_weighed():
    b = dither.Bandit(models.GLM(lam=1.0), Softmax(0.1), dim=2, seed=0)
    b.update(np.eye(2)[[0, 0, 0, 1]], np.array([1.0, 1.0, 1.0, 0.0]))
    mu = b.predict(np.eye(2))
    assert np.all((mu > 0) & (mu < 1))
    assert_allclose(b.propensities(np.eye(2)), softmax(mu, temperature=0.1, on=[0, 1]), rtol=1e-10)
    gap = mu[0] - mu[1]
    b = dither.Bandit(b.model, SquareCB(10.0, power=0.0), dim=2, seed=0)
    b.update(np.eye(2)[[0, 0, 0, 1]], np.array([1.0, 1.0, 1.0, 0.0]))
    assert_allclose(b.propensities(np.eye(2))[1], 1 / (2 + 10 * gap), rtol=1e-10)  # seen red: the gap of the logits


@pytest.mark.parametrize("policy", [Softmax(0.4), SquareCB(5.0)])
@pytest.mark.parametrize("masked", [False, True])
def test_what_is_drawn_is_what_is_stated(policy, masked):
    b, n = knowing(R, policy, floor=0.1), 100_000
    mask = np.array([1, 0, 1, 1, 1], dtype=bool) if masked else None
    p = b.propensities(np.eye(5), mask=mask)
    made = b.choose(np.broadcast_to(np.eye(5), (n, 5, 5)), mask=mask)
    share = np.bincount(made.arm, minlength=5) / n
    assert np.all(abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n))
    assert made.propensity_kind == "exact"
    assert_allclose(made.propensity, p[made.arm], rtol=1e-12)
    # seen red: v is not scaled to the sum; an arm is counted at its own share's end


@pytest.mark.parametrize("policy", [Softmax(0.4), SquareCB(5.0, power=0.0)])
def test_lists_go_by_the_law_among_the_arms_that_are_left(policy):
    b, n = knowing(R, policy), 100_000
    rule = softmax if isinstance(policy, Softmax) else inverse_gaps
    setting = {"temperature": 0.4} if isinstance(policy, Softmax) else {"gamma": 5.0}
    lists = b.choose_list(np.broadcast_to(np.eye(5), (n, 5, 5)), k=3).arms
    for order in itertools.permutations(range(5), 3):
        left, p = set(range(5)), 1.0
        for i in order:
            p *= rule(R, on=sorted(left), **setting)[i]
            left.remove(i)
        share = np.mean(np.all(lists == order, axis=1))
        assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / n), order
    # seen red: the same v for each place


def test_the_ends_of_the_interval_belong_to_arms_that_are_on_offer():
    b = knowing(R, Softmax(0.4))
    view = b.policy.view(b.model, b.state, np.eye(5), t=1)
    mask = np.array([False, True, True, False, False])
    ends = np.array([0.0, 1 - 2.0**-53])
    assert_array_equal(view.best(ends, u=ends, mask=mask), [1, 2])  # seen red: < in place of <=, then arm 0 is shown


def test_what_nothing_is_known_of_is_uniform():
    for policy in (Softmax(), SquareCB()):
        b = dither.Bandit(models.Ridge(), policy, dim=3, seed=0)
        assert_allclose(b.propensities(np.eye(3)), np.full(3, 1 / 3), rtol=1e-12)


def test_the_ends_of_the_settings():
    X = np.eye(5)
    assert_array_equal(knowing(R, Softmax(1e-300)).propensities(X) > 0, [False, True, False, True, False])
    assert_allclose(knowing(R, Softmax(1e300)).propensities(X), np.full(5, 0.2))
    assert_allclose(knowing(R, SquareCB(0.0)).propensities(X), np.full(5, 0.2))
    p = knowing(R, SquareCB(1e12, power=0.0)).propensities(X)
    assert np.all(p > 0)
    assert_allclose(p.sum(), 1.0, rtol=1e-12)
    logs = knowing([0.0, 1.0], Softmax(1e-4)).propensities(np.eye(2), log=True)
    assert_allclose(logs, [-1e4, 0.0], rtol=1e-6)  # the probability itself underflows
    assert knowing([0.0, 1.0], SquareCB()).choose(np.eye(2)[:1]).propensity == 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Softmax(0.0), "temperature"),
        (lambda: Softmax(math.nan), "temperature"),
        (lambda: SquareCB(-1.0), "gamma"),
        (lambda: SquareCB("theorem"), "'theorem'"),
        (lambda: SquareCB(power=2.0), "power"),
        (lambda: SquareCB(horizon=0), "horizon"),
    ],
)
def test_settings_without_sense_are_refused(make, words):
    with pytest.raises((ValueError, LookupError), match=words):
        make()


@pytest.mark.parametrize("policy", [Softmax(0.3), SquareCB(), SquareCB("theory")])
@pytest.mark.parametrize("model", [models.Ridge(), models.GLM(), models.Disjoint(models.Ridge(), 4)])
def test_the_rules_that_every_policy_keeps(policy, model):
    testing.check_policy(policy, model)

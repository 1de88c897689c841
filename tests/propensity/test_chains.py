"""Chains of ties: what is stated is what is drawn, though a chain may lose the arm in its middle."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither import models, noise, policies, propensity
from dither.propensity import Slack, settled
from oracles import agree

U = 2.0**-52
CHAIN = np.array([[1.0], [1 + 32 * U], [1 + 64 * U]])


def taught(policy):
    b = dither.Bandit(models.Ridge(1.0), policy, dim=1, seed=0)
    b.update([1.0], 1.0)
    return b


POLICIES = [policies.RandUCB(beta=3.0), policies.Greedy(), policies.UCB(beta=1.0), policies.FeaturePerturbation()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("X", [CHAIN, np.r_[CHAIN, [[0.2]]]], ids=["chain", "and one below"])
def test_a_list_of_a_chain_is_stated_as_it_is_drawn(policy, k, X):
    b, n = taught(policy), 2000
    every = b.list_propensities(X, k=k)
    stated = {tuple(one): p for one, p in zip(every.lists.tolist(), every.propensity.tolist(), strict=True)}
    assert_allclose(sum(stated.values()), 1.0)
    drawn = b.choose_list(np.broadcast_to(X, (n, *X.shape)), k=k)
    lists = [tuple(one) for one in drawn.arms.tolist()]
    assert_allclose(drawn.propensity, [stated[one] for one in lists], rtol=1e-12)
    assert agree(np.array([lists.count(one) / n for one in stated]), np.array([*stated.values()]), n=n)
    share = np.mean([[arm in one for arm in range(len(X))] for one in lists], axis=0)
    assert agree(share, every.membership, n=n)
    # Seen red with ties that are looked for again among the arms that are left: stated 1/6, drawn 1/3


def test_a_list_of_a_chain_with_a_mask():
    b = taught(policies.RandUCB(beta=3.0))
    every = b.list_propensities(CHAIN, k=2, mask=[1, 0, 1])  # without its middle the chain has a gap
    drawn = b.choose_list(np.broadcast_to(CHAIN, (500, 3, 1)), k=2, mask=[1, 0, 1])
    assert len({tuple(one) for one in drawn.arms.tolist()}) == len(every.lists)
    assert_allclose(drawn.propensity, every.propensity[0])


def product_of_levels(m, w, points, weights, error):
    """Levels by a walk over all scores, then every combination of draws. Slow and plain."""
    scores = sorted({mi + z * wi for mi, wi in zip(m, w, strict=True) for z in points})
    level, of = 0, {}
    for before, score in itertools.pairwise([scores[0], *scores]):
        level += score - before > 2 * error
        of[score] = level
    p = np.zeros(len(m))
    for combination in itertools.product(range(len(points)), repeat=len(m)):
        levels = np.array([of[m[i] + points[j] * w[i]] for i, j in enumerate(combination)])
        best = levels == levels.max()
        p += np.prod([weights[j] for j in combination]) * best / best.sum()
    return p


@pytest.mark.parametrize(
    ("m", "w"),
    [
        ((1, 1 + 1.4e-12, 1 + 0.7e-12), (0, 0, 1)),
        ((1, 1 + 1.8e-12, 0.5), (0, 0, 0.25 + 0.45e-12)),
        ((0, 0, 0), (1, 1, 1)),
    ],
)
def test_arms_with_a_z_each_share_by_the_levels_of_all_scores(m, w):
    law, error, n = noise.Points((-1.0, 0.0, 2.0), (0.3, 0.3, 0.4)), 0.5e-12, 20_000
    m, w = np.array(m, dtype=float), np.array(w, dtype=float)
    slack = Slack(error, np.ones(3), 0.0)
    p = propensity.uncoupled(m, w, law=law, slack=slack)
    assert_allclose(p, product_of_levels(m, w, law.points, law.weights, error), atol=1e-12)
    rng = np.random.default_rng(0)
    z = law.draw(rng, (n, 3))
    for mask in (None, np.array([True, True, False])):
        p = propensity.uncoupled(m, w, law=law, slack=slack, mask=mask)
        every = (np.broadcast_to(part, (n, 3)) for part in (m, w))
        many = None if mask is None else np.broadcast_to(mask, (n, 3))
        arms = propensity.drawn_apart(*every, z, u=rng.random(n), law=law, slack=slack, mask=many)
        assert agree(np.bincount(arms, minlength=3) / n, p, n=n)
    # Seen red with a chain of the scores that were drawn alone: stated (.25, .25, .5), drawn (.10, .41, .49)


def test_a_bandit_with_an_a_each_draws_what_it_states():
    b = dither.RandLinUCB(dim=1, coupled=False, seed=0)
    b.update([1.0], 1.0)
    p, n = b.propensities(CHAIN), 3000
    arms = b.policy.view(b.model, b.state, CHAIN, t=2).best(
        b.policy.draw(np.random.default_rng(0), n, arms=3, dim=1)[0], u=np.random.default_rng(1).random(n)
    )
    assert agree(np.bincount(arms, minlength=3) / n, p, n=n)


def test_a_tie_is_drawn_to_its_end_before_the_next():
    rng, n = np.random.default_rng(0), 4000

    def tied(left):  # 0, 1, 2 in a chain through 1; 3 below
        whole = left[..., [0, 1, 2]]
        first = whole & ~(left[..., [1]] | (np.arange(3) == 2))
        one = np.where(left[..., [1]], whole, np.where(left[..., [2]], whole & (np.arange(3) == 2), ~first & whole))
        return np.c_[one, ~whole.any(axis=-1, keepdims=True) & left[..., [3]]]

    left = np.ones((n, 4), dtype=bool)
    arms = settled.in_turn(tied, rng.random((n, 4)), left)
    assert np.all(arms[:, 3] == 3)
    orders, counts = np.unique(arms[:, :3], axis=0, return_counts=True)
    assert len(orders) == 6
    assert agree(counts / n, np.full(6, 1 / 6), n=n)
    assert_allclose(settled.of_list(tied, arms[:50], left[:50]), 1 / 6)
    assert [one.tolist() for one in settled.places(lambda left: tied(left[None])[0], left[0], 4)] == [[0, 1, 2], [3]]

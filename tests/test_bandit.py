"""Properties of `Bandit`, each over all algorithms: what is chosen, what is reported, and what may not change."""

import copy
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import oracles
from bandits import ARMS, learnt
from dither.algorithms import PRESETS
from oracles import rows, unchanged
from properties import (
    MONTE_CARLO,
    NETWORKS,
    SPENT,
    agree,
    ask,
    brief,
    every,
    exact,
    exactly,
    few,
    known,
    paid,
    same_arrays,
    shares,
    slack,
    uncertainty,
)


@every("propensities")
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_choose_draws_what_propensities_say(name, fresh, floor):
    b = dither.ALGORITHMS[name](dim=3, seed=0, floor=floor, **exactly(name)) if fresh else learnt(name, floor=floor)
    p, (found, n) = ask(b, ARMS), shares(b, ARMS)
    assert p.min() >= 0
    assert abs(p.sum() - 1) < 1e-12
    assert oracles.agree(found, p, n=n, se=slack(b, p))
    # seen red: `scores` without the width; `argmax` taking the first of tied arms


@every()
def test_the_reported_propensity_is_that_of_the_arm(name):
    b, rng = learnt(name, floor=0.1), np.random.default_rng(0)
    n = few(b.model, b.policy, 50)
    X = rng.normal(size=(n, 6, 3)).round(1)
    mask = rng.random((n, 6)) < 0.7
    mask[:, 0] = True
    for offered in (None, mask):
        p, d = b.propensities(X, mask=offered, draws=100), b.choose(X, mask=offered)
        own = np.take_along_axis(p, d.arm[:, None], axis=1)[:, 0]
        if name in MONTE_CARLO | SPENT:
            assert d.propensity_kind == "none"
            assert np.isnan(d.propensity).all()
            assert d.propensity_se is None
        else:
            assert d.propensity_kind == "exact"
            assert_allclose(d.propensity, own, rtol=1e-9)
            assert d.propensity_se is None
            assert np.all((d.propensity > 0) & (d.propensity <= 1))


@every("propensities")
def test_permuted_arms_permute_the_answer(name):
    b, order = learnt(name), np.array([3, 0, 4, 2, 1])
    p, q = ask(b, ARMS), ask(b, ARMS[order])
    se, (found, n) = slack(b, p[order]), shares(b, ARMS[order])
    assert_allclose(q, p[order], rtol=1e-12, atol=1e-15 + 5 * math.sqrt(2) * np.max(se))
    assert oracles.agree(found, p[order], n=n, se=se)


@every("propensities")
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_masked_arms_are_never_drawn(name, floor):
    b, mask = learnt(name, floor=floor), np.array([False, True, True, False, True])
    p, (found, n) = ask(b, ARMS, mask=mask), shares(b, ARMS, mask=mask)
    assert not p[~mask].any()
    assert p[mask].min() >= floor / 3  # the uniform share is known, also where the rest is estimated
    assert not found[~mask].any()
    assert oracles.agree(found, p, n=n, se=slack(b, p))
    alone = ask(learnt(name, floor=floor), ARMS[mask])
    assert_allclose(p[mask], alone, rtol=1e-12, atol=5 * math.sqrt(2) * np.max(slack(b, p)))
    # seen red: the uniform share over all K


@every("propensities")
def test_a_floor_gives_every_arm_support(name):
    b, plain = learnt(name, floor=0.25), learnt(name)
    p, q = ask(b, ARMS), ask(plain, ARMS)
    assert_allclose(p, 0.75 * q + 0.05, rtol=1e-12, atol=5 * np.max(slack(b, q)))
    assert_allclose(ask(learnt(name, floor=1.0), ARMS), 0.2, rtol=1e-12)


@every()
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a_batch_is_a_loop(name, floor):
    a, b = learnt(name, floor=floor, seed=9), learnt(name, floor=floor, seed=9)
    rng, n = np.random.default_rng(0), few(a.model, a.policy, 60)
    X, mask = rng.normal(size=(n, 4, 3)), rng.random((n, 4)) < 0.8
    mask[:, 0] = True
    many = a.choose(X, mask=mask)
    one = [b.choose(x, mask=m) for x, m in zip(X, mask, strict=True)]
    assert many.arm.tolist() == [d.arm for d in one]
    if exact(a.model, a.policy):
        assert_allclose(many.propensity, [d.propensity for d in one], rtol=1e-12)
        p = a.propensities(X, mask=mask)
        assert_allclose(p, [b.propensities(x, mask=m) for x, m in zip(X, mask, strict=True)], rtol=1e-12)
    assert rows(a) == rows(b)
    # seen red: a batch counted as one decision


@every()
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_answers_a_batch_as_a_loop(name, preset):
    a, b = (dither.ALGORITHMS[name](dim=3, preset=preset, seed=2) for _ in range(2))
    rng = np.random.default_rng(1)
    for one in (a, b):
        one.update(ARMS[:4], [0.0, 1.0, 0.5, 0.3])
    X = rng.normal(size=(few(a.model, a.policy, 30), 4, 3))
    assert a.choose(X).arm.tolist() == [b.choose(x).arm for x in X]


@every()
def test_shapes_follow_the_question(name):
    b = learnt(name)
    d = b.choose(ARMS)
    assert type(d.arm) is int
    assert type(d.propensity) is float
    assert ask(b, ARMS, draws=100).shape == (5,)
    d = b.choose(ARMS[None])
    assert d.arm.shape == d.propensity.shape == (1,)  # a batch of one is a batch
    assert np.issubdtype(d.arm.dtype, np.integer)
    for answer in (ask(b, ARMS[None], draws=100), *known(b, ARMS[None]).values()):
        assert answer.shape == (1, 5)
    assert b.theta.shape == ((3,) if name not in NETWORKS else b.state.theta.shape)
    _, se, kind = ask(b, ARMS, draws=100, detail=True)
    assert kind == ("monte_carlo" if name in MONTE_CARLO else "none" if name in SPENT else "exact")
    assert se.shape == (5,) if name in MONTE_CARLO else se is None


@every("slots")
def test_shapes_follow_the_question_with_slots_too(name):
    slots = dither.ALGORITHMS[name](dim=3, disjoint=4, seed=0)
    assert type(slots.choose(ARMS[0]).arm) is int
    assert slots.choose(ARMS).arm.shape == (5,)
    assert slots.propensities(ARMS).shape == (5, 4)
    assert {answer.shape for answer in known(slots, ARMS[0]).values()} == {(4,)}
    assert slots.theta.shape == ((4, 3) if name not in NETWORKS else slots.state.theta.shape)


@every()
def test_an_empty_batch_is_an_empty_answer(name):
    b, twin = learnt(name), learnt(name)
    assert b.choose(np.empty((0, 4, 3))).arm.shape == (0,)
    assert b.propensities(np.empty((0, 4, 3))).shape == (0, 4)
    unchanged(b, twin, ARMS, n=few(b.model, b.policy, 100))
    b.update(np.empty((0, 3)), np.empty(0))
    assert_allclose(b.theta, twin.theta, rtol=1e-14)
    for answer, same in zip(known(b, ARMS).values(), known(twin, ARMS).values(), strict=True):
        assert_allclose(answer, same, rtol=1e-14, atol=1e-14)
    assert b.t == twin.t


@every()
def test_choose_changes_nothing_but_the_stream(name):
    b = learnt(name)
    state, arrays, theta, t = b.state, copy.deepcopy(b.state), b.theta, b.t
    X = ARMS.copy()
    X.flags.writeable = False
    b.choose(X)
    ask(b, X)
    assert b.state is state
    same_arrays(state, arrays)
    assert_array_equal(b.theta, theta)
    assert b.t == t


@every()
def test_inputs_are_left_alone(name):
    b = learnt(name)
    X, r, mask, weight = ARMS[:4].copy(), np.ones(4), np.array([True, False, True, True]), np.full(4, 2.0)
    for array in (X, r, mask, weight):
        array.flags.writeable = False
    b.choose(X, mask=mask)
    ask(b, X, mask=mask)
    b.update(X, r, weight=weight)
    b.update(X[0], r[0], weight=weight[0])
    theta = b.theta
    theta[:] = 7.0  # what is handed out is not the state
    assert not np.any(b.theta == 7.0)


@every("order")
def test_the_order_of_updates_does_not_matter(name):
    rng = np.random.default_rng(0)
    bandits = [dither.ALGORITHMS[name](dim=3, lam=0.1, seed=0) for _ in range(3)]
    X, r, weight = rng.normal(size=(9, 3)), paid(bandits[0].model, rng.normal(size=9)), rng.uniform(0.5, 2, size=9)
    order = rng.permutation(9)
    for x, y, v in zip(X, r, weight, strict=True):
        bandits[0].update(x, y, weight=v)
    for i in order:
        bandits[1].update(X[i], r[i], weight=weight[i])
    bandits[2].update(X[order], r[order], weight=weight[order])
    for b in bandits[1:]:
        agree(b, bandits[0], ARMS)
        assert b.t == 10
        if exact(b.model, b.policy):
            off = np.sum(uncertainty(b) + uncertainty(bandits[0]))
            assert_allclose(b.propensities(ARMS), bandits[0].propensities(ARMS), rtol=1e-9, atol=1e-12 + off)


@every()
def test_the_same_seed_is_the_same_bandit(name):
    def run(seed):
        b, g, arms = dither.ALGORITHMS[name](dim=3, seed=seed, floor=0.2), np.random.default_rng(0), []
        for _ in range(max(brief(b.model, b.policy, 100), 25)):
            X = g.normal(size=(5, 3))
            arms.append(b.choose(X).arm)
            b.update(X[arms[-1]], paid(b.model, g.normal()))
        return arms

    assert run(1) == run(1)
    assert run(1) != run(2)

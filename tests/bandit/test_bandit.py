"""Properties of `Bandit`, each over all algorithms, besides those that `dither.testing` checks (test_testing.py)."""

import numpy as np
from numpy.testing import assert_allclose

import dither
from bandits import ARMS, learnt
from oracles import unchanged
from properties import (
    MONTE_CARLO,
    NETWORKS,
    SPENT,
    agree,
    ask,
    every,
    every_preset,
    exact,
    few,
    known,
    paid,
    uncertainty,
)


@every_preset(3)
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
def test_what_is_handed_out_is_not_the_state(name):
    b = learnt(name)
    theta = b.theta
    theta[:] = 7.0
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

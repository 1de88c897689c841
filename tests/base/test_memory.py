"""How much memory decisions drawn again take: blocks of one request's draws, which change no number."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither.deciding import monte_carlo
from dither.noise import Ball
from dither.policies import GeneralFeaturePerturbation as General

K, D = 4, 40


def network(**settings):
    return dither.models.Network(hidden=(50,), dtype="float64", **settings)


def slots():
    return network(slots=K)


DRAWN = {  # policies without a closed form, and how many numbers one decision takes
    "LinTS": (lambda: dither.LinTS(dim=D, seed=0), 3 * D),  # noise, and shrinkage
    "LinPHE": (lambda: dither.LinPHE(dim=D, seed=0), 2 * D),
    "jittered": (lambda: dither.Bandit(network(), General(), dim=D, seed=0), K * 50),
    "coupled": (lambda: dither.Bandit(network(), General(coupled=True), dim=D, seed=0), K * 50),
    "ball": (lambda: dither.Bandit(network(), General(noise=Ball()), dim=D, seed=0), K * 50),
    "slots": (lambda: dither.Bandit(slots(), General(), dim=D, seed=0), K * 50),
    "all slots": (lambda: dither.Bandit(slots(), General(mask=False), dim=D, seed=0), K * K * D),
    "all slots, coupled": (lambda: dither.Bandit(slots(), General(mask=False, coupled=True), dim=D, seed=0), K * K * D),
    "function": (lambda: dither.FP(lambda X: X @ np.arange(D), dim=D, seed=0), K * D),
}


def learnt(name):
    b, rng = DRAWN[name][0](), np.random.default_rng(0)
    for i in range(6):
        b.update(rng.normal(size=D), float(i % 2), **({} if b.slots is None else {"arm": i % K}))
    return b, rng.normal(size=D if b.slots else (K, D))


@pytest.mark.parametrize("name", DRAWN)
def test_blocks_change_no_number(name, monkeypatch):
    b, X = learnt(name)
    b.monte_carlo, b.floor = 300, 0.1
    mask = np.array([True, False, True, True])

    def answers():
        b._chance, b._ties, b.decisions = b._stream("policy"), b._stream("ties"), 0
        yield b.propensities(X, draws=1200)
        yield b.propensities(X, mask=mask, draws=1200)
        yield b.choose(X).propensity
        lists = b.list_propensities(X, k=2, draws=1200)
        yield from (lists.membership, lists.lists, lists.propensity)
        yield b.choose_list(X, k=2, mask=mask).propensity

    whole = list(answers())
    block = 1000 * K  # so many decisions are ranked together still
    sizes, own = [], type(b.policy).draw

    def draw(policy, rng, n, **of):
        sizes.append(n)
        return own(policy, rng, n, **of)

    monkeypatch.setattr(monte_carlo, "BLOCK", block)
    monkeypatch.setattr(type(b.policy), "draw", draw)
    for before, after in zip(whole, answers(), strict=True):
        assert_array_equal(before, after)
    assert max(sizes) == max(1, block // DRAWN[name][1])
    # seen red: the uniforms drawn after each block; a block of 1,000 whatever is drawn; one normal counted where
    # coupled, and the d features of one slot where mask=False


@pytest.mark.parametrize("name", DRAWN)
def test_memory_is_that_of_a_block(name, monkeypatch):
    b, X = learnt(name)
    monkeypatch.setattr(monte_carlo, "BLOCK", 2**13)
    b.propensities(X, draws=10)
    tracemalloc.start()
    try:
        b.propensities(X, draws=1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * (6 * 2**13 + 12 * 1000 * K)  # the draw, what is made of it, and what ranks 1,000 decisions
    # seen red: a block of 1,000 decisions


def test_many_arms_of_many_features_fit():
    b = dither.DeepFP(dim=64, seed=0)
    X = np.random.default_rng(0).normal(size=(2000, 64))
    tracemalloc.start()
    try:
        p = b.propensities(X, draws=200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert abs(p.sum() - 1) < 1e-12
    assert peak < 6 * 4 * 2**24  # float32
    assert peak > 4 * 2**23  # a block is no small one either

"""Worlds that change: where θ* is in each round, by formula; and the round that `fill` is told."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import dither
from dither import envs
from worlds import ENV, equal, run


def path(env, n, *, run=0, steps=None):
    """θ* of the first n rounds of a run, (n, d), the contexts and the means."""
    begun, contexts = env.start(np.random.default_rng(run)), np.random.default_rng(1000 + run)
    thetas, Xs, means = [], [], []
    for size in steps or [n]:
        X = np.empty((size, env.arms, env.dim))
        more = env.fill(begun, contexts, X, t=1 + sum(map(len, Xs)))
        thetas.append(more.outer)
        Xs.append(X)
        means.append(env.means(begun, X, more))
    return np.concatenate(thetas), np.concatenate(Xs), np.concatenate(means)


CHANGING = {
    "abrupt": envs.Abrupt(envs.Linear(dim=4, arms=3, norm=2.0), rounds=(3, 4, 9)),
    "rotating": envs.Rotating(envs.Linear(dim=4, arms=3, norm=2.0), period=17.0),
    "walking": envs.Walking(envs.Linear(dim=4, arms=3, norm=2.0), step=0.3),
}
each = pytest.mark.parametrize("env", CHANGING.values(), ids=CHANGING)


@each
def test_theta_keeps_its_length_and_begins_as_within(env):
    theta, X, mean = path(env, 40)
    assert env.S == 2.0
    assert_allclose(np.linalg.norm(theta, axis=1), 2.0, rtol=1e-14)
    assert_array_equal(theta[0], env.env.start(np.random.default_rng(0)).theta)
    assert_allclose(mean, np.einsum("nkd,nd->nk", X, theta), rtol=1e-12, atol=1e-14)
    for steps in ([1] * 40, [7, 20, 13]):
        for whole, part in zip((theta, X, mean), path(env, 40, steps=steps), strict=True):
            assert_array_equal(part, whole)
    # seen red: t of the first block in all blocks; the walk begun anew in each block


def test_theta_is_drawn_anew_at_the_given_rounds():
    theta, _, _ = path(CHANGING["abrupt"], 12)
    changed = 2 + np.flatnonzero(np.any(theta[1:] != theta[:-1], axis=1))  # rounds are counted from 1
    assert_array_equal(changed, [3, 4, 9])
    n = 2000
    many = np.array([path(CHANGING["abrupt"], 12, run=i)[0] for i in range(n)]) / 2.0
    places = many[:, [0, 2, 3, 8]]
    cosines = np.einsum("nid,njd->nij", places, places)[:, *np.triu_indices(4, k=1)]
    assert np.all(np.abs(cosines.mean(axis=0)) < 5 * np.sqrt(1 / 4 / n))  # uniform and independent: E cos² = 1/d
    assert np.all(np.abs(places.mean(axis=0)) < 5 * np.sqrt(1 / 4 / n))
    assert envs.Abrupt(ENV, rounds=5).rounds == (5,)
    # seen red: from the round after the given one on


def test_theta_turns_in_a_plane_at_one_speed():
    env = CHANGING["rotating"]
    theta, _, _ = path(env, 40)
    angle = 2 * np.pi * np.arange(40) / 17.0
    assert_allclose(theta @ theta[0], 4 * np.cos(angle), atol=1e-12)
    assert np.linalg.matrix_rank(theta, tol=1e-9) == 2
    assert_allclose(theta[17], theta[0], atol=1e-12)
    assert_allclose(np.sum(np.linalg.norm(np.diff(theta, axis=0), axis=1)), 39 * 4 * np.sin(np.pi / 17), rtol=1e-12)
    # seen red: a period of half a turn


def test_theta_walks_in_steps_of_one_length_and_in_all_directions():
    a, n = 0.3, 3000
    many = np.array([path(CHANGING["walking"], 9, run=i)[0] for i in range(n)])
    assert_allclose(np.linalg.norm(np.diff(many, axis=1), axis=-1), 4 * np.sin(a / 2), rtol=1e-12)
    for k in range(1, 9):
        cosine = np.einsum("nd,nd->n", many[:, 0], many[:, k]) / 4
        assert abs(cosine.mean() - np.cos(a) ** k) < max(5 * cosine.std() / np.sqrt(n), 1e-12)
    # seen red: one direction for all steps; sin a for cos a


def test_until_it_changes_a_world_is_the_one_within():
    bare, changed = run(ENV, record=range(1, 61)), run(envs.Abrupt(ENV, rounds=31), record=range(1, 61))
    assert_array_equal(changed.regret[..., :30], bare.regret[..., :30])
    assert not np.array_equal(changed.regret[..., 30], bare.regret[..., 30])
    with_links = envs.Rotating(envs.Logistic(dim=4, arms=3, norm=2.0), period=17.0)
    theta, X, mean = path(with_links, 20)
    assert_allclose(mean, special.expit(np.einsum("nkd,nd->nk", X, theta)), rtol=1e-12)


def test_regret_is_against_the_best_of_the_round():
    """In one dimension θ* = ±1 and arms are ±1. A greedy policy knows θ* after one reward, until θ* turns."""
    env = envs.Abrupt(envs.Linear(dim=1, arms=2, noise=0.0), rounds=(11,))
    found = run(env, ["Greedy"], runs=40, rounds=10, record=[10])
    later = run(env, ["Greedy"], runs=40, rounds=20, record=[10, 20])
    assert_array_equal(later.regret[..., 0], found.regret[..., 0])
    turned = np.array([_signs(i) for i in range(40)])
    grown = later.regret[0, :, 1] - later.regret[0, :, 0]
    assert np.all((grown > 1e-9) <= turned)  # only where θ* turned can the next arms be wrong
    assert 10 < turned.sum() < 30
    # seen red: the means of θ*_1 in all rounds


def _signs(number):
    theta = dither.base.streams.stream(3, number, "instance").standard_normal(2)
    return theta[0] * theta[1] < 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: envs.Abrupt(ENV, rounds=(1,)), "each of rounds must be a whole number of at least 2"),
        (lambda: envs.Abrupt(ENV, rounds=(9, 5)), "in order"),
        (lambda: envs.Abrupt(ENV, rounds=2.5), "each of rounds"),
        (lambda: envs.Rotating(ENV, period=0.0), "period must be"),
        (lambda: envs.Rotating(envs.Linear(dim=1)), "dim of the environment in Rotating must be"),
        (lambda: envs.Walking(ENV, step=4.0), "step must lie in"),
    ],
)
def test_changes_that_make_no_sense_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_what_has_no_theta_is_refused():
    for env in (envs.Misspecified(ENV), envs.Walking(ENV)):
        with pytest.raises(TypeError, match="directly around"):
            dither.simulate(envs.Abrupt(env), ["Greedy"], runs=1, rounds=5)


# The round in `fill`


class Clock(envs.Linear):
    """The mean of every arm is the round, so the regret is 0 and the reward tells the time."""

    noise = 0.0

    def fill(self, run, rng, out, t):
        super().fill(run, rng, out)
        told.append((t, len(out)))
        return np.arange(t, t + len(out))

    def means(self, run, X, more):
        return np.repeat(more[:, None], self.arms, axis=1).astype(float)


told: list = []


class Heard(dither.policies.Greedy):
    def view(self, model, state, X, *, t):
        heard.append((t, float(state.b.sum())))
        return super().view(model, state, X, t=t)


heard: list = []


@pytest.mark.parametrize("chunk", [1, 8 * 6 * 7, 2**23])
def test_fill_is_told_the_first_round_of_the_block(chunk, monkeypatch):
    monkeypatch.setattr(sys.modules["dither.simulation.simulate"], "CHUNK", chunk)
    told.clear()
    heard.clear()
    dither.simulate(Clock(dim=2, arms=3), ["Greedy"], runs=1, rounds=20, seed=0)
    assert [t for t, _ in told] == [1 + sum(n for _, n in told[:i]) for i in range(len(told))]
    assert sum(n for _, n in told) == 20
    # seen red: t counted from 0; t of the first block in all blocks


class Late(dither.envs.Linear):
    """An environment around which no wrapper knows of the round."""

    def fill(self, run, rng, out, t=1):
        super().fill(run, rng, out)
        return np.arange(t, t + len(out), dtype=float)

    def means(self, run, X, more):
        return X[..., 0] * np.cos(more[:, None])


def test_the_round_goes_through_what_is_around():
    bare = Late(dim=3, arms=5)
    equal(run(envs.Misspecified(bare, zeta=0.0)), run(bare))
    equal(run(envs.Delayed(bare)), run(bare))
    assert_allclose(run(envs.Masked(bare, share=1.0)).regret, run(bare).regret, rtol=1e-12)

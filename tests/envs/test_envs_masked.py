"""Masks of an environment: their laws, what policies see of them, and what regret is measured against."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import dither
from dither import envs
from dither.base import streams
from dither.models import Disjoint, Ridge
from dither.policies import FeaturePerturbation, Greedy
from worlds import ENV, GLMS, LINEAR, NETWORKS, WORLDS, run


def masks(env, n):
    return env.offered(None, np.random.default_rng(0), np.empty((n, env.arms, 1)), None)


@pytest.mark.parametrize(("share", "arms"), [(0.3, 4), (0.9, 2), (0.0, 3), (1.0, 3), (0.5, 1)])
def test_each_arm_is_on_offer_as_often_as_said(share, arms):
    n = 40_000
    mask = masks(envs.Masked(envs.Linear(dim=2, arms=arms), share=share), n)
    assert mask.any(axis=1).all()
    p = share + (1 - share) ** arms / arms
    assert np.all(np.abs(mask.mean(axis=0) - p) <= 5 * np.sqrt(p * (1 - p) / n))
    alone = (1 - share) ** arms + arms * share * (1 - share) ** (arms - 1)  # one arm on offer, by need or by chance
    assert abs(np.mean(mask.sum(axis=1) == 1) - alone) <= 5 * np.sqrt(alone * (1 - alone) / n)
    # seen red: without the arm that is kept; p alone for the share


@pytest.mark.parametrize(("least", "most"), [(1, None), (2, 3), (4, 4)])
def test_each_number_and_each_set_of_arms_is_as_likely(least, most):
    n, arms = 40_000, 4
    mask = masks(envs.Masked(envs.Linear(dim=2, arms=arms), least=least, most=most), n)
    numbers = range(least, (most or arms) + 1)
    for number in numbers:
        rows = mask[mask.sum(axis=1) == number]
        p = 1 / len(numbers)
        assert abs(len(rows) / n - p) <= 5 * np.sqrt(p * (1 - p) / n)
        sets = [np.isin(np.arange(arms), some) for some in itertools.combinations(range(arms), number)]
        counts = [np.sum(np.all(rows == one, axis=1)) for one in sets]
        assert sum(counts) == len(rows)
        assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-6
    assert set(mask.sum(axis=1)) == set(numbers)
    # seen red: `most` left out of the numbers; the first arms instead of a random set


class Trap(envs.Linear):
    """The arms that are not on offer would pay the most, so who takes one has a regret below 0."""

    rewards = envs.Logistic.rewards

    def offered(self, run, rng, X, more):
        first = X[..., 0]
        return (first > 0) | (first == first.max(axis=-1, keepdims=True))

    def means(self, run, X, more):
        return np.where(self.offered(run, None, X, more), 0.5 + 0.25 * X[..., 1], 1.0)


@pytest.mark.parametrize(
    ("names", "rounds"), [(LINEAR, 60), (GLMS, 8), (NETWORKS, 30)], ids=["linear", "glm", "networks"]
)
def test_no_algorithm_takes_an_arm_that_is_not_on_offer(names, rounds):
    found = run(Trap(dim=3, arms=5), names, rounds=rounds, record=range(1, rounds + 1))
    steps = np.diff(found.regret, axis=-1, prepend=0)
    assert steps.min() >= 0
    assert steps.max() <= 0.5
    assert (steps > 0).any()
    # seen red: `choose` in simulate without the mask; the best of all arms instead of those on offer


def test_slots_are_masked_too():
    env = WORLDS["few on offer"]
    agents = {"greedy": (Disjoint(Ridge(), env.arms), Greedy())}
    found = dither.simulate(env, agents, runs=20, rounds=60, seed=0)
    whole = dither.simulate(env.env, agents, runs=20, rounds=60, seed=0)
    assert found.regret[0, :, -1].mean() < 0.7 * whole.regret[0, :, -1].mean()  # the right class is rarely on offer


def test_a_masked_and_changing_simulation_is_a_loop_written_by_hand():
    env, seed = envs.Masked(envs.Abrupt(ENV, rounds=(11, 25)), share=0.4), 7
    mine = {"mine": (Ridge(0.2), FeaturePerturbation(c=0.5))}
    r = dither.simulate(env, mine, runs=[2], rounds=40, seed=seed, record=range(1, 41))
    purposes = ("policy", "contexts", "noise", "instance", "ties", "offered")
    chance, contexts, noise, instance, ties, offers = (streams.stream(seed, 2, purpose) for purpose in purposes)
    theta = instance.standard_normal(3)
    later = instance.standard_normal((2, 3))
    thetas = [each / np.linalg.norm(each) for each in (theta, *later)]
    V, b, total, realised = 0.2 * np.eye(3), np.zeros(3), 0.0, 0.0
    for t in range(1, 41):
        X = contexts.standard_normal((5, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        mean = X @ thetas[(t >= 11) + (t >= 25)]
        reward, u, tie = mean + noise.standard_normal(5), offers.random(5), ties.random(3)[0]
        on = np.flatnonzero((u < 0.4) | (u == u.min()))
        w = np.sqrt(np.einsum("ki,ij,kj->k", X, np.linalg.inv(V), X))
        s = X @ np.linalg.solve(V, b) + 0.5 * chance.standard_normal() * w
        arm = on[int(tie * len(on))] if t == 1 else on[np.argmax(s[on])]  # unit arms tie before the first reward
        best = on[np.argmax(mean[on])]
        total += mean[best] - mean[arm]
        realised += reward[best] - reward[arm]
        assert_allclose([r.regret[0, 0, t - 1], r.realised[0, 0, t - 1]], [total, realised], rtol=1e-9, atol=1e-12)
        V += np.outer(X[arm], X[arm])
        b += reward[arm] * X[arm]


def test_a_mask_of_all_arms_changes_nothing():
    bare, masked = (run(env, LINEAR) for env in (ENV, envs.Masked(ENV, share=1.0)))
    assert_allclose(masked.regret, bare.regret, rtol=1e-12)
    assert_array_equal(masked.rounds, bare.rounds)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (dict(share=1.5), "share must lie in"),
        (dict(share=0.5, least=2), "not both"),
        (dict(least=0), "least must be a whole number of at least 1"),
        (dict(least=3, most=2), "in order"),
        (dict(least=2, most=6), "at most arms=5"),
        (dict(share=0.5, most=2), "most goes with least"),
    ],
)
def test_masks_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        envs.Masked(ENV, **settings)


def test_a_mask_around_a_mask_is_refused():
    with pytest.raises(ValueError, match="masked once"):
        envs.Masked(envs.Masked(ENV))


class Bare(envs.Linear):
    answer = None

    def offered(self, run, rng, X, more):
        return self.answer(X.shape[:2])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (np.zeros, "True and False"),
        (lambda shape: np.zeros(shape, dtype=bool), "at least one"),
        (lambda _: True, "shape"),
    ],
    ids=["numbers", "none", "scalar"],
)
def test_a_mistake_in_a_mask_is_named(answer, says):
    env = Bare(dim=2, arms=3)
    object.__setattr__(env, "answer", answer)
    with pytest.raises(ValueError, match=rf"Bare.offered .*{says}"):
        dither.simulate(env, ["Greedy"], runs=1, rounds=5)

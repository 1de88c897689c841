"""Environments of a user's own, and rewards that come late."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import lockstep
from dither import envs
from dither.base import streams, trees
from dither.models import GLM, Ridge, history
from dither.models import model as contract
from dither.policies import FeaturePerturbation, PerturbedRewards
from properties import NETWORKS, able
from worlds import DIGITS, ENV, FAMILIES, GLMS, LINEAR, T, each_family, equal, run

# Environments of a user's own, and rewards that come late


class Coins:
    """The smallest environment: two arms of known means."""

    arms, dim, disjoint = 2, 2, False

    def start(self, rng):
        return rng.random(2)

    def fill(self, run, rng, out):
        out[:] = np.eye(2)

    def means(self, run, X, more):
        return X @ run

    def reward_noise(self, rng, n):
        return rng.random((n, 2)) - 0.5


class Tosses(Coins):
    """The same, with rewards of 0 and 1."""

    def rewards(self, rng, mean):
        return (rng.random(mean.shape) < mean).astype(float)


@pytest.mark.parametrize(
    ("env", "names", "rounds"), [(Coins(), LINEAR, 200), (Coins(), NETWORKS, 100), (Tosses(), GLMS, 30)]
)
def test_an_environment_of_your_own(env, names, rounds):
    assert isinstance(env, envs.Environment)
    r = run(env, names, runs=10, rounds=rounds)
    gaps = [abs(np.diff(streams.stream(3, i, "instance").random(2))[0]) for i in range(10)]
    wrong = r.regret[:, :, -1] / gaps
    assert_allclose(wrong, np.round(wrong), atol=1e-8)  # regret is the gap for each wrong choice
    assert np.all((wrong > -1e-8) & (wrong < rounds + 1e-8))
    for own in wrong:
        assert len(set(np.round(own))) > 1


@pytest.mark.parametrize("slots", [False, True])
@each_family
def test_no_delay_is_no_delay(family, slots):
    env, names, rounds = FAMILIES[family]
    if slots:
        env, names = DIGITS, able("slots", names)
    equal(run(envs.Delayed(env, delay=0), names, rounds=rounds), run(env, names, rounds=rounds))
    # seen red: rewards a round too late


@pytest.mark.parametrize("delay", [1, 4, T])
@pytest.mark.parametrize("env", [ENV, DIGITS], ids=["arms", "slots"])
def test_a_late_reward_is_learnt_when_it_comes(env, delay):
    """By hand: after the choice of round t, what was shown in round t - delay is learnt."""
    r = dither.simulate(
        envs.Delayed(env, delay=delay), {"fp": (model_of(env), FeaturePerturbation())}, runs=[1], rounds=T, seed=5
    )
    assert_allclose(r.regret[0, 0, -1], by_hand(env, 5, 1, lambda t: delay), rtol=1e-9)


def test_random_delays_are_learnt_when_they_come():
    late = streams.stream(5, 1, "delay").geometric(1 / 3, size=T) - 1
    r = dither.simulate(
        envs.Delayed(ENV, mean=2.0), {"fp": (Ridge(), FeaturePerturbation())}, runs=[0, 1, 2], rounds=T, seed=5
    )
    assert_allclose(r.regret[0, 1, -1], by_hand(ENV, 5, 1, lambda t: late[t]), rtol=1e-9)
    # seen red: `trees.choose` the wrong way round


@pytest.mark.parametrize(
    ("policy", "solver"),
    [
        *((FeaturePerturbation(), solver) for solver in ("certified", "exact", "counts", "online")),
        *((PerturbedRewards(a=0.5), solver) for solver in ("certified", "counts")),
    ],
)
def test_histories_of_different_length_run_side_by_side(policy, solver):
    env, model = envs.Logistic(dim=3, arms=5, norm=2.0), GLM(lam=0.1, solver=solver)
    rounds = 40
    late = streams.stream(5, 1, "delay").geometric(1 / 3, size=rounds) - 1
    agents = {"mine": (model, policy)}
    r = dither.simulate(envs.Delayed(env, mean=2.0), agents, runs=[0, 1, 2], rounds=rounds, seed=5)
    alone = by_hand(env, 5, 1, lambda t: late[t], model, policy, rounds)
    assert_allclose(r.regret[0, 1, -1], alone, rtol=1e-9)


def test_a_state_with_more_room_is_chosen_run_by_run():
    old = history.History(np.ones((3, 2, 2)), np.ones((3, 2)), np.ones((3, 2)), np.array([2, 1, 2]))
    new = history.roomier(history.History(*(2 * part for part in old)))
    assert new.count.shape[1] > 2
    some = trees.choose(np.array([True, False, True]), new, old)
    assert some.count.shape == new.count.shape
    for kept, fresh, was in zip(some, new, old, strict=True):
        assert_array_equal(kept[[0, 2]], fresh[[0, 2]])
        if kept.ndim > 1:
            assert_array_equal(kept[1, :2], was[1])
            assert not kept[1, 2:].any()
    assert_array_equal(some.rows, [4, 1, 4])
    # seen red: the smaller one not padded


def model_of(env):
    return dither.models.Disjoint(Ridge(), env.arms) if env.disjoint else Ridge()


def by_hand(env, seed, number, delay, model=None, policy=None, rounds=T):
    """Regret of FP, round by round with one bandit's worth of state; delay: round -> rounds."""
    model, policy = model or model_of(env), policy or FeaturePerturbation()
    chance, ties, contexts, noise, instance = (
        streams.stream(seed, number, p) for p in ("policy", "ties", "contexts", "noise", "instance")
    )
    world, state, waiting, regret = env.start(instance), model.init(env.dim, needs=policy.needs), [], 0.0
    for t in range(rounds):
        X = np.empty((1, env.dim) if env.disjoint else (1, env.arms, env.dim))
        more = env.fill(world, contexts, X)
        mean = env.means(world, X, more)[0]
        if hasattr(env, "rewards"):
            reward = env.rewards(noise, mean[None])[0]
        else:
            eps = env.reward_noise(noise, 1)
            reward = mean if eps is None else mean + eps[0]
        view = policy.view(model, state, X, t=t + 1)
        z = policy.draw(chance, 1, arms=env.arms, dim=contract.ambient(model, env.dim))
        arm = int(lockstep.choose(view, z, ties.random((1, 3)), eps=0.0)[0])
        regret += mean.max() - mean[arm]
        x = X[0] if env.disjoint else X[0, arm]
        waiting.append((t + delay(t), x, reward[arm], {"arm": np.array(arm)} if env.disjoint else {}))
        for due, x, r, slot in waiting:
            if due == t:
                state = model.update(state, x, r, **slot)
    return regret


def test_delays_have_their_mean():
    delays = envs.Delayed(ENV, mean=4.0).delays(np.random.default_rng(0), 50_000)
    assert delays.min() == 0
    assert abs(delays.mean() - 4) < 5 * np.sqrt(4 * 5 / 50_000)
    assert_array_equal(envs.Delayed(ENV, delay=2).delays(np.random.default_rng(0), 3), [2, 2, 2])
    assert envs.Delayed(ENV).arms == 5
    for settings in ({"delay": -1}, {"delay": 1.5}, {"mean": 0.0}, {"mean": -1.0}):
        with pytest.raises(ValueError, match="must"):
            envs.Delayed(ENV, **settings)

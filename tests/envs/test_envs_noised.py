"""Noise that depends on the context, the arm, the run and the round: by a law, or by an environment of one's own."""

import pickle
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import mtrand

import dither
from dither import envs
from dither.envs import base
from dither.testing import CheckFailed, check_environment

LINEAR = envs.Linear(dim=4, arms=3)


def steep(rng, mean, X, t):
    """Its sd is |x_1| in odd rounds, and twice as large in even ones."""
    even = (np.arange(t, t + len(mean)) % 2 == 0)[:, None]
    return np.abs(X[..., 0]) * np.where(even, 2.0, 1.0) * rng.standard_normal(mean.shape)


def of_run(rng, mean, run):
    return np.abs(run.theta[0]) * rng.standard_normal(mean.shape)


def plain(rng, mean):
    return rng.standard_normal(mean.shape)


@dataclass(frozen=True)
class OfMean:
    """An object is a law as well; it sends the keyword that it needs."""

    factor: float = 0.5

    def __call__(self, rng, mean, more=None):
        return self.factor * np.abs(mean) * rng.standard_normal(mean.shape)


@dataclass(frozen=True)
class Mine(envs.Linear):
    """The same as `steep`, written into an environment."""

    def reward_noise(self, rng, n, X, mean, t):
        return steep(rng, mean, X, t)


@dataclass(frozen=True)
class Clicks(envs.Logistic):
    """Clicks that are surer in later rounds, as those of a run that began well."""

    def rewards(self, rng, mean, run, t):
        u = rng.random(mean.shape)
        return (u < mean).astype(float)


@pytest.mark.parametrize(
    "env",
    [
        envs.Noised(LINEAR, steep),
        envs.Noised(LINEAR, of_run),
        envs.Noised(LINEAR, plain),
        envs.Noised(LINEAR, OfMean()),
        Mine(dim=4, arms=3),
        Clicks(dim=4, arms=3),
        envs.Masked(envs.Noised(LINEAR, steep), share=0.5),
        envs.Abrupt(envs.Noised(LINEAR, steep), rounds=5),
        envs.Noised(envs.Rotating(LINEAR, period=40), steep),
        envs.Misspecified(envs.Noised(LINEAR, of_run)),
        envs.Delayed(envs.Abrupt(Mine(dim=4, arms=3), rounds=5), delay=2),
    ],
    ids=lambda env: re.sub(r" at 0x\w+", "", str(env)),  # without addresses, which differ between processes
)
def test_they_pass_the_checks_of_environments(env):
    check_environment(env, draws=2000)
    pickle.loads(pickle.dumps(env))


def drawn(env, runs, rounds=40):
    """What the noise was: the rewards less the means, of every arm (R, T, K), and the contexts."""
    from dither.base import arrays
    from dither.simulation.world import WorldOfRuns

    world = WorldOfRuns(env, np.array(runs), 0, xp=arrays.backend(None), device=None)
    parts = [world.advance(n) for n in (7, 1, rounds - 8)]
    X, mean, reward = (
        np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("X", "mean", "reward")
    )
    return X, reward - mean


def test_the_noise_is_that_of_the_law_run_by_run_and_round_by_round():
    """Seen red with the round counted from the block, and with the contexts of the first run for all."""
    X, noise = drawn(envs.Noised(LINEAR, steep), [3, 5])
    plain_X, normal = drawn(envs.Noised(LINEAR, plain), [3, 5])
    np.testing.assert_array_equal(X, plain_X)
    even = (np.arange(1, 41) % 2 == 0)[:, None]
    np.testing.assert_allclose(noise, np.abs(X[..., 0]) * np.where(even, 2.0, 1.0) * normal, atol=1e-12)
    np.testing.assert_array_equal(drawn(Mine(dim=4, arms=3), [3, 5])[1], noise)
    alone = drawn(envs.Noised(LINEAR, steep), [5])[1][0]
    np.testing.assert_array_equal(alone, noise[1])


def test_a_world_around_hands_on_its_own_run():
    """Seen red with the pair of runs handed on as it is."""
    changing = drawn(envs.Abrupt(envs.Noised(LINEAR, of_run), rounds=5), [2])[1]
    still = drawn(envs.Noised(LINEAR, of_run), [2])[1]
    np.testing.assert_allclose(changing, still, atol=1e-12)


def test_processes_draw_the_same(tmp_path):
    how: dict[str, Any] = dict(runs=4, rounds=30, seed=1)
    env = envs.Noised(LINEAR, steep)
    here = dither.simulate(env, ["LinFP"], **how)
    np.testing.assert_array_equal(dither.simulate(env, ["LinFP"], jobs=2, **how).regret, here.regret)
    np.testing.assert_array_equal(dither.simulate(env, ["LinFP"], batch=1, **how).realised, here.realised)


def test_what_an_algorithm_is_told_is_sigma():
    assert envs.Noised(LINEAR, steep, sigma=2.5).sigma == 2.5


@pytest.mark.parametrize(
    ("law", "says"),
    [
        (lambda rng, mean, X: np.abs(X[..., 0]), "average"),
        (lambda rng, mean: rng.standard_normal(len(mean)), "shape"),
        (lambda rng, mean, X: X.__setitem__(0, 0.0) or rng.standard_normal(mean.shape), "change the contexts"),
        (lambda rng, mean, t: rng.standard_normal(mean.shape) * len(mean), "rounds"),
        (lambda rng, mean: mtrand.standard_normal(mean.shape), "global"),
    ],
)
def test_a_law_that_breaks_a_rule_is_named(law, says):
    """Seen red with each check left out."""
    with pytest.raises((CheckFailed, ValueError), match=says):
        check_environment(envs.Noised(LINEAR, law), draws=2000)


def test_what_is_no_law_is_refused():
    with pytest.raises(TypeError, match="law is called as law"):
        envs.Noised(LINEAR, 3.0)
    with pytest.raises(ValueError, match="Logistic draws rewards from the means"):
        envs.Noised(envs.Logistic(dim=2, arms=2), plain)
    with pytest.raises(ValueError, match="sigma"):
        envs.Noised(LINEAR, plain, sigma=0)


def test_a_rule_is_told_what_it_names():
    at = base.RoundsOfRun("run", "X", np.zeros((2, 3)), "more", 7)
    assert base.told(lambda rng, n, t, run: (rng, n, t, run), "rng", 2, at) == ("rng", 2, 7, "run")
    assert base.told(lambda rng, mean: (rng, mean), "rng", "mean", at) == ("rng", "mean")

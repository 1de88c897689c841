"""Simulations whose chance is computed by a counter: run i is run i on every road, with the law of the streams."""

import dataclasses
import sys
from dataclasses import dataclass
from typing import ClassVar

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import dither
from dither import envs, models, noise, policies
from dither.base import counter
from dither.base.counter import CounterGenerator
from dither.base.streams import PURPOSES
from dither.envs import base
from dither.policies.views import Drawn
from dither.simulation.world import WorldOfRuns
from worlds import DIGITS, ENV, GLMS, LINEAR, LOGISTIC, WORLDS, equal, run

NAMES = ("LinFP", "LinTS", "EpsGreedy", "RandLinUCB")
FP = policies.FeaturePerturbation
AGENTS = {  # what else a policy may draw
    "z of a ball": (models.Ridge(), FP(noise=noise.Ball())),
    "a ball": (models.Ridge(), FP(noise=noise.Ball(), form="vector")),
    "a z for each arm": (models.Ridge(), FP(coupled=False)),
    "a law by its quantiles": (models.Ridge(), FP(noise=noise.Custom.of(stats.laplace()))),
    "uniforms": (models.Ridge(), policies.Softmax()),
    "features": (models.Ridge(), policies.GeneralFeaturePerturbation()),
}


def counted(env, names=NAMES, **settings):
    return run(env, names, **{"chance": "counter", "rounds": 30} | settings)


def agents(algorithms=AGENTS, **settings):
    return dither.simulate(ENV, algorithms, **{"runs": 5, "rounds": 30, "seed": 3, "chance": "counter"} | settings)


def close(a, b):
    assert_allclose(a.regret, b.regret, rtol=1e-9, atol=1e-9)
    assert_allclose(a.realised, b.realised, rtol=1e-9, atol=1e-9)


def same_runs(part, whole, runs):
    assert_array_equal(part.regret, whole.regret[:, runs])
    assert_array_equal(part.realised, whole.realised[:, runs])


# Run i is run i


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_knows_neither_the_others_nor_its_block(world, monkeypatch):
    env, whole = WORLDS[world], counted(WORLDS[world])
    same_runs(counted(env, runs=[4, 1], batch=1), whole, [1, 4])
    monkeypatch.setattr(sys.modules["dither.simulation.simulate"], "CHUNK", 8 * 15 * 5 * 7)
    equal(counted(env), whole)
    # seen red: runs counted by their place in the batch; rounds counted from 0 in each block


@pytest.mark.parametrize("names", [LINEAR, GLMS], ids=["linear", "glm"])
def test_no_algorithm_knows_its_neighbours(names):
    env, rounds = (ENV, 12) if names is LINEAR else (LOGISTIC, 4)
    whole = counted(env, names, rounds=rounds, runs=3)
    for i, name in enumerate(names):
        alone = counted(env, [name], rounds=rounds, runs=[2, 1])
        assert_array_equal(alone.regret[0], whole.regret[i, 1:])


def test_other_chance_that_policies_draw_is_of_a_run_too():
    whole = agents()
    same_runs(agents(runs=[3, 0], batch=1), whole, [0, 3])
    there = agents(xp=array_api_strict)
    close(there, whole)


def test_a_run_does_not_know_its_process():
    equal(counted(ENV, batch=2, jobs=2), counted(ENV))


def test_seeds_runs_and_kinds_of_chance_differ():
    one = counted(ENV, runs=8)
    assert all(len(set(regret)) == 8 for regret in one.regret[:, :, -1])
    assert not np.array_equal(one.regret, counted(ENV, runs=8, seed=4).regret)
    assert not np.array_equal(one.regret, run(ENV, NAMES, rounds=30, runs=8).regret)
    equal(run(ENV, NAMES, rounds=30, chance="streams"), run(ENV, NAMES, rounds=30))


# Devices


@pytest.mark.parametrize("world", ["sets", "poisson", "contaminated", "noised", "all at once"])
def test_a_run_is_the_same_on_every_device(world):
    pytest.importorskip("torch")
    env, here = WORLDS[world], counted(WORLDS[world])
    close(counted(env, device="cpu"), here)


STRICT = array_api_strict.Device("device1")


@pytest.mark.parametrize("world", [world for world in WORLDS if base.in_lockstep(WORLDS[world])])
def test_nothing_of_a_device_is_made_by_numpy(world, monkeypatch):
    env, back = WORLDS[world], dither.base.arrays.numpy
    cpu = array_api_strict.Device("CPU_DEVICE")
    strict = lambda x: hasattr(x, "to_device") and not isinstance(x, np.ndarray)  # noqa: E731
    monkeypatch.setattr(dither.base.arrays, "numpy", lambda x: back(x.to_device(cpu) if strict(x) else x))
    here = counted(env, ["LinFP"], rounds=8, record=[8])

    def refused(*args):
        raise AssertionError("a stream of NumPy")

    monkeypatch.setattr("dither.base.streams.stream", refused)
    made = []
    world_of_runs = WorldOfRuns(env, np.arange(3), 3, xp=array_api_strict, device=STRICT, chance="counter")
    made.extend(world_of_runs.advance(2))
    assert all(part is None or isinstance(part, np.ndarray) or part.device == STRICT for part in made)
    there = counted(env, ["LinFP"], rounds=8, record=[8], xp=array_api_strict, device=STRICT)
    close(there, here)


def test_a_device_takes_as_many_runs_at_once_as_its_memory_holds(monkeypatch):
    pytest.importorskip("torch")
    sizes, inner = [], dither.simulate.__globals__["_lockstep"]
    monkeypatch.setitem(
        dither.simulate.__globals__,
        "_lockstep",
        lambda contest, runs, tell: sizes.append(len(runs)) or inner(contest, runs, tell),
    )
    env = dataclasses.replace(ENV, contexts=3)
    one = models.Ridge().bytes(3, 1) + 8 * (15 * 4 + 20)  # the model; a round and three sets of 5 x 3, four rows of 5
    monkeypatch.setitem(dither.simulate.__globals__, "MEMORY_THERE", 10 * one)
    counted(env, ["Greedy"], runs=30, rounds=1, record=[1], device="cpu")
    assert sizes == [10, 10, 10]


# The law


LAWS = {
    "linear": (ENV, NAMES),
    "sets": (WORLDS["sets"], ("LinFP",)),
    "all at once": (WORLDS["all at once"], ("LinFP",)),
    "contaminated": (WORLDS["contaminated"], ("LinFP",)),
    "pareto": (envs.ParetoNoise(ENV, alpha=4.0), ("LinFP",)),
    "logistic": (LOGISTIC, ("GLMFP:solver=online",)),
    "poisson": (WORLDS["poisson"], ("LinFP",)),
    "random delay": (envs.Delayed(ENV, mean=3.0), ("LinFP",)),
    "abrupt": (WORLDS["abrupt"], ("LinFP",)),
    "rotating": (WORLDS["rotating"], ("LinFP",)),
}


@pytest.mark.parametrize("world", LAWS)
def test_the_law_is_that_of_the_streams(world):
    env, names = LAWS[world]
    settings = dict(runs=400, rounds=8, record=[8])
    one, other = run(env, names, **settings), counted(env, names, **settings)
    for kind in ("regret", "realised"):
        a, b = getattr(one, kind)[..., 0], getattr(other, kind)[..., 0]
        se = np.hypot(a.std(axis=1), b.std(axis=1)) / np.sqrt(400)
        assert np.all(np.abs(a.mean(axis=1) - b.mean(axis=1)) < 5 * se)
    # seen red: uniforms of half the size


def test_a_simulation_is_a_loop_written_by_hand():
    seed, model = 7, models.Ridge(0.2)
    r = dither.simulate(
        ENV, {"mine": (model, FP(c=0.5))}, runs=[2], rounds=20, seed=seed, record=range(1, 21), chance="counter"
    )

    def of(purpose):
        return CounterGenerator(counter.key(seed), 2, PURPOSES[purpose])

    theta, X = of("instance").standard_normal(3), of("contexts").standard_normal((20, 5, 3))
    theta /= np.linalg.norm(theta)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    reward = X @ theta + of("noise").standard_normal((20, 5))
    z, ties = of("policy").standard_normal(20), of("ties").random((20, 3))
    V, b, total = 0.2 * np.eye(3), np.zeros(3), 0.0
    for t in range(20):
        w = np.sqrt(np.einsum("ki,ij,kj->k", X[t], np.linalg.inv(V), X[t]))
        s = X[t] @ np.linalg.solve(V, b) + 0.5 * z[t] * w
        arm = int(ties[t, 0] * 5) if t == 0 else int(np.argmax(s))  # unit arms tie at first
        total += np.max(X[t] @ theta) - (X[t] @ theta)[arm]
        assert_allclose(r.regret[0, 0, t], total, rtol=1e-9, atol=1e-12)
        V += np.outer(X[t, arm], X[t, arm])
        b += reward[t, arm] * X[t, arm]


# Parts of the user's own: asked run by run, with the same numbers


class MyLinear(envs.Linear):
    """The same world, whose class does not say that it is in lockstep."""


@dataclass(frozen=True)
class MyPolicy(policies.RandUCB):
    """The same policy, outside the library."""


@dataclass(frozen=True)
class MyLaw(noise.Gaussian):
    """The same law, outside the library."""


@pytest.mark.parametrize("device", [None, "cpu"])
def test_what_is_asked_run_by_run_has_the_same_numbers(device):
    if device:
        pytest.importorskip("torch")
    settings = dict(device=device)
    for contexts in (None, 3):
        theirs = envs.Linear(dim=3, arms=5, contexts=contexts)
        close(counted(MyLinear(dim=3, arms=5, contexts=contexts), **settings), counted(theirs, **settings))
    around = envs.Delayed(envs.Masked(envs.Misspecified(envs.Walking(MyLinear(dim=3, arms=5)))), mean=2.0)
    theirs = envs.Delayed(envs.Masked(envs.Misspecified(envs.Walking(envs.Linear(dim=3, arms=5)))), mean=2.0)
    assert base.in_lockstep(theirs)
    assert not base.in_lockstep(around)
    close(counted(around, **settings), counted(theirs, **settings))
    mine = agents({"a": (models.Ridge(), MyPolicy()), "b": (models.Ridge(), FP(noise=MyLaw()))}, **settings)
    theirs = agents({"a": (models.Ridge(), policies.RandUCB()), "b": (models.Ridge(), FP())}, **settings)
    close(mine, theirs)
    # seen red: `lockstep` inherited by the subclass


class Gamma:
    """A policy that draws what a counter does not."""

    needs: ClassVar = frozenset()

    def draw(self, rng, n, *, arms, dim):
        return (rng.gamma(2.0, size=(n, arms)),)

    def view(self, model, state, X, *, t):
        return Drawn(lambda g: g)


def test_what_a_counter_does_not_draw_is_refused_with_the_cure():
    with pytest.raises(AttributeError, match="not gamma: make it of these, or take chance='streams'"):
        dither.simulate(ENV, {"mine": (models.Ridge(), Gamma())}, runs=2, rounds=3, chance="counter")
    dither.simulate(ENV, {"mine": (models.Ridge(), Gamma())}, runs=2, rounds=3)


def test_an_unknown_kind_of_chance_names_those_that_there_are():
    with pytest.raises(ValueError, match="chance must be one of 'streams', 'counter'; got 'dice'"):
        dither.simulate(ENV, ["LinFP"], runs=1, rounds=2, chance="dice")


class Wrong(envs.Linear):
    """In lockstep, and wrong in one method."""

    lockstep = True

    def means(self, run, X, more):
        return super().means(run, X, more)[..., :4]


def test_a_world_in_lockstep_is_checked_as_one_of_a_single_run():
    with pytest.raises(ValueError, match=r"Wrong.means must return finite numbers of shape \(3, 2, 5\)"):
        counted(Wrong(dim=3, arms=5), runs=3, rounds=2, record=[2])

    class Lost(envs.Linear):
        lockstep = True

        def means(self, run, X, more):
            mean = super().means(run, X, more)
            mean[1, 1, 2] = np.nan
            return mean

    with pytest.raises(ValueError, match=r"Lost\.means must return finite numbers, and gives nan in round 2 of run 7"):
        counted(Lost(dim=3, arms=5), runs=[2, 7], rounds=3, record=[3])


def test_networks_and_rows_of_data_run_beside_it():
    names = ["LinFP", "DeepFP"]
    whole = counted(ENV, names, rounds=6, record=[6], runs=3)
    same_runs(counted(ENV, names, rounds=6, record=[6], runs=[2]), whole, [2])
    assert not base.in_lockstep(DIGITS)

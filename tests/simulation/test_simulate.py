"""The lockstep simulator: run i is run i, bit for bit, whatever runs beside it."""

import dataclasses
import functools
import sys
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import mtrand
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import envs
from dither.base import streams
from dither.models import Ridge
from dither.policies import FeaturePerturbation, Greedy
from dither.policies.views import Drawn
from longer import size
from properties import EXCUSED, NETWORKS, able
from worlds import ENV, FAMILIES, GLMS, LINEAR, WORLDS, T, each_family, equal, run

# Run i is run i


NAMES = ("LinFP", "LinTS", "LinPHE", "RandLinUCB", "EpsGreedy")


@functools.cache
def wholly(env):
    """All runs of a world at once, which several tests compare with."""
    return run(WORLDS[env], NAMES)


@pytest.mark.parametrize("env", WORLDS)
def test_a_run_does_not_know_the_others(env):
    whole, env, names = wholly(env), WORLDS[env], NAMES
    part = run(env, names, runs=[4, 1])
    assert_array_equal(part.runs, [1, 4])
    assert_array_equal(part.regret, whole.regret[:, [1, 4]])
    assert_array_equal(part.realised, whole.realised[:, [1, 4]])
    equal(run(env, names, batch=1), whole)
    equal(run(env, names, batch=3), whole)
    # seen red: one stream for all runs of a batch


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("chunk", size([1, 8 * 15 * 5 * 7], longer=[1, 8 * 15 * 5 * 7, 8 * 15 * 5 * 33]))
def test_a_run_does_not_know_the_block_of_its_contexts(env, chunk, monkeypatch):
    whole = wholly(env)
    monkeypatch.setattr(sys.modules["dither.simulation.simulate"], "CHUNK", chunk)
    equal(run(WORLDS[env], NAMES), whole)


@each_family
def test_no_algorithm_has_a_run_that_knows_the_others(family):
    env, names, rounds = FAMILIES[family]
    whole = run(env, names, rounds=rounds, runs=4)
    part = run(env, names, rounds=rounds, runs=[3, 1], batch=1)
    assert_array_equal(part.regret, whole.regret[:, [1, 3]])
    assert_array_equal(part.realised, whole.realised[:, [1, 3]])


@pytest.mark.parametrize("preset", dither.algorithms.PRESETS)
@each_family
def test_an_algorithm_does_not_know_its_neighbours(family, preset, monkeypatch):
    env, names, rounds = FAMILIES[family]
    names = [f"{name}:preset={preset}" for name in names]
    whole = run(env, names, rounds=rounds, runs=3)
    monkeypatch.setattr(
        sys.modules["dither.simulation.simulate"], "CHUNK", 8 * 15 * 3 * (3 if family == "logistic" else 11)
    )
    for i, name in enumerate(names):
        alone = run(env, [name], rounds=rounds, runs=3)
        assert_array_equal(alone.regret[0], whole.regret[i])
        assert_array_equal(alone.realised[0], whole.realised[i])


def test_what_is_recorded_changes_nothing():
    whole = run(ENV, record=range(1, T + 1))
    assert_array_equal(whole.rounds, np.arange(1, T + 1))
    some = run(ENV, record=[T, 7, 7])
    assert_array_equal(some.rounds, [7, T])
    assert_array_equal(some.regret, whole.regret[:, :, [6, T - 1]])
    told = []
    equal(run(ENV, on_progress=lambda done, total: told.append((done, total))), run(ENV))
    assert told[-1] == (5 * T, 5 * T)
    assert told == sorted(told)


def test_a_run_does_not_know_its_process():
    one = run(ENV, batch=2)
    equal(run(ENV, batch=2, jobs=2), one)
    delayed = WORLDS["random delay"]
    equal(run(delayed, batch=3, jobs=2), run(delayed))


@each_family
def test_runs_and_seeds_differ(family):
    env, names, rounds = FAMILIES[family]
    r = run(env, names, runs=8, rounds=rounds)
    for regret in r.regret[:, :, -1]:
        assert len(set(regret)) == 8
    assert not np.array_equal(run(ENV, seed=3).regret, run(ENV, seed=4).regret)
    fresh = run(ENV, seed=None)
    assert isinstance(fresh.seed, int)
    equal(run(ENV, seed=fresh.seed), fresh)
    # seen red: one spawn key for all runs


def test_global_randomness_is_left_alone():
    mtrand.seed(1)
    before = repr(mtrand.get_state())
    one = run(ENV)
    assert repr(mtrand.get_state()) == before
    mtrand.seed(2)
    equal(run(ENV), one)


# What is counted


@pytest.mark.parametrize("contexts", [None, 1, 3])
@each_family
def test_one_arm_has_no_regret(family, contexts):
    env, names, rounds = FAMILIES[family]
    r = run(dataclasses.replace(env, arms=1, contexts=contexts), names, rounds=rounds, runs=3)
    assert not r.regret.any()
    assert not r.realised.any()


def test_regret_never_falls_and_is_realised_on_average():
    r = dither.simulate(ENV, ["LinFP", "LinUCB"], runs=400, rounds=50, seed=0)
    assert np.diff(r.regret, axis=-1).min() >= -1e-12
    for regret, realised in zip(r.regret[:, :, -1], r.realised[:, :, -1], strict=True):
        difference = realised - regret
        assert abs(difference.mean()) < 5 * difference.std() / 20
        assert difference.std() > 1  # the noise of two arms a round


class Uniform:
    """A policy of a user's own: any arm, whatever is known."""

    needs: ClassVar = frozenset()

    def draw(self, rng, n, *, arms, dim):
        return (rng.random((n, arms)),)

    def view(self, model, state, X, *, t):
        return Drawn(lambda u: u)


SLOW = [
    name for name in GLMS if "refit" in dither.ALGORITHMS[name].needs and dither.ALGORITHMS[name].propensity == "0/1"
]


BEATABLE = {
    "linear": (envs.Linear(dim=4, arms=8), LINEAR, 400),
    "networks": (envs.Linear(dim=4, arms=8, norm=3.0, noise=0.3), NETWORKS, 120),
    "logistic": (envs.Logistic(dim=2, arms=4, contexts=1, norm=6.0), [name for name in GLMS if name not in SLOW], 120),
    "logistic, slow": (envs.Logistic(dim=1, arms=3, contexts=1, norm=3.0, unit=False), SLOW, 60),
}


@pytest.mark.parametrize(
    ("family", "disjoint"),
    [(family, disjoint) for family in BEATABLE for disjoint in (False, True) if not (disjoint and "slow" in family)],
)
def test_every_algorithm_beats_uniform_choice(family, disjoint):
    (env, names, rounds), of = BEATABLE[family], "beats uniform choice"
    if disjoint:
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(3), 60)
        env = envs.Classification(np.eye(3)[y] + 0.3 * rng.normal(size=(180, 3)), y)
        names, of, rounds = able("slots", names), of + " among slots", {"linear": 400, "networks": 150}.get(family, 60)
    model = Ridge() if not disjoint else dither.models.Disjoint(Ridge(), 3)
    mine = {name: name for name in names} | {"uniform": (model, Uniform())}
    r = dither.simulate(env, mine, runs=20, rounds=rounds, seed=0, record=[rounds])
    assert r.algorithms == (*names, "uniform")
    for name, regret in zip(names, r.regret[:-1, :, 0], strict=True):
        difference = r.regret[-1, :, 0] - regret  # paired: the same contexts and noise
        beaten = difference.mean() > 5 * difference.std() / np.sqrt(20)
        assert beaten == (of not in EXCUSED.get(name, {})), name
    expected = rounds * 2 / 3 if disjoint else None
    if expected:
        assert abs(r.regret[-1].mean() - expected) < 5 * np.sqrt(rounds * 2 / 9 / 20)


def test_all_algorithms_see_the_same_contexts_and_rewards():
    class Spy(Greedy):
        def view(self, model, state, X, *, t):
            seen.append(X.copy())
            return super().view(model, state, X, t=t)

    seen = []
    dither.simulate(ENV, {"a": (Ridge(), Spy()), "b": (Ridge(), Spy())}, runs=2, rounds=10, seed=0)
    for a, b in zip(seen[::2], seen[1::2], strict=True):
        assert_array_equal(a, b)
    r = dither.simulate(ENV, {"a": (Ridge(), Greedy()), "b": (Ridge(), Greedy())}, runs=2, rounds=50, seed=0)
    assert_array_equal(r.realised[0], r.realised[1])


def test_a_simulation_is_a_loop_written_by_hand():
    env, model, policy, seed = ENV, Ridge(0.2), FeaturePerturbation(c=0.5), 7
    r = dither.simulate(env, {"mine": (model, policy)}, runs=[2], rounds=40, seed=seed, record=range(1, 41))
    chance, contexts, noise, instance = (
        streams.stream(seed, 2, p) for p in ("policy", "contexts", "noise", "instance")
    )
    theta = instance.standard_normal(3)
    theta /= np.linalg.norm(theta)
    V, b, total, realised = 0.2 * np.eye(3), np.zeros(3), 0.0, 0.0
    for t in range(40):
        X = contexts.standard_normal((5, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        reward = X @ theta + noise.standard_normal(5)
        w = np.sqrt(np.einsum("ki,ij,kj->k", X, np.linalg.inv(V), X))
        z = chance.standard_normal()
        s = X @ np.linalg.solve(V, b) + 0.5 * z * w
        if t == 0:  # unit arms tie
            u = streams.stream(seed, 2, "ties").random(3)[0]
            arm = int(u * 5)
        else:
            arm = int(np.argmax(s))
        best = int(np.argmax(X @ theta))
        total += (X @ theta)[best] - (X @ theta)[arm]
        realised += reward[best] - reward[arm]
        assert_allclose([r.regret[0, 0, t], r.realised[0, 0, t]], [total, realised], rtol=1e-9, atol=1e-12)
        V += np.outer(X[arm], X[arm])
        b += reward[arm] * X[arm]


@pytest.mark.parametrize(
    "algorithm", ["LinUCB:S=1", "EpsGreedy", "LinFP:c='theory'", "RandLinUCB:S=1", "LinTS:c='oful'"]
)
def test_the_horizon_is_told(algorithm):
    short, long = run(ENV, [algorithm], rounds=30, record=[30]), run(ENV, [algorithm], rounds=3000, record=[30], runs=5)
    set_ = run(ENV, [algorithm + (",horizon=3000" if ":" in algorithm else ":horizon=3000")], rounds=30, record=[30])
    assert_array_equal(set_.regret, long.regret)
    assert not np.array_equal(short.regret, long.regret)


def test_a_table_has_a_row_for_each_number():
    pl = pytest.importorskip("polars")
    r = run(ENV, record=[1, T])
    assert r.table().columns == ["algorithm", "run", "round", "regret"]
    table = r.table(realised=True)
    assert table.columns == ["algorithm", "run", "round", "regret", "realised"]
    assert len(table) == 2 * 5 * 2
    row = table.filter((pl.col("algorithm") == "LinPHE") & (pl.col("run") == 3) & (pl.col("round") == T))
    assert row["regret"].to_list() == [r.regret[1, 3, 1]]
    assert row["realised"].to_list() == [r.realised[1, 3, 1]]


def test_recorded_rounds():
    from dither.simulation.simulate import recorded

    for horizon in (1, 2, 39, 1000, 20_000):
        rounds = recorded(horizon)
        assert rounds[0] == 1
        assert rounds[-1] == horizon
        assert np.all(np.diff(rounds) > 0)
        assert len(rounds) <= 221
    assert set(1 + np.arange(40) * 500) <= set(recorded(20_000).tolist())

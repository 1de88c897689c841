"""The lockstep simulator and its environments: run i is run i, bit for bit, whatever runs beside it."""

import dataclasses
import sys
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import dither
from dither import decision, envs, streams, trees
from dither.models import GLM, Ridge, history
from dither.policies import FeaturePerturbation, Greedy, PerturbedRewards
from properties import EXCUSED, able, bounded

ENV = envs.Linear(dim=3, arms=5)
DIGITS = envs.Classification(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4)
WORLDS = {
    "linear": ENV,
    "fixed": envs.Linear(dim=3, arms=5, contexts=1),
    "sets": envs.Linear(dim=3, arms=5, contexts=3, noise=0.1, norm=2.0),
    "raw": envs.Linear(dim=3, arms=5, unit=False, noise=0.0),
    "classification": DIGITS,
    "delayed": envs.Delayed(ENV, delay=3),
    "random delay": envs.Delayed(DIGITS, mean=2.0),
    "logistic": envs.Logistic(dim=3, arms=5, norm=2.0),
    "probit": envs.Probit(dim=3, arms=5, contexts=2),
    "poisson": envs.Poisson(dim=3, arms=5, contexts=1),
}
T = 60
LOGISTIC = WORLDS["logistic"]
ALL = list(dither.ALGORITHMS)
GLMS = [name for name in ALL if bounded(name)]
LINEAR = [name for name in ALL if name not in GLMS]
FAMILIES = {"linear": (ENV, LINEAR, T), "logistic": (LOGISTIC, GLMS, 8)}  # environment, algorithms, rounds
each_family = pytest.mark.parametrize("family", FAMILIES)


def run(env, names=("LinFP", "LinPHE"), **settings):
    return dither.simulate(env, list(names), **{"runs": 5, "rounds": T, "seed": 3} | settings)


def equal(a, b):
    assert_array_equal(a.regret, b.regret)
    assert_array_equal(a.realised, b.realised)
    assert_array_equal(a.rounds, b.rounds)


# Run i is run i


@pytest.mark.parametrize("env", WORLDS)
def test_a_run_does_not_know_the_others(env):
    env, names = WORLDS[env], ("LinFP", "LinTS", "LinPHE", "EpsGreedy")
    whole = run(env, names)
    part = run(env, names, runs=[4, 1])
    assert_array_equal(part.runs, [1, 4])
    assert_array_equal(part.regret, whole.regret[:, [1, 4]])
    assert_array_equal(part.realised, whole.realised[:, [1, 4]])
    equal(run(env, names, batch=1), whole)
    equal(run(env, names, batch=3), whole)
    # seen red: one stream for all runs of a batch


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("chunk", [1, 8 * 15 * 5 * 7, 8 * 15 * 5 * 33])
def test_a_run_does_not_know_the_block_of_its_contexts(env, chunk, monkeypatch):
    names = ("LinFP", "LinTS", "LinPHE", "RandLinUCB", "EpsGreedy")
    whole = run(WORLDS[env], names)
    monkeypatch.setattr(sys.modules["dither.simulate"], "CHUNK", chunk)
    equal(run(WORLDS[env], names), whole)


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
    monkeypatch.setattr(sys.modules["dither.simulate"], "CHUNK", 8 * 15 * 3 * (11 if family == "linear" else 3))
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
    np.random.seed(1)  # noqa: NPY002
    before = repr(np.random.get_state())  # noqa: NPY002
    one = run(ENV)
    assert repr(np.random.get_state()) == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
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
        return None

    def scores(self, view, u):
        return u


SLOW = [
    name for name in GLMS if "refit" in dither.ALGORITHMS[name].needs and dither.ALGORITHMS[name].propensity == "0/1"
]
BEATABLE = {
    "linear": (envs.Linear(dim=4, arms=8), LINEAR, 400),
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
        names, of, rounds = able("slots", names), of + " among slots", 400 if family == "linear" else 60
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


@pytest.mark.parametrize("algorithm", ["LinUCB", "EpsGreedy", "LinFP:c='theory'", "RandLinUCB", "LinTS:c='oful'"])
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
    from dither.simulate import recorded

    for horizon in (1, 2, 39, 1000, 20_000):
        rounds = recorded(horizon)
        assert rounds[0] == 1
        assert rounds[-1] == horizon
        assert np.all(np.diff(rounds) > 0)
        assert len(rounds) <= 221
    assert set(1 + np.arange(40) * 500) <= set(recorded(20_000).tolist())


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


@pytest.mark.parametrize(("env", "names", "rounds"), [(Coins(), LINEAR, 200), (Tosses(), GLMS, 30)])
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
        z = policy.draw(chance, 1, arms=env.arms, dim=model.ambient(env.dim))
        arm = int(decision.choose(policy, view, z, ties.random((1, 3)), eps=0.0)[0])
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


# Classification


@each_family
def test_errors_are_counted(family):
    rng, (_, names, rounds) = np.random.default_rng(0), FAMILIES[family]
    y = np.array(["b", "a", "c", "a"] * 10)
    env = envs.Classification(rng.normal(size=(40, 2)), y)
    assert (env.arms, env.dim) == (3, 2)
    r = run(env, able("slots", names), rounds=rounds, record=range(1, rounds + 1))
    steps = np.diff(r.regret, axis=-1, prepend=0)
    assert set(np.unique(steps)) <= {0.0, 1.0}
    assert_array_equal(r.regret, r.realised)


def test_passes_are_shuffled_again():
    env = envs.Classification(np.arange(7.0)[:, None], np.arange(7) % 2)
    rows = env.start(np.random.default_rng(0)).next(21).reshape(3, 7)
    assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(7), (3, 1)))
    assert len({tuple(row) for row in rows}) == 3
    again = env.start(np.random.default_rng(0))
    assert_array_equal(np.concatenate([again.next(n) for n in (1, 3, 10, 7)]), rows.ravel())
    out = np.empty((5, 1))
    labels = env.fill(env.start(np.random.default_rng(0)), None, out)
    assert_array_equal(out[:, 0], rows[0, :5])
    assert_array_equal(labels, rows[0, :5] % 2)
    # seen red: later passes in the order of the rows


def test_features_are_scaled():
    X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0], [0.0, 5.0, 0.0]])
    standard = envs.Classification(X, [0, 1, 0], scale="standard")
    assert standard.dim == 2  # a constant column says nothing
    assert_allclose(standard.X.mean(axis=0), 0, atol=1e-12)
    assert_allclose(standard.X.std(axis=0), 1)
    unit = envs.Classification(np.r_[X[:, [0, 2]], [[0.0, 0.0]]], [0, 1, 0, 1], scale="unit")
    assert_allclose(np.linalg.norm(unit.X, axis=1), [1, 1, 0, 0])
    for wrong in ({"scale": "units"}, {"X": X[:0], "y": []}, {"y": [0, 1]}, {"X": X * np.nan}, {"X": X[0]}):
        with pytest.raises(ValueError, match="must"):
            envs.Classification(**{"X": X, "y": [0, 1, 0]} | wrong)


# The linear environment


def test_linear_facts():
    rng = np.random.default_rng(0)
    env = envs.Linear(dim=6, arms=4, norm=2.5, noise=0.3)
    assert (env.S, env.sigma) == (2.5, 0.3)
    world, X = env.start(rng), np.empty((500, 4, 6))
    assert_allclose(np.linalg.norm(world.theta), 2.5)
    env.fill(world, rng, X)
    assert_allclose(np.linalg.norm(X, axis=-1), 1)
    assert len(np.unique(X[:, 0, 0])) == 500
    u = X.reshape(-1, 6)[:, 0]  # uniform on the sphere: u² ~ Beta(1/2, 5/2)
    assert stats.kstest(u**2, stats.beta(0.5, 2.5).cdf).pvalue > 1e-6
    assert_allclose(env.means(world, X, None)[3, 1], X[3, 1] @ world.theta)
    eps = env.reward_noise(rng, 5000)
    assert eps.shape == (5000, 4)
    assert abs(eps.std() - 0.3) < 5 * 0.3 / np.sqrt(2 * 20_000)
    assert envs.Linear(noise=0.0).reward_noise(rng, 3) is None
    directions = np.array([envs.Linear(dim=2, norm=1.0).start(np.random.default_rng(i)).theta for i in range(500)])
    assert stats.kstest(np.arctan2(*directions.T), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-6
    # seen red: θ* of length 1 whatever the norm


def test_sets_of_arms_are_fixed_for_a_run():
    rng = np.random.default_rng(0)
    for contexts in (1, 4):
        env = envs.Linear(dim=3, arms=5, contexts=contexts)
        world, X = env.start(rng), np.empty((400, 5, 3))
        env.fill(world, rng, X)
        assert len(np.unique(X[:, 0, 0])) == contexts
        assert_allclose(np.linalg.norm(world.sets, axis=-1), 1)
        shares = [np.mean(X[:, 0, 0] == s[0, 0]) for s in world.sets]
        assert_allclose(shares, 1 / contexts, atol=5 * np.sqrt(0.25 / 400))
    raw, X = envs.Linear(dim=3, arms=5, unit=False), np.empty((2000, 5, 3))
    raw.fill(raw.start(rng), rng, X)
    assert stats.kstest(X.ravel(), "norm").statistic < 1.95 / np.sqrt(X.size)


@pytest.mark.parametrize(
    "settings",
    [
        {"dim": 0},
        {"arms": 0},
        {"contexts": 0},
        {"norm": 0.0},
        {"noise": -1.0},
        {"noise": np.nan},
        {"dim": 2.5},
        {"norm": np.inf},
    ],
)
def test_worlds_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must"):
        envs.Linear(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 0},
        {"rounds": 1.5},
        {"runs": 0},
        {"runs": []},
        {"runs": [-1, 2]},
        {"runs": [0.5]},
        {"batch": 0},
        {"jobs": 0},
        {"seed": -1},
        {"seed": 0.5},
        {"record": []},
        {"record": [0]},
        {"record": [T + 1]},
        {"record": [1.5]},
        {"algorithms": []},
        {"algorithms": "LinFP"},
        {"algorithms": {}},
        {"algorithms": ["LinFP:c"]},
        {"algorithms": ["LinFP:c=-1"]},
    ],
    ids=str,
)
def test_simulations_that_make_no_sense_are_refused(settings):
    names = settings.pop("algorithms", ["LinFP"])
    with pytest.raises(ValueError, match=r"must|written"):
        dither.simulate(ENV, names, **{"runs": 2, "rounds": T, "seed": 0} | settings)


def test_a_model_that_lacks_an_ability_is_named_before_anything_runs():
    with pytest.raises(TypeError, match="history"):
        dither.simulate(DIGITS, ["LinPHE:preset=own_paper"], runs=1, rounds=5)


def test_two_algorithms_of_one_name_are_refused():
    with pytest.raises(ValueError, match="differ"):
        dither.simulate(dither.envs.Linear(dim=2, arms=2), ["Greedy", "Greedy"], runs=1, rounds=2)


def test_few_runs_are_shared_among_processes(monkeypatch):
    seen = []
    simulate = sys.modules["dither.simulate"]
    monkeypatch.setattr(
        simulate, "_parallel", lambda env, agents, parts, **_: seen.extend(map(len, parts)) or [np.zeros((2, 1, 5, 3))]
    )
    dither.simulate(dither.envs.Linear(dim=2, arms=2), ["Greedy"], runs=5, rounds=3, jobs=2)
    assert seen == [3, 2]  # seen red: parts of `batch` runs, so that 5 runs were one part


class Broken(dither.envs.Linear):
    """An environment with one mistake."""


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("means", lambda self, run, X, more: X[..., 0][:, :1], "means"),
        ("means", lambda self, run, X, more: np.full(X.shape[:2], np.nan), "means"),
        ("reward_noise", lambda self, rng, n: rng.standard_normal(n), "reward_noise"),
        ("fill", lambda self, run, rng, out: None, "fill|means"),
        ("delays", lambda self, rng, n: np.full(n, -1), "delays"),
        ("delays", lambda self, rng, n: np.full(n, 0.5), "delays"),
    ],
)
def test_a_mistake_in_an_environment_is_named(method, answer, words, monkeypatch):
    monkeypatch.setattr(Broken, method, answer, raising=False)
    with pytest.raises(ValueError, match=words):
        dither.simulate(Broken(dim=2, arms=3), ["Greedy"], runs=2, rounds=5)


@pytest.mark.parametrize("env", [None, dither.envs.Linear, object()])
def test_what_is_no_environment_is_refused(env):
    with pytest.raises(TypeError, match="environment"):
        dither.simulate(env, ["Greedy"], runs=1, rounds=2)


def test_a_model_that_does_not_fit_the_environment_is_refused():
    for model in (dither.models.Disjoint(Ridge(), 3), dither.models.Disjoint(Ridge(), 4)):
        with pytest.raises(ValueError, match="does not fit"):
            dither.simulate(dither.envs.Linear(dim=2, arms=3), {"a": (model, Greedy())}, runs=1, rounds=2)


def test_settings_in_names_are_read_once_and_as_what_they_are():
    from dither.algorithms import Spec

    assert Spec.parse("LinFP:coupled=false").settings == (("coupled", False),)
    with pytest.raises(ValueError, match="twice"):
        Spec.parse("LinFP:c=0.3,c=100")
    with pytest.raises(TypeError, match="LinFP"):
        dither.simulate(dither.envs.Linear(dim=2, arms=3), {"a": dither.LinFP}, runs=1, rounds=2)
    assert len(dither.simulate(dither.envs.Linear(dim=2, arms=3), ["Greedy"], runs=np.int64(2), rounds=2).runs) == 2


def test_scaling_of_a_data_set():
    y = [0, 1] * 50
    two = np.c_[np.full(100, 0.1), np.arange(100)]
    assert dither.envs.Classification(two, y, scale="standard").dim == 1  # seen red: 0.1 varying by rounding
    tiny = dither.envs.Classification(np.full((100, 2), 1e-170), y, scale="unit").X
    assert_allclose(np.linalg.norm(tiny, axis=1), 1.0)
    for X in (np.full((100, 2), 0.1), np.empty((100, 0))):
        with pytest.raises(ValueError, match="column"):
            dither.envs.Classification(X, y, scale="standard")
    with pytest.raises(ValueError, match="not both"):
        dither.envs.Delayed(dither.envs.Linear(), delay=3, mean=2.0)

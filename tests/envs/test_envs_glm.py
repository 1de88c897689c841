"""Logistic, probit, clipped and Poisson environments; what `simulate` does with rewards drawn given the means."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

import dither
from dither import envs
from dither.base import streams
from dither.models import GLM, Ridge
from dither.policies import FeaturePerturbation, Greedy

SMOOTH = {"logistic": envs.Logistic, "probit": envs.Probit, "poisson": envs.Poisson}
KINDS = SMOOTH | {"clipped": envs.Clipped}
MU = {
    "logistic": special.expit,
    "probit": stats.norm.cdf,
    "poisson": np.exp,
    "clipped": np.vectorize(lambda eta: 0.0 if eta < 0 else 1.0 if eta > 1 else eta),
}
SHAPES = [
    dict(contexts=None),
    dict(contexts=1),
    dict(contexts=3, norm=2.5),
    dict(contexts=None, unit=False, norm=0.5),
]


def world(env, *, n=40, seed=3, run=7):
    """What is fixed for a run, and its first n contexts."""
    started, X = env.start(streams.stream(seed, run, "instance")), np.empty((n, env.arms, env.dim))
    return started, X, env.fill(started, streams.stream(seed, run, "contexts"), X)


def mean(env, **of_run):
    run, X, more = world(env, **of_run)
    return env.means(run, X, more)


# The environments


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_contexts_are_those_of_the_linear_environment(kind, shape):
    (run, X, _), (linear, X_linear, _) = (world(kind(dim=4, arms=6, **shape)) for kind in (KINDS[kind], envs.Linear))
    assert_array_equal(run.theta, linear.theta)
    assert_allclose(np.linalg.norm(run.theta), shape.get("norm", 1.0))
    assert_array_equal(X, X_linear)
    assert_allclose(KINDS[kind](dim=4, arms=6, **shape).means(run, X, None), MU[kind](X @ run.theta), rtol=1e-12)
    # seen red: θ* and the contexts from another order of draws; θ* 1.0001 times as long


@pytest.mark.parametrize("kind", KINDS)
def test_facts(kind):
    env = KINDS[kind](dim=5, arms=3, norm=4.0)
    assert (env.S, env.sigma, env.disjoint) == (4.0, 1.0, False)
    assert repr(env) == f"{KINDS[kind].__name__}(dim=5, arms=3, contexts=None, norm=4.0, unit=True)"
    assert isinstance(env, envs.Environment)
    assert env == KINDS[kind](5, 3, norm=4.0)
    assert env != envs.Linear(5, 3, norm=4.0)
    for wrong in ({"dim": 0}, {"arms": 0}, {"contexts": 0}, {"norm": 0.0}, {"norm": np.nan}):
        with pytest.raises(ValueError, match="must"):
            KINDS[kind](**wrong)


@pytest.mark.parametrize("kind", ["logistic", "probit", "clipped"])
def test_coins_have_their_means_and_one_uniform_each(kind):
    env = KINDS[kind](dim=3, arms=4, norm=2.0)
    p = np.broadcast_to(mean(env, n=1), (20_000, 4))
    r = env.rewards(streams.stream(0, 0, "noise"), p)
    assert set(np.unique(r)) == {0, 1}
    assert np.all(abs(r.mean(axis=0) - p[0]) <= 5 * np.sqrt(p[0] * (1 - p[0]) / len(p)))
    assert_array_equal(r, streams.stream(0, 0, "noise").random(p.shape) < p)
    assert np.all(env.rewards(streams.stream(0, 0, "noise"), p + 0.1) >= r)  # the same coins
    # seen red: `>` for `<`


def test_counts_have_their_means_and_variances():
    env = envs.Poisson(dim=3, arms=4, norm=2.0)
    mu = np.broadcast_to(mean(env, n=1), (20_000, 4))
    r = env.rewards(streams.stream(0, 0, "noise"), mu)
    assert np.all((r >= 0) & (r == np.floor(r)))
    assert np.all(abs(r.mean(axis=0) - mu[0]) <= 5 * np.sqrt(mu[0] / len(mu)))
    # of a Poisson sample variance: (μ + 2μ²)/n, as its fourth central moment is μ + 3μ²
    assert np.all(abs(r.var(axis=0) - mu[0]) <= 5 * np.sqrt((mu[0] + 2 * mu[0] ** 2) / len(mu)))


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_at_once_are_rewards_one_by_one(kind):
    env = KINDS[kind](dim=3, arms=5, norm=3.0)
    mu = mean(env)
    mu[::3] *= 30 if kind == "poisson" else 1  # small and large counts are drawn in different ways
    rng = streams.stream(0, 0, "noise")
    in_turn = np.concatenate([env.rewards(rng, mu[i : i + 1]) for i in range(len(mu))])
    assert_array_equal(env.rewards(streams.stream(0, 0, "noise"), mu), in_turn)


def test_counts_beyond_float_are_refused():
    with pytest.raises(ValueError, match=r"at most 2\^53, got .* with Poisson\(.*norm=60.*lower norm"):
        dither.simulate(envs.Poisson(dim=2, norm=60.0), ["Greedy"], runs=2, rounds=5)
    with pytest.raises(ValueError, match="unit=True"):
        dither.simulate(envs.Poisson(dim=20, norm=20.0, unit=False), ["Greedy"], runs=2, rounds=5)


# κ* and κ


def slope(kind, eta, h=1e-5):
    """μ' by differences."""
    return (MU[kind](eta + h) - MU[kind](eta - h)) / (2 * h)


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_kappas(kind, shape):
    env = KINDS[kind](dim=3, arms=4, **shape)
    run, X, _ = world(env)
    best = [max(float(x @ run.theta) for x in arms) for arms in X]
    assert_allclose(env.kappa_star(run, X), np.mean([slope(kind, eta) for eta in best]), rtol=1e-8)
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((4000, 3))
    theta *= env.S / np.linalg.norm(theta, axis=1, keepdims=True) * rng.random((4000, 1)) ** (1 / 3)
    longest = max(X.reshape(-1, 3), key=np.linalg.norm)
    assert env.kappa(X) <= slope(kind, X @ theta.T).min() * (1 + 1e-6)
    assert_allclose(env.kappa(X), slope(kind, -env.S * np.linalg.norm(longest)), rtol=1e-6)
    if env.unit:
        assert_allclose(env.kappa(X), slope(kind, -env.S), rtol=1e-6)
    # seen red: the mean over all arms for that over the best ones; κ at θ* alone


def test_a_mean_that_is_cut_is_all_or_nothing_at_its_ends():
    env = envs.Clipped(dim=2, arms=4, norm=4.0)
    run, X = envs.sphere.SphereRun(np.array([4.0, 0.0]), None), np.array([[[1, 0], [0.5, 0.8], [0.1, 0.9], [-1, 0]]])
    mu = env.means(run, X, None)
    assert_allclose(mu, [[1, 1, 0.4, 0]], rtol=1e-15)
    r = env.rewards(streams.stream(0, 0, "noise"), np.broadcast_to(mu[0], (20_000, 4)))
    assert_array_equal(r[:, [0, 1, 3]], np.broadcast_to([1.0, 1, 0], (20_000, 3)))
    # seen red: a cut at 2; a mean that is not cut at 0


class Watched(envs.Logistic):
    """Notes what `simulate` shows."""

    def means(self, run, X, more):
        self.seen.append((run, X.copy()))
        return super().means(run, X, more)


def test_kappas_are_those_of_what_is_simulated():
    env = Watched(dim=3, arms=4, norm=4.0)
    object.__setattr__(env, "seen", [])
    dither.simulate(env, ["Greedy"], runs=6, rounds=9, seed=5)
    assert len(env.seen) == 6
    stars = [np.mean(slope("logistic", np.max(X @ run.theta, axis=-1))) for run, X in env.seen]
    found = envs.kappas(env, runs=6, rounds=9, seed=5)
    assert_allclose(found[:2], (np.mean(stars), np.std(stars, ddof=1) / np.sqrt(6)), rtol=1e-6)
    assert (found.runs, found.rounds) == (6, 9)
    assert_allclose(found.least, slope("logistic", 4.0), rtol=1e-6)
    assert envs.kappas(envs.Delayed(env, delay=2), runs=6, rounds=9, seed=5) == found
    with pytest.raises(ValueError, match="runs must"):
        envs.kappas(env, runs=1)
    # seen red: the stream of the contexts from another purpose


# What `simulate` does with them


@pytest.mark.parametrize("kind", KINDS)
def test_a_simulation_is_a_loop_written_by_hand(kind):
    env, model, T = KINDS[kind](dim=3, arms=5, norm=2.0), Ridge(1.0), 50
    r = dither.simulate(env, {"greedy": (model, Greedy())}, runs=3, rounds=T, seed=3)
    run, X, _ = world(env, n=T, run=1)
    mu = MU[kind](X @ run.theta)
    rewards = env.rewards(streams.stream(3, 1, "noise"), mu)
    V, b, regret, realised = np.eye(3), np.zeros(3), 0.0, 0.0
    ties = streams.stream(3, 1, "ties").random((T, dither.deciding.decision.UNIFORMS))
    for t in range(T):
        scores = X[t] @ np.linalg.solve(V, b)
        arm, top = int(np.argmax(scores) if b.any() else ties[t, 0] * 5), np.argmax(mu[t])  # at θ̂ = 0 all arms tie
        regret, realised = regret + mu[t, top] - mu[t, arm], realised + rewards[t, top] - rewards[t, arm]
        V, b = V + np.outer(X[t, arm], X[t, arm]), b + rewards[t, arm] * X[t, arm]
    assert_allclose((r.regret[0, 1, -1], r.realised[0, 1, -1]), (regret, realised), rtol=1e-9)
    # seen red: the noise stream read again in each chunk; `best_reward` of the highest reward


class Both(envs.Logistic):
    """Draws its rewards, and has noise as well."""

    def reward_noise(self, rng, n):
        raise AssertionError


def test_rewards_are_asked_in_place_of_noise():
    plain, both = (dither.simulate(kind(dim=2, arms=3), ["LinFP"], runs=2, rounds=9) for kind in (envs.Logistic, Both))
    assert_array_equal(plain.realised, both.realised)
    neither = type("Neither", (), dict.fromkeys(("arms", "dim", "disjoint", "start", "fill", "means")))
    with pytest.raises(TypeError, match=r"Neither is no environment .*: it lacks reward_noise or rewards"):
        dither.simulate(neither(), ["LinFP"], runs=2, rounds=9)
    wrong = type("Wrong", (envs.Logistic,), {"rewards": lambda self, rng, mean: mean[:1]})
    with pytest.raises(ValueError, match=r"Wrong\.rewards must return finite numbers of shape"):
        dither.simulate(wrong(dim=2, arms=3), ["LinFP"], runs=2, rounds=9)
    wrong = type("Wrong", (envs.Logistic,), {"rewards": lambda self, rng, mean: mean * np.nan})
    with pytest.raises(
        ValueError, match=r"Wrong\.rewards must return finite numbers, and gives nan in round 1 of run 0"
    ):
        dither.simulate(wrong(dim=2, arms=3), ["LinFP"], runs=2, rounds=9)


class Rising(envs.Linear):
    """Rewards from 0 to 1 for a while, and then 2."""

    def fill(self, run, rng, out):
        super().fill(run, rng, out)
        return out[:, 0, 0]

    def means(self, run, X, more):
        run.theta[1] += len(X)  # as a clock
        return np.full(X.shape[:2], 0.5 if run.theta[1] < 300 else 2.0)


GLM_GREEDY = {"glm": (GLM("logit"), Greedy())}


@pytest.mark.parametrize(
    ("env", "agents", "says"),
    [
        (envs.Linear(dim=2, arms=3), GLM_GREEDY, r"rewards must lie in \[0, 1\] for GLM\(.*, and Linear\(.* pays"),
        (envs.Linear(dim=2, arms=3, noise=0.0, norm=0.1), GLM_GREEDY, "pays -0"),
        (envs.Poisson(dim=2, arms=3), GLM_GREEDY, r"Poisson\(.* pays [2-9]"),
        (envs.Linear(dim=2, arms=3), {"glm": (GLM("log"), Greedy())}, r"\[0, inf\]"),
        (envs.Delayed(envs.Poisson(dim=2, arms=3), delay=2), GLM_GREEDY, r"link="),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_rewards_that_a_model_cannot_hold_are_refused_before_anything_runs(env, agents, says, jobs, monkeypatch):
    def never(*arguments, **settings):
        raise AssertionError

    monkeypatch.setattr(sys.modules["dither.simulation.simulate"], "_lockstep", never)
    linear = {"linear": (Ridge(), FeaturePerturbation())}
    with pytest.raises(ValueError, match=says):
        dither.simulate(env, linear | agents, runs=2, rounds=5, jobs=jobs)
    # seen red: `check_rewards` left out of `simulate`


def test_rewards_that_a_model_holds_run():
    for env, link in ((envs.Logistic, "logit"), (envs.Probit, "probit"), (envs.Poisson, "log")):
        agents = {"ridge": (Ridge(), Greedy()), "glm": (GLM(link), Greedy())}
        r = dither.simulate(env(dim=2, arms=3), agents, runs=2, rounds=40)
        assert np.isfinite(r.regret).all()


def test_rewards_that_go_wrong_later_are_refused_then():
    with pytest.raises(ValueError, match="pays 2"):
        dither.simulate(Rising(dim=2, arms=3, noise=0.0), GLM_GREEDY, runs=2, rounds=600)
    # seen red: `_refuse` left out of `_lockstep`


class Large(Ridge):
    """A model that keeps a long history."""

    def bytes(self, dim, rounds):
        return dim * rounds * 1000


@pytest.mark.parametrize(("rounds", "sizes"), [(10, [50] * 2), (2000, [25] * 4), (100_000, [1] * 100)])
def test_runs_in_lockstep_are_as_many_as_memory_holds(rounds, sizes, monkeypatch):
    parts = []

    def note(contest, runs, tell):
        parts.append(len(runs))
        return np.zeros((2, 3, len(runs), 1))

    monkeypatch.setattr(sys.modules["dither.simulation.simulate"], "_lockstep", note)
    agents = {"a": (Large(), Greedy()), "b": (Large(0.1), Greedy()), "c": (Ridge(), Greedy())}
    dither.simulate(envs.Linear(dim=3, arms=3), agents, runs=100, rounds=rounds)
    assert parts == sizes  # 12 MB a run for 2,000 rounds: up to 33, so four parts
    parts.clear()
    dither.simulate(envs.Linear(dim=3, arms=3), agents, runs=100, rounds=rounds, batch=70)
    assert parts == [50, 50]  # what is asked for is taken


LOGISTIC = envs.Logistic(dim=2, arms=3)


@pytest.mark.parametrize(("env", "given_up"), [(LOGISTIC, 5), (envs.Delayed(LOGISTIC, delay=1), 0)])
def test_states_are_given_up_where_no_reward_is_late(env, given_up):
    seen = []

    class Noting(Ridge):
        owns = True

        def update(self, state, x, r, *, weight=None, own=False):
            seen.append(own)
            return super().update(state, x, r, weight=weight)

    dither.simulate(env, {"a": (Noting(), Greedy())}, runs=2, rounds=5)
    assert sum(seen) == given_up

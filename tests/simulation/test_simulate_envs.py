"""The environments of classification and of linear rewards, and what the simulator refuses."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import dither
from dither import envs
from dither.models import Ridge
from dither.policies import Greedy
from dither.policies.views import Drawn, plain
from properties import able
from worlds import DIGITS, ENV, FAMILIES, T, each_family, run

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
    standard = envs.Classification(X, [0, 1, 0], scale="standard", intercept=False)
    assert standard.dim == 2  # a constant column says nothing
    assert_allclose(standard.X.mean(axis=0), 0, atol=1e-12)
    assert_allclose(standard.X.std(axis=0), 1)
    unit = envs.Classification(np.r_[X[:, [0, 2]], [[0.0, 0.0]]], [0, 1, 0, 1], scale="unit")
    assert_allclose(np.linalg.norm(unit.X, axis=1), [1, 1, 0, 0])
    for wrong in (
        {"scale": "units"},
        {"intercept": 2},
        {"X": X[:0], "y": []},
        {"y": [0, 1]},
        {"X": X * np.nan},
        {"X": X[0]},
    ):
        with pytest.raises(ValueError, match="must"):
            envs.Classification(**{"X": X, "y": [0, 1, 0]} | wrong)


@pytest.mark.parametrize("scale", ["standard", "unit", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_standardised_has_an_intercept(scale, dtype, monkeypatch):
    """Seen red with zeros in the place of ones, and with an intercept for every scale."""
    X = np.random.default_rng(0).normal(3, [[1.0, 20.0, 0.0]], size=(50, 3)).astype(dtype)
    monkeypatch.setattr("dither.envs.classification.NUMBERS_AT_ONCE", 64)  # so that there are several blocks
    without = envs.Classification(X, np.arange(50) % 2, scale=scale, intercept=False)
    for intercept in (None, True):
        env = envs.Classification(X, np.arange(50) % 2, scale=scale, intercept=intercept)
        ones = np.ones((50, 1) if intercept or scale == "standard" else (50, 0))
        assert_array_equal(env.X, np.hstack([without.X, ones]))
        assert env.X.dtype == dtype
        assert env.dim == env.X.shape[1] == {"standard": 2, "unit": 3, None: 3}[scale] + ones.shape[1]
        out = np.empty((5, env.dim))
        env.fill(env.start(np.random.default_rng(0)), None, out)
        assert_array_equal(out, env.X[np.random.default_rng(0).permutation(50)[:5]])


def test_an_intercept_helps_a_linear_model():
    """The rarer class has a mean reward far from 1/2, which no multiple of a centred column is. Seen red with zeros."""
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.1).astype(int)
    X = rng.normal(size=(600, 3))
    errors = [
        run(envs.Classification(X, y, scale="standard", intercept=there), ["Greedy"], runs=4, rounds=600).regret[
            0, :, -1
        ]
        for there in (None, False)
    ]
    assert errors[0].mean() < 0.6 * errors[1].mean()


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
    simulate = sys.modules["dither.simulation.simulate"]
    monkeypatch.setattr(
        simulate, "_pieces", lambda contest, parts, **_: seen.extend(map(len, parts)) or [np.zeros((2, 1, 5, 3))]
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
    with pytest.raises(TypeError, match="'a' must be a name"):
        dither.simulate(dither.envs.Linear(dim=2, arms=3), {"a": dither.models.Ridge()}, runs=1, rounds=2)
    assert len(dither.simulate(dither.envs.Linear(dim=2, arms=3), ["Greedy"], runs=np.int64(2), rounds=2).runs) == 2


def test_scaling_of_a_data_set():
    y = [0, 1] * 50
    two = np.c_[np.full(100, 0.1), np.arange(100)]
    assert dither.envs.Classification(two, y, scale="standard", intercept=False).dim == 1
    # seen red: 0.1 varying by rounding
    tiny = dither.envs.Classification(np.full((100, 2), 1e-170), y, scale="unit").X
    assert_allclose(np.linalg.norm(tiny, axis=1), 1.0)
    for X in (np.full((100, 2), 0.1), np.empty((100, 0))):
        with pytest.raises(ValueError, match="column"):
            dither.envs.Classification(X, y, scale="standard")
    with pytest.raises(ValueError, match="not both"):
        dither.envs.Delayed(dither.envs.Linear(), delay=3, mean=2.0)


class Later(envs.Linear):
    """Fills in a NaN, in one of its runs, after the rounds that are drawn at once."""

    method = "fill"

    def fill(self, run, rng, out, *, t):
        super().fill(run, rng, out)
        if t <= 700 < t + len(out) and self.method == "fill":
            out[700 - t, 1, 0] = np.nan

    def means(self, run, X, more=None):
        return super().means(run, np.nan_to_num(X), more)

    def reward_noise(self, rng, n):
        noise = super().reward_noise(rng, n)
        return noise if self.method == "fill" else noise + np.where(noise > 3.5, np.inf, 0.0)


class Thrown(Later):
    method = "reward_noise"


def test_a_number_that_is_none_is_told_with_its_round_and_run():
    with pytest.raises(
        ValueError, match=r"Later\.fill must write finite .* all of out, and gives nan in round 700 of run 7$"
    ):
        dither.simulate(Later(dim=2, arms=3), ["LinFP"], runs=[7, 9], rounds=900)
    with pytest.raises(
        ValueError, match=r"Thrown\.reward_noise must return finite .* gives inf in round \d+ of run \d$"
    ):
        dither.simulate(Thrown(dim=2, arms=3), ["LinFP"], runs=5, rounds=900)
    # seen red: the first rounds alone looked at; the round among those drawn at once; the run's place in the batch


@dataclass(frozen=True)
class Stops:
    """Its scores are NaN from a round on."""

    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        return plain(model.mean(state, X) + (np.nan if t > 40 else 0.0))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_says_which_algorithm_and_which_round(jobs):
    agents = {"LinFP": "LinFP", "mine": (Ridge(), Stops()), "greedy": (Ridge(), Greedy())}
    with pytest.raises(ValueError, match="must be finite, and NaN or infinity came") as failed:
        dither.simulate(envs.Linear(dim=2, arms=3), agents, runs=2, rounds=60, jobs=jobs)
    assert failed.value.__notes__ == ["mine in round 41"]
    # seen red: the first of those that learn together


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (lambda m, z: m + z[..., None], r"got shape \(4, 4, 3\)"),
        (lambda m, z: m[..., None] + z[None], "they end with 'operands could not be broadcast together"),
    ],
)
def test_draws_with_an_axis_too_many_are_told_by_their_shape(scores, said):
    @dataclass(frozen=True)
    class Column(Stops):
        def draw(self, rng, n, *, arms, dim):
            return (rng.normal(size=(n, 1)),)

        def view(self, model, state, X, *, t):
            return Drawn(lambda z: scores(model.mean(state, X), z))

    told = rf"Column must score each of the 3 arms: scores \(4, 3\), {said}.*: draw gave chance of the shapes \(4, 1\)"
    with pytest.raises(ValueError, match=told):
        dither.simulate(envs.Linear(dim=2, arms=3), {"mine": (Ridge(), Column())}, runs=4, rounds=9)
    # seen red: the last axis alone looked at; numpy's own words

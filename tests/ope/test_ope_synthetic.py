"""The synthetic world: its truth against brute force, its logs against their laws."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import ope
from dither.ope import synthetic
from dither.ope.synthetic import ScoreSoftmax, World, uniform

WORLDS = [
    World(dim=4, arms=5, contexts=20),
    World(dim=4, arms=5, contexts=20, bend=0.8, seed=3),
    World(dim=3, arms=4, contexts=15, link="logit", bend=1.0, norm=2.0, seed=1),
    World(dim=2, arms=3, contexts=None, bend=0.5, seed=2),
]


def slow_mean(world, x):
    """η and μ of one arm, a scalar at a time."""
    theta, phi = world.instance.theta, world.instance.phi
    eta = sum(float(a) * float(b) for a, b in zip(x, theta, strict=True))
    along = sum(float(a) * float(b) for a, b in zip(x, phi, strict=True))
    eta += world.bend * (world.dim * along**2 - 1) / 2
    return 1 / (1 + math.exp(-eta)) if world.link == "logit" else eta


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_means_are_the_formula(world):
    X = np.random.default_rng(0).normal(size=(6, world.arms, world.dim))
    slow = [[slow_mean(world, x) for x in arms] for arms in X]
    assert_allclose(world.mean(X), slow, rtol=1e-12, atol=1e-14)
    assert_allclose(np.linalg.norm(world.instance.theta), world.norm)
    assert abs(world.instance.phi @ world.instance.theta) < 1e-12
    assert_allclose(np.linalg.norm(world.instance.phi), 1)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_value_is_that_of_brute_force(world):
    """Play 10,000 rounds: draw a context, an arm and a reward with another generator than the world's."""
    rng, n = np.random.default_rng(1), 10_000
    policy = ScoreSoftmax(rng.normal(size=world.dim), 0.7)
    if world.contexts is None:
        X = rng.normal(size=(n, world.arms, world.dim))
        X /= np.linalg.norm(X, axis=-1, keepdims=True)
    else:
        X = world.instance.X[rng.integers(world.contexts, size=n)]
    P = policy.probabilities(X)
    a = np.array([rng.choice(world.arms, p=row / row.sum()) for row in P])
    mu = np.array([slow_mean(world, x) for x in X[np.arange(n), a]])
    r = rng.random(n) < mu if world.link == "logit" else mu + world.noise * rng.normal(size=n)
    truth = world.value(policy)
    se = math.hypot(np.std(r) / math.sqrt(n), truth.se)
    assert abs(np.mean(r) - truth.value) < 5 * se  # seen red: the mean over arms, not weighted by P
    assert (truth.se == 0) == (world.contexts is not None)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_logs_follow_their_law(world):
    n, policy = 20_000, ScoreSoftmax(np.ones(world.dim), 0.5)
    log = world.log(policy, n)
    rows = np.arange(n)
    assert_array_equal(log.p, log.P[rows, log.a])
    assert_allclose(log.P, policy.probabilities(log.X), rtol=1e-13)
    truth = world.value(policy)
    assert abs(log.r.mean() - truth.value) < 5 * math.hypot(log.r.std() / math.sqrt(n), truth.se)
    shown = np.bincount(log.a, minlength=world.arms) - log.P.sum(axis=0)
    assert np.all(np.abs(shown) < 5 * np.sqrt((log.P * (1 - log.P)).sum(axis=0)))  # seen red: edges one arm off
    noise = log.r - world.mean(log.X)[rows, log.a]
    assert abs(noise.mean()) < 5 * noise.std() / math.sqrt(n)
    if world.link == "logit":
        assert set(np.unique(log.r)) == {0.0, 1.0}
    else:
        assert_allclose(noise.std(), world.noise, rtol=5 / math.sqrt(2 * n))


def test_ips_and_dr_find_the_truth():
    world = WORLDS[1]
    log, target = world.log(uniform, 20_000), ScoreSoftmax(world.instance.theta, 0.2)
    Q = target.probabilities(log.X)
    model = np.linalg.lstsq(log.x, log.r, rcond=None)[0]
    for found in (ope.ips(log.r, log.a, log.p, Q), ope.dr(log.r, log.a, log.p, Q, log.X @ model)):
        assert abs(found.value - world.value(target).value) < 5 * found.se
    dm = ope.dm(log.r, log.a, log.p, Q, log.X @ model)
    assert abs(dm.value - world.value(target).value) > 10 * dm.se  # a linear model cannot follow the bend


def test_contexts_and_noise_do_not_depend_on_the_policy():
    world = WORLDS[0]
    one, two = world.log(uniform, 50, run=4), world.log(world.best, 50, run=4)
    assert_array_equal(one.X, two.X)
    assert_array_equal(one.context, two.context)
    rows = np.arange(50)
    noise = [log.r - world.mean(log.X)[rows, log.a] for log in (one, two)]
    assert_allclose(noise[0], noise[1], atol=1e-14)
    assert not np.array_equal(one.X, world.log(uniform, 50, run=5).X)


def test_a_bandit_that_learns_plays_every_round():
    world = WORLDS[0]
    log = world.log(dither.LinFP(dim=4, lam=1.0, seed=3), 60, learn=True)
    again = dither.LinFP(dim=4, lam=1.0, seed=3)
    for t in range(60):
        assert_allclose(log.P[t], again.propensities(log.X[t]), atol=1e-13)
        shown = again.choose(log.X[t])
        assert shown.arm == log.a[t]
        assert shown.propensity == log.p[t]
        assert_allclose(log.p[t], log.P[t, log.a[t]], rtol=1e-9, atol=1e-13)
        again.update(log.X[t, shown.arm], log.r[t])  # seen red: update left out
    with pytest.raises(ValueError, match="exact propensities"):
        world.log(dither.LinTS(dim=4, seed=0), 5, learn=True)


def test_a_bandit_as_it_stands_is_a_policy():
    world, bandit = WORLDS[0], dither.LinFP(dim=4, lam=1.0, seed=3)
    bandit.update(np.eye(4), [1.0, 0.0, -1.0, 0.5])
    Q = bandit.propensities(world.instance.X)
    expected = np.mean(np.sum(Q * world.mean(world.instance.X), axis=1))
    assert_allclose([world.value(bandit).value, world.value(Q).value], expected, rtol=1e-14)
    table, live = world.log(Q, 30), world.log(bandit, 30)
    assert_array_equal(table.a, live.a)
    assert bandit.decisions == 0


def test_no_policy_beats_the_best_and_no_linear_one_the_bend():
    for world in WORLDS:
        best = world.value(world.best).value
        for policy in (uniform, ScoreSoftmax(world.instance.theta, 0.1), ScoreSoftmax(-world.instance.theta, 1.0)):
            assert world.value(policy).value < best
    straight = ScoreSoftmax(WORLDS[1].instance.theta, 1e-3)
    assert WORLDS[1].value(straight).value < WORLDS[1].value(WORLDS[1].best).value - 0.05
    assert_allclose(
        WORLDS[0].value(ScoreSoftmax(WORLDS[0].instance.theta, 1e-3)).value, WORLDS[0].value(WORLDS[0].best).value
    )


def test_rows_are_plain():
    log = WORLDS[2].log(uniform, 3)
    rows = list(log.rows())
    assert [row["arm"] for row in rows] == log.a.tolist()
    assert [type(value) for value in rows[0].values()] == [str, int, float, str, list, float, list]
    assert_array_equal(rows[2]["features"], log.X[2])
    assert "features" not in next(log.rows(features=False))


@example([0.0, 1.0], 0.0)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda q: sum(q) > 0.1), st.floats(0, 1, exclude_max=True)
)
def test_a_draw_is_never_an_arm_of_probability_0(q, u):
    P = np.array([q]) / sum(q)
    (arm,) = synthetic.draw(P, np.array([u]))
    assert P[0, arm] > 0  # seen red: edges < u, which shows arm 0 at u = 0 whatever its probability
    before = sum(P[0, :arm].tolist())
    assert before - 1e-12 <= u * sum(P[0].tolist()) <= before + P[0, arm] + 1e-12


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: World(dim=0), "dim must be a whole number of at least 1, got 0"),
        (lambda: World(link="probit"), "no link of synthetic rewards 'probit'"),
        (lambda: World(dim=1, bend=1.0), "bend must be 0 where dim=1"),
        (lambda: World(contexts=0), "contexts must be"),
        (lambda: World(noise=-1.0), "noise must lie in"),
        (lambda: WORLDS[0].log(uniform, 0), "n must be"),
        (lambda: WORLDS[0].value(lambda X: np.ones(X.shape[:-1])), r"row 0 is \[1.0, .*\(20 such rows\): normalise"),
        (lambda: WORLDS[0].value(np.ones((3, 5)) / 5), r"shape \(20, 5\).*got \(3, 5\)"),
        (lambda: ScoreSoftmax(np.ones(2), 0.0), "temperature must be"),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises((ValueError, LookupError), match=says):
        call()


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match="a policy must be a function of X"):
        WORLDS[3].value(np.ones((20, 3)) / 3)

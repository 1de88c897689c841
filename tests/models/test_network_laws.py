"""The laws that policies on networks draw from: propensities, the two ways to jitter, chance spent in training."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

import dither
import oracles
from dither.base import streams
from dither.models import Network
from dither.models.network import layout
from dither.policies import GeneralFeaturePerturbation, PerturbedLeader
from network_oracles import Slow, bandit, context, learn

arms = pytest.mark.parametrize("slots", [None, 3])


def shares(b, X, n=20_000):
    return np.bincount(b.choose(np.broadcast_to(X, (n, *X.shape))).arm, minlength=b.slots or len(X)) / n


# NeuralTS: a z for each arm


def quadrature(f, s, points=200_000):
    """∫ φ(z) Π_{j≠i} Φ((f_i + s_i z - f_j)/s_j) dz for each arm, by the midpoint rule."""
    z = (np.arange(points) + 0.5) * (18 / points) - 9
    p = np.empty(len(f))
    for i in range(len(f)):
        density = stats.norm.pdf(z) * (18 / points)
        for j in range(len(f)):
            if j != i:
                density *= special.ndtr((f[i] + s[i] * z - f[j]) / s[j])
        p[i] = density.sum()
    return p


@arms
@pytest.mark.parametrize("name", ["NeuralTS", "DeepFP-scalar"])
def test_propensities_of_a_z_for_each_arm(name, slots):
    b, rng = bandit(name, slots=slots, hidden=(8, 6)), np.random.default_rng(1)
    learn(b, rng, 8)
    slow = Slow(b)
    slow.U, slow.t = 1 / b.state.uinv if name == "NeuralTS" else None, b.t
    undecided = False
    for _ in range(4):
        X = context(rng, b, 3)
        f = slow.mean(X)
        s = slow.bonus(X, b.policy.nu) if name == "NeuralTS" else slow.slopes(X) / np.sqrt(slow.t)
        p = b.propensities(X)
        assert_allclose(p, quadrature(f, s), rtol=0, atol=1e-4)  # f and s are of float32
        undecided |= 0.05 < p.max() < 0.95
    assert undecided
    won = (f + s * rng.standard_normal((1_000_000, 3))).argmax(axis=1)
    assert oracles.agree(np.bincount(won, minlength=3) / 1e6, p, n=1_000_000, se=1e-5)
    assert oracles.agree(shares(b, X, 1000), p, n=1000)
    d = b.choose(X)
    assert (d.propensity, d.propensity_kind) == (b.propensities(X)[d.arm], "exact")
    # seen red: the bonus squared; one z for all arms


# DeepFP: jitter in the features, or in the hidden width

SHAPES = {  # d features against h units of the first hidden layer
    "d < h": dict(dim=3, hidden=(9, 4)),
    "d = h": dict(dim=5, hidden=(5, 4)),
    "d > h": dict(dim=12, hidden=(4, 5)),
    "one unit": dict(dim=4, hidden=(1,)),
    "one feature": dict(dim=1, hidden=(6,)),
    "wide": dict(dim=3, hidden=(20,)),
}
SCALES = {
    "1/t": {},
    "constant": dict(Sigma=0.4),
    "spread": dict(Sigma="spread", c=3.0),
    "of each feature": dict(Sigma="of each feature"),
}


def jittering(shape, scale, slots):
    """A bandit whose arms all can win, and its view of one request."""
    settings, rng = SHAPES[shape] | SCALES[scale], np.random.default_rng(2)
    if settings.get("Sigma") == "of each feature":
        variances = rng.uniform(0.01, 2.0, size=settings["dim"])
        settings["Sigma"] = lambda t: variances
    b = bandit("DeepFP", slots=slots, seed=4, **settings)
    learn(b, rng, 12)
    X = 0.3 * context(rng, b, 3)
    return b, X, b.policy.view(b.model, b.state, X[None], t=b.t)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", SCALES)
@arms
def test_both_ways_to_jitter_have_one_law(shape, scale, slots):
    b, X, view = jittering(shape, scale, slots)
    n, rng = 20_000, np.random.default_rng(3)
    chance = b.policy.draw(rng, n, arms=3, dim=b.dim)
    features = view.scores(*chance)
    hidden = view.redraw(rng, n, arms=3, dim=b.dim)
    assert features.shape == hidden.shape == (n, 3)
    slow = Slow(b)  # and the first of them are those of x̃ itself
    t, sd = b.t, b.policy._scaled(b.model, b.state, b.t, d=b.dim).scale
    x = np.broadcast_to(X, (3, b.dim)) + np.asarray(chance[0][:20], float) * (sd if np.ndim(sd) else float(sd))
    expected = [[slow.f(slow.theta, slow.dense(x[i, k], k)[None])[0] for k in range(3)] for i in range(20)]
    assert_allclose(features[:20], expected, rtol=1e-4, atol=1e-5)
    if scale == "1/t":
        assert_allclose(sd, 1 / np.sqrt(t))
    for one, other in zip(features.T, hidden.T, strict=True):
        se = np.sqrt((one.var() + other.var()) / n)
        assert abs(one.mean() - other.mean()) <= 5 * se + 1e-7
        fourth = np.mean((one - one.mean()) ** 4) + np.mean((other - other.mean()) ** 4)
        assert abs(one.var() - other.var()) <= 5 * np.sqrt(fourth / n) + 1e-7
    for draws in (features, hidden):  # arms are independent
        z = (draws - draws.mean(axis=0)) / np.maximum(draws.std(axis=0), 1e-9)
        assert np.abs((z.T @ z / n)[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(n)
    # the laws have an atom where all units are off, and ties there fall to any arm: shares of strict wins
    won = [np.mean(draws == draws.max(axis=1, keepdims=True), axis=0) for draws in (features, hidden)]
    assert np.all(np.abs(won[0] - won[1]) <= 5 * np.sqrt(0.5 / n))
    # seen red: R' for R; √(t + 1); rows of R in another order and 1.2 times as long


@arms
def test_where_all_units_are_on_the_score_is_normal(slots):
    """f is linear there, so f(x̃) ~ N(f(x), ‖Σ^{1/2} ∇_x f‖²) in closed form, and the larger of two by Φ."""
    b = bandit("DeepFP", slots=2 if slots else None, dim=4, hidden=(6, 3), dtype="float64", seed=1)
    net = layout.layout(4, b.slots, (6, 3))
    theta = b.state.theta.copy()
    for layer in net.views(theta)[:-1]:
        layer.b[...] = 50.0
    b.state = b.state._replace(theta=theta)
    X = np.random.default_rng(5).normal(size=4 if slots else (2, 4))
    slow = Slow(b)
    f, sd, n = slow.mean(X), slow.slopes(X), 50_000
    view = b.policy.view(b.model, b.state, X[None], t=1)
    p = special.ndtr((f[0] - f[1]) / np.hypot(*sd))
    for draws in (
        view.redraw(np.random.default_rng(6), n, arms=2, dim=4),
        view.scores(*b.policy.draw(np.random.default_rng(7), n, arms=2, dim=4)),
    ):
        for k in range(2):
            assert stats.kstest((draws[:, k] - f[k]) / sd[k], "norm").pvalue > 1e-5
        assert oracles.agree(np.mean(draws[:, 0] > draws[:, 1]), p, n=n)
    estimate, se, kind = b.propensities(X, detail=True)
    assert kind == "monte_carlo"
    assert oracles.agree(estimate, np.array([p, 1 - p]), n=10_000)
    assert_allclose(se, np.sqrt(p * (1 - p) / 10_000), rtol=0.1)
    assert oracles.agree(shares(b, X), np.array([p, 1 - p]), n=20_000)


def test_what_is_logged_is_the_probability_and_its_error():
    """(1 + hits)/(1 + draws): its mean over decisions that show the arm is p + (1 - p)/(1 + draws)."""
    b = bandit("DeepFP", dim=3, hidden=(9, 4), monte_carlo=200)
    learn(b, np.random.default_rng(8), 10)
    X = 0.3 * np.random.default_rng(9).normal(size=(3, 3))
    p = b.propensities(X, draws=100_000)
    shown = [b.choose(X) for _ in range(300)]
    for k in range(3):
        logged = np.array([d.propensity for d in shown if d.arm == k])
        expected = (1 + 200 * p[k]) / 201
        assert len(logged) > 20
        assert abs(logged.mean() - expected) < 5 * np.sqrt(p[k] * (1 - p[k]) * (1 / 200 / len(logged) + 1 / 100_000))
    assert {d.propensity_kind for d in shown} == {"monte_carlo"}
    assert_allclose(np.mean([d.propensity_se for d in shown]), np.sqrt(np.mean(p * (1 - p)) / 200), rtol=0.3)


def test_all_slots_may_move():
    """mask=False: Kd-vectors of noise, against the whole vectors written out."""
    b = bandit("DeepFP", slots=3, mask=False, dtype="float64", c=2.0)
    learn(b, np.random.default_rng(10), 12)
    x, slow = np.random.default_rng(11).normal(size=3), Slow(b)
    view = b.policy.view(b.model, b.state, x[None], t=b.t)
    (zeta,) = b.policy.draw(np.random.default_rng(12), 50, arms=3, dim=3)
    assert zeta.shape == (50, 3, 3, 3)
    s = view.scores(zeta)
    full = slow.arms(x) + 2.0 / np.sqrt(b.t) * zeta.reshape(50, 3, 9)
    assert_allclose(s, [slow.f(slow.theta, rows) for rows in full], rtol=1e-6, atol=1e-8)
    p, se, _ = b.propensities(x, detail=True)
    assert oracles.agree(shares(b, x), p, n=20_000, se=se)
    with pytest.raises(TypeError, match="needs 'mean_everywhere' of its model"):
        bandit("DeepFP", mask=False)
    # seen red: the noise of another arm's slot left out


@arms
def test_one_jitter_for_all_arms(slots):
    b = bandit("DeepFP", slots=slots, coupled=True, dtype="float64")
    learn(b, np.random.default_rng(13), 12)
    X, slow = context(np.random.default_rng(14), b, 3), Slow(b)
    view = b.policy.view(b.model, b.state, X[None], t=b.t)
    (zeta,) = b.policy.draw(np.random.default_rng(15), 30, arms=3, dim=3)
    s = view.scores(zeta)
    moved = np.broadcast_to(X, (3, 3)) + zeta.reshape(30, 1, 3) / np.sqrt(b.t)
    expected = [[slow.f(slow.theta, slow.dense(x[k], k)[None])[0] for k in range(3)] for x in moved]
    assert_allclose(s, expected, rtol=1e-6, atol=1e-8)
    p, se, _ = b.propensities(X, detail=True)
    assert oracles.agree(shares(b, X), p, n=20_000, se=se)
    if slots is None:  # copies move alike: they tie and share
        q, other, _ = b.propensities(np.repeat(X, 2, axis=0), detail=True)
        assert np.all(np.abs(q - np.repeat(p / 2, 2)) <= 5 * np.hypot(other, np.repeat(se, 2)) + 1e-12)


def test_the_spread_of_each_feature_is_that_of_what_was_learnt():
    b = bandit("DeepFP", Sigma="spread")
    X = np.random.default_rng(16).normal(size=(40, 3)) * [1.0, 1000.0, 0.0]
    assert_array_equal(b.model.spread(b.state), [1.0, 1.0, 1.0])
    for x in X / [1.0, 1.0, 1.0]:
        b.update(x, 0.1)
    assert_allclose(b.model.spread(b.state), X.std(axis=0), rtol=1e-6)


# FTPL: chance spent in training


@arms
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_what_was_spent_in_training_has_no_propensity(slots, floor):
    b, free = (bandit("FTPL", slots=slots, monte_carlo=m, floor=floor) for m in (100, 0))
    for one in (b, free):
        learn(one, np.random.default_rng(17), 10)
    X = context(np.random.default_rng(18), b, 3)
    for one in (b, free):
        d = one.choose(X)
        assert (d.propensity_kind, d.propensity_se) == ("none", None)
        assert np.isnan(d.propensity)
        p, se, kind = one.propensities(X, detail=True)
        assert (kind, se) == ("none", None)
        assert p.shape == (3,)
        assert np.isnan(p).all()
        many = one.choose(np.stack([X, X]))
        assert np.isnan(many.propensity).all()
    with pytest.raises(TypeError, match="reward_noise"):
        dither.Bandit(Network(), PerturbedLeader(), dim=3)


@pytest.mark.parametrize("once", [False, True])
def test_the_noise_on_rewards_is_normal_of_that_sd(once):
    """A net of one linear piece and lr so small that a step shows the gradient: its mean over seeds is that without
    noise, and it varies by what N(0, a²) makes of it."""
    x, r, a = np.array([1.0, -2.0, 0.5]), 0.7, 0.5
    biases = []
    for seed in range(500):
        model = Network(hidden=(3,), a=a, once=once, beta1=0.0, beta2=0.0, eps=1e6, lr=1.0, dtype="float64")
        state = model.init(3, rng=np.random.default_rng(0))
        chance = tuple(kind[0] for kind in model.draw(streams.stream(seed, 0, "training"), 1))
        new = model.update(state, x, r, chance=chance)
        f = model.mean(state, x[None])[0]
        biases.append((new.theta[-1] - state.theta[-1]) * -1e6 / 2 - (f - r))  # -noise, by the last bias
    noise = np.array(biases)
    assert abs(noise.mean()) < 5 * a / np.sqrt(500)
    assert stats.kstest(noise / a, "norm").pvalue > 1e-4


def test_settings_of_deepfp_by_name():
    b = dither.DeepFP(dim=2, Sigma=0.5, c=2.0, seed=0)
    assert b.policy == GeneralFeaturePerturbation(Sigma=0.5, c=2.0)
    assert b.choose(np.eye(2)).propensity_kind == "none"


@pytest.mark.parametrize("disjoint", [None, 3])
def test_a_weight_is_so_many_observations_in_u(disjoint):
    x, arm = np.array([1.0, -0.5]), {} if disjoint is None else {"arm": 1}
    grown = []
    for weight in (0.0, 1.0, 2.5):
        b = dither.NeuralUCB(dim=2, seed=0, dtype="float64", disjoint=disjoint)
        b.update(x, 1.0, weight=weight, **arm)
        grown.append(1 / b.state.uinv - b.model.lam)
    assert np.all(grown[0] == 0)
    assert grown[1].max() > 0.1
    np.testing.assert_allclose(grown[2], 2.5 * grown[1], rtol=1e-9, atol=1e-12)  # seen red: add_squares without weight


def test_a_weight_of_zero_is_no_observation():
    b, twin = (dither.DeepFP(dim=2, seed=0, Sigma="spread") for _ in range(2))
    for one in (b, twin):
        one.update(np.eye(2), [1.0, 0.0])
    b.update([9.0, 9.0], 5.0, weight=0.0)
    assert np.all(b.state.theta == twin.state.theta)
    np.testing.assert_array_equal(b.model.spread(b.state), twin.model.spread(twin.state))


def test_the_spread_counts_a_row_as_often_as_its_weight():
    x = np.array([[0.0], [1.0], [1000.0], [4.0]])
    b = dither.FP(lambda X: X[:, 0], dim=1, Sigma="spread", seed=0)
    b.update(x, np.zeros(4), weight=[1.0, 2.0, 0.0, 0.5])
    mean = np.average(x[:, 0], weights=[1, 2, 0, 0.5])
    variance = np.average((x[:, 0] - mean) ** 2, weights=[1, 2, 0, 0.5])
    np.testing.assert_allclose(b.model.spread(b.state), [np.sqrt(variance)], rtol=1e-12)  # seen red: rows counted alike


def test_a_ball_of_all_slots_is_one_ball():
    policy = dither.policies.GeneralFeaturePerturbation(mask=False, noise=dither.noise.Ball())
    rng = np.random.default_rng(0)
    seen = []
    shown = dither.models.Fixed(lambda X: seen.append(X) or X[:, 0], slots=4)
    view = policy.view(shown, shown.init(3), np.zeros((1, 3)), t=1)
    view.scores(*policy.draw(rng, 20_000, arms=4, dim=3))
    length = np.linalg.norm(np.concatenate(seen), axis=1) / np.sqrt(12)  # uniform in a ball of d dimensions: u^{1/d}
    assert length.max() <= 1 + 1e-6
    n = len(length)
    assert abs(np.mean(length**12) - 0.5) < 5 / np.sqrt(12 * n)  # seen red: a ball for each slot


def test_softmax_needs_other_arms():
    for slots in (None, 1):
        with pytest.raises(ValueError, match="needs slots, at least 2"):
            dither.DeepGreedy(dim=2, disjoint=slots, output="softmax")

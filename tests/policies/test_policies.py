"""Policies that perturb features or the utility, optimism and greed: slow versions of their papers, known numbers."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import dither
import oracles
from dither import noise
from dither.models import Disjoint, Ridge
from dither.policies import (
    UCB,
    EpsGreedy,
    FeaturePerturbation,
    Greedy,
    RandUCB,
    ThompsonSampling,
    feature,
)
from histories import learnt

# Feature perturbation


class SlowLinFP:
    """Algorithm C.2 of the paper, line by line: vectors, V⁻¹ by inversion, division by ‖θ̂‖."""

    def __init__(self, d, *, lam, c):
        self.V, self.b, self.c = lam * np.eye(d), np.zeros(d), c

    def choose(self, X, zeta):
        Vinv = np.linalg.inv(self.V)
        theta = Vinv @ self.b
        if not theta.any():
            return None  # line 6 divides by ‖θ̂‖ = 0
        scores = []
        for x in X:
            tilde = x + self.c * math.sqrt(x @ Vinv @ x) / math.sqrt(theta @ theta) * zeta
            scores.append(tilde @ theta)
        return int(np.argmax(scores))

    def update(self, x, r):
        self.V += np.outer(x, x)
        self.b += r * x


@pytest.mark.parametrize(("lam", "c", "kind"), [(1e-4, 1.0, noise.Gaussian()), (2.0, 0.4, noise.Ball())])
def test_linfp_is_algorithm_c2_choice_by_choice(lam, c, kind):
    d, K, T = 6, 12, 2000
    rng = np.random.default_rng(0)
    theta = rng.normal(size=d) / math.sqrt(d)
    bandit = dither.LinFP(dim=d, lam=lam, c=c, form="vector", noise=kind, seed=5)
    slow = SlowLinFP(d, lam=lam, c=c)
    chance = dither.base.streams.stream(5, 0, "policy")
    compared, shown = 0, set()
    for _ in range(T):
        X = rng.normal(size=(K, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        arm = slow.choose(X, kind.vectors(chance, 1, d)[0])
        decision = bandit.choose(X)
        if arm is not None:
            assert decision.arm == arm
            compared += 1
        shown.add(decision.arm)
        r = X[decision.arm] @ theta + rng.normal()
        bandit.update(X[decision.arm], r)
        slow.update(X[decision.arm], r)
    assert compared == T - 1
    assert len(shown) == K
    # seen red: the width without its root; V in place of V⁻¹; ζ not divided by ‖θ̂‖


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("kind", [noise.Gaussian(), noise.Ball()])
def test_the_vector_form_is_the_scalar_form_with_z_its_projection(kind, disjoint):
    rng, d, K = np.random.default_rng(1), 5, 7
    model = Disjoint(Ridge(0.3), K) if disjoint else Ridge(0.3)
    vector, scalar = FeaturePerturbation(c=0.7, form="vector", noise=kind), FeaturePerturbation(c=0.7, noise=kind)
    state = model.init(d)
    for t in range(200):
        X = rng.normal(size=(1, d) if disjoint else (1, K, d))
        zeta = kind.vectors(rng, 1, model.ambient(d))
        theta = model.flat(state)
        u = theta / np.linalg.norm(theta) if t else np.eye(model.ambient(d))[0]
        seen = vector.view(model, state, X, t=t + 1)
        s = scalar.view(model, state, X, t=t + 1).scores(zeta @ u)
        assert_allclose(seen.scores(zeta), s, rtol=1e-12, atol=1e-12)
        if t and not disjoint:
            tilde = feature.perturbed(X, zeta, w=0.7 * model.width(state, X), theta=theta[None])
            assert_allclose(tilde[0] @ theta, s[0], rtol=1e-10, atol=1e-12)
        arm = int(np.argmax(s[0]))
        x = X[0] if disjoint else X[0, arm]
        state = model.update(state, x, np.array(rng.normal()), **({"arm": np.array(arm)} if disjoint else {}))


@pytest.mark.parametrize("form", ["scalar", "vector"])
def test_at_theta_zero_the_widest_arm_or_the_narrowest(form):
    X = np.array([[0.5, 0.0], [2.0, 0.0], [0.0, 1.0]])
    b = dither.LinFP(dim=2, form=form, seed=0)
    assert_allclose(b.propensities(X), [0.5, 0.5, 0.0])
    shares = np.bincount(b.choose(np.broadcast_to(X, (20_000, 3, 2))).arm, minlength=3) / 20_000
    assert oracles.agree(shares, np.array([0.5, 0.5, 0.0]), n=20_000)


@pytest.mark.parametrize("form", ["scalar", "vector"])
@pytest.mark.parametrize("disjoint", [None, 3])
def test_ball_noise_follows_its_law(form, disjoint):
    b = dither.LinFP(dim=2, lam=1.0, sigma=1.0, noise=noise.Ball(), form=form, seed=0, disjoint=disjoint)
    x = np.array([1.0, 0.4])
    for arm, r in ((0, 1.0), (1, 0.2), (1, 0.6)):
        b.update(x + arm, r, **({} if disjoint is None else {"arm": arm}))
    X = x if disjoint else np.array([[1.0, 0.0], [0.2, 0.9], [-1.0, 2.0]])
    p = b.propensities(X)
    law = noise.BallMarginal(2 if disjoint is None else 6)
    assert_allclose(p, oracles.line_mass(b.mean(X), b.width(X), cdf=law.cdf), rtol=1e-9, atol=1e-12)
    d = b.choose(np.broadcast_to(X, (20_000, *X.shape)))
    assert oracles.agree(np.bincount(d.arm, minlength=3) / 20_000, p, n=20_000)


def test_uncoupled_perturbation_gives_each_arm_its_own():
    b = dither.LinFP(dim=2, lam=1.0, c=0.8, coupled=False, seed=0)
    b.update([[1, 0], [1, 1]], [0.5, 0.1])
    X = np.array([[1.0, 0.0], [0.3, 0.8]])
    m, w = b.mean(X), b.width(X)
    p = special.ndtr((m[0] - m[1]) / math.hypot(0.8 * w[0], 0.8 * w[1]))
    assert_allclose(b.propensities(X), [p, 1 - p], atol=1e-9)
    X = np.array([[1.0, 0.0], [0.3, 0.8], [0.3, 0.8], [0.0, 0.0]])
    p = b.propensities(X)
    d = b.choose(np.broadcast_to(X, (50, 4, 2)))  # few: each propensity is an integral
    assert_allclose(d.propensity, p[d.arm], rtol=1e-9)
    view = b.policy.view(b.model, b.state, X[None], t=3)
    s = view.scores(*b.policy.draw(np.random.default_rng(0), 50_000, arms=4, dim=2))
    assert oracles.agree(np.bincount(np.argmax(s, axis=1), minlength=4) / 50_000, p, n=50_000)


def scale_of(c, **settings):
    """c_t as the bandit has it, after 3 updates: the slope of a line over its width."""
    policy = FeaturePerturbation(c=c, **settings)
    model = Ridge(0.5)
    state = model.init(2, needs=policy.needs)
    data = [([3.0, 4.0], -2.0), ([0.0, 1.0], 0.5), ([1.0, 0.0], 0.0)]
    for x, r in data:
        state = model.update(state, np.array(x), np.array(r))
    X = np.array([[[1.0, 2.0]]])
    w = policy.view(model, state, X, t=4).lines.w
    return float(w[0, 0] / model.width(state, X)[0, 0])


def test_c_is_a_number_a_name_or_a_function():
    assert_allclose(scale_of(0.3), 0.3)
    assert_allclose(scale_of(0.3, sigma=0.1), 0.03)
    assert_allclose(scale_of(lambda t: 10.0 * t, sigma=2.0), 80.0)
    noise_part = math.sqrt(2 * math.log(1000) + 2 * math.log(1 + 4 / (0.5 * 2)))
    for sigma in (1.0, 3.0):  # seen red: σ in front of √λ S as well
        right = math.sqrt(0.5) * 2 + sigma * noise_part
        assert_allclose(scale_of("oful", S=2.0, horizon=1000, sigma=sigma), right)
    L = 5 * (2 * 5 + 2) + 1 * (2 * 1 + 0.5) + 1 * (2 * 1 + 0)  # Σ ‖x‖ max_{|η| <= S‖x‖} |η - r|
    delta = 1e-3 / (4 * 1000)
    beta = math.sqrt(4 * 4 * 0.5 + 2 * (math.log(1 / delta) + 2 * math.log(2 * math.e * 2 * L / 2)))
    assert_allclose(scale_of("theory", S=2.0, horizon=1000), beta)
    assert_allclose(scale_of("theory", S=2.0, horizon=1000, delta=1e-3), beta)
    for sigma in (0.1, 3.0):  # rewards, θ* and S in units of σ, where the noise has sd 1
        log = math.log(1 / delta) + 2 * math.log(2 * math.e * (2 / sigma) * (L / sigma) / 2)
        unit = math.sqrt(4 * (2 / sigma) ** 2 * 0.5 + 2 * log)
        assert_allclose(scale_of("theory", S=2.0, horizon=1000, sigma=sigma), sigma * unit)
    # Without a horizon, t stands for T.
    assert_allclose(scale_of("oful"), scale_of("oful", horizon=4))
    assert_allclose(scale_of("theory"), scale_of("theory", horizon=4))


@pytest.mark.parametrize(
    "settings",
    [
        {"c": -1.0},
        {"c": np.nan},
        {"c": np.inf},
        {"c": None},
        {"c": True},
        {"sigma": 0.0},
        {"S": -1.0},
        {"horizon": 0},
        {"horizon": 1.5},
        {"delta": 0.0},
        {"delta": 1.0},
        {"form": "scalars"},
        {"form": "vector", "coupled": False},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=r"must|draws one"):
        FeaturePerturbation(**settings)


@pytest.mark.parametrize(
    ("build", "error", "near"),
    [
        (lambda: FeaturePerturbation(c="offul"), LookupError, "'oful'"),
        (lambda: ThompsonSampling(c="theori"), LookupError, "'theory'"),
        (lambda: UCB(radius="constnat"), LookupError, "'constant'"),
        (lambda: RandUCB(radius="ofull"), LookupError, "'oful'"),
        (lambda: EpsGreedy(decay="txt"), LookupError, "'text'"),
        (lambda: dither.LinFP(dim=2, preset="as_ran"), LookupError, "'as_run'"),
        (lambda: dither.LinFP(dim=2, lamb=1.0), TypeError, "'lam'"),
        (lambda: dither.LinFP(dim=2, sgima=1.0), TypeError, "'sigma'"),
        (lambda: dither.LinUCB(dim=2, radious="oful"), TypeError, "'radius'"),
        (lambda: dither.LinFP(dim=2, flor=0.1), TypeError, "'floor'"),  # seen red: 'form'
        (lambda: dither.LinFP(dim=2, monte_carlos=9), TypeError, "'monte_carlo'"),
        (lambda: dither.ALGORITHMS["LinFP"].configure(2, flor=0.1), TypeError, "'form'"),  # which takes no floor
        (lambda: dither.simulate(dither.envs.Linear(), ["LinFB"]), LookupError, "'LinFP'"),
        (lambda: dither.simulate(dither.envs.Linear(), ["LinFP:cc=1"]), TypeError, "'c'"),
    ],
)
def test_an_unknown_name_gets_its_near_match(build, error, near):
    with pytest.raises(error, match=near):
        build()


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("policy", [FeaturePerturbation, RandUCB])
def test_c_zero_is_greedy(coupled, policy):
    policy = FeaturePerturbation(c=0.0, coupled=coupled) if policy is FeaturePerturbation else RandUCB(beta=0.0)
    b = dither.Bandit(Ridge(1.0), policy, dim=2, seed=0)
    b.update([1, 0], 1.0)
    X = np.array([[1, 0], [0, 1], [1, 0], [1, 1]])
    assert_allclose(b.propensities(X), [1 / 3, 0, 1 / 3, 1 / 3])
    d = b.choose(np.broadcast_to(X, (3000, 4, 2)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / 3000, np.array([1, 0, 1, 1]) / 3, n=3000)
    assert_allclose(d.propensity, 1 / 3)


# Utility and optimism


def test_randucb_with_a_gaussian_is_linfp():
    ucb = dither.RandLinUCB(dim=3, law=noise.Gaussian(), beta=0.7, seed=4)
    fp = dither.LinFP(dim=3, c=0.7, seed=4)
    rng = np.random.default_rng(0)
    for _ in range(300):
        X = rng.normal(size=(6, 3))
        a, b = ucb.choose(X), fp.choose(X)
        assert a.arm == b.arm
        assert_allclose(a.propensity, b.propensity, rtol=1e-12)
        for one in (ucb, fp):
            one.update(X[a.arm], X[a.arm, 0])
    assert_array_equal(ucb.propensities(X), fp.propensities(X))


def bonus(policy, *, t=5, n=4):
    """(score - mean)/width of a policy that is a mean and a bonus."""
    model, state, _, _ = learnt(n=n, d=10, lam=0.5, needs=policy.needs)
    X = np.random.default_rng(1).normal(size=(1, 3, 10))
    return ((policy.view(model, state, X, t=t).s - model.mean(state, X)) / model.width(state, X))[0]


def test_linucb_has_the_known_radius():
    assert_allclose(bonus(UCB(horizon=20_000)), 15.0737, atol=5e-5)
    assert_allclose(bonus(UCB(horizon=20_000, S=None)), 17.2360, atol=5e-5)
    assert_allclose(bonus(UCB(beta=0.25)), 0.25)
    assert_allclose(bonus(UCB(), t=20_000), 15.0737, atol=5e-5)  # no horizon: t
    R = bonus(UCB(horizon=20_000))[0] - 1
    assert_allclose(bonus(UCB(horizon=20_000, sigma=0.5)), 1 + 0.5 * R)
    assert_allclose(bonus(UCB(horizon=20_000, sigma=0.5, S=None, sigma_again=True)), 0.5 * (math.sqrt(10) + 0.5 * R))
    # seen red: S = 1 for None


def test_oful_has_the_radius_of_its_paper():
    _, _, X, _ = learnt(n=4, d=10, lam=0.5)
    logdet = np.linalg.slogdet(np.eye(4) + X @ X.T / 0.5)[1]  # det(V)/det(λI), by the n rows
    expected = math.sqrt(0.5) * 2 + 0.3 * math.sqrt(2 * math.log(1000) + logdet)
    assert_allclose(bonus(UCB(radius="oful", horizon=1000, S=2.0, sigma=0.3)), expected, rtol=1e-10)


def test_randlinucb_scores_are_a_share_of_the_bonus():
    model, state, _, _ = learnt(d=10)
    policy, X = RandUCB(horizon=20_000), np.random.default_rng(1).normal(size=(5, 3, 10))
    a = np.linspace(0, 1, 5)
    s = policy.view(model, state, X, t=1).scores(a)
    assert_allclose((s - model.mean(state, X)) / model.width(state, X), np.outer(a, np.full(3, 15.0737)), atol=5e-5)
    (drawn,) = policy.draw(np.random.default_rng(0), 50_000, arms=3, dim=10)
    assert abs(drawn.mean() - 0.084119) < 5 * 0.079385 / math.sqrt(50_000)
    assert set(np.unique(drawn)) <= set(policy.law.points)


# Greedy


@pytest.mark.parametrize(("decay", "total"), [("half", 987), ("text", 1950)])
def test_exploring_rounds_are_the_known_number(decay, total):
    policy = EpsGreedy(decay=decay, horizon=20_000)
    eps = np.array([policy.eps(t) for t in range(1, 20_001)])
    assert abs(eps.sum() - total) < 1
    half = 2 if decay == "half" else 1
    assert_allclose(eps, np.minimum(1, 0.05 * np.sqrt(20_000 / np.arange(1, 20_001)) / half))
    # seen red: half the schedule for both


def test_a_constant_epsilon_and_a_bandit_without_horizon():
    assert EpsGreedy(decay=None, epsilon=0.2).eps(100) == 0.2
    assert_allclose([EpsGreedy().eps(t) for t in (1, 50, 10_000)], 0.025)
    b = dither.EpsGreedy(dim=2, lam=1.0, decay=None, epsilon=0.3, seed=0)
    b.update([1, 0], 1.0)
    assert_allclose(b.propensities([[1, 0], [0, 1], [-1, 0]]), [0.8, 0.1, 0.1])
    assert_allclose(b.propensities([[1, 0], [0, 1], [-1, 0]], mask=[0, 1, 1]), [0, 0.85, 0.15])


def test_greedy_needs_nothing_but_means():
    assert Greedy().needs == {"mean"}
    b = dither.Greedy(dim=2, lam=1.0, seed=0)
    b.update([1, 0], 1.0)
    assert [b.choose([[0, 1], [0.1, 9], [0.2, 0]]).arm for _ in range(50)] == [2] * 50

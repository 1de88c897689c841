"""Policies and radii against slow versions of their papers, closed laws and known numbers."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

import dither
import oracles
from dither import noise, propensity, theory
from dither.models import Diagonal, Disjoint, Ridge
from dither.policies import (
    UCB,
    EpsGreedy,
    FeaturePerturbation,
    Greedy,
    PerturbedHistory,
    PseudoRewards,
    RandUCB,
    ThompsonSampling,
    feature,
    lines,
)
from properties import ask, bounded, every, shares, slack, uncertainty


def learnt(d=4, n=30, *, lam=0.5, needs=frozenset(), seed=0, model=None):
    """A model that knows something, its state, and its data."""
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(n, d)), rng.normal(size=n)
    model = model or Ridge(lam)
    state = model.init(d, needs=needs)
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, y)
    return model, state, X, r


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
    chance = dither.streams.stream(5, 0, "policy")
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
        theta = model.flat(state.theta)
        u = theta / np.linalg.norm(theta) if t else np.eye(model.ambient(d))[0]
        seen = vector.view(model, state, X, t=t + 1)
        s = scalar.scores(scalar.view(model, state, X, t=t + 1), zeta @ u)
        assert_allclose(vector.scores(seen, zeta), s, rtol=1e-12, atol=1e-12)
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
    b = dither.LinFP(dim=2, lam=1.0, noise=noise.Ball(), form=form, seed=0, disjoint=disjoint)
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
    s = b.policy.scores(view, *b.policy.draw(np.random.default_rng(0), 50_000, arms=4, dim=2))
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
    ("build", "near"),
    [
        (lambda: FeaturePerturbation(c="offul"), "'oful'"),
        (lambda: ThompsonSampling(c="theori"), "'theory'"),
        (lambda: UCB(radius="constnat"), "'constant'"),
        (lambda: RandUCB(radius="ofull"), "'oful'"),
        (lambda: EpsGreedy(decay="txt"), "'text'"),
        (lambda: dither.LinFP(dim=2, preset="as_ran"), "'as_run'"),
        (lambda: dither.LinFP(dim=2, lamb=1.0), "'lam'"),
        (lambda: dither.LinFP(dim=2, sgima=1.0), "'sigma'"),
        (lambda: dither.LinUCB(dim=2, radious="oful"), "'radius'"),
        (lambda: dither.simulate(dither.envs.Linear(), ["LinFB"]), "'LinFP'"),
        (lambda: dither.simulate(dither.envs.Linear(), ["LinFP:cc=1"]), "'c'"),
    ],
)
def test_an_unknown_name_gets_its_near_match(build, near):
    with pytest.raises(LookupError, match=near):
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
    return ((policy.view(model, state, X, t=t) - model.mean(state, X)) / model.width(state, X))[0]


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
    s = policy.scores(policy.view(model, state, X, t=1), a)
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


# Parameters and rewards: laws of linear images of normals


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5)])
def test_thompson_draws_the_posterior(model):
    model, state, X, _ = learnt(model=model, n=12)
    policy = ThompsonSampling(c=0.8, sigma=0.5)
    view = policy.view(model, state, np.eye(4)[None], t=3)  # arms are the axes: scores are θ̃
    assert_allclose(policy.scores(view, np.zeros((1, 4)))[0], state.theta, rtol=1e-12)
    A = (policy.scores(view, np.eye(4)) - state.theta).T
    V = X.T @ X + 0.5 * np.eye(4)
    V = V if isinstance(model, Ridge) else np.diag(np.diag(V))
    assert_allclose(A @ A.T, 0.16 * np.linalg.inv(V), rtol=1e-9, atol=1e-12)
    (eta,) = policy.draw(np.random.default_rng(0), 20_000, arms=3, dim=4)
    assert stats.kstest(eta.ravel(), "norm").statistic < 1.95 / math.sqrt(80_000)
    # seen red: c left out


def test_thompson_has_the_scale_of_its_paper():
    def c(policy, t):
        model, state, _, _ = learnt(d=4, needs=policy.needs)
        return policy.view(model, state, np.eye(4)[None], t=t).c

    assert_allclose(c(ThompsonSampling(c="anytime", delta=0.1), 50), math.sqrt(9 * 4 * math.log(500)))
    assert_allclose(c(ThompsonSampling(c="anytime", sigma=0.3, horizon=200), 50), 0.3 * 6 * math.sqrt(math.log(10_000)))
    assert_allclose(c(ThompsonSampling(c="oful", horizon=200), 50), theory.oful(50, d=4, lam=0.5, T=200))
    assert np.isfinite(c(ThompsonSampling(c="anytime"), 1))


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5)])
@pytest.mark.parametrize("n", [0, 3, 12])
def test_perturbed_history_has_its_law(model, n):
    model, state, X, _ = learnt(model=model, n=n, needs=frozenset({"gram"}))
    policy = PerturbedHistory(a=3.0, sigma=0.5)
    view = policy.view(model, state, np.eye(4)[None], t=3)
    assert_allclose(policy.scores(view, np.zeros((1, 8)))[0], state.theta, rtol=1e-12)
    A = (policy.scores(view, np.eye(8)) - state.theta).T
    S = X.T @ X if isinstance(model, Ridge) else np.diag(np.sum(X * X, axis=0))
    Vinv = np.linalg.inv(S + 0.5 * np.eye(4))
    assert_allclose(A @ A.T, Vinv @ S @ Vinv * 0.25 * 3 / 4, rtol=1e-9, atol=1e-12)
    # seen red: √a for √(a/4)


@pytest.mark.parametrize(("a", "inflate"), [(2.0, True), (0.5, False), (1.0, False)])
def test_pseudo_rewards_are_the_formula(a, inflate):
    arms = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.3, 0.3, 0.9], [1.0, 1.0, 1.0]])
    rng, lam, N = np.random.default_rng(0), 0.4, 5_000
    shown = rng.permutation(np.repeat(np.arange(4), [5, 2, 1, 0]))
    r = rng.random(len(shown))
    model = Ridge(lam)
    state = model.init(3, needs=frozenset({"history"}))
    for k, y in zip(shown, r, strict=True):
        state = model.update(state, arms[k], y)
    policy = PseudoRewards(a=a, inflate=inflate)
    view = policy.view(model, state, np.eye(3)[None], t=9)
    theta = policy.scores(view, *policy.draw(np.random.default_rng(1), N, arms=3, dim=3))
    # By hand: arm k, shown n_k times, has n_k + ⌈a n_k⌉ rewards, of which ⌈a n_k⌉ are coins.
    count = np.bincount(shown, minlength=4)
    extra = np.array([math.ceil(a * n) for n in count])
    gram = sum((n + e) * np.outer(x, x) for n, e, x in zip(count, extra, arms, strict=True))
    Ginv = np.linalg.inv(gram + lam * ((1 + a) if inflate else 1) * np.eye(3))
    total = np.array([r[shown == k].sum() for k in range(4)])
    mean = Ginv @ arms.T @ (total + extra / 2)
    cov = Ginv @ (arms.T * (extra / 4)) @ arms @ Ginv
    assert np.all(np.abs(theta.mean(axis=0) - mean) <= 5 * np.sqrt(np.diag(cov) / N))
    found = np.cov(theta.T)
    assert np.all(np.abs(found - cov) <= 5 * np.sqrt(2 * np.outer(np.diag(cov), np.diag(cov)) / N))
    # On the grid of what Binomials can give, and nowhere else: undo the solve.
    coins = np.linalg.lstsq(arms[:3].T, np.linalg.solve(Ginv, theta[0]), rcond=None)[0] - total[:3]
    assert_allclose(coins, np.round(coins), atol=1e-9)
    assert np.all((coins > -0.5) & (coins < extra[:3] + 0.5))


def test_pseudo_rewards_of_a_weighted_row_are_those_of_so_many_rows():
    def mean(rows, **settings):
        b = dither.LinPHE(dim=1, lam=1.0, preset="own_paper", seed=0)
        for _ in range(rows):
            b.update([1.0], 0.0, **settings)
        view = b.policy.view(b.model, b.state, np.ones((1, 1, 1)), t=1)
        return b.policy.scores(view, np.arange(4000)).mean()

    assert_allclose(mean(1, weight=4), mean(4), atol=5 * math.sqrt(2 * 8 / 4 / 15**2 / 4000))


def test_forced_rounds_show_each_arm_once():
    b = dither.LinPHE(dim=3, preset="as_run", seed=0)
    X = np.random.default_rng(0).normal(size=(5, 3))
    for t in range(3):
        arm = b.choose(X).arm
        assert arm == t
        b.update(X[arm], 0.5)
    assert len({b.choose(X).arm for _ in range(100)}) > 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: PerturbedHistory(a=0.0),
        lambda: PerturbedHistory(sigma=-1.0),
        lambda: PseudoRewards(a=-1.0),
        lambda: PseudoRewards(jitter=2.0),
    ],
)
def test_perturbations_that_make_no_sense_are_refused(build):
    with pytest.raises(ValueError, match="must"):
        build()


# The registry


@pytest.mark.parametrize("preset", dither.algorithms.PRESETS)
@every()
def test_every_preset_constructs_and_runs(name, preset):
    b = dither.ALGORITHMS[name](dim=3, preset=preset, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = rng.normal(size=(4, 3))
        b.update(X[b.choose(X).arm], rng.random())
    assert abs(ask(b, X).sum() - 1) < 1e-9


def test_presets_are_what_the_methods_papers_say():
    def build(name, **settings):
        b = dither.ALGORITHMS[name](dim=7, **settings)
        return b.model, b.policy

    assert build("LinFP") == (Ridge(1e-4), FeaturePerturbation(c=1.0))
    assert build("LinFP", preset="own_paper") == (Ridge(7.0), FeaturePerturbation(c="theory"))
    assert build("LinTS", preset="own_paper") == (Ridge(1.0), ThompsonSampling(c="anytime"))
    assert build("LinTS", preset="as_run", sigma=0.5) == (Ridge(0.25e-4), ThompsonSampling(sigma=0.5))
    assert build("LinPHE") == (Ridge(1e-4), PerturbedHistory(a=1.0))
    assert build("LinPHE", preset="own_paper")[1] == PseudoRewards(a=2.0, inflate=True, forced=False, jitter=0.0)
    assert build("LinPHE", preset="as_run")[1] == PseudoRewards(a=0.5, inflate=False, forced=True, jitter=1e-6)
    assert build("LinUCB", preset="own_paper") == (Ridge(1.0), UCB(radius="oful"))
    assert build("LinUCB", preset="as_run", sigma=0.5) == (Ridge(0.25e-4), UCB(S=None, sigma_again=True, sigma=0.5))
    assert build("EpsGreedy", preset="own_paper")[1] == EpsGreedy(decay="text")
    assert build("LinUCB", preset="own_paper", lam=3.0)[0] == Ridge(3.0)  # what is passed wins


@every()
def test_a_model_that_lacks_an_ability_is_named(name):
    class Poor:
        lam, abilities = 1.0, frozenset()

    with pytest.raises(TypeError, match=r"needs '\w+' .* Poor"):
        dither.Bandit(Poor(), dither.ALGORITHMS[name].configure(2)[1], dim=2)


@every("slots")
def test_slots_are_arms_that_are_block_vectors(name):
    b = dither.ALGORITHMS[name](dim=2, disjoint=3, seed=0)
    for k in range(6):
        b.update([1.0, k], 0.1 * k, arm=k % 3)
    x = np.array([1.0, 0.5])
    p, (found, n) = ask(b, x), shares(b, x)
    assert oracles.agree(found, p, n=n, se=slack(b, p))
    whole = dither.ALGORITHMS[name](dim=6, seed=0)
    for k in range(6):
        row = np.zeros((3, 2))
        row[k % 3] = [1.0, k]
        whole.update(row.ravel(), 0.1 * k)
    if (whole.model.constrain if bounded(name) else None) is not None:
        return  # ‖θ‖ <= S for each slot is not ‖θ‖ <= S for all
    off = np.sum(uncertainty(whole)) + np.sum(uncertainty(b))
    assert_allclose(
        p, ask(whole, np.kron(np.eye(3), x)), rtol=1e-9, atol=1e-12 + off + 5 * math.sqrt(2) * np.max(slack(b, p))
    )


# Theory


def test_beta_is_the_known_number():
    L = (1 + 1 / 2) * (101 - 1)
    beta = theory.beta(101, d=10, lam=1e-4, S=1.0, M=1.0, L=L, delta=1e-4 / (4 * 10_000))
    assert_allclose(beta, 15.98, atol=5e-3)
    gamma = theory.gamma(101, d=10, lam=1e-4, S=1.0, M=1.0, L=L, delta=1e-4, T=10_000)
    assert_allclose(gamma, beta * math.sqrt(2 * math.log(4 * 2 * 10_000 / 1e-4)), rtol=1e-12)


def test_beta_starts_where_nothing_was_seen():
    first = theory.beta(1, d=10, lam=0.5, S=2.0, M=0.0, L=0.0, delta=0.01)
    assert_allclose(first, math.sqrt(4 * 4 * 0.5 + 2 * (math.log(100) + 10)))  # the logarithm is taken of e
    many = theory.beta(9, d=10, lam=0.5, S=2.0, M=0.0, L=np.array([0.0, 1e3]), delta=0.01)
    assert many.shape == (2,)
    assert many[0] == first < many[1]


def test_self_concordance_enters_as_in_the_lemma():
    settings = dict(d=3, lam=1e-9, S=2.0, L=50.0, delta=0.1)
    assert_allclose(theory.beta(9, M=1.0, **settings) / theory.beta(9, M=0.0, **settings), math.sqrt(3), rtol=1e-6)


def test_lines_of_a_view_are_what_propensities_are_of():
    view = lines.Lines(np.array([[0.3, 0.1]]), np.array([[0.2, 1.0]]))
    assert_allclose(
        lines.all_arms(view, noise.Gaussian(), coupled=True, mask=None),
        propensity.envelope(*view, law=noise.Gaussian()),
    )


@dataclasses.dataclass(frozen=True)
class Boasting:
    """A policy of one's own whose probabilities are none."""

    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        return model.mean(state, X)

    def scores(self, view):
        return view

    def propensities(self, view, *, mask=None):
        return np.ones(view.shape)


def test_probabilities_of_a_policy_of_ones_own_sum_to_one():
    bandit = dither.Bandit(dither.models.Ridge(), Boasting(), dim=2, seed=0)
    for asked in (bandit.choose, bandit.propensities):
        with pytest.raises(ValueError, match=r"Boasting\.propensities must sum to 1 .* got a sum of 3: divide by it"):
            asked([[1, 0], [0, 1], [1, 1]])  # seen red: believed

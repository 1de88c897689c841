"""Policies that perturb parameters or rewards, against closed laws; the registry; radii, against known numbers."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither
import oracles
from dither import noise, propensity, theory
from dither.models import Diagonal, Ridge
from dither.policies import (
    UCB,
    EpsGreedy,
    FeaturePerturbation,
    GeneralFeaturePerturbation,
    PerturbedHistory,
    PseudoRewards,
    ThompsonSampling,
    views,
)
from histories import learnt
from properties import NETWORKS, SPENT, ask, every, every_preset, shares, slack, uncertainty

# Parameters and rewards: laws of linear images of normals


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5)])
def test_thompson_draws_the_posterior(model):
    model, state, X, _ = learnt(model=model, n=12)
    policy = ThompsonSampling(c=0.8, sigma=0.5)
    view = policy.view(model, state, np.eye(4)[None], t=3)  # arms are the axes: scores are θ̃
    assert_allclose(view.scores(np.zeros((1, 4)))[0], state.theta, rtol=1e-12)
    A = (view.scores(np.eye(4)) - state.theta).T
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
    model, state, X, _ = learnt(model=model, n=n, needs=frozenset({"perturb"}))
    policy = PerturbedHistory(a=3.0, sigma=0.5)
    view = policy.view(model, state, np.eye(4)[None], t=3)
    assert_allclose(view.scores(np.zeros((1, 8)))[0], state.theta, rtol=1e-12)
    A = (view.scores(np.eye(8)) - state.theta).T
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
    theta = view.scores(*policy.draw(np.random.default_rng(1), N, arms=3, dim=3))
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
        return view.scores(np.arange(4000)).mean()

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


@every_preset(3)
def test_every_preset_constructs_and_runs(name, preset):
    b = dither.ALGORITHMS[name](dim=3, preset=preset, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = rng.normal(size=(4, 3))
        b.update(X[b.choose(X).arm], rng.random())
    assert name in SPENT or abs(ask(b, X).sum() - 1) < 1e-9


def test_presets_are_what_the_methods_papers_say():
    def build(name, **settings):
        b = dither.ALGORITHMS[name](dim=7, **settings)
        return b.model, b.policy

    assert build("LinFP", preset="paper") == (Ridge(1e-4), FeaturePerturbation(c=1.0))
    assert build("LinFP", preset="own_paper") == (Ridge(7.0), FeaturePerturbation(c="theory"))
    assert build("LinTS", preset="own_paper") == (Ridge(1.0), ThompsonSampling(c="anytime"))
    assert build("LinTS", preset="as_run", sigma=0.5) == (Ridge(0.25e-4), ThompsonSampling(sigma=0.5))
    assert build("LinPHE", preset="paper") == (Ridge(1e-4), PerturbedHistory(a=1.0))
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
    b = dither.ALGORITHMS[name](dim=2, disjoint=3, seed=0, preset="paper")  # no centre, which slots alone have
    for k in range(6):
        b.update([1.0, k], 0.1 * k, arm=k % 3)
    x = np.array([1.0, 0.5])
    p, (found, n) = ask(b, x), shares(b, x)
    assert name in SPENT or oracles.agree(found, p, n=n, se=slack(b, p))
    whole = dither.ALGORITHMS[name](dim=6, seed=0, preset="paper")
    for k in range(6):
        row = np.zeros((3, 2))
        row[k % 3] = [1.0, k]
        whole.update(row.ravel(), 0.1 * k)
    if any(getattr(whole.model, setting, None) is not None for setting in ("constrain", "S")):
        return  # ‖θ‖ <= S for each slot is not ‖θ‖ <= S for all
    if name in NETWORKS or isinstance(b.policy, GeneralFeaturePerturbation):  # which jitters the arm's own slot alone
        assert_allclose(b.mean(x), whole.mean(np.kron(np.eye(3), x)), rtol=1e-5, atol=1e-6)
        return
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
    view = views.Lines(np.array([[0.3, 0.1]]), np.array([[0.2, 1.0]]))
    assert_allclose(
        view.propensities(),
        propensity.envelope(view.m, view.w, law=noise.Gaussian()),
    )


@dataclasses.dataclass(frozen=True)
class Boasting:
    """A policy of one's own whose probabilities are none."""

    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        m = model.mean(state, X)
        return views.Drawn(lambda: m, lambda mask: np.ones(m.shape))


def test_probabilities_of_a_policy_of_ones_own_sum_to_one():
    bandit = dither.Bandit(dither.models.Ridge(), Boasting(), dim=2, seed=0)
    for asked in (bandit.choose, bandit.propensities):
        with pytest.raises(ValueError, match=r"Boasting\S* must sum to 1 .* got a sum of 3: divide by it"):
            asked([[1, 0], [0, 1], [1, 1]])  # seen red: believed

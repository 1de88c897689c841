"""Policies that refit the model to perturbed rewards (LogFPL, LogPHE, EVILL), derived a second time."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

import dither
import glm_oracles
import oracles
from dither.models import GLM
from dither.policies import (
    LossPerturbation,
    PerturbedRewards,
)
from glm_policies import MU, hessian, learnt, minimum, scores


def test_logfpl_refits_rewards_with_noise():
    policy = PerturbedRewards(a=0.7)
    model, state, X, r = learnt(policy, n=12)
    (eta,) = policy.draw(np.random.default_rng(0), 40, arms=3, dim=3)
    drawn = scores(policy, model, state, np.eye(3), eta, t=13)
    for row, theta in zip(eta, drawn, strict=True):
        shift = 0.7 * model.gram_sample(state, row)
        z = np.linalg.lstsq(X.T, shift, rcond=None)[0]  # noise on the rewards that has this sum Σ z x
        own = minimum(X, r + z, lam=0.3, start=theta)
        H = hessian(X, own, 0.3)
        assert math.sqrt((theta - own) @ H @ (theta - own)) <= 2e-3
    # Σ z x ~ N(0, a² Σ xx'): the matrix of the linear map
    B = np.array([0.7 * model.gram_sample(state, e) for e in np.eye(6)])
    assert_allclose(B.T @ B, 0.49 * X.T @ X, rtol=1e-9, atol=1e-9)
    still = scores(policy, model, state, np.eye(3), np.zeros((1, 6)), t=13)[0]
    assert_allclose(still, state.theta, atol=1e-3)
    # seen red: √a for a; the noise with the other sign is the same law


@pytest.mark.parametrize("link", ["probit", "log", "logit"])
def test_refits_on_every_link_are_those_of_an_independent_fit(link):
    policy, rng = PerturbedRewards(a=0.5), np.random.default_rng(3)
    X, model = rng.normal(size=(10, 2)), GLM(link=link, lam=0.3)
    r = (rng.random(10) < 0.5).astype(float)
    _, state, _, _ = learnt(policy, model=model, X=X, r=r)
    (eta,) = policy.draw(rng, 15, arms=2, dim=2)
    for row, theta in zip(eta, scores(policy, model, state, np.eye(2), eta, t=11), strict=True):
        z = np.linalg.lstsq(X.T, 0.5 * model.gram_sample(state, row), rcond=None)[0]
        own = glm_oracles.fit(X, r + z, link=link, lam=0.3)
        assert np.linalg.norm(own.R @ (theta - own.theta).astype(float)) <= 2e-3


ARMS = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.5], [0.3, 0.3, 0.9]])
SHOWN = np.repeat([0, 1, 2], [6, 3, 1])


@pytest.mark.parametrize(("a", "preset"), [(0.5, "default"), (2.0, "default"), (0.5, "as_run"), (2.0, "own_paper")])
def test_logphe_adds_binomial_successes_and_failures(a, preset):
    lam, n = 0.4, 2000
    model, policy = dither.LogPHE.configure(3, preset=preset, a=a, lam=lam, forced=False, jitter=0.0)
    r = np.array([1, 0, 0, 1, 1, 0, 1, 1, 0, 1.0])
    model, state, _, _ = learnt(policy, model=model, X=ARMS[SHOWN], r=r)
    theta = scores(policy, model, state, np.eye(3), *policy.draw(np.random.default_rng(1), n, arms=3, dim=3), t=11)
    count, total = np.bincount(SHOWN), np.bincount(SHOWN, weights=r)
    extra = np.array([math.ceil(a * k) for k in count])
    # The refit's equation, Σ [(n + ⌈an⌉) μ(x'θ) - (Σ r + coins)] x + λθ = 0, solved for the successes of three arms.
    force = np.linalg.solve(ARMS.T, lam * theta.T).T
    coins = (count + extra) * MU(theta @ ARMS.T) + force - total
    assert np.max(np.abs(coins - np.round(coins))) < 0.02
    coins = np.round(coins)
    assert np.all((coins >= 0) & (coins <= extra))
    assert np.all(np.abs(coins.mean(axis=0) - extra / 2) <= 5 * np.sqrt(extra / 4 / n))
    for k in range(3):
        p = stats.binom(extra[k], 0.5).pmf(np.arange(extra[k] + 1))
        found = np.bincount(coins[:, k].astype(int), minlength=extra[k] + 1) / n
        assert oracles.agree(found, p, n=n)
    off = np.corrcoef(coins.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(off) < 5 / math.sqrt(n))
    own = minimum(ARMS, total + coins[0], lam=lam, count=count + extra)
    H = hessian(np.repeat(ARMS, count + extra, axis=0), own, lam)
    assert math.sqrt((theta[0] - own) @ H @ (theta[0] - own)) <= 2e-3
    # seen red: pseudo-trials not counted; one pseudo-trial for each row whatever a


def test_logphe_is_for_rewards_between_zero_and_one():
    with pytest.raises(ValueError, match="rewards must lie in"):
        dither.LogPHE(dim=2, link="log", seed=0)
    b = dither.LogPHE(dim=2, link="probit", seed=0)
    b.update([1.0, 0.5], 0.3)
    assert b.choose(np.eye(2)).arm in (0, 1)


def test_evill_is_rewards_perturbed_by_their_own_deviation():
    policy, lam, gamma = LossPerturbation(gamma=0.8), 0.5, 0.8
    model, state, X, r = learnt(policy, n=12, model=GLM(lam=lam, solver="exact"))
    theta_hat = minimum(X, r, lam=lam)
    root = np.sqrt(MU(X @ theta_hat) * MU(-X @ theta_hat))
    # w = γ(√λ y + Σ √μ' z x): the y and z behind each draw of w, of least length
    spread = np.vstack([math.sqrt(lam) * np.eye(3), root[:, None] * X])
    (eta,) = policy.draw(np.random.default_rng(0), 40, arms=3, dim=3)
    for row, theta in zip(eta, scores(policy, model, state, np.eye(3), eta, t=13), strict=True):
        w = -gamma * model.hessian_sample(state, row)
        yz = np.linalg.lstsq(spread.T, w / gamma, rcond=None)[0]
        own = minimum(X, r - gamma * root * yz[3:], lam=lam, w=gamma * math.sqrt(lam) * yz[:3], start=theta)
        H = hessian(X, own, lam)
        assert math.sqrt((theta - own) @ H @ (theta - own)) <= 2e-3
    A = np.array([model.hessian_sample(state, e) for e in np.eye(3)])
    assert_allclose(A.T @ A, hessian(X, theta_hat, lam), rtol=1e-5, atol=1e-6)
    # To first order it is LogTS: N(θ̂, γ²Ĥ⁻¹).
    small, H = LossPerturbation(gamma=0.01), hessian(X, theta_hat, lam)
    step = scores(small, model, state, np.eye(3), 100 * np.eye(3), t=13) - theta_hat
    half = scores(small, model, state, np.eye(3), -100 * np.eye(3), t=13) - theta_hat
    assert np.linalg.norm((step + half) / 2) < 0.5 * np.linalg.norm(step)
    tiny = scores(small, model, state, np.eye(3), np.eye(3), t=13) - theta_hat
    assert_allclose(tiny.T @ tiny, 1e-4 * np.linalg.inv(H), rtol=0.1, atol=2e-6)
    # seen red: N(0, Ĥ⁻¹) for the shift


@pytest.mark.parametrize("share", [2.0, 0.99, 0.5, 0.1])  # S as a share of the length of the free estimate
def test_a_refit_is_free_of_the_ball_that_its_start_is_held_in(share):
    rng = np.random.default_rng(282)
    scale, lam = np.array([0.004, 0.34, 0.3]), 0.005  # short rows: no logit moves far, and the first factor may serve
    sets = []
    for _ in range(10):
        X = rng.normal(size=(25, 3)) * scale
        sets.append((X, (rng.random(25) < 0.7).astype(float)))
    S = share * np.array([np.linalg.norm(glm_oracles.fit(X, r, lam=lam).theta.astype(float)) for X, r in sets])
    for (X, r), s in zip(sets, S, strict=True):
        model = GLM(lam=lam, solver="exact", constrain=float(s))
        state = model.update_many(model.init(3), X, r)
        assert (float(state.lazy.nu) > 0) == (share < 1)
        shift = rng.normal(size=(4, 3)) * scale
        for b, theta in zip(shift, model.refit(state, shift=shift), strict=True):
            z = np.linalg.lstsq(X.T, b, rcond=None)[0]
            own = glm_oracles.fit(X, r + z, lam=lam)
            assert np.linalg.norm(own.R @ (theta - own.theta).astype(float)) <= 1.001e-3
    # seen red: the factor of H + νI trusted as one of H


@pytest.mark.parametrize("name", ["LogTS", "LogFPL", "LogPHE", "EVILL"])
def test_what_is_drawn_is_what_probabilities_are_of(name):
    b = dither.ALGORITHMS[name](dim=2, lam=1.0, seed=0)
    X = np.random.default_rng(5).normal(size=(12, 2))
    r = np.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1])
    b.update(X, r)
    arms, n = np.array([[1.0, 0.1], [0.2, 0.9], [-0.5, 0.4]]), 4000
    rng = np.random.default_rng(9)  # other draws than the bandit's own
    s = scores(b.policy, b.model, b.state, arms, *b.policy.draw(rng, n, arms=3, dim=2), t=13)
    p, se, _ = b.propensities(arms, draws=2000, detail=True)
    assert oracles.agree(np.bincount(np.argmax(s, axis=1), minlength=3) / n, p, n=n, se=se)
    shares = np.bincount(b.choose(np.broadcast_to(arms, (2000, 3, 2))).arm, minlength=3) / 2000
    assert oracles.agree(shares, p, n=2000, se=se)
    if name == "LogTS":  # two arms: x'θ̃ - y'θ̃ is normal
        fit = glm_oracles.fit(X, r, lam=1.0)
        x = arms[0] - arms[1]
        own = special.ndtr(float(x @ fit.theta) / glm_oracles.widths(fit.R, [x])[0])
        p, se, _ = b.propensities(arms[:2], draws=20_000, detail=True)
        assert abs(p[0] - own) <= 5 * se[0]


@pytest.mark.parametrize("name", ["LogFPL", "LogPHE", "EVILL"])
def test_a_refit_does_not_know_its_neighbours(name):
    rng, b = np.random.default_rng(0), dither.ALGORITHMS[name](dim=4, seed=0)
    b.update(rng.normal(size=(30, 4)), (rng.random(30) < 0.5).astype(float))
    arms = rng.normal(size=(20, 4))
    chance = b.policy.draw(rng, 60, arms=20, dim=4)
    many = scores(b.policy, b.model, b.state, arms, *chance, t=31)
    alone = b.policy.view(b.model, b.state, arms, t=31)
    one = [alone.scores(*(kind[i] for kind in chance)) for i in range(60)]
    assert_allclose(many, one, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["LogFPL", "LogPHE"])
def test_forced_rounds_show_each_arm_once(name):
    b = dither.ALGORITHMS[name](dim=3, preset="as_run", seed=0)
    X = np.random.default_rng(0).normal(size=(5, 3))
    for t in range(3):
        assert [b.choose(X).arm, *b.choose(np.stack([X, X])).arm] == [t] * 3
        b.update(X[t], 1.0)
    assert len({b.choose(X).arm for _ in range(60)}) > 1

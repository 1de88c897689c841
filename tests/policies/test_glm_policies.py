"""Every policy on a generalised linear model, derived a second time: by hand, or by other mathematics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special, stats

import dither
import glm_oracles
import oracles
from dither import envs, noise, theory
from dither.algorithms import Spec
from dither.models import GLM
from dither.policies import (
    GLMUCB,
    OFUGLB,
    UCB,
    FeaturePerturbation,
    LossPerturbation,
    PerturbedRewards,
    PseudoSuccesses,
    RandUCB,
    ThompsonSampling,
)
from glm_policies import MU, hessian, learnt, minimum, scores
from properties import bounded, every

# GLMFP


@pytest.mark.parametrize("law", [noise.Gaussian(), noise.Ball()])
@pytest.mark.parametrize("link", ["logit", "probit", "log"])
@pytest.mark.parametrize("form", ["scalar", "vector"])
def test_glmfp_chooses_with_the_exact_probabilities(law, link, form):
    b = dither.GLMFP(dim=2, link=link, lam=0.7, c=1.3, noise=law, form=form, seed=0, solver="exact")
    X, r = np.array([[1.0, 0.0], [0.3, 1.0], [-0.5, 0.4], [1.0, 0.0]]), np.array([1.0, 0.0, 1.0, 1.0])
    b.update(X, r)
    arms = np.array([[1.0, 0.2], [-0.2, 1.5], [0.1, -2.0], [-0.2, 1.5]])
    fit = glm_oracles.fit(X, r, link=link, lam=0.7)
    m, w = (arms @ fit.theta).astype(float), 1.3 * glm_oracles.widths(fit.R, arms)
    p = oracles.line_mass(m, w, cdf=law.marginal(2).cdf)
    assert_allclose(b.propensities(arms), p, rtol=1e-5, atol=1e-6)
    d = b.choose(np.broadcast_to(arms, (20_000, 4, 2)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / 20_000, p, n=20_000, se=1e-6)
    assert_allclose(d.propensity, p[d.arm], rtol=1e-4)
    # seen red: widths in V; the score μ(m) + z w


def test_glmfp_without_coupling_gives_each_arm_its_own():
    b = dither.GLMFP(dim=2, lam=1.0, c=0.8, coupled=False, seed=0, solver="exact")
    b.update([[1, 0], [1, 1]], [0.5, 0.1])
    X = np.array([[1.0, 0.0], [0.3, 0.8]])
    fit = glm_oracles.fit([[1, 0], [1, 1]], np.array([0.5, 0.1]), lam=1.0)
    m, w = X @ fit.theta.astype(float), 0.8 * glm_oracles.widths(fit.R, X)
    p = special.ndtr((m[0] - m[1]) / math.hypot(*w))
    assert_allclose(b.propensities(X), [p, 1 - p], atol=1e-6)
    d = b.choose(np.broadcast_to(X, (2000, 2, 2)))
    assert oracles.agree(np.bincount(d.arm, minlength=2) / 2000, np.array([p, 1 - p]), n=2000)


@pytest.mark.parametrize("link", ["logit", "log", "probit"])
@pytest.mark.parametrize("S", [1.0, 3.0])
def test_glmfp_has_the_radius_of_the_theorem(link, S):
    policy = FeaturePerturbation(c="theory", S=S, horizon=1000)
    X = np.array([[3.0, 4.0], [0.0, 1.0], [1.0, 0.0], [0.6, 0.8]])
    r = np.array([1.0, 0.0, 1.0, 0.0]) * (4.0 if link == "log" else 1.0)
    model, state, _, _ = learnt(policy, X=X, r=r, model=GLM(link=link, lam=0.5))
    view = policy.view(model, state, np.array([[[1.0, 2.0]]]), t=5)
    c = float(view.lines.w[0, 0] / model.width(state, np.array([[1.0, 2.0]]))[0])
    # ‖x‖ max |μ(η) - r|, by a grid over |η| <= S‖x‖, is at most what L_t has; M_μ by one over |η| <= S.
    mu = {"logit": MU, "probit": special.ndtr, "log": np.exp}[link]
    least = 0.0
    for x, y in zip(X, r, strict=True):
        least += np.linalg.norm(x) * np.max(np.abs(mu(np.linspace(-1, 1, 2001) * S * np.linalg.norm(x)) - y))
    M = {"logit": 1.0, "log": 1.0, "probit": S}[link]

    def beta(L):
        log = math.log(1 / (1e-3 / 4000)) + 2 * math.log(2 * math.e * S * L / 2)
        return math.sqrt(4 * S**2 * 0.5 + 2 * (1 + S * M) * log)

    steep = float(model.lipschitz(state, S))
    assert steep >= least * (1 - 1e-9)
    if link != "log":
        assert_allclose(steep, np.sum(np.linalg.norm(X, axis=1)))  # rewards and means are in [0, 1]
    assert_allclose(c, beta(steep), rtol=1e-9)
    assert_allclose(c, theory.beta(5, d=2, lam=0.5, S=S, M=M, L=steep, delta=1e-3 / 4000), rtol=1e-9)
    # seen red: δ/T for δ/(4T); M = 1 for all links


# UCB-GLM, GLM-UCB, RandUCBLog: widths in V, not in Ĥ


def gram_widths(X, at, lam):
    V = lam * np.eye(X.shape[1]) + sum(np.outer(x, x) for x in X)
    return np.array([math.sqrt(a @ np.linalg.solve(V, a)) for a in at])


def test_ucb_glm_has_the_known_radius():
    _, policy = dither.UCBGLM.configure(10, horizon=10_000)
    model, state, X, _ = learnt(policy, d=10, model=GLM(lam=0.3, solver="exact"))
    at = np.random.default_rng(1).normal(size=(4, 10))
    bonus = scores(policy, model, state, at, t=3)[0] - model.mean(state, at)
    assert_allclose(bonus, 13.7430 * gram_widths(X, at, 0.3), rtol=4e-6)
    by_hand = (0.5 / 0.25) * math.sqrt(5 * math.log(1 + 20_000 / 10) + math.log(10_000))
    assert_allclose(bonus, by_hand * gram_widths(X, at, 0.3), rtol=1e-9)
    _, policy = dither.UCBGLM.configure(10, horizon=10_000, preset="own_paper", S=4.0)
    assert_allclose(policy.kappa, 0.01766, atol=5e-6)  # the least slope for |η| <= 4
    assert policy.radius == "ucb-glm"
    # seen red: widths in Ĥ


def test_glm_ucb_adds_its_bonus_outside_the_link():
    _, policy = dither.GLMUCB.configure(10, horizon=10_000)
    model, state, X, _ = learnt(policy, d=10, model=GLM(lam=0.3, solver="exact"))
    at = np.random.default_rng(1).normal(size=(4, 10))
    theta = minimum(X, learnt(policy, d=10)[3], lam=0.3)
    bonus = scores(policy, model, state, at, t=3)[0] - MU(at @ theta)
    rho = bonus / gram_widths(X, at, 0.3)
    assert_allclose(rho, 286.4, atol=0.05)
    kappa = math.sqrt(3 + 2 * math.log(3))
    by_hand = 2 * 0.25 * kappa / 0.25 * math.sqrt(2 * 10 * math.log(1e4) * math.log(2 * 10 * 1e4 / 1e-4))
    assert_allclose(rho, by_hand, rtol=1e-8)
    _, own = dither.GLMUCB.configure(10, horizon=10_000, preset="own_paper")
    assert_allclose(own.c_mu, MU(1.0) * MU(-1.0))
    assert_allclose(scores(GLMUCB(rho=0.0), model, state, at, t=3)[0], MU(at @ theta), rtol=1e-7)
    # seen red: log(2d/δ) for log(2dT/δ); the bonus inside the link


def test_randucblog_multiplies_the_bonus_of_ucb_glm():
    _, policy = dither.RandUCBLog.configure(10, horizon=10_000)
    _, optimist = dither.UCBGLM.configure(10, horizon=10_000)
    model, state, X, _ = learnt(policy, d=10)
    at = np.random.default_rng(1).normal(size=(4, 10))
    a = np.arange(20) / 19
    s = policy.view(model, state, np.broadcast_to(at, (20, 4, 10)), t=3).scores(a)
    assert_allclose(s, model.mean(state, at) + np.outer(a, 13.7430 * gram_widths(X, at, 0.3)), atol=2e-4)
    assert_allclose(s[-1], scores(optimist, model, state, at, t=3)[0], rtol=1e-12)
    (drawn,) = policy.draw(np.random.default_rng(0), 50_000, arms=4, dim=10)
    assert set(np.round(19 * drawn, 9)) <= set(range(20))
    for value, p in ((0.0, 0.287636), (1 / 19, 0.263236)):
        assert abs(np.mean(np.isclose(drawn, value)) - p) < 5 * math.sqrt(p * (1 - p) / 50_000)
    # Its probabilities: the winner at each of the points, weighed.
    q = stats.norm.pdf(a / 0.125)
    q = np.r_[q[:-1] / 0.125, 1e-6]
    p = np.bincount(np.argmax(s, axis=1), weights=q / q.sum(), minlength=4)
    assert_allclose(policy.view(model, state, at[None], t=3).propensities()[0], p, rtol=1e-9, atol=1e-15)
    # seen red: a new `a` for each arm


# OFUGLB-e


def test_ofuglb_e_has_the_known_radius():
    delta, S, d, t = 1e-4, 5.0, 10, 101  # 100 observations
    W2 = math.log(1 / delta) + d * math.log(2 * math.e * S * (1 + S / 2) * (t - 1) / d)
    assert_allclose(W2, 77.790, atol=5e-4)
    assert_allclose(math.sqrt(2 * (1 + S) * (1 + W2)), 30.749, atol=5e-4)
    _, policy = dither.OFUGLBe.configure(10, S=5.0, horizon=10_000)
    model, state, X, _ = learnt(policy, d=10, n=30, model=dither.OFUGLBe.configure(10, S=5.0, solver="exact")[0])
    at = np.random.default_rng(1).normal(size=(4, 10))
    bonus = scores(policy, model, state, at, t=t)[0] - model.mean(state, at)
    theta = np.asarray(state.theta)
    H = hessian(X, theta, 1 / (8 * 25 * 6))
    width = np.sqrt(np.vecdot(at, np.linalg.solve(H, at.T).T))
    assert_allclose(bonus / width, 30.749, atol=1e-3)
    assert_allclose(bonus / width, math.sqrt(12 * (1 + W2)), rtol=1e-5)
    # seen red: (1 + S/2) t for L_t


@pytest.mark.parametrize(("name", "S"), [("OFUGLB", 0.5), ("OFUGLB-e", 0.5), ("OFUGLB", 2.0), ("OFUGLB-e", 30.0)])
def test_ofuglb_estimates_over_the_ball(name, S):
    model, policy = dither.ALGORITHMS[name].configure(3, S=S)
    _, state, X, r = learnt(policy, model=model, n=60)
    free = minimum(X, r, lam=1e-6)
    assert np.linalg.norm(state.theta) <= S * (1 + 1e-9)
    if np.linalg.norm(free) <= S:
        assert_allclose(state.theta, free, atol=1e-6)
    else:  # at the boundary the slope of the loss points outwards along θ
        slope = (MU(X @ state.theta) - r) @ X
        assert_allclose(np.linalg.norm(state.theta), S, rtol=1e-6)
        assert_allclose(-slope / np.linalg.norm(slope), state.theta / S, atol=1e-5)
        found = optimize.minimize(
            lambda v: np.logaddexp(0, X @ v).sum() - r @ (X @ v),
            np.zeros(3),
            constraints={"type": "ineq", "fun": lambda v: S**2 - v @ v},
            tol=1e-12,
        )
        assert_allclose(state.theta, found.x, atol=1e-4)
    assert (model.ridge, policy.S) == (1e-6, S)
    # seen red: constrain left out


# OFUGLB against a search of the ball


def ball(S, n=601):
    """Points of the disk of radius S on a grid of that many radii and angles, (n², 2)."""
    radius, angle = np.linspace(0, S, n), np.linspace(0, 2 * np.pi, n, endpoint=False)
    return (radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(6))
def test_ofuglb_is_the_best_parameter_of_its_confidence_set(seed):
    rng = np.random.default_rng(seed)
    S, n, horizon = [1.0, 2.0, 4.0][seed % 3], [3, 15, 80][seed // 2], 200
    model, policy = dither.OFUGLB.configure(2, S=S, horizon=horizon)
    X = rng.normal(size=(n, 2)) * [1.0, 0.6]
    r = (rng.random(n) < MU(X @ [1.0, -0.5])).astype(float)
    _, state, _, _ = learnt(policy, model=model, X=X, r=r)
    at = np.vstack([rng.normal(size=(5, 2)), [0.0, 0.0]])
    s = scores(policy, model, state, at, t=n + 1)[0]
    # L(θ) <= min L + log(1/δ) + d log max(e, 2eS L_t/d) on a grid of the ball; L by its definition
    level = math.log(horizon) + 2 * math.log(max(math.e, 2 * math.e * S * (1 + S / 2) * n / 2))
    grid = ball(S)
    loss = np.zeros(len(grid))
    for x, y in zip(X, r, strict=True):
        loss += np.logaddexp(0, grid @ x) - y * (grid @ x)
    inside = grid[loss <= loss.min() + level]
    best = np.max(inside @ at.T, axis=0)
    step = S * np.linalg.norm(at, axis=1) * 2 * np.pi / 600
    assert np.all(s >= best - 1e-3)
    assert np.all(s <= best + 2 * step + 1e-3)
    assert_allclose(s[-1], 0.0, atol=1e-9)  # whatever the parameter
    # seen red: level W for W²; S² for S in the constraint


def test_ofuglb_lies_within_its_relaxation():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, S = rng.normal(size=(40, 3)), 2.0
        r = (rng.random(40) < MU(X @ [1.0, -1.0, 0.5])).astype(float)
        at, found = rng.normal(size=(6, 3)), {}
        for name in ("OFUGLB", "OFUGLB-e"):
            model, policy = dither.ALGORITHMS[name].configure(3, S=S, horizon=500)
            _, state, _, _ = learnt(policy, model=model, X=X, r=r)
            found[name] = scores(policy, model, state, at, t=41)[0]
            assert np.all(found[name] >= at @ state.theta - 1e-9)
        assert np.all(found["OFUGLB"] <= found["OFUGLB-e"])
        assert np.all(found["OFUGLB"] <= S * np.linalg.norm(at, axis=1) + 1e-6)


def test_ofuglb_first_shows_the_longest_arm():
    b = dither.OFUGLB(dim=2, seed=0)
    X = np.array([[1.0, 0.0], [0.0, -3.0], [2.0, 2.0]])
    assert b.choose(X).arm == 1
    assert_array_equal(b.propensities(X), [0.0, 1.0, 0.0])


# LogTS


def test_logts_draws_from_laplaces_approximation():
    policy = ThompsonSampling(c=0.8)
    model, state, X, r = learnt(policy)
    theta = minimum(X, r, lam=0.3)
    cov = 0.64 * np.linalg.inv(hessian(X, theta, 0.3))
    n = 20_000
    eta = policy.draw(np.random.default_rng(0), n, arms=3, dim=3)
    drawn = scores(policy, model, state, np.eye(3), *eta, t=21)
    assert np.all(np.abs(drawn.mean(axis=0) - theta) <= 5 * np.sqrt(np.diag(cov) / n) + 1e-6)
    se = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)
    assert np.all(np.abs(np.cov(drawn.T) - cov) <= 5 * se)
    A = scores(policy, model, state, np.eye(3), np.eye(3), t=21) - state.theta
    assert_allclose(A.T @ A, cov, rtol=1e-5, atol=1e-7)
    assert dither.LogTS.configure(3)[1] == ThompsonSampling(c=1.0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: PerturbedRewards(a=0.0),
        lambda: PerturbedRewards(forced="yes"),
        lambda: PseudoSuccesses(a=-1.0),
        lambda: PseudoSuccesses(jitter=2.0),
        lambda: LossPerturbation(gamma=0.0),
        lambda: OFUGLB(S=0.0),
        lambda: OFUGLB(horizon=0),
        lambda: UCB(kappa=0.0),
        lambda: RandUCB(kappa=-1.0),
        lambda: GLMUCB(rho=-1.0),
        lambda: GLMUCB(c_mu=0.0),
        lambda: GLMUCB(horizon=1.5),
        lambda: dither.OFUGLBe(dim=3, S=0.0),
        lambda: dither.OFUGLB(dim=3, S=-1.0),
    ],
)
def test_settings_that_make_no_sense_are_refused(build):
    with pytest.raises(ValueError, match="must"):
        build()


# The table


def test_presets_are_what_the_methods_papers_say():
    def build(name, **settings):
        return dither.ALGORITHMS[name].configure(7, **settings)

    assert build("GLMFP") == (GLM(lam="auto"), FeaturePerturbation(c=1.0))
    assert build("GLMFP", preset="paper") == (GLM(), FeaturePerturbation(c=1.0))
    assert GLM() == GLM(link="logit", lam=1e-4, min_derivative=0.0, constrain=None, ridge=None)
    assert build("GLMFP", preset="own_paper") == (GLM(lam=7.0), FeaturePerturbation(c="theory"))
    assert build("GLMFP", link="probit", min_derivative=0.25)[0] == GLM("probit", "auto", min_derivative=0.25)
    for preset in dither.algorithms.PRESETS:
        of_preset = GLM(lam="auto") if preset == "default" else GLM()
        assert build("LogTS", preset=preset) == (of_preset, ThompsonSampling(c=1.0))
        assert build("EVILL", preset=preset) == (GLM(lam=1.0), LossPerturbation(gamma=1.0))
        assert build("OFUGLB", preset=preset, S=3.0) == (GLM(constrain=3.0, ridge=1e-6), OFUGLB(S=3.0))
        relaxed = GLM(constrain=3.0, ridge=1e-6, lam=1 / (8 * 9 * 4)), UCB(radius="ofuglb", S=3.0)
        assert build("OFUGLB-e", preset=preset, S=3.0) == relaxed
    assert build("LogFPL") == (GLM(), PerturbedRewards(a=0.5, forced=False))
    assert build("LogFPL", preset="as_run") == (GLM(), PerturbedRewards(a=1.0, forced=True))
    alike = GLM(solver="counts")  # ⌈a n⌉ is of the n times that an x was seen
    assert build("LogPHE") == (alike, PseudoSuccesses(a=0.5, forced=False, jitter=0.0))
    assert build("LogPHE", preset="as_run") == (alike, PseudoSuccesses(a=0.5, forced=True, jitter=1e-6))
    assert build("LogPHE", preset="own_paper")[1] == PseudoSuccesses(a=2.0)
    for preset in ("default", "as_run"):
        of = dict(radius="ucb-glm", sigma=0.5, kappa=0.25, gram=True)
        assert build("UCB-GLM", preset=preset) == (GLM(), UCB(**of))
        assert build("RandUCBLog", preset=preset) == (GLM(), RandUCB(**of, law=noise.half_gaussian()))
        assert build("GLM-UCB", preset=preset) == (GLM(), GLMUCB(k_mu=0.25, c_mu=0.25, R=1.0))
    least = math.exp(-2) / (1 + math.exp(-2)) ** 2  # μ' at 2
    assert_allclose(build("RandUCBLog", preset="own_paper", S=2.0)[1].kappa, least)
    assert build("EVILL", lam=0.2)[0] == GLM(lam=0.2)  # what is passed wins
    assert build("LogEpsGreedy", preset="own_paper")[1].decay == "text"


def test_facts_that_are_told():
    env = envs.Logistic(dim=4, arms=3, norm=4.0)
    facts = {"horizon": 500, "S": 4.0, "sigma": 1.0}
    told = {name: Spec.parse(name).told(facts) for name in dither.ALGORITHMS if bounded(name)}
    for name in ("OFUGLB", "OFUGLB-e", "GLOC", "Logistic-UCB-2"):
        assert told[name] == {"horizon": 500, "S": 5.0}
    for name in ("GLMFP", "LogEpsGreedy", "RandUCBLog", "UCB-GLM", "GLM-UCB"):
        assert told[name] == {"horizon": 500}
    for name in ("LogGreedy", "LogTS", "LogFPL", "LogPHE", "EVILL"):
        assert told[name] == {}
    from dither.simulation.simulate import configured

    model, policy = configured(Spec.parse("OFUGLB"), env, rounds=500)
    assert (model.constrain, policy.S, policy.horizon) == (5.0, 5.0, 500)
    model, policy = configured(Spec.parse("OFUGLB-e"), env, rounds=500)
    assert (model.constrain, policy.S, policy.horizon) == (5.0, 5.0, 500)
    assert Fraction(model.lam).limit_denominator(10_000) == Fraction(1, 8 * 25 * 6)
    model, policy = configured(Spec.parse("OFUGLB-e:S=2.0,horizon=9"), env, rounds=500)  # what is set is not told
    assert (model.constrain, policy.S, policy.horizon) == (2.0, 2.0, 9)
    # seen red: S for S + 1


@every(names=[name for name in dither.ALGORITHMS if bounded(name)])
def test_the_table_says_where_each_comes_from(name):
    algorithm = dither.ALGORITHMS[name]
    assert algorithm.source
    assert algorithm.perturbs
    assert set(algorithm.needs) == set(algorithm.configure(2)[1].needs)
    with pytest.raises(ValueError, match="linear"):
        algorithm(dim=2, diagonal=True)
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        algorithm(dim=2, seed=0).update([1.0, 0.0], 1.5)

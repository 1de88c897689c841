"""GLOC and its online learner, derived a second time: slowly, by general optimisers, by hand, and by counting."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special

import dither
from dither import links, theory
from dither.models import OnlineNewton
from dither.models.online_newton import projected

SLOPES = {
    "logit": lambda v: special.expit(v) * special.expit(-v),
    "probit": lambda v: np.exp(-v * v / 2) / math.tau**0.5,
}


def learnt(model, X, r, *, batch=()):
    state = model.init(X.shape[-1], batch=batch)
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, y)
    return state


def slowly(X, r, *, link, lam, S):
    """θ̄, V̄, the learner's last θ, z and B, all from their definitions; the projections by SLSQP."""
    d, kappa = X.shape[1], float(np.min(SLOPES[link](np.linspace(-S, S, 100_001))))
    theta, A, z, B = np.zeros(d), lam * np.eye(d), [], 2 * kappa * S**2 * lam
    for x, y in zip(X, r, strict=True):
        z.append(x @ theta)
        A = A + np.outer(x, x)
        slope = links.find(link).mu(np.float64(z[-1])) - y
        B += slope**2 * (x @ np.linalg.solve(A, x)) / (2 * kappa)
        theta = nearest(theta - slope / kappa * np.linalg.solve(A, x), A, S)
    z = np.array(z)
    return np.linalg.solve(A, X.T @ z), A, theta, z, B


def nearest(theta, A, S):
    """argmin over ‖v‖ <= S of (v - θ)'A(v - θ), by a general optimiser."""
    if np.linalg.norm(theta) <= S:
        return theta
    found = optimize.minimize(
        lambda v: (v - theta) @ A @ (v - theta) / np.trace(A),
        theta * S / np.linalg.norm(theta),
        jac=lambda v: 2 * A @ (v - theta) / np.trace(A),
        constraints={"type": "ineq", "fun": lambda v: S**2 - v @ v, "jac": lambda v: -2 * v},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return found.x


def unit(rng, *shape):
    X = rng.normal(size=shape)
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize(("d", "S", "lam"), [(1, 1.0, 1.0), (3, 0.5, 0.2), (4, 2.0, 3.0)])
def test_the_model_is_its_definition(link, d, S, lam):
    rng = np.random.default_rng(d)
    X = unit(rng, 40, d)
    r = (rng.random(40) < special.expit(2 * X[:, 0])).astype(float)
    model = OnlineNewton(link=link, lam=lam, S=S)
    state = learnt(model, X, r)
    theta, A, last, z, B = slowly(X, r, link=link, lam=lam, S=S)
    assert_allclose(state.learner, last, atol=2e-6)
    assert_allclose(state.theta, theta, atol=2e-6)
    at = rng.normal(size=(5, d))
    assert_allclose(model.width(state, at), np.sqrt(np.vecdot(at, np.linalg.solve(A, at.T).T)), rtol=1e-10)
    assert_allclose(model.mean(state, at), at @ theta, atol=1e-5)
    assert_allclose(model.predict(state, at), links.find(link).mu(at @ theta), atol=1e-5)
    # ‖z‖² - θ̄'X'z, and the radius by the formula of the theorem
    misfit, delta = z @ z - theta @ X.T @ z, 0.01
    kappa = model.slope
    assert_allclose(state.misfit, misfit, rtol=1e-5, atol=1e-6)
    inside = 2 / delta * math.sqrt(1 + 2 * B / kappa + 4 * 0.5**4 / (kappa**4 * delta**2))
    alpha = 1 + 4 * B / kappa + 8 * 0.5**2 / kappa**2 * math.log(inside)
    assert_allclose(model.radius(state, delta=delta), [math.sqrt(lam * S**2 + alpha - misfit)], rtol=1e-6)
    # seen red: V̄ without the present x in the step, in B; θ_{s+1} in z_s; +misfit; no projection


@pytest.mark.parametrize("d", [1, 2, 6])
def test_the_projection_is_the_nearest_point_of_the_ball(d):
    rng = np.random.default_rng(d)
    for _ in range(20):
        A = (G := rng.normal(size=(d, d)) * 10 ** rng.uniform(-2, 2, d)) @ G.T + 0.01 * np.eye(d)
        theta, S = rng.normal(size=d) * 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-1, 1)
        F = np.linalg.inv(np.linalg.cholesky(A)).T  # FF' = A⁻¹
        v = projected(theta, F, S=S)
        if np.linalg.norm(theta) <= S:
            assert_array_equal(v, theta)
            continue
        # on the sphere, and the slope of the distance points inwards along v: A(θ - v) = νv with ν >= 0
        assert_allclose(np.linalg.norm(v), S, rtol=1e-9)
        pull = A @ (theta - v)
        nu = pull @ v / S**2
        assert nu >= 0
        assert_allclose(pull, nu * v, atol=1e-7 * np.linalg.norm(pull))
        away = (v - theta) @ A @ (v - theta)
        for other in S * unit(rng, 200, d):
            assert (other - theta) @ A @ (other - theta) >= away * (1 - 1e-9)
    many = np.stack([theta, 0 * theta, 50 * theta + S])  # each as alone
    assert_array_equal(projected(many, np.stack([F] * 3), S=S)[1], 0 * theta)
    assert_allclose(projected(many, np.stack([F] * 3), S=S)[2], projected(many[2], F, S=S), rtol=1e-12)
    # seen red: θ S/‖θ‖, the nearest point in the norm of I


def short(D, B, kappa, R, delta):
    """By how much D <= 2B/κ + (2R/κ) √(2(1 + D) log(√(1 + D)/δ)) holds."""
    return 2 * B / kappa + 2 * R / kappa * math.sqrt(2 * (1 + D) * math.log(math.sqrt(1 + D) / delta)) - D


def test_the_radius_solves_the_inequality_of_its_proof():
    rng = np.random.default_rng(0)
    for _ in range(200):
        B, kappa, R, delta = 10 ** rng.uniform([-2, -2, -1, -6], [3, 0, 0.5, -1])
        largest = optimize.brentq(short, 0, 1e15, args=(B, kappa, R, delta))
        alpha = theory.gloc_alpha(B, kappa=kappa, R=R, delta=delta)
        assert largest <= alpha <= 12 * largest + 12
    # seen red: 2B/κ for 4B/κ; 4R²/κ² for 8R²/κ²


def play(rng, *, runs, rounds, d, K, S, horizon):
    """GLOC on logistic bandits in lockstep; -> what it knows in each round, θ*, and what D was."""
    model, policy = dither.GLOC.configure(d, S=S, horizon=horizon)
    truth = S * unit(rng, runs, d)
    state, D = model.init(d, batch=(runs,)), np.zeros(runs)
    for t in range(1, rounds + 1):
        yield model, state, truth, D
        X = unit(rng, runs, K, d)
        arm = np.argmax(policy.view(model, state, X, t=t).scores(), axis=1)
        x = X[np.arange(runs), arm]
        r = (rng.random(runs) < special.expit(np.vecdot(x, truth))).astype(float)
        D = D + np.vecdot(x, truth - state.learner) ** 2
        state = model.update(state, x, r)
    yield model, state, truth, D


@pytest.mark.parametrize(("d", "S", "delta"), [(2, 1.0, 0.2), (5, 2.0, 0.2)])
def test_the_confidence_set_covers_in_all_rounds_at_once(d, S, delta):
    runs, inside, regret, held = 500, True, True, True
    for model, state, truth, D in play(
        np.random.default_rng(d), runs=runs, rounds=150, d=d, K=5, S=S, horizon=round(1 / delta)
    ):
        off = truth - state.theta
        V = np.linalg.inv(state.ridge.F @ state.ridge.F.mT)
        away = np.sqrt(np.einsum("ri,rij,rj->r", off, V, off))
        inside = inside & (away <= model.radius(state, delta=delta)[:, 0])
        B = 2 * model.slope * S**2 * model.lam + state.paid
        held = held & (theory.gloc_alpha(B, kappa=model.slope, delta=delta) >= D)
        regret = regret & (np.linalg.norm(state.learner, axis=1) <= S * (1 + 1e-9))
    error = 5 * math.sqrt(delta * (1 - delta) / runs)
    assert np.mean(inside) >= 1 - delta - error
    assert np.mean(held) >= 1 - delta - error
    assert regret.all()
    # The identity behind the set: D + λ‖θ*‖² = ‖θ* - θ̄‖²_{V̄} + misfit
    assert_allclose(D + model.lam * S**2, away**2 + state.misfit, rtol=1e-8)
    # seen red: √β a twentieth of itself; misfit of the last round


def test_the_learner_has_no_more_regret_than_its_bound():
    rng, d, S, n = np.random.default_rng(3), 3, 2.0, 300
    model = OnlineNewton(S=S, lam=0.5)
    for flip in (0.0, 0.5, 1.0):  # the bound holds for any rewards, right or wrong
        X = unit(rng, n, d)
        r = (rng.random(n) < special.expit(S * X[:, 0])).astype(float)
        r = np.where(rng.random(n) < flip, 1 - r, r)
        state, loss = model.init(d), 0.0
        for x, y in zip(X, r, strict=True):
            z = x @ state.learner
            loss += np.logaddexp(0, z) - y * z
            state = model.update(state, x, y)
        best = optimize.minimize(
            lambda v, X=X, r=r: np.logaddexp(0, X @ v).sum() - r @ (X @ v),
            np.zeros(d),
            constraints={"type": "ineq", "fun": lambda v: S**2 - v @ v},
        )
        assert loss - best.fun <= 2 * model.slope * S**2 * model.lam + state.paid
    # seen red: B without its first term and λ = 50


def test_the_policy_adds_the_radius_times_the_width():
    rng = np.random.default_rng(0)
    model, policy = dither.GLOC.configure(3, S=1.5, horizon=100, lam=0.3)
    assert (model, policy) == (OnlineNewton(S=1.5, lam=0.3), dither.policies.GLOC(horizon=100))
    X, r = unit(rng, 20, 3), rng.random(20)
    state, at = learnt(model, X, r), unit(rng, 6, 3)
    s = policy.view(model, state, at, t=21).scores()
    assert_allclose(s, at @ state.theta + model.radius(state, delta=0.01) * model.width(state, at), rtol=1e-12)
    # Slots: each has a set of its own at level 1 - δ/K, so that all hold at once
    slots = dither.GLOC(dim=3, S=1.5, horizon=100, lam=0.3, disjoint=2, seed=0)
    for x, y in zip(X, r, strict=True):
        slots.update(x, y, arm=1)
    view = policy.view(slots.model, slots.state, at[0], t=21)
    wide = model.radius(state, delta=0.005)[0]
    assert_allclose(view.scores()[1], at[0] @ state.theta + wide * model.width(state, at[:1])[0], rtol=1e-12)
    # seen red: δ for δ/K


def test_memory_is_constant_and_a_weight_is_one_of_the_loss():
    model, rng = OnlineNewton(), np.random.default_rng(0)
    state = learnt(model, unit(rng, 300, 3), rng.random(300))
    assert sum(A.nbytes for A in dither.base.trees.leaves(state, "s").values()) == sum(
        A.nbytes for A in dither.base.trees.leaves(model.init(3), "s").values()
    )
    x, one = unit(rng, 3), np.float64(1.0)
    twice = model.update(state, x, one, weight=np.float64(2.0))
    V = np.linalg.inv(state.ridge.F @ state.ridge.F.T) + 2 * np.outer(x, x)
    z = x @ state.learner
    step = 2 * (special.expit(z) - 1) / model.slope * np.linalg.solve(V, x)
    assert_allclose(twice.learner, nearest(state.learner - step, V, 1.0), atol=1e-6)
    assert_allclose(twice.ridge.F @ twice.ridge.F.T, np.linalg.inv(V), rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"S": 0.0}, "S must be"),
        ({"S": 1000.0}, "kappa, for link='logit' and S=1000, must"),
        ({"kappa": 0.0}, "kappa must"),
        ({"R": -1.0}, "R must"),
        ({"lam": 0.0}, "lam must"),
        ({"link": "logti"}, "did you mean 'logit'"),
        ({"horizon": 0}, "horizon must"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises((ValueError, LookupError), match=says):
        dither.GLOC(dim=2, **settings)

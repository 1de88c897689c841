"""General FP: closed forms in linear models, the law of the jitter as a function sees it, calls, settings."""

import math

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import dither
import lockstep
from dither.models import GLM, Diagonal, Disjoint, Network, Ridge
from dither.models import model as contract
from dither.noise import Ball, Gaussian
from dither.policies import GeneralFeaturePerturbation as General

SKEW = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.4]])


def learnt(model=None, *, n=25, d=3, seed=0, **settings):
    """FP on a linear model (or another) that knows something."""
    b = dither.FP(model, dim=d, seed=seed, **settings)
    g = np.random.default_rng(1)
    X = g.normal(size=(n, d))
    b.update(
        X, X @ np.arange(1, d + 1) + g.normal(size=n), **({} if b.slots is None else {"arm": np.arange(n) % b.slots})
    )
    return b


def jitter(n=4000, K=2, d=3, *, disjoint=None, x=None, **settings):
    """What a function sees of n requests, less the arms themselves: (n, K, D)."""
    seen = []

    def f(X):
        seen.append(X)
        return X[:, 0]

    b = dither.FP(f, dim=d, seed=0, disjoint=disjoint, **settings)
    b.update(np.zeros((3, d)), np.zeros(3), **({} if disjoint is None else {"arm": [0, 0, 0]}))  # t = 4
    x = np.zeros(d) if x is None else x
    X = x if disjoint else np.broadcast_to(x, (K, d))
    b.choose(np.broadcast_to(X, (n, *X.shape)))
    K = disjoint or K
    return seen[-1].reshape(n, K, -1) - (np.kron(np.eye(K), x) if disjoint else x)


def covariance_is(Z, Sigma):
    """Whether rows Z (n, d) have mean 0 and that covariance: five standard errors of products of normals."""
    n, sd = len(Z), np.sqrt(np.diag(Sigma))
    products = Z[:, :, None] * Z[:, None, :]
    error = np.sqrt(np.outer(sd, sd) ** 2 + Sigma**2)
    assert np.all(np.abs(Z.mean(axis=0)) <= 5 * sd / math.sqrt(n))
    assert np.all(np.abs(products.mean(axis=0) - Sigma) <= 5 * error / math.sqrt(n))


# Linear models, where the probabilities are known


@pytest.mark.parametrize(
    ("settings", "Sigma"),
    [
        ({}, lambda t: np.eye(3) / t),
        ({"c": 3.0}, lambda t: 9 * np.eye(3) / t),
        ({"Sigma": "constant", "c": 0.3}, lambda t: 0.09 * np.eye(3)),
        ({"Sigma": 0.2}, lambda t: 0.2 * np.eye(3)),
        ({"Sigma": 0.2, "c": 2.0}, lambda t: 0.8 * np.eye(3)),
        ({"Sigma": lambda t: 1 / math.sqrt(t)}, lambda t: np.eye(3) / math.sqrt(t)),
        ({"Sigma": lambda t: [0.5, 0.0, 2 / t]}, lambda t: np.diag([0.5, 0.0, 2 / t])),
        ({"Sigma": lambda t: SKEW / t, "c": 0.5}, lambda t: SKEW / (4 * t)),
        ({"Sigma": 1.0, "mask": (True, False, True)}, lambda t: np.diag([1.0, 0.0, 1.0])),
        ({"Sigma": lambda t: SKEW, "mask": [0, 1, 1]}, lambda t: SKEW * np.outer([0, 1, 1], [0, 1, 1])),
    ],
)
def test_two_arms_of_a_linear_model_have_a_closed_form(settings, Sigma):
    b = learnt(lam=0.5) if not settings else learnt(lam=0.5, **settings)
    X = np.array([[0.65, 0.7, -0.2], [0.3, 0.5, -0.2]])
    S = Sigma(26)
    p = stats.norm.cdf((X[0] - X[1]) @ b.theta / math.sqrt(2 * b.theta @ S @ b.theta))
    found, se, kind = b.propensities(X, detail=True)
    assert kind == "monte_carlo"
    assert 0.01 < p < 0.99
    assert np.all(np.abs(found - [p, 1 - p]) <= 5 * math.sqrt(p * (1 - p) / 10_000))
    share = np.mean(b.choose(np.broadcast_to(X, (10_000, 2, 3))).arm == 0)
    assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / 10_000)
    assert_allclose(se, math.sqrt(p * (1 - p) / 10_000), rtol=0.2)
    # seen red: t one less; c with a variance of one's own left out; the mask before the matrix


def test_coupled_isotropic_jitter_of_a_linear_model_is_greedy():
    b = learnt(coupled=True, Sigma="constant", c=5.0)
    X = np.random.default_rng(2).normal(size=(6, 3))
    p = b.propensities(X)
    assert_array_equal(p, np.eye(6)[np.argmax(X @ b.theta)])
    assert np.all(b.choose(np.broadcast_to(X, (500, 6, 3))).arm == np.argmax(X @ b.theta))
    assert np.count_nonzero(learnt(Sigma="constant", c=5.0).propensities(X)) > 1
    own = learnt(LinearRegression(), coupled=True, refit=1, first=25)
    assert np.max(own.propensities(X)) == 1
    # seen red: coupled left out of `draw`


@pytest.mark.parametrize("model", [GLM(lam=1.0), Diagonal(0.5), Disjoint(Ridge(0.5), 3), Disjoint(GLM(lam=1.0), 3)])
def test_other_linear_models_have_it_too(model):
    slots = getattr(model, "slots", None)
    b = dither.FP(model, dim=3, seed=0, Sigma=0.3)
    g = np.random.default_rng(4)
    X, r = g.normal(size=(30, 3)), g.integers(2, size=30)
    b.update(X, r.astype(float), **({"arm": np.arange(30) % 3} if slots else {}))
    at = X[0] if slots else X[:2]
    mask = [True, False, True] if slots else None
    theta = b.theta[[0, 2]] if slots else np.stack([b.theta] * 2)
    m = theta @ at if slots else at @ b.theta
    p = stats.norm.cdf((m[0] - m[1]) / math.sqrt(0.3 * np.sum(theta**2)))
    found = b.propensities(at, mask=mask)
    assert abs(found[0] - p) <= 5 * math.sqrt(p * (1 - p) / 10_000)
    assert found[[0, -1]].sum() == pytest.approx(1)
    # seen red: mean_at of slots with one θ̂ for all


def test_frequencies_are_propensities_for_a_forest_and_the_floor_is_kept():
    b = learnt(RandomForestRegressor(4, random_state=0), Sigma=0.3, floor=0.2, refit=25, first=25)
    X = np.random.default_rng(3).normal(size=(4, 3))
    p, se, _ = b.propensities(X, detail=True)
    f = np.bincount(b.choose(np.broadcast_to(X, (10_000, 4, 3))).arm, minlength=4) / 10_000
    assert np.all(np.abs(f - p) <= 5 * np.hypot(se, np.sqrt(p * (1 - p) / 10_000)))
    assert p.min() >= 0.05
    masked = b.propensities(X, mask=[True, True, False, True])
    assert masked[2] == 0
    assert masked.sum() == pytest.approx(1)


def test_a_network_is_jittered_in_its_hidden_width_as_in_its_features():
    b = learnt(Network(hidden=8), Sigma=0.5, n=60)
    X = np.random.default_rng(0).normal(size=(3, 3))
    p = b.propensities(X)
    f = np.bincount(b.choose(np.broadcast_to(X, (10_000, 3, 3))).arm, minlength=3) / 10_000
    assert np.all(np.abs(f - p) <= 5 * np.sqrt(np.maximum(2 * p * (1 - p), 2e-4) / 10_000))


def test_the_standard_error_covers():
    b = learnt(lam=0.5)
    X = np.array([[1.0, 0.2, -0.4], [0.3, 0.5, -0.2]])
    p = stats.norm.cdf((X[0] - X[1]) @ b.theta / math.sqrt(2 * b.theta @ b.theta / 26))
    near = []
    for _ in range(400):
        found, se, _ = b.propensities(X, detail=True, draws=100)
        near.append([abs(found[0] - p) <= k * se[0] for k in (1, 2)])
        b.choose(X)  # a new stream
    for share, expected in zip(np.mean(near, axis=0), (0.6827, 0.9545), strict=True):
        assert abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / 400) + 0.04  # of 100 draws, discrete
    # seen red: a standard error of the variance, not its root


# How often a model is asked


class Counting(LinearRegression):
    calls = ()

    def predict(self, X):
        type(self).calls = (*type(self).calls, len(X))
        return super().predict(X)


def calls(action):
    Counting.calls = ()
    action()
    return Counting.calls


def test_a_thousand_draws_are_one_call_of_predict():
    b = learnt(Counting(), refit=25, first=25)
    X = np.random.default_rng(0).normal(size=(7, 3))
    assert calls(lambda: b.propensities(X)) == (7000,) * 10
    assert calls(lambda: b.propensities(X, draws=1500)) == (7000, 3500)
    assert calls(lambda: b.propensities(np.stack([X, X]), draws=1000)) == (7000, 7000)
    assert calls(lambda: b.choose(X)) == (7,)
    assert calls(lambda: b.choose(np.stack([X] * 5))) == (35,)
    b.monte_carlo = 500
    assert calls(lambda: b.choose(X)) == (7, 3500)
    assert calls(lambda: b.mean(X)) == (7,)
    slots = learnt(Counting(), refit=25, first=25, disjoint=4)
    assert calls(lambda: slots.propensities(X[0], draws=2000)) == (4000, 4000)
    assert calls(lambda: slots.choose(X[0])) == (4,)
    # seen red: a call for each draw, and for each arm


def test_rows_beyond_memory_are_asked_in_parts(monkeypatch):
    X = np.random.default_rng(0).normal(size=(7, 3))
    b = learnt(Counting(), refit=25, first=25)
    p = b.propensities(X, draws=100)
    monkeypatch.setattr("dither.models.regressor.slots.NUMBERS_A_CALL", 30 * 7 * 3)
    assert calls(lambda: assert_array_equal(b.propensities(X, draws=100), p)) == (210, 210, 210, 70)


# What is jittered, and how


def test_gaussian_jitter_of_every_arm_alone():
    Z = jitter(Sigma="1/t", c=2.0)
    covariance_is(Z.reshape(len(Z), -1), np.eye(6))  # c²/t = 1, and no arm knows of another


def test_coupled_jitter_is_one_for_all_arms():
    for disjoint in (None, 2):
        Z = jitter(Sigma="constant", coupled=True, disjoint=disjoint)
        if disjoint:
            Z = np.stack([Z[:, 0, :3], Z[:, 1, 3:]], axis=1)
        assert_allclose(Z[:, 0], Z[:, 1])
        covariance_is(Z[:, 0], np.eye(3))
    # seen red: two arms of a context that were one row (slots)


def test_ball_jitter_is_uniform_in_the_ball_of_radius_root_d():
    for d, model in ((3, None), (2, None), (3, 2)):
        Z = jitter(Sigma="constant", noise=Ball(), d=d, disjoint=model)
        Z = Z[:, 0, :d]
        radius = np.linalg.norm(Z, axis=-1) / math.sqrt(d)
        assert radius.max() <= 1 + 1e-6
        assert stats.kstest(radius**d, "uniform").pvalue > 1e-4  # P(radius <= s) = s^d
        assert np.all(np.abs(Z.mean(axis=0)) <= 5 / math.sqrt(len(Z)))
    # seen red: d + 1 for d + 2; the ball of all slots


def test_a_ball_on_disjoint_linear_models_has_the_law_of_d_features():
    b = learnt(Disjoint(Ridge(0.5), 2), noise=Ball(), Sigma=0.05)
    x = np.array([0.5, 0.5, 0.5])
    m, size = b.mean(x), math.sqrt(0.05) * np.linalg.norm(b.theta, axis=1)
    law = dither.noise.BallMarginal(3)
    z = law.draw(np.random.default_rng(0), (200_000, 2))
    p = np.mean(m[0] + size[0] * z[:, 0] > m[1] + size[1] * z[:, 1])
    found = b.propensities(x)[0]
    f = np.mean(b.choose(np.broadcast_to(x, (10_000, 3))).arm == 0)
    for share in (found, f):
        assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) * (1 / 10_000 + 1 / 200_000))
    # seen red: a ball in all K d dimensions, of which d are used


def test_masks_say_which_features_move():
    Z = jitter(Sigma="constant", mask=(False, True, True))
    assert np.all(Z[..., 0] == 0)
    covariance_is(Z[:, 0, 1:], np.eye(2))
    x = np.array([1.0, 2.0, 3.0])
    own = jitter(Sigma="constant", disjoint=2, x=x)
    assert np.all(own[:, 0, 3:] == 0)
    assert np.all(own[:, 1, :3] == 0)
    covariance_is(np.concatenate([own[:, 0, :3], own[:, 1, 3:]], axis=1), np.eye(6))
    whole = jitter(Sigma="constant", disjoint=2, mask=False, x=x)
    covariance_is(whole.reshape(len(whole), -1), np.eye(12))
    some = jitter(Sigma="constant", disjoint=2, mask=(True, False, False), x=x)
    assert np.all(some[:, 0, 1:] == 0)
    # seen red: mask=False on the own slot alone


@pytest.mark.parametrize("noise", [Gaussian(), Ball()])
def test_all_slots_coupled_move_alike(noise):
    Z = jitter(Sigma="constant", disjoint=2, mask=False, coupled=True, noise=noise)
    assert_allclose(Z[:, 0], Z[:, 1])
    assert np.std(Z[:, 0, 5]) > 0.5


def test_units_do_not_matter_to_the_spread_and_do_to_one_variance():
    units = np.array([1.0, 1000.0, 1.0])
    g = np.random.default_rng(0)
    X, at = g.normal(size=(40, 3)), g.normal(size=(200, 5, 3))
    r = X @ [1.0, 1.0, 1.0] + g.normal(size=40)
    chosen = {}
    for Sigma in ("spread", "1/t"):
        for scale in (np.ones(3), units):
            b = dither.FP(LinearRegression(), dim=3, seed=0, Sigma=Sigma, c=9.0, refit=1, first=40)
            b.update(X * scale, r)
            chosen[Sigma, scale[1]] = b.choose(at * scale).arm
    assert_array_equal(chosen["spread", 1.0], chosen["spread", 1000.0])
    assert np.mean(chosen["1/t", 1.0] == chosen["1/t", 1000.0]) < 0.9
    assert_allclose(b.policy.view(b.model, b.state, at[0], t=1).root.scale, 9.0)
    # seen red: the spread left out


def test_the_spread_is_that_of_what_was_learnt():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1, 10, 0] + [0, 5, 2]
    for model in (LinearRegression(), lambda X: X[:, 0]):
        b = dither.FP(model, dim=3, seed=0, Sigma="spread")
        root = b.policy.view(b.model, b.state, X, t=4).root
        assert_allclose(root.scale, [[0.5, 0.5, 0.5]])  # nothing known: 1
        b.update(X, X[:, 0])
        assert_allclose(b.policy.view(b.model, b.state, X, t=4).root.scale[0], X.std(axis=0) / 2, atol=1e-12)


# Other array libraries


@pytest.mark.parametrize("name", ["array_api_strict", "torch"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"coupled": True},
        {"noise": Ball()},
        {"mask": (True, False, True)},
        {"Sigma": lambda t: SKEW, "c": 0.5},
        {"Sigma": lambda t: [1, 2, 3]},
    ],
)
def test_choices_are_the_same_in_every_array_library(name, settings):
    xp = array_api_strict if name == "array_api_strict" else pytest.importorskip("array_api_compat.torch")
    policy, g = General(**settings), np.random.default_rng(0)
    for model in (Ridge(0.5), Disjoint(Ridge(0.5), 5), GLM()):
        X = g.normal(size=(4, 3) if hasattr(model, "slots") else (4, 5, 3))
        chance, u = policy.draw(g, 4, arms=5, dim=contract.ambient(model, 3)), g.random((4, 3))
        x, r = g.normal(size=(4, 3)), np.array([0.0, 1, 1, 0])
        arm = {"arm": np.array([0, 1, 2, 3])} if hasattr(model, "slots") else {}
        ours = model.update(model.init(3, batch=(4,), needs=policy.needs), x, r, **arm)
        theirs = model.update(
            model.init(3, batch=(4,), needs=policy.needs, xp=xp),
            *(xp.asarray(A) for A in (x, r)),
            **{k: xp.asarray(v) for k, v in arm.items()},
        )
        a = lockstep.choose(policy.view(model, ours, X, t=2), chance, u, eps=0.0)
        view = policy.view(model, theirs, xp.asarray(X), t=2)
        b = lockstep.choose(view, tuple(xp.asarray(g) for g in chance), xp.asarray(u), eps=0.0)
        assert_array_equal(np.asarray(b), a)


# The policy's settings


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"Sigma": "1/T"}, LookupError, "no Sigma '1/T': did you mean '1/t'"),
        ({"Sigma": -1.0}, ValueError, "Sigma must lie in"),
        ({"Sigma": math.nan}, ValueError, "Sigma must lie in"),
        ({"c": -1}, ValueError, "c must lie in"),
        ({"noise": "gaussian"}, ValueError, r"noise must be dither.noise.Gaussian\(\) or Ball\(\)"),
        ({"coupled": "yes"}, ValueError, "coupled must be True or False"),
        ({"mask": 3}, ValueError, "mask must be True, False or a boolean for each feature, got 3"),
        ({"mask": (0.5, 1, 1)}, ValueError, "each of mask must be True or False"),
        ({"mask": False}, TypeError, "'mean_everywhere'"),
        ({"Sigma": "spread"}, TypeError, "'spread' of its model, which Ridge"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, error, says):
    with pytest.raises(error, match=says):
        dither.FP(dim=3, **settings)


@pytest.mark.parametrize(
    ("Sigma", "says"),
    [
        (lambda t: [1.0, 2.0], r"Sigma\(1\) must be a variance, one for each feature \(3,\).*got shape \(2,\)"),
        (lambda t: np.eye(2), r"or a matrix \(3, 3\).*got shape \(2, 2\)"),
        (lambda t: math.inf, "all finite"),
        (lambda t: [1.0, -1.0, 1.0], "must not be negative, got -1.0"),
        (lambda t: np.diag([1.0, -1.0, 1.0]), "positive semidefinite, got an eigenvalue of -1"),
        (lambda t: np.triu(np.ones((3, 3))), "must be symmetric"),
        (lambda t: "much", "must return numbers, got 'much'"),
    ],
)
def test_what_a_function_of_t_returns_is_checked(Sigma, says):
    b = dither.FP(dim=3, seed=0, Sigma=Sigma)
    with pytest.raises(ValueError, match=says):
        b.choose(np.eye(3))
    with pytest.raises(ValueError, match="mask must say for each of 3 features if it moves, got 2 entries"):
        dither.FP(dim=3, seed=0, mask=(True, False))


def test_a_function_of_t_cannot_be_saved_and_numbers_can(tmp_path):
    b = learnt(Sigma=0.3, noise=Ball(), mask=(True, True, False))
    b.save(tmp_path / "b")
    again = dither.load(tmp_path / "b")
    assert again.policy == b.policy
    X = np.random.default_rng(0).normal(size=(9, 3))
    assert [again.choose(X).arm for _ in range(9)] == [b.choose(X).arm for _ in range(9)]
    with pytest.raises(TypeError, match="a file cannot hold"):
        learnt(Sigma=lambda t: 1.0).save(tmp_path / "f")

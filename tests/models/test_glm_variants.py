"""What the paper's variants of GLM change, settings that are refused, array libraries, disjoint slots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import glm_oracles
import lockstep
from dither.deciding import decision
from dither.models import GLM, Disjoint
from glm_states import CURVED, MOMENTS, SOLVED, TIGHT, arms, checked, fold

# What the paper's variants change


@pytest.mark.parametrize("solver", SOLVED)
def test_a_least_derivative_changes_widths_alone(solver):
    X, r = glm_oracles.stream("logit", "logistic", 40)
    model, plain, at = GLM(solver=solver, min_derivative=0.25), GLM(solver=solver), arms(5)
    for n in (0, 1, 3, 40):
        state, other = fold(model, X[:n], r[:n]), fold(plain, X[:n], r[:n])
        R = np.linalg.qr(np.vstack([1e-2 * np.eye(5), 0.5 * X[:n]]), mode="r")
        assert_allclose(model.width(state, at), glm_oracles.widths(R, at), rtol=CURVED[solver])
        truth = glm_oracles.fit(X[:n], r[:n])
        assert np.linalg.norm(truth.R @ (state.theta - truth.theta).astype(float)) <= TIGHT
        assert_allclose(plain.width(other, at), glm_oracles.widths(truth.R, at), rtol=CURVED[solver])
    # seen red: μ' as it is


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("least", [0.0, 0.1])
@pytest.mark.parametrize(("lam", "ridge"), [(1e-4, 1.0), (0.5, 1e-3)])
def test_two_penalties(lam, ridge, least, solver):
    for link, name in (("logit", "separable"), ("log", "poisson"), ("probit", "probit")):
        X, r = glm_oracles.stream(link, name, 20)
        model, at = GLM(link, lam=lam, ridge=ridge, min_derivative=least, solver=solver), arms(X.shape[1])
        state = model.init(X.shape[1])
        for t in range(20):
            state = model.update(state, X[t], r[t])
            truth = glm_oracles.fit(X[: t + 1], r[: t + 1], link=link, lam=lam, ridge=ridge, min_derivative=least)
            checked(model, state, truth, limits=(30 * TIGHT, CURVED[solver]))  # Ĥ is up to 500 times the Hessian
        assert_allclose(model.width(state, at), glm_oracles.widths(truth.R, at), rtol=CURVED[solver])
    # seen red: λ for the penalty of the objective


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("ridge", [None, 1e-8])
@pytest.mark.parametrize("S", [0.3, 2.0, 50.0])
def test_a_constraint_holds_and_is_optimal(S, ridge, solver):
    """Karush, Kuhn and Tucker: inside, the gradient is 0; on the sphere it is -νθ with ν >= 0."""
    for link, name in (("logit", "separable"), ("logit", "logistic"), ("log", "poisson"), ("probit", "probit")):
        X, r = glm_oracles.stream(link, name, 12)
        model = GLM(link, constrain=S, ridge=ridge, solver=solver)
        state = model.init(X.shape[1])
        for t in range(12):
            state = model.update(state, X[t], r[t])
            norm = np.linalg.norm(state.theta)
            assert norm <= S * (1 + 1e-12)
            g = glm_oracles.gradient(X[: t + 1], r[: t + 1], state.theta, link=link, ridge=model.rho_of(state)).astype(
                float
            )
            multiplier = -(g @ state.theta) / norm**2
            R = glm_oracles.root(X[: t + 1], state.theta, link=link, lam=1e-4)
            if norm < S * (1 - 1e-6):
                assert np.linalg.norm(np.linalg.solve(R.T, g)) <= 2 * TIGHT
            else:
                assert multiplier >= -1e-7
                assert np.linalg.norm(np.linalg.solve(R.T, g + multiplier * state.theta)) <= 1e-6
    # seen red: the free minimum


@pytest.mark.parametrize("solver", SOLVED)
def test_a_constraint_finds_the_nearest_minimum(solver):
    X, r = glm_oracles.stream("logit", "separable", 25)
    for S in (0.5, 3.0):
        model = GLM(constrain=S, solver=solver)
        state = model.init(4)
        for t in range(25):
            state = model.update(state, X[t], r[t])
            if t in MOMENTS:
                truth = glm_oracles.fit(X[: t + 1], r[: t + 1], constrain=S)
                checked(model, state, truth, limits=(2 * TIGHT, CURVED[solver]))


# Settings


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        *(({"lam": v}, "lam") for v in (0, -1.0, np.nan, np.inf, True, "1", None)),
        *(({"tol": v}, "tol") for v in (0, -1.0, np.nan, 2.0, 1e-12, "1", None, True)),
        *(({"min_derivative": v}, "min_derivative") for v in (-1e-9, np.nan, np.inf, "0", None)),
        *(({"constrain": v}, "constrain") for v in (0, -1.0, np.nan, np.inf, "1", True)),
        *(({"ridge": v}, "ridge") for v in (0, -1.0, np.nan, np.inf, "1", True)),
        ({"constrain": 1.0, "solver": "online"}, "constrain"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, word):
    with pytest.raises(ValueError, match=word):
        GLM(**settings)


def test_names_are_told_the_near_match():
    with pytest.raises(LookupError, match="did you mean 'logit'"):
        GLM("logistic")
    with pytest.raises(LookupError, match="did you mean 'certified'"):
        GLM(solver="certifed")


def test_a_state_of_no_data_is_refused():
    model = GLM()
    state = fold(model, *glm_oracles.logistic(np.random.default_rng(0), 9))
    model.check(state)
    for broken in (
        state._replace(F=0 * state.F),
        state._replace(history=state.history._replace(rows=np.array(10**6))),
        state._replace(history=state.history._replace(count=-1 - state.history.count)),
        state._replace(history=state.history._replace(X=state.history.X[:3])),
    ):
        with pytest.raises(ValueError, match="its"):
            model.check(broken)


# Array libraries


@pytest.mark.parametrize(
    ("link", "solver", "batch", "lam"),
    [
        *(("logit", solver, batch, 1e-4) for solver in (*SOLVED, "online") for batch in ((), (3,))),
        *((link, "certified", (), 1e-4) for link in ("log", "probit", "identity")),
        *(("logit", solver, batch, "auto") for solver in ("certified", "online") for batch in ((), (3,))),
    ],
)
def test_every_library_reaches_the_same_state(lib, link, solver, batch, lam):
    rng, model = np.random.default_rng(8), GLM(link, solver=solver, lam=lam)
    ours, theirs = model.init(3, batch=batch), model.init(3, batch=batch, xp=lib.xp)
    for _ in range(8):
        x, r, weight = rng.normal(size=(*batch, 3)), rng.random(batch), rng.uniform(0.1, 2, size=batch)
        ours = model.update(ours, x, r, weight=weight)
        theirs = model.update(theirs, lib.array(x), lib.array(r), weight=lib.array(weight))
    X, r = rng.normal(size=(*batch, 5, 3)), rng.random((*batch, 5))
    ours, theirs = model.update_many(ours, X, r), model.update_many(theirs, lib.array(X), lib.array(r))
    at = rng.normal(size=(*batch, 4, 3))
    assert_allclose(lib.back(theirs.theta), ours.theta, rtol=1e-9, atol=1e-9)
    assert_allclose(lib.back(model.mean(theirs, lib.array(at))), model.mean(ours, at), rtol=1e-9, atol=1e-9)
    assert_allclose(lib.back(model.width(theirs, lib.array(at))), model.width(ours, at), rtol=1e-7)
    eta = rng.normal(size=(*batch, 3))
    draw = np.linalg.norm(lib.back(model.sample(theirs, lib.array(eta))), axis=-1)
    assert draw.shape == batch
    assert np.isfinite(draw).all()
    assert_array_equal(lib.back(model.passes(theirs)) > 0, model.passes(ours) > 0)  # NumPy has a quicker way of its own


@pytest.mark.parametrize("solver", ["certified", "counts", "online"])
def test_every_library_makes_the_same_choices(lib, solver):
    rng, d, K, R = np.random.default_rng(1), 3, 6, 4
    model, policy = dither.GLMFP.configure(d, solver=solver)
    fixed = rng.normal(size=(K, d))
    ours = model.init(d, batch=(R,), needs=policy.needs)
    theirs = model.init(d, batch=(R,), needs=policy.needs, xp=lib.xp)
    for t in range(1, 13):
        X = np.broadcast_to(fixed, (R, K, d)) if solver == "counts" else rng.normal(size=(R, K, d))
        chance, u = policy.draw(rng, R, arms=K, dim=d), rng.random((R, decision.UNIFORMS))
        there = policy.view(model, theirs, lib.array(X), t=t)
        a = lockstep.choose(policy.view(model, ours, X, t=t), chance, u, eps=0.0)
        b = lockstep.choose(there, tuple(map(lib.array, chance)), lib.array(u), eps=0.0)
        assert_array_equal(lib.back(b), a)
        x, r = np.take_along_axis(X, a[:, None, None], axis=1)[:, 0], rng.integers(2, size=R).astype(float)
        ours = model.update(ours, x, r, own=True)
        theirs = model.update(theirs, lib.array(x), lib.array(r), own=True)
    assert_allclose(lib.back(theirs.theta), ours.theta, rtol=1e-9, atol=1e-9)


# Disjoint slots


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("solver", ["certified", "exact"])
def test_disjoint_slots_are_one_model_on_block_vectors(solver, at_once):
    X, r = glm_oracles.stream("logit", "flip", 24)
    arm = np.random.default_rng(6).integers(3, size=24)  # the last slot stays empty
    rows = np.zeros((24, 4, 3))
    rows[np.arange(24), arm] = X
    rows = rows.reshape(24, 12)
    slots, whole = Disjoint(GLM(lam=0.01, solver=solver), 4), GLM(lam=0.01, solver=solver)
    if at_once:
        small = slots.update_many(slots.init(3), X, r, arm=arm)
    else:
        small = slots.init(3)
        for t in range(24):
            small = slots.update(small, X[t], r[t], arm=arm[t])
    truth = glm_oracles.fit(rows, r, lam=0.01)
    large = fold(whole, rows, r)
    for x in arms(3):
        dense = np.kron(np.eye(4), x)
        w = glm_oracles.widths(truth.R, dense)
        assert np.all(np.abs(slots.mean(small, x) - dense @ truth.theta.astype(float)) <= TIGHT * w)
        assert_allclose(slots.width(small, x), w, rtol=CURVED[solver])
        assert_allclose(slots.width(small, x), whole.width(large, dense), rtol=2 * CURVED[solver])

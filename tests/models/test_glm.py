"""GLM against independent minimisers (`glm_oracles`): every solver, link and stream, from no observation on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import glm_oracles
import oracles
from dither.models import GLM
from glm_oracles import CASES
from glm_states import CURVED, MOMENTS, SOLVED, TIGHT, arms, checked, fold, off

# The oracles themselves


@pytest.mark.parametrize(("link", "name"), CASES)
def test_two_oracles_agree(link, name):
    for n in (1, 5):
        X, r = glm_oracles.stream(link, name, n)
        at, truth = arms(X.shape[1]), glm_oracles.fit(X, r, link=link)
        theta, m, w = glm_oracles.digits(X, r, at, link=link, dps=30)
        size = np.linalg.norm(truth.R @ theta)
        assert np.linalg.norm(truth.R @ (truth.theta - theta).astype(float)) < 1e-12 + 1e-15 * size
        assert_allclose((at @ truth.theta).astype(float), m, rtol=1e-9, atol=1e-9 * np.abs(m).max())
        assert_allclose(glm_oracles.widths(truth.R, at), w, rtol=1e-9)


# One bandit, every stream


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize(("link", "name"), CASES)
def test_every_round_is_the_exact_minimum(link, name, solver):
    X, r = glm_oracles.stream(link, name, MOMENTS[-1])
    model, at = GLM(link, solver=solver), arms(X.shape[1])
    state = model.init(X.shape[1])
    for t in range(MOMENTS[-1] + 1):
        if t in MOMENTS:
            truth = glm_oracles.fit(X[:t], r[:t], link=link)
            checked(model, state, truth, limits=(TIGHT, CURVED[solver]))
            assert_allclose(model.mean(state, at), at @ state.theta, rtol=1e-12, atol=1e-12)
            assert_allclose(model.width(state, at), glm_oracles.widths(truth.R, at), rtol=CURVED[solver])
        if t < len(r):
            state = model.update(state, X[t], r[t])
    # seen red: undamped Newton; `counts` forgetting the rewards of a row it knows


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("link", ["logit", "log", "probit", "identity"])
def test_nothing_is_known_before_the_first_observation(link, solver):
    model = GLM(link, lam=0.04, solver=solver)
    state = model.init(3)
    assert_array_equal(state.theta, np.zeros(3))
    assert_allclose(model.width(state, np.eye(3)), 5.0, rtol=1e-14)
    assert_array_equal(model.bound(state), [0.0, 0.0])
    assert int(model.passes(state)) == 0


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize(("scale", "lam"), [(1e8, 1e-4), (1e8, 1e12), (1e-8, 1e-4), (1e-8, 1e-20), (1e4, 1e-4)])
@pytest.mark.parametrize("link", ["logit", "log", "probit"])
def test_units_are_computed_with_or_refused(link, scale, lam, solver):
    """Scaling x by s and λ by s² changes no m and no w; scaling x alone is another problem that has an answer, too."""
    X, r = glm_oracles.stream(link, "probit" if link == "probit" else {"logit": "logistic", "log": "poisson"}[link], 30)
    model = GLM(link, lam=lam, solver=solver)
    state = model.init(X.shape[1])
    for t in range(30):
        reason = ""
        try:
            state = model.update(state, scale * X[t], r[t])
        except ValueError as refusal:
            reason = str(refusal)
        if reason:
            assert "lam" in reason
            return
        if t in MOMENTS:
            truth = glm_oracles.fit(scale * X[: t + 1], r[: t + 1], link=link, lam=lam)
            checked(model, state, truth, limits=np.inf)  # rounding may be all that is certain here
            E, eig = off(state, truth)
            assert E <= TIGHT
            assert eig <= max(CURVED[solver], 1e-4)


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("lam", [1e-8, 1e-2, 1.0, 1e6])
def test_any_penalty(lam, solver):
    for link, name in (("logit", "separable"), ("log", "counts"), ("probit", "probit")):
        X, r = glm_oracles.stream(link, name, 12)
        model = GLM(link, lam=lam, solver=solver)
        state = model.init(X.shape[1])
        for t in range(12):
            state = model.update(state, X[t], r[t])
            truth = glm_oracles.fit(X[: t + 1], r[: t + 1], link=link, lam=lam)
            checked(model, state, truth, limits=(TIGHT, CURVED[solver]))


@given(
    st.sampled_from(SOLVED),
    st.sampled_from(["logit", "log", "probit"]),
    st.sampled_from([1e-6, 1e-4, 0.3]),
    st.lists(
        st.tuples(
            st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, 1e-3])] * 2),
            st.sampled_from([0.0, 1.0, 0.25]),
            st.sampled_from([1.0, 0.5, 7.0]),
        ),
        max_size=9,
    ),
)
def test_whatever_comes_it_is_the_exact_minimum(solver, link, lam, observations):
    model = GLM(link, lam=lam, solver=solver)
    state, X, r, weight = model.init(2), np.empty((0, 2)), np.empty(0), np.empty(0)
    for x, y, v in observations:
        state = model.update(state, np.array(x), np.float64(y), weight=np.float64(v))
        X, r, weight = np.vstack([X, x]), np.r_[r, y], np.r_[weight, v]
        truth = glm_oracles.fit(X, r, link=link, lam=lam, weight=weight)
        checked(model, state, truth, limits=(TIGHT, CURVED[solver]))


# Long histories


@pytest.mark.parametrize(("solver", "n"), [("certified", 100_000), ("exact", 5_000)])
def test_a_hundred_thousand_rows(solver, n):
    X, r = glm_oracles.logistic(np.random.default_rng(3), n + 20)
    model = GLM(solver=solver)
    state = model.update_many(model.init(5), X[:n], r[:n])
    truth = glm_oracles.fit(X[:n], r[:n])
    limits = (0.05, 2 * np.log(1.05)) if solver == "certified" else (TIGHT, 1e-6)
    checked(model, state, truth, limits=limits)
    before = int(model.passes(state))
    state = fold(model, X[n:], r[n:], state=state, own=True)
    checked(model, state, glm_oracles.fit(X, r, start=truth.theta), limits=limits)
    if solver == "certified":
        assert int(model.passes(state)) - before <= 1
    # seen red: a buffer whose rows are not counted


def test_fixed_arms_take_as_many_rows_as_there_are_arms():
    rng = np.random.default_rng(4)
    fixed = glm_oracles.unit(rng, 6, 3)
    X = fixed[rng.integers(6, size=300)]
    r = glm_oracles.bernoulli(rng, X, np.array([2.0, -1, 1]))
    model = GLM(solver="counts")
    state = fold(model, X, r, own=True)
    assert int(state.history.rows) == 6
    size = {k: A.shape for k, A in oracles.arrays_of(model.init(3), "s").items()}
    assert {k: A.shape for k, A in oracles.arrays_of(state, "s").items()} == size
    checked(model, state, glm_oracles.fit(X, r), limits=(TIGHT, 1e-6))
    # seen red: every observation a row

"""GLM against independent minimisers (`glm_oracles`): every solver, link and stream, from no observation on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
import glm_oracles
import oracles
from dither import decision
from dither.models import GLM, Disjoint, Ridge, learning
from glm_oracles import CASES
from test_arrays import Library

TIGHT, CURVED = 1e-8, {"exact": 1e-6, "counts": 1e-6, "certified": 1e-3}  # what a history that was solved is good for
SOLVED = ["exact", "counts", "certified"]
MOMENTS = (0, 1, 2, 3, 5, 8, 13, 24)


@pytest.fixture(params=["numpy", "read-only", "strict", "torch"])
def lib(request):
    return Library(request.param)


def fold(model, X, r, *, state=None, own=False, needs=frozenset(), **settings):
    """init, then update pair by pair."""
    state = model.init(X.shape[-1], needs=needs) if state is None else state
    for i in range(len(r)):
        state = model.update(state, X[i], r[i], own=own, **{k: v[i] for k, v in settings.items()})
    return state


def off(state, truth):
    """‖θ - θ̂‖ in the norm of the exact Ĥ, and the largest |log eigenvalue| of Ĥ as kept against it."""
    logs = np.log(np.linalg.svd(truth.R @ state.F, compute_uv=False))
    return np.linalg.norm(truth.R @ (state.theta - truth.theta).astype(float)), 2 * np.max(np.abs(logs))


def checked(model, state, truth, *, limits, at=()):
    """The truth is within the bound, and the bound within the limits."""
    bound, one = model.bound(state)[at], model.init(state.theta.shape[-1])
    E, eig = off(one._replace(F=state.F[at], theta=state.theta[at]), truth)
    assert glm_oracles.below(E, eig, bound, truth), (E, eig, bound)
    assert np.all(bound <= limits), (bound, limits)


def same(model, a, b, at, *, rtol=1e-6):
    """Two states say the same of the arms `at`: means to a hundred-millionth of a width, and widths."""
    assert np.all(np.abs(model.mean(a, at) - model.mean(b, at)) <= 4 * TIGHT * model.width(a, at))
    assert_allclose(model.width(a, at), model.width(b, at), rtol=rtol)


def arms(d, seed=9):
    return np.vstack([np.eye(d), np.random.default_rng(seed).normal(size=(3, d))])


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


# Many at once, in any order, with weights


@pytest.mark.parametrize("solver", ["exact", "certified", "online"])
@pytest.mark.parametrize("link", ["logit", "log", "probit"])
def test_leading_axes_are_a_loop(link, solver):
    names = [name for own, name in CASES if own == link]
    streams = [glm_oracles.stream(link, name, 24) for name in names]
    d = max(X.shape[1] for X, _ in streams)
    X = np.stack([np.pad(X, ((0, 0), (0, d - X.shape[1]))) for X, _ in streams], axis=1)
    r = np.stack([r for _, r in streams], axis=1)
    model, at = GLM(link, solver=solver), arms(d)
    weight = np.random.default_rng(0).uniform(0.2, 2, size=r.shape)
    state = fold(model, X[:20], r[:20], state=model.init(d, batch=(len(names),)), weight=weight[:20])
    state = model.update_many(state, X[20:].swapaxes(0, 1), r[20:].T, weight=weight[20:].T)
    for i, name in enumerate(names):
        own = fold(model, X[:20, i], r[:20, i], weight=weight[:20, i])
        own = model.update_many(own, X[20:, i], r[20:, i], weight=weight[20:, i])
        one = type(own)(state.F[i], state.theta[i], *own[2:])
        w = model.width(own, at)
        assert np.all(np.abs(model.mean(one, at) - model.mean(own, at)) <= 4 * TIGHT * w), name
        assert_allclose(model.width(one, at), w, rtol=2e-3 if solver == "certified" else 1e-6, err_msg=name)
    assert model.bound(state).shape == (len(names), 2)
    assert model.passes(state).shape == (len(names),)


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("batch", [(1,), (2, 3)])
def test_any_leading_axes(solver, batch):
    rng, model = np.random.default_rng(5), GLM(solver=solver)
    X, r = rng.normal(size=(9, *batch, 3)), rng.integers(2, size=(9, *batch)).astype(float)
    state = fold(model, X, r, state=model.init(3, batch=batch))
    assert model.bound(state).shape == (*batch, 2)
    for i in np.ndindex(batch):
        truth = glm_oracles.fit(X[(slice(None), *i)], r[(slice(None), *i)])
        checked(model, state, truth, limits=(TIGHT, CURVED[solver]), at=i)


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("n", [0, 1, 2, 25])
def test_n_updates_at_once_are_n_in_turn(solver, n):
    for link, name in (("logit", "separable"), ("logit", "repeats"), ("log", "counts"), ("probit", "flip")):
        X, r = glm_oracles.stream(link, name, 40)
        weight = np.random.default_rng(2).uniform(0, 3, size=40)
        model, at = GLM(link, solver=solver), arms(X.shape[1])
        before = fold(model, X[:5], r[:5])
        many = model.update_many(before, X[5 : 5 + n], r[5 : 5 + n], weight=weight[:n])
        one = fold(model, X[5 : 5 + n], r[5 : 5 + n], weight=weight[:n], state=before)
        same(model, many, one, at, rtol=2 * CURVED[solver])
        bound = model.bound(many)
        assert bound[0] <= TIGHT
        assert bound[1] <= CURVED[solver]


def test_batched_updates_of_many_rows_are_a_loop():
    rng, model = np.random.default_rng(4), GLM()
    X, r, weight = rng.normal(size=(4, 6, 3)), rng.integers(2, size=(4, 6)).astype(float), rng.uniform(size=(4, 6))
    many = model.update_many(model.init(3, batch=(4,)), X, r, weight=weight)
    for i in range(4):
        truth = glm_oracles.fit(X[i], r[i], weight=weight[i])
        checked(model, many, truth, limits=(TIGHT, 1e-3), at=i)


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize(("link", "name"), [("logit", "separable"), ("log", "burst"), ("probit", "intercept")])
def test_order_does_not_matter(link, name, solver):
    X, r = glm_oracles.stream(link, name, 20)
    model, at = GLM(link, solver=solver), arms(X.shape[1])
    first = fold(model, X, r)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(20)
        same(model, fold(model, X[order], r[order]), first, at, rtol=2 * CURVED[solver])


@pytest.mark.parametrize("solver", SOLVED)
@pytest.mark.parametrize("link", ["logit", "log", "probit"])
def test_a_weight_counts_observations(link, solver):
    X, r = glm_oracles.stream(link, {"logit": "separable", "log": "poisson", "probit": "probit"}[link], 8)
    model, at = GLM(link, solver=solver), arms(X.shape[1])
    repeat = np.array([1, 3, 2, 1, 4, 1, 2, 5])
    rows = fold(model, np.repeat(X, repeat, axis=0), np.repeat(r, repeat))
    weighted = fold(model, X, r, weight=repeat.astype(float))
    same(model, weighted, rows, at, rtol=2 * CURVED[solver])
    nothing = model.update(rows, np.full(X.shape[1], 3.0), r[0], weight=np.float64(0.0))
    same(model, nothing, rows, at, rtol=2 * CURVED[solver])
    halves = fold(model, np.repeat(X, 2, axis=0), np.repeat(r, 2), weight=np.full(16, 0.5))
    same(model, halves, fold(model, X, r), at, rtol=2 * CURVED[solver])
    # seen red: counts of 1 whatever the weight


def test_a_row_of_zeros_changes_nothing():
    for solver in (*SOLVED, "online"):
        X, r = glm_oracles.stream("logit", "logistic", 10)
        model, at = GLM(solver=solver), arms(5)
        before = fold(model, X, r)
        after = fold(model, np.zeros((3, 5)), np.array([1.0, 0, 1]), state=before)
        same(model, after, before, at, rtol=2e-3)


# States and inputs belong to the caller


@pytest.mark.parametrize("solver", [*SOLVED, "online"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_state_is_never_written_to(solver, batch):
    rng, model = np.random.default_rng(0), GLM(solver=solver)
    X, r = rng.normal(size=(40, *batch, 3)), rng.integers(2, size=(40, *batch)).astype(float)
    X.flags.writeable = r.flags.writeable = False
    state = fold(model, X[:11], r[:11], state=model.init(3, batch=batch))
    kept = {k: (A.tobytes(), A.flags.__setattr__("writeable", False))[0] for k, A in leaves(state)}
    left = fold(model, X[11:30], r[11:30], state=state)
    right = fold(model, X[20:], 1 - r[20:], state=state)
    model.update_many(state, np.moveaxis(X[:5], 0, -2), np.moveaxis(r[:5], 0, -1))
    assert {k: A.tobytes() for k, A in leaves(state)} == kept
    # Two futures of one state do not know each other: both as if the other had not been.
    for found, rows, paid in ((left, X[11:30], r[11:30]), (right, X[20:], 1 - r[20:])):
        alone = fold(model, X[:11], r[:11], state=model.init(3, batch=batch))
        alone = fold(model, rows, paid, state=alone)
        assert_array_equal(found.theta, alone.theta)
        assert_array_equal(found.F, alone.F)
    # seen red: buffers appended in place though the state was not given up


def leaves(state):
    return [(k, A) for k, A in oracles.arrays_of(state, "s").items() if A.ndim]


@pytest.mark.parametrize("solver", [*SOLVED, "online"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_state_given_up_leads_to_the_same(solver, batch):
    rng, model = np.random.default_rng(0), GLM(solver=solver)
    kept, given = (model.init(3, batch=batch) for _ in range(2))
    for t in range(60):
        x, r = rng.normal(size=(*batch, 3)), rng.integers(2, size=batch).astype(float)
        x.flags.writeable = False
        kept, given = model.update(kept, x, r), model.update(given, x, r, own=True)
        if t % 20 == 0:
            X, R = rng.normal(size=(*batch, 5, 3)), rng.integers(2, size=(*batch, 5)).astype(float)
            kept, given = model.update_many(kept, X, R), model.update_many(given, X, R)
        assert_array_equal(kept.theta, given.theta)
        assert_array_equal(kept.F, given.F)
        assert_array_equal(model.bound(kept), model.bound(given))


def test_a_state_that_was_kept_survives_what_others_give_up():
    rng, model = np.random.default_rng(0), GLM()
    X, r = rng.normal(size=(60, 3)), rng.integers(2, size=60).astype(float)
    state = fold(model, X[:20], r[:20], own=True)
    branch = model.update(state, X[20], r[20])  # a copy: `state` is still its owner's
    before = {k: A.tobytes() for k, A in oracles.arrays_of(state, "s").items()}
    fold(model, X[21:], r[21:], state=branch, own=True)
    assert {k: A.tobytes() for k, A in oracles.arrays_of(state, "s").items()} == before


# Online


def test_online_keeps_its_first_rows_alone():
    X, r = glm_oracles.logistic(np.random.default_rng(6), 3000)
    model = GLM(solver="online")
    state = fold(model, X[:1100], r[:1100], own=True)
    size = sum(A.nbytes for A in oracles.arrays_of(state, "s").values())
    passes = int(model.passes(state))
    for x, reward in zip(X[1100:], r[1100:], strict=True):
        state = model.update(state, x, reward, own=True)
    assert sum(A.nbytes for A in oracles.arrays_of(state, "s").values()) == size  # seen red: rows that are still added
    assert int(model.passes(state)) == passes
    assert int(state.history.rows) == learning.WARM
    assert np.isinf(model.bound(state)).all()
    assert "history" not in model.abilities
    E, eig = off(state, glm_oracles.fit(X, r))
    assert E < 0.2  # of a width; nothing is promised, but this stream is benign
    assert eig < 0.1


@pytest.mark.parametrize("link", ["logit", "log", "probit"])
def test_online_does_not_diverge(link, monkeypatch):
    monkeypatch.setattr(learning, "WARM", 0)  # the recursion from the first row on
    for own, name in CASES:
        if own == link:
            X, r = glm_oracles.stream(link, name, 300)
            model = GLM(link, solver="online")
            state = fold(model, X, r, own=True)
            truth = glm_oracles.fit(X, r, link=link)
            assert np.linalg.norm(state.theta) <= 10 * (1 + np.linalg.norm(truth.theta.astype(float))), name
            assert np.isfinite(model.width(state, arms(X.shape[1]))).all()


@pytest.mark.parametrize("solver", [*SOLVED, "online"])
@pytest.mark.parametrize("at_once", [False, True])
def test_the_identity_link_is_ridge_regression(solver, at_once):
    rng = np.random.default_rng(7)
    X, r, weight, at = rng.normal(size=(60, 4)), rng.normal(size=60), rng.uniform(0, 2, size=60), arms(4)
    glm, ridge = GLM("identity", lam=0.3, solver=solver), Ridge(0.3)
    if at_once:
        ours = glm.update_many(glm.init(4), X, r, weight=weight)
        theirs = ridge.update_many(ridge.init(4), X, r, weight=weight)
    else:
        ours, theirs = fold(glm, X, r, weight=weight), ridge.init(4)
        for x, y, v in zip(X, r, weight, strict=True):
            theirs = ridge.update(theirs, x, y, weight=v)
    assert_allclose(ours.theta, theirs.theta, rtol=1e-9, atol=1e-11)
    assert_allclose(glm.width(ours, at), ridge.width(theirs, at), rtol=1e-9)
    assert_allclose(glm.mean(ours, at), ridge.mean(theirs, at), rtol=1e-9, atol=1e-11)
    # seen red: H growing by 0.99 μ' xx'


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
            g = glm_oracles.gradient(X[: t + 1], r[: t + 1], state.theta, link=link, ridge=model.rho).astype(float)
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
    ("link", "solver", "batch"),
    [
        *(("logit", solver, batch) for solver in (*SOLVED, "online") for batch in ((), (3,))),
        *((link, "certified", ()) for link in ("log", "probit", "identity")),
    ],
)
def test_every_library_reaches_the_same_state(lib, link, solver, batch):
    rng, model = np.random.default_rng(8), GLM(link, solver=solver)
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
    assert_array_equal(lib.back(model.passes(theirs)), model.passes(ours))


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
        a = decision.choose(policy, policy.view(model, ours, X, t=t), chance, u, eps=0.0)
        b = decision.choose(policy, there, tuple(map(lib.array, chance)), lib.array(u), eps=0.0)
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

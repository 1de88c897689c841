"""States of GLM: many at once, in any order, with weights; owned, kept and given up; the online solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import glm_oracles
import oracles
from dither.models import GLM, Ridge
from dither.models.glm import learn
from glm_oracles import CASES
from glm_states import CURVED, SOLVED, TIGHT, arms, checked, fold, leaves, off, same

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


@pytest.mark.parametrize("forgets", [{}, {"discount": 0.999}])
def test_online_solves_the_rows_that_it_keeps_at_once(forgets):
    rng, model = np.random.default_rng(1), GLM(solver="online", **forgets)
    X, r = np.eye(3)[rng.integers(3, size=1040)], rng.integers(2, size=1040).astype(float)
    many, one = model.update_many(model.init(3), X, r), fold(model, X, r)
    same(model, many, one, np.eye(3), rtol=1e-7)
    early = model.update_many(model.init(3), X[:1000], r[:1000])
    assert model.passes(early) < 60
    # Seen red with a solution after each of the rows: 3,534 passes


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
    assert int(state.history.rows) == learn.WARM
    assert np.isinf(model.bound(state)).all()
    assert "rows" not in model.abilities
    E, eig = off(state, glm_oracles.fit(X, r))
    assert E < 0.2  # of a width; nothing is promised, but this stream is benign
    assert eig < 0.1


@pytest.mark.parametrize("link", ["logit", "log", "probit"])
def test_online_does_not_diverge(link, monkeypatch):
    monkeypatch.setattr(learn, "WARM", 0)  # the recursion from the first row on
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

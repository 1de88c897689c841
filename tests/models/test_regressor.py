"""models.Regressor and models.Fixed: estimators fitted by hand on the same rows, and fits counted."""

import copy
import itertools
import subprocess
import sys

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dither
from dither.models import Fixed, Regressor
from dither.models import model as contract
from dither.policies import GeneralFeaturePerturbation, Greedy
from regressors import Spy, bandit, data, same, taught

# When it is fitted


@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        ({}, [1, 2, 4, 8, 16]),
        ({"first": 3}, [3, 6, 12]),
        ({"factor": 1.5}, [1, 2, 3, 5, 8, 12, 18]),
        ({"refit": 5, "first": 2}, [2, 7, 12, 17]),
        ({"refit": 1, "first": 18}, [18, 19, 20]),
        ({"refit": "request"}, []),
        ({"partial": True}, [1] * 20),
        ({"partial": True, "refit": 6}, [1, 6, 6, 6]),
        ({"partial": True, "refit": "doubling", "first": 2}, [2, 2, 4, 8]),
    ],
)
def test_it_is_fitted_when_its_schedule_says(settings, fits):
    log = []
    X, r, _ = data(20)
    b = taught(bandit(Regressor(Spy(log), **settings)), X, r)
    assert log == fits
    seen = (sum(fits) if settings.get("partial") else max(fits, default=0)) if fits else 0
    assert int(b.state.seen) == seen
    assert_allclose(b.mean(X[:4]), X[:4, 0] * (r[seen - 1] if seen else 0))
    b.refit()
    assert int(b.state.seen) == 20
    assert log[len(fits) :] == ([] if seen == 20 else [20 - seen if settings.get("partial") else 20])
    assert_allclose(b.mean(X[:4]), X[:4, 0] * r[19])
    # seen red: a first fit at 0 rows; the factor taken of `first`; refit() without its mark


@settings(max_examples=25)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.sampled_from([{}, {"refit": 3}, {"partial": True}]))
def test_observations_may_come_in_any_pieces(sizes, how):
    X, r, _ = data(sum(sizes))
    one, pieces = (bandit(Regressor(Spy(), **how)) for _ in range(2))
    taught(one, X, r)
    for first, last in itertools.pairwise([0, *np.cumsum(sizes)]):
        pieces.update(X[first:last], r[first:last])
    same(one, pieces)
    # seen red: marks of the last fit alone


def test_a_refit_needs_something_to_fit_on():
    b = bandit(Regressor(LogisticRegression(), refit="request"))
    with pytest.raises(ValueError, match="0 observations"):
        b.refit()
    b.update([1, 2, 3], 1.0)
    with pytest.raises(ValueError, match="1 observations of one class"):
        b.refit()
    b.update([1, 2, 4], 0.0)
    b.refit()
    assert int(b.state.seen) == 2
    with pytest.raises(TypeError, match="Ridge learns every reward as it comes"):
        dither.LinFP(dim=3).refit()


# What it is


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(5, random_state=3),
        GradientBoostingRegressor(n_estimators=5, random_state=1),
        make_pipeline(StandardScaler(), SGDRegressor(random_state=2)),
        LinearRegression(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("encode", [None, "disjoint", "index"])
def test_it_is_the_estimator_fitted_on_the_rows_of_its_last_fit(estimator, encode):
    K = 3 if encode else None
    X, r, arm = data(40, K=K)
    b = taught(bandit(Regressor(estimator, first=5, slots=K, encode=encode or "disjoint")), X, r, arm)

    def by_hand(x, k):
        if encode is None:
            return x
        return np.concatenate([x, np.eye(K)[k]]) if encode == "index" else np.kron(np.eye(K)[k], x)

    rows = np.stack([by_hand(X[i], None if arm is None else arm[i]) for i in range(40)])
    theirs = clone(estimator).fit(rows[:40], r[:40])
    at = np.random.default_rng(9).normal(size=3 if encode else (3, 3))
    seen = np.stack([by_hand(at if encode else at[k], k) for k in range(3)])
    assert_array_equal(b.mean(at), theirs.predict(seen))
    assert_array_equal(b.predict(at), b.mean(at))
    with pytest.raises(NotFittedError):
        estimator.predict(rows)
    # seen red: arms one slot off


def test_slots_of_least_squares_are_those_of_a_linear_model_of_each():
    X, r, arm = data(60, K=4)
    ours = bandit(Regressor(LinearRegression(fit_intercept=False), slots=4, refit=1, first=60))
    theirs = dither.Greedy(dim=3, disjoint=4, lam=1e-12)
    for b in (ours, theirs):
        b.update(X, r, arm=arm)
    assert_allclose(ours.mean(X[:5]), theirs.mean(X[:5]), rtol=1e-8)


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("kind", [SGDRegressor, SGDClassifier])
def test_partial_fit_is_partial_fit_by_hand(every, kind):
    binary = kind is SGDClassifier
    estimator = SGDClassifier(loss="log_loss", random_state=7) if binary else SGDRegressor(random_state=7)
    X, r, _ = data(33, binary=binary)
    b = taught(bandit(Regressor(estimator, partial=True, refit=every)), X, r)
    theirs = clone(estimator)
    edges = [0, *range(1, 34, every)]
    for first, last in itertools.pairwise(edges):
        theirs.partial_fit(X[first:last], r[first:last], **({"classes": [0, 1]} if binary else {}))
    at = X[:6]
    assert_array_equal(b.mean(at), theirs.predict_proba(at)[:, 1] if binary else theirs.predict(at))
    # seen red: the row at an edge learnt twice


def test_a_classifier_answers_with_the_probability_of_class_1():
    X, r, _ = data(32, binary=True)
    b = taught(bandit(Regressor(LogisticRegression())), X, r)
    assert_array_equal(b.mean(X[:5]), LogisticRegression().fit(X, r).predict_proba(X[:5])[:, 1])
    twin = taught(bandit(Regressor(LogisticRegression())), X, r)
    with pytest.raises(ValueError, match=r"r must be 0 or 1, the classes of LogisticRegression; got 0\.5"):
        b.update(X[0], 0.5)
    same(b, twin)


def test_a_classifier_waits_for_both_classes_and_all_arms_tie():
    b = bandit(Regressor(LogisticRegression()), monte_carlo=50)
    X = np.random.default_rng(0).normal(size=(4, 3))
    for _ in range(5):
        b.update(X[0], 1.0)
    assert int(b.state.seen) == 0
    assert_array_equal(b.mean(X), np.zeros(4))
    p, se, kind = b.propensities(X, detail=True, draws=4000)
    assert kind == "monte_carlo"
    assert np.all(np.abs(p - 0.25) <= 5 * se)
    b.update(X[1], 0.0)
    assert int(b.state.seen) == 6
    # seen red: fitted on one class (LogisticRegression raises)


def test_a_constant_regressor_shows_all_arms_alike():
    b = bandit(Regressor(RandomForestRegressor(3, random_state=0)))
    X = np.random.default_rng(0).normal(size=(5, 3))
    b.update(X, np.full(5, 0.7))
    assert_allclose(b.mean(X), 0.7)
    shares = np.bincount(b.choose(np.broadcast_to(X, (4000, 5, 3))).arm, minlength=5) / 4000
    assert np.all(np.abs(shares - 0.2) <= 5 * np.sqrt(0.16 / 4000))
    # seen red: argmax of NumPy, which shows arm 0


def test_an_estimator_that_was_trained_answers_at_once_and_is_left_alone():
    X, r, _ = data(50)
    own = SGDRegressor(random_state=0, max_iter=5, tol=None).fit(X, r)
    before = own.coef_.copy()
    b = bandit(Regressor(own, trained=True, partial=True))
    assert_array_equal(b.mean(X[:4]), own.predict(X[:4]))
    taught(b, X[:10], -r[:10])
    theirs = copy.deepcopy(own)
    for i in range(10):
        theirs.partial_fit(X[i : i + 1], -r[i : i + 1])
    assert_array_equal(b.mean(X[:4]), theirs.predict(X[:4]))
    assert_array_equal(own.coef_, before)
    assert_array_equal(bandit(b.model).mean(X[:4]), own.predict(X[:4]))
    c = bandit(Regressor(own, trained=True, first=30))
    assert_array_equal(taught(c, X[:29], r[:29]).mean(X[:4]), own.predict(X[:4]))
    c.update(X[29], r[29])
    assert_array_equal(c.mean(X[:4]), clone(own).fit(X[:30], r[:30]).predict(X[:4]))
    # seen red: partial_fit on the estimator of the model (`own` before the copy)


def test_an_update_leaves_the_old_state_and_the_users_estimator_alone():
    X, r, _ = data(20)
    for how in ({}, {"partial": True}):
        mine = SGDRegressor(random_state=0, max_iter=5, tol=None)
        model = Regressor(mine, **how)
        mine.set_params(alpha=10.0)
        assert model.estimator.alpha == 1e-4
        state = model.init(3, rng=np.random.default_rng(0))
        old = [state]
        for x, y in zip(X, r, strict=True):
            old.append(model.update(old[-1], x, y))
        before = [model.mean(s, X[:4]) for s in old]
        model.update(old[7], X[0], np.float64(1e3))
        for s, m in zip(old, before, strict=True):
            assert_array_equal(model.mean(s, X[:4]), m)
    # seen red: partial_fit without a copy where own=False; the estimator of the model fitted itself


def test_the_seed_of_the_bandit_decides_where_the_estimator_has_none():
    X, r, _ = data(16)
    a, b, c = (taught(bandit(Regressor(RandomForestRegressor(3)), seed=seed), X, r).mean(X[:5]) for seed in (1, 1, 2))
    assert_array_equal(a, b)
    assert np.any(a != c)
    pipes = [make_pipeline(StandardScaler(), RandomForestRegressor(2)) for _ in range(2)]
    a, b = (taught(bandit(Regressor(pipe)), X, r).mean(X[:5]) for pipe in pipes)
    assert_array_equal(a, b)
    # seen red: random_state left None; only the outermost random_state looked at


# Weights


def test_weights_are_those_of_the_estimator():
    X, r, _ = data(12)
    w = np.array([1, 2, 0, 3, 0.5, 1, 1, 0, 4, 1, 1, 1.0])
    b = bandit(Regressor(LinearRegression(), refit=1, first=12))
    b.update(X, r, weight=w)
    assert_allclose(b.mean(X[:4]), LinearRegression().fit(X, r, sample_weight=w).predict(X[:4]), rtol=1e-10)
    plain, zero = (bandit(Regressor(KNeighborsRegressor(3), refit=1, first=12)) for _ in range(2))
    plain.update(X, r, weight=1.0)
    twin = copy.deepcopy(plain)
    with pytest.raises(ValueError, match="weight must be 0 or 1 for KNeighborsRegressor"):
        plain.update(X, r, weight=w)
    same(plain, twin)
    zero.update(X, r, weight=w > 0)
    assert_array_equal(zero.mean(X[:4]), KNeighborsRegressor(3).fit(X[w > 0], r[w > 0]).predict(X[:4]))
    # seen red: rows of weight 0 passed on


def test_rows_of_weight_0_teach_nothing():
    for how in ({}, {"partial": True}):
        b = bandit(Regressor(SGDRegressor(), **how))
        b.update([[1, 2, 3], [3, 2, 1]], [1.0, 2.0], weight=0)
        assert int(b.state.seen) == 0
        b.update([1, 1, 1], 1.0)
        b.update([9, 9, 9], 9.0, weight=0)
        assert int(b.state.buffer.count) == 4


# In simulation


def world(delay=None):
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=60)
    env = dither.envs.Classification(rng.normal(size=(60, 2)) + 2 * y[:, None], y)
    return env if delay is None else dither.envs.Delayed(env, mean=delay)


@pytest.mark.parametrize("delay", [None, 3.0])
@pytest.mark.parametrize(
    "model",
    [
        Regressor(SGDRegressor(), partial=True, slots=3),
        Regressor(RandomForestRegressor(2), slots=3, encode="index"),
        Regressor(LogisticRegression(), slots=3),
        Fixed(lambda X: X.sum(axis=1), slots=3),
    ],
    ids=["sgd", "forest", "logistic", "fixed"],
)
def test_a_run_is_the_same_whatever_runs_beside_it(model, delay):
    settings = dict(rounds=25, seed=4)
    agents = {"FP": (model, GeneralFeaturePerturbation("1/t" if delay else "spread"))}
    alone = dither.simulate(world(delay), agents, runs=[0, 2], batch=1, **settings)
    beside = dither.simulate(world(delay), agents, runs=3, batch=3, **settings)
    assert_array_equal(alone.regret, beside.regret[:, [0, 2]])
    made = dither.simulate(world(delay), agents, runs=[0], **settings)
    assert_array_equal(made.regret[0, 0], alone.regret[0, 0])
    # seen red: runs that share one estimator; estimators of rewards that have not arrived


def test_arms_with_features_of_their_own_run_too():
    env = dither.envs.Linear(dim=2, arms=4)
    agents = {
        "FP": (Regressor(LinearRegression()), GeneralFeaturePerturbation()),
        "greedy": (Regressor(Spy()), Greedy()),
    }
    regret = dither.simulate(env, agents, runs=2, rounds=60, seed=0).regret
    assert np.all(np.isfinite(regret))
    with pytest.raises(TypeError, match="leave device= of simulate out"):
        dither.simulate(env, agents, runs=1, rounds=2, xp=array_api_strict)


def test_runs_alone_are_what_it_asks_for():
    model = Regressor(LinearRegression())
    assert model.together(5) == 1
    assert model.bytes(5, 1000) > 1000 * 5 * 8
    assert contract.given_up(model) == {"own": True}


# A function of one's own


def test_a_function_is_asked_and_never_trained(tmp_path):
    calls = []

    def f(X):
        calls.append(X.shape)
        return X @ [1.0, -1.0, 0.5]

    b = bandit(Fixed(f), Greedy())
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert_array_equal(b.mean(X), X @ [1.0, -1.0, 0.5])
    b.update(X, np.arange(4.0))
    b.update(X[0], 5.0, weight=2.0)
    assert (b.observations, int(b.state.count), b.t) == (5, 5, 6)
    assert calls == [(4, 3)]
    assert b.theta.shape == (0,)
    b.save(tmp_path / "b")
    again = dither.load(tmp_path / "b", model=Fixed(f))
    assert (again.t, again.choose(X)) == (6, b.choose(X))
    with pytest.raises(ValueError, match="is not the model that was saved"):
        dither.load(tmp_path / "b", model=Fixed(lambda X: X[:, 0]))


def test_a_function_of_slots_sees_vectors_of_all():
    seen = []

    def f(X):
        seen.append(X)
        return X[:, 0]

    x = np.array([1.0, 2.0])
    bandit(Fixed(f, slots=3), Greedy(), dim=2).mean(x)
    bandit(Fixed(f, slots=2, encode="index"), Greedy(), dim=2).mean(x)
    assert_array_equal(seen[0], np.kron(np.eye(3), x))
    assert_array_equal(seen[1], [[1, 2, 1, 0], [1, 2, 0, 1]])


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda X: np.full(len(X), np.inf), "must answer with finite numbers, got inf at row 0 of 2"),
        (lambda X: X, r"must answer with one number for each of 2 rows, got shape \(2, 3\)"),
        (lambda X: None, "failed on X|one number for each"),
        (lambda X: 1 / 0, "failed on X.*division by zero"),
    ],
)
def test_a_function_that_answers_badly_is_named(f, says):
    with pytest.raises(ValueError, match=rf"<lambda>.*({says})"):
        bandit(Fixed(f)).choose(np.eye(3)[:2])


def test_estimators_of_ones_own_need_no_scikit_learn():
    code = """
import sys
for name in ("sklearn", "sklearn.base"): sys.modules[name] = None
import numpy as np, dither
from dither.models.regressor import Regressor
class Mean:
    def fit(self, X, y): self.m = y.mean()
    def predict(self, X): return X[:, 0] * self.m
b = dither.Bandit(Regressor(Mean()), dither.policies.GeneralFeaturePerturbation(), dim=2, seed=0)
b.update(np.eye(2), [1.0, 2.0])
print(b.mean(np.eye(2)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[1.5 0. ]", done.stderr

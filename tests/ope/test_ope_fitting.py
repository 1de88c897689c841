"""What is fitted or played on a log: reward models, propensities, MRDR, replay, adaptive weights."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from test_ope import log

import dither
from dither import ope


class Remembers(LinearRegression):
    """A regressor that keeps what it was fitted on; no two rows share a feature."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = set(X[:, 0].tolist())
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        assert not self.seen_ & set(X[:, 0].tolist())
        if self.past_alone:
            assert max(self.seen_) < min(X[:, 0])
        return super().predict(X)

    def __init__(self, past_alone=False):
        super().__init__()
        self.past_alone = past_alone


def contexts(n=300, K=3, seed=0):
    """A log whose rewards are linear in context and arm: X, r, a, p, Q, the true means."""
    rng = np.random.default_rng(seed)
    _, a, p, Q, _, _ = log(n, K, seed)
    X = np.column_stack([np.arange(n) / n, rng.normal(size=n)])
    mu = X @ [1.0, 2.0] + np.arange(K)[:, None]
    return X, mu.T[np.arange(n), a], a, p, Q, mu.T


@pytest.mark.parametrize("past", [False, True])
def test_no_row_is_predicted_by_a_model_that_saw_it(past):
    X, r, a, _, _, mu = contexts()
    M = ope.cross_fit(r, a, X, arms=3, regressor=Remembers(past), folds=5, past=past, seed=0)
    start = 50 if past else 0
    assert_allclose(M[start:], mu[start:], atol=1e-9)  # linear, without noise: every fold finds it
    assert np.all(M[:start] == 0)  # seen red: fitted on all rows


def test_features_may_be_those_of_the_arms():
    X, r, a, _, _, mu = contexts()
    numbers = np.arange(3.0)[:, None]
    assert_allclose(
        ope.cross_fit(r, a, X, arms=3, regressor=LinearRegression(), features=numbers, seed=0), mu, atol=1e-9
    )
    every = np.concatenate([np.repeat(X[:, None], 3, axis=1), np.broadcast_to(numbers, (300, 3, 1))], axis=2)
    assert_allclose(ope.cross_fit(r, a, every, arms=3, regressor=LinearRegression(), seed=0), mu, atol=1e-9)


def test_clusters_are_not_cut():
    r = np.repeat(np.arange(20.0), 5)  # each cluster has its own reward
    M = ope.cross_fit(r, np.zeros(100, dtype=int), np.repeat(np.arange(20.0), 5)[:, None], arms=1, folds=4, seed=1,
                      regressor=Remembers(), cluster=np.repeat(np.arange(20), 5))  # fmt: skip
    assert_allclose(M[:, 0], r, atol=1e-9)  # `Remembers` would have objected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(folds=1), "folds must be a whole number of at least 2"),
        (dict(folds=301), "folds=301 needs at least 301 rows"),
        (dict(arms=2), "a must be whole numbers from 0 to 1"),
        (dict(features=np.eye(2)), r"features must be \(3, e\)"),
        (dict(weight=[1.0]), "weight must be 300 finite numbers"),
        (dict(past=True, cluster=np.arange(300)), "takes no cluster="),
        (dict(cluster=np.arange(3)), "cluster must have shape"),
    ],
)
def test_what_cross_fit_refuses(changed, message):
    X, r, a, _, _, _ = contexts()
    with pytest.raises(ValueError, match=message):
        ope.cross_fit(r, a, X, **{**dict(arms=3, regressor=LinearRegression()), **changed})


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    X, r, a, _, _, _ = contexts()
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"scikit-learn.*dither\[ope\]"):
        ope.cross_fit(r, a, X, arms=3, regressor=LinearRegression())


def test_propensities_from_a_classifier_are_its_shares():
    X, _, a, _, _, _ = contexts(600)
    made = ope.propensities_from(a, X, arms=3, classifier=DummyClassifier(strategy="prior"), folds=2, seed=0)
    assert_allclose(made.P.sum(axis=1), 1)
    assert_allclose(made.P.mean(axis=0), np.bincount(a) / 600, atol=1e-3)  # each half predicts the other
    assert_array_equal(made.p, made.P[np.arange(600), a])
    assert (made.kind, made.clipped) == ("estimated", 0)
    cut = ope.propensities_from(a, X, arms=3, classifier=LogisticRegression(), folds=2, seed=0, clip=0.33)
    assert cut.clipped == np.sum(made.p == 0) + np.sum(
        ope.propensities_from(a, X, arms=3, classifier=LogisticRegression(), folds=2, seed=0).p < 0.33
    )
    assert cut.p.min() == 0.33
    lost = ope.propensities_from(np.r_[np.zeros(9, dtype=int), 2], X[:10], arms=3,
                                 classifier=DummyClassifier(strategy="prior"), folds=5, seed=0)  # fmt: skip
    assert lost.p[9] == 0  # arm 2 was shown once: whoever predicts it has not seen it; refused by the estimators
    e = ope.ips(np.ones(600), a, made.p, made.P, P=made.P, kind=made.kind)
    assert (e.kind, e.value) == ("estimated", 1.0)


def test_mrdr_fits_to_its_own_variance():
    """One constant for all arms, one policy that plays arm 0: the variance of DR is Σ (1-p)/p² (r-m)² over its rows."""
    rng = np.random.default_rng(0)
    n = 20_000
    first = rng.choice([0.1, 0.8], n)  # P(arm 0)
    a = (rng.random(n) > first).astype(int)
    p = np.where(a == 0, first, 1 - first)
    r = np.where(first < 0.5, 2.0, 0.0) + rng.normal(size=n) + 5.0 * a  # arm 1 is no concern of the policy
    Q, X = np.tile([1.0, 0.0], (n, 1)), rng.normal(size=(n, 1))
    e = ope.mrdr(r, a, p, Q, X, regressor=DummyRegressor(), folds=2, seed=0)
    assert (e.method, e.contributions.method) == ("mrdr", "mrdr")
    shown = a == 0
    best = np.average(r[shown], weights=((1 - p) / p**2)[shown])
    m = e.contributions.rows.M[:, 0]
    assert_allclose(m, best, atol=0.2)  # each half fits on the other
    plain = ope.cross_fit(r, a, X, arms=2, regressor=DummyRegressor(), folds=2, seed=0)
    assert e.se < ope.dr(r, a, p, Q, plain).se  # seen red: weights w
    grid = [ope.dr(r, a, p, Q, np.full((n, 2), c)).se for c in best + np.array([-0.5, 0.0, 0.5])]
    assert grid[1] == min(grid)
    with pytest.raises(ValueError, match="mrdr has no row to fit"):
        ope.mrdr(r[shown], a[shown], np.ones(shown.sum()), Q[shown], X[shown], regressor=DummyRegressor())
    with pytest.raises(ValueError, match="leave rows out beforehand"):
        ope.mrdr(r, a, p, Q, X, regressor=DummyRegressor(), mask=shown)


class Fixed:
    """Plays arm k with probability q[k], and remembers what it learnt."""

    def __init__(self, q, seed=0, slots=None):
        self.q, self.rng, self.learnt, self.slots = q, np.random.default_rng(seed), [], slots

    def choose(self, X):
        return SimpleNamespace(arm=self.rng.choice(len(self.q), p=self.q))

    def update(self, x, r, arm=None):
        self.learnt.append((x, r, arm))


def test_replay_of_a_fixed_policy_finds_its_value():
    rng = np.random.default_rng(0)
    n, mu, P, q = 20_000, np.array([0.1, 0.5, 0.9]), np.array([0.6, 0.3, 0.1]), [0.2, 0.2, 0.6]
    a = rng.choice(3, n, p=P)
    r = (rng.random(n) < mu[a]).astype(float)
    policy, X = Fixed(q, seed=9), np.arange(n * 3).reshape(n, 3, 1)
    e = ope.replay(policy, X, a, r, P[a], seed=1)
    assert abs(e.value - mu @ q) < 5 * e.se  # seen red: no thinning
    assert_allclose(e.n / n, 0.1, atol=5 * math.sqrt(0.09 / n))  # accepted: Σ q_k p_k least/p_k = least
    rows = e.contributions.rows.places
    assert_array_equal([x[0] for x, _, _ in policy.learnt], X[rows, a[rows], 0])  # learnt what counts, in order
    assert_array_equal([reward for _, reward, _ in policy.learnt], r[rows])
    assert e.n + sum(e.left_out.values()) == n
    assert_allclose(e.se, r[rows].std(ddof=1) / math.sqrt(e.n))


def test_replay_of_a_bandit_that_learns():
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(4000, 3, 2)), np.array([1.0, -0.5])
    a = rng.integers(0, 3, 4000)
    r = (X @ theta)[np.arange(4000), a] + rng.normal(size=4000)
    e = ope.replay(dither.LinFP(dim=2, lam=1.0, seed=0), X, a, r, np.full(4000, 1 / 3))
    best = np.max(X @ theta, axis=1).mean()
    assert best - 0.15 < e.value < best + 5 * e.se  # it learns: uniform choice earns 0
    slots = Fixed([0.5, 0.5], slots=2)
    ope.replay(slots, X[:50, 0], a[:50] % 2, r[:50], np.full(50, 0.5))
    assert {arm for _, _, arm in slots.learnt} == {0, 1}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(p=[0.5, 0.0]), r"p must lie in \(0, 1\], as the arm was shown; got 0.0 at row 1 \(1 such rows\)"),
        (dict(least=0.6), r"least must lie in \[1e-12, 0.5\]"),
        (dict(X=np.zeros((2, 2))), r"X must be \(n, K, d\)"),
        (dict(r=[1.0]), r"r must have shape \(2,\)"),
        (dict(a=[0, 2]), "a must be whole numbers from 0 to 1"),
        (dict(a=[1, 1], bandit=Fixed([1.0, 0.0])), "no row of 2 counts"),
    ],
)
def test_what_replay_refuses(changed, message):
    sound = dict(bandit=Fixed([0.5, 0.5]), X=np.zeros((2, 2, 1)), a=[0, 1], r=[1.0, 0.0], p=[0.5, 0.5])
    with pytest.raises(ValueError, match=message):
        ope.replay(**{**sound, **changed})


def learner(seed, n=600, J=6, floor=0.1):
    """A log of batches: the better-looking arm of two is shown more often; contexts shift the means."""
    rng = np.random.default_rng(seed)
    batch, x = np.arange(n) * J // n, rng.normal(size=n)
    G, a, r = np.empty((J, n, 2)), np.empty(n, dtype=int), np.empty(n)
    for j in range(J):
        rows, past = batch == j, batch < j
        means = [r[past & (a[:] == k)].mean() if j else 0.0 for k in range(2)]
        first = floor / 2 + (1 - floor) / (1 + np.exp(-3 * (means[0] - means[1]) - x))
        G[j] = np.stack([first, 1 - first], axis=1)
        a[rows] = rng.random(rows.sum()) > first[rows]
        r[rows] = x[rows] * (a[rows] == 0) + rng.normal(size=rows.sum())
    return r, a, G[batch, np.arange(n)], G, batch, x


def slow_weights(weights, r, a, P, Q, M, G, batch):
    """h by loops over rows and their past: oracle."""
    n, h = len(r), np.zeros(len(r))
    for t in range(n):
        past = [s for s in range(n) if batch[s] < batch[t]]
        if weights == "uniform":
            h[t] = 1
        elif weights in ("stablevar", "minvar"):
            phi = np.mean([sum(Q[s] ** 2 / G[batch[t], s]) for s in past]) if past else 2.0
            h[t] = phi**-0.5 if weights == "stablevar" else 1 / phi
        elif past:
            g = [G[batch[t], s, a[s]] for s in past]
            value = [Q[s] @ M[s] + Q[s, a[s]] / gs * (r[s] - M[s, a[s]]) for s, gs in zip(past, g, strict=True)]
            share = [gs / P[s, a[s]] for s, gs in zip(past, g, strict=True)]
            second, first = (
                np.mean([c * v**2 for c, v in zip(share, value, strict=True)]),
                np.mean(np.multiply(share, value)),
            )
            h[t] = (second - first**2) ** -0.5
    return h


@pytest.mark.parametrize("weights", ["uniform", "stablevar", "minvar", "cadr"])
def test_adaptive_weights_are_those_of_plain_loops(weights):
    r, a, P, G, batch, x = learner(0, n=90, J=5)
    Q, M = np.tile([0.7, 0.3], (90, 1)), np.stack([0.5 * x, 0 * x], axis=1)
    e = ope.adaptive(r, a, P, Q, M, weights=weights, policies=G, batch=batch)
    h = slow_weights(weights, r, a, P, Q, M, G, batch)
    D = np.sum(Q * M, axis=1) + Q[np.arange(90), a] / P[np.arange(90), a] * (r - M[np.arange(90), a])
    value = np.sum(h * D) / np.sum(h)
    assert_allclose(e.value, value, rtol=1e-10)
    assert_allclose(e.se, math.sqrt(np.sum(h**2 * (D - value) ** 2)) / np.sum(h), rtol=1e-10)
    # seen red: the batch's own rows in the mean; σ² without importance weights


def test_weights_without_policies_follow_the_last_half():
    r, a, P, _, _, _ = learner(1, n=50)
    Q = np.tile([1.0, 0.0], (50, 1))
    phi = 1 / P[:, 0]
    h = [2**-0.5]
    for t in range(1, 50):
        rows = [2.0, *phi[:t]][(t + 1) // 2 :]
        h.append(np.mean(rows) ** -0.5)
    D = (a == 0) / P[:, 0] * r
    assert_allclose(ope.adaptive(r, a, P, Q).value, np.sum(h * D) / np.sum(h), rtol=1e-12)  # seen red: φ_t itself


@pytest.mark.parametrize("weights", ["stablevar", "minvar", "cadr"])
def test_no_weight_knows_its_own_row_or_later_ones(weights):
    r, a, P, G, batch, _ = learner(2)
    Q = np.tile([0.5, 0.5], (600, 1))
    changed = r.copy()
    changed[batch >= 3] += 7.0
    made = [ope.adaptive(one, a, P, Q, weights=weights, policies=G, batch=batch).contributions for one in (r, changed)]
    assert_array_equal(made[0].v[batch <= 3], made[1].v[batch <= 3])
    assert weights != "cadr" or np.all(made[0].v[batch == 0] == 0)


@pytest.mark.parametrize("weights", ["uniform", "stablevar", "cadr"])
def test_adaptive_intervals_cover_on_a_learners_logs(weights):
    logs, covered, Q = 200, 0, np.tile([0.0, 1.0], (600, 1))
    for k in range(logs):
        r, a, P, G, batch, _ = learner(100 + k)
        low, high = ope.adaptive(r, a, P, Q, weights=weights, policies=G, batch=batch).interval
        covered += low <= 0 <= high
    assert abs(covered / logs - 0.95) <= 5 * math.sqrt(0.95 * 0.05 / logs)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(weights="cadr"), "needs policies"),
        (dict(batch=np.zeros(60)), "go together"),
        (dict(policies=np.ones((2, 60, 2)), batch=np.r_[np.ones(30), np.zeros(30)]), "does at row 30"),
        (dict(policies=np.ones((2, 60, 3)), batch=np.zeros(60)), r"policies must be \(J, 60, 2\)"),
        (dict(kind="estimated"), "exact probabilities of all arms"),
        (dict(p_se=0.1), "takes no p_se="),
        (dict(P=np.ones(60)), r"P must be \(n, K\)"),
    ],
)
def test_what_adaptive_refuses(changed, message):
    r, a, P, _, _, _ = learner(0, n=60)
    sound = dict(P=P, Q=np.tile([0.5, 0.5], (60, 1)))
    with pytest.raises(ValueError, match=message):
        ope.adaptive(r, a, **{**sound, **changed})
    with pytest.raises(LookupError, match="did you mean 'stablevar'"):
        ope.adaptive(r, a, **sound, weights="stable")


def test_adaptive_with_rows_left_out_keeps_the_batches():
    r, a, P, G, batch, _ = learner(3)
    Q, keep = np.tile([0.5, 0.5], (600, 1)), np.arange(600) % 7 > 0
    whole = ope.adaptive(r, a, P, Q, policies=G, batch=batch, mask=keep)
    cut = ope.adaptive(r[keep], a[keep], P[keep], Q[keep], policies=G[:, keep], batch=batch[keep])
    assert (whole.value, whole.se, whole.left_out) == (cut.value, cut.se, {"mask": 86})


@pytest.mark.parametrize("names", [None, list("dcba")])
@pytest.mark.parametrize("way", ["log", "live"])
def test_a_replay_offers_the_slots_that_were_on_offer(way, names):
    """A log has places among the arms on offer, and the bandit has slots: the same row of both is the same arm."""
    rng = np.random.default_rng(0)

    def fresh(seed, **more):
        return dither.Greedy(dim=2, disjoint=4, seed=seed, **more)

    source = dither.log.Log(bandit=fresh(0, floor=1.0)) if way == "log" else dither.Live(bandit=fresh(0, floor=1.0))
    X, A, masks = np.zeros((200, 2)), np.zeros(200, dtype=int), np.zeros((200, 4), dtype=bool)
    for i in range(200):
        X[i], on = rng.normal(size=2), rng.permutation(4) < 2 + i % 2
        d = (source.decide if way == "log" else source.choose)(X[i], mask=on, arms=names)
        A[i], masks[i] = (d.arm if way == "log" else d.place), on
        source.reward(d.id, float(A[i] == 3))
    rows, bandit, by_hand = source.read(), fresh(3), fresh(3)
    of_log = ope.replay(bandit, rows, least=1 / 3, seed=1)
    of_arrays = ope.replay(by_hand, X, A, (A == 3) * 1.0, rows.p, least=1 / 3, seed=1, mask=masks)
    assert of_log.value == of_arrays.value
    assert_allclose(bandit.theta, by_hand.theta, rtol=1e-12)
    # seen red: places for slots, and all four slots chose
    with pytest.raises(ValueError, match="the bandit has 3 slots"):
        ope.replay(dither.Greedy(dim=2, disjoint=3, seed=0), rows)

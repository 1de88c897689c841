"""Models that forget, against a fit of the weighted history: one by one, in batches, slots, lockstep, files."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import dither
import oracles
from dither import testing
from dither.base import trees
from dither.models import Diagonal, Disjoint, Ridge, fading
from libraries import Library
from longer import size

NEEDS = frozenset({"logdet", "lipschitz", "perturb"})
DISCOUNTS = (0.999, 0.9, 0.5, 1e-3, 1e-200)


def weights(model, times):
    """What each of some observations counts at the end: `times` is how often each stands in the history."""
    n, W = len(times), model.window
    if model.discount < 1:  # spelt out: a weight of k is k observations, the last one counts 1
        ages = np.cumsum(times[::-1])[::-1] - times
        return np.array(
            [sum(model.discount ** (age + k) for k in range(k)) for age, k in zip(ages, times, strict=True)]
        )
    if W is None:
        return np.asarray(times, float)
    left, count = W, np.zeros(n)
    for i in reversed(range(n)):
        count[i] = min(times[i], left)
        left -= count[i]
    return count


def agrees(model, state, X, r, w, *, rtol=1e-8):
    """θ̂, widths, log det, L_t and the samples are those of a fit of rows with weights w; V stands nowhere."""
    d, lam = X.shape[1], model.lam
    theta, R = oracles.least_squares(np.sqrt(w)[:, None] * X, np.sqrt(w) * r, lam=lam)
    at = np.vstack([np.eye(d), np.random.default_rng(9).normal(size=(3, d))])
    size = np.linalg.norm(at, axis=1) * np.linalg.norm(theta)
    assert_allclose(model.mean(state, at), at @ theta, rtol=rtol, atol=rtol * max(size.max(), 1e-300))
    assert_allclose(model.width(state, at), [oracles.width(R, x) for x in at], rtol=rtol)
    logdet = 2 * np.sum(np.log(np.abs(np.diag(R)))) - d * np.log(lam)
    assert_allclose(model.logdet(state), logdet, rtol=rtol, atol=d * rtol)
    length = np.linalg.norm(X, axis=1)
    assert_allclose(model.lipschitz(state, 2.0), np.sum(w * length * (2 * length + np.abs(r))), rtol=rtol)


def learnt(model, X, r, times=None, *, own=True, needs=NEEDS):
    state = model.init(X.shape[1], needs=needs)
    for i in range(len(r)):
        weight = None if times is None else np.float64(times[i])
        state = model.update(state, X[i], r[i], weight=weight, **({"own": True} if own and model.owns else {}))
    return state


@st.composite
def forgetful(draw):
    """A model that forgets, rows, how often each counts, and the batches in which they come."""
    d, n = draw(st.integers(1, 5)), draw(st.integers(0, 40))
    lam = draw(st.sampled_from([1e-4, 0.3, 10.0]))
    how = draw(st.sampled_from([{"discount": g} for g in DISCOUNTS] + [{"window": W} for W in (1, 2, 7, 1000)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X, r = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-3, 1.0, 30.0])), rng.normal(size=n)
    times = draw(st.sampled_from([None, 1])) and rng.integers(0, 4, size=n)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return Ridge(lam, **how), X, r, times, [0, *cuts, n]


@given(forgetful())
def test_it_is_a_fit_of_the_weighted_history(case):
    model, X, r, times, cuts = case
    w = weights(model, np.ones(len(r), int) if times is None else times)
    agrees(model, learnt(model, X, r, times), X, r, w)
    quick = learnt(model, X, r, times, needs=frozenset())  # where nothing else is kept, one row goes another way
    assert_allclose(quick.theta, learnt(model, X, r, times).theta, rtol=1e-9, atol=1e-300)
    assert_allclose(quick.F, learnt(model, X, r, times).F, rtol=1e-9, atol=1e-300)
    state = model.init(X.shape[1], needs=NEEDS)
    for a, b in itertools.pairwise(cuts):
        state = model.update_many(state, X[a:b], r[a:b], weight=None if times is None else times[a:b] * 1.0)
    agrees(model, state, X, r, w)
    # seen red: λI that fades; γ on the new row; a weight that fades once; the oldest row of a window left in


@pytest.mark.parametrize("how", [{"discount": 0.9}, {"window": 2}, {"window": 7}, {"window": 50}])
def test_one_row_at_a_time_for_long(how):
    rng, model = np.random.default_rng(12), Ridge(0.3, **how)
    n = 3 * (model.window or 40) + 1
    X, r = rng.normal(size=(n, 4)), rng.normal(size=n)
    for needs in (NEEDS, frozenset()):
        state = model.init(4, needs=needs)
        for i in range(n):
            state = model.update(state, X[i], r[i], own=True)
            w = weights(model, np.ones(i + 1, int))
            theta, _ = oracles.least_squares(np.sqrt(w)[:, None] * X[: i + 1], np.sqrt(w) * r[: i + 1], lam=0.3)
            assert_allclose(state.theta, theta, rtol=1e-9, atol=1e-11)
    # seen red: -0.9 of the row that leaves


@pytest.mark.parametrize("how", [{"discount": 0.9}, {"window": 12}])
def test_a_fraction_of_an_observation_counts_as_its_share(how):
    rng = np.random.default_rng(1)
    X, r, parts = rng.normal(size=(20, 3)), rng.normal(size=20), rng.uniform(0, 3, size=20)
    model = Ridge(0.1, **how)
    whole = learnt(model, X, r, parts)
    halves = learnt(model, np.repeat(X, 2, axis=0), np.repeat(r, 2), np.repeat(parts / 2, 2))
    assert_allclose(whole.theta, halves.theta, rtol=1e-10)
    assert_allclose(model.width(whole, X), model.width(halves, X), rtol=1e-10)
    # seen red: the weight ω of the row in place of (1 - γ^ω)/(1 - γ); `gone` not kept


def test_the_prior_is_there_again_when_all_is_forgotten():
    """γⁿ is 0 in float64 long before n: the direction that is not shown again has its first width, and θ̂ = 0."""
    rng = np.random.default_rng(2)
    X, r = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    X[20:, 2] = 0.0
    for model in (Ridge(0.25, discount=0.7), Ridge(0.25, window=50), Diagonal(0.25, discount=0.7)):
        state = model.update_many(model.init(3, needs=NEEDS), X[:20], r[:20])
        assert float(model.width(state, np.eye(3))[2]) < 1.9
        for k in range(20, 3000, 20):
            state = model.update_many(state, X[k : k + 20], r[k : k + 20])
        assert 0.7**2980 == 0.0
        assert_allclose(model.width(state, np.eye(3))[2], 2.0, rtol=1e-12)
        assert_allclose(state.theta[2], 0.0, atol=1e-12)
    # seen red: V = γV + xx', whose width grows to infinity


def test_nothing_drifts_in_many_rounds():
    rng, n = np.random.default_rng(3), size(20_000, longer=100_000)
    X, r = rng.normal(size=(n, 3)), rng.normal(size=n)
    X[::1000] *= 1e6  # what comes in large goes out again
    for model, near in ((Ridge(1e-2, discount=0.99), 3000), (Ridge(1e-2, window=100), 100)):
        state = learnt(model, X[:-50], r[:-50])
        state = learnt_on(model, state, X[-50:] / 1.0, r[-50:])
        assert model.window is None or float(state.history.books[2]) < model.window
        last = slice(len(r) - near, None)
        agrees(model, state, X[last], r[last], weights(model, np.ones(near, int)))
    # seen red: the sum of a window that is never made anew; log det as a running sum


def test_what_a_huge_row_leaves_behind_is_gone_with_it():
    rng = np.random.default_rng(13)
    X, r = rng.normal(size=(111, 2)), rng.normal(size=111)
    X[60] *= 1e8  # it leaves with the last row, when the sum has been made from the rows ten rows before
    model = Ridge(1.0, window=50)
    for state in (learnt(model, X, r), learnt(model, X, r, np.ones(111))):
        agrees(model, state, X[61:], r[61:], np.ones(50))
    # seen red: a sum that is made anew after W rows alone, with `steps` that do not know what was `shown`


def learnt_on(model, state, X, r):
    for x, y in zip(X, r, strict=True):
        state = model.update(state, x, y)
    return state


@pytest.mark.parametrize("how", [{"discount": 0.9}, {"window": 6}])
@pytest.mark.parametrize(("scale", "lam"), [(1e7, 1e-4), (1e8, 1.0), (1.0, 1e-12), (1e-8, 1e-4)])
def test_no_scale_of_features_or_penalty_spoils_it(how, scale, lam):
    """Rows beyond what sums can hold beside λ, in exact rationals: the factor is made of rows or an earlier factor."""
    rng = np.random.default_rng(4)
    X, r, at = scale * rng.normal(size=(9, 3)), rng.normal(size=9), scale * rng.normal(size=(4, 3))
    X[2:] *= [1.0, 1.0, 0.0]
    model = Ridge(lam, **how)
    w = (
        [Fraction(model.discount) ** k for k in range(8, -1, -1)]
        if model.window is None
        else [int(k > 2) for k in range(9)]
    )
    m, w2 = weighted_exactly(X, r, at, w, lam=lam)
    for state in (learnt(model, X, r), model.update_many(model.init(3, needs=NEEDS), X, r)):
        known = model.rounding(state)
        assert known.omega <= 2 * fading.MOST
        assert_allclose(model.mean(state, at), m, rtol=1e-5, atol=1e-5 * np.abs(m).max())
        assert_allclose(model.width(state, at), np.sqrt(w2), rtol=1e-5)
        assert np.all(np.abs(model.width(state, at) / np.sqrt(w2) - 1) <= known.omega)
        assert np.all(np.abs(model.mean(state, at) - m) <= known.rho * np.sqrt(w2) + 1e-15 * np.abs(m))
    # seen red: `_by_sums` alone


@pytest.mark.parametrize("how", [{"discount": 0.5}, {"window": 20}])
@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_rows_of_one_direction_leave_the_prior_to_the_others(how, lam):
    """Beyond what sums can hold: the factor is made of rows or of the earlier factor, and λI is there in full."""
    model, x = Ridge(lam, **how), np.array([1e7, 1e7])
    state = learnt(model, np.tile(x, (100, 1)), np.ones(100))
    across = np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    total = float(np.sum(weights(model, np.ones(100, int))))
    wanted = [lam**-0.5, (lam + 2e14 * total) ** -0.5]
    assert_allclose(model.width(state, across)[0], wanted[0], rtol=1e-5)
    assert_allclose(np.linalg.norm(across[1] @ state.F), wanted[1], rtol=1e-5)
    known = model.rounding(state)
    assert known.omega <= 2 * fading.MOST
    assert abs(model.width(state, across)[0] / wanted[0] - 1) <= known.omega
    assert_allclose(model.mean(state, x[None]), 1.0, rtol=1e-6)
    # seen red: no (1-left) λI in the QR; sums that are factored whatever they have lost


def weighted_exactly(X, r, at, w, *, lam):
    """m and w² in rational arithmetic."""
    d, F = X.shape[1], Fraction
    Y = [[F(float(v)) for v in row] for row in X]
    V = [[sum((c * x[i] * x[j] for c, x in zip(w, Y, strict=True)), F(0)) for j in range(d)] for i in range(d)]
    for i in range(d):
        V[i][i] += F(float(lam))
    b = [sum((c * x[i] * F(float(y)) for c, x, y in zip(w, Y, r, strict=True)), F(0)) for i in range(d)]
    theta = oracles.solve(V, b)
    rows = [[F(float(v)) for v in row] for row in at]
    m = [float(sum(p * q for p, q in zip(x, theta, strict=True))) for x in rows]
    return np.array(m), np.array([float(sum(p * q for p, q in zip(x, oracles.solve(V, x), strict=True))) for x in rows])


def test_what_rounding_did_is_within_its_bound():
    """Random histories in exact rationals: the bounds hold, and are not a million times too large."""
    rng, most = np.random.default_rng(5), 0.0
    for k in range(30):
        d, n = 1 + k % 3, 12
        model = Ridge(float(10 ** rng.uniform(-6, 0)), **({"discount": 0.8} if k % 2 else {"window": 5}))
        X, r, at = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(3, d))
        X *= 10 ** rng.uniform(-2, 2, size=d)
        w = [Fraction(0.8) ** (n - 1 - i) for i in range(n)] if k % 2 else [int(i >= n - 5) for i in range(n)]
        m, w2 = weighted_exactly(X, r, at, w, lam=model.lam)
        state = learnt(model, X, r)
        known = model.rounding(state)
        off = np.abs(model.width(state, at) / np.sqrt(w2) - 1)
        assert np.all(off <= known.omega), (k, off, known)
        assert np.all(np.abs(model.mean(state, at) - m) <= known.rho * np.sqrt(w2)), (k, known)
        most = max(most, float(np.max(off) / known.omega))
    assert most > 1e-6


def test_too_long_a_row_is_refused_and_nothing_has_changed():
    for how in ({"discount": 0.9}, {"window": 5}):
        bandit = dither.LinFP(dim=2, lam=1e-80, seed=0, **how)
        bandit.update([1.0, 0.0], 1.0)
        before = {name: A.copy() for name, A in trees.leaves(bandit.state, "state").items()}
        with pytest.raises(ValueError, match="x is too long beside lam=1e-80"):
            bandit.update([1e12, 1e12], 1.0)
        for name, A in trees.leaves(bandit.state, "state").items():
            np.testing.assert_array_equal(A, before[name])
    # seen red: without `window.cleared`


def test_by_the_clock_rows_count_by_their_age_in_whatever_order_they_come():
    rng = np.random.default_rng(6)
    X, r, at = rng.normal(size=(30, 3)), rng.normal(size=30), rng.uniform(-50, 400, size=30)
    model = Ridge(0.5, half_life=20.0)
    w = 0.5 ** ((500.0 - at) / 20.0)
    one = dither.Bandit(model, dither.policies.UCB(radius="oful"), dim=3, seed=0)
    for i in rng.permutation(30):
        one.update(X[i], r[i], at=at[i])
    assert float(one.state.now) == at.max()
    one.advance(400)
    one.advance(500)
    one.advance(123)  # the past: nothing changes
    many = dither.Bandit(model, dither.policies.UCB(radius="oful"), dim=3, seed=0)
    many.update(X[:20], r[:20], at=at[:20])
    many.update(X[20:], r[20:], at=at[20:], weight=np.full(10, 1.0))
    many.advance(500.0)
    diagonal = dither.LinFP(dim=1, lam=0.5, diagonal=True, half_life=20.0, seed=0)
    diagonal.update(X[:, :1], r, at=at)
    diagonal.advance(500.0)
    for b in (one, many):
        theta, R = oracles.least_squares(np.sqrt(w)[:, None] * X, np.sqrt(w) * r, lam=0.5)
        assert_allclose(b.theta, theta, rtol=1e-9, atol=1e-12)
        assert_allclose(b.width(np.eye(3)), [oracles.width(R, x) for x in np.eye(3)], rtol=1e-9)
    assert_allclose(diagonal.theta, np.sum(w * r * X[:, 0]) / (0.5 + np.sum(w * X[:, 0] ** 2)), rtol=1e-9)
    many.advance(1e9)
    assert_allclose(many.width(np.eye(3)), 2**0.5, rtol=1e-12)
    # seen red: an early row that makes the clock go back; `advance` that fades by its time and not by the difference


def test_slots_have_a_clock_of_their_own_or_share_one():
    rng = np.random.default_rng(7)
    X, r, arm, at = rng.normal(size=(40, 2)), rng.normal(size=40), rng.integers(0, 3, size=40), np.arange(40.0)
    for how, own in (({"discount": 0.8}, True), ({"window": 4}, True), ({"half_life": 5.0}, False)):
        model = Disjoint(Ridge(0.5, **how), 3)
        timed = {} if own else {"at": at}
        many = model.update_many(model.init(2, needs=NEEDS), X, r, arm=arm, **timed)
        loop = model.init(2, needs=NEEDS)
        for i in range(40):
            loop = model.update(loop, X[i], r[i], arm=arm[i], own=True, **({} if own else {"at": at[i]}))
        for k in range(3):
            mine = np.flatnonzero(arm == k)
            w = weights(model.model, np.ones(len(mine), int)) if own else 0.5 ** ((39.0 - mine) / 5.0)
            theta, R = oracles.least_squares(np.sqrt(w)[:, None] * X[mine], np.sqrt(w) * r[mine], lam=0.5)
            for state in (loop, many):
                assert_allclose(state.theta[k], theta, rtol=1e-9, atol=1e-12)
                assert_allclose(model.width(state, X[0])[k], oracles.width(R, X[0]), rtol=1e-9)
    # seen red: `Disjoint.update` that does not advance the other slots


@pytest.mark.parametrize("how", [{"discount": 0.9}, {"window": 5}, {"half_life": 3.0}])
@pytest.mark.parametrize("library", ["numpy", "strict", "torch"])
def test_runs_in_lockstep_learn_what_they_learn_alone(how, library):
    xp = Library(library).xp
    rng, model = np.random.default_rng(8), Ridge(0.2, **how)
    X, r, weight = rng.normal(size=(20, 3, 2)), rng.normal(size=(20, 3)), rng.integers(0, 3, size=(20, 3)) * 1.0
    state = model.init(2, batch=(3,), needs=NEEDS, xp=xp)
    alone = [model.init(2, needs=NEEDS) for _ in range(3)]
    for t in range(20):
        timed = {"at": float(t)} if model.half_life else {}
        whole = {name: xp.zeros(3, dtype=xp.float64) + value for name, value in timed.items()}
        state = model.update(state, *(xp.asarray(A[t]) for A in (X, r)), weight=xp.asarray(weight[t]), **whole)
        one = {name: np.float64(value) for name, value in timed.items()}
        alone = [model.update(s, X[t, i], r[t, i], weight=weight[t, i], **one) for i, s in enumerate(alone)]
    for i in range(3):
        for ask in (lambda s: s.theta, lambda s: s.F, model.logdet, lambda s: model.lipschitz(s, 1.0)):
            found = np.asarray(ask(state)[i, ...])
            assert_allclose(found, ask(alone[i]), rtol=1e-9, atol=1e-12)
    # seen red: the sums of all runs under one count of rows


def test_the_noise_on_rewards_counts_as_their_rows_do():
    rng = np.random.default_rng(10)
    X, r = rng.normal(size=(25, 3)), rng.normal(size=25)
    for model in (Ridge(0.3, discount=0.8), Ridge(0.3, window=2), Ridge(0.3, half_life=1e9)):
        state = model.init(3, needs=NEEDS)
        state = model.update_many(state, X, r, **({"at": np.zeros(25)} if model.half_life else {}))
        w = weights(model, np.ones(25, int))
        S = (w[:, None] * X).T @ X
        inverse = np.linalg.inv(S + 0.3 * np.eye(3))
        found = model.perturb(state, np.eye(3, 6))  # a row for each of d standard normals
        assert_allclose(found.T @ found, inverse @ S @ inverse, rtol=1e-8, atol=1e-10)
    # seen red: the root of V in place of that of Σ ω xx'


def test_in_a_window_the_history_is_that_of_its_rows():
    """So LinPHE of its own paper perturbs what a bandit would that had learnt the last W observations alone."""
    rng = np.random.default_rng(11)
    X, r, times = rng.integers(0, 2, size=(60, 2)) * 1.0, rng.random(60), rng.integers(0, 3, size=60)
    model, plain = Ridge(0.3, window=14), Ridge(0.3)
    w = weights(model, times)
    state = learnt(model, X, r, times)
    alone = plain.init(2, needs=frozenset({"history"}))
    for i in np.flatnonzero(w):
        alone = plain.update(alone, X[i], r[i], weight=w[i])
    found, wanted = model.history(state), plain.history(alone)
    n = int(wanted.rows)
    order = np.lexsort(wanted.X[:n].T[::-1])
    assert int(found.rows) == n == len(found.X)
    for a, b in zip(found[:3], wanted[:3], strict=True):
        assert_allclose(a, b[:n][order], rtol=1e-12)
    many = model.update_many(model.init(2, batch=(2,), needs=NEEDS), np.stack([X, X[::-1]]), np.stack([r, r[::-1]]))
    pair = model.history(many)
    for i, part in enumerate((X[-14:], X[:14])):
        own, count = np.unique(part, axis=0, return_counts=True)
        assert_allclose(pair.X[i, : len(own)], own)
        assert_allclose(pair.count[i, : len(own)], count)
    assert model.history(model.init(2)).rows == 0
    bandit = dither.LinPHE(dim=2, preset="own_paper", window=14, seed=0)
    bandit.update(X, r)
    assert bandit.choose(np.eye(2)).arm in (0, 1)
    with pytest.raises(TypeError, match="history"):
        dither.LinPHE(dim=2, preset="own_paper", discount=0.9)
    # seen red: rows that have left the window; the part of the oldest row that has left


@pytest.mark.parametrize(
    "model",
    [
        Ridge(0.5, discount=0.7),
        Ridge(0.5, window=3),
        Ridge(0.5, half_life=2.0),
        Diagonal(0.5, discount=0.7),
        Diagonal(0.5, half_life=2.0),
        Disjoint(Ridge(0.5, discount=0.7), 3),
        Disjoint(Ridge(0.5, window=1), 3),
        Disjoint(Ridge(0.5, half_life=2.0), 3),
    ],
    ids=repr,
)
def test_it_keeps_the_rules_of_models(model):
    late = {} if model.half_life is not None else {"order": "what came last counts most"}
    testing.check_model(model, expected_failed_checks=late)


def test_settings_that_make_no_sense_are_refused():
    for wrong, words in (
        ({"discount": 0}, "discount must be above 0"),
        ({"discount": 1.01}, r"discount must lie in \[0, 1\]"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"window": 2.5}, "window must be a whole number"),
        ({"half_life": -1.0}, "half_life must be a finite number above 0"),
        ({"discount": 0.9, "window": 3}, "forgets in one way, got discount=0.9 and window=3"),
    ):
        with pytest.raises(ValueError, match=words):
            dither.LinFP(dim=2, **wrong)
    with pytest.raises(ValueError, match=r"keeps no rows.* discount=0.9 remembers"):
        dither.LinFP(dim=2, diagonal=True, window=10)
    with pytest.raises(TypeError, match="history"):
        dither.LinPHE(dim=2, preset="own_paper", discount=0.9)
    clock, plain = dither.LinFP(dim=2, half_life=3.0, seed=0), dither.LinFP(dim=2, seed=0)
    with pytest.raises(TypeError, match="pass at="):
        clock.update([1.0, 0.0], 1.0)
    for call in (lambda: plain.update([1.0, 0.0], 1.0, at=3), lambda: plain.advance(3)):
        with pytest.raises(TypeError, match="has no clock"):
            call()
    for bad in (math.nan, math.inf, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="at"):
            clock.update([1.0, 0.0], 1.0, at=bad)
    assert clock.t == plain.t == 1


def test_a_radius_counts_what_is_not_forgotten():
    for model, seen in ((Ridge(discount=0.9), 10.0), (Ridge(window=7), 7.0), (Disjoint(Ridge(window=7), 3), 21.0)):
        assert_allclose(model.seen(10_000), seen, rtol=1e-9)
        assert model.seen(1) == 1.0
    assert Ridge().seen(50) == Ridge(half_life=2.0).seen(50) == 50
    spans = [dither.LinUCB(dim=2, seed=0, preset="paper", **how) for how in ({}, {"discount": 0.9})]
    radii = [dither.policies.optimism.radius(b.policy, b.model, b.state, 10_000, d=2) for b in spans]
    assert_allclose(radii[1], dither.theory.ucb(10.0, d=2, delta=1e-4), rtol=1e-12)
    assert radii[1] < radii[0]


def test_specs_sweeps_files_and_simulations_take_the_settings(tmp_path):
    env = dither.envs.Abrupt(dither.envs.Linear(dim=3, arms=5), rounds=50)
    regret = {}
    results = dither.simulate(env, ["LinFP", "LinFP:discount=0.9", "LinFP:window=20"], runs=8, rounds=150, seed=0)
    for name, curve in zip(results.algorithms, results.regret, strict=True):
        regret[name] = float(curve[:, -1].mean())
    assert max(regret["LinFP:discount=0.9"], regret["LinFP:window=20"]) < regret["LinFP"]
    for how in ({"discount": 0.9}, {"window": 4}, {"half_life": 5.0}):
        a = dither.LinFP(dim=2, seed=0, disjoint=3, **how)
        timed = {"at": 3.0} if "half_life" in how else {}
        for k in range(9):
            a.update([1.0, k], 1.0, arm=k % 3, **timed)
        a.save(tmp_path / "a.npz")
        b = dither.load(tmp_path / "a.npz")
        assert repr(a.model) == repr(b.model)
        for one in (a, b):
            one.update([0.5, 1.0], 0.0, arm=1, **timed)
        for name, A in trees.leaves(a.state, "state").items():
            np.testing.assert_array_equal(A, trees.leaves(b.state, "state")[name])


def test_a_file_whose_rows_cannot_be_is_refused():
    model = Ridge(window=3)
    state = model.update(model.init(2), np.ones(2), np.float64(1.0))
    rows = state.history
    for bad in (rows._replace(places=rows.places + 1000), rows._replace(count=-rows.count)):
        with pytest.raises(ValueError, match="its history"):
            model.check(state._replace(history=bad))
    with pytest.raises(ValueError, match="no sum of squares"):
        model.check(state._replace(A=-state.A))

"""Ridge, Diagonal and Disjoint against least squares on the whole history, exact rationals and dense forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from dither.models import Diagonal, Disjoint, Ridge
from properties import same_arrays

ALL = frozenset({"mean", "width", "sample", "logdet", "lipschitz", "perturb", "gram_width", "history", "predict"})


def data(n, d, *, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(n, d)), rng.normal(size=n), scale * rng.normal(size=(4, d))


def fold(model, X, r, *, needs=frozenset(), **settings):
    """init, then update pair by pair."""
    state = model.init(X.shape[-1], needs=needs)
    for i in range(len(r)):
        state = model.update(state, X[i], r[i], **{k: v[i] for k, v in settings.items()})
    return state


def inverse(state):
    """V⁻¹, whatever factor of it is kept."""
    return state.F @ np.swapaxes(state.F, -1, -2)


def same(a, b, *, rtol=1e-9):
    """Two ridge states say the same: θ̂, V⁻¹ and log det; the factor of V⁻¹ is free up to a rotation."""
    assert_allclose(a.theta, b.theta, rtol=rtol, atol=rtol * np.max(np.abs(b.theta), initial=1e-300))
    assert_allclose(inverse(a), inverse(b), rtol=rtol, atol=rtol * np.max(np.abs(inverse(b))))
    assert_allclose(a.logdet, b.logdet, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("n", "d", "lam"),
    [(0, 3, 1e-4), (1, 3, 0.3), (50, 3, 10.0), (5, 1, 2.5), (40, 7, 1e-4), (2, 6, 1.0), (30, 4, 1e-10)],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_ridge_is_least_squares_on_the_whole_history(n, d, lam, at_once):
    X, r, at = data(n, d)
    model = Ridge(lam)
    init = model.init(d, needs=frozenset({"logdet"}))
    state = model.update_many(init, X, r) if at_once else fold(model, X, r, needs={"logdet"})
    theta, R = oracles.least_squares(X, r, lam=lam)
    assert_allclose(state.theta, theta, rtol=1e-8, atol=1e-10)
    assert_allclose(model.mean(state, at), at @ theta, rtol=1e-8, atol=1e-10)
    assert_allclose(model.width(state, at), [oracles.width(R, x) for x in at], rtol=1e-8)
    logdet = 2 * np.sum(np.log(np.abs(np.diag(R)))) - d * np.log(lam)
    assert_allclose(model.logdet(state), logdet, rtol=1e-9, atol=1e-9)
    # seen red: F starting at I/λ; s without the 1; the step of F over s alone


@pytest.mark.parametrize(
    ("scale", "lam", "rtol"),
    [(1e8, 1.0, 1e-6), (1e8, 1e16, 1e-11), (1e-8, 1e-4, 1e-11), (1.0, 1e-10, 1e-9), (1e7, 1e-4, 1e-6)],
)
def test_no_scale_of_features_or_penalty_spoils_it(scale, lam, rtol):
    X, r, at = data(12, 3, scale=scale)
    m, w2 = oracles.exact(X, r, at, lam=lam)
    model = Ridge(lam)
    for state in (fold(model, X, r), model.update_many(model.init(3), X, r)):
        assert_allclose(model.mean(state, at), m, rtol=rtol)
        assert_allclose(model.width(state, at), np.sqrt(w2), rtol=rtol)


def test_directions_never_seen_keep_their_width_beside_huge_ones():
    model, x = Ridge(1e-4), np.array([1e3, 1e3, 0.0])
    state = fold(model, np.tile(x, (300, 1)), np.full(300, 2.0))
    at = np.array([[1.0, 1, 0], [1, -1, 0], [0, 0, 1], [1, 0, 0]])
    m, w2 = oracles.exact(np.tile(x, (300, 1)), np.full(300, 2.0), at, lam=1e-4)
    assert_allclose(model.mean(state, at), m, rtol=1e-8, atol=1e-9)
    assert_allclose(model.width(state, at), np.sqrt(w2), rtol=1e-8)


@pytest.mark.parametrize(("lam", "n"), [(1e-4, 20_000), (1.0, 5_000)])
def test_a_long_stream_drifts_nowhere(lam, n):
    X, r, at = data(n, 5, seed=1)
    model = Ridge(lam)
    state = fold(model, X, r)
    theta, R = oracles.least_squares(X, r, lam=lam)
    assert_allclose(state.theta, theta, rtol=1e-10, atol=1e-13)
    assert_allclose(model.width(state, at), [oracles.width(R, x) for x in at], rtol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 11])
def test_n_updates_at_once_are_n_in_turn(n):
    X, r, _ = data(n, 3)
    weight = np.random.default_rng(2).uniform(0, 3, size=n)
    model = Ridge(0.1)
    before = fold(model, *data(4, 3, seed=5)[:2], needs=ALL)
    many = model.update_many(before, X, r, weight=weight)
    one = before
    for x, y, v in zip(X, r, weight, strict=True):
        one = model.update(one, x, y, weight=v)
    same(many, one)
    same_arrays(many.extra, one.extra, rtol=1e-12)


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5)])
def test_a_weight_counts_observations(model):
    X, r, at = data(6, 3)
    twice = fold(model, np.repeat(X, 2, axis=0), np.repeat(r, 2), needs=ALL - {"history"})
    weighted = fold(model, X, r, weight=np.full(6, 2.0), needs=ALL - {"history"})
    assert_allclose(weighted.theta, twice.theta, rtol=1e-11)
    assert_allclose(model.width(weighted, at), model.width(twice, at), rtol=1e-11)
    assert_allclose(model.logdet(weighted), model.logdet(twice), rtol=1e-11)
    assert_allclose(model.lipschitz(weighted, 2.0), model.lipschitz(twice, 2.0), rtol=1e-11)
    nothing = model.update(twice, X[0], r[0], weight=np.array(0.0))
    assert_allclose(nothing.theta, twice.theta, rtol=1e-14)
    assert_allclose(model.width(nothing, at), model.width(twice, at), rtol=1e-14)


@pytest.mark.parametrize("model", [Ridge(0.2), Diagonal(0.2), Disjoint(Ridge(0.2), 3)])
@pytest.mark.parametrize("batch", [(1,), (4,), (2, 3)])
def test_leading_axes_are_a_loop(model, batch):
    rng, d = np.random.default_rng(3), 3
    disjoint = isinstance(model, Disjoint)
    needs = ALL - {"history"}
    steps = [(rng.normal(size=(*batch, d)), rng.normal(size=batch), rng.integers(3, size=batch)) for _ in range(7)]
    at = rng.normal(size=(*batch, d) if disjoint else (*batch, 5, d))
    eta = rng.normal(size=(*batch, model.ambient(d)))
    more = rng.normal(size=(*batch, 2 * model.ambient(d)))
    state = model.init(d, batch=batch, needs=needs)
    for x, r, arm in steps:
        state = model.update(state, x, r, **({"arm": arm} if disjoint else {}))
    for i in np.ndindex(batch):
        own = model.init(d, needs=needs)
        for x, r, arm in steps:
            own = model.update(own, x[i], r[i], **({"arm": arm[i]} if disjoint else {}))
        assert_allclose(model.mean(state, at)[i], model.mean(own, at[i]), rtol=1e-12)
        assert_allclose(model.width(state, at)[i], model.width(own, at[i]), rtol=1e-12)
        assert_allclose(model.sample(state, eta)[i], model.sample(own, eta[i]), rtol=1e-12)
        assert_allclose(model.perturb(state, more)[i], model.perturb(own, more[i]), rtol=1e-9, atol=1e-12)
        assert_allclose(model.logdet(state)[i], model.logdet(own), rtol=1e-12)
        assert_allclose(model.lipschitz(state, 2.0)[i], model.lipschitz(own, 2.0), rtol=1e-12)


def test_batched_updates_of_many_rows_are_a_loop():
    rng, model = np.random.default_rng(4), Ridge(0.3)
    X, r, weight = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 6)), rng.uniform(size=(4, 6))
    many = model.update_many(model.init(3, batch=(4,), needs=ALL), X, r, weight=weight)
    for i in range(4):
        own = model.update_many(model.init(3, needs=ALL), X[i], r[i], weight=weight[i])
        assert_allclose(many.theta[i], own.theta, rtol=1e-12)
        assert_allclose(inverse(many)[i], inverse(own), rtol=1e-12)
        assert_allclose(many.logdet[i], own.logdet, rtol=1e-12)


def dense(x, arm, *, slots):
    """The Kd-vector with x in the block of `arm`."""
    out = np.zeros(slots * len(x))
    out[arm * len(x) : (arm + 1) * len(x)] = x
    return out


@pytest.mark.parametrize("inner", [Ridge, Diagonal])
@pytest.mark.parametrize("at_once", [False, True])
def test_disjoint_slots_are_one_model_on_block_vectors(inner, at_once):
    d, K, n = 3, 4, 25
    X, r, at = data(n, d)
    rng = np.random.default_rng(6)
    arm, weight = rng.integers(K - 1, size=n), rng.uniform(0.1, 2, size=n)  # the last slot stays empty
    slots, whole = Disjoint(inner(0.7), K), inner(0.7)
    rows = np.array([dense(x, a, slots=K) for x, a in zip(X, arm, strict=True)])
    needs = ALL - {"history"}
    if at_once:
        small = slots.update_many(slots.init(d, needs=needs), X, r, arm=arm, weight=weight)
    else:
        small = fold(slots, X, r, needs=needs, arm=arm, weight=weight)
    large = fold(whole, rows, r, needs=needs, weight=weight)
    for x in at:
        arms = np.array([dense(x, k, slots=K) for k in range(K)])
        assert_allclose(slots.mean(small, x), whole.mean(large, arms), rtol=1e-11, atol=1e-13)
        assert_allclose(slots.width(small, x), whole.width(large, arms), rtol=1e-11)
        assert_allclose(slots.scores(small.theta, x), whole.scores(large.theta, arms), rtol=1e-11, atol=1e-13)
    assert slots.ambient(d) == K * d
    assert_allclose(slots.flat(small), large.theta, rtol=1e-11, atol=1e-13)
    assert_allclose(slots.logdet(small), whole.logdet(large), rtol=1e-11)
    assert_allclose(slots.lipschitz(small, 2.0), whole.lipschitz(large, 2.0), rtol=1e-11)
    # Laws of the draws: a linear map of normals, so its matrix times its transpose is the covariance.
    for draw, size in (("sample", K * d), ("perturb", 2 * K * d)):
        A = np.array([getattr(slots, draw)(small, e).reshape(-1) for e in np.eye(size)]).T
        B = np.array([getattr(whole, draw)(large, e) for e in np.eye(size)]).T
        assert_allclose(A @ A.T, B @ B.T, rtol=1e-9, atol=1e-12)
    # seen red: `_slot` reading slot 0 whatever the arm; `ambient` d


def test_diagonal_is_its_formula():
    X, r, at = data(9, 4)
    model = Diagonal(0.3)
    state = fold(model, X, r)
    v = 0.3 + np.array([sum(x[j] ** 2 for x in X) for j in range(4)])
    b = np.array([sum(y * x[j] for x, y in zip(X, r, strict=True)) for j in range(4)])
    assert_allclose(state.theta, b / v, rtol=1e-12)
    assert_allclose(model.width(state, at), [np.sqrt(sum(x**2 / v)) for x in at], rtol=1e-12)
    assert_allclose(model.logdet(state), np.log(np.prod(v / 0.3)), rtol=1e-12)
    A = np.array([model.sample(state, e) for e in np.eye(4)])
    assert_allclose(A @ A.T, np.diag(1 / v), rtol=1e-12)
    B = np.array([model.perturb(state, e) for e in np.eye(8)])
    assert_allclose(B.T @ B, np.diag((v - 0.3) / v**2), rtol=1e-12, atol=1e-15)
    # seen red: λ kept in Σ x²


def test_diagonal_is_ridge_where_features_never_meet():
    X = np.eye(4)[np.random.default_rng(0).integers(4, size=30)] * 1.7
    r = np.random.default_rng(1).normal(size=30)
    a, b = Diagonal(0.4), Ridge(0.4)
    assert_allclose(fold(a, X, r).theta, fold(b, X, r).theta, rtol=1e-12, atol=1e-15)
    assert_allclose(a.width(fold(a, X, r), np.eye(4)), b.width(fold(b, X, r), np.eye(4)), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 4, 5, 6, 23, 200])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_gram_factor_is_of_the_data_without_the_penalty(n, rank):
    rng, d = np.random.default_rng(7), 5
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    model = Ridge(1e-4)
    state = fold(model, X, np.zeros(n), needs=frozenset({"perturb"}))
    G, recent, fill = state.extra.gram
    S = X.T @ X
    assert_allclose(G.T @ G + recent.T @ recent, S, rtol=1e-10, atol=1e-12 * max(1, n))
    assert fill == n % d
    B = np.array([model.perturb(state, e) for e in np.eye(2 * d)]).T
    V = S + 1e-4 * np.eye(d)
    assert_allclose(V @ (B @ B.T) @ V, S, rtol=1e-6, atol=1e-6 * max(1, n))
    # seen red: λI in the first factor; `recent` not cleared after the QR


def test_history_keeps_each_arm_once():
    arms = np.array([[1.0, 0], [0, 1], [1, 1]])
    shown, r = np.random.default_rng(0).integers(3, size=100), np.random.default_rng(1).random(100)
    history = fold(Ridge(1.0), arms[shown], r, needs=frozenset({"history"})).extra.history
    assert history.rows == 3
    for x, count, total in zip(history.X[:3], history.count, history.total, strict=False):
        own = shown == np.flatnonzero((arms == x).all(axis=1))[0]
        assert count == own.sum()
        assert_allclose(total, r[own].sum(), rtol=1e-12)


def test_a_history_grows_with_distinct_arms():
    X, r, _ = data(100, 3)
    history = fold(Ridge(1.0), X, r, needs=frozenset({"history"})).extra.history
    assert history.rows == 100
    assert_array_equal(history.X[:100], X)
    assert_array_equal(history.total[:100], r)
    assert not history.X[100:].any()
    assert not history.count[100:].any()


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5), Disjoint(Ridge(0.5), 3)])
@pytest.mark.parametrize("S", [0.5, 3.0])
def test_the_losses_are_as_steep_as_they_say(model, S):
    X, r, _ = data(30, 3)
    weight, arm = np.random.default_rng(8).uniform(0, 2, size=30), np.arange(30) % 3
    slot = {"arm": arm} if isinstance(model, Disjoint) else {}
    state = fold(model, X, r, needs=frozenset({"lipschitz"}), weight=weight, **slot)
    # At the worst θ of each observation, which is along its x: |x'θ - r| ‖x‖, with x'θ = ±S‖x‖.
    worst = [
        v * np.linalg.norm(x) * max(abs(s * x @ x / np.linalg.norm(x) - y) for s in (-S, S))
        for x, y, v in zip(X, r, weight, strict=True)
    ]
    assert_allclose(model.lipschitz(state, S), sum(worst), rtol=1e-12)
    # seen red: Σ ‖x‖ (S + |r|)


@pytest.mark.parametrize("model", [Ridge(0.5), Diagonal(0.5)])
def test_the_width_in_the_gram_matrix_is_the_width(model):
    X, r, at = data(12, 3)
    state = fold(model, X, r, needs=frozenset({"gram_width"}))
    assert_array_equal(model.gram_width(state, at), model.width(state, at))
    assert_array_equal(model.predict(state, at), model.mean(state, at))


def test_only_what_was_asked_for_is_kept():
    state = fold(Ridge(1.0), *data(20, 3)[:2])
    assert state.extra is None
    assert state.logdet is None


def test_what_would_take_too_much_memory_is_refused_before_it_is_taken():
    with pytest.raises(ValueError, match=r"dim=1000000.*7450\.6 GiB"):  # 8 d² bytes
        Ridge().init(1_000_000)
    with pytest.raises(ValueError, match="diagonal=True"):
        Ridge().init(3000, batch=(100,))
    with pytest.raises(ValueError, match="GiB"):
        Disjoint(Ridge(), 1000).init(2000)
    with pytest.raises(ValueError, match="GiB"):
        Ridge(memory=799).init(10)
    assert Ridge(memory=800).init(10).F.shape == (10, 10)
    assert Diagonal().init(1_000_000).theta.shape == (1_000_000,)


def test_a_leverage_that_float64_cannot_resolve_is_refused():
    model, x = Ridge(1e-4), np.array([1.0, 2.0, 3.0])
    state = model.init(3)
    for long in (1e9, 1e12, 1e100):
        with pytest.raises(ValueError, match="lam"):
            model.update(state, long * x, 1.0)
        with pytest.raises(ValueError, match="lam"):
            model.update_many(state, np.array([x, long * x]), np.ones(2))
    # The longest that is taken keeps three digits in the direction across it.
    state = model.update(state, 2e7 * x, 1.0)
    at = np.array([[3.0, 0.0, -1.0], [2e7, 4e7, 6e7]])
    m, w2 = oracles.exact([2e7 * x], [1.0], at, lam=1e-4)
    assert_allclose(model.mean(state, at), m, atol=1e-6)
    assert_allclose(model.width(state, at), np.sqrt(w2), rtol=1e-3)


@pytest.mark.parametrize("model", [Ridge(0.2), Diagonal(0.2), Disjoint(Ridge(0.2), 3)])
def test_a_state_is_never_written_to(model):
    X, r, _ = data(8, 3)
    disjoint = isinstance(model, Disjoint)
    needs = ALL & model.abilities
    state = fold(model, X, r, needs=needs, **({"arm": np.arange(8) % 3} if disjoint else {}))

    def freeze(part):
        for array in part:
            if isinstance(array, tuple):
                freeze(array)
            elif isinstance(array, np.ndarray):
                array.flags.writeable = False

    freeze(state)
    for kept in (X, r):
        kept.flags.writeable = False
    settings = {"arm": np.array(1)} if disjoint else {}
    for _ in range(5):
        model.update(state, X[0], r[0], **settings)
    model.update_many(state, X, r, **({"arm": np.arange(8) % 3} if disjoint else {}))


@pytest.mark.parametrize("model", [Ridge, Diagonal])
@pytest.mark.parametrize("lam", [0, -1.0, np.nan, np.inf, True, "1", None])
def test_a_penalty_is_a_finite_number_above_zero(model, lam):
    with pytest.raises(ValueError, match="lam"):
        model(lam)


@pytest.mark.parametrize("slots", [0, -1, 1.5, True, None])
def test_slots_are_a_whole_number(slots):
    with pytest.raises(ValueError, match="slots"):
        Disjoint(Ridge(), slots)


@pytest.mark.parametrize("inner", [Ridge(0.7), Diagonal(0.7)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_state_given_up_may_be_overwritten_and_nothing_else(inner, batch):
    rng, model = np.random.default_rng(0), Disjoint(inner, 4)
    needs = ALL - {"history"}
    kept, given = model.init(3, batch=batch, needs=needs), model.init(3, batch=batch, needs=needs)
    for _ in range(20):
        x, r, arm = rng.normal(size=(*batch, 3)), rng.normal(size=batch), rng.integers(4, size=batch)
        kept, given = model.update(kept, x, r, arm=arm), model.update(given, x, r, arm=arm, own=True)
        same_arrays(given, kept)
    # seen red: two fields of a fresh state that are one array


def test_no_observations_at_once_change_nothing():
    model = Ridge(lam=0.3)
    state = model.update(model.init(3), np.array([1.0, 2.0, -1.0]), np.float64(0.5))
    after = model.update_many(state, np.empty((0, 3)), np.empty(0))
    same_arrays(after, state, rtol=1e-14)  # seen red: the signs that QR leaves open, which turn F's columns


@pytest.mark.parametrize("long", [1e2, 1e5, 1e7])
def test_many_long_rows_at_once_are_as_exact_as_one_by_one(long):
    r = long * 0.2 * (1 + 0.1 * (np.arange(300) % 3))  # θ̂ = (0.11, 0.11) but for λ
    X = np.full((300, 2), long)
    model = Ridge(1e-4)
    state = model.update_many(model.init(2), X, r)
    assert_allclose(state.theta, [0.11, 0.11], rtol=1e-6)  # seen red: QR of all rows, off by 1e-4 at 1e6
    at = np.array([[1.0, -1.0], [1.0, 1.0]])
    m, w2 = oracles.exact(X, r, at, lam=1e-4)
    assert_allclose(model.mean(state, at), m, atol=1e-6)
    assert_allclose(model.width(state, at), np.sqrt(w2), rtol=1e-6)


def test_rows_that_grow_beyond_what_float64_resolves_are_refused():
    model = Ridge(1.0)
    state = model.init(2)
    for k in (4, 8):
        state = model.update(state, np.full(2, 10.0**k), 0.3 * 10.0**k)
    with pytest.raises(ValueError, match="too long"):  # seen red: a bound on each row alone, which growth evades
        model.update(state, np.full(2, 1e12), 0.3e12)


def test_the_precision_of_lam_is_not_that_of_the_arithmetic():
    assert_allclose(Ridge(np.float32(2)).init(1).F, 2**-0.5, rtol=1e-15)
    assert_allclose(Diagonal(np.float16(3)).init(1).v, 3.0, rtol=1e-15)

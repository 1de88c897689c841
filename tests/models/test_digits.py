"""The running bound on what rounding does to a ridge regression, against the exact answer in 50 digits."""

from types import SimpleNamespace

import array_api_strict
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither.models import Diagonal, Ridge, digits

EXACT = mpmath.mp.clone()
EXACT.dps = 50


def data(rng):
    """Histories that lose digits: short λ, equal columns, ±1 codes, one direction seen often, raw units."""
    d, n = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 8, 20]))
    lam, arms = float(10.0 ** rng.choice([-10, -8, -4, -2, 0, 3])), rng.integers(0, d, n)
    X = {
        0: lambda: rng.normal(size=(n, d)),
        1: lambda: np.linalg.qr(rng.normal(size=(d, d)))[0][rng.integers(0, d, n)],
        2: lambda: rng.choice([-1.0, 1.0], size=(n, d)),
        3: lambda: rng.normal(size=(n, 1)) + 1e-3 * rng.normal(size=(n, d)),
        4: lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d),
        6: lambda: rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4, 4, size=(n, 1)),
        5: lambda: np.linalg.qr(rng.normal(size=(d, d)))[0][np.where(rng.random(n) < 0.9, 0, d - 1)],
        7: lambda: np.column_stack([1e9 + 1e6 * rng.random(n), 1e-6 * rng.normal(size=n), np.eye(d)[:, arms].T]),
        8: lambda: np.column_stack([1e8 * np.exp(rng.normal(size=n)), rng.normal(size=(n, d))]),
    }[int(rng.integers(9))]()
    return X, 1e3 * (rng.random() < 0.2) + rng.normal(size=n), lam


def exact(model, X, r, lam):
    """V and θ̂ of the formula, without rounding."""
    d = X.shape[1]
    V, b = lam * EXACT.eye(d), EXACT.zeros(d, 1)
    for x, paid in zip(X.tolist(), r.tolist(), strict=True):
        x = EXACT.matrix(x)
        V, b = V + x * x.T, b + x * paid
    if isinstance(model, Diagonal):
        V = EXACT.diag([V[i, i] for i in range(d)])
    return V, EXACT.lu_solve(V, b)


@pytest.mark.parametrize("kind", [Ridge, Diagonal])
def test_the_bound_holds(kind):
    rng, within, held = np.random.default_rng(0), [], 0
    while held < 150:
        X, r, lam = data(rng)
        model = kind(lam=lam)
        state = model.init(X.shape[1])
        try:
            if rng.random() < 0.3:
                state = model.update_many(state, X, r)
            else:
                for x, paid in zip(X, r, strict=True):
                    state = model.update(state, x, paid)
        except ValueError:
            continue  # refused: nothing is claimed
        held += 1
        V, theta = exact(model, X, r, lam)
        asked = np.concatenate([X[:3], np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]])
        known = model.rounding(state)
        rho, omega = float(np.max(known.rho)), float(np.max(known.omega))
        for x, m, w in zip(asked, model.mean(state, asked), model.width(state, asked), strict=True):
            column = EXACT.matrix(x.tolist())
            true_w = EXACT.sqrt((column.T * EXACT.lu_solve(V, column))[0])
            assert abs((column.T * theta)[0] - EXACT.mpf(float(m))) <= rho * true_w
            assert abs(true_w - EXACT.mpf(float(w))) <= omega * true_w
            assert true_w <= float(np.max(model.reach(state))) * np.linalg.norm(x) * (1 + 1e-6)
            within.append(float(abs((column.T * theta)[0] - EXACT.mpf(float(m))) / (rho * true_w)) if rho else 0.0)
    assert max(within) > 1e-3  # a bound that no error comes near would make lines one that are two
    # seen red: without D (what the factor lost), at λ = 1e-8; without f, the last line


def learnt(model, state, X, r, *, many):
    if many:
        return model.update_many(state, X, r)
    for x, paid in zip(X, r, strict=True):
        state = model.update(state, x, paid)
    return state


def in_units(state, t, *, lam):
    """The first state of a penalty λ Σ t_i² θ_i², which is λ‖θ‖² of columns that are divided by t."""
    if not hasattr(state, "lost"):
        return state._replace(v=lam * t * t)
    v, c, A, B = np.split(state.lost[digits.SCALARS :], 4)
    parts = [state.lost[: digits.SCALARS], v * t * t, c / t / t, A * t * t, B * t]
    return state._replace(F=state.F / t[:, None], lost=np.concatenate(parts))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", [Ridge, Diagonal])
def test_the_bound_does_not_depend_on_the_units_of_columns(kind, many):
    """Powers of two round nothing, so ρ and ω are the same to the bit."""
    rng, t = np.random.default_rng(0), 2.0 ** np.array([0, 30, -20, 27])
    model, X, r = kind(lam=2.0**-13), rng.normal(size=(70, 4)), rng.normal(size=70)
    plain = learnt(model, model.init(4), X, r, many=many)
    raw = learnt(model, in_units(model.init(4), t, lam=model.lam), X * t, r, many=many)
    assert np.array_equal(raw.theta * t, plain.theta)
    assert model.rounding(raw) == model.rounding(plain)
    # seen red: ‖θ̂‖² in place of Σ V_ii θ̂_i²; Σ V_ii Σ (V⁻¹)_ii in place of κ; the g of the traces


@pytest.mark.parametrize("column", ["minutes", "log-normal", "small"])
def test_what_a_raw_column_costs_at_first_is_not_paid_in_every_row(column):
    """The first long row beside a short λ costs F digits indeed. The later ones are no longer than those before."""
    rng, n = np.random.default_rng(0), 2000
    draw = {"minutes": lambda: 2.8e7 + np.arange(n), "log-normal": lambda: 1e7 * np.exp(rng.normal(size=n))}
    raw = draw.get(column, lambda: 1e-6 * rng.normal(size=n))()
    X, r = np.column_stack([raw, np.eye(3)[rng.integers(0, 3, n)]]), rng.normal(size=n)
    model = Ridge(lam=1e-4)
    early = learnt(model, model.init(4), X[:20], r[:20], many=False)
    late = learnt(model, early, X[20:], r[20:], many=False)
    assert model.rounding(late).rho <= 3 * model.rounding(early).rho
    # seen red: the bound of traces, which was 30 times that of 20 rows for minutes


@pytest.mark.parametrize("algorithm", ["Greedy", "LinUCB"])
def test_arms_six_widths_apart_are_no_tie_beside_a_raw_column(algorithm):
    """Minutes since 1970 beside one-hot arms, whose noise cancels, so that arms are six widths apart."""
    n = 6000
    arm, minutes = np.arange(n) % 3, 2.8e7 + np.arange(n)
    X, r = np.column_stack([minutes, np.eye(3)[arm]]), 0.14 * arm + 200 * (-1.0) ** (np.arange(n) // 3)
    bandit = dither.ALGORITHMS[algorithm](dim=4, lam=1e-4, seed=0)
    for x, paid in zip(X, r, strict=True):
        bandit.update(x, paid)
    arms = np.column_stack([np.full(3, minutes[-1]), np.eye(3)])
    w = bandit.model.width(bandit.state, arms)
    assert_allclose(np.diff(bandit.model.mean(bandit.state, arms)) / w[0], 6, rtol=0.05)
    assert bandit.propensities(arms).tolist() == [0, 0, 1]
    assert bandit.choose(arms).arm == 2
    # seen red: the bound of traces, which is five widths


def test_runs_at_once_have_the_bounds_of_each_alone():
    rng = np.random.default_rng(1)
    model, xp = Ridge(lam=1e-6), array_api_strict
    X, r = rng.normal(size=(3, 90, 4)) * 10.0 ** np.array([4.0, 0, -1, 3]), rng.normal(size=(3, 90))
    X[:, :8] *= 0.1  # so that what is lost there counts for less when V has grown
    states, strict = model.init(4, batch=(3,)), model.init(4, batch=(3,), xp=xp)
    alone = [model.init(4) for _ in range(3)]
    for cut in range(60):
        states = model.update(states, X[:, cut], r[:, cut])
        strict = model.update(strict, xp.asarray(X[:, cut]), xp.asarray(r[:, cut]))
        alone = [model.update(state, X[i, cut], r[i, cut]) for i, state in enumerate(alone)]
        for i, state in enumerate(alone):
            assert_allclose(states.lost[i], state.lost, rtol=1e-2)
            assert_allclose(np.asarray(strict.lost)[i], state.lost, rtol=1e-2)
    states = model.update_many(states, X[:, 60:], r[:, 60:])
    strict = model.update_many(strict, xp.asarray(X[:, 60:]), xp.asarray(r[:, 60:]))
    for i, state in enumerate(alone):
        lost = model.update_many(state, X[i, 60:], r[i, 60:]).lost
        assert_allclose(states.lost[i], lost, rtol=1e-2)
        assert_allclose(np.asarray(strict.lost)[i], lost, rtol=1e-2)
    # seen red: A and B that are brought up to date after every row of runs at once; runs where nothing counts for less


def test_a_batch_of_one_row_loses_no_less_than_the_row():
    """At a short λ the first row costs F many digits, and the second one θ̂ as many."""
    model, X = Ridge(lam=1e-5), np.array([[1.0, 2.0, 3.0], [2.0, -1.0, 1.0]])
    first = model.update(model.init(3), X[0], np.float64(1))
    row, batch = model.update(first, X[1], np.float64(999)), model.update_many(first, X[1:], np.array([999.0]))
    assert model.rounding(batch).rho >= model.rounding(row).rho > 1e-13
    assert model.rounding(batch).omega >= model.rounding(row).omega > 1e-13
    # seen red: no D² e² of a batch


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_a_factor_made_anew_has_lost_what_fading_says(xp):
    """(n+1) κ² of D², and κ as of sums: `fading` has the same numbers. Leading axes are runs."""
    rng, n = np.random.default_rng(2), 50
    model, X, r = Ridge(lam=1e-3, discount=1 - 1e-15), rng.normal(size=(2, n, 3)), rng.normal(size=(2, n))
    states = model.update_many(model.init(3, batch=(2,)), X, r)
    v = 1e-3 + np.sum(X * X, axis=1)
    parts = [xp.asarray(part) for part in (v, np.sum(r * r, axis=1), states.F, states.theta)]
    lost = digits.factored(v=parts[0], paid=parts[1], n=n - 1, F=parts[2], theta=parts[3])
    known, fading = Ridge().rounding(SimpleNamespace(lost=lost, units=None)), model.rounding(states)
    assert_allclose(np.asarray(known.omega), fading.omega, rtol=1e-6)
    kappa = np.sum(v * np.vecdot(states.F, states.F), axis=-1, keepdims=True)
    assert np.all(np.asarray(known.rho) <= fading.rho * np.sqrt(kappa) * (1 + 1e-6))
    assert np.all(np.asarray(known.rho) >= fading.rho / 2)
    after = digits.grown(lost, x=parts[3], s=parts[1] * 0 + 2.0, e=parts[1], r=parts[1], F=parts[2], theta=parts[3])
    assert after.shape == lost.shape == (2, digits.SCALARS + 12)
    # seen red: κ in place of κ²

"""The running bound on what rounding does to a ridge regression, against the exact answer in 50 digits."""

import mpmath
import numpy as np
import pytest

from dither.models import Diagonal, Ridge

EXACT = mpmath.mp.clone()
EXACT.dps = 50


def data(rng):
    """Histories that lose digits: short λ, equal columns, ±1 codes, one direction seen often, other units."""
    d, n = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 8, 20]))
    lam = float(10.0 ** rng.choice([-10, -8, -4, -2, 0, 3]))
    X = {
        0: lambda: rng.normal(size=(n, d)),
        1: lambda: np.linalg.qr(rng.normal(size=(d, d)))[0][rng.integers(0, d, n)],
        2: lambda: rng.choice([-1.0, 1.0], size=(n, d)),
        3: lambda: rng.normal(size=(n, 1)) + 1e-3 * rng.normal(size=(n, d)),
        4: lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d),
        6: lambda: rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4, 4, size=(n, 1)),
        5: lambda: np.linalg.qr(rng.normal(size=(d, d)))[0][np.where(rng.random(n) < 0.9, 0, d - 1)],
    }[int(rng.integers(7))]()
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

"""What `GLM` says of rounding does not depend on the units of the columns, and is above the errors in 60 digits.

The columns are raw Unix times beside a constant or one-hot arms, log-normal, near copies of each other, or all alike.
"""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import policies
from dither.models import GLM
from dither.models.glm import learn
from longer import size

KINDS = ("plain", "times", "lognormal", "copies", "one-hot and times")
UNITS = np.array([1.0, 2.0**-31, 2.0**7])


def problem(rng):
    """X (n, d) and r (n,), λ, and arms (5, d): two of them are new rows."""
    kind, n = KINDS[int(rng.integers(len(KINDS)))], int(rng.integers(1, 13))
    times = 1.7e9 + np.floor(rng.uniform(0, 10.0 ** rng.uniform(1, 7), n + 2))
    if kind == "plain":
        X = rng.normal(size=(n + 2, int(rng.integers(1, 5))))
    elif kind == "times":
        X = np.column_stack([np.ones(n + 2), times, rng.normal(size=n + 2)])
    elif kind == "lognormal":
        X = np.exp(rng.uniform(1, 5) * rng.normal(size=(n + 2, 3)))
    elif kind == "copies":
        X = np.repeat(rng.normal(size=(n + 2, 1)), 3, axis=1)
        X[:, 1:] *= 1 + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=(n + 2, 2))
    else:
        X = np.column_stack([np.eye(3)[rng.integers(0, 3, n + 2)], times])
    r, lam = rng.integers(0, 2, n).astype(float), 10.0 ** float(rng.uniform(-4, 1))
    return kind, X[:n], r, lam, np.concatenate([X[:3], X[n:]])


def matrix(A):
    return mp.matrix(np.asarray(A, dtype=float).tolist())


def answers(theta, H, arms):
    """x'θ and ‖x‖ in the norm of H⁻¹, in 60 digits."""
    rows = [matrix(x) for x in arms]
    return [(x.T * theta)[0] for x in rows], [mp.sqrt((x.T * mp.lu_solve(H, x))[0]) for x in rows]


def weight(z):
    mu = 1 / (1 + mp.exp(-z))
    return mu, mu * (1 - mu)


def minimum(X, r, lam):
    """The estimate and the curvature there, by damped Newton steps."""
    d, theta = X.shape[1], mp.zeros(X.shape[1], 1)
    rows, theta, last = [matrix(x) for x in X], mp.zeros(d, 1), False
    while True:
        g, H = lam * theta, mp.eye(d) * lam
        for x, y in zip(rows, r, strict=True):
            mu, v = weight((x.T * theta)[0])
            g, H = g + (mu - y) * x, H + v * x * x.T
        if last:
            return theta, H
        step = mp.lu_solve(H, g)
        size = mp.sqrt((g.T * step)[0])
        largest = max(abs((x.T * step)[0]) for x in rows)
        theta, last = theta - step / (1 + largest if largest > 1e-3 else 1), size < mp.mpf(10) ** -40


def recursion(X, r, lam):
    """What "online" computes without a look at earlier rows."""
    d = X.shape[1]
    theta, H = mp.zeros(d, 1), mp.eye(d) * lam
    for x, y in zip(map(matrix, X), r, strict=True):
        u = mp.lu_solve(H, x)
        z, q = (x.T * theta)[0], (x.T * u)[0]
        low, high = sorted([z, z + q * (int(y) * 2 - 1)])
        for _ in range(90):  # z - q (μ(ζ) - r) falls as ζ grows
            middle = (low + high) / 2
            low, high = (middle, high) if middle - z + q * (weight(middle)[0] - y) < 0 else (low, middle)
        zeta = (low + high) / 2
        for _ in range(4):
            mu, v = weight(zeta)
            zeta -= (zeta - z + q * (mu - y)) / (1 + q * v)
        theta, H = theta + u * ((zeta - z) / q), H + weight(zeta)[1] * x * x.T
    return theta, H


def shares(seed, solver):
    """The errors of means and widths as shares of what is said, at most; and ρ and ω. None: refused."""
    kind, X, r, lam, arms = problem(np.random.default_rng(seed))
    model = GLM(lam=lam, solver=solver)
    state = model.init(X.shape[1])
    try:
        for x, y in zip(X, r, strict=True):
            state = model.update(state, x, np.float64(y))
    except ValueError:
        return None
    m, w, said = model.mean(state, arms), model.width(state, arms), model.rounding(state)
    with mp.workdps(60):
        right = answers(*(recursion if solver == "online" else minimum)(X, r, mp.mpf(lam)), arms)
        means = max(abs(a - b) / (said.rho * v) for a, b, v in zip(m.tolist(), right[0], right[1], strict=True))
        widths = max(abs(a - b) / (said.omega * b) for a, b in zip(w.tolist(), right[1], strict=True))
    return kind, float(means), float(widths), said.rho, said.omega


@pytest.mark.parametrize("solver", ["certified", "counts", "online"])
def test_what_is_said_of_rounding_is_above_its_errors(monkeypatch, solver):
    if solver == "online":
        monkeypatch.setattr(learn, "WARM", 0)
    known = [one for seed in [*range(size(9, longer=16)), 10_081] if (one := shares(seed, solver)) is not None]
    assert len(known) > size(6, longer=9)
    assert max(one[1] for one in known) <= 1
    assert max(one[2] for one in known) <= 1
    # Seen red without the error of ζ in that of widths: 13 times what was said, for columns e^(5 N) and "online"


def rescaled(state, units):
    """The same state where the columns are divided by the units, which are powers of two."""
    kept = state.lazy
    buffer = kept.buffer._replace(X=kept.buffer.X / units)
    kept = kept._replace(base=kept.base * units, R=kept.R / units, buffer=buffer)
    kept = kept._replace(diagonal=kept.diagonal / units**2, inverse=kept.inverse * units**2)
    rows = state.history._replace(X=state.history.X / units)
    return state._replace(F=state.F * units[:, None], theta=state.theta * units, lazy=kept, history=rows)


@pytest.mark.parametrize("changes", [{}, {"solver": "online"}, {"window": 200}], ids=str)
def test_what_rounding_did_in_an_update_does_not_depend_on_units(monkeypatch, changes):
    """To the bit, since powers of two do not round."""
    monkeypatch.setattr(learn, "WARM", 150)
    rng = np.random.default_rng(5)
    X, r = rng.normal(size=(220, 3)), rng.integers(0, 2, 220).astype(float)
    model = GLM(tol=0.3, **changes)
    state = model.update_many(model.init(3), X[:199], r[:199])
    for t in range(199, 205):
        other, before = rescaled(state, UNITS), state
        state = model.update(state, X[t], r[t])
        if "window" in changes or int(state.lazy.passes) == int(before.lazy.passes):
            other = model.update(other, X[t] / UNITS, r[t])
            assert_array_equal(model.rounding(other), model.rounding(state))
            for name in ("noise", "blur", "slope", "offset"):
                assert getattr(other.lazy, name) == getattr(state.lazy, name)
    assert int(state.lazy.passes) == int(before.lazy.passes)


@pytest.mark.parametrize("solver", ["certified", "online"])
def test_a_raw_time_beside_arms_ties_no_others(monkeypatch, solver):
    """Milliseconds since 1970. Seen red with traces: ρ was several widths, and both arms had 1/2 of "online"."""
    monkeypatch.setattr(learn, "WARM", 20)
    rng, b = np.random.default_rng(0), dither.Bandit(GLM(lam=1e-4, solver=solver), policies.Greedy(), dim=3, seed=0)
    for t in range(300):
        arm, now = t % 2, 1.7e12 + 60_000 * t
        b.update(np.r_[np.eye(2)[arm], now], float(rng.random() < (0.65, 0.35)[arm]))
    assert_array_equal(b.propensities(np.c_[np.eye(2), [1.7e12, 1.7e12]]), [1.0, 0.0])
    assert max(b.model.rounding(b.state)) < 1e-6

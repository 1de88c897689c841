"""Answers by other mathematics than the library's: exact rationals, least squares on the data, plain loops."""

from fractions import Fraction

import numpy as np
from scipy import special

from dither.base import trees


def least_squares(X, r, *, lam):
    """θ̂ from least squares on the whole history and the factor R of the data, V = R'R; V itself appears nowhere."""
    X, r = np.reshape(X, (-1, np.shape(X)[-1])), np.reshape(r, -1)
    A = np.vstack([np.sqrt(lam) * np.eye(X.shape[1]), X])
    theta = np.linalg.lstsq(A, np.r_[np.zeros(X.shape[1]), r], rcond=None)[0]
    return theta, np.linalg.qr(A, mode="r")


def width(R, x):
    """‖x‖_{V⁻¹} with V = R'R."""
    return np.linalg.norm(np.linalg.solve(R.T, x))


def exact(X, r, at, *, lam):
    """m and w² of every row of `at` in rational arithmetic: no rounding before the last step."""

    def rational(A):
        return [[Fraction(float(v)) for v in row] for row in A]

    X, at, r = rational(X), rational(at), [Fraction(float(v)) for v in r]
    d = len(at[0])
    V = [[sum(x[i] * x[j] for x in X) + (Fraction(float(lam)) if i == j else 0) for j in range(d)] for i in range(d)]
    b = [sum(x[i] * y for x, y in zip(X, r, strict=True)) for i in range(d)]
    theta = solve(V, b)
    m = [float(sum(p * q for p, q in zip(x, theta, strict=True))) for x in at]
    w2 = [float(sum(p * q for p, q in zip(x, solve(V, x), strict=True))) for x in at]
    return np.array(m), np.array(w2)


def solve(A, b):
    """Gauss's elimination, in whatever numbers it is given."""
    n, M = len(b), [[*row, y] for row, y in zip(A, b, strict=True)]
    for i in range(n):
        p = next(k for k in range(i, n) if M[k][i] != 0)
        M[i], M[p] = M[p], M[i]
        M[i] = [v / M[i][i] for v in M[i]]
        for k in range(n):
            if k != i and M[k][i] != 0:
                M[k] = [a - M[k][i] * c for a, c in zip(M[k], M[i], strict=True)]
    return [row[n] for row in M]


def line_mass(m, w, *, cdf=special.ndtr):
    """P(each line m + z w is highest), by comparing all pairs in rational arithmetic; equal lines share. O(K²)"""
    lines = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(m, w, strict=True)]
    p = np.zeros(len(lines))
    for i, (mi, wi) in enumerate(lines):
        others = [(a, b) for a, b in set(lines) if (a, b) != (mi, wi)]
        if any(b == wi and a > mi for a, b in others):
            continue
        low = max([(a - mi) / (wi - b) for a, b in others if b < wi], default=-np.inf)
        high = min([(mi - a) / (b - wi) for a, b in others if b > wi], default=np.inf)
        if low < high:
            p[i] = mass(float(low), float(high), cdf) / lines.count((mi, wi))
    return p


def mass(low, high, cdf):
    """P(low < z <= high) of a law symmetric about 0, without cancellation in its tails."""
    return cdf(-low) - cdf(-high) if low > 0 else cdf(high) - cdf(low)


def agree(shares, p, *, n, se=0.0):
    """Whether observed shares of n draws are those of p: five standard errors, and none where p is 0 or 1."""
    return bool(np.all(np.abs(shares - p) <= 5 * np.sqrt(np.maximum(p * (1 - p), 0) / n + np.square(se)) + 1e-12))


def rows(b):
    """All that a bandit is, bit for bit, to be compared with a twin's."""
    state = {k: (v.dtype, v.shape, v.tobytes()) for k, v in arrays_of(b.state, "state").items()}
    streams = {name: rng.bit_generator.state for name, rng in b._streams().items()}
    return repr((b.model, b.policy, b.decisions, b.observations, b.columns, streams, state))


def arrays_of(state, name):
    if hasattr(state, "_fields"):
        return {k: v for f in state._fields for k, v in arrays_of(getattr(state, f), f"{name}.{f}").items()}
    return {} if state is None or isinstance(state, trees.Opaque) else {name: np.asarray(state)}


def unchanged(b, twin, X, *, n=100):
    """The same state and the same next n choices."""
    assert rows(b) == rows(twin)
    assert [b.choose(X).arm for _ in range(n)] == [twin.choose(X).arm for _ in range(n)]

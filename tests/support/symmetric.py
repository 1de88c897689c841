"""Problems whose arms rounding alone tells apart: what was learnt, the arms on offer, and which must share alike.

Each has a symmetry of what was learnt that takes some arms into others. Their exact probabilities are equal, whatever
the algorithm. `alike` lists such groups.
"""

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    kind: str
    x: np.ndarray  # (n, d) learnt, in this order
    r: np.ndarray  # (n,) in [0, 1], or any number where `real`
    X: np.ndarray  # (K, d) on offer
    alike: list  # groups of arms with equal probabilities
    lam: float


def _rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def circle(rng, real):
    """Hours of a day of which one was learnt; the arms lie on both sides of it."""
    hours = rng.choice(np.arange(1, 12), size=rng.integers(1, 4), replace=False)
    start = rng.integers(0, 24)
    angle = 2 * np.pi * (start + np.r_[hours, -hours]) / 24
    at = 2 * np.pi * start / 24
    K = len(hours)
    alike = [[i, i + K] for i in range(K)]
    return np.array([[np.cos(at), np.sin(at)]]), np.ones(1), np.c_[np.cos(angle), np.sin(angle)], alike


def factorial(rng, real):
    """±1 codes with an intercept; only the first factor changes the reward, so that all others cancel."""
    d = int(rng.integers(2, 5))
    codes = np.array(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1).T
    x = np.c_[np.ones(len(codes)), codes]
    r = (codes[:, 0] > 0) * 0.5 + 0.25
    order = rng.permutation(len(x))
    alike = [np.flatnonzero(codes[:, 0] == level).tolist() for level in (-1, 1)]
    return x[order], r[order], x, alike


def rotated(rng, real):
    """Rows of a rotated basis of which one was learnt: the others are alike."""
    d = int(rng.integers(3, 7))
    Q, one = _rotation(rng, d), int(rng.integers(d))
    n = int(rng.integers(1, 4))
    return np.tile(Q[one], (n, 1)), rng.integers(0, 2, n).astype(float), Q, [[i for i in range(d) if i != one]]


def records(rng, real):
    """Arms of a rotated basis, or one-hot: equal records in another order, and one arm with a record of its own."""
    d = int(rng.integers(3, 6))
    Q = _rotation(rng, d) if rng.random() < 0.5 else np.eye(d)
    record = [[1, 1, 0], [0, 1], [1, 0, 0, 0]][rng.integers(3)]
    pairs = [(k, float(r)) for k in range(d - 1) for r in record] + [(d - 1, 1.0)]
    order = rng.permutation(len(pairs))
    x, r = Q[[pairs[i][0] for i in order]], np.array([pairs[i][1] for i in order])
    return x, r, Q, [list(range(d - 1))]


def columns(rng, real):
    """Arms that share columns of the same values: equal arms but for a feature that was never seen to vary."""
    d = int(rng.integers(2, 5))
    shared, own = rng.normal(size=d), np.eye(3)
    X = np.c_[np.tile(shared, (3, 1)), own]
    x, r = np.r_[X, X], np.array([0.25] * 3 + [0.75] * 3)
    order = rng.permutation(6)
    return x[order], r[order], X, [[0, 1, 2]]


def copies(rng, real):
    """Copies of arms among others."""
    X = rng.normal(size=(3, 3))
    x = rng.normal(size=(4, 3))
    return x, rng.integers(0, 2, 4).astype(float), X[[0, 1, 1, 2, 0]], [[0, 4], [1, 2]]


def cancelled(rng, real):
    """Means that cancel: opposite arms, learnt with rewards of sum 0 (1 where rewards must lie in [0, 1])."""
    d = int(rng.integers(2, 5))
    x = rng.normal(size=d)
    r = np.array([1.0, -1.0] if real else [1.0, 0.0])
    return np.tile(x, (2, 1)), r, np.array([-x, x]), [[0, 1]]


def swapped(rng, real):
    """Raw features, of lengths far apart: every row comes with its coordinates swapped, and the same reward."""
    n = int(rng.integers(2, 4))
    x = np.round(rng.normal(size=(n, 2)) * 10 ** rng.uniform(-1, 2.3 if real else 0.5, (n, 1)), 2)
    r = np.repeat(rng.integers(0, 2, n).astype(float), 2)
    pair = [x[0], [1.0, 0.0], [3.0, -1.0]][rng.integers(3)]
    return np.stack([x, x[:, ::-1]], axis=1).reshape(-1, 2), r, np.array([pair, pair[::-1]]), [[0, 1]]


def untold(rng, real):
    """Nothing was learnt; arms of one length in any direction."""
    X = rng.normal(size=(4, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return np.empty((0, 3)), np.empty(0), X, [[0, 1, 2, 3]]


KINDS = (circle, factorial, rotated, records, columns, copies, cancelled, swapped, untold)


def problem(seed: int, *, real: bool) -> Problem:
    """Problem number `seed`; real: rewards may be any numbers."""
    rng = np.random.default_rng(seed)
    make = KINDS[seed % len(KINDS)]
    x, r, X, alike = make(rng, real)
    scale, lam = 1.0, float(rng.choice([1e-4, 1e-2, 1.0, 30.0]))
    if real and rng.random() < 0.4:  # in other units of features: nothing changes with λ in the unit squared
        scale = float(rng.choice([1e-8, 1e-3, 1e4, 1e8]))
        lam *= scale**2
    if real and rng.random() < 0.3:
        r = r * float(rng.choice([1e-12, 1e-6, 1e9]))
    return Problem(make.__name__, x * scale, r, X * scale, alike, lam)

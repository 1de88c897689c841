"""GLM answers by other mathematics than the library's, and the streams of observations on which they are compared.

`fit` finds θ̂ from the whole history: the gradient with 64 bits of mantissa where the link allows it, steps from a QR
of the rows (no Hessian is formed), lengths of steps by bisection of the slope along them. `digits` does it with 50
digits and tests `fit` itself. Ĥ is only ever known as R'R.
"""

from typing import NamedTuple

import mpmath as mp
import numpy as np
from scipy import optimize, special

LAM = 1e-4


class Fit(NamedTuple):
    """θ̂ and the factor of its Ĥ = R'R."""

    theta: np.ndarray  # (d,)
    R: np.ndarray  # (d, d)


def slopes(link, eta):
    """μ and μ'; in long double but for probit."""
    if link == "probit":
        eta = eta.astype(float)
        return special.ndtr(eta), np.exp(-eta * eta / 2) / np.sqrt(2 * np.pi)
    if link == "logit":
        e = np.exp(-np.abs(eta))
        return np.where(eta >= 0, 1, e) / (1 + e), e / (1 + e) ** 2
    if link == "log":
        with np.errstate(over="ignore"):
            return np.exp(eta), np.exp(eta)
    return eta, np.ones_like(eta)


def residual(link, eta, r):
    """μ - r, from whichever end of the support it does not cancel."""
    if link in ("logit", "probit"):
        return np.where(eta >= 0, (1 - r) - slopes(link, -eta)[0], slopes(link, eta)[0] - r)
    return slopes(link, eta)[0] - r


def root(X, theta, *, link, lam, weight=None, min_derivative=0.0):
    """R of Ĥ(θ) = λI + Σ ω max(μ', min_derivative) xx' = R'R, by QR of the rows."""
    d = X.shape[1]
    s = np.sqrt(np.maximum(slopes(link, X @ theta)[1], min_derivative) * (1 if weight is None else weight))
    return np.linalg.qr(np.vstack([np.sqrt(lam) * np.eye(d), s.astype(float)[:, None] * X]), mode="r")


def gradient(X, r, theta, *, link, ridge, weight=None):
    """Σ ω (μ(x'θ) - r) x + ridge θ, in long double."""
    with np.errstate(over="ignore", invalid="ignore"):
        e = residual(link, X.astype(np.longdouble) @ theta, r)
        return (e * (1 if weight is None else weight)) @ X.astype(np.longdouble) + ridge * theta


def fit(X, r, *, link="logit", lam=LAM, ridge=None, weight=None, min_derivative=0.0, constrain=None, start=None) -> Fit:
    """θ̂ = argmin Σ ω [g(x'θ) - r x'θ] + ridge/2 ‖θ‖² over ‖θ‖ <= constrain, and R of its Ĥ; X (n, d)."""
    X, ridge = np.asarray(X, float), lam if ridge is None else ridge
    theta = _free(X, r, link, ridge, weight, start)
    if constrain is not None and np.sqrt(theta @ theta) > constrain:
        theta = _on_the_sphere(X, r, link, ridge, weight, constrain)
    return Fit(theta, root(X, theta, link=link, lam=lam, weight=weight, min_derivative=min_derivative))


def _free(X, r, link, ridge, weight, start=None):
    theta = np.zeros(X.shape[1], np.longdouble) if start is None else np.asarray(start, np.longdouble)
    g = gradient(X, r, theta, link=link, ridge=ridge, weight=weight)
    for _ in range(300):
        R = root(X, theta, link=link, lam=ridge, weight=weight)
        N = -np.linalg.solve(R, np.linalg.solve(R.T, g.astype(float)))
        size, whole = np.linalg.norm(R @ N), np.linalg.norm(R @ theta.astype(float))
        if size <= 1e-9 * whole + 1e-13 and np.max(np.abs(X @ N), initial=0) <= 1e-9:
            return theta + N  # whose error is the square of that
        theta, g = _along(X, r, theta, N, g, link, ridge, weight)
    raise ArithmeticError(f"no minimum found: a step of {size:g} is left")


def _along(X, r, theta, N, g, link, ridge, weight):
    """A step along N to where nine tenths of the slope are gone, by bisection: it rises, as the loss is convex."""
    low, high, t, slope = 0.0, np.inf, 1.0, abs(g @ N)
    for _ in range(2000):
        new = gradient(X, r, theta + t * N, link=link, ridge=ridge, weight=weight)
        along = new @ N if np.isfinite(new).all() else np.inf
        if abs(along) <= 0.1 * slope or abs(t * np.max(np.abs(N))) < 1e-18 * np.max(np.abs(theta)):
            break
        low, high = (t, high) if along < 0 else (low, t)
        t = 2 * t if np.isinf(high) else (low + high) / 2
    return theta + t * N, new


def _on_the_sphere(X, r, link, ridge, weight, S):
    """‖θ(ν)‖ = S by Brent on log ν: the multiplier of the constraint is a penalty more."""

    def excess(log_nu):
        nonlocal theta
        theta = _free(X, r, link, ridge + np.exp(log_nu), weight, theta)
        return float(np.log(np.sqrt(theta @ theta) / S))

    theta = None
    excess(optimize.brentq(excess, -70, 70, xtol=1e-14, rtol=1e-14))
    return theta * (S / np.sqrt(theta @ theta))


def digits(X, r, at, *, link="logit", lam=LAM, ridge=None, weight=None, dps=50):
    """θ̂ (d,), and m and w of the rows of `at`, of few observations, in 50 digits; Newton, cut until slopes fall."""
    mu, slope = {
        "logit": (lambda e: 1 / (1 + mp.exp(-e)), lambda e: 1 / (2 + mp.exp(e) + mp.exp(-e))),
        "log": (mp.exp, mp.exp),
        "probit": (lambda e: mp.erfc(-e / mp.sqrt(2)) / 2, lambda e: mp.exp(-e * e / 2) / mp.sqrt(2 * mp.pi)),
        "identity": (lambda e: e, lambda e: mp.mpf(1)),
    }[link]
    with mp.workdps(dps):
        rows = [[mp.mpf(float(v)) for v in x] for x in X]
        r, d, ridge = [mp.mpf(float(y)) for y in r], len(X[0]), mp.mpf(float(lam if ridge is None else ridge))
        own = [mp.mpf(1)] * len(r) if weight is None else [mp.mpf(float(v)) for v in weight]

        def gradient(theta):
            e = [v * (mu(mp.fdot(x, theta)) - y) for x, y, v in zip(rows, r, own, strict=True)]
            return [mp.fdot(e, [x[j] for x in rows]) + ridge * theta[j] for j in range(d)]

        def hessian(theta, lam):
            s = [v * slope(mp.fdot(x, theta)) for x, v in zip(rows, own, strict=True)]
            H = mp.matrix(d, d)
            for i in range(d):
                for j in range(d):
                    H[i, j] = mp.fsum(w * x[i] * x[j] for w, x in zip(s, rows, strict=True)) + (lam if i == j else 0)
            return H

        theta, g = [mp.mpf(0)] * d, gradient([mp.mpf(0)] * d)
        for _ in range(500):
            N = list(-mp.lu_solve(hessian(theta, ridge), mp.matrix(g)))
            before, t = abs(mp.fdot(g, N)), mp.mpf(1)
            low, high = mp.mpf(0), mp.inf
            for _ in range(400):
                new = [a + t * b for a, b in zip(theta, N, strict=True)]
                g = gradient(new)
                along = mp.fdot(g, N)
                if abs(along) <= before / 2:
                    break
                low, high = (t, high) if along < 0 else (low, t)
                t = 2 * t if high == mp.inf else (low + high) / 2
            theta = new
            if max(map(abs, N)) <= mp.mpf(10) ** (10 - dps) * (max(map(abs, theta)) + mp.mpf(10) ** -dps):
                break
        H, at = hessian(theta, mp.mpf(float(lam))), [[mp.mpf(float(v)) for v in x] for x in at]
        m = [mp.fdot(x, theta) for x in at]
        w = [mp.sqrt(mp.fdot(x, mp.lu_solve(H, mp.matrix(x)))) for x in at]
        return tuple(np.array([float(v) for v in part]) for part in (theta, m, w))


def widths(R, at):
    """‖x‖_{Ĥ⁻¹} of every row of `at`, with Ĥ = R'R."""
    return np.linalg.norm(np.linalg.solve(R.T, np.asarray(at, float).T), axis=0)


class Gap(NamedTuple):
    """How far a state is from the exact fit."""

    own: float  # ‖θ - θ̂‖ in the metric of the state's F
    here: float  # in that of Ĥ(θ)
    exact: float  # in that of Ĥ(θ̂)
    eig: float  # largest |log eigenvalue| of (F F')⁻¹ against Ĥ(θ̂)


def gap(theta, F, truth, *, X, **settings) -> Gap:
    """The distances that a certificate must not fall below; settings as for `root`."""
    e = (theta - truth.theta).astype(float)
    here = root(X, theta, **settings)
    logs = np.log(np.linalg.svd(truth.R @ F, compute_uv=False))
    return Gap(
        np.linalg.norm(np.linalg.solve(F, e)),
        np.linalg.norm(here @ e),
        np.linalg.norm(truth.R @ e),
        2 * np.max(np.abs(logs)),
    )


def below(away, eig, bound, truth):
    """Whether a certificate (2,) covers the truth, but for the rounding of what is measured here."""
    size, spread = np.linalg.norm(truth.R @ truth.theta.astype(float)), np.linalg.cond(truth.R)
    return bool(
        away <= bound[0] * (1 + 1e-6) + 1e-12 * (1 + size) and eig <= bound[1] * (1 + 1e-6) + 1e-8 + 1e-15 * spread
    )


# Streams: rng, n -> X (n, d) and r (n,)


def unit(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def bernoulli(rng, X, theta, *, link="logit"):
    return (rng.random(len(X)) < slopes(link, (X @ theta).astype(np.longdouble))[0]).astype(float)


def logistic(rng, n, d=5):
    X = unit(rng, n, d)
    return X, bernoulli(rng, X, 3 * unit(rng, 1, d)[0])


def separable(rng, n):
    X = unit(rng, n, 4)
    return X, (X[:, 0] > 0).astype(float)


def all_ones(rng, n):
    return unit(rng, n, 3), np.ones(n)


def all_zeros(rng, n):
    return unit(rng, n, 3), np.zeros(n)


def collinear(rng, n):
    a = rng.normal(size=(n, 2))
    X = np.c_[a, a[:, :1] + a[:, 1:], 2 * a[:, :1]]
    return X, bernoulli(rng, a, np.array([1.0, -1.0]))


def intercept(rng, n):
    X = np.c_[np.ones(n), 0.3 * rng.normal(size=(n, 3))]
    return X, bernoulli(rng, X, np.array([-2.0, 1, 0, -1]))


def anisotropic(rng, n):
    units = np.array([1.0, 1e-3, 1e3])
    X = unit(rng, n, 3)
    return X * units, bernoulli(rng, X, np.array([1.0, -2.0, 1.0]))


def switching(rng, n):
    X = unit(rng, n, 4)
    X[: n // 2, 2:] = 0
    X[n // 2 :, :2] = 0
    return X, bernoulli(rng, X, np.array([2.0, -1, 1, -2]))


def flip(rng, n):
    X, r = logistic(rng, n, 3)
    r[n // 2 :] = 1 - r[n // 2 :]
    return X, r


def repeats(rng, n):
    arms = unit(rng, 4, 3)
    X = arms[rng.integers(4, size=n)]
    return X, bernoulli(rng, X, np.array([2.0, -1, 1]))


def zero_rows(rng, n):
    X, r = logistic(rng, n, 3)
    X[::3] = 0
    return X, r


def one_feature(rng, n):
    X = rng.uniform(-1, 2, size=(n, 1))
    return X, bernoulli(rng, X, np.array([1.5]))


def long_rows(rng, n):
    X, r = logistic(rng, n, 3)
    return 30 * X, r


def fractions(rng, n):
    return unit(rng, n, 3), rng.random(n)


def surprises(rng, n):
    """All ones, and a zero where it was least expected."""
    X, r = np.abs(unit(rng, n, 3)), np.ones(n)
    r[n // 4 :: max(n // 5, 1)] = 0
    return X, r


def probit(rng, n):
    X = unit(rng, n, 4)
    return X, bernoulli(rng, X, np.array([1.5, -1, 0.5, 0]), link="probit")


def poisson(rng, n):
    X = unit(rng, n, 4)
    return X, rng.poisson(np.exp(X @ np.array([1.5, -1, 0.5, 1]))).astype(float)


def counts(rng, n):
    """Counts from 0 to about a million."""
    X = unit(rng, n, 3)
    return X, np.minimum(rng.poisson(np.exp(X @ np.array([11.0, -8, 2]))), 1_000_000).astype(float)


def no_counts(rng, n):
    return unit(rng, n, 3), np.zeros(n)


def burst(rng, n):
    """Counts near 1, and a million now and then."""
    X = unit(rng, n, 3)
    r = rng.poisson(1.0, size=n).astype(float)
    r[n // 3 :: max(n // 3, 1)] = 1e6
    return X, r


LOGIT = {
    f.__name__: f
    for f in (
        logistic,
        separable,
        all_ones,
        all_zeros,
        collinear,
        intercept,
        anisotropic,
        switching,
        flip,
        repeats,
        zero_rows,
        one_feature,
        long_rows,
        fractions,
        surprises,
    )
}
LOG = {f.__name__: f for f in (poisson, counts, no_counts, burst)}
PROBIT = {f.__name__: f for f in (probit, separable, intercept, flip, one_feature)}
CASES = [(link, name) for link, table in (("logit", LOGIT), ("log", LOG), ("probit", PROBIT)) for name in table]


def stream(link, name, n, *, seed=0):
    """That stream's X (n, d) and r (n,)."""
    return {"logit": LOGIT, "log": LOG, "probit": PROBIT}[link][name](np.random.default_rng(seed), n)

"""`quick.solve` against `newton.solve`: the same estimate and curvature, and its ends bound the slope."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dither import links
from dither.models.glm import newton, quick

LINKS = {"logit": 1.0, "log": 1.0, "probit": 1.0}


def problem(link, n=300, d=4, seed=0, scale=1.0):
    """n rows of a law with that link, some with weights and totals of several observations."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * scale
    eta = X @ (rng.standard_normal(d) / scale / d**0.5)
    count = rng.integers(1, 4, n).astype(float)
    mu = links.find(link).mu(eta)
    total = (
        rng.poisson(count * mu).astype(float) if link == "log" else rng.binomial(count.astype(int), mu).astype(float)
    )
    return newton.Problem(X, count, total, 1e-2 * scale**2, float(np.linalg.norm(X, axis=1).max()))


def exact(part, link, start):
    """The solution to 1e-10, and the matrix there."""
    lone = newton.Problem(*(np.asarray(A)[None] for A in part[:5]))
    theta = newton.solve(lone, start[None], link=links.find(link), tol=np.array([1e-10])).theta[0]
    w = links.find(link).slopes(part.X @ theta)[1]
    return theta, part.X.T @ (part.X * (part.count * w)[:, None]) + part.rho * np.eye(len(theta))


def slope(part, link, theta):
    """∇J(θ)."""
    return links.find(link).residual(part.X @ theta, part.count, part.total)[0] @ part.X + part.rho * theta


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("tol", "drift"), [(5e-9, 9e-4), (0.02, 0.05), (1e-9, 0.05)])
@pytest.mark.parametrize("near", [True, False])
def test_from_a_good_start_it_finds_the_estimate_and_its_curvature(link, scale, tol, drift, near):
    part = problem(link, scale=scale)
    truth, H = exact(part, link, np.zeros(4))
    L = np.linalg.cholesky(H)
    rng = np.random.default_rng(1)
    off = rng.standard_normal(4)
    start = truth + np.linalg.solve(L.T, 0.03 * off / np.linalg.norm(off))
    F = np.linalg.inv(L).T * 1.05 if near else None
    found = quick.solve(part, start, link=links.find(link), tol=tol, drift=drift, F=F)
    if found is None:  # without a factor the curvature is that at the start, which is too far for the small drift
        assert not near
        assert drift < 1e-3
        return
    error = np.linalg.norm(L.T @ (found.theta - truth))
    a, rem, _ = found.ends
    assert error <= 1.2 * tol
    assert rem <= tol
    assert a <= drift
    assert np.linalg.norm(found.F.T @ slope(part, link, found.theta)) <= rem  # seen red: the slope after the last step
    w = part.count * links.find(link).slopes(part.X @ found.theta)[1]
    here = part.X.T @ (part.X * w[:, None]) + part.rho * np.eye(4)
    eig = np.abs(np.log(np.linalg.eigvalsh(found.F.T @ here @ found.F))).max()
    assert eig <= a + 1e-12 * np.linalg.cond(H)  # seen red: without the steps since the curvature was computed
    assert found.offset <= a
    assert (found.base is found.theta) == (found.offset == a)
    assert_allclose(found.R.T @ found.R @ found.F @ found.F.T, np.eye(4), atol=1e-8)
    assert found.reach >= np.linalg.norm(part.X @ found.F, axis=1).max() * (1 - 1e-12)


@pytest.mark.parametrize("exact_reach", [True, False])
def test_the_reach_is_that_of_the_longest_row_or_more(exact_reach):
    part = problem("logit")
    truth, _ = exact(part, "logit", np.zeros(4))
    how = dict(link=links.find("logit"), tol=0.02, drift=0.05)
    found = quick.solve(part, truth, **how, reach=1e3, exact=exact_reach)
    longest = np.linalg.norm(part.X @ found.F, axis=1).max()
    assert found.reach >= longest * (1 - 1e-12)
    assert found.reach <= longest * (1 + 1e-12 if exact_reach else 4)
    assert quick.solve(part, truth, **how, reach=longest).reach == pytest.approx(longest)


def test_what_is_no_good_start_is_left_to_newton():
    part = problem("logit")
    how = dict(link=links.find("logit"), tol=5e-9, drift=9e-4)
    assert quick.solve(part, np.full(4, 30.0), **how) is None
    assert quick.solve(part, np.full(4, 30.0), F=np.eye(4), **how) is None
    flat = part._replace(X=np.repeat(part.X[:, :1], 4, axis=1), rho=1e-12)  # a matrix of rank one, to rounding
    assert quick.solve(flat, np.zeros(4), **how) is None

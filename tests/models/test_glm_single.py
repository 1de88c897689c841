"""`single.solve` against `batched.solve`: the same estimate and curvature, and its ends bound the slope."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dither import links
from dither.models.glm import batched, single
from dither.models.glm.batched import Aim, Curvature
from dither.models.glm.objective import Problem
from dither.models.glm.single import Reach

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
    return Problem(links.find(link), X, count, total, 1e-2 * scale**2, float(np.linalg.norm(X, axis=1).max()))


def exact(part, link, start):
    """The solution to 1e-10, and the matrix there."""
    lone = Problem(part.link, *(np.asarray(A)[None] for A in part[1:6]))
    theta = batched.solve(lone, start[None], Aim(np.array([1e-10])), Curvature()).theta[0]
    w = links.find(link).slopes(part.X @ theta)[1]
    return theta, part.X.T @ (part.X * (part.count * w)[:, None]) + part.rho * np.eye(len(theta))


def slope(part, link, theta):
    """∇J(θ)."""
    return links.find(link).residual(part.X @ theta, part.count, part.total)[0] @ part.X + part.rho * theta


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("tol", "drift"), [(5e-9, 9e-4), (0.02, 0.05), (1e-9, 0.05), (1e-8, None)])
def test_from_a_good_start_it_finds_the_estimate_and_its_curvature(link, scale, tol, drift):
    part = problem(link, scale=scale)
    truth, H = exact(part, link, np.zeros(4))
    L = np.linalg.cholesky(H)
    rng = np.random.default_rng(1)
    off = rng.standard_normal(4)
    start = truth + np.linalg.solve(L.T, 0.03 * off / np.linalg.norm(off))
    solution = single.solve(part, start, np.linalg.inv(L).T * 1.05, Aim(tol, drift), Reach())
    if solution is None:  # the curvature is that at the start, which is too far for the small drift
        assert drift < 1e-3
        return
    error = np.linalg.norm(L.T @ (solution.theta - truth))
    a, rem, _ = solution.bound
    assert error <= 1.2 * tol
    assert rem <= tol
    assert a <= (1e-8 if drift is None else drift)
    assert np.linalg.norm(solution.F.T @ slope(part, link, solution.theta)) <= rem  # seen red: that after the last step
    w = part.count * links.find(link).slopes(part.X @ solution.theta)[1]
    here = part.X.T @ (part.X * w[:, None]) + part.rho * np.eye(4)
    eig = np.abs(np.log(np.linalg.eigvalsh(solution.F.T @ here @ solution.F))).max()
    assert eig <= a + 1e-12 * np.linalg.cond(H)  # seen red: without the steps since the curvature was computed
    assert solution.offset <= a
    assert (solution.base is solution.theta) == (solution.offset == a)
    assert_allclose(solution.R.T @ solution.R @ solution.F @ solution.F.T, np.eye(4), atol=1e-8)
    assert solution.reach >= np.linalg.norm(part.X @ solution.F, axis=1).max() * (1 - 1e-12)
    bounded, good = single.bounded(solution, Aim(tol, drift), link=part.link)
    assert good
    assert error <= bounded.bound[0] <= tol


@pytest.mark.parametrize("every", [True, False])
def test_the_reach_is_that_of_the_longest_row_or_more(every):
    part = problem("logit")
    truth, _ = exact(part, "logit", np.zeros(4))
    solution = single.solve(part, truth, np.eye(4), Aim(0.02, 0.05), Reach(1e3, every))
    longest = np.linalg.norm(part.X @ solution.F, axis=1).max()
    assert solution.reach >= longest * (1 - 1e-12)
    assert solution.reach <= longest * (1 + 1e-12 if every else 4)
    again = single.solve(part, truth, np.eye(4), Aim(0.02, 0.05), Reach(longest))
    assert again.reach == pytest.approx(longest)


def test_what_is_no_good_start_is_left_to_batched():
    part = problem("logit")
    for aim in (Aim(5e-9, 9e-4), Aim(5e-9)):
        assert single.solve(part, np.full(4, 30.0), np.eye(4), aim, Reach()) is None
    flat = part._replace(X=np.repeat(part.X[:, :1], 4, axis=1), rho=1e-12)  # a matrix of rank one, to rounding
    assert single.solve(flat, np.zeros(4), np.eye(4), Aim(5e-9, 9e-4), Reach()) is None

"""`batched.solve` against the oracle: the same estimate and curvature, run by run, whatever the neighbours do."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
import glm_oracles
from dither import links
from dither.models.glm import batched, hessian, objective
from dither.models.glm.batched import Aim, Curvature
from dither.models.glm.objective import Problem

LAM = 1e-2


def problems(link, G=5, n=40, d=4, *, rows=40, seed=0):
    """G problems of n rows with a reward each, of that link; `rows` of them count, the others are zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((G, n, d))
    mu = links.find(link).mu(X @ rng.standard_normal(d) / d**0.5)
    r = rng.poisson(mu).astype(float) if link == "log" else (rng.random(mu.shape) < mu).astype(float)
    count = np.ones((G, n))
    for A in (X, r, count):
        A[:, rows:] = 0.0
    return Problem(links.find(link), X, count, r, np.full(G, LAM), np.linalg.norm(X, axis=-1).max(axis=-1))


def truths(problem):
    """θ̂ and R by the oracle, for each problem."""
    rows = zip(problem.X, problem.count, problem.total, strict=True)
    return [glm_oracles.fit(X, r, link=problem.link.name, lam=LAM, weight=n) for X, n, r in rows]


def starts(fits, far, *, wrong=1.05, seed=1):
    """Points `far` widths from the estimates, and factors that are wrong by a share."""
    rng = np.random.default_rng(seed)
    theta, F = [], []
    for fit in fits:
        own = rng.standard_normal(len(fit.theta))
        theta.append(fit.theta.astype(float) + np.linalg.solve(fit.R, far * own / np.linalg.norm(own)))
        F.append(np.linalg.inv(fit.R) * wrong)
    return np.array(theta), np.array(F)


def solved(problem, theta, F):
    return batched.solve(problem, theta, Aim(np.full(len(theta), 1e-8)), Curvature(F))


def alone(problem, i):
    return Problem(problem.link, *(None if A is None else A[[i]] for A in problem[1:]))


@pytest.mark.parametrize("link", ["logit", "log", "probit", "identity"])
@pytest.mark.parametrize("far", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("rows", [40, 30])
def test_it_finds_the_estimate_and_its_curvature(link, far, rows):
    problem = problems(link, rows=rows)
    fits = truths(problem)
    solution = solved(problem, *starts(fits, far))
    for i, fit in enumerate(fits):
        E = np.linalg.norm(fit.R @ (solution.theta[i] - fit.theta))
        assert E <= solution.bound[i, 0] <= 1e-11  # seen red: θ before the last step; `left` without the noise
        R = glm_oracles.root(problem.X[i], solution.theta[i], link=link, lam=LAM, weight=problem.count[i])
        eig = np.abs(np.log(np.linalg.svd(R @ solution.F[i], compute_uv=False) ** 2)).max()
        assert eig <= solution.bound[i, 1] <= 1e-10  # seen red: H computed at the start
        width = np.linalg.norm(problem.X[i] @ solution.F[i], axis=-1).max()
        assert solution.reach[i] >= width * (1 - 1e-12)
        left = glm_oracles.gradient(
            problem.X[i], problem.total[i], solution.theta[i], link=link, ridge=LAM, weight=problem.count[i]
        )
        assert np.linalg.norm(solution.F[i].T @ left.astype(float)) <= solution.slope[i]


def test_no_problem_depends_on_its_neighbours():
    """One start is exact, some are near, some bad: each is solved to the bit as it is alone."""
    problem = problems("logit", G=6)
    fits = truths(problem)
    theta, F = starts(fits, 0.05)
    theta[0], F[0] = fits[0].theta, np.linalg.inv(fits[0].R)
    F[1] *= 1.6  # steps are too long, so that H is computed early; seen red: a step for those that stand still
    theta[2] = 50.0
    F[3] *= 0.5
    F[4] *= 20.0  # the first step is so long that it is not taken; seen red: taken
    solution = solved(problem, theta, F)
    for i, fit in enumerate(fits):
        assert np.linalg.norm(fit.R @ (solution.theta[i] - fit.theta)) <= solution.bound[i, 0] <= 1e-11
        own = solved(alone(problem, i), theta[[i]], F[[i]])
        for A, B in zip(own, solution, strict=True):
            assert_array_equal(A[0], B[i])  # seen red: solutions put together in the order in which they ended
    assert solution.steps[2] > solution.steps[1] > solution.steps[0]


def test_the_last_step_is_too_short_to_change_the_curvature(monkeypatch):
    ends = []

    def told(search, look, step, *, last, late, call=batched._outcome):
        ends.append(call(search, look, step, last=last, late=late))
        return ends[-1]

    monkeypatch.setattr(batched, "_outcome", told)
    problem = problems("logit")
    for far, enough in ((1e-7, False), (1e-15, True)):
        ends.clear()
        theta, _ = starts(truths(problem), far)
        batched.solve(problem, theta, Aim(np.full(5, 1e-8)), Curvature())  # without a factor no step goes ahead
        first = ends[0][0]
        assert first.all() if enough else not first.any()  # seen red: without `sharp`, or with a = 0


def test_a_bad_start_is_left_for_one_at_zero(monkeypatch):
    """Whatever the start, the minimum is the same: where steps from it lead nowhere, the search begins anew at 0."""
    problem = problems("log")
    fits = truths(problem)
    theta, F = starts(fits, 0.01)
    begun = []

    def told(problem, theta, z, aim, H, *, last=False, call=batched._sought):
        begun.append(len(theta))
        return call(problem, theta, z, aim, H, last=last)

    monkeypatch.setattr(batched, "_sought", told)
    for bad in (np.full_like(theta, 30.0), theta + 5.0, np.full_like(theta, 150.0)):
        solution = solved(problem, bad, F)
        for i, fit in enumerate(fits):
            assert np.linalg.norm(fit.R @ (solution.theta[i] - fit.theta)) <= solution.bound[i, 0] <= 1e-11
    assert len(begun) > 3  # seen red: without a second start; with one that keeps the z of the first
    rank_one = problem._replace(X=np.repeat(problem.X[..., :1], 4, axis=-1), rho=np.full(5, 1e-18))  # to rounding
    solution = solved(rank_one, np.zeros_like(theta), F)  # by QR of the rows; seen red: by Cholesky alone
    for i in range(5):
        rows = (rank_one.X[i], rank_one.total[i], solution.theta[i])
        left = glm_oracles.gradient(*rows, link="log", ridge=1e-18, weight=problem.count[i])
        assert np.linalg.norm(solution.F[i].T @ left.astype(float)) <= solution.slope[i]


def test_an_aim_that_is_looser_takes_fewer_looks_and_is_kept():
    problem = problems("logit", n=300, rows=300)
    fits = truths(problem)
    theta, _ = starts(fits, 0.3)
    exact = solved(problem, theta, None)
    for looked in ((0.0, 0.0), (1.0, 0.1)):
        aim = Aim(np.full(5, 0.02), drift=0.1, stale=0.05, looked=looked)
        solution = batched.solve(problem, theta, aim, Curvature())
        for i, fit in enumerate(fits):
            E = np.linalg.norm(fit.R @ (solution.theta[i] - fit.theta))
            assert E <= solution.bound[i, 0] <= 0.02  # seen red: the slope before the last step for that after it
            eig = 2 * np.abs(np.log(np.linalg.svd(fit.R @ solution.F[i], compute_uv=False))).max()
            assert eig <= solution.bound[i, 1] <= 0.1 + 1e-9
        assert np.all(solution.steps < exact.steps)


def test_a_round_computes_the_curvature_once(monkeypatch):
    """Beyond its first rounds a run needs a few looks at its rows and one curvature, and no search along a line."""
    looks = dict(curvatures=0, searches=0)

    def counted(name, call):
        def told(*args, **settings):
            looks[name] += 1
            return call(*args, **settings)

        return told

    monkeypatch.setattr(hessian, "computed", counted("curvatures", hessian.computed))
    monkeypatch.setattr(objective, "along", counted("searches", objective.along))
    env = dither.envs.Logistic(dim=5, arms=40, contexts=1)
    spent = []
    for rounds in (200, 700):
        looks.update(curvatures=0, searches=0)
        dither.simulate(env, ["GLMFP:solver=counts,lam=1e-4"], runs=4, rounds=rounds, record=[1])
        spent.append(dict(looks))
    assert spent[1]["searches"] == spent[0]["searches"] > 0
    assert spent[1]["curvatures"] - spent[0]["curvatures"] <= 1.05 * 500  # seen red: SLOW = 1e-3

"""`lockstep.solve` against the oracle: the same estimate and curvature, run by run, whatever the neighbours do."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
import glm_oracles
from dither import links
from dither.models.glm import hessian, lockstep, newton
from dither.models.glm.newton import Problem

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
    return Problem(X, count, r, np.full(G, LAM), np.linalg.norm(X, axis=-1).max(axis=-1))


def truths(given, link):
    """θ̂ and R by the oracle, for each problem."""
    return [glm_oracles.fit(X, r, link=link, lam=LAM, weight=n) for X, n, r in zip(*given[:3], strict=True)]


def starts(fits, far, *, wrong=1.05, seed=1):
    """Points `far` widths from the estimates, and factors that are wrong by a share."""
    rng = np.random.default_rng(seed)
    theta, F = [], []
    for fit in fits:
        own = rng.standard_normal(len(fit.theta))
        theta.append(fit.theta.astype(float) + np.linalg.solve(fit.R, far * own / np.linalg.norm(own)))
        F.append(np.linalg.inv(fit.R) * wrong)
    return np.array(theta), np.array(F)


def solved(given, theta, F, link):
    return lockstep.solve(given, theta, F, link=links.find(link), tol=np.full(len(theta), 1e-8))


@pytest.mark.parametrize("link", ["logit", "log", "probit", "identity"])
@pytest.mark.parametrize("far", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("rows", [40, 30])
def test_it_finds_the_estimate_and_its_curvature(link, far, rows):
    given = problems(link, rows=rows)
    fits = truths(given, link)
    found, good = solved(given, *starts(fits, far), link)
    assert good.all()
    for i, fit in enumerate(fits):
        E = np.linalg.norm(fit.R @ (found.theta[i] - fit.theta))
        assert E <= found.bound[i, 0] <= 1e-11  # seen red: θ before the last step; `left` without the noise
        R = glm_oracles.root(given.X[i], found.theta[i], link=link, lam=LAM, weight=given.count[i])
        eig = np.abs(np.log(np.linalg.svd(R @ found.F[i], compute_uv=False) ** 2)).max()
        assert eig <= found.bound[i, 1] <= 1e-10  # seen red: H computed at the start
        width = np.linalg.norm(given.X[i] @ found.F[i], axis=-1).max()
        assert found.reach[i] >= width * (1 - 1e-12)
        left = glm_oracles.gradient(
            given.X[i], given.total[i], found.theta[i], link=link, ridge=LAM, weight=given.count[i]
        )
        assert np.linalg.norm(found.F[i].T @ left.astype(float)) <= found.slope[i]


def test_no_problem_depends_on_its_neighbours():
    """One start is exact, some are near, some bad: each is solved, or not, to the bit as it is alone."""
    given = problems("logit", G=6)
    fits = truths(given, "logit")
    theta, F = starts(fits, 0.05)
    theta[0], F[0] = fits[0].theta, np.linalg.inv(fits[0].R)
    F[1] *= 1.6  # steps are too long, so that H is computed early; seen red: a step for those that stand still
    theta[2] = 50.0
    F[3] *= 0.5
    F[4] *= 20.0  # the first step is so long that it is not taken; seen red: taken
    found, good = solved(given, theta, F, "logit")
    assert good.tolist() == [True, True, False, True, True, True]
    for i in range(6):
        one = [i]
        alone, fine = solved(Problem(*(None if A is None else A[one] for A in given)), theta[one], F[one], "logit")
        assert fine[0] == good[i]
        if good[i]:
            for A, B in zip(alone, found, strict=True):
                assert_array_equal(A[0], B[i])
    assert found.steps[1] > found.steps[0]


def test_the_last_step_is_too_short_to_change_the_curvature():
    given = problems("logit")
    for far, enough in ((1e-7, False), (1e-15, True)):
        theta, _ = starts(truths(given, "logit"), far)
        stuck, looks = np.zeros(5, bool), np.ones(5, np.int64)
        _, done, near = lockstep._ended(given, theta, stuck, looks, link=links.find("logit"), tol=np.full(5, 1e-8))
        assert near.all()
        assert done.all() if enough else not done.any()  # seen red: without `sharp`, or with a = 0


def test_a_bad_start_is_left_to_newton():
    given = problems("log")
    theta, F = starts(truths(given, "log"), 0.01)
    for bad in (np.full_like(theta, 30.0), theta + 5.0):
        assert not solved(given, bad, F, "log")[1].any()  # seen red: without SAFE
    longer = given._replace(X=np.repeat(given.X[..., :1], 4, axis=-1), rho=np.full(5, 1e-18))  # rank 1, to rounding
    assert not solved(longer, np.zeros_like(theta), F, "log")[1].any()


def test_a_round_computes_the_curvature_once(monkeypatch):
    """Beyond its first rounds a run needs a few looks at its rows and one curvature, and no other solver."""
    looks = dict(curvatures=0, newton=0)

    def counted(name, call):
        def told(*args, **settings):
            looks[name] += 1
            return call(*args, **settings)

        return told

    monkeypatch.setattr(hessian, "computed", counted("curvatures", hessian.computed))
    monkeypatch.setattr(newton, "solve", counted("newton", newton.solve))
    env = dither.envs.Logistic(dim=5, arms=40, contexts=1)
    spent = []
    for rounds in (200, 700):
        looks.update(curvatures=0, newton=0)
        dither.simulate(env, ["GLMFP:solver=counts"], runs=4, rounds=rounds, record=[1])
        spent.append(dict(looks))
    assert spent[1]["newton"] == spent[0]["newton"] > 0
    assert spent[1]["curvatures"] - spent[0]["curvatures"] <= 1.05 * 500  # seen red: SLOW = 1e-3

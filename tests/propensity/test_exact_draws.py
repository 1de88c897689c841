"""An exact propensity is that of the draws, for every algorithm that says "exact", where rounding alone separates arms.

    draws     choices one by one and in batches against the probabilities, by binomial tails at one level for all
    right     arms that a symmetry of what was learnt takes into each other have equal probabilities
    zeros     an arm of probability 0 is never drawn without a floor

DITHER_PROBLEMS sets how many problems each algorithm gets: `make check-release` takes thousands.
"""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither
from dither import noise
from properties import ALL, EXACT, able, bounded, few
from symmetric import KINDS, problem

PROBLEMS = int(os.environ.get("DITHER_PROBLEMS", len(KINDS)))
LEVEL = 1e-9  # of all comparisons of one algorithm together
LINEAR = [name for name in EXACT if ALL[name][0].draw is None]  # a network has none of the symmetries
VARIANTS = {  # other laws of z, and a z for each arm
    "LinFP": [dict(noise=noise.Ball()), dict(form="vector"), dict(coupled=False), dict(diagonal=True)],
    "RandLinUCB": [dict(law=noise.Gaussian(), beta=1.0), dict(coupled=False)],
    "GLMFP": [dict(solver="counts"), dict(coupled=False), dict(link="probit")],
}
OF_POINTS = ("RandLinUCB", "RandUCBLog")  # a probability is a sum over points, ten times as dear as an interval
CASES = [(name, {}) for name in EXACT] + [(name, more) for name in VARIANTS for more in VARIANTS[name]]


def learnt(name, given, **settings):
    """The bandit after the problem's observations."""
    b = dither.ALGORITHMS[name](dim=given.X.shape[-1], seed=3, **settings)
    for x, r in zip(given.x, given.r, strict=True):
        b.update(x, r)
    return b


def settings_of(name, given, seed):
    """λ of the problem where the model has one; sometimes a floor."""
    own = {"lam": given.lam} if name in LINEAR and name not in ("OFUGLB", "OFUGLB-e") else {}
    return own | ({"floor": 0.1} if seed % 3 == 1 else {})


def tails(counts, p, n):
    """The least binomial tail of the counts; 0 where what cannot be was drawn."""
    if np.any((counts > 0) & (p == 0)):
        return 0.0
    low, high = stats.binom.cdf(counts, n, p), stats.binom.sf(counts - 1, n, p)
    return float(np.minimum(low, high).min())


def many(name, more):
    """How many draws: in CI fewer of what is dear, which sees shares that are off by 0.15 and not by 0.08."""
    dear = name in OF_POINTS or not more.get("coupled", True)
    return few(*ALL[name], 500 if dear and "DITHER_PROBLEMS" not in os.environ else 2000)


def real(name):
    """Whether any number is a reward and any unit one for features."""
    return name in LINEAR and not bounded(name)


@pytest.mark.parametrize(("name", "more"), CASES, ids=str)
def test_draws_are_what_exact_propensities_say(name, more):
    n, near = many(name, more), 1e-9 if name in LINEAR else 1e-4  # a network answers in float32
    for seed in range(PROBLEMS):
        given = problem(seed, real=real(name))
        b = learnt(name, given, **settings_of(name, given, seed), **more)
        mask = None
        if seed % 4 == 2 and len(given.X) > 2:  # without the last arm
            mask = np.arange(len(given.X)) < len(given.X) - 1
        p = b.propensities(given.X, mask=mask)
        K, where = len(p), f"{given.kind}, problem {seed}: p = {p}"
        assert abs(p.sum() - 1) < 1e-12, where
        batch = b.choose(np.broadcast_to(given.X, (n, *given.X.shape)), mask=mask)
        single = [b.choose(given.X, mask=mask) for _ in range(n // 8)]
        arms = np.r_[batch.arm, [d.arm for d in single]]
        said = np.r_[batch.propensity, [d.propensity for d in single]]
        assert_allclose(said, p[arms], rtol=near, atol=1e-3 * near, err_msg=where)
        least = tails(np.bincount(arms, minlength=K), p, len(arms))
        assert least > LEVEL / (2 * K * PROBLEMS), f"{where}, drawn {np.bincount(arms, minlength=K)} of {len(arms)}"
    # seen red: the argmax of m + z w that no interval confirms; ties by a share of the largest m on offer


@pytest.mark.parametrize(("name", "more"), [case for case in CASES if case[0] in able("order", LINEAR)], ids=str)
def test_arms_that_a_symmetry_exchanges_have_equal_propensities(name, more):
    for seed in range(PROBLEMS):
        given = problem(seed, real=real(name))
        if "diagonal" in more and given.kind in ("rotated", "records", "circle", "columns"):
            continue  # the diagonal of V is that of one set of axes
        b = learnt(name, given, **settings_of(name, given, seed), **more)
        p = b.propensities(given.X)
        for group in given.alike:
            assert_allclose(p[group], p[group].mean(), rtol=1e-7, atol=1e-12, err_msg=f"{given} {p}")


@pytest.mark.parametrize("name", ["LinFP", "RandLinUCB", "LinUCB", "Greedy"])
def test_lists_and_explanations_read_the_same_sets(name):
    for seed in range(PROBLEMS):
        given = problem(seed, real=real(name))
        b = learnt(name, given, **settings_of(name, given, seed))
        p, X, k = b.propensities(given.X), given.X, 2
        lists = b.list_propensities(X, k=k)
        assert_allclose(b.list_propensities(X, k=1).membership, p, rtol=1e-9, atol=1e-12)
        for group in given.alike:
            assert_allclose(lists.membership[group], lists.membership[group].mean(), rtol=1e-7, atol=1e-12)
        drawn = b.choose_list(np.broadcast_to(X, (2000, *X.shape)), k=k)
        said = {tuple(own): share for own, share in zip(lists.lists.tolist(), lists.propensity, strict=True)}
        of, counts = np.unique(drawn.arms, axis=0, return_counts=True)
        expected = np.array([said.get(tuple(own), lists.other) for own in of.tolist()])
        assert tails(counts, expected, 2000) > LEVEL / (2 * len(X) ** k * PROBLEMS), f"{given.kind}, problem {seed}"
        assert_allclose(drawn.propensity, [said.get(tuple(own), lists.other) for own in drawn.arms.tolist()], rtol=1e-7)
        if name == "LinFP":
            d = b.choose(X)
            e = b.explain(X, d.z)
            assert b.floor or d.arm in e.best
            assert_allclose(e.propensity, p, rtol=1e-12)

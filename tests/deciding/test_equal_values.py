"""Values that nothing but rounding tells apart are one: equal arms share alike, drawn and stated, on all roads."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import links, models, noise, policies
from dither.deciding import request
from dither.propensity import settled
from dither.propensity.curves import Curve, lead
from oracles import agree

EQUAL = {
    "differences": np.array([9.99, 19.99]) - np.array([4.99, 14.99]),
    "tenths": [1.1 - 1.0, 0.1],
    "sums": [0.1 + 0.2, 0.3],
    "products": [1.1 * 1.1, 1.21],
    "shares": [100 * (1.0 - 0.93), 7.0],
    "cents of thousands": np.array([1999.99, 0.01]) - np.array([1999.98, 0.0]),
    "thirds": [1 / 3, 1 - 2 / 3],
    "float32": np.array([1.1, 0.1], dtype=np.float32) - np.array([1.0, 0.0], dtype=np.float32),
    "float32 beside float": [np.float32(1.1) - np.float32(1.0), 0.1],
    "float16": np.array([1.1, 0.1], dtype=np.float16) - np.array([1.0, 0.0], dtype=np.float16),
}
LAWS = [
    policies.FeaturePerturbation(c=2.0),
    policies.FeaturePerturbation(c=2.0, form="vector", noise=noise.Ball()),
    policies.RandUCB(beta=3.0),
    policies.Greedy(),
    policies.SquareCB(3.0),
    policies.UCB(beta=1.0),
    policies.GLMUCB(rho=0.5),
]
DRAWN = [
    policies.FeaturePerturbation(c=2.0, coupled=False),
    policies.RandUCB(beta=3.0, coupled=False),
    policies.ThompsonSampling(c=2.0),
]


def bandit(link, policy, *, d, **settings):
    model = models.Ridge(1e-6) if link == "identity" else models.GLM(link, lam=1e-6)
    return dither.Bandit(model, policy, dim=d, seed=0, **settings)


@pytest.mark.parametrize("lam", ["auto", 1e-4])
@pytest.mark.parametrize("v", EQUAL.values(), ids=EQUAL)
def test_a_pair_that_nothing_tells_apart_shares_alike(v, lam):
    b = dither.GLMFP(dim=2, lam=lam, seed=0)
    p = b.propensities(np.eye(2), values=v)
    assert_array_equal(p, [0.5, 0.5])
    made = b.choose(np.broadcast_to(np.eye(2), (1000, 2, 2)), values=v)
    assert agree(np.bincount(made.arm, minlength=2) / 1000, p, n=1000)
    assert set(made.propensity.tolist()) == {b.choose(np.eye(2), values=v).propensity} == {0.5}
    # Seen red with scores that are compared with one share of their size: stated (.769, .231), drawn (.726, .274)
    # and, for float16 and mixed types, with the rounding of float64: (0, 1)


@pytest.mark.parametrize("link", sorted(links.LINKS))
@pytest.mark.parametrize("policy", LAWS, ids=lambda policy: type(policy).__name__)
def test_equal_records_in_any_order_with_values_an_ulp_apart_share_alike(link, policy):
    ulp = [5.0, 5.0, np.nextafter(5.0, 6.0)]
    for seed in range(4):
        rng, record = np.random.default_rng(seed), [[1], [1, 0, 0, 0], [1, 1], [1, 1, 1, 0, 0]][seed % 4]
        b = bandit(link, policy, d=3, monte_carlo=0)
        pairs = [(arm, float(r)) for arm in range(3) for r in record]
        for i in rng.permutation(len(pairs)):
            b.update(np.eye(3)[pairs[i][0]], pairs[i][1])
        p, _, kind = b.propensities(np.eye(3), values=ulp, detail=True, draws=50)
        assert kind == "monte_carlo" or np.allclose(p, 1 / 3, rtol=1e-12), (record, p)
        made = b.choose(np.broadcast_to(np.eye(3), (100, 3, 3)), values=np.array([9.99, 5, 19.99]) - [4.99, 0, 14.99])
        assert agree(np.bincount(made.arm, minlength=3) / 100, np.full(3, 1 / 3), n=100)
    # Seen red with scores of the logit link that are compared with one share of their size: [0, 0, 1]


@pytest.mark.parametrize("link", sorted(links.LINKS))
@pytest.mark.parametrize("policy", DRAWN, ids=lambda policy: f"{type(policy).__name__}")
def test_what_is_drawn_again_shares_alike_too(link, policy):
    b = bandit(link, policy, d=2, monte_carlo=20)
    v, n = EQUAL["differences"], 200
    p, se, _ = b.propensities(np.eye(2), values=v, detail=True, draws=n)
    assert agree(p, np.full(2, 0.5), n=n)
    many = 40 if se is None else n
    made = b.choose(np.broadcast_to(np.eye(2), (many, 2, 2)), values=v)
    assert agree(np.bincount(made.arm, minlength=2) / many, np.full(2, 0.5), n=many)


@pytest.mark.parametrize("policy", [policies.Greedy(), policies.SquareCB(3.0), policies.UCB(beta=1.0)], ids=repr)
def test_means_that_cancel_tie_with_values_as_without(policy):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, b = rng.normal(size=3), dither.Bandit(models.Ridge(1.0), policy, dim=3, seed=0)
        for r in rng.permutation([0.3, -0.3, 0.6, -0.6]):
            b.update(x, r)
        X = np.array([-x, x])
        assert_array_equal(b.propensities(X), [0.5, 0.5])
        if isinstance(policy, policies.UCB):  # a bonus pays for the higher value
            assert_array_equal(b.propensities(X, values=[7.0, 7.0]), [0.5, 0.5])
        else:
            assert_array_equal(b.propensities(X, values=[2.0, 7.0]), [0.5, 0.5])
    # Seen red with products that tie by a share of the largest product: [0, 1]


def test_arms_with_floors_minima_and_masks():
    v = np.array([9.99, 19.99, 3.0]) - np.array([4.99, 14.99, 0.0])
    b = dither.GLMFP(dim=3, lam=1e-4, seed=0, floor=0.1)
    p = b.propensities(np.eye(3), mask=[1, 1, 0], values=v, minimum=[0.0, 0.3, 0.0])
    plain = b.propensities(np.eye(3), mask=[1, 1, 0], values=[5.0, 5.0, 1.0], minimum=[0.0, 0.3, 0.0])
    assert_array_equal(p, plain)
    with dither.Live(None, bandit=dither.GLMFP(dim=3, lam=1e-4, seed=0)) as live:
        made = [live.choose(np.eye(3), values=[0.3, 0.1 + 0.2, 0.1]) for _ in range(200)]
    assert {d.propensity for d in made} == {0.5}
    assert agree(np.mean([d.place == 0 for d in made]), 0.5, n=200)


@pytest.mark.parametrize("apart", [1e-9, 1e-6])
def test_values_that_differ_by_a_billionth_are_told_apart(apart):
    b = dither.GLMFP(dim=2, lam=1e-4, seed=0)
    assert_array_equal(b.propensities(np.eye(2), values=[1.0, 1 + apart]), [0, 1])
    assert set(b.choose(np.broadcast_to(np.eye(2), (500, 2, 2)), values=[1.0, 1 + apart]).arm.tolist()) == {1}
    # Seen red with values that tie within 1e-8: (.5, .5)


def test_a_chain_of_values_is_its_least_whatever_the_order():
    e = settled.OF_VALUES
    v = np.array([[1 + 2.5 * e, 3.0, 1.0, 1 + 1.2 * e], [2.0, 2.0, 5.0, 2 + e]])
    want = np.array([[1.0, 3.0, 1.0, 1.0], [2.0, 2.0, 5.0, 2.0]])
    for turn in (np.arange(4), np.array([3, 1, 0, 2]), np.array([2, 3, 1, 0])):
        assert_array_equal(settled.values(v[:, turn]), want[:, turn])
    on = np.array([[True, True, True, False], [True, True, False, True]])
    assert_array_equal(settled.values(v, mask=on)[0], v[0])  # the link of the chain is not on offer
    assert request.values([0.3, 0.1 + 0.2], shape=(2,), mask=None).tolist() == [0.3, 0.3]


def sign_of_60_digits(m, w, v, z):
    """The sign of v_i μ(m_i + z w_i) - v_j μ(m_j + z w_j)."""
    with mpmath.workdps(60):
        (m, n), (w, y), (v, u), z = *([mpmath.mpf(float(one)) for one in part] for part in (m, w, v)), mpmath.mpf(z)
        return int(mpmath.sign(v * (1 + mpmath.exp(-(n + z * y))) - u * (1 + mpmath.exp(-(m + z * w)))))


def test_the_order_of_two_curves_is_that_of_60_digits():
    rng = np.random.default_rng(0)
    for kind in range(1000):
        m, w, v = rng.normal(size=2) * 10, np.exp(rng.normal(size=2)), np.exp(rng.normal(size=2))
        near = 10.0 ** rng.uniform(-16, -14)
        if kind % 4 in (0, 2):
            m[1], w[1] = m[0] * (1 + near), w[0] * (1 - near)
        if kind % 4 in (1, 2):
            v[1] = v[0] * (1 + near * rng.choice([-1, 1, 0.1]))
        z = float(rng.normal() * 10)
        said = np.sign(lead(*(Curve(m[k], w[k], v[k]) for k in range(2)))(z))
        assert said == sign_of_60_digits(m, w, v, z), (kind, m, w, v, z)
    # Seen red with log v + log μ of each: 24 of 1,000

"""Values of arms: the highest value times expected reward is shown, with its probability. Grids of z are the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

import dither
from dither import models, noise, policies, propensity
from dither.policies.valued import Curves
from longer import size

PRICES = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
GRID = special.ndtri((np.arange(400_000) + 0.5) / 400_000)  # of z, each point as likely as another
MU = {"identity": lambda s: s, "log": np.exp, "logit": special.expit, "probit": special.ndtr}


def taught(link="logit", policy=None, *, seed=0, d=5, **settings):
    """Five arms of which less is bought, the higher the price."""
    model = models.Ridge(1.0) if link == "identity" else models.GLM(link, lam=1.0)
    b = dither.Bandit(model, policy or policies.FeaturePerturbation(), dim=d, seed=seed, **settings)
    rng = np.random.default_rng(3)
    arm = rng.integers(d, size=60)
    b.update(np.eye(d)[arm], (rng.random(60) < 0.9 / 2.0**arm).astype(float))
    return b


def on_a_grid(b, X, v, link, *, on=None):
    """The share of the points of z at which each arm has the highest value times reward."""
    m, w = b.mean(X), b.width(X) * b.policy.c
    s = v * MU[link](m + GRID[:, None] * w)
    s = s if on is None else np.where(on, s, -np.inf)
    return np.bincount(np.argmax(s, axis=1), minlength=len(m)) / len(GRID)


@pytest.mark.parametrize("link", ["identity", "log", "logit"])
@pytest.mark.parametrize("c", [1.0, 3.0])
@pytest.mark.parametrize("masked", [False, True])
def test_probabilities_are_shares_of_z(link, c, masked):
    b = taught(link, policies.FeaturePerturbation(c=c))
    X = np.random.default_rng(1).normal(size=(5, 5)) + np.eye(5)
    on = np.array([True, False, True, True, True]) if masked else None
    p, _, kind = b.propensities(X, mask=on, values=PRICES, detail=True)
    assert kind == "exact"
    assert_allclose(p, on_a_grid(b, X, PRICES, link, on=on), atol=2e-5)
    assert np.count_nonzero(p > 0.01) > 1
    # seen red: values that multiply m alone; v in place of log v for the log link


POLICIES = [
    *(policies.FeaturePerturbation(c=2.0, coupled=coupled) for coupled in (True, False)),
    policies.FeaturePerturbation(c=2.0, form="vector", noise=noise.Ball()),
    policies.RandUCB(beta=3.0),
    policies.ThompsonSampling(c=2.0),
    policies.EpsGreedy(0.3, decay=None),
    policies.Softmax(1.0),
    policies.SquareCB(3.0),
    policies.UCB(beta=1.0),
]


@pytest.mark.parametrize("link", ["identity", "logit", "log", "probit"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{type(policy).__name__}")
def test_what_is_drawn_is_what_is_said(link, policy):
    b, n = taught(link, policy, floor=0.1, monte_carlo=100), 20_000
    X = np.random.default_rng(1).normal(size=(5, 5)) / 2 + np.eye(5)
    p, se, kind = b.propensities(X, values=PRICES, detail=True, draws=2000)
    of_curves = link == "logit" and isinstance(policy, policies.FeaturePerturbation | policies.RandUCB)
    of_integrals = not getattr(policy, "coupled", True)
    many = 100 if kind == "monte_carlo" else size(500, longer=2000) if of_curves or of_integrals else n
    made = b.choose(np.broadcast_to(X, (many, 5, 5)), values=PRICES)
    share = np.bincount(made.arm, minlength=5) / many
    error = np.sqrt(p * (1 - p) / many) + (0 if se is None else se)
    assert np.all(abs(share - p) <= 5 * error)
    assert made.propensity_kind == kind
    if kind == "exact":
        assert_allclose(made.propensity, p[made.arm], rtol=1e-9)
        one = b.choose(X, values=PRICES)
        assert_allclose(one.propensity, p[one.arm], rtol=1e-9)
    certain = isinstance(policy, policies.EpsGreedy | policies.Softmax | policies.SquareCB | policies.UCB)
    lines = not isinstance(policy, policies.ThompsonSampling) and link in ("identity", "log")
    curves = link == "logit" and getattr(policy, "coupled", False)
    assert kind == ("exact" if certain or lines or curves else "monte_carlo")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{type(policy).__name__}")
@pytest.mark.parametrize("link", ["identity", "logit"])
def test_values_of_one_change_nothing(link, policy):
    a, b = (taught(link, policy, monte_carlo=50) for _ in range(2))
    X = np.random.default_rng(1).normal(size=(30, 5, 5))
    plain, valued = a.choose(X), b.choose(X, values=np.ones(5))
    assert_array_equal(plain.arm, valued.arm)
    if plain.propensity_kind == valued.propensity_kind == "exact":
        assert_allclose(plain.propensity, valued.propensity, rtol=1e-6)


def test_greedy_shows_the_highest_product():
    b = taught("logit", policies.Greedy())
    assert b.choose(np.eye(5), values=PRICES).arm == np.argmax(PRICES * b.predict(np.eye(5)))
    assert b.choose(np.eye(5)).arm == 0
    each = b.choose(np.broadcast_to(np.eye(5), (2, 5, 5)), values=[[1, 1, 1, 1, 1], [1, 1, 1, 1, 1e6]])
    assert each.arm.tolist() == [0, 4]


def test_bonuses_on_rewards_are_paid_on_rewards():
    b = taught("logit", policies.GLMUCB(rho=0.5))
    s = b.policy.view(b.model, b.state, np.eye(5), t=1).s  # above 1 for some: no logit
    v = (1 + 0.01 * np.arange(5)) / s  # the products are 1 to 1.04
    assert np.argmax(v * special.expit(s)) != 4
    assert b.choose(np.eye(5), values=v).arm == 4
    # seen red: the link of the bonus


@settings(max_examples=200)
@given(
    st.integers(1, 8).flatmap(
        lambda K: st.tuples(
            *(st.lists(st.floats(low, high), min_size=K, max_size=K) for low, high in ((-30, 30), (0, 20), (-6, 6)))
        )
    )
)
def test_curves_against_a_grid(drawn):
    m, w, v = np.array(drawn[0]), np.array(drawn[1]), np.exp(drawn[2])
    p = propensity.curves(m, w, v, law=noise.Gaussian())
    z = GRID[::40, None].astype(np.longdouble)
    x = m + z * w
    s = np.log(v.astype(np.longdouble)) - np.where(x > 0, np.log1p(np.exp(-abs(x))), np.log1p(np.exp(-abs(x))) - x)
    top, size = s.max(axis=1, keepdims=True), abs(s).max(axis=1, keepdims=True)
    best = s >= top - 1e-10 * abs(top)  # rounding may join these
    near = s >= top - 1e-10 * size
    least = np.mean(best & (near.sum(axis=1, keepdims=True) == 1), axis=0)
    assert np.all(p >= least - 6e-4)
    assert np.all(p <= np.mean(near, axis=0) + 6e-4)
    assert_allclose(p.sum(), 1.0, rtol=1e-12)


def test_two_curves_may_meet_twice():
    """The arm of the higher price wins in the middle alone: it is steep where the other is flat."""
    m, w, v = np.array([0.0, -1.0]), np.array([1.0, 3.0]), np.array([1.0, 0.95])
    p = propensity.curves(m, w, v, law=noise.Gaussian())
    grid = np.linspace(-8, 8, 4_000_001)
    s = v * special.expit(m + grid[:, None] * w)
    ahead = s[:, 1] > s[:, 0]
    z = grid[1:][np.diff(ahead)]
    assert len(z) == 2
    assert_allclose(p[1], stats.norm.cdf(z[1]) - stats.norm.cdf(z[0]), atol=1e-5)
    # seen red: one half alone of the road of z is looked at


@pytest.mark.parametrize("common", [1.0, 1e-300, 1e90])
@pytest.mark.parametrize(
    ("m", "w", "v"),
    [
        ([0, 0, -3], [100, 70, 0.3], [5, 5, 12]),  # two new arms of one price, beside a known one of a higher price
        ([0, 1, -1000], [100, 90, 0], [0.5, 0.5, 1]),
        ([700, 690, -700], [1, 20, 0], [1, 1, 3]),
        ([0, 0, 0, -5], [1e4, 1e3, 1e2, 0], [2, 2, 2, 3]),
    ],
)
def test_curves_of_one_value_have_the_order_of_their_lines(m, w, v, common):
    """Where both are near 1, their order is that of x, and nothing of it is left in μ."""
    m, w, v = (np.array(part, dtype=float) for part in (m, w, v))
    z, n = GRID, len(GRID)
    with np.errstate(over="ignore"):
        s = v / np.max(v) * special.expit(m + z[:, None] * w)
    s = np.where(v == v[0], np.max(s[:, v == v[0]], axis=1, keepdims=True), s)  # the first have one value
    x = np.where(v == v[0], m + z[:, None] * w, -np.inf)
    right = np.where(s[:, 0] >= s[:, -1], np.argmax(x, axis=1), len(m) - 1)
    share = np.bincount(right, minlength=len(m)) / n
    assert_allclose(propensity.curves(m, w, common * v, law=noise.Gaussian()), share, atol=1e-5)
    drawn = Curves(m, w, common * v, noise.Gaussian()).best(z, u=np.full(n, 0.999))
    assert_allclose(np.bincount(drawn, minlength=len(m)) / n, share, atol=1e-5)
    # seen red: scores log v + log μ, where 0.03 of the draws were not as said; meetings looked for in these


def test_widths_that_are_almost_equal_meet_nowhere():
    p = propensity.curves(np.zeros(2), np.array([1e-320, 3e-320]), np.array([1.0, 2.0]), law=noise.Gaussian())
    assert_array_equal(p, [0, 1])
    # seen red: an overflow in the stationary point, which warned


def test_arms_that_are_equal_share():
    b = taught()
    X = np.eye(5)[[0, 1, 1, 2]]
    p = b.propensities(X, values=[1.0, 2.0, 2.0, 3.0])
    assert p[1] == p[2] > 0
    assert_allclose(propensity.curves(np.zeros(3), np.zeros(3), np.ones(3), law=noise.Gaussian()), np.full(3, 1 / 3))


def test_many_arms_are_said_to_be_drawn():
    b = taught(d=5, monte_carlo=100)
    X = np.random.default_rng(0).normal(size=(propensity.MOST_CURVES + 1, 5))
    assert b.choose(X, values=np.ones(len(X))).propensity_kind == "monte_carlo"
    assert b.choose(X[:-1], values=np.ones(len(X) - 1)).propensity_kind == "exact"


class Rule:
    """A policy of the user's whose view chooses by a rule of its own."""

    needs = frozenset({"mean"})

    def draw(self, rng, n, *, arms, dim):
        return ()

    def view(self, model, state, X, *, t):
        return Own(model.mean(state, X))


class Own(tuple):
    def __new__(cls, s):
        return super().__new__(cls, (s,))

    def scores(self):
        return self[0]

    def best(self, *, u, mask=None):
        return np.argmin(self[0], axis=-1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, 2.0], r"values must have shape \(5,\)"),
        ([1, 1, 0, 1, 1], "above 0 .* got 0 for arm 2: leave an arm without value out by the mask"),
        ([1, 1, 1, 1, -2], "got -2 for arm 4"),
        ([1, 1, np.nan, 1, 1], "got nan for arm 2"),
        ([1, 1, np.inf, 1, 1], "got inf for arm 2"),
        ("abcde", "values"),
        ({0: 1.0}, "in the order of the arms, got a dict"),
    ],
)
def test_values_without_sense_are_refused_and_nothing_is_drawn(values, words):
    a, b = taught(), taught()
    with pytest.raises((ValueError, TypeError), match=words):
        a.choose(np.eye(5), values=values)
    assert [a.choose(np.eye(5)) for _ in range(5)] == [b.choose(np.eye(5)) for _ in range(5)]


def test_what_is_not_on_offer_has_no_value():
    b = taught()
    p = b.propensities(np.eye(5), mask=[1, 0, 1, 1, 1], values=[1, np.nan, 3, 4, 5])
    assert p[1] == 0
    assert_allclose(p.sum(), 1)


def test_what_cannot_weigh_values_says_so():
    with pytest.raises(TypeError, match=r"Own chooses by a rule of its own: give it valued"):
        dither.Bandit(models.Ridge(), Rule(), dim=5).choose(np.eye(5), values=PRICES)
    b = dither.DeepFP(dim=2, disjoint=3, output="softmax", hidden=(3,), seed=0)
    with pytest.raises(TypeError, match="a softmax is over all"):
        b.choose(np.ones(2), values=np.ones(3))


def test_slots():
    b = dither.GLMFP(dim=2, disjoint=3, seed=0, c=2.0)
    b.update(np.ones((6, 2)), [1, 0, 1, 1, 0, 0], arm=[0, 0, 1, 1, 2, 2])
    v, x = np.array([1.0, 0.5, 3.0]), np.array([1.0, -0.5])
    s = v * special.expit(b.mean(x) + GRID[:, None] * 2 * b.width(x))
    share = np.bincount(np.argmax(s, axis=1), minlength=3) / len(GRID)
    assert_allclose(b.propensities(x, values=v), share, atol=2e-5)

"""Explanations, and lists of the k best arms, against all crossings in rational arithmetic and against draws."""

import subprocess
import sys
from fractions import Fraction
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import dither
import oracles
from dither import noise, propensity
from dither.policies.views import Lines

mpl.use("Agg")
GAUSSIAN = noise.Gaussian()
grid = st.tuples(st.integers(-12, 12).map(lambda i: i / 4), st.integers(0, 8).map(lambda i: i / 4))
distinct = st.lists(grid, min_size=1, max_size=8, unique=True)


def all_lists(m, w, k):
    """P(each ordered list of the k highest lines), from the order between any two neighbouring crossings."""
    m, w = [Fraction(float(v)) for v in m], [Fraction(float(v)) for v in w]
    pairs = [(i, j) for i, j in combinations(range(len(m)), 2) if w[i] != w[j]]
    cuts = sorted({(m[i] - m[j]) / (w[j] - w[i]) for i, j in pairs})
    middles = [(a + b) / 2 for a, b in pairwise(cuts)]
    middles = [cuts[0] - 1, *middles, cuts[-1] + 1] if cuts else [Fraction(0)]
    found = {}
    for z, (low, high) in zip(middles, pairwise([-np.inf, *map(float, cuts), np.inf]), strict=True):
        order = sorted(range(len(m)), key=lambda i: -(m[i] + z * w[i]))[:k]
        mass = oracles.mass(low, high, special.ndtr)
        found[tuple(order)] = found.get(tuple(order), 0.0) + mass
    return found


@given(lines=distinct, k=st.integers(1, 8))
@example(lines=[(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 0.5)], k=3)  # all through one point
@example(lines=[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (0.0, 2.0)], k=2)
def test_lists_are_the_orders_between_crossings(lines, k):
    (m, w), k = np.array(lines).T, min(k, len(lines))
    lists, low, high = propensity.ranks(m, w, k=k)
    mass = noise.mass(GAUSSIAN, low, high)
    expected = all_lists(m, w, k)
    assert_allclose([expected.get(tuple(own), 0.0) for own in lists.tolist()], mass, rtol=1e-9, atol=1e-15)
    assert_allclose(np.sum(mass), 1.0, rtol=1e-12)
    for own, p in expected.items():  # one list at once
        a, b, shared = propensity.listed(m, w, np.array(own))
        assert_allclose(noise.mass(GAUSSIAN, a, b) / shared, p, rtol=1e-9, atol=1e-15)
    # seen red: who comes in next not asked again after the last place changes within


@pytest.mark.parametrize("k", [1, 3, 10])
def test_lists_of_many_lines(k):
    rng = np.random.default_rng(k)
    m, w = rng.normal(size=300), rng.uniform(size=300)
    lists, low, high = propensity.ranks(m, w, k=k)
    mass = noise.mass(GAUSSIAN, low, high)
    z = np.linspace(-4, 4, 101)
    at = np.searchsorted(low, z, side="right") - 1
    assert_array_equal(lists[at], np.argsort(-(m + z[:, None] * w), axis=1)[:, :k])
    if k == 1:
        p = np.bincount(lists[:, 0], mass, minlength=300)
        assert_allclose(p, propensity.envelope(m, w, law=GAUSSIAN), atol=1e-14)


def a_bandit(name="LinFP", **settings):
    b = dither.ALGORITHMS[name](dim=3, seed=0, **settings)
    rng = np.random.default_rng(4)
    b.update(rng.normal(size=(12, 3)), rng.normal(size=12))
    X = rng.normal(size=(7, 3))
    X[4] = X[3]  # one arm twice
    return b, X


CASES = [
    ("LinFP", {"lam": 1.0}),
    ("LinFP", {"lam": 1.0, "floor": 0.3}),
    ("LinFP", {"lam": 1.0, "noise": noise.Ball()}),
    ("RandLinUCB", {"lam": 1.0}),
    ("Greedy", {}),
    ("EpsGreedy", {"epsilon": 0.4}),
    ("Softmax", {"temperature": 0.5}),
    ("SquareCB", {"gamma": 3.0}),
    ("LinTS", {"lam": 1.0, "floor": 0.2}),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
@pytest.mark.parametrize("masked", [False, True])
def test_lists_are_drawn_as_they_are_reported(name, settings, masked):
    b, X = a_bandit(name, **settings)
    mask = np.arange(7) != 2 if masked else None
    n, k = 20_000, 3
    answer = b.list_propensities(X, k=k, mask=mask)
    many = b.choose_list(np.broadcast_to(X, (n, 7, 3)), k=k, mask=mask)
    on = np.bincount(many.arms.ravel(), minlength=7) / n
    assert abs(answer.membership.sum() - k) < 1e-12
    mc = answer.kind == "monte_carlo"
    assert mc == (name in ("LinTS", "Softmax", "SquareCB"))
    assert oracles.agree(on, answer.membership, n=n, se=answer.membership_se if mc else 0.0)
    lists, hits = np.unique(many.arms, axis=0, return_counts=True)
    drawn = {tuple(own): count / n for own, count in zip(lists.tolist(), hits, strict=True)}
    f = np.array([drawn.get(tuple(own), 0.0) for own in answer.lists.tolist()])
    assert oracles.agree(f, answer.propensity, n=n, se=answer.propensity_se if mc else 0.0)
    places = 6 * 5 * 4 if masked else 7 * 6 * 5
    assert abs(answer.propensity.sum() + answer.other * (places - len(answer.lists)) - 1) < 1e-12
    if not mc:
        reported = dict(zip(map(tuple, answer.lists.tolist()), answer.propensity, strict=True))
        own = [reported.get(tuple(arms), answer.other) for arms in many.arms[:200].tolist()]
        assert_allclose(many.propensity[:200], own, rtol=1e-9, atol=1e-15)
    if masked:
        assert not np.any(many.arms == 2)
    # seen red: one uniform draw for all places; 1/n^k for a list of the floor


def test_a_list_of_one_is_a_choice():
    b, X = a_bandit(lam=1.0, floor=0.1)
    other, _ = a_bandit(lam=1.0, floor=0.1)
    assert_allclose(b.list_propensities(X, k=1).membership, b.propensities(X), atol=1e-14)
    for _ in range(20):
        d, one = b.choose(X), other.choose_list(X, k=1)
        assert d.z == one.z
        assert_allclose(one.propensity, b.propensities(X)[one.arms[0]], rtol=1e-9)
        assert one.arms.shape == (1,)
        assert one.propensity_kind == "exact"


def test_lists_by_monte_carlo_say_so():
    b, X = a_bandit("LinTS", lam=1.0, monte_carlo=300)
    one, many = b.choose_list(X, k=2), b.choose_list(X[None], k=2)
    assert (one.propensity_kind, many.propensity_kind) == ("monte_carlo", "monte_carlo")
    assert one.propensity >= 1 / 301
    assert one.propensity_se > 0
    assert many.arms.shape == (1, 2)
    before = b.list_propensities(X, k=2)
    assert_array_equal(before.membership, b.list_propensities(X, k=2).membership)  # spends no chance
    none, _ = a_bandit("LinTS")
    d = none.choose_list(X, k=2)
    assert d.propensity_kind == "none"
    assert np.isnan(d.propensity)


def test_lists_that_cannot_be_are_refused():
    b, X = a_bandit()
    with pytest.raises(ValueError, match="k must be at most 7"):
        b.choose_list(X, k=8)
    with pytest.raises(ValueError, match="k must be at most 1"):
        b.choose_list(X, k=2, mask=np.arange(7) == 3)
    with pytest.raises(ValueError, match="whole number of at least 1"):
        b.list_propensities(X, k=0)
    with pytest.raises(ValueError, match="one request"):
        b.list_propensities(X[None], k=2)
    same = np.broadcast_to(X[0], (12, 3))
    with pytest.raises(ValueError, match="lists=False"):
        b.list_propensities(same, k=9)
    assert_allclose(b.list_propensities(same, k=9, lists=False).membership, 9 / 12)


# Explanations


@given(lines=st.lists(grid, min_size=1, max_size=8), z=st.integers(-9, 9).map(lambda i: i / 3 + 0.01))
def test_slices_have_the_probabilities_and_the_arm(lines, z):
    from dither.deciding import explain

    m, w = np.array(lines).T
    p = propensity.envelope(m, w, law=GAUSSIAN)
    e = explain.of_lines(Lines(m, w, law=GAUSSIAN), p=p, uniform=0.0, z=z, mask=None)
    can = ~np.isnan(e.low)
    assert_array_equal(can, p > 0)
    copies = [lines.count(line) for line in lines]
    assert_allclose((noise.mass(GAUSSIAN, e.low, e.high) / copies)[can], p[can], rtol=1e-12)
    s = m + z * w
    assert set(e.best) <= set(np.flatnonzero(s >= s.max() - 1e-9))
    assert all(e.low[i] <= z <= e.high[i] for i in e.best)
    assert np.all(np.diff(e.corners) > 0)
    assert len(e.corners) == len({lines[i] for i in np.flatnonzero(can)}) - 1
    # seen red: copies of a winner without its slice


def test_an_explanation_of_a_decision():
    b, X = a_bandit(lam=1.0, floor=0.1)
    d = b.choose(X)
    e = b.explain(X, d.z)
    assert d.arm in e.best or e.uniform
    assert_allclose(e.propensity, b.propensities(X))
    assert_allclose(e.m, b.mean(X))
    assert e.uniform == 0.1
    text = repr(e)
    assert "<- z" in text
    assert f"{e.z:.4f}" in text
    assert "uniform" in text
    assert b.explain(X).best == ()
    mask = np.arange(7) == 5
    assert b.explain(X, 0.0, mask=mask).best == (5,)
    assert_array_equal(np.isnan(b.explain(X, mask=mask).low), ~mask)


def test_explanations_that_cannot_be_say_who_has_them():
    X = np.eye(3)
    for b in (
        dither.LinTS(dim=3, seed=0),
        dither.Greedy(dim=3, seed=0),
        dither.LinFP(dim=3, seed=0, coupled=False),
    ):
        with pytest.raises(TypeError, match="coupled=True"):
            b.explain(X)
    b = dither.LinFP(dim=3, seed=0)
    with pytest.raises(ValueError, match="finite"):
        b.explain(X, np.nan)
    with pytest.raises(ValueError, match="one request"):
        b.explain(X[None])


@pytest.mark.parametrize(
    "settings",
    [{}, {"noise": noise.Ball()}, {"noise": noise.Custom(special.ndtr, lambda z: special.ndtr(-z), ppf=special.ndtri)}],
)
def test_a_picture_has_a_line_for_each_arm(settings):
    b, X = a_bandit(lam=1.0, **settings)
    e = b.explain(X, 0.2)
    ax = e.plot()
    assert len(ax.lines) == 7 + 3  # the arms, the envelope, its corners, z
    z, top = ax.lines[7].get_data()
    assert_allclose(top, np.max(e.m[:, None] + z * e.w[:, None], axis=0))
    assert ax.get_xlabel() == "z"
    assert e.plot(ax) is ax
    mpl.pyplot.close("all")
    randucb, _ = a_bandit("RandLinUCB")
    randucb.explain(X).plot().figure.canvas.draw()
    mpl.pyplot.close("all")


def test_a_missing_matplotlib_is_named():
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np, dither
try: dither.LinFP(dim=2, seed=0).explain(np.eye(2)).plot()
except ImportError as e: assert "matplotlib" in str(e) and "dither[experiments]" in str(e), e
else: raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_place_is_as_exact_as_a_choice():
    """k = 1 where the policy knows its probabilities though not those of lists: uncoupled FP, ε-greedy on top."""
    bandit = dither.LinFP(dim=3, seed=0, coupled=False, floor=0.2)
    X = np.random.default_rng(0).normal(size=(4, 3))
    d = bandit.choose_list(X, k=1)
    assert d.propensity_kind == "exact"
    assert d.propensity == pytest.approx(bandit.propensities(X)[d.arms[0]], rel=1e-12)  # seen red: NaN, of kind "none"


def test_lists_by_monte_carlo_count_whole_decisions():
    """(1 + hits)/(1 + n) of lists with the uniform ones among them; seen red: the floor added to hits, and one more."""
    n, X = 40, np.random.default_rng(0).normal(size=(4, 3))
    bandit = dither.LinTS(dim=3, seed=1, floor=0.5, monte_carlo=n)
    hits = np.array([bandit.choose_list(X, k=2).propensity for _ in range(60)]) * (n + 1) - 1
    assert np.allclose(hits, np.round(hits), atol=1e-9)
    assert len(np.unique(np.round(hits))) > 3


@pytest.mark.parametrize("z", [np.zeros(2), "a", np.nan, np.inf, [0.5]])
def test_one_z_is_looked_at(z):
    with pytest.raises(ValueError, match="z must be one finite number"):
        dither.LinFP(dim=2, seed=0).explain(np.eye(2), z)

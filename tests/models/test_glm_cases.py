"""The cases of `test_cases` for generalised linear bandits, with the right values by 50 digits or by hand.

`P(x against 0) = Φ(m/(c w))` makes the zero arm a ruler, so `propensities` alone shows whether m and w are right.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import dither
import oracles
from glm_cases import ALL, NEAR, PAID, SOLVERS, THREE_A, THREE_W, A, U, exact, three
from oracles import rows, unchanged

# N1  two columns say the same thing, and λ is next to nothing


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("lam", [1e-10, 1e-4])
@pytest.mark.parametrize("at_once", [False, True])
def test_n1_collinear_columns(lam, solver, at_once):
    b = dither.GLMFP(dim=2, lam=lam, solver=solver, seed=0)
    if at_once:
        b.update(np.ones((300, 2)), np.full(300, 0.52))
    else:
        for _ in range(300):
            b.update([1.0, 1.0], 0.52)
    p = exact([[1, 1]], [0.52], [[1, 1], [0, 0]], lam=lam, weight=[300.0])
    assert_allclose(b.propensities([[1, 1], [0, 0]]), p, rtol=0, atol=NEAR[solver])
    p = exact([[1, 1]], [0.52], [[1, 1], [1, -1]], lam=lam, weight=[300.0])
    assert_allclose(b.propensities([[1, 1], [1, -1]]), p, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, -1e-4, np.nan, np.inf, -np.inf])
def test_n1_a_penalty_that_is_none_is_refused(lam):
    with pytest.raises(ValueError, match="lam"):
        dither.GLMFP(dim=2, lam=lam)


# N2  a line separates the clicks from the rest


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("at_once", [False, True])
def test_n2_a_line_separates_the_clicks(solver, at_once):
    b = dither.GLMFP(dim=2, link="logit", lam=1e-4, c=1.0, solver=solver, seed=0)
    b.update([0.28, 0.96], 1)
    b.update([-0.28, 0.96], 0)
    assert_allclose(b.theta, [20.094564, 0], atol=1e-5)
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [0.774321, 0.225679], rtol=0, atol=NEAR[solver])
    X = [(0.6, 0.8), (-0.6, 0.8), (0.8, -0.6), (-0.8, -0.6), (1, 0), (-1, 0), (0.28, -0.96), (-0.28, -0.96)]
    if at_once:
        b.update(X, [int(x[0] > 0) for x in X])
    else:
        for x in X:
            b.update(x, int(x[0] > 0))
    assert_allclose(b.theta, [22.219946, 0], atol=1e-5)
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [0.807309, 0.192691], rtol=0, atol=NEAR[solver])
    # seen red: undamped Newton without the start that learns the new row alone


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_n2_of_its_kind_any_line_separates(link):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    r = (X @ [1.0, -2, 0.5] > 0).astype(float)
    b = dither.GLMFP(dim=3, link=link, lam=1e-4, seed=0)
    for t, (x, y) in enumerate(zip(X, r, strict=True)):
        b.update(x, y)
        if t in (0, 3, 11):
            at = np.vstack([X[:2], np.zeros(3)])
            p = exact(X[: t + 1], r[: t + 1], at, link=link, lam=1e-4)
            assert_allclose(b.propensities(at), p, rtol=0, atol=1e-3)


# N3  features in units of 1e8


@pytest.mark.parametrize(("scale", "lam"), [(1e8, 1.0), (1e8, 1e16), (1, 1.0), (1e-8, 1e-16), (1e-8, 1.0)])
@pytest.mark.parametrize("link", ["logit", "log", "probit"])
@pytest.mark.parametrize("at_once", [False, True])
def test_n3_features_in_units_of_1e8(scale, lam, link, at_once):
    b, twin = (dither.GLMFP(dim=2, lam=lam, link=link, solver="exact", seed=0) for _ in range(2))
    reason = ""
    try:
        if at_once:
            b.update(scale * U, PAID)
        else:
            for x, r in zip(U, PAID, strict=True):
                b.update(scale * x, r)
                twin.update(scale * x, r)
    except ValueError as refusal:
        reason = str(refusal)
    if reason:
        assert "lam" in reason
        unchanged(b, twin, [[1, 0], [0, 1]])
        return
    assert_allclose(b.propensities(scale * A), exact(scale * U, PAID, scale * A, link=link, lam=lam), rtol=0, atol=1e-6)


@pytest.mark.parametrize("long", [1e150, 1e200, 1e300])
@pytest.mark.parametrize("solver", ALL)
def test_n3_of_its_kind_what_cannot_be_computed_is_refused(long, solver):
    b, twin = three(solver=solver), three(solver=solver)
    for x, r in (([long, 1.0], 1.0), ([[1.0, 1.0], [1.0, long]], [0.0, 1.0])):
        with pytest.raises(ValueError, match="x"):
            b.update(x, r)
    unchanged(b, twin, [[1, 0], [0, 1]])


@pytest.mark.parametrize("solver", ["certified", "counts", "online"])
@pytest.mark.parametrize("x", [[1e13, 1.0], [1e40, 0.0], [1e90, 1e-5], [-1e140, 1e140]])
def test_n3_of_its_kind_long_features_are_right_or_refused_whole(solver, x):
    b, twin = (dither.GLMFP(dim=2, solver=solver, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([[1, 0], [0, 2], [1, 1]], [1.0, 0.0, 1.0])
    reason = ""
    try:
        b.update(x, 1.0)
    except ValueError as refusal:
        reason = str(refusal)
    if reason:
        assert any(word in reason for word in ("lam", "large", "below"))
        unchanged(b, twin, [[1, 0], [0, 1]])
        return
    p = b.propensities([[1, 0], [0, 1], [1, 1]])
    assert np.isfinite(p).all()
    assert abs(p.sum() - 1) < 1e-9


# N4  nothing is known yet, and one arm is all zeros


@pytest.mark.parametrize("lam", [1e-10, 1e-4, 1.0, 1e8])
@pytest.mark.parametrize("link", ["logit", "log", "probit"])
@pytest.mark.parametrize("c", [1e-3, 1.0])
def test_n4_nothing_known_and_a_zero_arm(lam, link, c):
    b = dither.GLMFP(dim=2, lam=lam, link=link, c=c, seed=0)
    assert_array_equal(b.propensities([[0, 0], [1, 0], [0, 2]]), [0.5, 0.0, 0.5])
    assert_array_equal(b.propensities([[0, 2], [0, 0], [1, 0], [0.1, 0.1]]), [0.5, 0.5, 0.0, 0.0])
    assert_allclose(b.propensities(np.zeros((3, 2))), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("solver", ALL)
def test_n4_a_zero_arm_teaches_nothing(solver):
    b = dither.GLMFP(dim=2, solver=solver, seed=0)
    X = [[0, 0], [1, 0], [0, 2]]
    b.update([0, 0], 1.0)
    assert_array_equal(b.propensities(X), [0.5, 0.0, 0.5])
    b.update([1, 2], 0.3)
    before = b.propensities(X)
    b.update([0, 0], 1.0)
    assert_allclose(b.propensities(X), before, rtol=0, atol=NEAR[solver])


# N5  a NaN gets in


@pytest.mark.parametrize("solver", ALL)
def test_n5_what_is_not_finite_is_refused(solver):
    b, twin = (dither.GLMFP(dim=2, lam=1.0, solver=solver, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([[1, 0], [0, 2]], [1.0, 0.5])
    with pytest.raises(ValueError, match=r"(?s)X.*row 0, column 1"):
        b.choose([[1, np.nan], [0, 1]])
    with pytest.raises(ValueError, match=r"x.*column 1"):
        b.update([1, np.inf], 1.0)
    with pytest.raises(ValueError, match=r"x.*row 1, column 0"):
        b.update([[1, 1], [np.nan, 1]], [1.0, 1.0])
    for r in (np.nan, -np.inf, np.inf):
        with pytest.raises(ValueError, match="r"):
            b.update([1, 0], r)
    with pytest.raises(ValueError, match=r"r.*1"):
        b.update([[1, 0], [0, 1]], [1.0, np.nan])
    for weight in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match="weight"):
            b.update([1, 0], 1.0, weight=weight)
    unchanged(b, twin, [[1, 0], [0, 1]])
    assert b.choose([[1, 0], [np.nan, np.nan]], mask=[True, False]).arm == 0


# A1  the same arm three times


def test_a1_copies_share():
    b = three()
    first = special.ndtr(THREE_A / (1 - THREE_W))
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [first, 1 - first], rtol=0, atol=1e-6)
    X = np.array([[1, 0], [0, 1], [0, 1], [0, 1]])
    p = b.propensities(X)
    assert_allclose([p[0], p[1:].sum()], [first, 1 - first], rtol=0, atol=1e-6)
    d = b.choose(np.broadcast_to(X, (20_000, 4, 2)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / 20_000, p, n=20_000)
    assert_array_equal(d.propensity, p[d.arm])


# A2  one arm; no arm


@pytest.mark.parametrize("solver", ALL)
def test_a2_one_arm_and_no_arm(solver):
    b, twin = three(solver=solver), three(solver=solver)
    X = [[1, 2], [3, 4], [5, 6]]
    for offered, mask, arm in (([[1, 2]], None, 0), (X, [False, True, False], 1)):
        for one in (b, twin):
            d = one.choose(offered, mask=mask)
            assert (d.arm, d.propensity) == (arm, 1.0)
        assert b.propensities(offered, mask=mask)[arm] == 1.0
    for nothing, mask in ((np.empty((0, 2)), None), (X, [False] * 3)):
        with pytest.raises(ValueError, match="at least one"):
            b.choose(nothing, mask=mask)
    unchanged(b, twin, X)


# A3  arms come and go


def test_a3_leaving_out_is_masking():
    b = three()
    X = np.array([[1, 0], [0, 1], [0.1, 2]])
    m, w = X[:, 0] * THREE_A, np.hypot(X[:, 0] * THREE_W, X[:, 1])
    assert_allclose(b.propensities(X), oracles.line_mass(m, w), rtol=0, atol=1e-6)
    two = oracles.line_mass(m[1:], w[1:])
    assert_allclose(b.propensities(X[1:]), two, rtol=0, atol=1e-6)
    assert_allclose(b.propensities(X, mask=[False, True, True]), [0, *two], rtol=0, atol=1e-6)
    floored = three(floor=0.3).propensities(X, mask=[False, True, True])
    assert_allclose(floored, [0, *(0.7 * two + 0.15)], rtol=0, atol=1e-6)


# A4  the same numbers in other clothes


def test_a4_other_clothes():
    X, at = np.array([[100, 100], [100, -50]]), np.array([[100, 100], [-100, 50], [0, 1]])
    p = exact(X, [1, 0], at)
    for dress in (
        lambda x: np.array(x, np.int8),
        lambda x: np.array(x, np.float32),
        lambda x: np.array(x, float).tolist(),
        lambda x: np.asfortranarray(np.array(x, float)),
        lambda x: np.repeat(np.array(x, float), 2, axis=-1)[..., ::2],
    ):
        b = dither.GLMFP(dim=2, lam=1.0, solver="exact", seed=0)
        b.update(dress(X[0]), 1)
        b.update(dress(X[1]), np.float32(0))
        assert_allclose(b.propensities(dress(at)), p, rtol=0, atol=1e-6)
    b = dither.GLMFP(dim=2, lam=1.0, solver="exact", seed=0)
    b.update(pd.DataFrame(X, columns=["a", "b"]), pd.Series([True, False]))
    assert_allclose(b.propensities(pd.DataFrame(at[:, ::-1], columns=["b", "a"])), p, rtol=0, atol=1e-6)


# A5  the wrong width


def test_a5_a_wrong_width_is_refused():
    b, twin = dither.GLMFP(dim=3, seed=0), dither.GLMFP(dim=3, seed=0)
    for shape in ((5, 4), (5, 2), (3, 5), (3,)):
        with pytest.raises(ValueError, match="3"):
            b.choose(np.ones(shape))
    with pytest.raises(ValueError, match=r"width 3.*width 4"):
        b.update(np.ones(4), 1.0)
    for x, r in ((np.ones((5, 3)), np.ones(4)), (np.ones((5, 3)), 1.0), (np.ones((5, 3)), np.ones((5, 1)))):
        with pytest.raises(ValueError, match="r must be"):
            b.update(x, r)
    unchanged(b, twin, np.eye(3))


# A6  every arm can win


@pytest.mark.parametrize("K", [5, 1000])
def test_a6_tangents_cross_halfway(K):
    w = np.linspace(0, 1.2, K)
    a = -(w**2) / (2 * THREE_A)
    X = np.c_[a, np.sqrt(np.maximum(w**2 - (a * THREE_W) ** 2, 0))]
    edges = np.r_[-np.inf, (w[1:] + w[:-1]) / 2, np.inf]
    expected = [oracles.mass(low, high, special.ndtr) for low, high in itertools.pairwise(edges)]
    p = three().propensities(X)
    assert_allclose(p, expected, rtol=0, atol=1e-6)
    assert p.min() > 0


# R1  a reward that the link cannot have


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize(
    ("link", "bad", "good"),
    [
        ("logit", [1.5, -1, 2, -1e-9, 1 + 1e-9], [0, True, 0.3, 1, 0.0]),
        ("probit", [1.5, -1, 2, -1e-9, 1 + 1e-9], [0, True, 0.3, 1, 0.0]),
        ("log", [-1, -1e-300, -0.5], [0, 2.5, 7, True, 1e6]),
        ("identity", [np.nan], [-3.0, 1e6]),
    ],
)
def test_r1_a_reward_that_the_link_cannot_have(link, bad, good, solver):
    b, twin = (dither.GLMFP(dim=1, link=link, solver=solver, seed=0) for _ in range(2))
    for r in good:
        for one in (b, twin):
            one.update([1], r)
    for r in bad:
        with pytest.raises(ValueError, match=r"r\b"):
            b.update([1], r)
        with pytest.raises(ValueError, match=r"(row|column) 1"):
            b.update([[1.0], [0.5], [1.0]], [good[0], r, good[0]])
        if np.isfinite(r):
            with pytest.raises(ValueError, match=rf"(?s){link}.*{np.float64(r):g}|{np.float64(r):g}.*{link}"):
                b.update([1], r)
    assert b.observations == len(good)
    unchanged(b, twin, [[1], [0], [-0.5]])


@pytest.mark.parametrize("solver", ["certified", "counts"])
@pytest.mark.parametrize("link", ["logit", "log"])
def test_r1_a_refusal_leaves_counts_alone(link, solver):
    """Whatever is refused only after the row was noted: rewards and weights of another world, on a known arm."""
    b, twin = (dither.GLMFP(dim=2, link=link, solver=solver, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([[1, 0], [0, 1], [1, 1]], [1.0, 0.0, 1.0])
    for r, weight in ((1.0, 1e99), (0.0, 1e60), (1e90 if link == "log" else 1.0, 1.0)):
        learnt = b.observations
        try:
            b.update([1, 0], r, weight=weight)
        except ValueError:
            assert rows(b) == rows(twin)
        if b.observations > learnt:
            twin.update([1, 0], r, weight=weight)
    assert np.isfinite(b.theta).all()
    unchanged(b, twin, np.eye(2))


def test_r1_disjoint_slots_refuse_too():
    b, twin = (dither.GLMFP(dim=2, disjoint=3, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([1, 0], 1, arm=1)
    for r in (1.5, -0.1):
        with pytest.raises(ValueError, match="r"):
            b.update([1, 0], r, arm=1)
        with pytest.raises(ValueError, match="row 0"):
            b.update([[1, 0], [0, 1]], [r, 0], arm=[1, 2])
    unchanged(b, twin, [1, 2])

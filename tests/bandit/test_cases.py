"""Small inputs that break contextual-bandit software, with the right values worked out by hand or with 60 digits.

A case stands for its kind: after its own numbers come other inputs of the kind, against exact rationals. `P(x against
0) = Φ(m/(c w))` makes the zero arm a ruler, so `propensities` alone shows whether m and w are right.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import dither
import oracles
from cases import EXACT, three
from oracles import unchanged
from properties import SPENT, agree, ask, bounded, every, exactly, few, known, shares, slack

# N1  two columns say the same thing, and λ is next to nothing


@pytest.mark.parametrize(("lam", "tolerance"), [(1e-10, 5e-3), (1e-8, 1e-4)])
@pytest.mark.parametrize("at_once", [False, True])
def test_n1_collinear_columns(lam, tolerance, at_once):
    b = dither.LinFP(dim=2, lam=lam, c=1.0, seed=0)
    if at_once:
        b.update(np.ones((1000, 2)), np.full(1000, 0.02))
    else:
        for _ in range(1000):
            b.update([1.0, 1.0], 0.02)
    assert_allclose(b.propensities([[1, 1], [0, 0]]), [0.736455, 0.263545], rtol=0, atol=tolerance)
    assert_allclose(b.propensities([[1, 1], [1, -1]]), [0.50000006, 0.49999994], rtol=0, atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, -1e-4, np.nan, np.inf, -np.inf])
def test_n1_a_penalty_that_is_none_is_refused(lam):
    with pytest.raises(ValueError, match="lam"):
        dither.LinFP(dim=2, lam=lam)


@pytest.mark.parametrize("lam", [1e-12, 1e-7, 1e-2])
def test_n1_of_its_kind_a_column_in_other_units(lam):
    X = np.array([[1.0, 3.0, 2.0], [2.0, 6.0, 4.0], [-1.0, -3.0, -2.0]] * 40)
    r = np.tile([0.3, 0.1, -0.2], 40)
    at = np.array([[1.0, 3.0, 2.0], [0, 0, 0], [3.0, -1.0, 0.0], [0, 2, -3]])
    b = dither.LinFP(dim=3, lam=lam, sigma=1.0, seed=0)
    for x, y in zip(X, r, strict=True):
        b.update(x, y)
    m, w2 = oracles.exact(X, r, at, lam=lam)
    for i in (0, 2, 3):
        p = b.propensities(at[[i, 1]])
        assert_allclose(p, oracles.line_mass(m[[i, 1]], np.sqrt(w2[[i, 1]])), rtol=0, atol=1e-4)


# N3  features in units of 1e8

U = [((3, 1), 1), ((1, 2), 0), ((2, 2), 1), ((0, 3), 1)]


A = np.array([[3, 1], [1, 2], [-1, 4]])


@pytest.mark.parametrize(
    ("scale", "lam", "expected", "tolerance"),
    [
        (1e8, 1.0, [0.318899, 0.302569, 0.378532], 1e-6),
        (1e8, 1e16, [0.319304600, 0.299694157, 0.381001242], 1e-9),
        (1, 1.0, [0.319304600, 0.299694157, 0.381001242], 1e-9),
        (1e-8, 1e-16, [0.319304600, 0.299694157, 0.381001242], 1e-9),
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_n3_features_in_units_of_1e8(scale, lam, expected, tolerance, at_once):
    b = dither.LinFP(dim=2, lam=lam, c=1.0, seed=0)
    if at_once:
        b.update(scale * np.array([x for x, _ in U]), [r for _, r in U])
    else:
        for x, r in U:
            b.update(scale * np.array(x), r)
    assert_allclose(b.propensities(scale * A), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("units", [(1e6, 1e-3), (1e-4, 1e4), (2.0**26, 1.0)])
def test_n3_of_its_kind_each_column_in_units_of_its_own(units):
    X, r = np.array([x for x, _ in U]) * np.array(units), [float(y) for _, y in U]
    b = dither.LinFP(dim=2, lam=1.0, sigma=1.0, seed=0)
    b.update(X, r)
    m, w2 = oracles.exact(X, r, A * np.array(units), lam=1.0)
    assert_allclose(b.propensities(A * np.array(units)), oracles.line_mass(m, np.sqrt(w2)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("long", [1e150, 1e200, 1e300])
def test_n3_of_its_kind_what_cannot_be_computed_is_refused(long):
    b, twin = three(), three()
    for x, r in (([long, 1.0], 1.0), ([[1.0, 1.0], [1.0, long]], [0.0, 1.0])):
        with pytest.raises(ValueError, match="x"):
            b.update(x, r)
    with pytest.raises(ValueError, match="r"):
        b.update([1e9, 1.0], 1e305)
    unchanged(b, twin, [[1, 0], [0, 1]])


# N4  nothing is known yet, and one arm is all zeros


@pytest.mark.parametrize("lam", [1e-10, 1e-4, 1.0, 1e8])
@pytest.mark.parametrize("c", [1e-3, 1.0, "oful", "theory"])
def test_n4_nothing_known_and_a_zero_arm(lam, c):
    b = dither.LinFP(dim=2, lam=lam, c=c, seed=0)
    assert_array_equal(b.propensities([[0, 0], [1, 0], [0, 2]]), [0.5, 0.0, 0.5])
    assert_array_equal(b.propensities([[0, 2], [0, 0], [1, 0], [0.1, 0.1]]), [0.5, 0.5, 0.0, 0.0])


@every("propensities")
def test_n4_zero_arms_are_one_arm(name):
    b = dither.ALGORITHMS[name](dim=2, seed=0, **exactly(name))
    for learnt in (False, True):
        if learnt:
            b.update([0, 0], 1.0)
            b.update([2, 1], 1.0)
        p, (found, n) = ask(b, np.zeros((3, 2)), draws=2500), shares(b, np.zeros((3, 2)), n=5000)
        assert abs(p.sum() - 1) < 1e-9
        assert_allclose(p, 1 / 3, rtol=1e-12, atol=5 * np.max(slack(b, p, draws=2500)))
        assert oracles.agree(found, np.full(3, 1 / 3), n=n)


@every("zero arm")
def test_n4_a_zero_arm_teaches_nothing(name):
    """Of θ: where a model finds the scale of rewards, that one is learnt from its reward too."""
    b, twin = (dither.ALGORITHMS[name](dim=2, seed=0, preset="paper") for _ in range(2))
    for one in (b, twin):
        one.update([1, 2], 0.3)
    X = [[0, 0], [1, 0], [0, 2]]
    b.update([0, 0], 1.0)
    if bounded(name):
        agree(b, twin, X)  # found anew
    else:
        assert_array_equal(b.theta, twin.theta)
        for answer, same in zip(known(b, X).values(), known(twin, X).values(), strict=True):
            assert_array_equal(answer, same)
    if name in ("LinFP", "GLMFP"):  # whose schedules do not count rounds
        assert_allclose(b.propensities(X), twin.propensities(X), rtol=0, atol=1e-6 if bounded(name) else 0)


def test_n4_of_its_kind_one_feature():
    b = dither.LinFP(dim=1, seed=0)
    p = b.propensities([[1.0], [-1.0], [0.5]])  # ±1 are one line; 0.5 is the narrowest
    assert_array_equal(p, [0.25, 0.25, 0.5])


# N5  a NaN gets in


@every()
def test_n5_what_is_not_finite_is_refused(name):
    b, twin = (dither.ALGORITHMS[name](dim=2, lam=1.0, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([[1, 0], [0, 2]], [1.0, 0.5])
    with pytest.raises(ValueError, match=r"(?s)X.*row 0, column 1"):
        b.choose([[1, np.nan], [0, 1]])
    with pytest.raises(ValueError, match=r"(?s)X.*row 1, column 0"):
        b.propensities([[1, 0], [np.inf, 1]])
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
    unchanged(b, twin, [[1, 0], [0, 1]], n=few(b.model, b.policy, 100))


def test_n5_a_row_that_the_mask_rules_out_is_never_read():
    b = three()
    assert b.choose([[1, 0], [np.nan, np.nan]], mask=[True, False]).arm == 0
    assert_array_equal(b.propensities([[1, 0], [np.nan, np.inf]], mask=[True, False]), [1.0, 0.0])
    p = b.propensities([[1, 0], [np.nan, 1], [0, 1]], mask=[1, 0, 1])
    assert_allclose(p, [0.933192799, 0.0, 0.066807201], **EXACT)
    with pytest.raises(ValueError, match="row 1, column 0"):
        b.choose([[1, 0], [np.nan, 1], [0, 1]], mask=[True, True, False])
    # seen red: masked rows left as they are


def test_n5_of_its_kind_missing_values_of_frames():
    b = dither.LinFP(dim=2, seed=0)
    with pytest.raises(ValueError, match="row 1, column 0"):
        b.choose(pd.DataFrame({"a": [1.0, None], "b": [0.0, 1.0]}))
    with pytest.raises(ValueError, match="X"):
        b.choose([[1.0, None], [0.0, 1.0]])


def test_n5_of_its_kind_a_place_in_a_batch_is_named():
    b, twin = three(), three()
    with pytest.raises(ValueError, match=r"X.*\(1, 1, 0\)"):
        b.choose([[[1, 0], [0, 1]], [[1, 0], [-np.inf, 0]]])
    unchanged(b, twin, [[1, 0], [0, 1]])


def test_n5_of_its_kind_what_a_masked_array_hides_is_not_read():
    hidden = np.ma.masked_array([[1.0, 5.0], [0.0, 1.0]], mask=[[False, True], [False, False]])
    with pytest.raises(ValueError, match="X"):
        three().choose(hidden)


# A1  the same arm three times


def test_a1_copies_share():
    b = three()
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [0.933192799, 0.066807201], **EXACT)
    p = b.propensities([[1, 0], [0, 1], [0, 1], [0, 1]])
    assert_allclose([p[0], p[1:].sum()], [0.933192799, 0.066807201], **EXACT)
    X = np.array([[1, 0], [0, 1], [0, 1], [0, 1]])
    d = b.choose(np.broadcast_to(X, (20_000, 4, 2)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / 20_000, p, n=20_000)
    assert_array_equal(d.propensity, p[d.arm])


@pytest.mark.parametrize("seed", range(5))
def test_a1_of_its_kind_copies_among_others(seed):
    rng = np.random.default_rng(seed)
    b = dither.LinFP(dim=3, lam=0.5, seed=0)
    b.update(rng.normal(size=(6, 3)), rng.normal(size=6))
    X = rng.normal(size=(5, 3))
    copies = rng.integers(1, 4, size=5)
    p, q = b.propensities(X), b.propensities(np.repeat(X, copies, axis=0))
    assert_allclose(q, np.repeat(p / copies, copies), rtol=0, atol=1e-12)


def test_a1_of_its_kind_arms_that_differ_by_rounding():
    b = dither.LinFP(dim=3, seed=0)  # V = λI: unit vectors are all one line but for rounding
    X = np.random.default_rng(0).normal(size=(50, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(b.propensities(X), 1 / 50, rtol=1e-9)
    d = b.choose(np.broadcast_to(X, (20_000, 50, 3)))
    assert oracles.agree(np.bincount(d.arm, minlength=50) / 20_000, np.full(50, 1 / 50), n=20_000)
    one = [b.choose(X) for _ in range(5000)]
    assert_allclose([d.propensity for d in one], 1 / 50, rtol=1e-9)
    assert oracles.agree(np.bincount([d.arm for d in one], minlength=50) / 5000, np.full(50, 1 / 50), n=5000)


# A2  one arm; no arm


@every()
def test_a2_one_arm_and_no_arm(name):
    b, twin = (dither.ALGORITHMS[name](dim=2, seed=0) for _ in range(2))
    for X, mask, arm in (([[1, 2]], None, 0), ([[1, 2], [3, 4], [5, 6]], [False, True, False], 1)):
        for one in (b, twin):
            d = one.choose(X, mask=mask)
            assert (d.arm, d.propensity, d.propensity_kind) == (arm, 1.0, "exact")  # whoever chooses
        assert name in SPENT or ask(b, X, mask=mask)[arm] == 1.0
    X = [[1, 2], [3, 4], [5, 6]]
    for nothing, mask in ((np.empty((0, 2)), None), (np.empty((4, 0, 2)), None), (X, [False] * 3), (X, [0, 0, 0])):
        with pytest.raises(ValueError, match=r"at least one"):
            b.choose(nothing, mask=mask)
        with pytest.raises(ValueError, match=r"at least one"):
            b.propensities(nothing, mask=mask)
    with pytest.raises(ValueError, match="mask"):
        b.choose([X, X], mask=[[True, True, True], [False, False, False]])
    unchanged(b, twin, X, n=few(b.model, b.policy, 100))


# A3  arms come and go


def test_a3_leaving_out_is_masking():
    b = three()
    X = [[1, 0], [0, 1], [0.1, 2]]
    assert_allclose(b.propensities(X[1:]), [0.470125989, 0.529874011], **EXACT)
    assert_allclose(b.propensities(X), [0.673577217, 0.0, 0.326422783], **EXACT)
    assert_allclose(b.propensities(X, mask=[False, True, True]), [0.0, 0.470125989, 0.529874011], **EXACT)
    for mask in ([False, True, True], [0, 1, 1], np.array([0.0, 1.0, 1.0]), sparse.csr_array([[0, 1, 1]]).toarray()[0]):
        assert b.propensities(X, mask=mask)[0] == 0.0


@pytest.mark.parametrize("floor", [0.0, 0.3, 1.0])
def test_a3_a_floor_is_for_arms_on_offer(floor):
    b = three(floor=floor)
    p = b.propensities([[1, 0], [0, 1], [0.1, 2]], mask=[True, True, False])
    assert p[2] == 0.0
    assert_allclose(p[:2], (1 - floor) * np.array([0.933192799, 0.066807201]) + floor / 2, **EXACT)
    assert p[:2].min() >= floor / 2


@pytest.mark.parametrize(
    "mask", [[True], [[True, True, True]], [True] * 4, [0, 1, 2], [0.5, 1, 1], ["a", "b", "c"], [None] * 3]
)
def test_a3_a_mask_that_does_not_fit_is_refused(mask):
    b, twin = three(), three()
    with pytest.raises(ValueError, match="mask"):
        b.choose([[1, 0], [0, 1], [0.1, 2]], mask=mask)
    unchanged(b, twin, [[1, 0], [0, 1]])


# A4  the same numbers in other clothes


def test_a4_int8_is_computed_in_float64():
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    b.update(np.array([100, 100], np.int8), 1)
    b.update(np.array([100, -50], np.int8), 0)
    p = b.propensities(np.array([[100, 100], [-100, 50], [0, 1]], np.int8))
    assert_allclose(p, [0.842011619, 0.0, 0.157988381], **EXACT)


# A5  the wrong width


def test_a5_a_wrong_width_is_refused():
    b, twin = dither.LinFP(dim=3, seed=0), dither.LinFP(dim=3, seed=0)
    for shape in ((5, 4), (5, 2), (3, 5), (3,), (), (2, 2, 4), (2, 2, 2, 3)):
        with pytest.raises(ValueError, match="X") as e:
            b.choose(np.ones(shape))
        assert "3" in str(e.value)
        assert not shape or str(shape[-1]) in str(e.value)
    with pytest.raises(ValueError, match=r"width 3.*width 4"):
        b.update(np.ones(4), 1.0)
    for x, r in ((5, 4), (5, None), (None, 5), (5, 1), (1, 5)):
        X = np.ones(3) if x is None else np.ones((x, 3))
        with pytest.raises(ValueError, match="r must be"):
            b.update(X, 1.0 if r is None else np.ones(r))
    for x, r in ((np.ones((5, 3)), np.ones((5, 1))), (np.ones((2, 5, 3)), np.ones((2, 5))), (np.ones(3), [1.0])):
        with pytest.raises(ValueError, match="must"):
            b.update(x, r)
    for weight in (np.ones(4), np.ones((5, 1))):
        with pytest.raises(ValueError, match="weight"):
            b.update(np.ones((5, 3)), np.ones(5), weight=weight)
    unchanged(b, twin, np.eye(3))


def test_a5_a_transposed_matrix_is_named():
    with pytest.raises(ValueError, match=r"X\.T"):
        dither.LinFP(dim=3, seed=0).choose(np.ones((3, 5)))


# A6  every arm can win


def parabola(K):
    """For the bandit of A1: m = -w²/2, w from 0 to 3."""
    w = np.linspace(0, 3, K)
    a = -(w**2) / 1.5
    return np.c_[a, np.sqrt(np.maximum(w**2 - a**2 / 4, 0))]


def test_a6_a_parabola():
    b = three()
    p = b.propensities(parabola(5))
    assert_allclose(p, [0.646169767, 0.223535716, 0.099898155, 0.026063913, 0.004332448], **EXACT)
    p = b.propensities(parabola(1000))
    assert_allclose([p[0], p[-1], p.sum()], [0.500599012, 0.001356567, 1.0], **EXACT)
    assert p.min() > 0


@pytest.mark.parametrize("K", [2, 37, 20_000])
def test_a6_of_its_kind_tangents_cross_halfway(K):
    w = np.linspace(0, 3, K)
    edges = np.r_[-np.inf, (w[1:] + w[:-1]) / 2, np.inf]
    expected = [oracles.mass(a, b, oracles.special.ndtr) for a, b in itertools.pairwise(edges)]
    p = three().propensities(parabola(K)[::-1])[::-1]  # memory of size K² would be 3 GB here
    assert_allclose(p, expected, rtol=0, atol=1e-9)
    assert abs(p.sum() - 1) < 1e-9

"""Small inputs that break contextual-bandit software, with the right values worked out by hand or with 60 digits.

A case stands for its kind: after its own numbers come other inputs of the kind, against exact rationals. `P(x against
0) = Φ(m/(c w))` makes the zero arm a ruler, so `propensities` alone shows whether m and w are right.
"""

import itertools
import json
import pickle
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import dither
import oracles
from oracles import rows, unchanged
from properties import agree, ask, bounded, brief, every, few, paid, shares, slack

EXACT = dict(rtol=0, atol=1e-9)


def three(**settings):
    """V = diag(4, 1), θ̂ = (0.75, 0)."""
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0, **settings)
    for _ in range(3):
        b.update([1, 0], 1.0)
    return b


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
    b = dither.LinFP(dim=3, lam=lam, seed=0)
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
    b = dither.LinFP(dim=2, lam=1.0, seed=0)
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


@every()
def test_n4_zero_arms_are_one_arm(name):
    b = dither.ALGORITHMS[name](dim=2, seed=0)
    for learnt in (False, True):
        if learnt:
            b.update([0, 0], 1.0)
            b.update([2, 1], 1.0)
        p, (found, n) = ask(b, np.zeros((3, 2))), shares(b, np.zeros((3, 2)))
        assert abs(p.sum() - 1) < 1e-9
        assert_allclose(p, 1 / 3, rtol=1e-12, atol=5 * np.max(slack(b, p)))
        assert oracles.agree(found, np.full(3, 1 / 3), n=n)


@every()
def test_n4_a_zero_arm_teaches_nothing(name):
    b, twin = (dither.ALGORITHMS[name](dim=2, seed=0) for _ in range(2))
    for one in (b, twin):
        one.update([1, 2], 0.3)
    X = [[0, 0], [1, 0], [0, 2]]
    b.update([0, 0], 1.0)
    if bounded(name):
        agree(b, twin, X)  # found anew
    else:
        assert_array_equal(b.theta, twin.theta)
        assert_array_equal(b.width(X), twin.width(X))
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
    unchanged(b, twin, [[1, 0], [0, 1]], n=few(b.policy, 100))


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
        assert ask(b, X, mask=mask)[arm] == 1.0
    X = [[1, 2], [3, 4], [5, 6]]
    for nothing, mask in ((np.empty((0, 2)), None), (np.empty((4, 0, 2)), None), (X, [False] * 3), (X, [0, 0, 0])):
        with pytest.raises(ValueError, match=r"at least one"):
            b.choose(nothing, mask=mask)
        with pytest.raises(ValueError, match=r"at least one"):
            b.propensities(nothing, mask=mask)
    with pytest.raises(ValueError, match="mask"):
        b.choose([X, X], mask=[[True, True, True], [False, False, False]])
    unchanged(b, twin, X, n=few(b.policy, 100))


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


# R2  late, and not in order


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("at_once", [False, True])
def test_r2_order_does_not_matter(order, at_once):
    X, r = np.array([[1.0, 0], [0, 1], [1, 1]])[list(order)], np.array([1.0, 0.0, 0.5])[list(order)]
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    if at_once:
        b.update(X, r)
    else:
        for x, y in zip(X, r, strict=True):
            b.update(x, y)
    assert_allclose(b.propensities([[1, 0], [0, 2]]), [0.792891911, 0.207108089], **EXACT)


def test_r2_a_reward_that_never_comes_is_no_reward():
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    b.update([1, 1], 0.5)
    b.update([1, 0], 1.0)
    assert_allclose(b.propensities([[1, 0], [0, 2]]), [0.707264980, 0.292735020], **EXACT)


# S1  asking is not drawing


@every()
def test_s1_asking_is_not_drawing(name, tmp_path):
    a, b = dither.ALGORITHMS[name](dim=2, seed=3), dither.ALGORITHMS[name](dim=2, seed=3)
    X, A, B = [[1, 0], [0, 2]], [], []
    n = brief(b.model, b.policy, 200)
    for t in range(n):
        A.append(a.choose(X).arm)
        p = b.propensities(X, draws=100)
        repr(b), b.theta, b.mean(X), b.width(X)
        assert_array_equal(b.propensities(X, draws=100), p)
        if t % (n // 4) == 0:
            b.save(tmp_path / "b")
        B.append(b.choose(X).arm)
    assert A == B


# S2  the same seed in two processes

LOOP = """
import sys, dither, numpy as np
name, seed = sys.argv[1], eval(sys.argv[2])
if len(sys.argv) > 3: np.random.seed(int(sys.argv[3]))
before = repr(np.random.get_state())
b = dither.ALGORITHMS[name](dim=4, seed=seed); g = np.random.default_rng(1)
for _ in range(300):
    X = g.normal(size=(6, 4)); d = b.choose(X); b.update(X[d.arm], g.normal()); print(d.arm, d.propensity.hex())
assert repr(np.random.get_state()) == before
"""


def process(*args, hashseed="0"):
    return subprocess.run(
        [sys.executable, "-c", LOOP, *map(str, args)],
        env={
            "PYTHONHASHSEED": hashseed,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_s2_the_same_seed_in_two_processes():
    first = process("LinFP", 7)
    assert len(first.splitlines()) == 300
    assert process("LinFP", 7, 123, hashseed="99") == first
    assert process("LinFP", 8) != first
    assert process("LinFP", None) != process("LinFP", None)


def test_s2_entropy_is_recorded():
    b = dither.LinFP(dim=2, seed=None)
    twin = dither.LinFP(dim=2, seed=b.seed)
    X = np.eye(2)
    assert [b.choose(X).arm for _ in range(200)] == [twin.choose(X).arm for _ in range(200)]


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, np.nan])
def test_s2_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed"):
        dither.LinFP(dim=2, seed=seed)


# P1  saved in the middle


def loop(b, g, n):
    """The loop of S2: arms and propensities."""
    answers = []
    for _ in range(n):
        X = g.normal(size=(6, 4))
        d = b.choose(X)
        b.update(X[d.arm], paid(b.model, g.normal()))
        answers.append((d.arm, float(d.propensity).hex()))
    return answers


@pytest.mark.parametrize("preset", dither.algorithms.PRESETS)
@every()
def test_p1_saved_in_the_middle(name, preset, tmp_path):
    b, g = dither.ALGORITHMS[name](dim=4, seed=7, preset=preset, floor=0.1), np.random.default_rng(1)
    before, after = (brief(b.model, b.policy, n) for n in (100, 200))
    loop(b, g, before)
    before = rows(b)
    b.save(tmp_path / "b")
    assert rows(b) == before
    c = dither.load(tmp_path / "b")
    assert rows(c) == before
    c.save(tmp_path / "c")
    assert contents(tmp_path / "b") == contents(tmp_path / "c")
    assert loop(b, np.random.default_rng(2), after) == loop(c, np.random.default_rng(2), after)
    assert [p.name for p in tmp_path.iterdir() if p.name not in "bc"] == []


def contents(path):
    with zipfile.ZipFile(path) as z:
        return {name: z.read(name) for name in sorted(z.namelist())}


# P2  a file from a stranger


class Boom:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def saved(tmp_path):
    b = three()
    b.save(tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def with_header(tmp_path, **changes):
    """A good file with another header."""
    saved(tmp_path)
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    header = json.loads(parts.pop("header").tobytes()) | changes
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **parts)


def refused(path):
    with pytest.raises(ValueError, match="not a dither file"):
        dither.load(path)


def test_p2_a_good_file_is_read(tmp_path):
    saved(tmp_path)
    assert_array_equal(dither.load(tmp_path / "good").theta, three().theta)


def test_p2_nothing_in_a_file_is_executed(tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "bad").write_bytes(pickle.dumps(Boom(marker)))
    refused(tmp_path / "bad")
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, header=np.array([Boom(marker)], dtype=object))
    refused(tmp_path / "bad")
    saved(tmp_path)
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    parts["state.theta"] = np.array([Boom(marker), Boom(marker)], dtype=object)
    with open(tmp_path / "bad", "wb") as file:
        np.savez(file, **parts)
    refused(tmp_path / "bad")
    assert not marker.exists()
    # seen red: allow_pickle=True


@pytest.mark.parametrize("name", ["os.system", "Bandit", "subprocess.Popen", "__import__", "", 3, None, ["a"]])
def test_p2_only_names_of_the_librarys_own_table_are_known(tmp_path, name):
    for part in ("model", "policy"):
        with_header(tmp_path, **{part: {"class": name}})
        refused(tmp_path / "bad")


@pytest.mark.parametrize("damage", [b"", b"\0", b"PK\x03\x04", bytes(range(256)) * 20])
def test_p2_what_is_no_file_of_this_kind_is_refused(tmp_path, damage):
    (tmp_path / "bad").write_bytes(damage)
    refused(tmp_path / "bad")


def test_p2_a_part_of_a_good_file_is_refused(tmp_path):
    good = saved(tmp_path)
    for n in (*range(0, len(good), 97), len(good) // 2, len(good) - 1):
        (tmp_path / "bad").write_bytes(good[:n])
        refused(tmp_path / "bad")


def test_p2_a_damaged_byte_is_refused_or_harmless(tmp_path):
    good, rng = saved(tmp_path), np.random.default_rng(0)
    twin = rows(dither.load(tmp_path / "good"))
    for _ in range(500):
        at, bit = int(rng.integers(len(good))), 1 << int(rng.integers(8))
        (tmp_path / "bad").write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
        try:
            b = dither.load(tmp_path / "bad")
        except ValueError:
            continue
        assert rows(b) == twin, at


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"format": 10**6},
        {"dim": 3},
        {"dim": -1},
        {"dim": 10**9},
        {"seed": -1},
        {"floor": 2.0},
        {"observations": -5},
        {"decisions": "many"},
        {"streams": {}},
        {"streams": None},
        {"model": None},
        {"model": {"class": "Ridge", "lam": -1}},
        {"model": {"class": "Ridge", "lamb": 1}},
        {"model": {"class": "Diagonal", "lam": 1.0}},
        {"model": {"class": "Gaussian"}},
        {"policy": {"class": "Ridge"}},
        {"policy": {"class": "FeaturePerturbation", "c": "ofuls"}},
        {"policy": {"class": "PerturbedHistory"}},
        {"columns": 5},
        {"columns": ["a"]},
    ],
)
def test_p2_a_header_that_does_not_fit_is_refused(tmp_path, changes):
    with_header(tmp_path, **changes)
    refused(tmp_path / "bad")


def test_p2_a_file_from_the_future_says_so(tmp_path):
    with_header(tmp_path, format=2)
    with pytest.raises(ValueError, match="upgrade"):
        dither.load(tmp_path / "bad")


def test_p2_no_file_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        dither.load(tmp_path / "absent")


# P3  killed while saving


def test_p3_an_error_in_the_middle_of_a_write_leaves_the_old_file(tmp_path, monkeypatch):
    b = three()
    b.save(tmp_path / "b")
    before = (tmp_path / "b").read_bytes()
    b.update([0, 1], 5.0)
    whole = np.savez

    def half(file, **parts):
        whole(file, **dict(list(parts.items())[:2]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space"):
        b.save(tmp_path / "b")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_bytes() == before
    assert_array_equal(dither.load(tmp_path / "b").theta, three().theta)
    # seen red: writing to the name itself


def test_p3_killed_in_the_middle_of_a_write(tmp_path):
    script = """
import os, signal, sys, numpy as np, dither
b = dither.LinFP(dim=2, lam=1.0, seed=0); b.save(sys.argv[1]); b.update([0, 1], 5.0)
whole = np.savez
def half(file, **parts):
    whole(file, **dict(list(parts.items())[:2])); file.flush(); os.kill(os.getpid(), signal.SIGKILL)
np.savez = half
b.save(sys.argv[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "b")],
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert done.returncode == -9
    assert_array_equal(dither.load(tmp_path / "b").theta, [0.0, 0.0])


def test_p3_a_configuration_that_no_file_holds_is_refused_before_anything_is_written(tmp_path):
    b = dither.LinFP(dim=2, c=lambda t: 1.0, seed=0)
    with pytest.raises(TypeError, match="cannot hold"):
        b.save(tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


# X1  a run does not know its neighbours


def test_x1_a_run_does_not_know_its_neighbours():
    env = dither.envs.Linear(dim=5, arms=10)
    one = dither.simulate(env, ["LinFP"], runs=4, rounds=200, seed=0)
    many = dither.simulate(env, ["LinTS", "LinFP"], runs=8, rounds=200, seed=0)
    assert_array_equal(one.regret[0], many.regret[1, :4])
    assert_array_equal(one.realised[0], many.realised[1, :4])
    assert len(set(many.regret[1, :, -1])) == 8


@pytest.mark.parametrize("env", [dither.envs.Linear, dither.envs.Logistic])
def test_x1_one_arm_has_no_regret(env):
    names = [name for name in dither.ALGORITHMS if bounded(name) <= (env is dither.envs.Logistic)]
    r = dither.simulate(env(dim=5, arms=1), names, runs=3, rounds=12 if len(names) > 7 else 50, seed=0)
    assert not r.regret.any()
    assert not r.realised.any()


# V2  eight threads


def test_v2_eight_threads():
    b = dither.LinFP(dim=2, lam=1.0, c=1.0, seed=0)
    answers, failures = [], []

    def work():
        try:
            for _ in range(2000):
                answers.append(b.choose([[1, 0], [0, 1]]).propensity)
                b.update([1, 0], 1.0)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(answers) == 16_000
    assert min(answers) > 0
    assert max(answers) <= 1
    assert (b.decisions, b.observations) == (16_000, 16_000)
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [0.843250072, 0.156749928], rtol=0, atol=1e-10 + 5e-10)
    m, w = 16_000 / 16_001, 1 / np.sqrt(16_001)
    p = oracles.special.ndtr(m / (1 - w))
    assert_allclose(b.propensities([[1, 0], [0, 1]]), [p, 1 - p], rtol=0, atol=1e-10)
    # seen red: no lock

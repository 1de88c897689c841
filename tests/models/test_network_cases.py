"""The cases of `test_cases` for networks: what breaks other libraries' deep bandits, and what must hold whatever was
learnt. A network has no right numbers by hand: its answers are held against its own means, and against the slow way.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import oracles
from dither.propensity import uncoupled
from network_cases import KNOWN, after, arms, every, everything
from network_oracles import Slow, bandit
from oracles import unchanged

# N4  nothing is known yet, and one arm is all zeros


@every
@arms
def test_n4_nothing_known_and_zeros(name, slots):
    b = bandit(name, slots=slots)
    zeros = np.zeros(3) if slots else np.zeros((4, 3))
    assert b.choose(zeros).arm in range(4)
    if name in KNOWN:
        p, se, _ = b.propensities(zeros, detail=True)
        assert np.isfinite(p).all()
        assert abs(p.sum() - 1) < 1e-9
        if slots is None and name != "DeepEpsGreedy":  # four equal arms
            assert np.all(np.abs(p - 1 / 4) <= (0 if se is None else 5 * se) + 1e-9)
    before = b.theta
    b.update(np.zeros(3), 1.0, arm=0 if slots else None)  # allowed; the biases learn from it
    assert np.isfinite(b.theta).all()
    assert not np.array_equal(b.theta, before)


@every
def test_n4_of_its_kind_a_network_whose_units_are_all_off_ties_all_arms(name):
    b = bandit(name)
    theta = b.state.theta.copy()
    theta[-(4 * 1 + 1 + 4) :] = -1.0  # the last hidden layer's biases and what follows
    theta[: -(4 * 1 + 1 + 4)] = 0.0
    b.state = b.state._replace(theta=theta)
    X = np.random.default_rng(1).normal(size=(5, 3))
    assert_array_equal(b.mean(X), np.full(5, -1.0))
    if name in KNOWN:
        p, se, _ = b.propensities(X, detail=True)
        assert np.all(np.abs(p - 1 / 5) <= (0 if se is None else 5 * se) + 1e-9)
    counts = np.bincount([b.choose(X).arm for _ in range(400)], minlength=5) / 400
    assert oracles.agree(counts, np.full(5, 1 / 5), n=400)


# N5  a NaN gets in


@every
def test_n5_what_is_not_finite_is_refused(name):
    b, twin = after(name), after(name)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="row 0, column 1"):
            b.choose([[1, bad, 0], [0, 1, 0]])
        with pytest.raises(ValueError, match=r"x.*column 1"):
            b.update([1, bad, 0], 1.0)
        with pytest.raises(ValueError, match="r"):
            b.update([1, 0, 0], bad)
    with pytest.raises(ValueError, match=r"x.*row 1, column 0"):
        b.update([[1, 1, 0], [np.nan, 1, 0]], [1.0, 1.0])
    assert everything(b) == everything(twin)
    unchanged(b, twin, np.eye(3))


@every
def test_n5_a_row_that_the_mask_rules_out_is_never_read(name):
    b, twin = after(name), after(name)
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    Y = X.copy()
    Y[1] = np.nan
    mask = [True, False, True]
    for _ in range(20):
        assert b.choose(Y, mask=mask).arm == twin.choose(np.where(np.isnan(Y), 0, Y), mask=mask).arm != 1
    if name in KNOWN:
        assert b.propensities(Y, mask=mask)[1] == 0.0


# A1  the same arm three times


@pytest.mark.parametrize("name", KNOWN)
def test_a1_copies_share_and_agree_with_the_draws(name):
    b = after(name, dtype="float64")
    X = np.random.default_rng(2).normal(size=(2, 3))[[0, 1, 1, 1]]
    p, se, kind = b.propensities(X, detail=True)
    slack = 0.0 if se is None else np.max(se)
    assert abs(p.sum() - 1) < 1e-9
    assert_allclose(p[1:], p[1], rtol=0, atol=10 * slack + 1e-9)
    n = 1000 if kind == "exact" and name in ("NeuralTS", "DeepFP-scalar") else 20_000  # an integral a request
    d = b.choose(np.broadcast_to(X, (n, 4, 3)))
    assert oracles.agree(np.bincount(d.arm, minlength=4) / n, p, n=n, se=slack)
    if kind == "exact":
        assert_allclose(d.propensity, p[d.arm], rtol=0, atol=1e-12)


# A2  one arm; no arm


@every
@arms
def test_a2_one_arm_and_no_arm(name, slots):
    b, twin = after(name, slots=slots), after(name, slots=slots)
    X = np.ones(3) if slots else np.random.default_rng(3).normal(size=(3, 3))
    for one in (b, twin):
        d = one.choose(X, mask=[False, True, False])
        assert (d.arm, d.propensity, d.propensity_kind) == (1, 1.0, "exact")
    with pytest.raises(ValueError, match="at least one"):
        b.choose(X, mask=[False] * 3)
    if slots is None:
        with pytest.raises(ValueError, match="at least one"):
            b.choose(np.empty((0, 3)))
    unchanged(b, twin, X)


# A3  arms come and go


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a3_leaving_out_is_masking(name, floor):
    b = after(name, floor=floor, dtype="float64")
    X = np.random.default_rng(4).normal(size=(4, 3))
    mask = np.array([True, False, True, True])
    p, se, _ = b.propensities(X, mask=mask, detail=True)
    q, other, _ = b.propensities(X[mask], detail=True)
    assert p[1] == 0.0
    slack = 0.0 if se is None else 5 * np.hypot(se[mask], other)
    assert np.all(np.abs(p[mask] - q) <= slack + 1e-9)
    assert p[mask].min() >= floor / 3 - 1e-12
    arm = b.choose(np.broadcast_to(X, (300, 4, 3)), mask=mask).arm
    assert 1 not in arm


@arms
def test_a3_of_its_kind_masks_of_a_batch_are_each_its_own(slots):
    b = after("NeuralTS", slots=slots)
    X = np.random.default_rng(5).normal(size=(3,) if slots else (3, 3))
    masks = np.array([[True, True, False], [False, True, True], [True, False, False]])
    batch = np.stack([X] * 3)
    p = b.propensities(batch, mask=masks)
    for i, mask in enumerate(masks):
        assert_allclose(p[i], b.propensities(X, mask=mask), rtol=0, atol=1e-6)
        m = b.policy.view(b.model, b.state, X[None], t=b.t)
        assert_allclose(
            p[i], uncoupled(m.m[0], m.w[0], law=b.policy.view(b.model, b.state, X[None], t=1).law, mask=mask), atol=1e-6
        )


# A4  the same numbers in other clothes


@every
def test_a4_clothes_do_not_matter(name):
    X = np.random.default_rng(6).integers(-9, 9, size=(4, 3))
    r = np.array([0.0, 1.0, 1.0, 0.0])
    wide = np.zeros((8, 6))
    wide[::2, ::2] = X
    clothes = {
        "float64": X.astype(float),
        "int8": X.astype(np.int8),
        "float32": X.astype(np.float32),
        "lists": X.tolist(),
        "Fortran": np.asfortranarray(X.astype(float)),
        "strided": wide[::2, ::2],
        "frame": pd.DataFrame(X, columns=["a", "b", "c"]),
        "sparse": sparse.csr_array(X),
    }
    answers = {}
    for kind, Y in clothes.items():
        b = bandit(name)
        b.update(Y, r)
        answers[kind] = (b.theta.tobytes(), [b.choose(Y).arm for _ in range(20)])
    assert len(set(map(repr, answers.values()))) == 1, answers
    for bad in (X.astype(complex), X.astype(str)):
        with pytest.raises(ValueError, match="X"):
            b.choose(bad)


@every
def test_a4_of_its_kind_what_is_passed_in_stays_as_it_is(name):
    for slots in (None, 3):
        b = bandit(name, slots=slots)
        X = np.random.default_rng(7).normal(size=3 if slots else (4, 3))
        x, r = np.random.default_rng(8).normal(size=(5, 3)), np.arange(5.0) / 5
        before = X.copy(), x.copy(), r.copy()
        for A in (X, x, r):
            A.flags.writeable = False
        b.choose(X)
        b.update(x, r, arm=[0, 1, 2, 0, 1] if slots else None)
        b.propensities(X, draws=50)
        for A, old in zip((X, x, r), before, strict=True):
            assert_array_equal(A, old)


# A5  the wrong width


@every
@arms
def test_a5_a_wrong_width_is_refused(name, slots):
    b, twin = after(name, slots=slots), after(name, slots=slots)
    for shape in ((4,), (2,), ()) if slots else ((5, 4), (5, 2), (3, 5), (3,), ()):
        with pytest.raises(ValueError, match=r"X.*3"):
            b.choose(np.ones(shape))
    arm = dict(arm=0) if slots else {}
    many = dict(arm=np.zeros(5, int)) if slots else {}
    with pytest.raises(ValueError, match=r"width 3.*width 4"):
        b.update(np.ones(4), 1.0, **arm)
    for r in (np.ones(4), 1.0, np.ones((5, 1))):
        with pytest.raises(ValueError, match="r must"):
            b.update(np.ones((5, 3)), r, **many)
    if slots:
        for wrong in (3, -1, 0.5, [0, 0], None):
            with pytest.raises(ValueError, match="arm"):
                b.update(np.ones(3), 1.0, arm=wrong)
    else:
        with pytest.raises(ValueError, match="arm"):
            b.update(np.ones(3), 1.0, arm=0)
    assert everything(b) == everything(twin)


# A6  every arm can win


@pytest.mark.parametrize("name", KNOWN)
def test_a6_many_arms(name):
    b = after(name, hidden=(20, 10), dtype="float64")
    K = 30 if name in ("NeuralTS", "DeepFP-scalar") else 1000  # an integral for each arm
    X = np.random.default_rng(9).normal(size=(K, 3))
    assert_allclose(b.mean(X), Slow(b).mean(X), rtol=1e-8, atol=1e-10)
    p = b.propensities(X, draws=500)
    assert p.min() >= 0
    assert abs(p.sum() - 1) < 1e-9
    d = b.choose(X)
    if d.propensity_kind == "exact":
        assert_allclose(d.propensity, p[d.arm], rtol=1e-9)

"""What a `Bandit` is given: the same numbers in other clothes, names of columns, slots."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import dither
import oracles
from oracles import unchanged
from properties import (
    SPENT,
    ask,
    every,
    shares,
    slack,
)

# The same numbers in other clothes

INTEGERS = np.array([[100, 100], [-100, 50], [0, 1]])


def clothes():
    yield "list", INTEGERS.tolist()
    yield "tuples", tuple(map(tuple, INTEGERS.tolist()))
    for dtype in (np.int8, np.int16, np.int64, np.float16, np.float32, np.longdouble, ">f8"):
        yield np.dtype(dtype).str, INTEGERS.astype(dtype)
    yield "fortran", np.asfortranarray(INTEGERS.astype(float))
    yield "strided", np.repeat(np.repeat(INTEGERS.astype(float), 2, axis=0), 3, axis=1)[::2, ::3]
    yield "reversed", INTEGERS[::-1, ::-1].astype(float)[::-1, ::-1]
    readonly = INTEGERS.astype(float)
    readonly.flags.writeable = False
    yield "read-only", readonly
    yield "pandas", pd.DataFrame(INTEGERS, columns=["a", "b"])
    yield "pandas numbered", pd.DataFrame(INTEGERS)
    yield "pandas nullable", pd.DataFrame(INTEGERS, columns=["a", "b"]).astype("Int64")
    yield "polars", pl.DataFrame(INTEGERS, schema=["a", "b"])
    yield "arrow", pa.table({"a": INTEGERS[:, 0], "b": INTEGERS[:, 1]})
    for kind in (sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix):
        yield kind.__name__, kind(INTEGERS)
    yield "list of arrays", list(INTEGERS.astype(float))


@pytest.mark.parametrize(("kind", "X"), list(clothes()), ids=lambda v: v if isinstance(v, str) else "")
def test_equal_values_have_equal_results(kind, X):
    def bandit(features, r):
        b = dither.LinFP(dim=2, lam=1.0, seed=0)
        b.update(features, r)
        return b

    expected = bandit(INTEGERS.astype(float), np.array([1.0, 0.0, 2.0]))
    b = bandit(X, [1, 0, 2])
    assert_array_equal(b.theta, expected.theta)
    assert_array_equal(b.propensities(X), expected.propensities(INTEGERS.astype(float)))
    assert b.choose(X) == expected.choose(INTEGERS.astype(float))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int64", "float16", "bfloat16"])
def test_torch_tensors_are_arrays(dtype):
    torch = pytest.importorskip("torch")
    X = torch.tensor(INTEGERS.tolist(), dtype=getattr(torch, dtype))
    a, b = dither.LinFP(dim=2, lam=1.0, seed=0), dither.LinFP(dim=2, lam=1.0, seed=0)
    a.update(INTEGERS.astype(float), [1.0, 0.0, 2.0])
    b.update(X, torch.tensor([1, 0, 2]))
    assert_array_equal(b.theta, a.theta)
    assert_array_equal(
        b.propensities(X, mask=torch.tensor([True, False, True])), a.propensities(INTEGERS, mask=[1, 0, 1])
    )
    if X.is_floating_point():
        assert_array_equal(b.mean(X.requires_grad_()), a.mean(INTEGERS))


@pytest.mark.parametrize(
    "r",
    [
        [1, 0, 2],
        np.array([1, 0, 2], np.int8),
        pd.Series([1.0, 0, 2], index=[5, 6, 7]),
        pl.Series([1, 0, 2]),
        pa.array([1, 0, 2]),
    ],
)
def test_rewards_of_any_kind(r):
    b, expected = dither.LinFP(dim=2, seed=0), dither.LinFP(dim=2, seed=0)
    b.update(INTEGERS, r)
    expected.update(INTEGERS.astype(float), np.array([1.0, 0.0, 2.0]))
    assert_array_equal(b.theta, expected.theta)


def test_booleans_are_zeros_and_ones():
    X = np.array([[True, False], [True, True]])
    a, b = dither.LinFP(dim=2, lam=1.0, seed=0), dither.LinFP(dim=2, lam=1.0, seed=0)
    a.update(X, [True, False])
    b.update(X.astype(float), [1.0, 0.0])
    assert_array_equal(a.propensities(X), b.propensities(X.astype(int)))
    mixed = pd.DataFrame({"a": [1.5, 2.0], "b": [True, False]})
    assert_allclose(a.mean(mixed), b.mean([[1.5, 1], [2.0, 0]]), rtol=1e-14)


@pytest.mark.parametrize(
    "X",
    [
        [["a", "b"]],
        [[1j, 0]],
        [[1.0], [2.0, 3.0]],
        "text",
        None,
        {"a": 1},
        [[object(), 1]],
        np.array([["2020-01-01"] * 2], "M8[D]"),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(X):
    b, twin = dither.LinFP(dim=2, seed=0), dither.LinFP(dim=2, seed=0)
    with pytest.raises(ValueError, match="X"):
        b.choose(X)
    with pytest.raises(ValueError, match="x"):
        b.update(X, [1.0])
    unchanged(b, twin, np.eye(2))


FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


def test_records_are_for_features():
    with pytest.raises(ValueError, match=r"dither\.Features makes numbers of named fields"):
        dither.LinFP(dim=1).choose([{"age": 33.0}])
    # seen red: "got dtype object" alone


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_go_by_name(frame):
    named = {"height": [1.0, 2.0], "width": [3.0, 5.0]}
    turned = {"width": [3.0, 5.0], "height": [1.0, 2.0]}
    b = dither.LinFP(dim=2, lam=1.0, seed=0)
    b.update(frame(named), [1.0, 0.0])
    expected = b.mean(frame(named))
    assert_array_equal(b.mean(frame(turned)), expected)
    assert_array_equal(b.mean(np.array([[1.0, 3], [2, 5]])), expected)
    if frame is pd.DataFrame:
        assert_array_equal(b.mean(frame(turned).iloc[:1]), expected[:1])
        a = dither.LinFP(dim=2, lam=1.0, seed=0)
        a.update(frame(turned).iloc[0], 1.0)  # a row has its names too
        assert a.columns == ("width", "height")
    twin = b.state
    for other in ({"height": [1.0], "depth": [1.0]}, {"Height": [1.0], "width": [2.0]}):
        with pytest.raises(ValueError, match=r"columns.*height"):
            b.choose(frame(other))
        with pytest.raises(ValueError, match=r"columns.*height"):
            b.update(frame(other), [1.0])
    with pytest.raises(ValueError, match="X"):
        b.choose(frame({"height": [1.0], "width": [2.0], "depth": [1.0]}))
    assert b.state is twin
    # seen red: columns taken by place


@pytest.mark.parametrize("name", ["LinFP", "GLMFP", "LinTS", "DeepFP"])
def test_equal_values_have_equal_bits_in_any_layout(name):
    rng = np.random.default_rng(0)
    X, x, r = rng.normal(size=(50, 11)), rng.normal(size=(30, 11)), rng.integers(0, 2, 30).astype(float)
    big, wide = np.zeros((100, 22)), np.zeros(60)
    big[::2, ::2], wide[::2] = X, r
    reversed_ = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    answers = []
    for shown, rewards in ((X, r), (np.asfortranarray(X), wide[::2]), (big[::2, ::2], r.tolist()), (reversed_, r)):
        b = dither.ALGORITHMS[name](dim=11, seed=0, **({} if name != "LinTS" else {"monte_carlo": 50}))
        b.update(np.asfortranarray(x) if shown is not X else x, rewards)
        answers.append((b.mean(shown), b.choose(shown), b.propensities(shown) if "Lin" in name else 0))
    for mean, decision, p in answers[1:]:
        assert_array_equal(mean, answers[0][0])
        assert repr(decision) == repr(answers[0][1])  # every digit, and NaN where there is no propensity
        assert_array_equal(p, answers[0][2])
    # seen red (kernel SkylakeX): `features` that hands on the layout that it got


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="a"):
        dither.LinFP(dim=2, seed=0).choose(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]))


def test_a_refused_frame_leaves_no_names():
    b = dither.LinFP(dim=2, seed=0)
    for frame in (pd.DataFrame({"a": [1.0], "b": [np.nan]}), pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})):
        with pytest.raises(ValueError, match="X"):
            b.choose(frame)
    b.choose(pd.DataFrame({"p": [1.0], "q": [2.0]}))
    assert b.columns == ("p", "q")


def logarithm(X):
    """A model that refuses what lies below 0, or near."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(X[:, 0])


CALLS = {
    "choose": lambda b, X, **of: b.choose(X, **of).propensity,
    "choose_list": lambda b, X, **of: b.choose_list(X, k=1, **of).propensity,
    "propensities": lambda b, X, **of: b.propensities(X, draws=20, **of),
    "list_propensities": lambda b, X, **of: b.list_propensities(X, k=1, draws=20, **of).membership,
}


@pytest.mark.parametrize("call", CALLS)
def test_what_the_model_refuses_leaves_no_names(call):
    b = dither.FP(logarithm, dim=2, seed=0, monte_carlo=20)
    with pytest.raises(ValueError, match="finite"):
        CALLS[call](b, pd.DataFrame({"a": [-50.0, 50.0], "b": [1.0, 2.0]}))
    assert b.columns is None
    CALLS[call](b, pd.DataFrame({"u": [50.0, 60.0], "v": [1.0, 2.0]}))
    assert b.columns == ("u", "v")
    with pytest.raises(ValueError, match="finite"):
        CALLS[call](b, pd.DataFrame({"v": [50.0], "u": [-1.0]}))
    assert b.columns == ("u", "v")
    # seen red: names set before the model is asked


def test_what_is_no_single_request_leaves_no_names():
    b = dither.LinFP(dim=2, seed=0)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    for call in (lambda: b.choose_list(frame, k=3), lambda: b.list_propensities(frame, k=3)):
        with pytest.raises(ValueError, match="k must be at most 2"):
            call()
        assert b.columns is None
    with pytest.raises(TypeError):
        dither.LinTS(dim=2, seed=0).explain(frame)
    b.explain(frame)
    assert b.columns == ("a", "b")
    # seen red: names set before k is looked at


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("out", [0.0, -50.0, np.nan, np.inf])
def test_the_model_is_not_asked_of_what_is_ruled_out(call, out):
    seen = []

    def f(X):
        seen.append(X[:, 0])
        return logarithm(X)

    b = dither.FP(f, dim=2, seed=0, monte_carlo=20)
    X, mask = np.array([[out, out], [50.0, 1.0], [out, 2.0], [50.5, 3.0]]), np.array([False, True, False, True])
    p = CALLS[call](b, X, mask=mask)
    if np.ndim(p):
        assert_array_equal(p > 0, mask)
    assert np.min(np.concatenate(seen)) > 40
    if call != "list_propensities":
        CALLS[call](b, np.stack([X, X[::-1]]), mask=np.stack([mask, mask[::-1]]))
        assert np.min(np.concatenate(seen)) > 40
    # seen red: zeros in the place of what is ruled out


def test_names_are_saved(tmp_path):
    b = dither.LinFP(dim=2, seed=0)
    b.update(pd.DataFrame({"p": [1.0], "q": [2.0]}), [1.0])
    b.save(tmp_path / "b")
    c = dither.load(tmp_path / "b")
    assert_array_equal(c.mean(pd.DataFrame({"q": [3.0], "p": [4.0]})), b.mean([[4.0, 3.0]]))


# Disjoint slots


def test_a_slot_must_be_named():
    b, twin = (dither.LinFP(dim=2, disjoint=3, seed=0) for _ in range(2))
    for arm in (None, 3, -1, 1.5, "a", [0], np.nan):
        with pytest.raises(ValueError, match="arm"):
            b.update([1, 2], 1.0, arm=arm)
    for arm in ([0], [0, 3], [[0, 1]], 1):
        with pytest.raises(ValueError, match="arm"):
            b.update([[1, 2], [3, 4]], [1.0, 2.0], arm=arm)
    with pytest.raises(ValueError, match="slots"):
        dither.LinFP(dim=2, seed=0).update([1, 2], 1.0, arm=0)
    with pytest.raises(ValueError, match="X"):
        b.choose(np.ones((2, 3, 2)))
    unchanged(b, twin, [1.0, 2.0])


@every("slots")
def test_masked_slots_are_never_drawn(name):
    b = dither.ALGORITHMS[name](dim=2, lam=0.5, disjoint=4, seed=0)
    for k in range(8):
        b.update([1.0, k / 8], k / 8, arm=k % 4)
    x, mask = np.array([1.0, 0.5]), [True, False, True, False]
    p, (found, n) = ask(b, x, mask=mask), shares(b, x, mask=mask)
    assert not found[[1, 3]].any()
    if name in SPENT:
        return
    assert not p[[1, 3]].any()
    assert oracles.agree(found, p, n=n, se=slack(b, p))


@pytest.mark.parametrize("slots", [None, 4])
@pytest.mark.parametrize("on", [[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1]])
def test_a_mask_of_booleans_is_read_as_one_of_numbers(on, slots):
    rng, quick, slow = np.random.default_rng(0), *(dither.LinFP(dim=3, seed=1, disjoint=slots) for _ in range(2))
    for _ in range(60):
        X = rng.normal(size=3 if slots else (4, 3))
        if not slots:
            X[np.array(on) == 0] = 1e60  # no model reads it
        one, two = quick.choose(X, mask=np.array(on, dtype=bool)), slow.choose(X, mask=on)
        assert (one.arm, one.propensity, one.z) == (two.arm, two.propensity, two.z)
        assert on[one.arm]
        for b in (quick, slow):
            b.update(X if slots else X[one.arm], float(one.arm), **({"arm": one.arm} if slots else {}))
    assert quick.to_bytes() == slow.to_bytes()
    with pytest.raises(ValueError, match="leaves no arm on offer"):
        quick.choose(X, mask=np.zeros(4, bool))
    # seen red: a mask without an arm taken at once

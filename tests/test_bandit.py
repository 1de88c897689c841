"""Properties of `Bandit`, each over all algorithms: what is chosen, what is reported, and what may not change."""

import copy
import inspect
import math
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse

import dither
import oracles
from dither import decision
from dither.algorithms import PRESETS
from oracles import rows, unchanged
from properties import (
    EXCUSED,
    MONTE_CARLO,
    agree,
    ask,
    brief,
    every,
    few,
    paid,
    same_arrays,
    shares,
    slack,
    uncertainty,
)

ARMS = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0.5, 0.5, 1], [0, 0, 0]])  # 1 and 2 tie and can win; 4 is zero


def learnt(name, **settings):
    settings = {"lam": 0.5, "seed": 0} | settings
    b = dither.ALGORITHMS[name](dim=3, **settings)
    b.update(ARMS[:2], np.array([0.2, 1.0]))
    return b


@every()
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_choose_draws_what_propensities_say(name, fresh, floor):
    b = dither.ALGORITHMS[name](dim=3, seed=0, floor=floor) if fresh else learnt(name, floor=floor)
    p, (found, n) = ask(b, ARMS), shares(b, ARMS)
    assert p.min() >= 0
    assert abs(p.sum() - 1) < 1e-12
    assert oracles.agree(found, p, n=n, se=slack(b, p))
    # seen red: `scores` without the width; `argmax` taking the first of tied arms


@every()
def test_the_reported_propensity_is_that_of_the_arm(name):
    b, rng = learnt(name, floor=0.1), np.random.default_rng(0)
    n = few(b.policy, 50)
    X = rng.normal(size=(n, 6, 3)).round(1)
    mask = rng.random((n, 6)) < 0.7
    mask[:, 0] = True
    for offered in (None, mask):
        p, d = b.propensities(X, mask=offered, draws=100), b.choose(X, mask=offered)
        own = np.take_along_axis(p, d.arm[:, None], axis=1)[:, 0]
        if name in MONTE_CARLO:
            assert d.propensity_kind == "none"
            assert np.isnan(d.propensity).all()
            assert d.propensity_se is None
        else:
            assert d.propensity_kind == "exact"
            assert_allclose(d.propensity, own, rtol=1e-9)
            assert d.propensity_se is None
            assert np.all((d.propensity > 0) & (d.propensity <= 1))


@every()
def test_permuted_arms_permute_the_answer(name):
    b, order = learnt(name), np.array([3, 0, 4, 2, 1])
    p, q = ask(b, ARMS), ask(b, ARMS[order])
    se, (found, n) = slack(b, p[order]), shares(b, ARMS[order])
    assert_allclose(q, p[order], rtol=1e-12, atol=1e-15 + 5 * math.sqrt(2) * np.max(se))
    assert oracles.agree(found, p[order], n=n, se=se)


@every()
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_masked_arms_are_never_drawn(name, floor):
    b, mask = learnt(name, floor=floor), np.array([False, True, True, False, True])
    p, (found, n) = ask(b, ARMS, mask=mask), shares(b, ARMS, mask=mask)
    assert not p[~mask].any()
    assert p[mask].min() >= floor / 3  # the uniform share is known, also where the rest is estimated
    assert not found[~mask].any()
    assert oracles.agree(found, p, n=n, se=slack(b, p))
    alone = ask(learnt(name, floor=floor), ARMS[mask])
    assert_allclose(p[mask], alone, rtol=1e-12, atol=5 * math.sqrt(2) * np.max(slack(b, p)))
    # seen red: the uniform share over all K


@every()
def test_a_floor_gives_every_arm_support(name):
    b, plain = learnt(name, floor=0.25), learnt(name)
    p, q = ask(b, ARMS), ask(plain, ARMS)
    assert_allclose(p, 0.75 * q + 0.05, rtol=1e-12, atol=5 * np.max(slack(b, q)))
    assert_allclose(ask(learnt(name, floor=1.0), ARMS), 0.2, rtol=1e-12)


@every()
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a_batch_is_a_loop(name, floor):
    a, b = learnt(name, floor=floor, seed=9), learnt(name, floor=floor, seed=9)
    rng, n = np.random.default_rng(0), few(a.policy, 60)
    X, mask = rng.normal(size=(n, 4, 3)), rng.random((n, 4)) < 0.8
    mask[:, 0] = True
    many = a.choose(X, mask=mask)
    one = [b.choose(x, mask=m) for x, m in zip(X, mask, strict=True)]
    assert many.arm.tolist() == [d.arm for d in one]
    if name not in MONTE_CARLO:
        assert_allclose(many.propensity, [d.propensity for d in one], rtol=1e-12)
        p = a.propensities(X, mask=mask)
        assert_allclose(p, [b.propensities(x, mask=m) for x, m in zip(X, mask, strict=True)], rtol=1e-12)
    assert rows(a) == rows(b)
    # seen red: a batch counted as one decision


@every()
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_answers_a_batch_as_a_loop(name, preset):
    a, b = (dither.ALGORITHMS[name](dim=3, preset=preset, seed=2) for _ in range(2))
    rng = np.random.default_rng(1)
    for one in (a, b):
        one.update(ARMS[:4], [0.0, 1.0, 0.5, 0.3])
    X = rng.normal(size=(few(a.policy, 30), 4, 3))
    assert a.choose(X).arm.tolist() == [b.choose(x).arm for x in X]


@every()
def test_shapes_follow_the_question(name):
    b = learnt(name)
    d = b.choose(ARMS)
    assert type(d.arm) is int
    assert type(d.propensity) is float
    assert ask(b, ARMS, draws=100).shape == (5,)
    d = b.choose(ARMS[None])
    assert d.arm.shape == d.propensity.shape == (1,)  # a batch of one is a batch
    assert np.issubdtype(d.arm.dtype, np.integer)
    for answer in (ask(b, ARMS[None], draws=100), b.mean(ARMS[None]), b.width(ARMS[None]), b.predict(ARMS[None])):
        assert answer.shape == (1, 5)
    assert b.theta.shape == (3,)
    _, se, kind = ask(b, ARMS, draws=100, detail=True)
    assert kind == ("monte_carlo" if name in MONTE_CARLO else "exact")
    assert se.shape == (5,) if name in MONTE_CARLO else se is None


@every("slots")
def test_shapes_follow_the_question_with_slots_too(name):
    slots = dither.ALGORITHMS[name](dim=3, disjoint=4, seed=0)
    assert type(slots.choose(ARMS[0]).arm) is int
    assert slots.choose(ARMS).arm.shape == (5,)
    assert slots.propensities(ARMS).shape == (5, 4)
    assert slots.mean(ARMS[0]).shape == slots.width(ARMS[0]).shape == slots.predict(ARMS[0]).shape == (4,)
    assert slots.theta.shape == (4, 3)


@every()
def test_an_empty_batch_is_an_empty_answer(name):
    b, twin = learnt(name), learnt(name)
    assert b.choose(np.empty((0, 4, 3))).arm.shape == (0,)
    assert b.propensities(np.empty((0, 4, 3))).shape == (0, 4)
    unchanged(b, twin, ARMS, n=few(b.policy, 100))
    b.update(np.empty((0, 3)), np.empty(0))
    assert_allclose(b.theta, twin.theta, rtol=1e-14)
    assert_allclose(b.width(ARMS), twin.width(ARMS), rtol=1e-14)
    assert b.t == twin.t


@every()
def test_choose_changes_nothing_but_the_stream(name):
    b = learnt(name)
    state, arrays, theta, t = b.state, copy.deepcopy(b.state), b.theta, b.t
    X = ARMS.copy()
    X.flags.writeable = False
    b.choose(X)
    ask(b, X)
    assert b.state is state
    same_arrays(state, arrays)
    assert_array_equal(b.theta, theta)
    assert b.t == t


@every()
def test_inputs_are_left_alone(name):
    b = learnt(name)
    X, r, mask, weight = ARMS[:4].copy(), np.ones(4), np.array([True, False, True, True]), np.full(4, 2.0)
    for array in (X, r, mask, weight):
        array.flags.writeable = False
    b.choose(X, mask=mask)
    ask(b, X, mask=mask)
    b.update(X, r, weight=weight)
    b.update(X[0], r[0], weight=weight[0])
    theta = b.theta
    theta[:] = 7.0  # what is handed out is not the state
    assert not np.any(b.theta == 7.0)


@every()
def test_the_order_of_updates_does_not_matter(name):
    rng = np.random.default_rng(0)
    bandits = [dither.ALGORITHMS[name](dim=3, lam=0.1, seed=0) for _ in range(3)]
    X, r, weight = rng.normal(size=(9, 3)), paid(bandits[0].model, rng.normal(size=9)), rng.uniform(0.5, 2, size=9)
    order = rng.permutation(9)
    for x, y, v in zip(X, r, weight, strict=True):
        bandits[0].update(x, y, weight=v)
    for i in order:
        bandits[1].update(X[i], r[i], weight=weight[i])
    bandits[2].update(X[order], r[order], weight=weight[order])
    for b in bandits[1:]:
        agree(b, bandits[0], ARMS)
        assert b.t == 10
        if name not in MONTE_CARLO:
            off = np.sum(uncertainty(b) + uncertainty(bandits[0]))
            assert_allclose(b.propensities(ARMS), bandits[0].propensities(ARMS), rtol=1e-9, atol=1e-12 + off)


@every()
def test_the_same_seed_is_the_same_bandit(name):
    def run(seed):
        b, g, arms = dither.ALGORITHMS[name](dim=3, seed=seed, floor=0.2), np.random.default_rng(0), []
        for _ in range(max(brief(b.model, b.policy, 100), 25)):
            X = g.normal(size=(5, 3))
            arms.append(b.choose(X).arm)
            b.update(X[arms[-1]], paid(b.model, g.normal()))
        return arms

    assert run(1) == run(1)
    assert run(1) != run(2)


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
        assert a._columns == ["width", "height"]
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


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="a"):
        dither.LinFP(dim=2, seed=0).choose(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]))


def test_a_refused_frame_leaves_no_names():
    b = dither.LinFP(dim=2, seed=0)
    for frame in (pd.DataFrame({"a": [1.0], "b": [np.nan]}), pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})):
        with pytest.raises(ValueError, match="X"):
            b.choose(frame)
    b.choose(pd.DataFrame({"p": [1.0], "q": [2.0]}))
    assert b._columns == ["p", "q"]


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
    assert not p[[1, 3]].any()
    assert oracles.agree(found, p, n=n, se=slack(b, p))


# Monte Carlo propensities


@pytest.mark.parametrize("name", sorted(MONTE_CARLO))
def test_a_monte_carlo_propensity_has_its_error(name):
    b = learnt(name, monte_carlo=400)
    n = few(b.policy, 500)
    p, slip = ask(b, ARMS, draws=100_000), slack(b, np.full(5, 0.5), draws=100_000)[0]
    d = b.choose(ARMS)
    assert d.propensity_kind == "monte_carlo"
    assert type(d.propensity) is float
    assert type(d.propensity_se) is float
    assert abs(d.propensity - p[d.arm]) <= 5 * d.propensity_se + 1 / 400
    d = b.choose(np.broadcast_to(ARMS, (n, 5, 3)))
    assert d.propensity.min() > 0
    assert d.propensity.max() <= 1
    z = (d.propensity - p[d.arm]) / np.sqrt(np.maximum(p[d.arm] * (1 - p[d.arm]), 1e-3) / 400 + slip**2)
    assert np.abs(z).max() < 5.5
    assert abs(z.mean()) < 0.5
    assert learnt(name, monte_carlo=400).choose(ARMS).arm == learnt(name).choose(ARMS).arm  # costs the stream nothing
    assert learnt(name, monte_carlo=3).choose([[1, 2, 3]]).propensity == 1.0


@pytest.mark.parametrize("name", sorted(MONTE_CARLO))
def test_a_detail_is_honest_about_its_error(name):
    b = learnt(name)
    exactly = ask(b, ARMS, draws=200_000)
    p, se, kind = b.propensities(ARMS, draws=1000, detail=True)
    assert kind == "monte_carlo"
    assert np.all(np.abs(p - exactly) <= 5 * np.hypot(se, slack(b, exactly, draws=200_000)))
    assert np.all(se < 0.02)
    assert np.all(se > 0)


# Settings


@every()
def test_help_shows_every_setting(name):
    algorithm = dither.ALGORITHMS[name]
    parameters = inspect.signature(algorithm).parameters
    assert next(iter(parameters)) == "dim"
    assert parameters["lam"].default == 1e-4
    assert {"seed", "preset", "floor", "disjoint", "diagonal", "monte_carlo"} <= set(parameters)
    if name in ("LinFP", "LinTS"):
        assert parameters["c"].default == 1.0
    assert algorithm.__doc__.startswith(algorithm.summary)
    assert algorithm.__name__ == algorithm.name == name
    for key, parameter in parameters.items():  # and every setting that it shows it takes
        if key != "dim":
            algorithm(dim=2, **{key: parameter.default})


def test_labels_are_those_of_the_figures():
    assert dither.ALGORITHMS["LinFP"].label["fig3-linear"] == "GLM-FP (ours)"
    assert dither.ALGORITHMS["LinFP"].label["h3"] == "LinFP (ours)"
    assert dither.ALGORITHMS["EpsGreedy"].label["h1"] == "ε-Greedy"
    assert dither.ALGORITHMS["LinTS"].label["anything"] == "LinTS"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": 2.5}, "dim"),
        ({"dim": True}, "dim"),
        ({"floor": -0.1}, "floor"),
        ({"floor": 1.1}, "floor"),
        ({"floor": np.nan}, "floor"),
        ({"monte_carlo": -1}, "monte_carlo"),
        ({"disjoint": 0}, "slots"),
        ({"lam": 0}, "lam"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, word):
    with pytest.raises(ValueError, match=word):
        dither.LinFP(**{"dim": 2} | settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"lam": np.float32(0.5)},
        {"lam": np.int64(2)},
        {"c": np.float64(0.5)},
        {"c": np.float32(0.5)},
        {"floor": np.float32(0.25)},
        {"dim": np.int64(2)},
        {"disjoint": np.int64(3)},
        {"seed": np.int64(3)},
        {"horizon": np.int64(100)},
        {"monte_carlo": np.int64(3)},
    ],
    ids=str,
)
def test_numbers_of_numpy_are_numbers(settings, tmp_path):
    b = dither.LinFP(**{"dim": 2, "seed": 0} | settings)
    b.save(tmp_path / "b")
    plain = dither.LinFP(**{"dim": 2, "seed": 0} | {k: v.item() for k, v in settings.items()})
    X = [1.0, 2.0] if "disjoint" in settings else np.eye(2)
    assert [b.choose(X).arm for _ in range(20)] == [plain.choose(X).arm for _ in range(20)]


def test_a_bandit_of_your_own_parts_is_saved_and_loaded(tmp_path):
    b = dither.Bandit(Mine(2.0), dither.policies.Greedy(), dim=2, seed=0)
    b.update([1, 0], 1.0)
    b.save(tmp_path / "b")
    with pytest.raises(ValueError, match="Mine"):
        dither.load(tmp_path / "b")
    c = dither.load(tmp_path / "b", known=(Mine,))
    assert_array_equal(c.theta, b.theta)


class Mine(dither.models.Ridge):
    pass


@every()
def test_threads_share_one_bandit(name):
    b = dither.ALGORITHMS[name](dim=2, lam=1.0, seed=0)
    n = brief(b.model, b.policy, 50)

    def work():
        for _ in range(n):
            b.choose(np.eye(2))
            b.update([1, 0], 1.0)
            b.propensities(np.eye(2), draws=10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (b.decisions, b.observations) == (4 * n, 4 * n)
    link, ridge = b.model.function, getattr(b.model, "rho", b.model.lam)  # 4n (μ(θ) - 1) + ridge θ = 0
    root = optimize.brentq(lambda v: 4 * n * (float(link.mu(np.float64(v))) - 1) + ridge * v, 0, 1e8, xtol=1e-14)
    root = min(root, getattr(b.model, "constrain", None) or np.inf)
    assert_allclose(b.theta, [root, 0], rtol=1e-12, atol=uncertainty(b)[0] * np.linalg.norm(b.state.F))


def test_who_is_excused_exists():
    assert set(EXCUSED) <= set(dither.ALGORITHMS)
    known = {"slots", "beats uniform choice", "beats uniform choice among slots"}
    assert {of for properties in EXCUSED.values() for of in properties} == known


@every()
def test_the_table_says_which_probabilities_there_are(name):
    b = dither.ALGORITHMS[name](dim=3, seed=0)
    kind = dither.ALGORITHMS[name].propensity
    assert decision.exact(b.policy) == (kind != "Monte Carlo")
    if kind == "0/1":
        b.update(ARMS[:2], [0.2, 1.0])
        p = b.propensities(ARMS)
        assert len(np.unique(p[p > 0])) == 1  # one arm, or those that tie with it


@every()
@pytest.mark.parametrize("fresh", [True, False])
def test_one_request_at_a_time_is_decided_as_in_a_batch_with_ties(name, fresh):
    a, b = (dither.ALGORITHMS[name](dim=3, seed=4) if fresh else learnt(name, seed=4) for _ in range(2))
    n = few(a.policy, 300)
    many = a.choose(np.broadcast_to(ARMS, (n, 5, 3)))
    one = [b.choose(ARMS) for _ in range(n)]
    assert many.arm.tolist() == [d.arm for d in one]
    assert_allclose(many.propensity, [d.propensity for d in one], rtol=1e-12)
    assert rows(a) == rows(b)


def test_the_mode_of_a_saved_file_stays(tmp_path):
    path = tmp_path / "b.dither"
    b = dither.LinFP(dim=2, seed=0)
    b.save(path)
    path.chmod(0o640)
    b.save(path)
    assert path.stat().st_mode & 0o777 == 0o640  # seen red: a temporary file that only its owner may read
    assert [p.name for p in tmp_path.iterdir()] == ["b.dither"]


def test_a_policy_whose_draw_is_no_tuple_is_refused():
    class Bare(dither.policies.FeaturePerturbation):
        def draw(self, rng, n, *, arms, dim):
            return rng.standard_normal(n)

    bandit = dither.Bandit(dither.models.Ridge(), Bare(), dim=2, seed=0)
    for call in (lambda: bandit.choose(np.eye(2)), lambda: bandit.choose(np.ones((3, 2, 2)))):
        with pytest.raises(TypeError, match="tuple"):  # seen red: the array taken for the tuple
            call()


@pytest.mark.parametrize("policy", [object(), dither.policies.Greedy])
def test_what_is_no_policy_is_refused_at_once(policy):
    with pytest.raises(TypeError, match="policy"):
        dither.Bandit(dither.models.Ridge(), policy, dim=2)


def test_a_row_of_a_frame_with_a_boolean_column_is_an_arm():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"price": [1.0, 2.0], "new": [True, False]})
    bandit = dither.LinFP(dim=2, seed=0)
    bandit.update(frame.iloc[bandit.choose(frame).arm], 1.0)
    with pytest.raises(ValueError, match="'cheap'"):
        bandit.choose(pd.DataFrame({"price": ["cheap", 1.0], "new": [1, 0]}))


def test_copies_and_pickles_go_on_apart():
    import copy
    import pickle

    a = dither.LinFP(dim=2, seed=0)
    a.update([1.0, 2.0], 1.0)
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    others = [copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))]
    for other in others:
        [other.choose(X) for _ in range(7)]
    fresh = [copy.deepcopy(a) for _ in range(2)]
    assert [a.choose(X) for _ in range(9)] == [fresh[0].choose(X) for _ in range(9)]  # seen red: shared streams
    assert pickle.loads(pickle.dumps(dither.LinFP)) is dither.LinFP


def test_the_floor_is_kept_to_the_bit():
    for floor in (0.07, 0.08, 0.09, 0.1, 0.11):
        bandit = dither.LinFP(dim=2, lam=1.0, floor=floor, seed=0)
        bandit.update([1, 0], 1)
        assert bandit.propensities([[1e6, 0], [-1e6, 0]]).min() >= floor / 2  # seen red: 1 - (1 - own)(1 - floor)


@pytest.mark.parametrize("c", [lambda t: -1.0, lambda t: float("nan")])
def test_a_schedule_that_gives_no_scale_is_refused(c):
    with pytest.raises(ValueError, match=r"c\(1\)"):
        dither.LinFP(dim=2, c=c, seed=0).choose(np.eye(2))


def test_what_is_certain_has_no_standard_error():
    p, se, kind = dither.LinTS(dim=2, seed=0).propensities(np.eye(2), mask=[True, False], detail=True)
    assert (p.tolist(), se.tolist(), kind) == ([1.0, 0.0], [0.0, 0.0], "monte_carlo")


def test_a_decision_whose_draws_all_agree_is_not_certain():
    bandit = dither.LinTS(dim=2, lam=1.0, monte_carlo=20, seed=0)
    for _ in range(200):
        bandit.update([1.0, 0.0], 1.0)
    d = bandit.choose([[1.0, 0.0], [-1.0, 0.0]])
    assert d.propensity == 1.0
    assert d.propensity_se > 0.01


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"coupled": "false"}, "True or False"), ({"diagonal": "false"}, "True or False"), ({"noise": "ball"}, "Ball")],
)
def test_texts_are_not_taken_for_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        dither.LinFP(dim=2, **settings)

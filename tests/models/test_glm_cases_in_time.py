"""The cases of `test_cases_in_time` for generalised linear bandits, disjoint slots and certificates."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import glm_oracles
import oracles
from cases import contents, loop, refused, with_header
from glm_cases import ALL, NEAR, SOLVERS, exact, three
from oracles import rows

# R2  late, and not in order


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("at_once", [False, True])
def test_r2_order_does_not_matter(order, at_once, solver):
    X, r = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 0.0, 0.5])
    at = [[1, 0], [0, 2]]
    b = dither.GLMFP(dim=2, lam=1.0, solver=solver, seed=0)
    if at_once:
        b.update(X[list(order)], r[list(order)])
    else:
        for k in order:
            b.update(X[k], r[k])
    assert_allclose(b.propensities(at), exact(X, r, at), rtol=0, atol=NEAR[solver])


def test_r2_a_reward_that_never_comes_is_no_reward():
    b = dither.GLMFP(dim=2, lam=1.0, solver="exact", seed=0)
    b.update([1, 1], 0.5)
    b.update([1, 0], 1.0)
    at = [[1, 0], [0, 2]]
    assert_allclose(b.propensities(at), exact([[1, 1], [1, 0]], [0.5, 1.0], at), rtol=0, atol=1e-6)


# S1  asking is not drawing


@pytest.mark.parametrize("solver", ALL)
def test_s1_asking_is_not_drawing(solver, tmp_path):
    a, b = (dither.GLMFP(dim=2, solver=solver, seed=3) for _ in range(2))
    X, chosen, asked = np.array([[1, 0], [0, 2]]), [], []
    for t in range(100):
        chosen.append(a.choose(X).arm)
        a.update(X[chosen[-1]], t % 2)
        p = b.propensities(X)
        repr(b), b.theta, b.mean(X), b.width(X), b.bound
        assert_array_equal(b.propensities(X), p)
        if t % 25 == 0:
            b.save(tmp_path / "b")
        asked.append(b.choose(X).arm)
        b.update(X[asked[-1]], t % 2)
    assert chosen == asked
    assert rows(a) == rows(b)


# P1  saved in the middle


@pytest.mark.parametrize(
    ("link", "solver"), [*(("logit", solver) for solver in ALL), ("log", "certified"), ("probit", "certified")]
)
def test_p1_saved_in_the_middle(link, solver, tmp_path):
    b, g = dither.GLMFP(dim=4, link=link, solver=solver, seed=7, floor=0.1), np.random.default_rng(1)
    loop(b, g, 40)
    before = rows(b)
    b.save(tmp_path / "b")
    assert rows(b) == before
    c = dither.load(tmp_path / "b")
    assert rows(c) == before
    assert_array_equal(c.bound, b.bound)
    c.save(tmp_path / "c")
    assert contents(tmp_path / "b") == contents(tmp_path / "c")
    assert loop(b, np.random.default_rng(2), 40) == loop(c, np.random.default_rng(2), 40)
    assert rows(b) == rows(c)


def test_p1_saved_between_two_passes(tmp_path):
    """Beyond a thousand rows, with observations in the buffer that no pass has seen."""
    X, r = glm_oracles.logistic(np.random.default_rng(3), 1250, d=4)
    b = dither.GLMFP(dim=4, seed=7)
    b.update(X[:1200], r[:1200])
    for t in range(1200, 1250):
        b.update(X[t], r[t])
    b.save(tmp_path / "b")
    c = dither.load(tmp_path / "b")
    assert rows(c) == rows(b)
    assert loop(b, np.random.default_rng(2), 150) == loop(c, np.random.default_rng(2), 150)
    assert_array_equal(b.bound, c.bound)


@pytest.mark.parametrize("changes", [{"constrain": 2.0}, {"min_derivative": 0.25}, {"ridge": 0.5}, {"disjoint": 3}])
def test_p1_variants_are_saved_too(changes, tmp_path):
    b = dither.GLMFP(dim=2, seed=7, **changes)
    slots, X = "disjoint" in changes, np.random.default_rng(0).normal(size=(30, 2))
    arm = {"arm": np.arange(30) % 3} if slots else {}
    b.update(X, np.arange(30) % 2, **arm)
    b.save(tmp_path / "b")
    c = dither.load(tmp_path / "b")
    assert rows(c) == rows(b)
    at = X[0] if slots else X[:5]
    assert_array_equal(b.propensities(at), c.propensities(at))


# P2  a file from a stranger


@pytest.mark.parametrize(
    "model",
    [
        {"class": "GLM", "link": "os.system"},
        {"class": "GLM", "solver": "fast"},
        {"class": "GLM", "lam": -1},
        {"class": "GLM", "tol": 0},
        {"class": "GLM", "constrain": "1"},
        {"class": "GLM", "lamb": 1},
        {"class": "GLM"},  # the file holds the state of a Ridge
    ],
)
def test_p2_a_header_that_does_not_fit_is_refused(tmp_path, model):
    with_header(tmp_path, model=model)
    refused(tmp_path / "bad")


def test_p2_a_damaged_history_is_refused(tmp_path):
    b = dither.GLMFP(dim=2, seed=0)
    b.update(np.eye(2), [1, 0])
    b.save(tmp_path / "good")
    with np.load(tmp_path / "good") as file:
        parts = {name: file[name] for name in file.files}
    for name, broken in (
        ("state.history.rows", np.array(10**6)),
        ("state.history.rows", np.array(-1)),
        ("state.history.count", -1 - parts["state.history.count"]),
        ("state.history.X", parts["state.history.X"][:1]),
        ("state.history.X", parts["state.history.X"] * np.nan),
        ("state.F", 0 * parts["state.F"]),
        ("state.theta", np.full(2, np.nan)),
    ):
        with open(tmp_path / "bad", "wb") as file:
            np.savez(file, **{**parts, name: broken})
        refused(tmp_path / "bad")


# P3  killed while saving


def test_p3_an_error_in_the_middle_of_a_write_leaves_the_old_file(tmp_path, monkeypatch):
    b = three()
    b.save(tmp_path / "b")
    theta = b.theta
    b.update([0, 1], 1.0)
    whole = np.savez

    def half(file, **parts):
        whole(file, **dict(list(parts.items())[:2]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="No space"):
        b.save(tmp_path / "b")
    assert_array_equal(dither.load(tmp_path / "b").theta, theta)


# V2  eight threads


@pytest.mark.parametrize("solver", ["counts", "certified"])
def test_v2_eight_threads(solver):
    b, failures = dither.GLMFP(dim=2, lam=1.0, solver=solver, seed=0), []

    def work():
        try:
            for _ in range(40):
                assert 0 < b.choose([[1, 0], [0, 1]]).propensity <= 1
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
    assert (b.decisions, b.observations) == (320, 320)
    p = exact([[1, 0]], [1.0], np.eye(2), weight=[320.0])
    assert_allclose(b.propensities(np.eye(2)), p, rtol=0, atol=NEAR[solver])


# Disjoint slots, masks and the certificate of a bandit


@pytest.mark.parametrize("solver", ALL)
def test_disjoint_slots_are_a_dense_problem(solver):
    X, r = glm_oracles.stream("logit", "flip", 24)
    arm = np.random.default_rng(6).integers(3, size=24)  # the last slot stays empty
    b, dense = dither.GLMFP(dim=3, disjoint=4, solver=solver, lam=0.1, seed=0), np.zeros((24, 4, 3))
    dense[np.arange(24), arm] = X
    for t in range(24):
        b.update(X[t], r[t], arm=int(arm[t]))
    truth = glm_oracles.fit(dense.reshape(24, 12), r, lam=0.1)
    for x in (X[0], X[1], [0.3, -2, 1]):
        at = np.kron(np.eye(4), x)
        m, w = at @ truth.theta.astype(float), glm_oracles.widths(truth.R, at)
        if solver != "online":
            assert_allclose(b.propensities(x), oracles.line_mass(m, w), rtol=0, atol=NEAR[solver])
        p = b.propensities(x, mask=[True, True, False, False])
        assert_array_equal(p[2:], 0.0)
        assert abs(p.sum() - 1) < 1e-12
        d = b.choose(np.broadcast_to(x, (20_000, 3)))
        assert oracles.agree(np.bincount(d.arm, minlength=4) / 20_000, b.propensities(x), n=20_000)


def test_a_bandit_tells_its_certificate():
    X, r = glm_oracles.logistic(np.random.default_rng(3), 40, d=3)
    b = dither.GLMFP(dim=3, seed=0)
    b.update(X, r)
    assert b.bound.shape == (2,)
    assert np.all(b.bound <= [1e-8, 1e-3])
    late = dither.GLMFP(dim=3, solver="online", seed=0)
    late.update(np.tile(X, (27, 1)), np.tile(r, 27))
    assert np.isinf(late.bound).all()  # beyond its first 1,024 rows nothing is certain


def test_choices_are_those_of_the_exact_estimate():
    """The chosen arm against the exact θ̂ and Ĥ, where the certificate is used: more than a thousand rows."""
    rng = np.random.default_rng(11)
    X, r = glm_oracles.logistic(rng, 1400, d=4)
    b = dither.GLMFP(dim=4, seed=0)
    b.update(X[:1000], r[:1000])
    for t in range(1000, 1400):
        b.update(X[t], r[t])
    truth = glm_oracles.fit(X, r)
    at = glm_oracles.unit(rng, 50, 4)
    m, w = at @ truth.theta.astype(float), glm_oracles.widths(truth.R, at)
    assert np.all(np.abs(b.mean(at) - m) <= b.bound[0] * w)
    assert np.all(np.abs(2 * np.log(b.width(at) / w)) <= b.bound[1] + 1e-9)
    assert np.abs(b.propensities(at) - oracles.line_mass(m, w)).sum() <= 0.1

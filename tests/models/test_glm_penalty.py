"""λ by the rule in a GLM: after every row the plain fit with that λ, whatever the solver, the batches and the slots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

import dither
from dither import testing
from dither.base import trees
from dither.models import GLM, Disjoint, penalty
from dither.models.glm import learn
from glm_states import fold

SOLVERS = ["certified", "exact", "counts", "online"]


def lam_after(X, weight=None, *, share=1 / 16):
    """λ of rows X (n, d) with weights, spelt out; share: μ'(0)² of the link."""
    w, square = np.ones(len(X)) if weight is None else weight, np.vecdot(X, X)
    lam = next((size for size, count in zip(square, w, strict=True) if size * count > 0), X.shape[1]) / X.shape[1]
    for h in (1, 2, 4, 8, 16, 32, 64, 128):
        first = np.diff(np.minimum(np.cumsum([0.0, *w]), h))  # what each row counts among the first h
        if w.sum() >= h * (1 - 1e-12) and first @ square > 0:
            lam = first @ square / (h * X.shape[1])
    return share * lam


def rows(n, d=3, *, scale=3.0, seed=0):
    """Rows whose sizes drift, so that λ moves at every step of the rule."""
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, d)) * np.linspace(1, 2, n)[:, None]
    return X, (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)


def by_scipy(X, r, lam, weight=None):
    """θ̂ by SciPy's Newton, from the objective as it is written, and Ĥ."""
    w = np.ones(len(X)) if weight is None else weight

    def loss(theta):
        z = X @ theta
        return w @ (np.logaddexp(0, z) - r * z) + lam / 2 * theta @ theta

    def slope(theta):
        return (w * (1 / (1 + np.exp(-X @ theta)) - r)) @ X + lam * theta

    def hessian(theta):
        mu = 1 / (1 + np.exp(-X @ theta))
        return (X.T * (w * mu * (1 - mu))) @ X + lam * np.eye(X.shape[1])

    theta = optimize.minimize(loss, np.zeros(X.shape[1]), jac=slope, hess=hessian, method="trust-exact", tol=1e-12).x
    for _ in range(3):
        theta = theta - np.linalg.solve(hessian(theta), slope(theta))
    return theta, hessian(theta)


def agrees(state, theta, H, *, tol=1e-7):
    L = np.linalg.cholesky(H)
    assert np.linalg.norm(L.T @ (state.theta - theta)) <= tol
    eigenvalues = np.linalg.eigvalsh(L.T @ state.F @ state.F.T @ L)
    assert np.abs(np.log(eigenvalues)).max() <= 2 * np.log1p(tol)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weights", ["ones", "copies", "light"])
def test_it_is_the_fit_with_the_lam_of_the_first_rows(solver, weights):
    """Light rows move λ when the history is not read after each row any more.

    Seen red with θ̂ and Ĥ left as they were where λ moves.
    """
    n, tol = (450, 0.05) if weights == "light" else (150, 1e-8)
    X, r = rows(n)
    copies = np.random.default_rng(1).integers(0, 3, size=n).astype(float)
    w = {"ones": np.ones(n), "copies": copies, "light": np.full(n, 0.3)}[weights]
    model = GLM(lam="auto", solver=solver, tol=tol)
    state = model.init(3)
    assert float(model.lam_of(state)) == 1 / 16
    for n in range(1, len(X) + 1):
        state = model.update(state, X[n - 1], r[n - 1], weight=None if weights == "ones" else w[n - 1])
        if n in (1, 2, 3, 5, 31, 64, 127, 128, 129, 150, 214, 300, 427, 450):
            lam = lam_after(X[:n], w[:n])
            assert float(model.lam_of(state)) == pytest.approx(lam, rel=1e-12)
            agrees(state, *by_scipy(X[:n], r[:n], lam, w[:n]), tol=max(tol, 1e-7))


@pytest.mark.parametrize("solver", SOLVERS)
def test_batches_are_rows_in_turn(solver):
    """Seen red with the λ of the first row of the batch."""
    X, r = rows(200)
    weight = np.random.default_rng(2).uniform(0, 2, size=200)
    model = GLM(lam="auto", solver=solver, tol=1e-8)
    in_turn, at_once = fold(model, X, r, weight=weight), model.init(3)
    for part in np.split(np.arange(200), [1, 2, 9, 60, 190]):
        at_once = model.update_many(at_once, X[part], r[part], weight=weight[part])
    assert_allclose(np.array(at_once.rule), np.array(in_turn.rule), rtol=1e-12)
    assert_allclose(at_once.theta, in_turn.theta, rtol=1e-7, atol=1e-8)
    agrees(at_once, *by_scipy(X, r, lam_after(X, weight), weight))


def test_zeros_come_first_and_weights_of_nothing_change_nothing():
    """Seen red with λ = 1 kept where the first rows are zeros."""
    X, r = rows(40)
    X[:5] = 0
    weight = np.ones(40)
    weight[20:30] = 0
    model = GLM(lam="auto")
    state = model.init(3)
    for n in range(1, 41):
        state = model.update(state, X[n - 1], r[n - 1], weight=weight[n - 1])
        assert float(model.lam_of(state)) == pytest.approx(lam_after(X[:n][weight[:n] > 0]), rel=1e-12)
    agrees(state, *by_scipy(X[weight > 0], r[weight > 0], lam_after(X[weight > 0])))


@pytest.mark.parametrize("link", ["logit", "identity"])
@pytest.mark.parametrize("weight", [0.05, 1.0])
def test_without_rows_the_model_of_the_objective_stands_for_them(monkeypatch, link, weight):
    """Rows of small weights go on to move λ after "online" has stopped to keep them.

    Seen red with θ, with F and with the diagonal of H left as they were.
    """
    monkeypatch.setattr(learn, "WARM", 40)
    X, r = rows(400, scale=0.5)
    w = np.full(400, weight)
    model = GLM(link, lam="auto", solver="online")
    state = fold(model, X, r, weight=w, needs=frozenset({"gram_width"}))
    lam = lam_after(X, w, share={"logit": 1 / 16, "identity": 1.0}[link])
    assert float(model.lam_of(state)) == pytest.approx(lam, rel=1e-12)
    V = (X.T * w) @ X + lam * np.eye(3)
    assert_allclose(model.gram_width(state, np.eye(3)), np.sqrt(np.diag(np.linalg.inv(V))), rtol=1e-9)
    if link == "identity":
        assert_allclose(state.theta, np.linalg.solve(V, (X.T * w) @ r), rtol=1e-9)
        assert_allclose(state.F @ state.F.T, np.linalg.inv(V), rtol=1e-8)
    else:
        theta, H = by_scipy(X, r, lam, w)
        assert np.linalg.norm(np.linalg.cholesky(H).T @ (state.theta - theta)) < 0.2
    covariance = state.F @ state.F.T
    assert_allclose(state.lazy.diagonal, np.diag(np.linalg.inv(covariance)), rtol=1e-6)
    assert_allclose(state.lazy.inverse, np.diag(covariance), rtol=1e-6)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("solver", ["certified", "online"])
def test_slots_have_one_lam_of_all_rows(solver, at_once):
    """Each slot is the fit of its rows with the λ of all rows; one that has none has λ alone.

    Seen red with λ of each slot's own rows, and with only those slots read that have rows.
    """
    X, r = rows(70)
    arm = np.random.default_rng(3).integers(3, size=70)
    model = Disjoint(GLM(lam="auto", solver=solver, tol=1e-8), 4)
    state, done = model.init(3), 0
    for n in (1, 2, 3, 16, 33, 64, 70):
        if at_once:
            state = model.update_many(state, X[done:n], r[done:n], arm=arm[done:n])
        else:
            for i in range(done, n):
                state = model.update(state, X[i], r[i], arm=arm[i], own=i % 2 > 0)
        done, lam = n, lam_after(X[:n])
        assert_allclose(np.asarray(model.each.lam_of(state)), lam, rtol=1e-12)
        assert model.lam_of(state) == pytest.approx(lam, rel=1e-12)
        for k in range(4):
            of_slot = arm[:n] == k
            agrees(trees.map_arrays(lambda A, k=k: A[k], state), *by_scipy(X[:n][of_slot], r[:n][of_slot], lam))
        assert_allclose(model.width(state, X[0])[3], np.linalg.norm(X[0]) / lam**0.5, rtol=1e-9)


def test_new_slots_have_the_lam_of_the_others():
    """Seen red with the λ of no rows in the new slots."""
    X, r = rows(20)
    bandit = dither.Bandit(Disjoint(GLM(lam="auto"), 2), dither.policies.FeaturePerturbation(), dim=3, seed=0)
    for i in range(20):
        bandit.update(X[i], r[i], arm=i % 2)
    bandit.grow(4)
    assert_allclose(bandit.state.rule.lam, 16 * lam_after(X), rtol=1e-12)
    assert_allclose(bandit.width(X[0])[2:], np.linalg.norm(X[0]) / lam_after(X) ** 0.5, rtol=1e-9)
    assert_allclose(np.ptp(np.array(bandit.state.rule), axis=1), 0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("slots", [False, True])
def test_runs_in_lockstep_learn_what_they_learn_alone(solver, slots):
    """To the last bit, though λ moves in one run and not in another. Seen red with all runs read where one must be."""
    rng, R, n = np.random.default_rng(4), 3, 90
    X, weight = rng.normal(size=(n, R, 3)), rng.uniform(0, 3, size=(n, R))
    r, arm = rng.integers(2, size=(n, R)).astype(float), rng.integers(2, size=(n, R))
    each = GLM(lam="auto", solver=solver)
    model = Disjoint(each, 2) if slots else each
    together, alone = model.init(3, batch=(R,)), [model.init(3, batch=(1,)) for _ in range(R)]
    for i in range(n):
        how = {"arm": arm[i]} if slots else {}
        together = model.update(together, X[i], r[i], weight=weight[i], **how)
        for k in range(R):
            how = {"arm": arm[i, k : k + 1]} if slots else {}
            run = slice(k, k + 1)
            alone[k] = model.update(alone[k], X[i, run], r[i, run], weight=weight[i, run], **how)
    for k in range(R):
        for name in ("theta", "F", "rule"):
            ours, theirs = getattr(together, name), getattr(alone[k], name)
            assert_array_equal(_run(ours, k), _run(theirs, 0), err_msg=name)


def _run(part, k):
    return np.array([np.asarray(A)[k] for A in part]) if isinstance(part, penalty.Rule) else part[k]


FADING = [{"discount": 0.99}, {"half_life": 70.0}]


@pytest.mark.parametrize(
    ("solver", "how"),
    [(solver, how) for solver in ("certified", "exact", "online") for how in FADING]
    + [(solver, {"window": 10}) for solver in ("certified", "exact")],  # online knows no window
)
def test_lam_never_fades(how, solver):
    """Along a feature that is always 0 there is λ alone. Seen red with λ = 1 in the objective of what fades."""
    X, r = rows(300)
    X[:, 2] = 0
    model = GLM(lam="auto", solver=solver, **how)
    state, at = model.init(3), np.arange(300.0)
    for i in range(300):
        state = model.update(state, X[i], r[i], **({"at": at[i]} if "half_life" in how else {}))
        n, age = i + 1, np.arange(i, -1, -1.0)
        lam = lam_after(X[:n])
        assert float(model.lam_of(state)) == pytest.approx(lam, rel=1e-12)
        w = 0.99**age if "discount" in how else (age < 10.0) * 1.0 if "window" in how else 2 ** (-age / 70)
        if n in (1, 2, 4, 17, 64, 128, 150, 200, 250, 300):
            agrees(state, *by_scipy(X[:n], r[:n], lam, w), tol=0.05)
    if "half_life" in how:
        state = model.advanced(state, np.float64(1e6))
        assert_allclose(state.F @ state.F.T, np.eye(3) / lam, rtol=1e-9)


@pytest.mark.parametrize(
    "how", [{"ridge": 0.5}, {"min_derivative": 0.25}, {"constrain": 0.1}, {"ridge": 0.5, "solver": "online"}]
)
def test_the_widths_have_it_where_they_have_another_curvature(monkeypatch, how):
    """Seen red with Ĥ of before kept where its weights do not depend on θ̂."""
    monkeypatch.setattr(learn, "WARM", 24)
    X, r = rows(60, scale=0.5)
    w = np.full(60, 0.5)
    model = GLM(lam="auto", tol=1e-8, **how)
    state, lam = fold(model, X, r, weight=w), lam_after(X, w)
    slope = np.maximum(model.function.slopes(X @ state.theta)[1], model.min_derivative)
    H = (X.T * (w * slope)) @ X + lam * np.eye(3)
    tol = 0.2 if model.solver == "online" else 1e-6
    assert_allclose(model.width(state, np.eye(3)), np.sqrt(np.diag(np.linalg.inv(H))), rtol=tol)
    if model.constrain is not None:
        assert np.linalg.norm(state.theta) == pytest.approx(model.constrain, rel=1e-6)
    else:
        theta, J = by_scipy(X, r, model.ridge or lam, w)
        assert np.linalg.norm(np.linalg.cholesky(J).T @ (state.theta - theta)) < max(tol, 1e-6)


def test_refits_have_it():
    """Seen red with λ = 1 in refits."""
    X, r = rows(50)
    model = GLM(lam="auto")
    state, shift = fold(model, X, r), np.array([0.3, -2.0, 1.0])
    lam = lam_after(X)
    total = np.zeros(state.history.count.shape)
    theta, H = by_scipy(X, 0.0 * r, lam)
    assert np.linalg.norm(np.linalg.cholesky(H).T @ (model.refit(state, total=total) - theta)) < 2e-3
    assert_allclose(model.refit(model.init(3), shift=shift), 16 * shift, rtol=1e-12)


def test_files_hold_it(tmp_path):
    """Seen red with a rule that begins anew in what is loaded."""
    X, r = rows(20)
    bandit = dither.GLMFP(dim=3, seed=0, lam="auto")
    for i in range(20):
        bandit.update(X[i], r[i])
    bandit.save(tmp_path / "bandit")
    again = dither.load(tmp_path / "bandit")
    assert_array_equal(np.array(again.state.rule), np.array(bandit.state.rule))
    for i in range(20):
        bandit.update(X[i], r[i]), again.update(X[i], r[i])
    assert_array_equal(again.state.theta, bandit.state.theta)
    assert_array_equal(again.state.F, bandit.state.F)


def test_the_units_of_the_features_do_not_matter():
    """θ̂'x and widths are the same where all features are 1,000 times as large. Seen red with λ = 1."""
    X, r = rows(60)
    model = GLM(lam="auto")
    for scale in (1e-3, 1e3):
        a, b = fold(model, X, r), fold(model, scale * X, r)
        assert_allclose(model.mean(b, scale * X), model.mean(a, X), rtol=1e-6, atol=1e-8)
        assert_allclose(model.width(b, scale * X), model.width(a, X), rtol=1e-6)


@pytest.mark.parametrize("slots", [None, 2])
def test_a_row_beside_which_nothing_would_be_left_is_refused(slots):
    """λ would be of that row for ever. Seen red without the check: λ = 6e77 after it."""
    X, r = rows(8)
    bandit = dither.GLMFP(dim=3, seed=0, lam="auto", disjoint=slots)
    arm = {} if slots is None else {"arm": 0}
    for i in range(7):
        bandit.update(X[i], r[i], **arm)
    before = bandit.state
    with pytest.raises(ValueError, match="too large beside"):
        bandit.update(1e40 * X[7], r[7], **arm)
    assert bandit.state is before
    bandit.update(1e6 * X[7], r[7], **arm)


def test_other_words_than_auto_are_refused():
    """Seen red with every word taken."""
    with pytest.raises(ValueError, match="lam"):
        GLM(lam="own")
    with pytest.raises((ValueError, TypeError), match="ridge"):
        GLM(ridge="auto")


@pytest.mark.parametrize("how", [{}, {"solver": "counts"}, {"solver": "online"}, {"slots": 3}])
def test_it_keeps_the_rules_of_models(how):
    """But that of the order, since λ is of what came first. Seen red with one array for two parts of the rule."""
    model = Disjoint(GLM(lam="auto"), how["slots"]) if "slots" in how else GLM(lam="auto", **how)
    testing.check_model(model, expected_failed_checks={"order": "λ is of the first rows"})

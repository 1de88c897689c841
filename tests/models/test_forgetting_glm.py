"""Generalised linear models that forget, against Newton's method on the weighted history, spelt out."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from test_forgetting import weights

import dither
from dither import testing
from dither.models import GLM, Disjoint, history
from dither.models.glm import forgotten, learn, leaving
from libraries import Library
from longer import size

DISCOUNTS = ({"discount": 0.99}, {"discount": 0.9}, {"discount": 1e-3})
WINDOWS = ({"window": 3}, {"window": 150})


def newton(X, r, w, *, lam, link):
    """θ̂ and the Hessian there, by damped steps on the whole weighted history."""
    mu = {"logit": lambda z: 1 / (1 + np.exp(-z)), "log": np.exp, "identity": lambda z: z}[link]
    slope = {"logit": lambda z: mu(z) * (1 - mu(z)), "log": np.exp, "identity": np.ones_like}[link]
    theta = np.zeros(X.shape[1])
    for _ in range(500):
        z = X @ theta
        H = X.T @ ((w * slope(z))[:, None] * X) + lam * np.eye(len(theta))
        step = np.linalg.solve(H, X.T @ (w * (mu(z) - r)) + lam * theta)
        theta = theta - step / max(1.0, np.abs(X @ step).max(initial=0.0))
        if np.abs(step).max() < 1e-14 * max(1.0, np.abs(theta).max()):
            break
    z = X @ theta
    return theta, X.T @ ((w * slope(z))[:, None] * X) + lam * np.eye(len(theta))


def agrees(model, state, X, r, w):
    """θ̂ and Ĥ are within `bound` of the exact ones, and the bound is as small as the solver says."""
    theta, H = newton(X, r, w, lam=model.rho_of(state), link=model.link)
    R = np.linalg.cholesky(H).T
    E = np.linalg.norm(R @ (state.theta - theta))
    drift = np.abs(np.log(np.linalg.eigvalsh(R @ state.F @ state.F.T @ R.T))).max()
    bound = model.bound(state)
    assert bound[0] <= (model.tol if model.solver == "certified" else learn.TIGHT)
    assert bound[0] + 1e-11 * max(1.0, np.linalg.norm(R @ theta)) >= E
    assert drift <= bound[1] + 1e-10
    at = np.random.default_rng(9).normal(size=(3, X.shape[1]))
    w2 = np.sum(at * np.linalg.solve(H, at.T).T, axis=1)
    assert_allclose(np.log(model.width(state, at) / np.sqrt(w2)), 0, atol=bound[1] / 2 + 1e-10)
    V = X.T @ (w[:, None] * X)
    found = model.gram_width(state, at) ** 2
    assert_allclose(found, np.sum(at * np.linalg.solve(V + model.lam * np.eye(len(V)), at.T).T, axis=1), rtol=1e-8)
    root = model.gram_sample(state, np.eye(len(V), 2 * len(V)))
    assert_allclose(root.T @ root, V, rtol=1e-8, atol=1e-10 * max(1.0, np.abs(V).max()))


def drawn(n, d, link, *, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, d))
    z = np.clip(X.sum(axis=1), -4, 4)
    r = (rng.random(n) < 1 / (1 + np.exp(-z))) * 1.0 if link == "logit" else rng.poisson(np.exp(z / 2)) * 1.0
    return X, r


@st.composite
def forgetful(draw):
    link = draw(st.sampled_from(["logit", "log", "identity"]))
    how = draw(st.sampled_from(DISCOUNTS + WINDOWS))
    solver = draw(st.sampled_from(["certified", "exact"] + ([] if "window" in how else ["counts"])))
    n, d, seed = draw(st.sampled_from([0, 1, 20, 140, 300])), draw(st.integers(1, 3)), draw(st.integers(0, 2**20))
    X, r = drawn(n, d, link, seed=seed, scale=draw(st.sampled_from([0.1, 1.0])))
    times = draw(st.sampled_from([None, 1])) and np.random.default_rng(seed).integers(0, 3, size=n)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
    return GLM(link=link, lam=draw(st.sampled_from([0.01, 1.0])), solver=solver, **how), X, r, times, [0, *cuts, n]


@given(forgetful())
def test_it_is_a_fit_of_the_weighted_history(case):
    model, X, r, times, cuts = case
    w = weights(model, np.ones(len(r), int) if times is None else times)
    one = many = model.init(X.shape[1])
    for i in range(len(r)):
        one = model.update(one, X[i], r[i], weight=None if times is None else np.float64(times[i]), own=i > 0)
    agrees(model, one, X, r, w)
    for a, b in itertools.pairwise(cuts):
        many = model.update_many(many, X[a:b], r[a:b], weight=None if times is None else times[a:b] * 1.0)
    agrees(model, many, X, r, w)
    # seen red: F not made anew; ρ that fades; the bound without its fading; the batch's rows not weighted


def test_the_bound_holds_through_long_histories_and_rows_that_faded_are_left_out():
    for how in ({"discount": 0.99}, {"discount": 0.9}, {"window": 300}, {"half_life": 60.0}):
        n = (2 if how == {"discount": 0.99} else 1) * size(600, longer=1500)
        X, r = drawn(n, 3, "logit", seed=1)
        model = GLM(lam=0.01, tol=0.01, **how)
        state = model.init(3)
        for i in range(n):
            timed = {"at": np.float64(i)} if model.half_life else {}
            state = model.update(state, X[i], r[i], own=True, **timed)
            if i % (n // 8) == 0 or i == n - 1:
                w = 0.5 ** ((i - np.arange(i + 1.0)) / 60) if model.half_life else weights(model, np.ones(i + 1, int))
                agrees(model, state, X[: i + 1], r[: i + 1], w)
        assert state.history.count.shape[0] < (1000 if "discount" in how and how["discount"] == 0.9 else 20_000)
    # seen red: `lazy.faded` that leaves `reach` or the buffer as they were


def test_the_prior_is_there_again_when_all_is_forgotten():
    X, r = drawn(40, 2, "logit", seed=2)
    later = np.array([1.0, 0.0])
    for model in (GLM(lam=0.25, discount=0.5), GLM(lam=0.25, window=20), GLM(lam=0.25, discount=0.5, solver="online")):
        state = model.update_many(model.init(2), X, r)
        for k in range(size(300, longer=1500)):
            state = model.update(state, later, np.float64(k % 2), own=True)
        assert_allclose(model.width(state, np.eye(2))[1], 2.0, rtol=1e-9)
        assert_allclose(state.theta[1], 0.0, atol=1e-9)


@pytest.mark.parametrize("how", [{"discount": 0.5}, {"discount": 0.7}, {"discount": 0.95}, {"half_life": 2.0}])
@pytest.mark.parametrize("solver", ["certified", "exact"])
def test_what_is_dropped_or_not_read_is_in_the_bound(how, solver):
    X, r = drawn(700, 3, "logit", seed=1)
    model = GLM(lam=0.01, solver=solver, **how)
    state, unread = model.init(3), 0
    for i in range(700):
        timed = {"at": np.float64(i)} if model.half_life else {}
        state = model.update(state, X[i], r[i], own=True, **timed)
        unread = max(unread, int(state.lazy.unread))
        assert state.history.count[: int(state.lazy.unread)].sum() < 0.02
        if i < 100 or i % size(20, longer=7):
            continue
        age = np.arange(i, -1.0, -1.0)
        w = 0.5 ** (age / 2) if model.half_life else model.discount**age
        theta, H = newton(X[: i + 1], r[: i + 1], w, lam=0.01, link="logit")
        E = np.linalg.norm(np.linalg.cholesky(H).T @ (state.theta - theta))
        assert model.bound(state)[0] + 1e-13 * max(1.0, np.linalg.norm(theta)) >= E
    assert state.history.rows < 650
    assert (unread > 0) == (solver == "certified")
    # seen red: bounds without `mass`, where E was 200,000 times the bound; `unread` that is not counted anew


def test_a_row_that_leaves_the_window_takes_its_part_of_the_model_with_it():
    """θ is the minimum of the model without the row, and FF' is the inverse of its curvature, spelt out."""
    X, r = drawn(900, 3, "logit", seed=7)
    model, done, passes = GLM(lam=0.5, window=300), 0, 0
    state = model.init(3)
    for i in range(900):
        passes += 0 if i < 300 else -int(state.lazy.passes)
        left = leaving.left(model, state, 1.0) if i >= 300 else None
        if left is not None:
            done += 1
            first = int(np.argmax(left.history.count > 0)) - 1
            x, base = left.history.X[first], state.lazy.base
            mu = 1 / (1 + np.exp(-x @ base))
            v, e = mu * (1 - mu), mu - r[i - 300]
            H = np.linalg.inv(state.F @ state.F.T) - v * np.outer(x, x)
            assert_allclose(x, X[i - 300])
            assert_allclose(left.F @ left.F.T @ H, np.eye(3), atol=1e-11)
            moved = np.linalg.inv(state.F @ state.F.T) @ (left.theta - state.theta)
            slope = moved - x * (v * x @ (left.theta - base) + e)
            assert_allclose(slope, 0, atol=1e-11)
            longest = np.linalg.norm(left.history.X[left.history.count > 0] @ left.F, axis=1).max()
            assert longest <= left.lazy.reach * (1 + 1e-9)
            assert left.lazy.slope >= state.lazy.slope
            assert left.lazy.offset > state.lazy.offset
        state = model.update(state, X[i], r[i], own=True)
        passes += 0 if i < 300 else int(state.lazy.passes)
    assert done > 400
    assert passes < 300  # most rows come and leave without a look at the others
    # seen red: θ that stays; F that stays; `reach` as it was


def test_what_a_row_of_the_window_leaves_behind_takes_a_pass_where_the_model_cannot_say():
    X, r = drawn(400, 2, "logit", seed=8)
    model = GLM(lam=0.5, window=150)
    state = model.update_many(model.init(2), X[:200], r[:200])
    for i in range(3):
        state = model.update(state, X[i], r[i])
    assert leaving.left(model, state, 1.0) is not None
    off = state.lazy._replace(offset=np.float64(1e-3))
    assert leaving.left(model, state._replace(lazy=off), 1.0) is None  # R'R is of another point than `base`
    assert leaving.left(model, state, 1.5) is None  # a row leaves in part
    later = state.lazy._replace(fill=np.int64(150))
    assert leaving.left(model, state._replace(lazy=later), 1.0) is None  # it came after the last pass
    unknown = state.lazy._replace(bound=np.array([np.inf, np.inf]))
    assert leaving.left(model, state._replace(lazy=unknown), 1.0) is None
    alone = GLM(lam=1e-4, window=150)
    X[:60, 1], X[60:, 1] = 1.0, 0.0
    state = alone.update_many(alone.init(2), X[:209], r[:209])
    assert leaving.left(alone, state, 1.0) is None  # the last row of its direction
    # seen red: each of the conditions left out


def test_memory_stays_that_of_the_rows_that_count():
    X, r = drawn(3000, 2, "logit", seed=9)
    for how, most in (({"window": 200}, 700), ({"discount": 0.99}, 5000), ({"half_life": 10.0}, 1000)):
        model = GLM(lam=0.5, **how)
        timed = {"at": np.arange(3000.0)} if model.half_life else {}
        state = model.update_many(model.init(2), X, r, **timed)
        for i in range(600):
            timed = {"at": np.float64(3000 + i)} if model.half_life else {}
            state = model.update(state, X[i], r[i], own=True, **timed)
        assert state.history.X.shape[0] < most
    # seen red: buffers that keep the room of a batch


def test_by_the_clock_rows_count_by_their_age_in_whatever_order_they_come():
    rng = np.random.default_rng(3)
    X, r = drawn(200, 2, "logit", seed=3)
    at = rng.uniform(-50, 300, size=200)
    for solver in ("certified", "exact"):
        model = GLM(lam=0.5, half_life=40.0, solver=solver)
        one = model.init(2)
        for i in rng.permutation(200):
            one = model.update(one, X[i], r[i], at=np.float64(at[i]))
        many = model.update_many(model.init(2), X, r, at=at)
        for end in (320.0, 360.0, 100.0):
            one, many = (model.advanced(state, np.float64(end)) for state in (one, many))
        for state in (one, many):
            agrees(model, state, X, r, 0.5 ** ((360.0 - at) / 40.0))
        gone = model.advanced(one, np.float64(1e9))
        assert_allclose(model.width(gone, np.eye(2)), 2**0.5, rtol=1e-12)
        assert_allclose(gone.theta, 0.0, atol=1e-20)


def test_what_is_kept_between_two_passes_fades_as_it_must():
    """θ is the minimum of the faded model, H is the faded curvature, and no row is longer than `reach`."""
    model, left, later = GLM(lam=0.5, discount=0.999), 0.6, 0
    X, r = drawn(400, 3, "logit", seed=6)
    state = model.init(3)
    for i in range(400):
        state = model.update(state, X[i], r[i], own=True)
        if i < 200 or int(state.lazy.fill) < 3:
            continue
        later += 1
        new, before = forgotten._faded(model, state, np.float64(left), None), state.lazy
        kept = new.lazy
        assert_allclose(new.H, left * (state.H - 0.5 * np.eye(3)) + 0.5 * np.eye(3), rtol=1e-12)
        assert_allclose(new.F @ new.F.T @ new.H, np.eye(3), atol=1e-12)
        assert_allclose(new.H @ (new.theta - state.theta), -(1 - left) * 0.5 * state.theta, rtol=1e-9, atol=1e-12)
        n = int(state.history.rows)
        longest = np.linalg.norm(state.history.X[:n] @ new.F, axis=1).max()
        assert longest <= kept.reach * (1 + 1e-9)
        assert longest <= np.linalg.norm(state.history.X[:n] @ state.F, axis=1).max() / left**0.5
        assert_allclose(new.history.count[:n], left * state.history.count[:n])
        assert_allclose(kept.buffer.v, left * before.buffer.v)
        assert_allclose((kept.left, kept.slope), (left * before.left, left**0.5 * before.slope), rtol=1e-6, atol=1e-13)
        # the model's own curvature, spelt out: the old rows as far as they are left, the later ones, and ρ
        m, R = int(before.fill), before.R
        own = kept.left * (R.T @ R - 0.5 * np.eye(3)) + 0.5 * np.eye(3)
        own = own + (kept.buffer.X[:m] * kept.buffer.v[:m, None]).T @ kept.buffer.X[:m]
        assert_allclose(new.H, own, rtol=1e-9)
    assert later > 5
    # seen red: ρ that fades in H; θ that stays; `reach` and the buffer as they were


@pytest.mark.parametrize("how", [{"constrain": 0.4}, {"ridge": 2.0}, {"min_derivative": 0.25}])
@pytest.mark.parametrize("forget", [{"discount": 0.95}, {"window": 30}])
def test_variants_are_refitted_in_each_round(how, forget):
    X, r = drawn(200, 2, "logit", seed=4)
    model, plain = GLM(lam=0.5, **forget, **how), GLM(lam=0.5, **how)
    state = model.init(2)
    for i in range(200):
        state = model.update(state, X[i], r[i], own=True)
    w = weights(model, np.ones(200, int))
    whole = plain.update_many(plain.init(2), X, r, weight=w)
    off = model.bound(state)[0] + plain.bound(whole)[0]
    scale = np.linalg.norm(np.linalg.inv(whole.F) @ (state.theta - whole.theta))
    assert scale <= 1.1 * off
    assert_allclose(np.log(model.width(state, X) / plain.width(whole, X)), 0, atol=0.1)


def test_a_short_window_is_solved_after_every_observation():
    rng, model = np.random.default_rng(8), GLM(window=50)
    state = model.init(3)
    for i in range(300):
        state = model.update(state, rng.normal(size=3), np.float64(rng.random() < 0.5), own=True)
        assert np.all(model.bound(state) <= 1e-8), i
    # seen red: an aim that counts the rows that have left


@pytest.mark.parametrize("library", ["numpy", "strict", "torch"])
@pytest.mark.parametrize("how", [{"discount": 0.9}, {"window": 12}, {"half_life": 8.0}])
def test_runs_in_lockstep_learn_what_they_learn_alone(how, library):
    xp, model = Library(library).xp, GLM(lam=0.2, **how)
    n = 30 if library != "numpy" else 150
    X, r = drawn(3 * n, 2, "logit", seed=5)
    X, r = X.reshape(n, 3, 2), r.reshape(n, 3)
    state, alone = model.init(2, batch=(3,), xp=xp), [model.init(2) for _ in range(3)]
    for t in range(n):
        timed = {"at": xp.zeros(3, dtype=xp.float64) + t} if model.half_life else {}
        state = model.update(state, xp.asarray(X[t]), xp.asarray(r[t]), **timed)
        one = {"at": np.float64(t)} if model.half_life else {}
        alone = [model.update(s, X[t, i], r[t, i], **one) for i, s in enumerate(alone)]
    for i in range(3):
        off = model.bound(alone[i])
        assert_allclose(np.asarray(state.theta[i, ...]), alone[i].theta, rtol=1e-6, atol=float(off[0]) + 1e-9)


@pytest.mark.parametrize(
    "model",
    [
        GLM(lam=0.5, discount=0.7),
        GLM(lam=0.5, window=3),
        GLM(lam=0.5, half_life=2.0),
        GLM(lam=0.5, discount=0.9, solver="counts"),
        Disjoint(GLM(lam=0.5, discount=0.7), 3),
        Disjoint(GLM(lam=0.5, window=1), 3),
        Disjoint(GLM(lam=0.5, half_life=2.0), 3),
    ],
    ids=repr,
)
def test_it_keeps_the_rules_of_models(model):
    late = {} if getattr(model, "half_life", None) else {"order": "what came last counts most"}
    testing.check_model(model, expected_failed_checks=late)


def test_policies_that_read_rows_read_those_of_a_window():
    """LogPHE and OFUGLB decide as those do that have learnt the last W observations alone, and in the same round."""
    X, r = drawn(60, 2, "logit", seed=11)
    arms = np.random.default_rng(12).normal(size=(5, 2))
    for name in ("LogPHE", "OFUGLB"):
        own = {"horizon": 99} if name == "OFUGLB" else {"solver": "exact"}
        late = dither.ALGORITHMS[name](dim=2, lam=0.5, window=20, seed=0, **own)
        alone = dither.Bandit(dataclasses.replace(late.model, window=None), late.policy, dim=2, seed=0)
        for i in range(60):
            late.update(X[i], r[i])
        alone.update(X[-20:], r[-20:])
        late.observations = alone.observations
        shown = [bandit.choose(np.tile(arms, (200, 1, 1))).arm for bandit in (late, alone)]
        assert len(np.unique(shown[0])) > 1 or name == "OFUGLB"
        if name == "OFUGLB":
            scores = [b.policy.view(b.model, b.state, arms, t=21).s for b in (late, alone)]
            assert_allclose(*scores, rtol=1e-4)
        else:
            share = [np.bincount(part, minlength=5) / 200 for part in shown]
            assert np.abs(share[0] - share[1]).max() < 5 * np.sqrt(0.5 / 200)
    # seen red: rows that have left the window


def test_what_counts_or_reads_rows_is_refused():
    for solver in ("online", "counts"):
        with pytest.raises(ValueError, match=rf"solver='{solver}' does not know which they are"):
            GLM(solver=solver, window=5)
    for name in ("LogPHE", "OFUGLB"):
        with pytest.raises(TypeError, match="rows"):
            dither.ALGORITHMS[name](dim=2, discount=0.9)
    with pytest.raises(TypeError, match="gram_width"):
        dither.ALGORITHMS["UCB-GLM"](dim=2, discount=0.9, solver="online")


def test_a_window_of_the_history_takes_its_oldest_rows_out():
    rows = history.init(np.zeros(1))
    for k, weight in enumerate((2.0, 0.0, 1.5, 1.0)):
        rows = history.append(rows, np.array([1.0 * k]), np.float64(3.0), np.float64(weight), distinct=False)
    found = history.windowed(rows, np.array([3.0]))
    assert_allclose(found.count[:4], [0.5, 0.0, 1.5, 1.0])
    assert_allclose(found.total[:4], [1.5, 0.0, 4.5, 3.0])
    assert history.windowed(rows, np.array([4.5])) is rows

"""NeuralLinear: a ridge regression on what the network's last hidden layer was when each row came, or last refreshed.

The oracle computes the layer by a plain loop over dense Kd-vectors and the regression by least squares on all rows.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import oracles
from dither import envs
from dither.base import trees
from dither.models import NeuralLinear, Ridge, neural_linear
from dither.models.network import perceptron
from dither.policies import UCB, FeaturePerturbation, PerturbedHistory, ThompsonSampling
from properties import same_arrays

SMALL = dict(hidden=(6, 4), lam=0.3, refresh=7)
ON_TOP = [ThompsonSampling, FeaturePerturbation]


def bandit(policy=None, *, dim=3, seed=0, floor=0.0, **settings):
    return dither.Bandit(
        NeuralLinear(**SMALL | settings), policy or FeaturePerturbation(), dim=dim, seed=seed, floor=floor
    )


def layer(theta, x, *, arm=None, slots=None, hidden=(6, 4)):
    """φ in float64, unit by unit, from the weights as they lie in θ and the whole Kd-vector."""
    a = [float(v) for v in x]
    if slots is not None:
        a = [0.0] * (arm * len(x)) + a + [0.0] * ((slots - arm - 1) * len(x))
    at = 0
    for m in hidden:
        W, b = theta[at : at + len(a) * m], theta[at + len(a) * m : at + len(a) * m + m]
        at += len(a) * m + m
        a = [max(0.0, float(b[j]) + sum(a[i] * float(W[i * m + j]) for i in range(len(a)))) for j in range(m)]
    return np.array(a)


def context(rng, b, K=4):
    return rng.normal(size=b.dim if b.slots else (K, b.dim))


def learn(b, rng, n, *, weight=False):
    """n rounds; what was shown."""
    shown = []
    for _ in range(n):
        X = context(rng, b)
        d = b.choose(X)
        x, arm = (X, d.arm) if b.slots else (X[d.arm], None)
        r, w = np.tanh(x[0] - x[1]) + 0.1 * rng.normal(), float(rng.integers(0, 3)) if weight else None
        b.update(x, r, arm=arm, weight=w)
        shown.append((x, r, arm, 1.0 if w is None else w))
    return shown


def everything(b):
    return oracles.rows(b), repr(b._training.bit_generator.state)


# The regression


@pytest.mark.parametrize("slots", [None, 3])
@pytest.mark.parametrize(("window", "every", "steps"), [(32, 1, 1), (None, 1, 1), (40, 5, 3)])
@pytest.mark.parametrize("weight", [False, True])
def test_it_is_least_squares_on_the_features_of_the_moment(slots, window, every, steps, weight):
    b = bandit(slots=slots, window=window, every=every, steps=steps, dtype="float64")
    rng, past, phi = np.random.default_rng(1), [], []
    for _ in range(40):
        before = b.state.network.theta.copy()
        past += [row for row in learn(b, rng, 1, weight=weight) if row[-1]]  # a weight of 0 is no observation
        if len(past) == len(phi):
            continue
        x, _, arm, _ = past[-1]
        phi.append(layer(before, x, arm=arm, slots=slots))
        if len(past) % 7 == 0:
            phi = [layer(b.state.network.theta, x, arm=arm, slots=slots) for x, _, arm, _ in past]
        root = np.sqrt([w for *_, w in past])
        theta, R = oracles.least_squares(root[:, None] * phi, root * [r for _, r, _, _ in past], lam=0.3)
        assert_allclose(b.theta, theta, rtol=1e-9, atol=1e-9)
        X = context(rng, b)
        arms = [(X, k) for k in range(3)] if slots else [(x, None) for x in X]
        at = [layer(b.state.network.theta, x, arm=k, slots=slots) for x, k in arms]
        assert_allclose(b.mean(X), at @ theta, rtol=1e-9, atol=1e-9)
        assert_allclose(b.width(X), [oracles.width(R, a) for a in at], rtol=1e-9, atol=1e-12)
        assert_array_equal(b.predict(X), b.mean(X))
    # seen red: φ taken after the network has trained; a refresh one observation late; weights left out of b


@pytest.mark.parametrize("slots", [None, 3])
def test_float32_is_as_near_as_float32_is(slots):
    b, rng = bandit(slots=slots, refresh=1), np.random.default_rng(2)
    past = learn(b, rng, 60)
    phi = [layer(b.state.network.theta, x, arm=arm, slots=slots) for x, _, arm, _ in past]
    theta, _ = oracles.least_squares(phi, [r for _, r, _, _ in past], lam=0.3)
    assert_allclose(b.theta, theta, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [15, 16, 17, 33])
def test_a_long_history_is_read_to_its_last_row(n, monkeypatch):
    monkeypatch.setattr(neural_linear, "BLOCK", 16)
    b = bandit(refresh=n)
    past = learn(b, np.random.default_rng(3), n)
    phi = [layer(b.state.network.theta, x) for x, *_ in past]
    theta, _ = oracles.least_squares(phi, [r for _, r, *_ in past], lam=0.3)
    assert_allclose(b.theta, theta, rtol=1e-4, atol=1e-5)
    # seen red: the blocks stopping before the last one


@pytest.mark.parametrize("lam", [1e-10, 1e-7])
def test_a_penalty_that_is_nothing_beside_the_features(lam):
    """Two distinct rows, twelve units: across the rows V is λ alone, and the widths there are 1/√λ."""
    b, rng = bandit(lam=lam, refresh=30, dtype="float64", hidden=(6, 12)), np.random.default_rng(4)
    X, r = np.tile(rng.normal(size=(2, 3)), (15, 1)), rng.normal(size=30)
    b.update(X, r)
    theta, R = oracles.least_squares([layer(b.state.network.theta, x, hidden=(6, 12)) for x in X], r, lam=lam)
    at = [layer(b.state.network.theta, x, hidden=(6, 12)) for x in X[:2]]
    assert_allclose(b.mean(X[:2]), at @ theta, rtol=1e-7)
    assert_allclose(b.width(X[:2]), [oracles.width(R, a) for a in at], rtol=1e-8)
    far = 3 * rng.normal(size=(4, 3))
    widths = np.array([oracles.width(R, layer(b.state.network.theta, x, hidden=(6, 12))) for x in far])
    assert widths.max() > 0.01 / np.sqrt(lam)
    assert_allclose(b.width(far), widths, rtol=1e-8)
    # seen red: V factored however steep


@pytest.mark.parametrize("slots", [None, 3])
def test_the_factor_of_v_and_the_qr_of_the_rows_agree(slots, monkeypatch):
    """They are two ways to one regression: V itself where λ is not lost beside the rows, else the rows."""
    fitted = []
    for steep in (neural_linear.STEEP, 0.0):
        monkeypatch.setattr(neural_linear, "STEEP", steep)
        b = bandit(UCB(radius="oful"), slots=slots, dtype="float64")
        learn(b, np.random.default_rng(5), 35, weight=True)
        fitted.append(b)
    same_arrays(fitted[0].state.network, fitted[1].state.network)
    for name in ("theta", "logdet"):
        assert_allclose(*(getattr(b.state.ridge, name) for b in fitted), rtol=1e-9)
    V = [b.state.ridge.F @ b.state.ridge.F.T for b in fitted]
    assert_allclose(*V, rtol=1e-8, atol=1e-10)
    sign, logdet = np.linalg.slogdet(np.linalg.inv(V[0]) / 0.3)
    assert_allclose([sign, logdet], [1.0, fitted[0].state.ridge.logdet], rtol=1e-8)


# Policies on top


@pytest.mark.parametrize("slots", [None, 3])
def test_feature_perturbation_on_top_is_exact(slots):
    b, rng = bandit(slots=slots), np.random.default_rng(6)
    learn(b, rng, 20)
    X = context(rng, b, 3)
    p = b.propensities(X)
    assert_allclose(p, oracles.line_mass(b.mean(X), b.width(X)), rtol=0, atol=1e-12)
    arms = b.choose(np.broadcast_to(X, (20_000, *X.shape))).arm
    assert oracles.agree(np.bincount(arms, minlength=3) / 20_000, p, n=20_000)
    assert b.choose(X).propensity_kind == "exact"


@pytest.mark.parametrize("slots", [None, 3])
def test_thompson_sampling_on_top_draws_from_the_posterior(slots):
    """s ~ N(Φθ̂, Φ V⁻¹ Φ'), by the normal law of the scores rather than of θ."""
    b, rng = bandit(ThompsonSampling(c=2.0), slots=slots), np.random.default_rng(7)
    past = learn(b, rng, 20)
    X = context(rng, b, 3)
    assert len(past) == 20
    m = b.mean(X)
    phi = b.model.embedding(b.state, X)
    cov = 4.0 * phi @ b.state.ridge.F @ b.state.ridge.F.T @ phi.T
    draws = m + rng.multivariate_normal(np.zeros(3), cov, size=200_000, method="eigh")
    expected = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
    p, se, kind = b.propensities(X, detail=True)
    assert kind == "monte_carlo"
    assert oracles.agree(p, expected, n=10_000, se=se)
    arms = b.choose(np.broadcast_to(X, (20_000, *X.shape))).arm
    assert oracles.agree(np.bincount(arms, minlength=3) / 20_000, expected, n=20_000, se=0.5 / np.sqrt(200_000))
    # seen red: the scale left out of the draw


def test_all_draws_share_one_pass_through_the_network(monkeypatch):
    b, passes, forward = bandit(ThompsonSampling()), [], perceptron.last_hidden
    learn(b, np.random.default_rng(8), 5)

    def counted(*args, **kwargs):
        passes.append(args)
        return forward(*args, **kwargs)

    monkeypatch.setattr(perceptron, "last_hidden", counted)
    b.choose(np.ones((5, 3)))
    assert len(passes) == 1
    b.propensities(np.ones((5, 3)), draws=5000)
    assert len(passes) == 2


def test_the_scale_of_a_schedule_is_that_of_the_regression():
    b, rng = bandit(ThompsonSampling(c="anytime", horizon=100)), np.random.default_rng(9)
    learn(b, rng, 3)
    view = b.policy.view(b.model, b.state, np.ones((2, 3)), t=4)
    assert_allclose(view.c, np.sqrt(9 * 4 * np.log(4 * 100)))  # d is h = 4
    with pytest.raises(TypeError, match="lipschitz"):
        bandit(FeaturePerturbation(c="theory"))
    with pytest.raises(TypeError, match="NeuralLinear"):
        bandit(PerturbedHistory())


# States and streams


@pytest.mark.parametrize("policy", ON_TOP)
@pytest.mark.parametrize("slots", [None, 3])
@pytest.mark.parametrize("window", [32, None])
def test_saved_in_the_middle(policy, slots, window, tmp_path):
    b, rng = bandit(policy(), slots=slots, window=window, floor=0.1), np.random.default_rng(10)
    learn(b, rng, 140)  # more rows than there is room for at first
    b.save(tmp_path / "b")
    c = dither.load(tmp_path / "b")
    assert everything(b) == everything(c)
    again = [learn(one, np.random.default_rng(11), 30) for one in (b, c)]
    assert repr(again[0]) == repr(again[1])
    assert everything(b) == everything(c)


def test_a_file_of_no_history_is_refused(tmp_path):
    b = bandit()
    learn(b, np.random.default_rng(12), 10)
    good = b.state
    for buffer in (
        good.buffer._replace(count=np.array(9)),
        good.buffer._replace(count=np.array(1000)),
        good.buffer._replace(r=good.buffer.r[:-1]),
        good.buffer._replace(X=good.buffer.X[:-1]),
    ):
        b.state = good._replace(buffer=buffer)
        b.save(tmp_path / "bad")
        with pytest.raises(ValueError, match="not a dither file"):
            dither.load(tmp_path / "bad")
    b.state = good
    b.save(tmp_path / "good")
    dither.load(tmp_path / "good")


@pytest.mark.parametrize("slots", [None, 3])
@pytest.mark.parametrize("window", [32, None, 50])
def test_at_once_is_in_turn(slots, window):
    one, many = bandit(slots=slots, window=window), bandit(slots=slots, window=window)
    rng = np.random.default_rng(13)
    X, r, w = rng.normal(size=(31, 3)), rng.normal(size=31), rng.integers(0, 3, size=31)
    arm = None if slots is None else rng.integers(0, 3, size=31)
    for i in range(31):
        one.update(X[i], r[i], arm=None if slots is None else arm[i], weight=w[i])
    many.update(X[:20], r[:20], arm=None if slots is None else arm[:20], weight=w[:20])
    many.update(X[20:], r[20:], arm=None if slots is None else arm[20:], weight=w[20:])
    assert everything(one) == everything(many)


@pytest.mark.parametrize("n", [3, 6, 13])  # 6 and 13: the next one is due
@pytest.mark.parametrize("window", [32, None, 50])
def test_a_refused_update_leaves_no_trace(n, window, monkeypatch):
    b, twin = (bandit(window=window) for _ in range(2))
    for one in (b, twin):
        learn(one, np.random.default_rng(14), n)
    for x, r, w in (
        ([1e30, 0, 0], 1.0, None),
        ([1, 0, 0], 1e30, None),
        ([np.nan, 0, 0], 1.0, None),
        ([1, 0, 0], np.inf, None),
        ([1, 0, 0], 1.0, -1.0),
        ([1, 0, 0], 1.0, 1e200),
        ([[1, 0, 0], [1e30, 0, 0]], [1.0, 1.0], None),
    ):
        with pytest.raises(ValueError, match=r"x|r|weight"):
            b.update(x, r, weight=w)
        assert everything(b) == everything(twin)
    if (n + 1) % 7 == 0:

        def refuse(*_):
            raise ValueError("x is too long")

        with monkeypatch.context() as patch:
            patch.setattr(NeuralLinear, "_fitted", refuse)
            with pytest.raises(ValueError, match="too long"):
                b.update([1, 0, 0], 1.0)
        assert everything(b) == everything(twin)
        # seen red: the network trained in place before the history is embedded
    assert repr(learn(b, np.random.default_rng(15), 20)) == repr(learn(twin, np.random.default_rng(15), 20))


@pytest.mark.parametrize("window", [32, None])
@pytest.mark.parametrize("runs", [None, 3])
def test_a_state_that_is_kept_stays_as_it_is(window, runs):
    model = NeuralLinear(**SMALL, window=window, slots=2)
    rng = np.random.default_rng(16)
    batch, rngs = ((), rng) if runs is None else ((runs,), [np.random.default_rng(i) for i in range(runs)])
    state = given_up = model.init(3, batch=batch, rng=rngs)
    for _ in range(16):
        x, r = rng.normal(size=(*batch, 3)), rng.normal(size=batch)
        arm = rng.integers(0, 2, size=batch)
        chance = tuple(np.reshape(kind, (*batch, *kind.shape[1:])) for kind in model.draw(rng, runs or 1))
        before = trees.map_arrays(np.copy, state)
        new = model.update(state, x, r, arm=arm, chance=chance)
        same_arrays(before, state)
        given_up = model.update(given_up, x, r, arm=arm, chance=chance, own=True)
        same_arrays(new, given_up)
        state = new


# In lockstep

DIGITS = envs.Classification(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3)


LINEAR = envs.Linear(dim=3, arms=4)


@pytest.mark.parametrize(
    "env",
    [LINEAR, DIGITS, envs.Delayed(LINEAR, mean=2.0), envs.Delayed(DIGITS, mean=2.0), envs.Delayed(DIGITS, delay=3)],
)
def test_a_run_does_not_know_the_others(env):
    model = NeuralLinear(**SMALL, slots=env.arms if env.disjoint else None, lr=0.05, steps=2)
    names = {policy.__name__: (model, policy()) for policy in ON_TOP}
    whole = dither.simulate(env, names, runs=4, rounds=60, seed=1)
    alone = dither.simulate(env, names, runs=[2], rounds=60, seed=1)
    assert_array_equal(whole.regret[:, [2]], alone.regret)
    assert len(set(whole.regret[0, :, -1])) > 1
    # seen red: the history of all runs embedded anew when that of one is due, which delays set apart


def test_a_live_bandit_is_the_first_run():
    """The simulator's own loop by hand: choose, pay, learn, from the streams of run 0."""
    env, T = LINEAR, 30
    simulated = dither.simulate(env, {"a": (NeuralLinear(**SMALL), FeaturePerturbation())}, runs=1, rounds=T, seed=5)
    instance, contexts, _ = (dither.base.streams.stream(5, 0, p) for p in ("instance", "contexts", "noise"))
    run, X = env.start(instance), np.empty((T, 4, 3))
    mean = env.means(run, X, env.fill(run, contexts, X))
    noise = env.reward_noise(dither.base.streams.stream(5, 0, "noise"), T)
    b, regret = bandit(seed=5), 0.0
    for t in range(T):
        d = b.choose(X[t])
        b.update(X[t, d.arm], mean[t, d.arm] + noise[t, d.arm])
        regret += mean[t].max() - mean[t, d.arm]
    assert_allclose(regret, simulated.regret[0, 0, -1], rtol=1e-9)


# Settings


def test_the_algorithms_by_name():
    for name, kind in (("NeuralLinear", "none"), ("NeuralLinearFP", "exact")):
        b = dither.ALGORITHMS[name](dim=3, hidden="8x5", seed=0, refresh=3)
        assert b.theta.shape == (5,)
        assert b.choose(np.eye(3)).propensity_kind == kind
        own = dither.ALGORITHMS[name](dim=3, preset="own_paper", disjoint=2, seed=0)
        assert (own.model.lam, own.model.every, own.model.refresh, own.slots) == (0.25, 50, 50, 2)
        learn(own, np.random.default_rng(0), 55)
        assert int(own.state.network.steps) == 100
        assert own.state.buffer is None  # the network keeps them all itself


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"refresh": 0}, "refresh"),
        ({"refresh": 1.5}, "refresh"),
        ({"lam": 0.0}, "lam"),
        ({"lam": np.nan}, "lam"),
        ({"hidden": ()}, "hidden"),
        ({"batch": 0}, "batch"),
        ({"window": 8}, "window"),
        ({"slots": 0}, "slots"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, named):
    with pytest.raises(ValueError, match=named):
        NeuralLinear(**settings)
    with pytest.raises(LookupError, match="output"):
        NeuralLinear(output="sigmod")


@pytest.mark.parametrize("output", ["identity", "sigmoid", "softmax"])
def test_what_the_network_is_trained_for(output):
    b, rng = bandit(output=output, slots=3), np.random.default_rng(17)
    for _ in range(30):
        x = rng.normal(size=3)
        d = b.choose(x)
        b.update(x, float(x.argmax() == d.arm), arm=d.arm)
    assert np.isfinite(b.theta).all()
    assert b.model.support == ((-np.inf, np.inf) if output == "identity" else (0.0, 1.0))
    if output != "identity":
        with pytest.raises(ValueError, match="r must"):
            b.update(x, 1.5, arm=0)


def test_it_learns_what_no_line_can():
    """Reward 1 for the one of two arms whose product of features is positive: 0.5 of them by chance or by a line."""
    rng = np.random.default_rng(18)
    b, linear = (
        bandit(hidden=(30,), lr=0.01, steps=4, seed=1),
        dither.Bandit(Ridge(0.3), FeaturePerturbation(), dim=3, seed=1),
    )
    paid = {b: 0, linear: 0}
    for t in range(500):
        X = rng.choice([-1.0, 1.0], size=(2, 3))
        for one in paid:
            arm = one.choose(X).arm
            r = float(X[arm, 0] * X[arm, 1] > 0)
            one.update(X[arm], r)
            paid[one] += r if t >= 250 else 0
    # the better of two arms pays with 3/4; a line is right by chance alone, 1/2 with a standard error of 0.032
    assert paid[b] / 250 > 0.5 + 5 * 0.032 > paid[linear] / 250


def test_memory_is_counted():
    model = NeuralLinear(window=None)
    assert model.bytes(10, 20_000) > 4 * 20_000 * 10
    assert NeuralLinear().bytes(10, 20_000) > model.bytes(10, 20_000)  # its history, and the window of its training
    assert 1 <= NeuralLinear(hidden=(1000,)).together(10) < NeuralLinear(hidden=(50,)).together(10)

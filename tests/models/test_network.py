"""Networks in a live bandit and in the simulator, with every policy on them, against networks computed the slow way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
import oracles
from dither import envs
from dither.base import trees
from dither.models import Network
from dither.models.network import adam, layout, network, perceptron
from network_oracles import NAMES, SMALL, Chooser, Slow, bandit, context, learn, reward
from oracles import unchanged
from properties import same_arrays

every = pytest.mark.parametrize("name", NAMES)
arms = pytest.mark.parametrize("slots", [None, 3])


def everything(b):
    """All that a bandit is, its model's chance too."""
    return oracles.rows(b), repr(b._training.bit_generator.state)


def together(b, chooser, rng, n, *, weight=False, bounded=False):
    """n rounds of both, which must choose alike; the slow one's weights follow from its own choices."""
    slow = chooser.slow
    for _ in range(n):
        X = context(rng, b)
        d, (arm, s) = b.choose(X), chooser.choose(X)
        assert d.arm == arm, (slow.t, s)
        x, arm = (X, arm) if b.slots else (X[arm], None)
        r, w = reward(rng, x, arm, bounded=bounded), float(rng.integers(0, 3)) if weight else 1.0
        b.update(x, r, arm=arm, weight=w if weight else None)
        slow.update(x, r, arm=arm, weight=w)


# Against the slow way


@every
@arms
def test_choices_and_weights_are_those_of_the_slow_way(name, slots):
    b = bandit(name, slots=slots, dtype="float64")
    chooser = Chooser(b, name)
    together(b, chooser, np.random.default_rng(1), 60)
    assert_allclose(b.theta, chooser.slow.theta, rtol=1e-8, atol=1e-10)
    X = context(np.random.default_rng(2), b)
    assert_allclose(b.mean(X), chooser.slow.mean(X), rtol=1e-8, atol=1e-10)
    if b.state.uinv is not None:
        assert_allclose(1 / b.state.uinv, chooser.slow.U, rtol=1e-8)
    # seen red: U of a copy of the arm's own block; the bonus without λ


@every
@arms
def test_in_float32_as_nearly_as_float32_is(name, slots):
    b = bandit(name, slots=slots)
    chooser = Chooser(b, name)
    together(b, chooser, np.random.default_rng(3), 40)
    assert b.theta.dtype == np.float32
    assert_allclose(b.theta, chooser.slow.theta, rtol=0, atol=1e-3)


TRAINING = {
    "a window of many batches": dict(window=20, batch=4),
    "the whole history": dict(window=None, batch=4),
    "seldom, and then often": dict(every=4, steps=3),
    "seldom, from a window": dict(every=3, steps=2, window=10, batch=4),
    "decay": dict(weight_decay=0.05),
    "the sigmoid": dict(output="sigmoid"),
    "the sigmoid, from a window": dict(output="sigmoid", window=20, batch=4),
    "Adam's own settings": dict(beta1=0.5, beta2=0.8, eps=1e-3),
    "one wide layer": dict(hidden=(7,)),
    "three layers": dict(hidden="4x3x3"),
    "noise once": dict(a=0.5, once=True),
    "noise once, steps": dict(a=0.5, once=True, steps=2),
    "noise, from a window": dict(a=0.5, window=20, batch=4, steps=2),
    "noise once, from all": dict(a=0.5, once=True, window=None, batch=4),
}


@pytest.mark.parametrize("training", TRAINING)
@arms
def test_training_is_that_of_the_slow_way(training, slots):
    settings, weight = TRAINING[training], bool(slots)
    name = "FTPL" if "a" in settings else "DeepGreedy"
    b = bandit(name, slots=slots, dtype="float64", **settings)
    chooser = Chooser(b, name)
    together(b, chooser, np.random.default_rng(4), 30, weight=weight, bounded=settings.get("output") == "sigmoid")
    assert_allclose(b.theta, chooser.slow.theta, rtol=1e-8, atol=1e-10)
    # seen red: a mean over the window rather than the rows there are; noise of the first draws


@pytest.mark.parametrize("settings", [{}, dict(window=20, batch=4, steps=2)])
def test_a_softmax_over_the_arms(settings):
    b = bandit("DeepGreedy", slots=3, output="softmax", dtype="float64", **settings)
    chooser = Chooser(b, "DeepGreedy")
    together(b, chooser, np.random.default_rng(5), 40, weight=True, bounded=True)
    assert_allclose(b.theta[:-1], chooser.slow.theta[:-1], rtol=1e-8, atol=1e-10)
    assert_allclose(b.theta[-1], chooser.slow.theta[-1], atol=1e-6)  # its gradient is 0: Adam blows up the rounding
    x = np.ones(3)
    e = np.exp(chooser.slow.mean(x))
    assert_allclose(b.predict(x), e / e.sum(), rtol=1e-8)
    # seen red: the loss of the arm shown alone


def test_many_slots_are_those_of_the_slow_way():
    """K d above `perceptron.PLACED`, where each arm of a batch is multiplied by its own block."""
    b, rng = bandit("NeuralUCB", dim=350, slots=3, dtype="float64", hidden=(3,)), np.random.default_rng(6)
    assert perceptron.PLACED < 3 * 350
    slow, arm = Slow(b), [2, 0, 2]
    X, r = rng.normal(size=(3, 350)) / 20, rng.normal(size=3)
    b.update(X, r, arm=arm)
    for i in range(3):
        slow.update(X[i], r[i], arm=arm[i])
    assert_allclose(b.theta, slow.theta, rtol=1e-8, atol=1e-10)
    assert_allclose(1 / b.state.uinv, slow.U, rtol=1e-8)


def test_weights_begin_as_a_torch_layer_begins():
    """Uniform within ±1/√(inputs): its largest entry and its variance, layer by layer; K d inputs for the first."""
    net = layout.layout(30, 4, (50, 20))
    theta = net.initial(np.random.default_rng(7))
    for layer, n in zip(net.views(theta), (120, 50, 20), strict=True):
        values = np.concatenate([layer.W.reshape(-1), layer.b]) * np.sqrt(n)
        assert np.abs(values).max() <= 1
        count = len(values)
        assert abs(values.mean()) < 5 * np.sqrt(1 / 3 / count)
        assert abs(values.var() - 1 / 3) < 5 * np.sqrt(4 / 45 / count)


def test_layers_are_those_of_the_weights_asked_for():
    """θ by θ, in turn, after a change in place, and for networks of one shape beside each other."""
    net, rng = layout.layout(3, None, (2,)), np.random.default_rng(8)
    a, b = rng.normal(size=net.size), rng.normal(size=(2, net.size))
    for theta in (a, b, a, a.copy(), b[0], b[1], a):
        theta += 1
        W, bias = theta[..., :6].reshape(*theta.shape[:-1], 3, 2), theta[..., 6:8]
        for layer in (net.views(theta)[0], net.views(theta)[0]):
            assert_array_equal(layer.W, W)
            assert_array_equal(layer.b, bias)
    # seen red: the layers of the latest θ for any θ of its shape


# One state, however it was reached


@arms
@pytest.mark.parametrize("training", TRAINING)
def test_at_once_is_in_turn(training, slots):
    settings = TRAINING[training]
    name = "FTPL" if "a" in settings else "NeuralUCB"
    one, many = (bandit(name, slots=slots, **settings) for _ in range(2))
    rng = np.random.default_rng(8)
    X, r, w = rng.normal(size=(25, 3)), rng.uniform(size=25), rng.integers(0, 3, size=25)
    arm = None if slots is None else rng.integers(0, 3, size=25)
    for i in range(25):
        one.update(X[i], r[i], arm=None if slots is None else arm[i], weight=w[i])
    for part in (slice(0, 10), slice(10, 25)):
        many.update(X[part], r[part], arm=None if slots is None else arm[part], weight=w[part])
    assert everything(one) == everything(many)


@every
@arms
def test_the_same_seed_is_the_same_run(name, slots):
    runs = [learn(bandit(name, slots=slots, seed=seed), np.random.default_rng(9), 30) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("training", TRAINING)
@pytest.mark.parametrize("runs", [None, 3])
def test_a_state_that_is_kept_stays_as_it_is(training, runs):
    model = Network(**SMALL | dict(slots=3) | TRAINING[training])
    rng = np.random.default_rng(10)
    batch, rngs = ((), rng) if runs is None else ((runs,), [np.random.default_rng(i) for i in range(runs)])
    state = given_up = model.init(3, batch=batch, needs=frozenset({"gradient_norm", "spread"}), rng=rngs)
    for _ in range(12):
        x, r, arm = rng.normal(size=(*batch, 3)), rng.uniform(size=batch), rng.integers(0, 3, size=batch)
        chance = tuple(kind if runs else kind[0] for kind in model.draw(rng, runs or 1))
        before = trees.map_arrays(np.copy, state)
        new = model.update(state, x, r, arm=arm, chance=chance)
        same_arrays(before, state)
        given_up = model.update(given_up, x, r, arm=arm, chance=chance, own=True)
        same_arrays(new, given_up)
        state = new


FAR = [([1e14, 1e14, 0], 1e14, None), ([[1, 0, 0], [1e14, 0, 0]], [1.0, 1e14], None)]  # whose squares overflow
BAD = [
    ([1e30, 0, 0], 1.0, None),
    ([1, 0, 0], 1e30, None),
    ([np.nan, 0, 0], 1.0, None),
    ([1, 0, 0], np.nan, None),
    ([1, 0, 0], -np.inf, None),
    ([1, 0, 0], 1.0, -1.0),
    ([1, 0, 0], 1.0, 1e20),
    ([[1, 0, 0], [1e30, 0, 0]], [1.0, 1.0], None),
]


@pytest.mark.parametrize("training", TRAINING)
@arms
def test_a_refused_update_leaves_no_trace(training, slots):
    settings = TRAINING[training]
    b, twin = (bandit("FTPL" if "a" in settings else "NeuralUCB", slots=slots, **settings) for _ in range(2))
    trained_at_once = not b.model._samples and b.model.every == 1
    bounded = "output" in settings
    for _ in range(2):
        for one in (b, twin):
            learn(one, np.random.default_rng(11), 3)  # with every=4, the next one is due
        for x, r, w in BAD + (FAR if trained_at_once and not bounded else []):
            arm = None if slots is None else np.ones(np.shape(x)[:-1], int)
            with pytest.raises(ValueError, match=r"x|r|weight"):
                b.update(x, r, weight=w, arm=arm)
            assert everything(b) == everything(twin), (x, r, w)
        unchanged(b, twin, context(np.random.default_rng(12), b), n=20)
    assert learn(b, np.random.default_rng(13), 10) == learn(twin, np.random.default_rng(13), 10)
    # seen red: the new row left in the ring; the stream of the training not put back


def test_a_later_step_that_is_refused_leaves_no_trace(monkeypatch):
    """The row that overflows is not in the batch of the first step, and in that of another."""
    steps, step, refused = [], adam.step, set()

    def counted(*args, **kwargs):
        steps.append(1)
        step(*args, **kwargs)

    monkeypatch.setattr(adam, "step", counted)
    monkeypatch.setitem(network.LARGEST_LEARNT, "float32", 1e16)  # as it is, no row that overflows is taken
    for n in range(4, 24):
        b, twin = (bandit("NeuralUCB", slots=3, window=None, batch=4, steps=3) for _ in range(2))
        for one in (b, twin):
            learn(one, np.random.default_rng(11), n)
        steps.clear()
        try:
            b.update(*FAR[0][:2], arm=1)
        except ValueError:
            refused.add(len(steps))
            assert everything(b) == everything(twin)
    assert refused == {0, 1, 2}
    # seen red: steps taken in the old weights


def test_a_context_that_no_network_can_hold_is_refused():
    b, twin = bandit("DeepGreedy"), bandit("DeepGreedy")
    for far in (1e30, 1e16):
        with pytest.raises(ValueError, match="X"):
            b.choose([[far, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="row 0, column 1"):
        b.choose([[0, np.nan, 0], [0, 1, 0]])
    unchanged(b, twin, np.eye(3))


# In lockstep

WORLDS = {
    "arms of their own": envs.Linear(dim=3, arms=4),
    "slots": envs.Classification(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3),
}
WORLDS |= {f"{name}, late": envs.Delayed(env, mean=2.0) for name, env in WORLDS.items()}
SPECS = [
    *("DeepFP", "DeepFP-scalar", "DeepEpsGreedy", "DeepGreedy"),
    *("NeuralUCB:preset=as_run", "NeuralTS:preset=as_run", "FTPL", "FTPL:preset=own_paper"),
    *("DeepFP:Sigma=spread", "DeepFP:coupled=true", "DeepGreedy:window=none,batch=4", "FTPL:window=9,batch=4,steps=2"),
    "NeuralUCB:every=3,steps=2,window=none,batch=4",
]


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_does_not_know_the_others(world):
    env = WORLDS[world]
    late = world.endswith("late")
    algorithms = {
        spec: dither.algorithms.Spec.parse(spec + ("," if ":" in spec else ":") + "hidden=6x5,lr=0.02")
        for spec in SPECS
    }
    settings = dict(rounds=25 if late else 40, seed=2)
    whole = dither.simulate(env, algorithms, runs=5, **settings)
    alone = dither.simulate(env, algorithms, runs=[3], **settings)
    assert_array_equal(whole.regret[:, [3]], alone.regret)
    assert_array_equal(whole.realised[:, [3]], alone.realised)
    assert all(len(set(regret[:, -1])) > 1 for regret in whole.regret)
    # seen red: one training stream for all runs


@arms
@pytest.mark.parametrize("training", TRAINING)
def test_states_in_lockstep_are_those_of_single_runs(training, slots):
    """To float32's error: a stack of products may round otherwise than one alone."""
    model = Network(**SMALL | dict(slots=slots) | TRAINING[training])
    needs, rng, R = frozenset({"gradient_norm", "spread"}), np.random.default_rng(14), 4
    start = [np.random.default_rng(i) for i in range(R)]
    many = model.init(3, batch=(R,), needs=needs, rng=start)
    single = [model.init(3, needs=needs, rng=np.random.default_rng(i)) for i in range(R)]
    for _ in range(20):
        x, r = rng.normal(size=(R, 3)), rng.uniform(size=R)
        arm, chance = rng.integers(0, 3, size=R), model.draw(rng, R)
        slot = [{} if slots is None else dict(arm=a) for a in (arm, *arm)]
        many = model.update(many, x, r, chance=chance, own=True, **slot[0])
        for i in range(R):
            own = dict(chance=tuple(kind[i] for kind in chance), own=True)
            single[i] = model.update(single[i], x[i], r[i], **own, **slot[1 + i])
    for i in range(R):
        same_arrays(trees.map_arrays(lambda A, i=i: A[i], many), single[i], rtol=1e-3, atol=1e-4)


def test_a_live_bandit_is_run_0():
    env, T = WORLDS["arms of their own"], 30
    for name in NAMES:
        b, regret = bandit(name, seed=5), 0.0
        simulated = dither.simulate(env, {name: (b.model, b.policy)}, runs=1, rounds=T, seed=5)
        run, X = env.start(dither.base.streams.stream(5, 0, "instance")), np.empty((T, 4, 3))
        mean = env.means(run, X, env.fill(run, dither.base.streams.stream(5, 0, "contexts"), X))
        noise = env.reward_noise(dither.base.streams.stream(5, 0, "noise"), T)
        for t in range(T):
            arm = b.choose(X[t]).arm
            b.update(X[t, arm], mean[t, arm] + noise[t, arm])
            regret += mean[t].max() - mean[t, arm]
        assert_allclose(regret, simulated.regret[0, 0, -1], rtol=1e-9, err_msg=name)


def test_runs_in_lockstep_and_memory_are_bounded():
    assert Network(hidden=(8,)).together(5) > 50
    assert Network(hidden=(1000, 1000)).together(500) == 1
    assert Network(window=None).bytes(100, 20_000) > 4 * 100 * 20_000 > Network().bytes(100, 20_000)


# Small worlds


@every
@arms
def test_one_feature(name, slots):
    b = bandit(name, dim=1, slots=slots, dtype="float64")
    together(b, Chooser(b, name), np.random.default_rng(15), 15)


@every
def test_one_arm(name):
    for b, X in ((bandit(name), np.ones((1, 3))), (bandit(name, slots=1), np.ones(3))):
        for _ in range(3):
            d = b.choose(X)
            assert (d.arm, d.propensity, d.propensity_kind) == (0, 1.0, "exact")
            b.update(np.ones(3), 0.5, arm=0 if b.slots else None)
        if b.policy.needs != frozenset({"mean", "reward_noise"}):
            assert_array_equal(b.propensities(X), [1.0])


@every
def test_permuted_arms_permute_the_answer(name):
    rng = np.random.default_rng(16)
    for slots in (None, 4):
        b = bandit(name, slots=slots, dtype="float64")
        learn(b, rng, 12)
        order = np.array([2, 0, 3, 1])
        X = rng.normal(size=(4, 3))
        if slots is None:
            assert_allclose(b.mean(X[order]), b.mean(X)[order], rtol=1e-12)
            if dither.ALGORITHMS[name].propensity in ("exact", "0/1"):
                assert_allclose(b.propensities(X[order]), b.propensities(X)[order], atol=1e-10)
            elif name == "DeepFP":
                p, se, _ = b.propensities(X[order], detail=True)
                q, other, _ = b.propensities(X, detail=True)
                assert np.all(np.abs(p - q[order]) < 5 * np.hypot(se, other[order]))
        else:  # the blocks of the first layer in another order, and all else as it was
            net, mean = layout.layout(3, 4, b.model.hidden), b.mean(X[0])
            theta = b.state.theta.copy()
            net.views(theta)[0].W[...] = net.views(b.state.theta)[0].W[order]
            b.state = b.state._replace(theta=theta)
            assert_allclose(b.mean(X[0]), mean[order], rtol=1e-12)


@pytest.mark.parametrize("name", ["DeepGreedy", "NeuralUCB", "DeepEpsGreedy"])
@pytest.mark.parametrize("copies", [2, 3, 7])
def test_copies_of_an_arm_share(name, copies):
    b, rng = bandit(name, hidden=(30, 20), dtype="float64"), np.random.default_rng(17)
    learn(b, rng, 12)
    for _ in range(5):
        X = rng.normal(size=(3, 3))
        p, q = b.propensities(X), b.propensities(np.repeat(X, copies, axis=0))
        assert_allclose(q, np.repeat(p / copies, copies), atol=1e-12)

"""R runs of a network at once, on tensors: each is the run alone, whatever runs are beside it.

The oracles are the single runs of NumPy's perceptron and of the modules that go in turn. Bounds: 1e-10 for one call
in float64, and 1e-9 for θ after 200 updates; in float32 1e-3 after 100 updates, since Adam divides by the size of a
gradient.
"""

import dataclasses
import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dither import models
from dither.base import arrays, trees
from torch_modules import cnn

torch = pytest.importorskip("torch")
nn = torch.nn
modules = pytest.importorskip("dither.models.network.modules")
at_once = pytest.importorskip("dither.models.network.at_once")

R, K, D, B = 3, 3, 54, 4
IMAGE = (9, 6)


class Branching(nn.Module):
    """A module that looks at its numbers, which vmap cannot follow; with batch norm and dropout in eval mode."""

    def __init__(self, width, branch=True):
        super().__init__()
        self.norm, self.drop, self.last = nn.BatchNorm1d(width), nn.Dropout(0.5), nn.Linear(width, 1)
        self.branch = branch

    def forward(self, x):
        z = self.drop(self.norm(torch.tanh(x)))
        return self.last(z) if not self.branch or bool(z.sum() < 1e9) else z


def layers(width):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 5), nn.Tanh(), nn.Linear(5, 1))


KINDS = {
    "perceptron": lambda slots, **more: models.Network(hidden=(6, 5), slots=slots, **more),
    "one layer": lambda slots, **more: models.Network(hidden=(4,), slots=slots, **more),
    "convolutions": lambda slots, **more: cnn(slots=slots, **{"dtype": "float64"} | more),
    "module": lambda slots, **more: models.Network(module=layers(D * (slots or 1)), slots=slots, **more),
    "in turn": lambda slots, **more: models.Network(module=Branching(D * (slots or 1)), slots=slots, **more),
}


def numbers(A):
    return A.detach().numpy()


@pytest.mark.parametrize("slots", [None, K], ids=["arms", "slots"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_is_that_of_the_runs_alone(kind, slots):
    model = KINDS[kind](slots, dtype="float64")
    (alone, own), (together, net) = model._net(D), model.placed("cpu")._net(D)
    assert together is at_once
    assert net.at_once == (kind != "in turn")
    rng = np.random.default_rng(0)
    theta, u = rng.uniform(-0.3, 0.3, (R, net.size)), rng.uniform(0.5, 2, (R, net.size))
    X, batch = rng.standard_normal((R, K, D)), rng.standard_normal((R, B, D))
    offers = X if slots is None else X[:, 0]
    arm = None if slots is None else rng.integers(0, K, (R, B))
    scale = np.array([1.0, -2.0, 0.5])
    t = torch.from_numpy

    def both(rule, *arguments, **settings):
        tensors = [None if A is None else t(A) for A in arguments]
        got = getattr(together, rule)(net, *tensors, **settings.pop("there", {}))
        here, wanted = settings.pop("here", lambda i: {}), []
        for i in range(R):
            one = getattr(alone, rule)(own, *(None if A is None else A[i] for A in arguments), **here(i))
            wanted.append([np.array(A) for A in (one if isinstance(one, tuple) else (one,))])  # a gradient is borrowed
        return got if isinstance(got, tuple) else (got,), wanted

    def close(got, wanted):
        for k, A in enumerate(got):
            assert not A.requires_grad
            assert_allclose(numbers(A), np.stack([one[k] for one in wanted]), rtol=1e-10, atol=1e-12)

    close(*both("forward", theta, offers))
    if slots:
        close(*both("forward", theta, X, there={"by_slot": True}, here=lambda i: {"by_slot": True}))
    close(*both("gradient_norms", theta, offers, u))
    close(*both("gradient_norms", theta, offers, there={"inputs": True}, here=lambda i: {"inputs": True}))
    if not model.convolutions and model.module is None:
        close(*both("last_hidden", theta, offers))

    def pulls(rank):
        there = {"pull": lambda f: f * t(scale).reshape(-1, *(1,) * (rank - 1))}
        return {"there": there, "here": lambda i: {"pull": lambda f: f * scale[i]}}

    close(*both("gradient", theta, batch, arm, **pulls(2)))
    if slots:
        close(*both("gradient_arms", theta, batch, **pulls(3)))
    weight, squares = np.array([1.0, 0.0, 3.0]), t(u.copy())
    at_once.add_squares(net, t(theta), t(batch[:, 0]), None if arm is None else t(arm[:, 0]), squares, t(weight))
    for i in range(R):
        one = u[i].copy()
        alone.add_squares(own, theta[i], batch[i, 0], None if arm is None else arm[i, 0], one, weight[i])
        assert_allclose(numbers(squares[i]), one, rtol=1e-10)
    assert_array_equal(squares[1], u[1])  # of weight 0
    # seen red: u of run 0 for all


SETTINGS = {
    "as they are": {},
    "sampled": dict(window=None, batch=8),
    "seldom": dict(every=3, steps=2, window=40, batch=5),
    "noise": dict(a=0.5),
    "noise once": dict(a=0.5, once=True, weight_decay=0.1),
    "cross-entropy": dict(output="sigmoid"),
    "softmax": dict(output="softmax", batch=8, window=8),
}
NEEDS = frozenset({"mean", "gradient_norm", "spread"})


def taught(model, runs, n, *, slots, d=5, needs=NEEDS):
    """What these runs know after n observations each: one state of tensors, or a list where the model is not placed."""
    placed = model.placed is None
    rngs = [np.random.default_rng([7, i]) for i in runs]
    rows = [(rng.standard_normal((n, d)), rng.uniform(size=n), rng.integers(0, slots or 1, n)) for rng in rngs]
    chance = [model.draw(np.random.default_rng([8, i]), n) for i in runs]
    start = [np.random.default_rng([9, i]) for i in runs]
    if not placed:
        states = []
        for rng, (X, r, arm), own in zip(start, rows, chance, strict=True):
            state = model.init(d, needs=needs, rng=rng)
            for t in range(n):
                slot = {"arm": arm[t]} if slots else {}
                state = model.update(state, X[t], r[t], own=True, chance=tuple(k[t] for k in own), **slot)
            states.append(state)
        return states
    xp = arrays.backend("cpu")
    state = model.init(d, batch=(len(runs),), needs=needs, rng=start, xp=xp, device="cpu")
    X, r, arm = (torch.from_numpy(np.stack(kind)) for kind in zip(*rows, strict=True))
    drawn = [np.stack(kind) for kind in zip(*chance, strict=True)]
    for t in range(n):
        slot = {"arm": arm[:, t]} if slots else {}
        state = model.update(state, X[:, t], r[:, t], own=True, chance=tuple(k[:, t] for k in drawn), **slot)
    return state


@pytest.mark.parametrize(("which", "slots"), [*((which, K) for which in SETTINGS), ("sampled", None), ("noise", None)])
def test_runs_at_once_are_the_runs_alone_after_many_updates(which, slots):
    model = models.Network(hidden=(8, 6), slots=slots, dtype="float64", **SETTINGS[which])
    there = model.placed("cpu")
    n = 200 if which == "as they are" else 70
    wanted, got = taught(model, range(3), n, slots=slots), taught(there, range(3), n, slots=slots)
    alone = taught(there, [2], n, slots=slots)
    for name in ("theta", "m", "v", "steps", "uinv"):
        A = numbers(getattr(got, name))
        assert_allclose(A, np.stack([getattr(one, name) for one in wanted]), rtol=1e-9, atol=1e-9)
        assert_allclose(numbers(getattr(alone, name))[0], A[2], rtol=1e-9, atol=1e-9)
    assert_allclose(numbers(there.spread(got)), np.stack([model.spread(one) for one in wanted]), rtol=1e-12)
    assert np.abs(wanted[0].theta - wanted[1].theta).max() > 0.1
    # seen red: the noise of another run


def test_runs_that_have_taken_different_numbers_of_steps_are_still_the_runs_alone():
    """Run 1 learns every second row, as where rewards come late."""
    model, n = models.Network(hidden=(8, 6), dtype="float64"), 60
    there = model.placed("cpu")
    rngs = [[np.random.default_rng(i) for i in range(2)] for _ in range(2)]
    state = there.init(5, batch=(2,), rng=rngs[0], xp=arrays.backend("cpu"), device="cpu")
    alone = [model.init(5, rng=rng) for rng in rngs[1]]
    rng = np.random.default_rng(2)
    for t in range(n):
        x, r = rng.standard_normal((2, 5)), rng.uniform(size=2)
        new = there.update(state, torch.from_numpy(x), torch.from_numpy(r))
        state = trees.choose(torch.tensor([True, t % 2 == 0]), new, state)
        for i in range(2 if t % 2 == 0 else 1):
            alone[i] = model.update(alone[i], x[i], r[i])
    assert numbers(state.steps).tolist() == [n, n // 2]
    assert_allclose(numbers(state.theta), np.stack([one.theta for one in alone]), rtol=1e-10, atol=1e-12)
    # seen red: powers of β in float32


@pytest.mark.parametrize("kind", ["perceptron", "convolutions", "module", "in turn"])
def test_float32_drifts_apart_by_rounding_alone(kind):
    model = KINDS[kind](K, dtype="float32", batch=8, window=8)
    there, n = model.placed("cpu"), 100
    teach = functools.partial(taught, slots=K, d=D, needs=frozenset({"mean"}))
    wanted, got = teach(model, range(3), n), teach(there, range(3), n)
    assert got.theta.dtype == torch.float32
    assert_allclose(numbers(got.theta), np.stack([one.theta for one in wanted]), atol=1e-3)
    assert max(np.abs(one.theta).max() for one in wanted) > 0.1


def test_the_weights_begin_as_those_of_numpy():
    for kind in KINDS.values():
        model = kind(K)
        rngs = [[np.random.default_rng(i) for i in range(R)] for _ in range(2)]
        state = model.placed("cpu").init(D, batch=(R,), rng=rngs[0], xp=arrays.backend("cpu"), device="cpu")
        assert_array_equal(numbers(state.theta), model.init(D, batch=(R,), rng=rngs[1]).theta)


def test_a_refused_row_leaves_the_runs_as_they_were():
    model = models.Network(hidden=(4,), dtype="float32").placed("cpu")
    state = taught(model, range(2), 5, slots=None)
    before = [A.clone() for A in (state.theta, state.m, state.v, state.buffer.X, state.buffer.r)]
    x = torch.ones(2, 5, dtype=torch.float64)
    for wrong, words in ((x * 1e7, "x must lie below"), (x * float("nan"), "x must lie below")):
        with pytest.raises(ValueError, match=words):
            model.update(state, wrong, torch.ones(2, dtype=torch.float64), own=True)
    long = state._replace(theta=state.theta * 1e30)
    with pytest.raises(ValueError, match="the gradient of the network overflows float32"):
        model.update(long, x, torch.ones(2, dtype=torch.float64), own=True)
    for old, A in zip(before, (state.theta, state.m, state.v, state.buffer.X, state.buffer.r), strict=True):
        assert torch.equal(old, A)  # seen red: without the row that is put back
    with pytest.raises(ValueError, match="the network's answer is not finite"):
        model.mean(long._replace(theta=long.theta * 1e20), x[:, None])


@pytest.mark.parametrize("there", [False, True], ids=["NumPy", "at once"])
def test_a_gradient_that_is_too_long_is_shortened_in_its_own_run_alone(there, monkeypatch):
    from dither.models.network import network

    monkeypatch.setitem(network.LONGEST_GRADIENT, "float64", 10.0)
    model = models.Network(hidden=(4,), dtype="float64")
    rngs = [np.random.default_rng(i) for i in range(2)]
    x, r = np.ones((2, 3)), np.array([1e3, 0.1])
    if there:
        state = model.placed("cpu").init(3, batch=(2,), rng=rngs, xp=arrays.backend("cpu"), device="cpu")
        x, r = torch.from_numpy(x), torch.from_numpy(r)
        got = model.placed("cpu").update(state, x, r)
    else:
        got = model.update(model.init(3, batch=(2,), rng=rngs), x, r)
    m = np.asarray(got.m)
    assert_allclose(np.linalg.norm(m[0]), 10)
    alone = model.update(model.init(3, rng=np.random.default_rng(1)), np.ones(3), np.float64(0.1))
    assert 0.01 < np.linalg.norm(m[1]) < 9
    assert_allclose(m[1], alone.m, rtol=1e-12)  # seen red: one length for all runs


def test_equal_arms_get_equal_answers(monkeypatch):
    """A product may round a row by its place, which is made sure of here."""
    inner = at_once.forward

    def placed(net, theta, X, **settings):
        f = inner(net, theta, X, **settings)
        return f * (1 + 1e-7 * torch.arange(f.shape[1]))

    monkeypatch.setattr(at_once, "forward", placed)
    model = models.Network(hidden=(50,), dtype="float32").placed("cpu")
    rngs = [np.random.default_rng(i) for i in range(R)]
    state = model.init(D, batch=(R,), rng=rngs, needs=NEEDS, xp=arrays.backend("cpu"), device="cpu")
    X = np.random.default_rng(0).standard_normal((R, 7, D))
    X[:, 5], X[0, 2] = X[:, 1], X[0, 1]
    moved = X[:, 1] + 1e-6
    X[:, 3] = moved  # nearly equal, and no copy
    m = numbers(model.mean(state, torch.from_numpy(X)))
    norm = numbers(model.gradient_norm(state, torch.from_numpy(X))[1])
    for A in (m, norm):
        assert_array_equal(A[:, 5], A[:, 1])
        assert A[0, 2] == A[0, 1]
        assert A[1, 2] != A[1, 1]
    # seen red: without the comparison of rows


def test_memory_is_planned_by_what_a_run_takes():
    """Its weights and moments, the rows of a batch in all layers, and the gradients of rows that are formed."""
    small, large = (models.Network(hidden=hidden, slots=K).placed("cpu") for hidden in ((50, 50), (500, 500)))
    p = [model._net(D)[1].size for model in (small, large)]
    assert small.bytes(D, 100) > 4 * 12 * p[0]
    assert large.bytes(D, 100) > 4 * 12 * p[1]
    wide = dataclasses.replace(models.Network(hidden=(50, 50), slots=K), window=None).placed("cpu")
    assert wide.bytes(D, 10_000) > small.bytes(D, 10_000) + 4 * 10_000 * D
    paper = models.Network(convolutions=(32, 64), hidden=(128,), image=(28, 28), slots=10).placed("cpu")
    assert 30e6 < paper.bytes(784, 20_000) < 100e6  # 42 rows have 4 MB in the widest layer, and θ is 1.7 MB
    whole = models.Network(module=layers(D)).placed("cpu")
    assert whole._net(D)[1].forms == whole._net(D)[1].size


def test_gradients_of_rows_are_formed_a_few_runs_at_a_time(monkeypatch):
    model = KINDS["module"](None, dtype="float64").placed("cpu")
    _, net = model._net(D)
    rng = np.random.default_rng(0)
    theta, X, u = (torch.from_numpy(rng.uniform(0.1, 1, shape)) for shape in ((5, net.size), (5, K, D), (5, net.size)))
    whole = at_once.gradient_norms(net, theta, X, u)
    sizes, inner = [], at_once.vmap

    def counted(rule, chunk_size):
        sizes.append(chunk_size)
        return inner(rule, chunk_size=chunk_size)

    monkeypatch.setattr(at_once, "vmap", counted)
    monkeypatch.setattr(at_once, "NUMBERS_AT_ONCE", 2 * K * net.size)
    for got, wanted in zip(at_once.gradient_norms(net, theta, X, u), whole, strict=True):
        assert_allclose(numbers(got), numbers(wanted), rtol=1e-12)
    assert sizes == [2]


@pytest.mark.parametrize(("branch", "follows"), [(False, True), (True, False)])
def test_batch_norm_and_dropout_in_eval_mode_go_at_once_and_a_branch_goes_in_turn(branch, follows):
    net = modules.network(models.Network(module=Branching(4, branch)), 4)
    assert net.at_once is follows


class Wrong(torch.autograd.Function):
    """The identity, whose rule for vmap is wrong: it doubles."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g

    @staticmethod
    def vmap(info, in_dims, x):
        return 2 * x, in_dims[0]


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 1)

    def forward(self, x):
        return Wrong.apply(self.last(x))


def test_a_module_whose_runs_at_once_differ_goes_in_turn():
    assert modules.network(models.Network(module=Doubling()), 4).at_once is False
    # seen red: without the comparison of the trial

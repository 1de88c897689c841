"""The perceptron's arithmetic by hand against torch's autograd, and Adam against torch.optim.Adam."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dither.models.network import adam, losses, perceptron
from dither.models.network.layout import layout

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

K = 3
CLOSE = {"float64": 1e-12, "float32": 1e-6}
#: d, slots, hidden: placed and grouped
CASES = [
    (4, None, (5,)),
    (4, None, (6, 5)),
    (4, K, (5,)),
    (4, K, (6, 5)),
    (perceptron.PLACED // K + 1, K, (5,)),
    (perceptron.PLACED // K + 1, K, (6, 5)),
]


class Case:
    """A perceptron, the same as a module, and rows; chance of `seed` alone."""

    def __init__(self, d, slots, hidden, *, dtype="float64", seed=0, rows=9):
        self.net, self.slots, self.dtype = layout(d, slots, hidden), slots, dtype
        widths = (d * (slots or 1), *hidden, 1)
        layers = [nn.Linear(n, m) for n, m in zip(widths, (*hidden, 1), strict=False)]
        self.module = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))[:-1]
        self.module.to(getattr(torch, dtype))
        rng = np.random.default_rng(seed)
        with torch.no_grad():
            for A in self.module.parameters():
                A.copy_(torch.from_numpy(rng.standard_normal(A.shape) / np.sqrt(A.shape[-1])))
        self.theta = flat(self.module.parameters())
        self.X = rng.standard_normal((rows, d)).astype(dtype)
        self.arm = None if slots is None else np.array([0, 2, 2, 0, 2, 0, 2, 2, 0][:rows])  # slot 1 has no row
        self.r = rng.uniform(size=rows).astype(dtype)
        self.u = rng.uniform(0.5, 2, self.net.size).astype(dtype)

    def rows(self, arm=None):
        """What the module takes: rows (n, D)."""
        arm = self.arm if arm is None else np.full(len(self.X), arm)
        if self.slots is None:
            return torch.from_numpy(self.X)
        full = np.zeros((len(self.X), self.slots, self.X.shape[1]), self.dtype)
        for i, k in enumerate(arm):
            full[i, k] = self.X[i]
        return torch.from_numpy(full.reshape(len(full), -1))

    def gradients(self, rows):
        """∂f/∂θ of each row (n, p): one backward pass each."""
        parts = list(self.module.parameters())
        return np.stack([flat(torch.autograd.grad(self.module(row[None])[0, 0], parts)) for row in rows])

    def close(self, got, wanted, tight=None):
        assert got.dtype == np.dtype(self.dtype)
        tight = CLOSE[self.dtype] if tight is None else tight
        assert_allclose(got, wanted, rtol=tight, atol=tight * max(1e-300, np.abs(wanted).max()))


def flat(tensors):
    """In the order of θ: torch has a layer's weights as (m, n), θ as (n, m)."""
    return torch.cat([A.detach().T.flatten() if A.ndim == 2 else A.detach() for A in tensors]).numpy()


@pytest.fixture(params=CASES, ids=lambda case: "d={} slots={} hidden={}".format(*case))
def shape(request):
    return request.param


@pytest.fixture(params=CLOSE)
def dtype(request):
    return request.param


def test_forward_is_the_module(shape, dtype):
    case = Case(*shape, dtype=dtype)
    if case.slots is None:
        wanted = case.module(case.rows()).detach().numpy()[:, 0]
        case.close(perceptron.forward(case.net, case.theta, case.X), wanted)
        case.close(perceptron.forward(case.net, case.theta, case.X.reshape(3, 3, -1)), wanted.reshape(3, 3))
        hidden = case.module[:-1](case.rows()).detach().numpy()
        case.close(perceptron.last_hidden(case.net, case.theta, case.X), hidden)
        return
    each = np.stack([case.module(case.rows(k)).detach().numpy()[:, 0] for k in range(K)], axis=1)
    case.close(perceptron.forward(case.net, case.theta, case.X), each)
    case.close(perceptron.forward(case.net, case.theta, case.X[0]), each[0])
    own = case.X.reshape(3, K, -1)
    case.arm = np.tile(np.arange(K), 3)
    wanted = case.module(case.rows()).detach().numpy()[:, 0].reshape(3, K)
    case.close(perceptron.forward(case.net, case.theta, own, by_slot=True), wanted)
    hidden = np.stack([case.module[:-1](case.rows(k)).detach().numpy() for k in range(K)], axis=1)
    case.close(perceptron.last_hidden(case.net, case.theta, case.X), hidden)


@pytest.mark.parametrize("output", ["identity", "sigmoid"])
def test_gradient_is_autograd(shape, dtype, output):
    case = Case(*shape, dtype=dtype)
    f, g = perceptron.gradient(case.net, case.theta, case.X, case.arm, lambda f: losses.pull(output, f, case.r))
    answers, r = case.module(case.rows())[:, 0], torch.from_numpy(case.r)
    if output == "identity":
        loss = functional.mse_loss(answers, r, reduction="sum")
    else:
        loss = functional.binary_cross_entropy_with_logits(answers, r, reduction="sum")
    case.close(f, answers.detach().numpy())
    case.close(g, flat(torch.autograd.grad(loss, list(case.module.parameters()))))
    value = (f - case.r) ** 2 if output == "identity" else np.logaddexp(0, f) - case.r * f  # the loss itself
    case.close(np.sum(value), loss.detach().numpy())


@pytest.mark.parametrize("shape", [case for case in CASES if case[1]])
def test_the_softmax_over_the_arms_is_autograd(shape, dtype):
    case = Case(*shape, dtype=dtype)
    f, g = perceptron.gradient_arms(case.net, case.theta, case.X, lambda f: losses.pull_arms(f, case.arm, case.r))
    answers = torch.stack([case.module(case.rows(k))[:, 0] for k in range(K)], dim=1)
    p, r = torch.softmax(answers, dim=1)[np.arange(len(case.X)), case.arm], torch.from_numpy(case.r)
    loss = -(r * torch.log(p) + (1 - r) * torch.log1p(-p)).sum()
    case.close(f, answers.detach().numpy())
    case.close(g, flat(torch.autograd.grad(loss, list(case.module.parameters()))))


def test_lengths_of_gradients_are_those_of_a_backward_pass_an_arm(shape):
    case = Case(*shape)
    f, norm = perceptron.gradient_norms(case.net, case.theta, case.X, case.u)
    same, slope = perceptron.gradient_norms(case.net, case.theta, case.X, inputs=True)
    assert_array_equal(f, same)
    for k in range(case.slots or 1):
        rows = case.rows(k if case.slots else None).requires_grad_()
        mine = [A.reshape(len(case.X), -1)[:, k] for A in (f, norm, slope)]
        answers = case.module(rows)[:, 0]
        case.close(mine[0], answers.detach().numpy(), 1e-10)
        case.close(mine[1], np.sqrt(case.gradients(rows) ** 2 @ case.u), 1e-10)
        (by,) = torch.autograd.grad(answers.sum(), rows)
        by = by.numpy().reshape(len(case.X), case.slots or 1, -1)[:, k]
        case.close(mine[2], np.linalg.norm(by, axis=1), 1e-10)
    # seen red: without the biases; a instead of a²


def test_squares_of_gradients_add_up(shape):
    case = Case(*shape)
    g, uinv = case.gradients(case.rows()), case.u.copy()
    for i in range(3):
        perceptron.add_squares(case.net, case.theta, case.X[i], None if case.slots is None else case.arm[i], uinv)
    case.close(uinv, 1 / (1 / case.u + np.sum(g[:3] ** 2, axis=0)), 1e-12)
    # seen red: the biases without their squares


def test_runs_in_lockstep_are_autograd_too(shape):
    cases = [Case(*shape, seed=seed) for seed in range(3)]
    net, slots = cases[0].net, cases[0].slots
    theta, X, r, u = (np.stack([getattr(case, name) for case in cases]) for name in ("theta", "X", "r", "u"))
    arm = None if slots is None else np.stack([np.roll(case.arm, i) for i, case in enumerate(cases)])
    f, g = perceptron.gradient(net, theta, X, arm, lambda f: losses.pull("sigmoid", f, r))
    row, own = X[:, 0], None if arm is None else arm[:, 0]
    norms = perceptron.gradient_norms(net, theta, X if slots is None else row, u)[1]
    perceptron.add_squares(net, theta, row, own, u)
    for i, case in enumerate(cases):
        case.arm = None if arm is None else arm[i]
        every = case.gradients(case.rows())
        answers = case.module(case.rows())[:, 0].detach().numpy()
        case.close(f[i], answers, 1e-12)
        case.close(g[i], losses.pull("sigmoid", answers, case.r) @ every, 1e-12)
        case.close(u[i], 1 / (1 / case.u + every[0] ** 2), 1e-12)
        if slots is not None:
            every = np.stack([case.gradients(case.rows(k))[0] for k in range(K)])
        case.close(norms[i], np.sqrt(every**2 @ case.u), 1e-10)


def stepped(theta, gradients, dtype, **rates):
    """θ, m, v after each gradient, by `adam.step`."""
    rates = dict(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8) | rates
    theta = theta.astype(dtype)
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for s, g in enumerate(gradients, 1):
        adam.step(theta, m, v, g.astype(dtype), s=np.array(s), **rates)
        yield theta, m, v


@pytest.mark.parametrize("size", [7, 8 * adam.PIECE + 77])  # in one piece, and in many with a rest
@pytest.mark.parametrize("rates", [{}, dict(lr=0.1, beta1=0.5, beta2=0.9, eps=1e-3)])
def test_adam_is_torchs(size, rates):
    rng = np.random.default_rng(0)
    start, steps = rng.standard_normal(size), 200
    first, second = rng.standard_normal((2, size)) * 10.0 ** rng.integers(-6, 3, size)
    gradients = [first * np.cos(0.3 * s) + second * np.sin(1.1 * s) for s in range(steps)]
    wanted = nn.Parameter(torch.from_numpy(start.copy()))
    rule = torch.optim.Adam(
        [wanted],
        lr=rates.get("lr", 1e-3),
        betas=(rates.get("beta1", 0.9), rates.get("beta2", 0.999)),
        eps=rates.get("eps", 1e-8),
    )
    for (theta, _, _), g in zip(stepped(start, gradients, "float64", **rates), gradients, strict=True):
        wanted.grad = torch.from_numpy(g.copy())
        rule.step()
        assert_allclose(theta, wanted.detach().numpy(), rtol=1e-10, atol=1e-10)
    # seen red: ε without the bias of v


def test_adam_steps_each_run_by_its_own_count():
    rng = np.random.default_rng(1)
    theta, g = rng.standard_normal((2, 3, 5)), rng.standard_normal((4, 3, 5))
    rates = dict(lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8)
    alone = []
    for run, skipped in enumerate((0, 1, 2)):
        *_, (last, _, _) = stepped(theta[0, run], g[skipped:, run], "float64", lr=1e-2)
        alone.append(last)
    together = theta[0].copy()
    m, v = np.zeros_like(together), np.zeros_like(together)
    for i in range(4):
        on = np.array([i >= skipped for skipped in (0, 1, 2)])
        new = [A[on] for A in (together, m, v)]
        adam.step(*new, g[i][on].copy(), s=np.array([i + 1, i, i - 1])[on], **rates)
        for A, part in zip((together, m, v), new, strict=True):
            A[on] = part
    assert_allclose(together, alone, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_of_weights_without_gradient_are_flushed_and_move_nothing(dtype, monkeypatch):
    rng = np.random.default_rng(2)
    start = rng.standard_normal(40)
    burst = [rng.standard_normal(40) * 10.0 ** rng.integers(-12, 3, 40) for _ in range(30)]
    gradients = burst + [np.zeros(40)] * 2_000
    tiny = np.finfo(np.float32).tiny
    flushed = []
    for theta, m, v in stepped(start, gradients, dtype):
        flushed.append(theta.copy())
        for A in (m, v):
            assert not ((A != 0) & (np.abs(A) < tiny)).any()  # seen red: without the flush
    monkeypatch.setattr(adam, "FLUSH", 10**9)
    seen = False
    for (theta, m, _), mine in zip(stepped(start, gradients, dtype), flushed, strict=True):
        assert_allclose(mine, theta, rtol=0, atol=1e-12)
        seen = seen or bool(((m != 0) & (np.abs(m) < tiny)).any())
    assert seen  # without the flush there are some

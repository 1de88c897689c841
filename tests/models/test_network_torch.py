"""Networks that torch computes, against plain modules on materialised images with one backward pass an arm."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import datasets, models, policies
from dither.models import network as package
from dither.models.network import losses
from longer import size
from torch_modules import TIGHT, H, K, Plain, W, case, close, cnn, flat, placed

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional
modules = pytest.importorskip("dither.models.network.modules")


def gradients(plain, images):
    """∂f/∂θ of every image, (n, p): one backward pass each."""
    return np.stack([flat(torch.autograd.grad(plain(one[None])[0, 0], list(plain.parameters()))) for one in images])


@pytest.fixture(params=TIGHT)
def dtype(request):
    return request.param


def test_every_arm_is_the_image_in_its_channel(dtype):
    net, theta, plain, X, _ = case(dtype)
    assert theta.shape == (net.size,)
    each = np.stack([plain(placed(X, np.full(len(X), k))).detach().numpy()[:, 0] for k in range(K)], axis=1)
    close(modules.forward(net, theta, X), each, dtype)
    close(modules.forward(net, theta, X[0]), each[0], dtype)  # one request
    own = np.random.default_rng(1).standard_normal((2, 4, K, H * W)).astype(dtype)
    wanted = plain(placed(own.reshape(-1, H * W), np.tile(np.arange(K), 8))).detach().numpy().reshape(2, 4, K)
    close(modules.forward(net, theta, own, by_slot=True), wanted, dtype)
    # seen red: the patches upside down; without the ReLU of the stages


def test_without_slots_an_arm_is_an_image_of_its_own(dtype):
    net, theta, plain, X, _ = case(dtype, slots=None, n=8)
    images = torch.from_numpy(X.reshape(-1, 1, H, W))
    wanted = plain(images).detach().numpy().reshape(2, 4)
    close(modules.forward(net, theta, X.reshape(2, 4, -1)), wanted, dtype)
    g = gradients(plain, images)
    u = np.random.default_rng(2).uniform(0.5, 2, net.size).astype(dtype)
    f, norm = modules.gradient_norms(net, theta, X, u)
    close(f, wanted.ravel(), dtype)
    close(norm, np.sqrt(g**2 @ u), dtype)
    f, g_sum = modules.gradient(net, theta, X, None, lambda f: f**2)
    close(g_sum, (f**2) @ g, dtype)


def test_gradient_is_autograd_on_materialised_images(dtype):
    net, theta, plain, X, arm = case(dtype)
    r = np.random.default_rng(3).uniform(size=len(X)).astype(dtype)
    f, g = modules.gradient(net, theta, X, arm, lambda f: losses.pull("sigmoid", f, r))
    answer = plain(placed(X, arm))[:, 0]
    loss = functional.binary_cross_entropy_with_logits(answer, torch.from_numpy(r), reduction="sum")
    close(f, answer.detach().numpy(), dtype)
    close(g, flat(torch.autograd.grad(loss, list(plain.parameters()))), dtype)
    # seen red: the block of the arm before (arm - 1)


def test_the_softmax_over_the_arms_is_autograd_too(dtype):
    net, theta, plain, X, arm = case(dtype)
    r = np.random.default_rng(3).uniform(size=len(X)).astype(dtype)
    f, g = modules.gradient_arms(net, theta, X, lambda f: losses.pull_arms(f, arm, r))
    answers = torch.stack([plain(placed(X, np.full(len(X), k)))[:, 0] for k in range(K)], dim=1)
    p = torch.softmax(answers, dim=1)[torch.arange(len(X)), torch.from_numpy(arm)]
    R = torch.from_numpy(r)
    loss = -(R * torch.log(p) + (1 - R) * torch.log1p(-p)).sum()
    close(f, answers.detach().numpy(), dtype)
    close(g, flat(torch.autograd.grad(loss, list(plain.parameters()))), dtype)


def test_lengths_of_gradients_are_those_of_a_backward_pass_an_arm(dtype):
    net, theta, plain, X, arm = case(dtype)
    u = np.random.default_rng(4).uniform(0.5, 2, net.size).astype(dtype)
    f, norm = modules.gradient_norms(net, theta, X, u)
    _, slope = modules.gradient_norms(net, theta, X, inputs=True)
    for k in range(K):
        images = placed(X, np.full(len(X), k)).requires_grad_()
        g = gradients(plain, images)
        close(norm[:, k], np.sqrt(g**2 @ u), dtype)
        answers = plain(images)[:, 0]
        close(f[:, k], answers.detach().numpy(), dtype)
        (by,) = torch.autograd.grad(answers.sum(), images)
        close(slope[:, k], np.linalg.norm(by[:, k].flatten(1).numpy(), axis=1), dtype)
    before = u.copy()
    modules.add_squares(net, theta, X[0], arm[0], u)
    close(u, 1 / (1 / before + gradients(plain, placed(X[:1], arm[:1]))[0] ** 2), dtype)
    # seen red: u of slot 0 for all; without the biases of the convolutions


@settings(max_examples=25)
@given(
    slots=st.none() | st.integers(1, 4),
    image=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    filters=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    hidden=st.lists(st.integers(1, 3), min_size=1, max_size=2),
)
def test_any_shape_is_its_plain_module(slots, image, filters, hidden):
    net, theta, plain, X, arm = case("float64", slots=slots, image=image, filters=filters, hidden=hidden)
    images = placed(X, arm, slots or 1, image)
    arm = arm if slots else None
    f, g = modules.gradient(net, theta, X, arm, np.cos)
    close(f, plain(images)[:, 0].detach().numpy(), "float64")
    each = gradients(plain, images)
    close(g, np.cos(f) @ each, "float64")
    norm = modules.gradient_norms(net, theta, X, theta**2)[1]
    mine = norm if slots is None else norm[np.arange(len(X)), arm]
    close(mine, np.sqrt(each**2 @ theta**2), "float64")


def test_runs_in_lockstep_are_the_runs_alone():
    singles = [case("float64", seed=seed) for seed in range(3)]
    net = singles[0][0]
    theta, X, arm = (np.stack([one[i] for one in singles]) for i in (1, 3, 4))
    u = np.random.default_rng(5).uniform(0.5, 2, theta.shape)
    own = np.random.default_rng(6).standard_normal((3, K, H * W))

    scale = np.array([1.0, -2.0, 0.5])

    def pull(f):
        return f * scale.reshape(-1, *(1,) * (f.ndim - 1))

    together = (
        modules.forward(net, theta, X[:, 0]),
        modules.forward(net, theta, own, by_slot=True),
        *modules.gradient(net, theta, X, arm, pull),
        *modules.gradient_arms(net, theta, X, pull),
        *modules.gradient_norms(net, theta, X[:, 0], u),
        *modules.gradient_norms(net, theta, X[:, 0], inputs=True),
    )
    squares = u.copy()
    modules.add_squares(net, theta, X[:, 0], arm[:, 0], squares)
    for i in range(3):
        alone = (
            modules.forward(net, theta[i], X[i, 0]),
            modules.forward(net, theta[i], own[i], by_slot=True),
            *modules.gradient(net, theta[i], X[i], arm[i], lambda f, i=i: f * scale[i]),
            *modules.gradient_arms(net, theta[i], X[i], lambda f, i=i: f * scale[i]),
            *modules.gradient_norms(net, theta[i], X[i, 0], u[i]),
            *modules.gradient_norms(net, theta[i], X[i, 0], inputs=True),
        )
        for got, wanted in zip(together, alone, strict=True):
            assert_allclose(got[i], wanted, rtol=1e-12, atol=1e-12)
        one = u[i].copy()
        modules.add_squares(net, theta[i], X[i, 0], arm[i, 0], one)
        assert_allclose(squares[i], one, rtol=1e-12)
    # seen red: the gradients of run 0 for all


def test_the_weights_begin_as_torch_begins():
    net = models.Network(convolutions=(32, 64), hidden=(128,), image=(28, 28), slots=10)
    assert net.bytes(784, 100) > 6 * 4 * 423_073
    theta = net.init(784, rng=np.random.default_rng(0)).theta
    plain = Plain(10, (28, 28), (32, 64), (128,))  # the paper's: 64 x 7 x 7 remain
    assert plain.layers[0].in_features == 64 * 7 * 7
    assert theta.size == sum(A.numel() for A in plain.parameters())
    at = 0
    for n, A in ((n, A) for n, A in zip((90, 90, 288, 288, 3136, 3136, 128, 128), plain.parameters(), strict=True)):
        part, bound = theta[at : at + A.numel()] * np.sqrt(n), 1 + 1e-6
        at += A.numel()
        assert float(A.detach().abs().max()) * np.sqrt(n) <= bound  # torch's own, to be sure of the inputs
        assert np.abs(part).max() <= bound
        assert abs(np.mean(part**2) - 1 / 3) <= 5 * np.sqrt(4 / 45 / part.size)
    # seen red: 9 inputs in the first layer, not 9 K


def test_work_is_cut_into_pieces(monkeypatch):
    net, theta, _, X, _ = case("float64")
    u = np.ones(net.size)
    own = np.repeat(X[:, None], K, axis=1)
    calls = (
        lambda: modules.forward(net, theta, X),
        lambda: modules.forward(net, theta, own, by_slot=True),
        lambda: np.stack(modules.gradient_norms(net, theta, X, u)),
        lambda: np.stack(modules.gradient_norms(net, theta, X, inputs=True)),
    )
    whole = [call() for call in calls]
    monkeypatch.setattr(modules, "NUMBERS_AT_ONCE", 2 * net.width)
    for call, wanted in zip(calls, whole, strict=True):
        assert_allclose(call(), wanted, rtol=1e-12)  # seen red: a row in two pieces


def test_nothing_is_written_into_what_is_given():
    net, theta, _, X, arm = case("float64")
    for A in (theta, X, arm):
        A.flags.writeable = False
    before = theta.copy()
    modules.forward(net, theta, X)
    modules.gradient(net, theta, X, arm, lambda f: f)
    modules.gradient_arms(net, theta, X, lambda f: f)
    modules.gradient_norms(net, theta, X, theta**2)
    assert_array_equal(theta, before)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (dict(convolutions=(4,)), "image=\\(height, width\\)"),
        (dict(convolutions=(4, 4), image=(28, 3)), "at least 4 on each side"),
        (dict(convolutions=(4, 0), image=(28, 28)), "convolutions must be a whole number of at least 1, got 0"),
        (dict(convolutions=(4,), image=(28, 28, 3)), "image must be \\(height, width\\)"),
        (dict(convolutions=(4,), image=(8, 8), device="abacus"), "device must be one that torch has here"),
        (dict(convolutions=(4,), image=(8, 8), module=nn.Linear(3, 1)), "leave convolutions out"),
        (dict(module=nn.Linear), "an instance and no class"),
        (dict(module=nn.LazyLinear(1)), "call it once"),
        (dict(module=nn.Flatten()), "nothing to train"),
    ],
)
def test_settings_that_no_network_has(chosen, words):
    with pytest.raises((ValueError, TypeError), match=words):
        models.Network(**chosen)


def test_an_image_must_have_d_pixels():
    with pytest.raises(ValueError, match="54 pixels, and there are dim=50"):
        dither.Bandit(cnn(), policies.Greedy(), dim=50)


def test_settings_of_torch_are_left_alone():
    def seen():
        chance = torch.random.get_rng_state().numpy().tobytes()
        return torch.get_num_threads(), torch.get_default_dtype(), chance, torch.is_grad_enabled()

    before, tiny = seen(), torch.tensor(1e-41)
    bandit = dither.Bandit(cnn("float32"), policies.NeuralTS(), dim=H * W, seed=0)
    bandit.choose(np.ones(H * W))
    bandit.update(np.ones(H * W), 1.0, arm=0)
    assert seen() == before
    assert float(tiny * 1) > 0  # denormals are not flushed


def test_lists_and_text_are_settings_too():
    network = models.Network(convolutions="4x5", hidden="6", image=[H, W], slots=K)
    assert network == models.Network(convolutions=[4, 5], hidden=(6,), image=(H, W), slots=K)
    assert network.convolutions == (4, 5)


def test_without_torch_the_extra_is_named_and_the_rest_works(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(package.__name__ + ".")]:
        if name.rsplit(".", 1)[1] in ("modules", "convolution", "autograd"):
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(package, name.rsplit(".", 1)[1])
    monkeypatch.setitem(sys.modules, "torch", None)
    for chosen in (dict(convolutions=(4,), image=(8, 8)), dict(module=nn.Linear(3, 1))):
        with pytest.raises(ImportError, match=r"needs torch.*dither\[torch\]"):
            models.Network(**chosen)
    bandit = dither.Bandit(models.Network(hidden=(3,), slots=2), policies.NeuralTS(), dim=2, seed=0)
    bandit.update([1.0, 2.0], 1.0, arm=int(bandit.choose([1.0, 2.0]).arm))


@pytest.mark.slow
def test_deepfp_on_mnist_with_the_network_of_the_paper(data_folder):
    rounds = size(250, longer=500)
    env = datasets.environment("mnist", "raw", folder=data_folder)
    deepfp = "DeepFP:convolutions=32x64,hidden=128,image=28x28"
    result = dither.simulate(env, [deepfp], runs=1, rounds=rounds, record=[rounds])
    uniform = 0.9 * rounds
    assert float(result.regret[..., -1].sum()) < uniform - 5 * np.sqrt(0.1 * uniform)

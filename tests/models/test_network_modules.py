"""Modules of one's own as networks: what they must be, held against torch alone, and policies and files on them."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import models, policies
from torch_modules import H, K, W, case, cnn, flat

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional
modules = pytest.importorskip("dither.models.network.modules")


def in_turn(plain):
    """Its parameters, whose numbers are counted in torch's order."""
    parts = [A.detach() for A in plain.parameters()]
    counted = torch.arange(sum(A.numel() for A in parts)).split([A.numel() for A in parts])
    return [n.view(A.shape) for n, A in zip(counted, parts, strict=True)]


class Gauge(nn.Module):
    """Answers with what it is made to."""

    def __init__(self, rule):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.rule = rule

    def forward(self, x):
        return self.rule(x * self.weight)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(4, 2), "one number a row, \\(3,\\) or \\(3, 1\\), for rows of shape \\(3, 4\\); got \\(3, 2\\)"),
        (nn.Linear(5, 1), "must take rows of shape \\(3, 4\\)"),
        (Gauge(lambda z: z.sum()), "got \\(\\)"),
        (Gauge(lambda z: (z.sum(dim=1), z)), "got tuple"),
        (Gauge(lambda z: functional.dropout(z).sum(dim=1)), "chance of its own in eval mode"),
    ],
)
def test_modules_that_are_no_network(module, words):
    with pytest.raises(ValueError, match=words):
        dither.Bandit(models.Network(module=module), policies.Greedy(), dim=4)


@pytest.mark.parametrize("slots", [None, K])
def test_a_module_for_images_is_the_convolutions(slots):
    own, theta, plain, X, arm = case("float64", slots=slots)
    net = modules.network(models.Network(module=plain, slots=slots, image=(H, W), dtype="float64"), H * W)
    mine = net.initial(np.random.default_rng(0))
    order = np.argsort(flat(in_turn(plain)))  # where each weight of torch's order lies in θ
    assert_array_equal(theta[order], mine)
    arm = arm if slots else None
    u = np.random.default_rng(7).uniform(0.5, 2, own.size)
    assert_allclose(modules.forward(net, mine, X), modules.forward(own, theta, X), rtol=1e-12)
    g, wanted = (modules.gradient(*pair, X, arm, np.sin)[1] for pair in ((net, mine), (own, theta)))
    assert_allclose(g, wanted[order], rtol=1e-10, atol=1e-12)
    if slots:
        g, wanted = (modules.gradient_arms(*pair, X, np.sin)[1] for pair in ((net, mine), (own, theta)))
        assert_allclose(g, wanted[order], rtol=1e-10, atol=1e-12)
    for more, same in ((dict(u=u[order]), dict(u=u)), (dict(inputs=True), dict(inputs=True))):
        got, wanted = modules.gradient_norms(net, mine, X, **more), modules.gradient_norms(own, theta, X, **same)
        assert_allclose(np.stack(got), np.stack(wanted), rtol=1e-10)


def test_bandits_of_two_threads_may_share_a_module():
    module = nn.Sequential(nn.Linear(50, 400), nn.ReLU(), nn.Linear(400, 1))
    net, rng = modules.network(models.Network(module=module), 50), np.random.default_rng(0)
    X = rng.standard_normal((200, 50)).astype(np.float32)
    thetas = rng.standard_normal((2, net.size)).astype(np.float32)
    wanted = [modules.forward(net, theta, X) for theta in thetas]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda i: modules.forward(net, thetas[i % 2], X), range(200)))
    for i, f in enumerate(found):
        assert_array_equal(f, wanted[i % 2])  # seen red: without the lock


class Odd(nn.Module):
    """Batch norm, dropout, frozen and tied weights, a parameter that is never used, a branch that vmap cannot take."""

    def __init__(self, d=4, branch=False):
        super().__init__()
        self.norm, self.drop, self.frozen = nn.BatchNorm1d(d), nn.Dropout(0.5), nn.Linear(d, d)
        self.frozen.requires_grad_(False)
        self.first, self.second, self.unused = nn.Linear(d, d), nn.Linear(d, d), nn.Parameter(torch.ones(3))
        self.second.weight = self.first.weight
        self.last, self.branch = nn.Linear(d, 1), branch

    def forward(self, x):
        x = self.drop(torch.tanh(self.second(torch.tanh(self.first(self.frozen(self.norm(x)))))))
        return self.last(x) if not self.branch or bool(x.sum() < 1e9) else x


@pytest.mark.parametrize("branch", [False, True])
def test_any_module_is_copied_in_eval_mode_and_trained_in_its_copy(branch):
    torch.manual_seed(0)
    module = Odd(branch=branch)
    module(torch.randn(50, 4))  # in train mode: batch norm learns
    before = copy.deepcopy(module)
    network = models.Network(module=module, dtype="float64", slots=None)
    net, rng = modules.network(network, 4), np.random.default_rng(0)
    theta, X = net.initial(rng).copy(), rng.standard_normal((5, 4))
    plain = copy.deepcopy(module).double().eval()
    trained = [A for A in plain.parameters() if A.requires_grad]
    assert_array_equal(theta, torch.cat([A.detach().flatten() for A in trained]).numpy())
    answers = plain(torch.from_numpy(X))[:, 0]
    assert_allclose(modules.forward(net, theta, X), answers.detach().numpy(), rtol=1e-12)
    each = []
    for f in answers:
        g = torch.autograd.grad(f, trained, retain_graph=True, allow_unused=True, materialize_grads=True)
        each.append(torch.cat([A.flatten() for A in g]).numpy())
    f, norm = modules.gradient_norms(net, theta, X, np.full(net.size, 0.5))
    assert_allclose(norm, np.sqrt(0.5 * np.sum(np.square(each), axis=1)), rtol=1e-12)
    assert_allclose(
        modules.gradient(net, theta, X, None, np.ones_like)[1], np.sum(each, axis=0), rtol=1e-10, atol=1e-14
    )

    bandit = dither.Bandit(network, policies.NeuralUCB(), dim=4, seed=0)
    for x in X:
        bandit.choose(X)
        bandit.update(x, 1.0)
    assert np.abs(bandit.state.theta - theta).max() > 1e-3
    assert module.training
    assert module.drop.training
    for ours, old in zip(module.state_dict().values(), before.state_dict().values(), strict=True):
        assert torch.equal(ours, old)  # seen red: the module itself in the place of its copy
    with torch.no_grad():
        module.last.weight.zero_()  # later changes do not reach the copy
    modules.network(network, 4).initial(rng)[:] = 0
    assert_array_equal(network.init(4, rng=rng).theta, theta)  # seen red: θ_0 as the memory of the copy


SMALL = dict(batch=8, window=8)


@pytest.mark.parametrize("kind", ["cnn", "module", "module in slots"])
@pytest.mark.parametrize(
    "policy",
    [
        policies.GeneralFeaturePerturbation(),
        policies.GeneralFeaturePerturbation(Sigma="spread"),
        policies.NeuralUCB(nu=1.0),
        policies.NeuralTS(nu=1.0),
        policies.Sensitivity(),
        policies.EpsGreedy(),
        policies.PerturbedLeader(),
    ],
)
def test_every_policy_runs_on_it_and_goes_on_after_a_file(kind, policy, tmp_path):
    torch.manual_seed(1)
    more = dict(SMALL, a=0.5 if isinstance(policy, policies.PerturbedLeader) else 0.0)
    d, slots = (H * W, K) if kind == "cnn" else (4, 3 if kind == "module in slots" else None)
    plain = nn.Sequential(nn.Linear(d * (slots or 1), 6), nn.Tanh(), nn.Linear(6, 1), nn.Flatten(0))
    model = cnn("float32", **more) if kind == "cnn" else models.Network(module=plain, slots=slots, **more)
    bandit = dither.Bandit(model, policy, dim=d, seed=0, monte_carlo=50)
    rng = np.random.default_rng(0)

    def play(bandit, X):
        made = bandit.choose(X)
        bandit.update(X if slots else X[made.arm], float(made.arm == 0), **({"arm": made.arm} if slots else {}))
        return int(made.arm)

    offers = rng.standard_normal((18, d) if slots else (18, 5, d))
    for X in offers[:10]:
        play(bandit, X)
    assert np.isfinite(bandit.state.theta).all()
    p = bandit.propensities(offers[0])
    assert isinstance(policy, policies.PerturbedLeader) or abs(np.sum(p) - 1) < 1e-9
    bandit.save(tmp_path / "bandit")
    again = {} if kind == "cnn" else {"model": models.Network(module=copy.deepcopy(plain), slots=slots, **more)}
    other = dither.load(tmp_path / "bandit", **again)
    assert [play(bandit, X) for X in offers[10:]] == [play(other, X) for X in offers[10:]]
    assert_array_equal(bandit.state.theta, other.state.theta)


def changed(module, how):
    """A module that differs in one thing."""
    module = copy.deepcopy(module)
    with torch.no_grad():
        how(module)
    return module


def wider(module):
    module.last = nn.Linear(4, 1, bias=False)


def renamed(module):
    del module.unused
    module.spare = nn.Parameter(torch.ones(3))


@pytest.mark.parametrize(
    ("how", "more"),
    [
        (wider, {}),
        (renamed, {}),
        (lambda module: module.norm.running_mean.add_(1), {}),
        (lambda module: module.frozen.weight.add_(1), {}),
        (lambda module: module.frozen.requires_grad_(True), {}),
        (lambda module: setattr(module, "drop", nn.Dropout(0.1)), {}),
        (lambda module: None, {"lr": 0.01}),
        (lambda module: None, {"dtype": "float64"}),
    ],
)
def test_a_file_goes_on_with_its_own_module_alone(how, more, tmp_path):
    module = Odd()
    bandit = dither.Bandit(models.Network(module=module), policies.Greedy(), dim=4, seed=0)
    bandit.save(tmp_path / "bandit")
    with pytest.raises(ValueError, match="pass it again"):
        dither.load(tmp_path / "bandit")
    fresh = changed(module, lambda module: module.last.weight.zero_())  # trained values are the file's
    found = dither.load(tmp_path / "bandit", model=models.Network(module=fresh))
    assert_array_equal(found.state.theta, bandit.state.theta)
    with pytest.raises(ValueError, match="is not the model that was saved"):
        dither.load(tmp_path / "bandit", model=models.Network(module=changed(module, how), **more))
    # seen red: without the values of buffers and frozen parameters; without names and shapes

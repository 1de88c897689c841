"""Networks that torch computes between NumPy arrays: convolutions (`convolution.py`), your modules (`autograd.py`).

The functions have the signatures of those in `perceptron.py`. θ and all answers are NumPy arrays: θ is (p,), or (R, p)
for R runs, which are computed in turn. Where all arrays are tensors, `at_once.py` computes the R runs at once.

On the CPU torch works on the memory of θ itself. On another device each call moves θ, the rows and the gradient: 8 p
bytes a step in float32. That pays where the work of the network is large beside its number of weights.

torch's settings (threads, seeds, default type) are left as they are. On a GPU the last bits may differ from run to run,
as the results of torch's kernels do.
"""

import copy
import functools
import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dither.base import arrays, errors

try:
    import torch
except ImportError as error:
    raise errors.missing_extra("torch", extra="torch") from error

from dither.models.network.autograd import OwnModule
from dither.models.network.convolution import Convolutions
from dither.models.network.dense import Dense
from dither.models.network.layout import layout

NUMBERS_AT_ONCE = 2**22  # of the widest layer that are computed at once


def check(config: Any) -> None:
    """Refuse settings that no network can have."""
    arrays.torch_device(config.device)
    if config.image is not None and len(config.image) != 2:
        raise ValueError(f"image must be (height, width), got {config.image!r}")
    if config.module is None:
        if config.image is None:
            raise ValueError("convolutions need image=(height, width), with d = height x width features")
        if min(config.image) < 2 ** len(config.convolutions):
            raise ValueError(
                f"image must be at least {2 ** len(config.convolutions)} on each side, as each of "
                f"{len(config.convolutions)} convolutions ends in a pooling that halves it; got {config.image}"
            )
        return
    if config.convolutions:
        raise ValueError("module takes the place of all layers: leave convolutions out")
    if not isinstance(config.module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, an instance and no class, got {config.module!r}")
    tensors = itertools.chain(config.module.parameters(), config.module.buffers())
    if any(torch.nn.parameter.is_lazy(A) for A in tensors):
        raise ValueError("module has lazy layers: call it once on a batch of rows, so that they get their shapes")
    if not any(A.requires_grad for A in config.module.parameters()):
        raise ValueError("module must have at least one parameter with requires_grad, else there is nothing to train")


def copied(config: Any) -> torch.nn.Module:
    """A copy of the configuration's module, in the type and on the device that it asks for, in eval mode."""
    return copy.deepcopy(config.module).to(device=arrays.torch_device(config.device), dtype=_dtype(config.dtype)).eval()


def network(config: Any, dim: int) -> Dense | Convolutions | OwnModule:
    """The network of a configuration for d = dim features, as torch computes it; each is made once."""
    shape = (config.module, config.convolutions, config.hidden, config.image, config.slots)
    return _network(*shape, config.dtype, config.device, dim)


def perceptron(config: Any, dim: int) -> Dense | Convolutions | OwnModule:
    """The perceptron of a configuration without its slots, for dim features."""
    return _network(None, (), config.hidden, None, None, config.dtype, config.device, dim)


@functools.lru_cache(maxsize=16)
def _network(module, convolutions, hidden, image, slots, dtype, device, dim) -> Dense | Convolutions | OwnModule:
    if image is not None and image[0] * image[1] != dim:
        raise ValueError(f"image={image} has {image[0] * image[1]} pixels, and there are dim={dim} features")
    if module is not None:
        return OwnModule(module, dim, slots, image, _dtype(dtype), arrays.torch_device(device))
    if not convolutions:
        return Dense(layout(dim, slots, hidden), arrays.torch_device(device))
    return Convolutions(convolutions, hidden, image, slots, _dtype(dtype), arrays.torch_device(device))


def fingerprint(module: torch.nn.Module) -> str:
    """What a file says of a module: its class, its trained parameters, and a digest of everything else.

    The digest covers the printed form of the module and the values that are never trained: buffers (the means of batch
    norm) and parameters without requires_grad (a frozen embedding). The file holds the trained values in θ.
    """
    digest = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(module)).encode())
    frozen = {name: A for name, A in module.named_parameters() if not A.requires_grad} | dict(module.named_buffers())
    for name, A in sorted(frozen.items()):
        digest.update(f"{name} {tuple(A.shape)} {A.dtype}".encode())
        digest.update(np.ascontiguousarray(A.detach().cpu().numpy()).tobytes())
    cls = type(module)
    parts = [f"{name} {tuple(A.shape)} {A.dtype}" for name, A in module.named_parameters() if A.requires_grad]
    return f"{cls.__module__}.{cls.__qualname__} [{', '.join(parts)}] sha256 {digest.hexdigest()}"


def forward(net: Any, theta: np.ndarray, X: np.ndarray, *, by_slot: bool = False) -> np.ndarray:
    """f of every arm, (..., K): X (..., K, d); with slots the context (..., d), or by_slot a row for each."""
    if theta.ndim > 1:
        return np.stack([forward(net, *run, by_slot=by_slot) for run in zip(theta, X, strict=True)])
    parts = net.parts(_tensor(theta, net))
    with torch.no_grad():
        if net.slots is None or by_slot:
            rows, arm = _rows(net, X, by_slot=by_slot)
            f = [net.answers(parts, *part) for part in _pieces(net, rows, arm)]
            return _array(torch.cat(f)).reshape(X.shape[:-1])
        contexts = _tensor(X.reshape(-1, net.d), net)
        f = [net.everywhere(parts, part) for part in contexts.split(max(1, NUMBERS_AT_ONCE // (net.slots * net.width)))]
        return _array(torch.cat(f)).reshape(*X.shape[:-1], net.slots)


def gradient(net: Any, theta: np.ndarray, X: np.ndarray, arm: np.ndarray | None, pull) -> tuple[np.ndarray, np.ndarray]:
    """f (..., B) of a batch and Σ_b pull_b ∂f_b/∂θ (..., p): X (..., B, d), arm (..., B) with slots.

    pull : from f (..., B) to what multiplies the gradients, (..., B)
    """

    def answers(parts, run):
        return net.answers(parts, _tensor(X[run], net), None if arm is None else _tensor(arm[run], net))

    return _backward(net, theta, answers, pull)


def gradient_arms(net: Any, theta: np.ndarray, X: np.ndarray, pull) -> tuple[np.ndarray, np.ndarray]:
    """As `gradient`, with all K arms of every context in the loss: X (..., B, d), pull (..., B, K) -> (..., B, K)."""
    return _backward(net, theta, lambda parts, run: net.everywhere(parts, _tensor(X[run], net)), pull)


def gradient_norms(
    net: Any, theta: np.ndarray, X: np.ndarray, u: np.ndarray | None = None, *, inputs: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """f and √Σ_p (∂f/∂θ_p)² u_p of every arm, (..., K) each: X as for `forward`, u (..., p) positive.

    inputs=True : f and ‖∇_x f‖ instead, where ∇_x is over the arm's own d features
    """
    if theta.ndim > 1:
        of_run = zip(theta, X, [None] * len(theta) if u is None else u, strict=True)
        f, norm = zip(*(gradient_norms(net, *run, inputs=inputs) for run in of_run), strict=True)
        return np.stack(f), np.stack(norm)
    parts = net.parts(_tensor(theta, net))
    weights = None if u is None else net.parts(_tensor(u, net))
    answers = []
    for rows, arm in _pieces(net, *_rows(net, X)):
        if not inputs:
            answers.append(net.squares(parts, weights, rows, arm))
            continue
        rows = rows.detach().requires_grad_()
        f = net.answers(parts, rows, arm)
        (g,) = torch.autograd.grad(f.sum(), rows)
        answers.append((f.detach(), (g * g).sum(dim=-1)))
    shape = X.shape[:-1] if net.slots is None else (*X.shape[:-1], net.slots)
    f, square = (_array(torch.cat(kind)).reshape(shape) for kind in zip(*answers, strict=True))
    return f, np.sqrt(square)


def add_squares(
    net: Any, theta: np.ndarray, x: np.ndarray, arm: np.ndarray | None, uinv: np.ndarray, weight: Any = 1.0
) -> None:
    """Update `uinv` = 1/U in place, where U grows by ω (∂f/∂θ)² at one row of each run.

    x (..., d); arm (...) with slots; uinv (..., p); weight : ω, a number or (...)
    """
    _, g = gradient(net, theta, x[..., None, :], None if arm is None else np.asarray(arm)[..., None], np.ones_like)
    np.multiply(g, g, out=g)
    g *= np.asarray(weight, g.dtype)[..., None]
    g *= uinv
    g += 1
    uinv /= g


def _backward(net: Any, theta: np.ndarray, answers, pull) -> tuple[np.ndarray, np.ndarray]:
    """f of every run, and the gradient of Σ pull f by one backward pass; answers(parts, run) gives f of one run."""
    runs = list(np.ndindex(theta.shape[:-1]))
    leaves = [[A.detach().requires_grad_() for A in net.parts(_tensor(theta[run], net))] for run in runs]
    each = [answers(parts, run) for parts, run in zip(leaves, runs, strict=True)]
    f = np.stack([_array(one.detach()) for one in each]).reshape(*theta.shape[:-1], *each[0].shape)
    ends = [_tensor(A.astype(theta.dtype), net) for A in pull(f).reshape(len(runs), *each[0].shape)]
    gradients = torch.autograd.grad(each, list(itertools.chain(*leaves)), ends, allow_unused=True)
    g, n = np.zeros_like(theta), len(leaves[0])
    for i, run in enumerate(runs):
        for A, part in zip(net.parts(torch.from_numpy(g[run])), gradients[i * n : (i + 1) * n], strict=True):
            if part is not None:  # None: f does not depend on these parameters
                A.copy_(part)
    return f, g


def _rows(net: Any, X: np.ndarray, *, by_slot: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The rows of all answers, (N, d), and their slots (N,): X as for `forward`."""
    if net.slots is None:
        return _tensor(X.reshape(-1, net.d), net), None
    rows = _tensor((X if by_slot else np.repeat(X[..., None, :], net.slots, axis=-2)).reshape(-1, net.d), net)
    return rows, torch.arange(net.slots, device=rows.device).repeat(len(rows) // net.slots)


def _pieces(net: Any, rows: torch.Tensor, arm: torch.Tensor | None) -> Iterator[tuple[torch.Tensor, Any]]:
    """The rows and their slots, a part at a time, so that the layers of a part take little memory."""
    n = max(1, NUMBERS_AT_ONCE // net.width)
    for at in range(0, max(1, len(rows)), n):
        yield rows[at : at + n], None if arm is None else arm[at : at + n]


def _tensor(A: np.ndarray, net: Any) -> torch.Tensor:
    """The array as a tensor on the network's device; on the CPU they share their memory."""
    return torch.from_numpy(np.require(A, requirements=["C", "W"])).to(net.device)


def _array(A: torch.Tensor) -> np.ndarray:
    return A.cpu().numpy()


def _dtype(name: str) -> torch.dtype:
    return {"float32": torch.float32, "float64": torch.float64}[name]

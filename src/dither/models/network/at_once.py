"""R runs of a network at once, on tensors: the functions of `perceptron.py` for θ (R, p) on a device of torch.

`dense.py`, `convolution.py` and `autograd.py` say how one run is computed, and torch.func.vmap makes R runs of it. Some
modules vmap cannot follow: those that branch on their numbers, or write into their own tensors. Their runs go in turn,
on the same tensors (`net.at_once` is False).

Nothing is random, and no run sees another one. But a product of many small matrices may be rounded otherwise than that
of one, so a run beside others agrees with the run alone up to rounding.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.func import vmap

from dither.models.network.autograd import NUMBERS_AT_ONCE


def forward(net: Any, theta: torch.Tensor, X: torch.Tensor, *, by_slot: bool = False) -> torch.Tensor:
    """f of every arm, (R, K): X (R, K, d); with slots the contexts (R, d), or by_slot a row for each."""
    with torch.no_grad():
        if net.slots is None:
            return _runs(net, net.answers, theta, X)
        if by_slot:
            return _runs(net, net.apart, theta, X)
        return _runs(net, lambda parts, x: net.everywhere(parts, x[None])[0], theta, X)


def last_hidden(net: Any, theta: torch.Tensor, X: torch.Tensor, arm: torch.Tensor | None = None) -> torch.Tensor:
    """φ of every arm (R, K, h): X as for `forward`; or of rows X (R, n, d) in the slots arm (R, n), (R, n, h)."""
    with torch.no_grad():
        if net.slots is None or arm is not None:
            return _runs(net, net.hidden, theta, X, *(() if arm is None else (arm,)))
        return _runs(net, lambda parts, x: net.hidden_everywhere(parts, x[None])[0], theta, X)


def gradient(net: Any, theta: torch.Tensor, X: torch.Tensor, arm: Any, pull: Callable) -> tuple[Any, Any]:
    """f (R, B) of a batch and Σ_b pull_b ∂f_b/∂θ (R, p): X (R, B, d), arm (R, B) with slots.

    pull : from f (R, B) to what multiplies the gradients, (R, B)
    """
    return _backward(net, net.answers, theta, (X,) if arm is None else (X, arm), pull)


def gradient_arms(net: Any, theta: torch.Tensor, X: torch.Tensor, pull: Callable) -> tuple[Any, Any]:
    """As `gradient`, with all K arms of every context in the loss: X (R, B, d), pull (R, B, K) -> (R, B, K)."""
    return _backward(net, net.everywhere, theta, (X,), pull)


def gradient_norms(
    net: Any, theta: torch.Tensor, X: torch.Tensor, u: torch.Tensor | None = None, *, inputs: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """f and √Σ_p (∂f/∂θ_p)² u_p of every arm, (R, K) each: X as for `forward`, u (R, p) positive.

    inputs=True : f and ‖∇_x f‖ instead, where ∇_x is over the arm's own d features
    """
    rows = X if net.slots is None else X[:, None, :].expand(-1, net.slots, -1)
    if inputs:
        rows = rows.detach().clone().requires_grad_()
        f = _runs(net, net.answers if net.slots is None else net.apart, theta, rows)
        (g,) = torch.autograd.grad(f.sum(), rows)
        return f.detach(), torch.linalg.vector_norm(g, dim=-1)
    arm = () if net.slots is None else (torch.arange(net.slots, device=X.device),)

    def squares(parts: Any, own: torch.Tensor, x: torch.Tensor) -> Any:
        return net.squares(parts, net.parts(own), x, *arm)

    few = max(1, NUMBERS_AT_ONCE // (net.forms * rows.shape[1])) if net.forms else None
    f, square = _runs(net, squares, theta, u, rows, few=few)
    return f.detach(), torch.sqrt(square.detach())


def add_squares(net: Any, theta: Any, x: Any, arm: Any, uinv: torch.Tensor, weight: Any = 1.0) -> None:
    """Update `uinv` = 1/U in place, where U grows by ω (∂f/∂θ)² at one row of each run.

    x (R, d); arm (R,) with slots; uinv (R, p); weight : ω, a number or (R,)
    """
    _, g = gradient(net, theta, x[:, None], None if arm is None else arm[:, None], torch.ones_like)
    square = g.mul_(g)
    square *= weight[:, None] if isinstance(weight, torch.Tensor) and weight.ndim else weight
    uinv /= square.mul_(uinv).add_(1)


def _backward(net: Any, rule: Callable, theta: torch.Tensor, rows: tuple, pull: Callable) -> tuple[Any, Any]:
    """f of every run, and the gradient of Σ pull f by one backward pass through all runs."""
    leaf = theta.detach().requires_grad_()
    with torch.enable_grad():
        f = _runs(net, rule, leaf, *rows)
    done = f.detach()
    if not f.requires_grad:  # it depends on no weight
        return done, torch.zeros_like(theta)
    (g,) = torch.autograd.grad(f, leaf, pull(done).to(f.dtype))
    return done, g


def _runs(net: Any, rule: Callable, theta: torch.Tensor, *rows: Any, few: int | None = None) -> Any:
    """rule(parts, *rows) of every run, stacked. rows : tensors (R, ...); few : runs at a time, None for all"""

    def of_one(theta: torch.Tensor, *own: torch.Tensor) -> Any:
        return rule(net.parts(theta), *own)

    if net.at_once:
        return vmap(of_one, chunk_size=few)(theta, *rows)
    each = [of_one(*own) for own in zip(theta, *rows, strict=True)]
    if isinstance(each[0], tuple):
        return tuple(torch.stack(kind) for kind in zip(*each, strict=True))
    return torch.stack(each)

"""A perceptron as torch computes it: the network of `perceptron.py`, with θ laid out as there, for `at_once.py`.

Σ_p (∂f/∂θ_p)² u_p  is computed in the closed form of `perceptron.py`, so no gradient of a row is formed
"""

import math

import numpy as np
import torch
from torch.nn import functional

from dither.models.network.layout import WeightLayout


class Dense:
    """One run of a perceptron with ReLU units."""

    at_once = True
    forms = 0  # numbers of the gradients that `squares` forms for a row

    def __init__(self, layout: WeightLayout, device: torch.device) -> None:
        self.layout, self.device = layout, device
        self.d, self.slots, self.size, self.shapes = layout.d, layout.slots, layout.size, []
        for n, m in layout.shapes:
            self.shapes += [(*n, m), (m,)]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.width = 2 * sum(layout.hidden) + (layout.slots or 1) * layout.d  # numbers that a row takes in all layers

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """θ_0 (p,), that of NumPy's perceptron."""
        return self.layout.initial(rng)

    def parts(self, theta: torch.Tensor) -> list[torch.Tensor]:
        """W_1, b_1, W_2, b_2, ... of θ (p,): views."""
        return [part.view(shape) for part, shape in zip(theta.split(self.sizes), self.shapes, strict=True)]

    def answers(self, parts: list[torch.Tensor], X: torch.Tensor, arm: torch.Tensor | None = None) -> torch.Tensor:
        """f (N,) of rows X (N, d) in the slots arm (N,)."""
        return _above(parts, self._placed(parts, X, arm))[-1]

    def apart(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (K,) of a row for each slot, X (K, d)."""
        return _above(parts, _apart(parts, X))[-1]

    def everywhere(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (n, K) of contexts X (n, d) in every slot."""
        return _above(parts, _everywhere(parts, X))[-1]

    def hidden(self, parts: list[torch.Tensor], X: torch.Tensor, arm: torch.Tensor | None = None) -> torch.Tensor:
        """The last hidden layer (N, h) of rows X (N, d) in the slots arm (N,)."""
        return _above(parts, self._placed(parts, X, arm))[-2]

    def hidden_everywhere(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """The last hidden layer (n, K, h) of contexts X (n, d) in every slot."""
        return _above(parts, _everywhere(parts, X))[-2]

    def squares(self, parts, weights, X: torch.Tensor, arm: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """f and Σ_p (∂f/∂θ_p)² u_p, (N,) each; `weights` has u as `parts` has θ. With slots X has a row for each."""
        first = X @ parts[0] + parts[1] if arm is None else _apart(parts, X)
        *acts, f = _above(parts, first)
        total, delta = torch.zeros_like(f), torch.ones_like(f)[:, None]
        for i in range(len(acts), 0, -1):
            a, square = acts[i - 1], delta * delta
            total = total + ((a * a @ weights[2 * i]) * square).sum(dim=-1) + square @ weights[2 * i + 1]
            delta = (delta @ parts[2 * i].mT) * (a > 0)
        square, inner = delta * delta, [weights[0], weights[1]]
        first = X * X @ inner[0] + inner[1] if arm is None else _apart(inner, X * X)
        return f, total + (first * square).sum(dim=-1)

    def _placed(self, parts: list[torch.Tensor], X: torch.Tensor, arm: torch.Tensor | None) -> torch.Tensor:
        """z_1 (N, h) of rows X (N, d) in the slots arm (N,): one product of Kd-vectors."""
        W, b = parts[:2]
        if arm is None:
            return X @ W + b
        each = functional.one_hot(arm, W.shape[0]).to(X.dtype)
        return (each[:, :, None] * X[:, None, :]).flatten(1) @ W.flatten(0, 1) + b


def _apart(parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
    """z_1 (K, h) of a row for each slot, X (K, d)."""
    return (X[:, None, :] @ parts[0])[:, 0] + parts[1]


def _everywhere(parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
    """z_1 (n, K, h) of contexts X (n, d) in every slot."""
    return (X @ parts[0]).transpose(0, 1) + parts[1]


def _above(parts: list[torch.Tensor], z: torch.Tensor) -> list[torch.Tensor]:
    """a_1, ..., a_{L-1} (..., h) and f (...) of z_1 (..., h)."""
    layers = []
    for W, b in zip(parts[2::2], parts[3::2], strict=True):
        layers.append(torch.relu(z))
        z = layers[-1] @ W + b
    return [*layers, z[..., 0]]

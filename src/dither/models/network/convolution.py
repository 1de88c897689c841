"""The convolutional network of the paper's appendix (Additional experiments), without ever making its K-channel images.

    image of arm i     channel i of K holds x, the others 0                             convolutions: 32, 64 filters
    each stage         3 x 3 convolution, stride 1, padding 1; 2 x 2 max pooling; ReLU   28 x 28 -> 14 x 14 -> 7 x 7
    then               hidden layers (128) with ReLU, and one output

All channels but one are zero, so the first convolution needs the filters of that channel alone. The first layer keeps K
blocks of weights, (K, F, 9), and computes a row as its patches (h w, 9) times the block of its arm. The other weights
lie as in torch.nn.Conv2d and torch.nn.Linear. θ_0 is drawn as torch does it: uniform within ±1/√(inputs of a unit). A
unit of the first layer has 9 K inputs.

The numbers of a layer lie with the channels last, as the products leave them. The first layer, the pooling and the
second convolution are all quicker in this order (benchmarks/convolution.py).
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional


class Pass(NamedTuple):
    """What a forward pass keeps."""

    f: torch.Tensor  # (N,)
    inputs: list[torch.Tensor]  # of each layer: first patches (N, h w, 9), then images (N, C, h, w), vectors (N, n)
    z: list[torch.Tensor]  # the outputs of each layer: (N, h w, F), then (N, F, h, w), (N, m)


class Convolutions:
    """Stages of convolution with these filters on an image, hidden layers of these widths, one output."""

    at_once = True  # vmap can follow it

    def __init__(
        self,
        filters: tuple[int, ...],
        hidden: tuple[int, ...],
        image: tuple[int, int],
        slots: int | None,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.image, self.slots, self.dtype, self.device = image, slots, dtype, device
        self.d, self.stages = image[0] * image[1], len(filters)
        left = filters[-1] * math.prod(side // 2**self.stages for side in image)
        shapes: list[tuple[int, ...]] = [(slots or 1, filters[0], 9)]
        shapes += [(m, n, 3, 3) for n, m in itertools.pairwise(filters)]
        shapes += [(m, n) for n, m in itertools.pairwise((left, *hidden, 1))]
        # the shapes of W_1, b_1, W_2, b_2, ...
        self.shapes = [part for shape in shapes for part in (shape, (shape[-2] if len(shape) == 3 else shape[0],))]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)  # p
        self.width = self.d * filters[0]  # numbers that a row takes in the widest layer
        self.forms = sum(self.sizes[2 : 2 * self.stages : 2]) + 9 * filters[0]  # by `squares`, for a row

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """θ_0 (p,)."""
        theta, at = rng.uniform(-1.0, 1.0, self.size), 0
        for shape, size, bias in zip(self.shapes[::2], self.sizes[::2], self.sizes[1::2], strict=True):
            inputs = 9 * shape[0] if len(shape) == 3 else math.prod(shape[1:])
            theta[at : at + size + bias] /= math.sqrt(inputs)
            at += size + bias
        return theta

    def parts(self, theta: torch.Tensor) -> list[torch.Tensor]:
        """W_1, b_1, W_2, b_2, ... of θ (p,): views."""
        return [part.view(shape) for part, shape in zip(theta.split(self.sizes), self.shapes, strict=True)]

    def answers(self, parts: list[torch.Tensor], X: torch.Tensor, arm: torch.Tensor | None = None) -> torch.Tensor:
        """f (N,) of rows X (N, d) in the slots arm (N,)."""
        return self._pass(parts, self._patches(X), arm).f

    def apart(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (K,) of a row for each slot, X (K, d)."""
        return self.answers(parts, X, torch.arange(len(X), device=X.device))

    def everywhere(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (n, K) of contexts X (n, d) in every slot."""
        K = len(parts[0])
        arm = torch.arange(K, device=X.device).repeat(len(X))
        return self._pass(parts, self._patches(X).repeat_interleave(K, dim=0), arm).f.view(len(X), K)

    def squares(self, parts, weights, X: torch.Tensor, arm: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """f and Σ_p (∂f/∂θ_p)² u_p, (N,) each, by one backward pass for all rows; `weights` has u, laid out as `parts`.

        Let δ = ∂f/∂z of a layer. A hidden layer adds Σ_ij δ_i² a_j² u_ij, so its gradients are never formed. Those of a
        convolution are small: they are formed as products of δ and patches.
        """
        patches = self._patches(X)

        def summed(moves: list[torch.Tensor]) -> tuple[torch.Tensor, Pass]:
            done = self._pass(parts, patches, arm, moves)
            return done.f.sum(), done

        deltas, done = torch.func.grad(summed, has_aux=True)(self._still(patches))
        total = torch.zeros_like(done.f)
        for i, (a, delta, u, bias) in enumerate(zip(done.inputs, deltas, weights[::2], weights[1::2], strict=True)):
            if i >= self.stages:
                square = delta * delta
                total = total + ((a * a) @ u.T * square).sum(dim=-1) + square @ bias
                continue
            if i == 0:
                g, along, u = delta.mT @ a, delta.sum(dim=1), u[0] if arm is None else u[arm]
            else:
                g = delta.flatten(2) @ functional.unfold(a, 3, padding=1).mT  # (N, F, 9 C)
                along, u = delta.sum(dim=(2, 3)), u.flatten(1)
            total = total + (g * g * u).sum(dim=(1, 2)) + (along * along) @ bias
        return done.f, total

    def _patches(self, X: torch.Tensor) -> torch.Tensor:
        """What the first filters see at each pixel: X (N, d) -> (N, h w, 9)."""
        return functional.unfold(X.reshape(-1, 1, *self.image), 3, padding=1).mT

    def _still(self, patches: torch.Tensor) -> list[torch.Tensor]:
        """Zeros in the shape of the z of all layers, which moves none of them."""
        h, w = self.image
        shapes: list[tuple[int, ...]] = [(h * w, self.shapes[0][1])]
        shapes += [(self.shapes[2 * i][0], h // 2**i, w // 2**i) for i in range(1, self.stages)]
        shapes += [(shape[0],) for shape in self.shapes[2 * self.stages :: 2]]
        return [patches.new_zeros(len(patches), *shape) for shape in shapes]

    def _pass(self, parts, patches: torch.Tensor, arm: torch.Tensor | None, moves: list | None = None) -> Pass:
        """A forward pass. moves : what is added to the z of each layer, so that derivatives by z can be taken."""
        W = parts[0].expand(len(patches), -1, -1) if arm is None else parts[0][arm]
        z = torch.baddbmm(parts[1], patches, W.mT)  # (N, h w, F)
        outputs, inputs = [z if moves is None else z + moves[0]], [patches]
        image = outputs[0].reshape(-1, *self.image, z.shape[-1]).permute(0, 3, 1, 2)
        for i in range(1, len(parts) // 2):
            if i < self.stages:
                inputs.append(_pooled(image))
                z = functional.conv2d(inputs[-1], parts[2 * i], parts[2 * i + 1], padding=1)
            else:
                inputs.append(_pooled(image).flatten(1) if i == self.stages else functional.relu(outputs[-1]))
                z = functional.linear(inputs[-1], parts[2 * i], parts[2 * i + 1])
            image = z if moves is None else z + moves[i]
            outputs.append(image)
        return Pass(outputs[-1][:, 0], inputs, outputs)


def _pooled(image: torch.Tensor) -> torch.Tensor:
    """The largest of each 2 x 2 square, and at least 0. ReLU after pooling is a quarter of the work of ReLU before."""
    return functional.relu(functional.max_pool2d(image, 2))

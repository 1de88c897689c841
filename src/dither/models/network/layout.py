"""Where the weights of a perceptron lie in its one vector θ: layer by layer, W_1, b_1, W_2, b_2, ...

With K slots the network takes the Kd-vector (0; ..; x; ..; 0). Its first W then has a block for each arm, (K, d, h), of
which an arm needs its own alone: the zeros are never stored.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Layer(NamedTuple):
    """One layer in θ, or in any vector that is laid out as θ, such as a gradient or 1/U: views."""

    W: np.ndarray  # (..., n, m); the first with slots (..., K, d, m)
    b: np.ndarray  # (..., m)
    both: np.ndarray  # (..., n + 1, m)  W with b below it, for inputs that end in 1; with slots (..., K d + 1, m)


@dataclass(frozen=True)
class WeightLayout:
    """A perceptron for d features, with hidden layers of these widths and one output."""

    d: int
    slots: int | None  # K
    hidden: tuple[int, ...]

    @functools.cached_property
    def shapes(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """The shape of W and the width of each layer."""
        widths = (*self.hidden, 1)
        first = (self.d,) if self.slots is None else (self.slots, self.d)
        return tuple((((n,) if i else first), m) for i, (n, m) in enumerate(zip((0, *widths), widths, strict=False)))

    @functools.cached_property
    def places(self) -> tuple[tuple[Any, Any, Any, tuple[int, ...], tuple[int, int]], ...]:
        """Where W, b and both of each layer lie, and the shapes of W and of both."""
        at, places = 0, []
        for n, m in self.shapes:
            end = at + math.prod(n) * m
            both = (math.prod(n) + 1, m)
            places.append((np.s_[..., at:end], np.s_[..., end : end + m], np.s_[..., at : end + m], (*n, m), both))
            at = end + m
        return tuple(places)

    @functools.cached_property
    def size(self) -> int:
        """p, the number of weights."""
        return sum(math.prod(n) * m + m for n, m in self.shapes)

    def views(self, theta: np.ndarray) -> list[Layer]:
        """The layers of θ (..., p). Those of the latest two are kept, θ and 1/U, since a round asks for them often."""
        latest = self.__dict__.get("latest", ())  # (θ, its layers), read once: another thread may put its own there
        for kept, layers in latest:
            if kept is theta:
                return layers
        lead = theta.shape[:-1]
        layers = [
            Layer(theta[W].reshape(lead + shape), theta[b], theta[both].reshape(lead + whole))
            for W, b, both, shape, whole in self.places
        ]
        self.__dict__["latest"] = ((theta, layers), *latest[:1])
        return layers

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """θ_0 (p,): uniform within ±1/√(inputs of the layer), Kd for the first, as torch.nn.Linear begins."""
        theta = rng.uniform(-1.0, 1.0, self.size)
        for layer, (n, _) in zip(self.views(theta), self.shapes, strict=True):
            layer.W[...] /= math.sqrt(math.prod(n))
            layer.b[...] /= math.sqrt(math.prod(n))
        return theta


@functools.lru_cache(maxsize=64)
def layout(d: int, slots: int | None, hidden: tuple[int, ...]) -> WeightLayout:
    """The layout, made once."""
    return WeightLayout(d, slots, hidden)

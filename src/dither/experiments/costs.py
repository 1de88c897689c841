"""What a round of a network costs, from its layers alone: nothing is built, so that torch and the data may be missing.

score      one pass forward over K arms
train      steps/every times: forward and backward over `batch` rows (three passes) and Adam over all p weights
gradients  of all arms, one pass backward, and U over all p weights: what NeuralUCB and NeuralTS need
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dither.algorithms import Spec
from dither.experiments.environments import Outline

CALLS = 160.0  # µs: the calls of a round of a small network, in five runs at once
BESIDE = 90.0  # µs: those for the gradients of all arms
WEIGHT = 6e-3  # µs: Adam's step of a weight
PRODUCT = 7e-5  # µs: a multiplication and an addition


def settings(spec: Spec) -> dict[str, Any]:
    """Those of its network; {} for an algorithm that has none."""
    entry = spec.algorithm
    model: Any = entry.model
    known = {field.name: field.default for field in dataclasses.fields(model)}
    if "hidden" not in known:
        return {}
    preset = entry.presets[spec.preset]
    given = (dict(preset) if isinstance(preset, Mapping) else {}) | dict(spec.settings)
    return known | {name: value for name, value in given.items() if name in known}


def microseconds(env: Outline, spec: Spec) -> float:
    """Of one round of one run, on one core."""
    net, K = settings(spec), env.arms
    layers = list(_layers(env.dim, widths(net["hidden"]), widths(net.get("convolutions", ()))))
    products = sum(layer.products for layer in layers)
    weights = sum(layer.weights + layer.biases for layer in layers)
    weights += (K - 1 if env.disjoint else 0) * layers[0].weights
    often = net["steps"] / net["every"]
    cost = CALLS + PRODUCT * products * (K + often * 3 * net["batch"]) + WEIGHT * often * weights
    if _gradients(spec):
        cost += BESIDE + PRODUCT * products * 2 * K + WEIGHT / 2 * weights
    return cost


def widths(given: Any) -> tuple[int, ...]:
    """(50, 50) of 50, "50x50" or a tuple."""
    if isinstance(given, str):
        return tuple(int(part) for part in given.split("x"))
    return tuple(given) if hasattr(given, "__iter__") else (int(given),)


class _Layer(NamedTuple):
    """Of one arm."""

    products: int
    weights: int
    biases: int


def _layers(d: int, hidden: tuple[int, ...], filters: tuple[int, ...]) -> Iterator[_Layer]:
    """3 x 3 convolutions with 2 x 2 pooling, then dense layers: those of an arm of d numbers."""
    for n, m in itertools.pairwise((1, *filters)):
        yield _Layer(d * 9 * n * m, 9 * n * m, m)
        d //= 4
    for n, m in itertools.pairwise((d * (filters[-1] if filters else 1), *hidden, 1)):
        yield _Layer(n * m, n * m, m)


def _gradients(spec: Spec) -> bool:
    """Whether its policy asks for the gradients of all arms."""
    policy: Any = spec.algorithm.policy
    needs = policy.needs
    return not isinstance(needs, property) and bool(needs & {"gradient_norm", "sensitivity"})

"""About how long a run takes: an estimate from the sizes alone, so that neither torch nor the data are needed.

The constants were fitted to a few runs, five at a time, on a core of a 2.x GHz server. The estimate is good to a factor
of two or three. It has two uses. `dither figures` lists the time of every figure. And a progress bar needs the share of
each part, to tell the time left from the time that has passed.

A round of a network is estimated from its layers:

score      one pass forward over K arms
train      steps/every times: forward and backward over `batch` rows (three passes), and Adam over all p weights
gradients  of all arms: one pass backward, and U over all p weights; NeuralUCB and NeuralTS need them
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dither import models
from dither.algorithms import Spec
from dither.experiments.environments import Outline, outline
from dither.experiments.panels import Panel
from dither.simulate import configured

# All in microseconds.
DRAW = 0.015  # a feature of a context
CALLS = 160.0  # the calls of a round of a small network
BESIDE = 90.0  # the calls for the gradients of all arms
WEIGHT = 6e-3  # Adam's step of one weight
PRODUCT = 7e-5  # a multiplication and an addition
ROW = 0.15  # a feature of a row, where a generalised linear model reads its history

SOLVED = 128  # rounds in which a generalised linear model solves its history


def seconds(panel: Panel, *, algorithms: Iterable[Spec], runs: int) -> float:
    """About how many seconds these algorithms take on one core."""
    env = outline(panel.env)
    draw = DRAW * env.arms * env.dim
    each = sum(microseconds(env, spec, rounds=panel.rounds) for spec in algorithms)
    return 1e-6 * runs * (panel.rounds * draw + each)


def microseconds(env: Outline, spec: Spec, *, rounds: int) -> float:
    """About how many microseconds all rounds of one run take on one core."""
    if settings(spec):
        return rounds * _network(env, spec)
    d = env.dim
    step = 27 + (0.005 * env.arms * d**2 if env.disjoint else 0.008 * env.arms * d)
    model, _ = configured(spec, env, rounds=rounds)
    if not isinstance(model, models.GLM):
        return rounds * step
    counts = model.solver == "counts"
    if counts and env.fixed:
        return rounds * (step + 130 + 17 * d)
    reads = counts or spec.algorithm.perturbs == "reward"  # it reads all of its history in every round
    return rounds * (step + 12 * d + reads * ROW * d * rounds / 2) + min(rounds, SOLVED) * (240 + 4.5 * d)


def settings(spec: Spec) -> dict[str, Any]:
    """The settings of its network; {} for an algorithm that has none."""
    entry = spec.algorithm
    model: Any = entry.model
    known = {field.name: field.default for field in dataclasses.fields(model)}
    if "hidden" not in known:
        return {}
    preset = entry.presets[spec.preset]
    given = (dict(preset) if isinstance(preset, Mapping) else {}) | dict(spec.settings)
    return known | {name: value for name, value in given.items() if name in known}


def widths(given: Any) -> tuple[int, ...]:
    """(50, 50) of 50, "50x50" or a tuple."""
    if isinstance(given, str):
        return tuple(int(part) for part in given.split("x"))
    return tuple(given) if hasattr(given, "__iter__") else (int(given),)


def _network(env: Outline, spec: Spec) -> float:
    """Microseconds of a round of a network."""
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


class _Layer(NamedTuple):
    """Sizes for one arm."""

    products: int
    weights: int
    biases: int


def _layers(d: int, hidden: tuple[int, ...], filters: tuple[int, ...]) -> Iterator[_Layer]:
    """The layers for an arm of d numbers: 3 x 3 convolutions with 2 x 2 pooling, then dense ones."""
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

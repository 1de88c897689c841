"""About how long a run takes: an estimate from the sizes alone, so that neither torch nor the data are needed.

The constants were fitted to a few runs, five at a time, on a core of a 2.x GHz server. The estimate is good to a factor
of two or three. It has three uses. `dither figures` lists the time of every figure. A progress bar needs the share of
each part, to tell the time left from the time that has passed. And a plan needs to know how a short real run grows to a
long one (`calibration`).

A round of a network is estimated from its layers:

score      one pass forward over K arms
train      steps/every times: forward and backward over `batch` rows (three passes), and Adam over all p weights
gradients  of all arms: one pass backward, and U over all p weights; NeuralUCB and NeuralTS need them
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

from dither import models
from dither.algorithms import Spec
from dither.algorithms.algorithm import fields, of_any_dim
from dither.simulation.simulate import configured
from dither_bench.define.environments import Outline, outline
from dither_bench.define.panels import Panel, as_in

# All in microseconds.
DRAW = 0.011  # a feature of a context
COPY = 0.001  # a feature of a context of a fixed set
CALLS = 48.0  # the calls of a round of a small network
BESIDE = 30.0  # the calls for the gradients of all arms
WEIGHT = 2e-3  # Adam's step of one weight
PRODUCT = 2e-5  # a multiplication and an addition

FIRST = 64  # rounds in which Newton's method on counts takes as many steps as it ever does
SOLVED = 128  # rounds in which a generalised linear model solves its history


def seconds(panel: Panel, *, algorithms: Iterable[Spec], runs: int) -> float:
    """About how many seconds these algorithms take on one core."""
    env = outline(panel.env)
    each = sum(microseconds(env, as_in(panel, spec), rounds=panel.rounds) for spec in algorithms)
    return 1e-6 * runs * (drawing(env, rounds=panel.rounds) + each)


def drawing(env: Outline, *, rounds: int) -> float:
    """About how many microseconds the contexts of one run take: drawn anew, or copied from a few fixed sets."""
    features = env.dim if env.disjoint else env.arms * env.dim
    return rounds * (2.0 + (COPY if env.fixed else DRAW) * features)


def microseconds(env: Outline, spec: Spec, *, rounds: int) -> float:
    """About how many microseconds all rounds of one run take on one core."""
    if "hidden" in fields(spec.algorithm.model):
        return rounds * _network(env, spec)
    d = env.dim
    step = 10 + (0.0012 * env.arms * d**2 if env.disjoint else 0.002 * env.arms * d)
    model, _ = configured(spec, env, rounds=rounds)
    if not isinstance(model, models.GLM):
        return rounds * step
    counts = model.solver == "counts"
    if counts and env.fixed:
        early = min(rounds, FIRST) * (1 + math.log(max(rounds, FIRST) / FIRST))  # Newton's steps become fewer
        return rounds * (step + 230 + 4.5 * d) + early * (80 + 13 * d)
    reads = counts or spec.algorithm.perturbs == "reward"  # it reads all of its history in every round
    solved = min(rounds, SOLVED) * (175 + 19 * d)
    passes = (20_000 + 700 * d) * math.log(max(rounds, SOLVED) / SOLVED)  # ever fewer over the history, ever longer
    whole = 150 + 13 * d + (0.08 + 0.0025 * d) * rounds / 2  # to read all rows, of which there are ever more
    return rounds * (step + 25 + 2.7 * d + reads * whole) + solved + passes


def _network(env: Outline, spec: Spec) -> float:
    """Microseconds of a round of a network."""
    net, K = network(spec), env.arms
    layers = list(_layers(env.dim, _widths(net["hidden"]), _widths(net.get("convolutions", ()))))
    products = sum(products for products, _, _ in layers)
    weights = sum(weights + biases for _, weights, biases in layers)
    weights += (K - 1 if env.disjoint else 0) * layers[0][1]
    often = net["steps"] / net["every"]
    cost = CALLS + PRODUCT * products * (K + often * 3 * net["batch"]) + WEIGHT * often * weights
    if _gradients(spec):
        cost += BESIDE + PRODUCT * products * 2 * K + WEIGHT / 2 * weights
    return cost


def network(spec: Spec) -> dict[str, Any]:
    """The settings of an algorithm's network, without the network: neither torch nor the data are needed."""
    settings = dict(of_any_dim(spec.algorithm.presets[spec.preset], dict(spec.settings))) | dict(spec.settings)
    model: Any = spec.algorithm.model
    return {field.name: settings.get(field.name, field.default) for field in dataclasses.fields(model)}


def _widths(layers: Any) -> tuple[int, ...]:
    """(50, 50) of 50, "50x50" or a tuple."""
    if isinstance(layers, str):
        return tuple(map(int, layers.split("x")))
    return tuple(layers) if isinstance(layers, Iterable) else (int(layers),)


def _layers(d: int, hidden: tuple[int, ...], filters: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Products, weights and biases of the layers for an arm of d numbers.

    3 x 3 convolutions with 2 x 2 pooling come first, then dense layers.
    """
    for n, m in itertools.pairwise((1, *filters)):
        yield d * 9 * n * m, 9 * n * m, m
        d //= 4
    for n, m in itertools.pairwise((d * (filters[-1] if filters else 1), *hidden, 1)):
        yield n * m, n * m, m


def _gradients(spec: Spec) -> bool:
    """Whether its policy asks for the gradients of all arms."""
    policy: Any = spec.algorithm.policy
    needs = policy.needs
    return not isinstance(needs, property) and bool(needs & {"gradient_norm", "sensitivity"})

"""R runs of a network at once, as `simulate(device="cpu")` computes them in torch, beside the same runs in NumPy.

    python benchmarks/at_once.py [perceptron module convolutions]

Perceptrons go in lockstep in NumPy, what torch computes goes run after run there. Processor time, one thread,
microseconds a round of a run; medians over repeats that time both sides in turn. The last column says how many times as
quick the device is. Needs torch.
"""

import sys
import time

import numpy as np
import torch
from torch import nn

import dither
from dither import envs, models, policies


def world(d: int, K: int) -> envs.Classification:
    rng = np.random.default_rng(0)
    X = rng.random((1000, d))
    return envs.Classification(X, np.argmax((X - 0.5) @ rng.normal(size=(d, K)), axis=1))


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(63, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 1))


SMALL, IMAGES = world(9, 7), world(784, 10)
PAPER = dict(convolutions=(32, 64), hidden=(128,), image=(28, 28), slots=10)
KINDS = {  # environment, network, numbers of runs, rounds
    "perceptron": (SMALL, lambda: models.Network(slots=7), (1, 10, 50), 30),
    "module": (SMALL, lambda: models.Network(module=layers(), slots=7), (1, 10, 50), 15),
    "convolutions": (IMAGES, lambda: models.Network(**PAPER), (1, 10), 2),
}
POLICIES = {"DeepFP": policies.GeneralFeaturePerturbation(), "NeuralUCB": policies.NeuralUCB()}


def seconds(env: envs.Classification, agent: tuple, *, runs: int, rounds: int, device: str | None) -> float:
    """The processor time of so many rounds, without what comes before the first."""
    times, more = [], {} if device is None else {"batch": runs}
    for n in (2, rounds + 2):
        start = time.process_time()
        dither.simulate(env, {"it": agent}, runs=runs, rounds=n, device=device, **more)
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / rounds / runs


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    for name in names or KINDS:
        env, network, sizes, rounds = KINDS[name]
        for which, policy in POLICIES.items():
            for runs in sizes:
                pairs = []
                for _ in range(4):
                    settings = dict(runs=runs, rounds=4 * rounds if runs == 1 else rounds)
                    pairs.append([seconds(env, (network(), policy), device=at, **settings) for at in (None, "cpu")])
                here, there = np.median(pairs[1:], axis=0) * 1e6
                ratio = float(np.median([a / b for a, b in pairs[1:]]))
                print(
                    f"{name:12} {which:10} R={runs:2}: NumPy {here:7.0f} µs, at once {there:7.0f}, {ratio:.2f} times",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])

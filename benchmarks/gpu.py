"""Simulations on a device beside NumPy: are they the same, and how long do they take? Needs torch; about five minutes.

python benchmarks/gpu.py [--device cuda] [--runs 4096] [--quick]

It prints the name of the card and a table for docs/speed.md. `equal` is the share of runs whose regret is that of
NumPy to 1e-9. `alone` is the same for run 7 by itself on the device, beside run 7 among all. `z` compares the mean
regrets of other seeds, in standard errors: a normal number where the laws agree.
"""

import argparse
import platform
import time

import numpy as np

import dither
from dither import envs

CASES = [  # environment, algorithms, rounds
    (envs.Linear(dim=20), ["LinFP", "LinTS", "RandLinUCB"], 200),
    (envs.Linear(dim=20, contexts=1), ["LinFP"], 200),
    (envs.Linear(dim=40, arms=1000, contexts=1), ["LinFP"], 50),
    (envs.Masked(envs.Walking(envs.Linear(dim=20)), share=0.5), ["LinFP"], 50),
    (envs.Logistic(dim=20, norm=4.0), ["GLMFP", "LogTS"], 100),
    (envs.Logistic(dim=20, norm=4.0), ["GLMFP:solver=online"], 200),
    (envs.Logistic(dim=20, norm=4.0, contexts=1), ["GLMFP:solver=counts"], 100),
]


def module() -> tuple[dither.models.Network, dither.policies.EpsGreedy]:
    """A network that torch computes, and a policy."""
    from torch import nn

    layers = nn.Sequential(nn.Linear(20, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 1))
    return dither.models.Network(module=layers), dither.policies.EpsGreedy()


def card(device: str) -> str:
    """What the numbers were made on."""
    import torch

    if not device.startswith("cuda"):
        return f"{device}, {platform.processor() or platform.machine()}, torch {torch.__version__}"
    return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}, torch {torch.__version__}"


def timed(env: object, algorithms: object, **settings: object) -> tuple[np.ndarray, float]:
    """The last regrets (A, R) and the seconds."""
    start = time.perf_counter()
    found = dither.simulate(env, algorithms, **settings)
    return found.regret[..., -1], time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=4096)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    given = parser.parse_args()
    print(f"{card(given.device)}; {given.runs} runs at once (8 of the module)\n")
    columns = ["environment", "algorithms", "rounds", "equal", "alone", "z", "seconds", "NumPy's"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for env, algorithms, rounds in [*CASES, (envs.Linear(dim=20), {"module": module()}, 100)]:
        rounds = max(rounds // 10, 5) if given.quick else rounds
        size = dict(rounds=rounds, record=[rounds], runs=8 if isinstance(algorithms, dict) else given.runs)
        timed(env, algorithms, rounds=2, runs=2, device=given.device)  # wakes the device
        there, seconds = timed(env, algorithms, device=given.device, **size)
        here, numpys = timed(env, algorithms, **size)
        other, _ = timed(env, algorithms, device=given.device, seed=1, **size)
        alone, _ = timed(env, algorithms, device=given.device, **size | {"runs": [7]})
        equal, same = (np.isclose(*pair, rtol=1e-9, atol=1e-9) for pair in ((there, here), (alone[:, 0], there[:, 7])))
        z = (other.mean(1) - here.mean(1)) / np.hypot(*(a.std(1) / np.sqrt(a.shape[1]) for a in (other, here)))
        cells = [f"{type(env).__name__}, d={env.dim}, K={env.arms}", ", ".join(algorithms), f"{rounds}"]
        cells += [f"{equal.mean():.1%}", f"{same.mean():.0%}", ", ".join(f"{each:+.1f}" for each in z)]
        print(f"| {' | '.join([*cells, f'{seconds:.1f}', f'{numpys:.1f}'])} |", flush=True)


if __name__ == "__main__":
    main()

"""The same simulation on NumPy and on a GPU: agreement of the choices and the ratio of times. Needs torch and a GPU.

python benchmarks/gpu.py [--device cuda]
"""

import argparse
import time

import numpy as np

import dither


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    import torch

    name = torch.cuda.get_device_name() if given.device == "cuda" else given.device
    cases = [
        (dither.envs.Linear(dim=20), ["LinFP", "LinTS", "RandLinUCB"], 100, 300),
        (dither.envs.Linear(dim=40, arms=1000), ["LinFP"], 200, 100),
        (dither.envs.Logistic(dim=20, norm=4.0), ["GLMFP", "LogTS"], 50, 200),
        (dither.envs.Logistic(dim=20, norm=4.0), ["GLMFP:solver=online"], 50, 200),
        (dither.envs.Logistic(dim=20, norm=4.0, contexts=1), ["GLMFP:solver=counts"], 50, 200),
    ]
    for env, algorithms, runs, rounds in cases:
        size = dict(runs=runs, rounds=rounds, batch=runs, record=[rounds])
        dither.simulate(env, algorithms, device=given.device, runs=2, rounds=3)  # wakes the device
        found, seconds = {}, {}
        for device in (None, given.device):
            start = time.perf_counter()
            found[device] = dither.simulate(env, algorithms, device=device, **size).regret[..., -1]
            seconds[device] = time.perf_counter() - start
        same = np.isclose(found[None], found[given.device], rtol=1e-9, atol=1e-9).mean()
        ratio = seconds[given.device] / seconds[None]
        print(
            f"{name}: {type(env).__name__} d={env.dim} K={env.arms} {','.join(algorithms)}, {runs} runs of {rounds}: "
            f"{same:.1%} of the regrets equal; it takes {ratio:.2f} times as long as NumPy ({seconds[None]:.1f} s)"
        )


if __name__ == "__main__":
    main()

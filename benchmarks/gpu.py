"""Simulations on a device beside NumPy: are they the same, and how long do they take? Needs torch; about five minutes.

python benchmarks/gpu.py [--device cuda] [--runs 4096] [--quick]
python benchmarks/gpu.py --targets [--device cuda]

It prints the name of the card and a table for docs/speed.md, for both kinds of chance. `equal` is the share of runs
whose regret is that of NumPy to 1e-9. `alone` is the same for run 7 by itself on the device, beside run 7 among all.
`z` compares the mean regrets of other seeds, in standard errors: a normal number where the laws agree.

--targets prints what a card should reach with chance="counter": LinFP at K = 100, d = 20 with 4,096 runs is at least 40
times as quick as NumPy on one core, and all of Figure 3 (top) with 4,096 runs takes less than five minutes. The table
of the figure has each algorithm's mean regret, its standard error, and its difference from LinFP in standard errors.
"""

import argparse
import os
import platform
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy on one core

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
TIMES, SECONDS = 40, 300  # the targets


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


def row(*cells: object) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def compare(device: str, runs: int, *, quick: bool) -> None:
    """The table of all cases."""
    print(f"{card(device)}; {runs} runs at once (8 of the module)\n")
    columns = ["environment", "algorithms", "rounds", "chance", "equal", "alone", "z", "seconds", "NumPy's"]
    row(*columns)
    print("|---" * len(columns) + "|")
    for env, algorithms, rounds in [*CASES, (envs.Linear(dim=20), {"module": module()}, 100)]:
        rounds = max(rounds // 10, 5) if quick else rounds
        for chance in ("streams", "counter"):
            size: Any = dict(rounds=rounds, record=[rounds], runs=8 if isinstance(algorithms, dict) else runs)
            size["chance"] = chance
            timed(env, algorithms, device=device, **size | {"rounds": 2, "record": [2]})  # wakes the device, compiles
            there, seconds = timed(env, algorithms, device=device, **size)
            here, numpys = timed(env, algorithms, **size)
            other, _ = timed(env, algorithms, device=device, seed=1, **size)
            alone, _ = timed(env, algorithms, device=device, **size | {"runs": [7]})
            equal = np.isclose(there, here, rtol=1e-9, atol=1e-9)
            same = np.isclose(alone[:, 0], there[:, 7], rtol=1e-9, atol=1e-9)
            z = (other.mean(1) - here.mean(1)) / np.hypot(*(a.std(1) / np.sqrt(a.shape[1]) for a in (other, here)))
            cells = [f"{type(env).__name__}, d={env.dim}, K={env.arms}", ", ".join(algorithms), rounds, chance]
            cells += [f"{equal.mean():.1%}", f"{same.mean():.0%}", ", ".join(f"{each:+.1f}" for each in z)]
            row(*cells, f"{seconds:.1f}", f"{numpys:.1f}")


def targets(device: str, runs: int, *, quick: bool) -> None:
    """The two targets, and what the figure decides."""
    env, rounds = envs.Linear(dim=20), 20 if quick else 500
    size: Any = dict(rounds=rounds, record=[rounds])
    timed(env, ["LinFP"], runs=runs, device=device, chance="counter", rounds=2, record=[2])
    _, there = timed(env, ["LinFP"], runs=runs, device=device, chance="counter", **size)
    _, here = timed(env, ["LinFP"], runs=50, **size)
    each = [1e6 * there / runs / rounds, 1e6 * here / 50 / rounds]  # µs a run and round
    print(f"{card(device)}; {runs} runs\n\nLinFP, K = 100, d = 20, µs a run and round: {each[0]:.3f} on the device, ")
    print(f"{each[1]:.1f} by NumPy's streams on one core: {each[1] / each[0]:.0f} times (target: {TIMES})\n")

    from dither_bench.define import environments, figures, panels

    figure, start = figures.find("fig3-linear"), time.perf_counter()
    row("panel", "algorithm", "mean regret", "standard error", "more than LinFP, in standard errors")
    print("|---" * 5 + "|")
    for panel in figure.panels:
        agents = {str(spec): panels.as_in(panel, spec) for spec in panel.algorithms}
        T = panel.rounds // 100 if quick else panel.rounds
        how: Any = dict(runs=runs, rounds=T, record=[T], device=device, chance="counter")
        regret, _ = timed(environments.build(panel.env), agents, **how)
        for name, of in zip(agents, regret, strict=True):
            more = of - regret[list(agents).index("LinFP")]  # paired: the same contexts and noise
            se = [kind.std(ddof=1) / np.sqrt(runs) for kind in (of, more)]
            row(panel.name, name, f"{of.mean():.1f}", f"{se[0]:.2f}", f"{more.mean() / se[1]:+.1f}" if se[1] else "")
    print(f"\nall of it: {time.perf_counter() - start:.0f} s (target: {SECONDS})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=4096)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds, or a hundredth of the figure's")
    parser.add_argument("--targets", action="store_true", help="the two targets alone")
    given = parser.parse_args()
    (targets if given.targets else compare)(given.device, given.runs, quick=given.quick)


if __name__ == "__main__":
    main()

"""The table of docs/environments.md: the regret of a few algorithms in each world. Three minutes on one core.

python benchmarks/worlds.py [--runs 40] [--rounds 2000]
"""

import argparse

import numpy as np

import dither
from dither import envs

LINEAR = envs.Linear(dim=10, arms=20)
WORLDS = {
    "`Linear(dim=10, arms=20)`, which all others are around": LINEAR,
    "`Masked(share=0.5)`": envs.Masked(LINEAR, share=0.5),
    "`Masked(least=2, most=20)`": envs.Masked(LINEAR, least=2, most=20),
    "`Abrupt(rounds=1001)`": envs.Abrupt(LINEAR, rounds=1001),
    "`Rotating(period=4000)`": envs.Rotating(LINEAR, period=4000.0),
    "`Walking(step=0.01)`": envs.Walking(LINEAR, step=0.01),
    "`StudentNoise(df=3, scale=1/√3)`: sd 1": envs.StudentNoise(LINEAR, df=3.0, scale=3**-0.5),
    "`ParetoNoise(alpha=2.5, scale=0.67)`: sd 1": envs.ParetoNoise(LINEAR, alpha=2.5, scale=1.5 / 5**0.5),
    "`ContaminatedNoise(scale=0.41)`: sd 1": envs.ContaminatedNoise(LINEAR, scale=5.95**-0.5),
    "`Misspecified(zeta=0.2)`": envs.Misspecified(LINEAR, zeta=0.2),
}
ALGORITHMS = ["LinFP", "LinTS", "Greedy"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2000)
    given = parser.parse_args()
    print(f"| {given.runs} runs of {given.rounds} rounds | {' | '.join(ALGORITHMS)} |\n|---|---|---|---|")
    algorithms = {name: f"{name}:preset=paper" for name in ALGORITHMS}
    for name, env in WORLDS.items():
        found = dither.simulate(env, algorithms, runs=given.runs, rounds=given.rounds, record=[given.rounds])
        regret = found.regret[..., 0]
        errors = regret.std(axis=1, ddof=1) / np.sqrt(given.runs)
        cells = [f"{mean:.1f} ± {se:.1f}" for mean, se in zip(regret.mean(axis=1), errors, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

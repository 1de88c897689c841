"""What forgetting costs and what it brings: `python benchmarks/drift.py speed` and `python benchmarks/drift.py regret`.

speed : one update of a live bandit, as a ratio to a plain update of the same algorithm. The two take turns in one
    process, and the median of the processor's time of many stretches counts.
regret : the regret of algorithms with and without forgetting in worlds that change, and its standard error over runs

Each prints a table for docs/drift.md. Set OMP_NUM_THREADS=1.
"""

import sys
import time

import numpy as np

import dither

STRETCH = 40  # updates between two looks at the clock


def ratios(name: str, dim: int, settings: list[dict], *, rounds: int, turns: int, **common) -> list[float]:
    """The time of an update with each of the settings, in updates without."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
    r = (rng.random(rounds) < 1 / (1 + np.exp(-3 * X[:, 0]))) * 1.0
    bandits = [dither.ALGORITHMS[name](dim=dim, seed=0, **common, **how) for how in ({}, *settings)]
    for bandit in bandits:
        bandit.update(X, r)
    spent: list[list[float]] = [[] for _ in bandits]
    for turn in range(turns):
        for k, bandit in enumerate(bandits):
            rows = [(turn * STRETCH + i) % rounds for i in range(STRETCH)]
            start = time.process_time()
            for i in rows:
                bandit.update(X[i], r[i])
            spent[k].append(time.process_time() - start)
    plain, *others = (float(np.median(times)) for times in spent)
    return [t / plain for t in others]


def speed() -> None:
    """The table of ratios."""
    how = [{"discount": 0.99}, {"window": 1000}]
    print("| model | d | `discount=0.99` | `window=1000` |\n|---|---|---|---|")
    for dim in (8, 32, 64, 128):
        print(
            f"| linear | {dim} |",
            " | ".join(f"{x:.2f}" for x in ratios("LinFP", dim, how, rounds=2000, turns=150)),
            "|",
        )
    how = [{"discount": 0.99}, {"discount": 0.999}, {"window": 1000}]
    print("\n| model | d | `discount=0.99` | `discount=0.999` | `window=1000` |\n|---|---|---|---|---|")
    for dim in (8, 32):
        found = ratios("GLMFP", dim, how, rounds=4000, turns=12, lam=1.0)
        print(f"| logistic | {dim} |", " | ".join(f"{x:.2f}" for x in found), "|")


WORLDS = {
    "nothing changes": lambda env: env,
    "θ* is drawn anew at 1,000": lambda env: dither.envs.Abrupt(env, rounds=1000),
    "θ* turns, period 4,000": lambda env: dither.envs.Rotating(env, period=4000),
    "θ* walks, 0.02 a round": lambda env: dither.envs.Walking(env, step=0.02),
}
MEMORY = ("", ":discount=0.99", ":discount=0.997", ":window=200", ":window=500")


def regret(runs: int = 20, rounds: int = 2000) -> None:
    """The table of regrets."""
    names = [f"LinFP{how}" for how in MEMORY] + [f"{name}{how}" for name in ("LinTS", "LinUCB") for how in MEMORY[:2]]
    print(f"| algorithm | {' | '.join(WORLDS)} |\n|---|{'---|' * len(WORLDS)}")
    columns = []
    for world in WORLDS.values():
        env = world(dither.envs.Linear(dim=5, arms=20, noise=0.5))
        found = dither.simulate(env, names, runs=runs, rounds=rounds, seed=0)
        columns.append(found.regret[:, :, -1])
    for i, name in enumerate(names):
        own = [column[i] for column in columns]
        cells = (f"{x.mean():.0f} ± {x.std(ddof=1) / np.sqrt(runs):.0f}" for x in own)
        print(f"| `{name}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    {"speed": speed, "regret": regret}[sys.argv[1]]()

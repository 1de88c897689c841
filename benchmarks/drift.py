"""What forgetting costs and what it brings: `python benchmarks/drift.py speed` and `python benchmarks/drift.py regret`.

speed : one update of a live bandit, as a ratio to a plain update of the same algorithm that has learnt as many rows as
    the other one remembers: 1/(1 - γ), or W. The plain one stays at that number. All take turns in one process, and
    the median of the processor's time of many stretches counts.
regret : the regret of algorithms with and without forgetting in worlds that change, and its standard error over runs

Each prints a table for docs/drift.md. Set OMP_NUM_THREADS=1.
"""

import copy
import sys
import time

import numpy as np

import dither

STRETCH = 40  # updates between two looks at the clock


def ratios(name: str, dim: int, settings: list[dict], *, turns: int, **common) -> list[tuple[float, float]]:
    """The time of an update with each of the settings: in seconds, and in plain updates."""
    rng = np.random.default_rng(0)
    rounds = 20_000
    X = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
    r = (rng.random(rounds) < 1 / (1 + np.exp(-3 * X[:, 0]))) * 1.0

    def learnt(n: int, **how) -> dither.Bandit:
        bandit = dither.ALGORITHMS[name](dim=dim, seed=0, **common, **how)
        bandit.update(X[:n], r[:n])
        return bandit

    memories = [how.get("window") or round(1 / (1 - how["discount"])) for how in settings]
    plain = {n: learnt(n) for n in sorted(set(memories))}
    bandits = [learnt(rounds, **how) for how in settings]
    for bandit in bandits:  # what a batch leaves behind is not what a live bandit has
        for i in range(50):
            bandit.update(X[i], r[i])
    spent: dict[int, list[float]] = {n: [] for n in plain}
    own: list[list[float]] = [[] for _ in bandits]
    for turn in range(turns):
        rows = [(turn * STRETCH + i) % rounds for i in range(STRETCH)]
        for n, bandit in plain.items():
            spent[n].append(_stretch(copy.deepcopy(bandit), X, r, rows))
        for k, bandit in enumerate(bandits):
            own[k].append(_stretch(bandit, X, r, rows))
    of_plain = {n: float(np.median(times)) for n, times in spent.items()}
    mine = [float(np.median(times)) for times in own]
    return [(t / STRETCH, t / of_plain[n]) for t, n in zip(mine, memories, strict=True)]


def _stretch(bandit: dither.Bandit, X: np.ndarray, r: np.ndarray, rows: list[int]) -> float:
    """The processor's time of some updates, after one that is not counted."""
    bandit.update(X[-1], r[-1])
    start = time.process_time()
    for i in rows:
        bandit.update(X[i], r[i])
    return time.process_time() - start


def speed() -> None:
    """The table of ratios."""
    how = [{"discount": 0.99}, {"discount": 0.999}, {"window": 100}, {"window": 1000}]
    print(
        "| model | d |", " | ".join(f"`{k}={v}`" for one in how for k, v in one.items()), "|\n|---|---|---|---|---|---|"
    )
    for kind, name, dims, turns, common in (
        ("linear", "LinFP", (8, 32, 64, 128), 100, {}),
        ("logistic", "GLMFP", (8, 32), 15, {"lam": 1.0}),
    ):
        for dim in dims:
            found = ratios(name, dim, how, turns=turns, **common)
            print(f"| {kind} | {dim} |", " | ".join(f"{x:.2f} ({t * 1e6:.0f} µs)" for t, x in found), "|", flush=True)


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

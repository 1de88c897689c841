"""The price of a baseline that is kept: regret with and without the demand, and how often the demand would fail.

    python benchmarks/conservative.py [RUNS]       (docs/demands.md has the table)

Five arms of mean 0.8 (the baseline), 0.9, 0.1, 0.2, 0.0; noise of sd 0.1; a share of 0.1 of the baseline may be lost.
"""

import sys

import numpy as np

import dither

THETA, ROUNDS, LOSS = np.array([0.8, 0.9, 0.1, 0.2, 0.0]), 2000, 0.1


def run(baseline, seed, algorithm):
    b = algorithm(preset="paper", dim=5, lam=1.0, seed=seed, baseline=baseline)
    rng, X, shown = np.random.default_rng(seed), np.eye(5), []
    for _ in range(ROUNDS):
        arm = b.choose(X).arm
        b.update(X[arm], THETA[arm] + 0.1 * rng.normal())
        shown.append(arm)
    paid = THETA[np.array(shown)]
    surplus = np.cumsum(paid - (1 - LOSS) * THETA[0])
    return np.sum(THETA.max() - paid), surplus.min(), np.mean(np.array(shown) == 0)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    demands = {
        "none": None,
        "known": dither.Baseline(0, loss=LOSS, reward=0.8, sigma=0.1, S=1.3),
        "learnt": dither.Baseline(0, loss=LOSS, sigma=0.1, S=1.3),
    }
    for algorithm in (dither.LinFP, dither.LinUCB):
        for name, demand in demands.items():
            regret, least, shown = np.array([run(demand, seed, algorithm) for seed in range(runs)]).T
            print(
                f"{algorithm.name:7} {name:7} regret {regret.mean():6.1f} ± {regret.std() / runs**0.5:4.1f}"
                f"   baseline shown {shown.mean():.2f}   worst surplus {least.min():7.2f}"
                f"   below 0 in {np.mean(least < -1e-9):.2f} of {runs} runs",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""DeepFP and its first order: noise in the features, or noise on the score by the network's own input sensitivity?

    DeepFP          f(x_i + c ζ_i/√t),  ζ_i ~ N(0, I)            propensities by Monte Carlo
    DeepFP-scalar   f(x_i) + c z_i ‖∇_x f(x_i)‖/√t,  z_i ~ N(0, 1)   propensities exact
    DeepGreedy      f(x_i)

The first two agree where f is straight on the scale of the noise. Two things are measured: their errors for the same c
on the same rows, and how far apart their probabilities are in the state of one network after t rounds of play.

    python examples/sensitivity.py --data digits --runs 5 --rounds 5000
    DITHER_DATA=... python examples/sensitivity.py --data shuttle      # or mushroom: dither.datasets
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import dither
from dither import datasets
from dither.experiments import environments

SCALES = (0.1, 1.0, 3.0)
Rows = list[tuple[Any, ...]]


def environment(data: str) -> Any:
    """Standardised features; each class is an arm. A network has its own biases, so there is no intercept."""
    if data == "digits":
        return environments.digits(scale="standard", intercept=False)
    return datasets.environment(data, "standard", intercept=False)


def play(env: Any, *, scales: Sequence[float] = SCALES, runs: int, rounds: int) -> dict[str, np.ndarray]:
    """Errors of each algorithm in each run: {name: (runs,)}."""
    names = ["DeepGreedy"] + [f"{name}:c={c:g}" for c in scales for name in ("DeepFP", "DeepFP-scalar")]
    results = dither.simulate(env, names, runs=runs, rounds=rounds, seed=0, record=[rounds])
    return dict(zip(results.algorithms, results.regret[:, :, -1], strict=True))


def agreement(
    env: Any,
    *,
    c: float = 1.0,
    at: Sequence[int] = (10, 100, 1000),
    contexts: int = 50,
    draws: int = 2000,
    seed: int = 0,
) -> Rows:
    """How the probabilities of DeepFP and DeepFP-scalar differ, on contexts that the bandit has not met.

    Both have the state of one DeepFP bandit after t rounds.

    -> for each t: (t, distance of a Monte Carlo estimate from its own law, mean and largest total variation
    distance, share of contexts with the same likeliest arm, correlation of the probabilities, mean largest probability)
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(env.y))
    rows, fresh = rows[contexts:], env.X[rows[:contexts]]
    wide = dither.DeepFP(dim=env.dim, disjoint=env.arms, c=c, seed=seed)
    scalar = dither.DeepFPScalar(dim=env.dim, disjoint=env.arms, c=c, seed=seed)
    table: Rows = []
    for t in range(1, max(at) + 1):
        if t in at:
            scalar.state, scalar.observations = wide.state, wide.observations  # the same network at the same t
            p, se, _ = wide.propensities(fresh, detail=True, draws=draws)
            q = scalar.propensities(fresh)
            distance = 0.5 * np.sum(np.abs(p - q), axis=1)
            noise = 0.5 * np.sum(np.sqrt(2 / np.pi) * se, axis=1)  # E|error| of a normal error
            same = np.mean(np.argmax(p, axis=1) == np.argmax(q, axis=1))
            correlation = np.corrcoef(p.ravel(), q.ravel())[0, 1]
            numbers = (noise.mean(), distance.mean(), distance.max(), same, correlation, np.mean(np.max(p, axis=1)))
            table.append((t, *map(float, numbers)))
        row = rows[t % len(rows)]
        arm = wide.choose(env.X[row]).arm
        wide.update(env.X[row], float(arm == env.y[row]), arm=arm)
    return table


def main(
    *,
    data: str = "digits",
    runs: int = 5,
    rounds: int = 5000,
    scales: Sequence[float] = SCALES,
    at: Sequence[int] = (10, 100, 1000),
    **settings: Any,
) -> tuple[dict[str, np.ndarray], dict[float, Rows]]:
    """Run all -> (errors {algorithm: (runs,)}, agreement {c: rows})."""
    env = environment(data)
    near = {c: agreement(env, c=c, at=at, **settings) for c in scales}
    return play(env, scales=scales, runs=runs, rounds=rounds), near


def show(errors: dict[str, np.ndarray], near: dict[float, Rows], *, data: str, runs: int, rounds: int) -> None:
    """Print both tables."""
    print(f"{data}: errors in {rounds} rounds, {runs} runs: mean ± se; each run")
    for name, e in errors.items():
        print(f"{name:20} {e.mean():8.1f} ± {e.std(ddof=1) / np.sqrt(len(e)):5.1f}   {' '.join(f'{x:.0f}' for x in e)}")
    print("\nDeepFP-scalar less DeepFP at the same c, paired")
    for c in near:
        gap = errors[f"DeepFP-scalar:c={c:g}"] - errors[f"DeepFP:c={c:g}"]
        print(f"c={c:<6g} {gap.mean():8.1f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):5.1f}")
    print("\ntotal variation distance of their probabilities in one state (Monte Carlo alone: first number)")
    for c, rows in near.items():
        for t, noise, mean, largest, same, correlation, top in rows:
            print(
                f"c={c:<4g} t={t:<5} {noise:.3f}   mean {mean:.3f}, largest {largest:.3f}, same likeliest arm "
                f"{same:.0%}, correlation {correlation:.3f}, DeepFP's likeliest arm has {top:.2f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, or a name that `dither datasets` lists")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5000)
    options = vars(parser.parse_args())
    show(*main(**options), **options)

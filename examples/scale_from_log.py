"""DeepFP's scale c from a log: what off-policy evaluation says of each candidate, and what each candidate does live.

There are two ways to ask a log:

    frozen   Train a network on the first half of the log and freeze it. Then estimate by DR what DeepFP with each c
             would have earned on the second half. The log needs propensities above 0 for all arms. This way sees what
             exploring costs. It does not see what exploring teaches.
    replay   Let DeepFP with each c learn along a uniform log, and count the rows where it agrees with the log
             (`dither.ope.replay`). This way sees both, over n/K rounds.

The log of "frozen" is made by a greedy network with a floor of 0.2, that of "replay" by uniform choice. Then every
candidate plays live. The scale that a log chose is charged with the errors that it makes there.

    python examples/scale_from_log.py --data digits --logs 5 --rows 5000 --runs 5 --rounds 3000
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

import dither
from dither import datasets
from dither.experiments import environments

SCALES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
DEFAULT = 1.0
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X (n, d), arms, rewards and propensities (n,) each
Table = dict[str, tuple[np.ndarray, np.ndarray]]  # way -> values and standard errors (logs, C)


def environment(data: str, preprocessing: str = "standard") -> Any:
    """Each class is an arm. Features are standardised, or rows have length 1 ("unit"); there the noise weighs more.

    A network has its own biases, so there is no intercept.
    """
    if data == "digits":
        return environments.digits(scale=preprocessing, intercept=False)
    return datasets.environment(data, preprocessing, intercept=False)


def logged(env: Any, rows: int, *, floor: float, seed: int) -> Rows:
    """A log of a greedy network with a floor; a floor of 1 is uniform choice.

    The propensities are exact.
    """
    rng = np.random.default_rng([7, seed])
    bandit = dither.DeepGreedy(dim=env.dim, disjoint=env.arms, floor=floor, seed=seed)
    at = rng.integers(len(env.y), size=rows)
    X, y = env.X[at], env.y[at]
    a, r, p = np.empty(rows, dtype=int), np.empty(rows), np.empty(rows)
    for i in range(rows):
        d = bandit.choose(X[i])
        a[i], r[i], p[i] = d.arm, float(d.arm == y[i]), d.propensity
        if floor < 1:
            bandit.update(X[i], r[i], arm=d.arm)
    return X, a, r, p


def frozen(
    rows: Rows, scales: Sequence[float], *, arms: int, judged: int = 1000, draws: int = 100
) -> list[dither.ope.Estimate]:
    """The DR estimate of each c, with the network frozen after the first half.

    A few draws for each context are enough. DR is linear in the probabilities of the new policy, so their errors
    average out.
    """
    X, a, r, p = rows
    half = len(r) // 2
    teacher = dither.DeepGreedy(dim=X.shape[1], disjoint=arms, seed=0)
    teacher.update(X[:half], r[:half], arm=a[:half])
    later = slice(half, half + judged)
    M = teacher.predict(X[later])
    estimates = []
    for c in scales:
        bandit = dither.DeepFP(dim=X.shape[1], disjoint=arms, c=c, seed=0)
        bandit.state, bandit.observations = teacher.state, teacher.observations
        Q = bandit.propensities(X[later], draws=draws)
        estimates.append(dither.ope.dr(r[later], a[later], p[later], Q, M))
    return estimates


def replayed(rows: Rows, scales: Sequence[float], *, arms: int) -> list[dither.ope.Estimate]:
    """The mean reward of DeepFP with each c as it learns along a uniform log."""
    X, a, r, p = rows
    bandits = [dither.DeepFP(dim=X.shape[1], disjoint=arms, c=c, seed=0) for c in scales]
    return [dither.ope.replay(bandit, X, a, r, p) for bandit in bandits]


def live(env: Any, scales: Sequence[float], *, runs: int, rounds: int) -> np.ndarray:
    """Errors of DeepFP with each c in fresh runs: (C, runs)."""
    names = [f"DeepFP:c={c:g}" for c in scales]
    return dither.simulate(env, names, runs=runs, rounds=rounds, seed=1, record=[rounds]).regret[:, :, -1]


def main(
    *,
    data: str = "digits",
    preprocessing: str = "standard",
    logs: int = 5,
    rows: int = 5000,
    runs: int = 5,
    rounds: int = 3000,
    scales: Sequence[float] = SCALES,
) -> tuple[Table, np.ndarray]:
    """Run all -> (estimates, errors live (C, runs))."""
    env = environment(data, preprocessing)
    ways = {
        "frozen": [frozen(logged(env, rows, floor=0.2, seed=s), scales, arms=env.arms) for s in range(logs)],
        "replay": [replayed(logged(env, rows, floor=1.0, seed=s), scales, arms=env.arms) for s in range(logs)],
    }
    table = {
        way: (np.array([[e.value for e in one] for one in logs]), np.array([[e.se for e in one] for one in logs]))
        for way, logs in ways.items()
    }
    return table, live(env, scales, runs=runs, rounds=rounds)


def verdict(
    values: np.ndarray, errors: np.ndarray, scales: Sequence[float] = SCALES
) -> tuple[np.ndarray, float, float, float, float]:
    """What choosing by these estimates (logs, C) leads to; errors (C, runs) are those of live runs.

    -> the chosen c (logs,); the mean errors of the chosen, of the default and of the best; the mean rank correlation of
    estimate and reward
    """
    mean, top = errors.mean(axis=1), np.argmax(values, axis=1)
    rank = np.mean([np.corrcoef(stats.rankdata(one), stats.rankdata(-mean))[0, 1] for one in values])
    default = mean[list(scales).index(DEFAULT)]
    return np.asarray(scales)[top], float(mean[top].mean()), float(default), float(mean.min()), float(rank)


def show(
    table: Table,
    errors: np.ndarray,
    *,
    data: str,
    preprocessing: str = "standard",
    runs: int,
    rounds: int,
    rows: int,
    scales: Sequence[float] = SCALES,
    **_: Any,
) -> None:
    """Print the candidates, and what choosing led to."""
    print(f"{data}, {preprocessing}: errors live in {rounds} rounds, {runs} runs; mean reward by logs of {rows} rows")
    for i, c in enumerate(scales):
        says = "   ".join(
            f"{way} {values[:, i].mean():.3f} (se of one log {se[:, i].mean():.3f})"
            for way, (values, se) in table.items()
        )
        print(f"c={c:<5g} live {errors[i].mean():7.1f} ± {errors[i].std(ddof=1) / np.sqrt(runs):5.1f}   {says}")
    for way, (values, _se) in table.items():
        chosen, mean, default, best, rank = verdict(values, errors, scales)
        print(
            f"{way}: chose c = {', '.join(f'{c:g}' for c in chosen)}; {mean:.1f} errors live with these, {default:.1f} "
            f"with the default c = {DEFAULT:g}, {best:.1f} with the best; rank correlation {rank:.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="digits", help="digits, or a name that `dither datasets` lists")
    parser.add_argument("--preprocessing", default="standard", choices=("standard", "unit"))
    for name, value in {"logs": 5, "rows": 5000, "runs": 5, "rounds": 3000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args())
    show(*main(**options), **options)

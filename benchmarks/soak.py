"""A live bandit for 200,000 rounds: memory must not grow, and the estimate must stay that of least squares."""

import resource

import numpy as np

import dither


def megabytes() -> float:
    """Peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    dim, rounds = 20, 200_000
    rng, bandit = np.random.default_rng(0), dither.LinFP(dim=20, seed=0)
    gram, moment = 1e-4 * np.eye(dim), np.zeros(dim)
    theta = rng.standard_normal(dim) / dim**0.5
    for t in range(rounds):
        X = rng.standard_normal((30, dim))
        d = bandit.choose(X)
        x, r = X[d.arm], X[d.arm] @ theta + rng.standard_normal()
        bandit.update(x, r)
        gram += np.outer(x, x)
        moment += r * x
        if t == rounds // 10:
            early = megabytes()
    exact = np.linalg.solve(gram, moment)
    error = np.linalg.norm(bandit.theta - exact) / np.linalg.norm(exact)
    growth = megabytes() - early
    print(f"{rounds} rounds: θ̂ off by {error:.1e} of its length, memory grew by {growth:.1f} MiB")
    if error > 1e-9 or growth > 5:
        raise SystemExit("the bandit drifts or leaks")

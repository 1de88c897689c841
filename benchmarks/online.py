"""What solver="online" of `models.GLM` gives up: its distance to the exact estimate, and its regret beside "certified".

    python benchmarks/online.py [--part distance|regret] [--rounds 1000000] [--streams 20] [--late] [--runs 20]

distance : logistic streams (d=5, unit contexts, ‖θ*‖ = 4, every row learnt) in lockstep; at powers of ten of rounds
    E = ‖θ - θ̂‖ in the norm of Ĥ and the largest |log eigenvalue| of H against Ĥ, θ̂ and Ĥ solved to 1e-8 on all rows.
    --late: two of the features are 0 for the first 5,000 rounds, so the rows that are solved say nothing of them
regret : GLMFP, d=10, K=100, T=10,000: the regret of both solvers on the same contexts and rewards, and their paired
    difference with a 95 % interval

Set OMP_NUM_THREADS=1. Rows are drawn again rather than kept, so memory stays at those of one stream.
"""

import argparse
import resource
from collections.abc import Iterator

import numpy as np
from scipy import stats

import dither
from dither import links, models

DIM, NORM = 5, 4.0
CHUNK = 10_000  # rows of a stream that are drawn at once
FIRST = 1000  # rounds after which the distance is measured first
LATE = 5000  # rounds for which two features are 0


def rows(stream: int, rounds: int, late: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features (n, d) and rewards (n,) of one stream, chunk by chunk."""
    rng = np.random.default_rng(stream)
    theta = rng.standard_normal(DIM)
    theta *= NORM / np.linalg.norm(theta)
    for done in range(0, rounds, CHUNK):
        X = rng.standard_normal((CHUNK, DIM))
        if late:
            X[: max(LATE - done, 0), -2:] = 0.0
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        r = (rng.random(CHUNK) < links.find("logit").mu(X @ theta)).astype(float)
        yield X[: rounds - done], r[: rounds - done]


def online(streams: int, marks: list[int], late: bool) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """θ (S, d) and F (S, d, d) of the online solver at the marks."""
    model = models.GLM(solver="online")
    state, t, found = model.init(DIM, batch=(streams,)), 0, {}
    for parts in zip(*(rows(stream, marks[-1], late) for stream in range(streams)), strict=True):
        X, r = (np.stack(kind, axis=1) for kind in zip(*parts, strict=True))
        for x, reward in zip(X, r, strict=True):
            state = model.update(state, x, reward, own=True)
            t += 1
            if t in marks:
                found[t] = (state.theta.copy(), state.F.copy())
    return found


def distances(stream: int, rounds: int, late: bool, theta: np.ndarray, F: np.ndarray) -> tuple[float, float]:
    """E and the largest |log eigenvalue| of one stream's θ and F after so many rounds."""
    model = models.GLM(solver="exact")
    X, r = (np.concatenate(kind) for kind in zip(*rows(stream, rounds, late), strict=True))
    exact = model.update_many(model.init(DIM), X, r)
    assert model.bound(exact)[0] <= 1e-8
    E = float(np.linalg.norm(np.linalg.solve(exact.F, theta - exact.theta)))
    ratios = np.linalg.svd(np.linalg.solve(exact.F, F), compute_uv=False)
    return E, float(np.abs(2 * np.log(ratios)).max())


def distance(streams: int, rounds: int, late: bool) -> None:
    marks = [10**k for k in range(3, 10) if FIRST <= 10**k <= rounds]
    found = online(streams, marks, late)
    for n in marks:
        pairs = [distances(stream, n, late, *(part[stream] for part in found[n])) for stream in range(streams)]
        E, drift = np.array(pairs).T
        print(
            f"{n:>9,} rounds: E median {np.median(E):.2g}, largest {E.max():.2g}; "
            f"|log eigenvalues| median {np.median(drift):.2g}, largest {drift.max():.2g}"
        )


def regret(runs: int) -> None:
    names = ["GLMFP:solver=online", "GLMFP"]
    for norm in (1.0, 4.0):
        env = dither.envs.Logistic(dim=10, norm=norm)
        last = dither.simulate(env, names, runs=runs, rounds=10_000, record=[10_000]).regret[..., -1]
        for name, own in zip(names, last, strict=True):
            print(f"‖θ*‖ = {norm:g}, {name}: {own.mean():.1f} ± {stats.sem(own):.1f}")
        change = last[0] - last[1]
        half = stats.t.ppf(0.975, runs - 1) * stats.sem(change)
        print(f"‖θ*‖ = {norm:g}, online - certified, run by run: {change.mean():.2f}, 95 % within ± {half:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=["distance", "regret"])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    if given.part != "regret":
        distance(given.streams, given.rounds, given.late)
    if given.part != "distance":
        regret(given.runs)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()

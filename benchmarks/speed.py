"""Speed as ratios measured side by side in one process: `make bench`.

    simulate    LinFP in lockstep, over drawing and normalising its contexts alone (target: at most 2.5)
    decision    choose + update of one Bandit with checks and the exact propensity, over a careful plain NumPy step
                that has neither (target: at most 2.5)
    scale       choose + update where the scale is found (sigma and lam "auto"), over one that is set (target: 1.25)

Medians over repeats; every repeat times both sides in turn, so drift of a shared machine cancels.
"""

import time
from typing import Any

import numpy as np

import dither


def contexts_alone(*, runs: int, arms: int, dim: int, rounds: int, chunk: int) -> None:
    """Draw and normalise what `simulate` draws, and do nothing with it."""
    rngs = [np.random.Generator(np.random.SFC64(run)) for run in range(runs)]
    out = np.empty((chunk, arms, dim))
    for _ in range(rounds // chunk):
        for rng in rngs:
            rng.standard_normal(out=out)
            out *= (1 / np.sqrt(np.vecdot(out, out)))[..., None]


class PlainStep:
    """LinFP as one would write it in NumPy: no checks, no propensity, no ties, V⁻¹ in place."""

    def __init__(self, dim: int) -> None:
        self.Vinv, self.theta = np.eye(dim) / 1e-4, np.zeros(dim)
        self.rng = np.random.default_rng(0)

    def __call__(self, X: np.ndarray, r: float) -> None:
        w = np.sqrt(np.einsum("kd,kd->k", X @ self.Vinv, X))
        x = X[(X @ self.theta + self.rng.standard_normal() * w).argmax()]
        u = self.Vinv @ x
        s = 1 + x @ u
        self.Vinv -= np.outer(u, u) / s
        self.theta += u * ((r - x @ self.theta) / s)


class OurStep:
    """The same by a live bandit, where X (K, d) are the arms, or X (d,) is the context of slots."""

    def __init__(self, dim: int, **settings: Any) -> None:
        self.bandit = dither.LinFP(dim=dim, seed=0, **settings)

    def __call__(self, X: np.ndarray, r: float) -> None:
        decision = self.bandit.choose(X)
        if self.bandit.slots is None:
            self.bandit.update(X[decision.arm], r)
        else:
            self.bandit.update(X, r, arm=decision.arm)


def seconds(call, *arguments, **settings) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    call(*arguments, **settings)
    return time.perf_counter() - start


def side_by_side(ours, plain, *, repeats: int) -> tuple[float, float, float]:
    """Median seconds of both, and the median of their ratios."""
    ours(), plain()
    pairs = np.array([(seconds(ours), seconds(plain)) for _ in range(repeats)])
    return (*np.median(pairs, axis=0).tolist(), float(np.median(pairs[:, 0] / pairs[:, 1])))


def simulate(dim: int, *, runs: int = 100, arms: int = 100, rounds: int = 200, repeats: int = 7) -> None:
    env = dither.envs.Linear(dim=dim, arms=arms)
    ours, plain, ratio = side_by_side(
        lambda: dither.simulate(env, ["LinFP"], runs=runs, rounds=rounds),
        lambda: contexts_alone(runs=runs, arms=arms, dim=dim, rounds=rounds, chunk=10),
        repeats=repeats,
    )
    scale = 1e3 / rounds
    print(
        f"simulate  K={arms} d={dim} R={runs}: {ours * scale:.2f} ms a round, contexts {plain * scale:.2f}, "
        f"ratio {ratio:.2f}"
    )


def decision(arms: int, dim: int, *, rounds: int = 2000, repeats: int = 15) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((64, arms, dim))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    ours, plain = OurStep(dim, preset="paper"), PlainStep(dim)

    def loop(step):
        return lambda: [step(X[i % 64], 0.5) for i in range(rounds)]

    mine, theirs, ratio = side_by_side(loop(ours), loop(plain), repeats=repeats)
    scale = 1e6 / rounds
    print(f"decision  K={arms} d={dim}: {mine * scale:.1f} µs, plain {theirs * scale:.1f} µs, ratio {ratio:.2f}")


def scale(arms: int, dim: int, *, slots: bool, rounds: int = 300, repeats: int = 15) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((64, dim) if slots else (64, arms, dim))
    X[..., -1] = 1.0
    r, kind = rng.standard_normal(rounds), {"disjoint": arms} if slots else {}
    finds, fixed = OurStep(dim, **kind), OurStep(dim, preset="paper", **kind)

    def loop(step):
        return lambda: [step(X[i % 64], r[i]) for i in range(rounds)]

    mine, theirs, ratio = side_by_side(loop(finds), loop(fixed), repeats=repeats)
    unit = 1e6 / rounds
    what = "slots" if slots else "arms"
    print(
        f"scale     K={arms} {what} d={dim}: found {mine * unit:.1f} µs, set {theirs * unit:.1f} µs, ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    for dim in (10, 20, 40):
        simulate(dim)
    for arms, dim in ((5, 10), (100, 40), (1000, 40)):
        decision(arms, dim)
    for slots in (False, True):
        for arms, dim in ((5, 10), (100, 40), (1000, 40)):
            scale(arms, dim, slots=slots)

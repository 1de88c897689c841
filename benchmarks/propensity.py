"""What exact propensities cost, as ratios to the careful plain NumPy step of `speed.py`, in one process, in turn.

chosen    the chosen arm's propensity in a live `choose` at K = 100, over one that finds the arm alone (at most 1.6)
all       all arms at K = 100, one request (at most 3 steps)
batch     B = 1,000 requests of K = 100 (at most 0.5 step a request)
many      K = 100,000: lines of which few can win (at most 20 ms), and a parabola, where all can
list      the ordered lists of k = 10 of K = 1,000
accuracy  Monte Carlo draws for a standard error of 1e-3 at p = 1/2, beside the exact answer
"""

import time

import numpy as np
import speed

import dither
from dither import noise, propensity
from dither.deciding import decision

LAW = noise.Gaussian()


class ArmAlone:
    """`choose` of LinFP but for the probability: the same checks and draws, then the highest score, ties or not."""

    def __init__(self, bandit: dither.Bandit) -> None:
        self.b = bandit

    def __call__(self, X: np.ndarray) -> dither.Decision:
        b = self.b
        X, _, _ = b._request(X, None)
        view = b.policy.view(b.model, b.state, X, t=b.t)
        with b._lock:
            z = decision.draw(b.policy, b._chance, 1, arms=len(X), dim=b.dim)[0][0]
            b._ties.random((1, 3))
        return dither.Decision(int((view.m + z * view.w).argmax()), np.nan, "none", None, float(z))


def pair(name: str, ours, plain, *, repeats: int, per: float, unit: float = 1.0) -> None:
    mine, theirs, ratio = speed.side_by_side(ours, plain, repeats=repeats)
    print(f"{name:<34} {mine * per:10.1f} µs, beside {theirs * unit:8.1f} µs, ratio {ratio * per / unit:.2f}")


def main() -> None:
    K, dim, n = 100, 40, 200
    rng = np.random.default_rng(1)
    X = rng.standard_normal((64, K, dim))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    ours, plain = speed.OurStep(dim), speed.PlainStep(dim)
    for i in range(500):
        ours(X[i % 64], float(X[i % 64, 0, 0] + rng.normal()))
        plain(X[i % 64], 0.5)
    b, alone = ours.bandit, ArmAlone(ours.bandit)
    step = 1e6 / n

    def steps():
        for i in range(n):
            plain(X[i % 64], 0.5)

    pair(
        "choose with its propensity",
        lambda: [b.choose(X[i % 64]) for i in range(n)],
        lambda: [alone(X[i % 64]) for i in range(n)],
        repeats=15,
        per=step,
        unit=step,
    )
    pair(
        "all arms, K = 100",
        lambda: [b.propensities(X[i % 64]) for i in range(n)],
        steps,
        repeats=15,
        per=step,
        unit=step,
    )
    m, w = b.mean(X), b.width(X)
    M, W = np.tile(m, (16, 1))[:1000], np.tile(w, (16, 1))[:1000]
    pair(
        "  the envelope of it",
        lambda: [propensity.envelope(m[i % 64], w[i % 64], law=LAW) for i in range(n)],
        steps,
        repeats=15,
        per=step,
        unit=step,
    )
    pair(
        "batch of 1,000, K = 100, a request",
        lambda: propensity.envelope(M, W, law=LAW),
        steps,
        repeats=15,
        per=1e3,
        unit=step,
    )
    few = rng.normal(size=100_000) / 10, rng.uniform(0.5, 1, size=100_000)
    pair("K = 100,000, few can win", lambda: propensity.envelope(*few, law=LAW), steps, repeats=9, per=1e6, unit=step)
    for size in (1000, 10_000, 100_000):
        slope = np.linspace(0, 3, size)
        order = rng.permutation(size)
        m, w = (-(slope**2) / 2)[order], slope[order]
        pair(
            f"K = {size:,}, a parabola",
            lambda m=m, w=w: propensity.envelope(m, w, law=LAW),
            steps,
            repeats=9,
            per=1e6,
            unit=step,
        )
    m, w = rng.normal(size=1000), rng.uniform(size=1000)
    pair("lists of 10 of 1,000", lambda: propensity.ranks(m, w, k=10), steps, repeats=9, per=1e6, unit=step)
    monte_carlo(X[0], b)


def monte_carlo(X: np.ndarray, fp: dither.Bandit) -> None:
    """The same belief under Thompson sampling: 250,000 draws for a standard error of 1e-3 at p = 1/2."""
    ts = dither.LinTS(dim=fp.dim, seed=0)
    ts.state = fp.state
    start = time.perf_counter()
    se = ts.propensities(X, draws=250_000, detail=True)[1]
    drawn = time.perf_counter() - start
    exact = min(speed.seconds(fp.propensities, X) for _ in range(50))
    print(
        f"Monte Carlo to {se.max():.1e}: {drawn * 1e3:.0f} ms; exact: {exact * 1e3:.3f} ms; ratio {drawn / exact:.0f}"
    )


if __name__ == "__main__":
    main()

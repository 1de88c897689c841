"""How often the intervals of `dither.ope` cover the true value, and how wide they are.

    python benchmarks/coverage.py [--part iid|thinned|events|alarms|adaptive|linfp|late] [--rows 500] [--logs 1000]

iid      : five contexts, four arms, rewards 0 or 1, logging probabilities of at least 0.05 (weights up to 20); the
    value is a sum over contexts and arms. Every estimator that is consistent, with every kind of interval
thinned  : the same log with rows dropped, those without a reward with chance 3/4 (7/8 where arm 0 was shown), and the
    rest weighted by what they stand for (weight=)
events   : four arms at random, rewards that come in 0.05 to 0.4 % of the rows, the value of always showing arm 1: the
    normal interval, the exact one, and for the paired difference to what ran those of `dither evaluate`
alarms   : no coverage, but how often the tests of the weights accuse a right log, at levels 0.05 and 1e-4
adaptive : two arms of one mean and Gaussian noise, shown by Thompson sampling with known probabilities in 10 batches,
    each arm with at least 0.1 % (floor=0.002). The value of always playing arm 0 is that mean
linfp    : the same world met by LinFP of dither, which learns after every round; P from `propensities`
late     : decisions of ten days, read on day 10: sales worth 5 come after 1 to 3 days, clicks worth 1 at once, horizon
    3 days; arm 1 is shown with 0.3, and its value is 1.05. More in docs/ope.md

Set OMP_NUM_THREADS=1.
"""

import argparse
import warnings

import numpy as np
from scipy import special

import dither
from dither import ope
from dither.log import bets

LEVEL = 0.95
INTERVALS = ("normal", "bootstrap", "bca", "bernstein", "betting", "asymptotic")
FLOOR, BATCHES = 0.002, 10


def world(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Means, logging policy, new policy, predictions: each (5 contexts, 4 arms)."""
    mu = rng.uniform(0.1, 0.9, (5, 4))
    P = 0.2 / 4 + 0.8 * rng.dirichlet(np.ones(4), 5)
    Q = rng.dirichlet(np.full(4, 0.5), 5)
    return mu, P, Q, np.clip(mu + rng.normal(0, 0.1, mu.shape), 0, 1)


def iid_log(rng: np.random.Generator, n: int, mu: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, ...]:
    """Contexts, arms, rewards of n rows."""
    x = rng.integers(0, len(mu), n)
    a = np.minimum(np.sum(rng.random(n)[:, None] > np.cumsum(P[x], axis=1), axis=1), mu.shape[1] - 1)
    return x, a, (rng.random(n) < mu[x, a]).astype(float)


def iid(
    n: int, logs: int, seed: int, intervals: list[str], *, thinned: bool = False
) -> dict[str, list[tuple[float, float, float]]]:
    """(estimator, interval) -> low, high, truth of each log."""
    mu, P, Q, M = world(np.random.default_rng(seed))
    value, found = float(np.mean(np.sum(Q * mu, axis=1))), {}
    bounds = dict(weight_max=float((Q / P).max()), reward_range=(0, 1), row_weight_max=8.0)
    for log in range(logs):
        rng = np.random.default_rng([seed, log])
        x, a, r = iid_log(rng, n, mu, P)
        s = None
        if thinned:
            chance = np.where(r == 1, 1.0, np.where(a == 0, 1 / 8, 1 / 4))
            here = rng.random(n) < chance
            x, a, r, s = x[here], a[here], r[here], 1 / chance[here]
        for name in ("ips", "snips", "dr", "sndr"):
            for how in intervals:
                if how in ("bernstein", "betting") and name in ("snips", "sndr"):
                    continue
                made = ope.contributions(name, r, a, P[x, a], Q[x], M[x] if "dr" in name else None, weight=s)
                e = ope.estimate(made, interval=how, level=LEVEL, seed=log, resamples=1000, warn=False, **bounds)
                found.setdefault(f"{name:6s} {how}", []).append((*e.interval, value))
    return found


def events(n: int, logs: int, seed: int) -> dict[str, list[tuple[float, float, float]]]:
    """As `iid`, for rewards that hardly ever come."""
    rates, found = np.array([0.0005, 0.004, 0.0005, 0.0005]), {}
    Q, p = np.tile(np.eye(4)[1], (n, 1)), np.full(n, 0.25)
    for log in range(logs):
        rng = np.random.default_rng([seed, log])
        a = rng.integers(0, 4, n)
        r = (rng.random(n) < rates[a]).astype(float)
        for how in ("normal", "clopper_pearson"):
            ends = ope.estimate(ope.contributions("snips", r, a, p, Q), interval=how, warn=False).interval
            found.setdefault(f"snips {how}", []).append((*ends, rates[1]))
        table = {"arm": a, "reward": r, "propensity": p, "K": np.full(n, 4)}
        gap = ope.evaluate(table, ["arm:1"], ["snips"]).gap("arm:1", "snips").interval
        found.setdefault("difference, evaluate", []).append((*gap, rates[1] - rates.mean()))
    return found


def alarms(n: int, logs: int, seed: int) -> None:
    """Prints how often a right log is accused: always one of K arms, shown as they say."""
    rng, half = np.random.default_rng(seed), np.full(n, 0.5)
    for name, high in (("4 arms at random", 4.0), ("30 arms at random", 30.0), ("floor 0.05 of 30 arms", 600.0)):
        seen = np.where(rng.random((logs, n)) < 1 / high, high, 0.0)
        if high == 600:  # arm 3 is best in 3 % of the contexts, and else has its floor
            best = rng.random((logs, n)) < 0.03
            P = np.where(best, 0.95, 0) + 0.05 / 30
            seen = np.where(rng.random((logs, n)) < P, 1 / P, 0.0)
        tests = {"weights": [], "support": []}
        for w in seen:
            both = bets.balance(w, half, None, high)
            tests["weights"].append(bets.p_value(both))
            tests["support"].append(bets.support(both))
        ess = np.sum(seen, axis=1) ** 2 / np.maximum(np.sum(seen**2, axis=1), 1e-9)
        z = np.abs(seen.mean(axis=1) - 1) / np.maximum(seen.std(axis=1) / np.sqrt(n), 1e-9)
        print(f"{name}: fewer than 30 effective rows in {np.mean(ess < 30):.1%}; P < 0.05 and < 1e-4 of the test of")
        for test, values in tests.items():
            print(f"    {test:8s} {np.mean(np.array(values) < 0.05):.2%}  {np.mean(np.array(values) < 1e-4):.3%}")
        print(f"    normal   {np.mean(z > 1.96):.2%}  {np.mean(z > 3.89):.3%}")


def thompson(rng: np.random.Generator, n: int, mean: float = 0.5) -> tuple[np.ndarray, ...]:
    """Arms, rewards, P (n, 2) and the batch of each row of a log; prior N(0, 1), noise 1, two arms of one mean."""
    sums, counts = np.zeros(2), np.ones(2)
    a, r, P = np.empty(n, dtype=int), np.empty(n), np.empty((n, 2))
    batch = np.arange(n) * BATCHES // n
    for j in range(BATCHES):
        rows = np.flatnonzero(batch == j)
        m = sums / counts
        first = special.ndtr((m[0] - m[1]) / np.sqrt(np.sum(1 / counts)))
        P[rows] = (1 - FLOOR) * np.array([first, 1 - first]) + FLOOR / 2
        a[rows] = rng.random(len(rows)) > P[rows, 0]
        r[rows] = mean + rng.standard_normal(len(rows))
        sums += np.bincount(a[rows], weights=r[rows], minlength=2)
        counts += np.bincount(a[rows], minlength=2)
    return a, r, P, batch


def linfp(rng: np.random.Generator, n: int, mean: float = 0.5) -> tuple[np.ndarray, ...]:
    """The same from a live bandit; no batches."""
    bandit, X = dither.LinFP(dim=2, lam=1.0, floor=FLOOR, seed=int(rng.integers(2**31))), np.eye(2)
    a, r, P = np.empty(n, dtype=int), np.empty(n), np.empty((n, 2))
    for t in range(n):
        P[t] = bandit.propensities(X)
        a[t] = bandit.choose(X).arm
        r[t] = mean + rng.standard_normal()
        bandit.update(X[a[t]], r[t])
    return a, r, P, None


def past_means(a: np.ndarray, r: np.ndarray) -> np.ndarray:
    """M (n, 2): the mean of each arm's earlier rewards."""
    shown = a[:, None] == np.arange(2)
    sums, counts = np.cumsum(shown * r[:, None], axis=0), np.cumsum(shown, axis=0)
    return np.concatenate([np.zeros((1, 2)), (sums / np.maximum(counts, 1))[:-1]])


def learning(part: str, n: int, logs: int, seed: int) -> dict[str, list[tuple[float, float, float]]]:
    """As `iid`, for the value of arm 0."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    Q = np.tile([1.0, 0.0], (n, 1))
    for log in range(logs):
        rng = np.random.default_rng([seed, log])
        a, r, P, batch = thompson(rng, n) if part == "adaptive" else linfp(rng, n)
        p, M = P[np.arange(n), a], past_means(a, r)
        made = {
            "ips": ope.ips(r, a, p, Q),
            "dr": ope.dr(r, a, p, Q, M),
            "snips": ope.snips(r, a, p, Q),
        }
        for weights in ("stablevar", "minvar", "cadr"):
            if weights != "cadr":
                made[weights] = ope.adaptive(r, a, P, Q, M, weights=weights)
            if batch is not None:
                policies = np.stack([np.tile(P[np.argmax(batch == j)], (n, 1)) for j in range(BATCHES)])
                made[f"{weights}, policies"] = ope.adaptive(
                    r, a, P, Q, M, weights=weights, policies=policies, batch=batch
                )
        for name, e in made.items():
            found.setdefault(name, []).append((*e.interval, 0.5))
    return found


def late(n: int, logs: int, seed: int) -> dict[str, list[tuple[float, float, float]]]:
    """As `iid`, for the value of arm 1 while rewards are on their way: four ways to take what is not there yet."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    Q, now, horizon = np.tile([0.0, 1.0], (n, 1)), 10.0, 3.0
    for log in range(logs):
        rng = np.random.default_rng([seed, log])
        decided, a = np.sort(now * rng.random(n)), (rng.random(n) < 0.3).astype(int)
        u, sells = rng.random(n), np.array([0.05, 0.15])[a]
        delay = np.where(u < sells, rng.uniform(1, 3, n), np.where(u < sells + 0.3, 0.1 * rng.random(n), np.nan))
        came = np.where(decided + delay <= now, decided + delay, np.nan)
        r, p = np.where(u < sells, 5.0, 1.0), np.where(a == 1, 0.3, 0.7)
        here = np.isfinite(came)
        old = ope.settled(r, decided, came, now=now, horizon=horizon)
        unknown = np.where(here, r, np.where(decided <= now - horizon, 0.0, np.nan))
        made = {
            "0 for what is missing": ope.ips(np.where(here, r, 0.0), a, p, Q),
            "missing left out": ope.ips(r, a, p, Q, mask=here),
            "settled": ope.ips(old, a, p, Q, mask=np.isfinite(old)),
            "arrived": ope.ips(ope.arrived(r, decided, came, now=now, horizon=horizon), a, p, Q),
            "bounds": ope.bounds("ips", unknown, a, p, Q, reward_range=(0, 5)),
        }
        for name, e in made.items():
            found.setdefault(name, []).append((*e.interval, 1.05))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--part", choices=["iid", "thinned", "events", "alarms", "adaptive", "linfp", "late"], default="iid"
    )
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--intervals", nargs="+", default=list(INTERVALS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ope.EvaluationWarning)
    size = (asked.rows, asked.logs, asked.seed)
    if asked.part == "alarms":
        alarms(*size)
        return
    if asked.part in ("iid", "thinned"):
        found = iid(*size, asked.intervals, thinned=asked.part == "thinned")
    elif asked.part in ("events", "late"):
        found = (events if asked.part == "events" else late)(*size)
    else:
        found = learning(asked.part, *size)
    print(f"{asked.part}: {asked.logs} logs of {asked.rows} rows, nominal {LEVEL:.0%}")
    for name, ends in found.items():
        low, high, value = np.array(ends).T
        covered = np.mean((low <= value) & (value <= high))
        error = np.sqrt(covered * (1 - covered) / len(low))
        middle = np.mean((low + high) / 2 - value)
        print(f"{name:24s} covers {covered:.1%} ± {error:.1%}  width {np.mean(high - low):.4f}  centre {middle:+.4f}")


if __name__ == "__main__":
    main()

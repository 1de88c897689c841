"""Which intervals hold on the log of a policy that learns: coverage and width, for docs/ope.md.

    python benchmarks/adaptive_logs.py [--policy LinFP] [--floor 0.05] [--logs 500] [--out FILE.jsonl]
    python benchmarks/adaptive_logs.py --differences    the paired differences, to adaptive_differences.jsonl
    python benchmarks/adaptive_logs.py --table          the tables of the page, from the committed numbers

World: six contexts c in [-1, 1], four arms, a reward of 0 or 1 with mean LEVELS + SLOPES c. An arm's features are
(1, c) in its own two columns, so that d = 8. Arm 3 is the worst in every context, and a policy that learns abandons it.

Logs: LinFP, LinTS, GLMFP and ε-greedy meet the world, with a share `floor` of uniform choices (for ε-greedy this is ε),
and learn after every round. LinTS has no closed probability: it draws from the frequencies of 100 samples, which are
then its exact probabilities. A log of 5,000 rounds is judged after 300, 1,000 and 5,000. The estimators that are told
how the policy stood at 20 times ("policies") judge the logs of LinFP alone: cadr refuses a log whose first rows tell it
no variance, as those of ε-greedy do.

Judged: four policies (always arm 0, always arm 3, the best arm of each context, uniform), by every estimator and
interval. M is the shrunk mean of earlier rewards for the context and the arm: it knows the past alone. "dr, M of all
rows" has the same means of all rows but its own, as folds that reach into the future have.

Differences: each of the four policies less what ran, and less "best". What ran is worth something else in every round,
and the truth is the average of that: the policy is looked at in all contexts in the first 50 rounds, and then in every
tenth. The logs are the same, fewer of 5,000 rounds. This takes eight minutes of one core.

Set OMP_NUM_THREADS=1. A line of the file is one policy, floor, number of rows, judged policy, and estimator with
interval: for each 50 logs how many intervals held the value, how many were empty (NaN: every value is rejected), and
the mean width of the others; and the mean error over all.
"""

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dither import ope
from dither.models import GLM, Ridge
from dither.ope import bounded
from dither.policies import FeaturePerturbation, Greedy

LEVEL, K, HERE = 0.95, 4, Path(__file__).with_suffix(".jsonl")
CONTEXTS = np.linspace(-1, 1, 6)
LEVELS, SLOPES = np.array([0.6, 0.55, 0.5, 0.25]), np.array([0.15, -0.15, 0.0, 0.05])
MU = LEVELS + SLOPES * CONTEXTS[:, None]  # (6, K) means
X = np.zeros((6, K, 2 * K))  # features
for _k in range(K):
    X[:, _k, 2 * _k] = 1.0
    X[:, _k, 2 * _k + 1] = CONTEXTS
TARGETS = {  # name -> (6, K)
    "arm 0": np.tile(np.eye(K)[0], (6, 1)),
    "arm 3": np.tile(np.eye(K)[3], (6, 1)),
    "best": np.eye(K)[np.argmax(MU, axis=1)],
    "uniform": np.full((6, K), 1 / K),
}
DIFFERENCES = HERE.with_name("adaptive_differences.jsonl")
FIRST, EVERY = 50, 10  # when what ran is looked at
POLICIES = ("LinFP", "LinTS", "GLMFP", "EpsGreedy")
FLOORS, ROWS, TOGETHER, SAMPLES = (0.2, 0.05, 0.01), (300, 1000, 5000), 50, 100
STARTS = np.array([0, *np.geomspace(10, 4000, 19).astype(int)])  # when `policies` is told how the policy stands
BOUNDED = ("bernstein", "betting", "anytime")


def learning(policy: str, floor: float, n: int, block: int, starts: np.ndarray = STARTS) -> tuple[np.ndarray, ...]:
    """TOGETHER logs side by side: x, a, r (n, R), P (n, R, K), and the policy at `starts` in each context (J, 6, R, K).

    The first rows of a longer log are those of a shorter one.
    """
    rngs = [np.random.default_rng([block, POLICIES.index(policy), round(1000 * floor), k]) for k in range(4)]
    size = TOGETHER
    model: Any = GLM(lam=1.0) if policy == "GLMFP" else Ridge(lam=1.0)
    state = model.init(2 * K, batch=(size,))
    rule: Any = FeaturePerturbation() if policy in ("LinFP", "GLMFP") else Greedy()

    def shown(X: np.ndarray, t: int) -> np.ndarray:
        if policy == "LinTS":
            theta = state.theta[:, :, None] + 0.5 * state.F @ rngs[3].standard_normal((size, 2 * K, SAMPLES))
            top = np.argmax(X @ theta, axis=1)
            share = np.stack([np.mean(top == k, axis=1) for k in range(K)], axis=1)
        else:
            share = rule.view(model, state, X, t=t + 1).propensities()
        return (1 - floor) * share + floor / K

    x, u, v = rngs[0].integers(6, size=(n, size)), rngs[1].random((n, size)), rngs[2].random((n, size))
    a, r, P = np.empty((n, size), dtype=int), np.empty((n, size)), np.empty((n, size, K))
    G = []
    for t in range(n):
        if t in starts:
            G.append([shown(np.broadcast_to(X[c], (size, K, 2 * K)), t) for c in range(6)])
        P[t] = shown(X[x[t]], t)
        a[t] = np.minimum(np.sum(u[t][:, None] > np.cumsum(P[t], axis=1), axis=1), K - 1)
        r[t] = v[t] < MU[x[t], a[t]]
        state = model.update(state, X[x[t], a[t]], r[t])
    return x, a, r, P, np.array(G)


def past_means(x: np.ndarray, a: np.ndarray, r: np.ndarray) -> np.ndarray:
    """M (n, K): the mean of the earlier rewards of the context and the arm, and of one reward of 1/2."""
    n = len(x)
    cells = np.zeros((n, 6, K))
    cells[np.arange(n), x, a] = 1.0
    counts, sums = (np.cumsum(part, axis=0) - part for part in (cells, cells * r[:, None, None]))
    return ((0.5 + sums) / (1 + counts))[np.arange(n), x]


def other_means(x: np.ndarray, a: np.ndarray, r: np.ndarray) -> np.ndarray:
    """M (n, K): the same of all rows but its own, also later ones."""
    n = len(x)
    cells = np.zeros((n, 6, K))
    cells[np.arange(n), x, a] = 1.0
    counts, sums = (np.sum(part, axis=0) - part for part in (cells, cells * r[:, None, None]))
    return ((0.5 + sums) / (1 + counts))[np.arange(n), x]


def judged(
    x, a, r, P, G, floor: float, *, resampled: bool, told: bool
) -> Iterator[tuple[str, str, str, float, float, float]]:
    """Judged policy, estimator, interval; low, high and error, for one log. told : whether G is used."""
    n = len(r)
    p, M, later = P[np.arange(n), a], past_means(x, a, r), other_means(x, a, r)
    batch = np.searchsorted(STARTS[: len(G)], np.arange(n), side="right") - 1
    for target, table in TARGETS.items():
        Q, truth = table[x], float(np.mean(np.sum(table * MU, axis=1)))
        bounds = dict(weight_max=float(np.max(table)) * K / floor, reward_range=(0.0, 1.0))
        made = {name: ope.contributions(name, r, a, p, Q, M, P=P) for name in ("dr", "sndr", "stablevar", "minvar")}
        made |= {name: ope.contributions(name, r, a, p, Q) for name in ("ips", "snips")}
        made["dr, M of all rows"] = ope.contributions("dr", r, a, p, Q, later)
        for weights in ("stablevar", "cadr") if told else ():
            made[f"{weights}, policies"] = ope.adaptive(
                r, a, P, Q, M, weights=weights, policies=G[: batch[-1] + 1, x], batch=batch
            ).contributions
        for name, one in made.items():
            hows = ["normal"]
            if name in ("ips", "snips", "dr", "stablevar"):
                hows += ["asymptotic", *(["bootstrap", "bca"] if resampled else [])]
            hows += [how for how in BOUNDED if name == "ips" or (name == "dr" and how != "anytime")]
            for how in hows:
                e = ope.estimate(one, interval=how, level=LEVEL, seed=0, resamples=200, warn=False, **bounds)
                yield target, name, how, *e.interval, e.value - truth


def measured(policy: str, floor: float, rows: tuple[int, ...], blocks: int, *, resampled: int = 0) -> list[dict]:
    """The lines of the file. resampled : the number of rows at which the bootstrap is measured too."""
    found: dict[tuple, list] = defaultdict(list)
    for block in range(blocks):
        x, a, r, P, G = learning(policy, floor, max(rows), block)
        for n in rows:
            cut: dict[tuple, list] = defaultdict(list)
            for i in range(TOGETHER):
                log = x[:n, i], a[:n, i], r[:n, i], P[:n, i], G[:, :, i]
                for target, name, how, low, high, error in judged(
                    *log, floor, resampled=n == resampled, told=policy == "LinFP"
                ):
                    truth = float(np.mean(np.sum(TARGETS[target] * MU, axis=1)))
                    cut[target, name, how].append((low <= truth <= high, np.isnan(low), high - low, error))
            for key, values in cut.items():
                held, empty, widths, errors = np.array(values).T
                found[n, *key].append((held.sum(), empty.sum(), np.nanmean(widths), np.mean(errors)))
    lines = []
    for (n, target, name, how), parts in found.items():
        held, empty, width, error = np.array(parts).T
        lines.append(
            dict(policy=policy, floor=floor, rows=n, judged=target, estimator=name, interval=how)
            | dict(logs=TOGETHER * blocks, held=held.astype(int).tolist(), empty=int(empty.sum()))
            | dict(width=[round(w, 6) for w in width], error=round(float(np.mean(error)), 6))
        )
    return lines


def differing(policy: str, floor: float, n: int, blocks: int) -> list[dict]:
    """The lines of the second file: how often intervals of differences, and of what ran, held what is true."""
    starts = np.unique([*range(FIRST), *range(FIRST, n, EVERY)])
    lasts = np.diff([*starts, n])
    found: dict[tuple, list] = defaultdict(list)
    for block in range(blocks):
        x, a, r, P, G = learning(policy, floor, n, block, starts)
        ran = np.mean(np.sum(G * MU[None, :, None, :], axis=3), axis=1)  # (J, R) the value of what ran at `starts`
        ran = lasts @ ran / n
        cut: dict[tuple, list] = defaultdict(list)
        for i in range(TOGETHER):
            for key, low, high, truth in of_differences(x[:, i], a[:, i], r[:, i], P[:, i], float(ran[i])):
                cut[key].append((low <= truth <= high, high - low))
        for key, values in cut.items():
            found[key].append(np.array(values).T)
    return [
        dict(policy=policy, floor=floor, rows=n, judged=judged, against=against, interval=how)
        | dict(logs=TOGETHER * blocks, held=[int(held.sum()) for held, _ in parts])
        | dict(width=[round(float(np.mean(width)), 6) for _, width in parts])
        for (judged, against, how), parts in found.items()
    ]


def of_differences(x, a, r, P, ran: float) -> Iterator[tuple[tuple[str, str, str], float, float, float]]:
    """(judged, against, interval), low, high and what is true, for one log. "what ran" against "" is its value."""
    n, how = len(r), dict(reward_range=(0.0, 1.0), level=LEVEL)
    p, one = P[np.arange(n), a], np.ones(n)
    truths = {name: float(np.mean(np.sum(table * MU, axis=1))) for name, table in TARGETS.items()} | {"what ran": ran}
    made = {
        name: ope.estimate(ope.contributions("ips", r, a, p, table[x]), warn=False) for name, table in TARGETS.items()
    }
    base = ope.contributions("ips", r, 0 * a, one, one[:, None])
    made["what ran"] = ope.estimate(base, warn=False)
    low, high = bounded.wandering(r, one, None, (0.0, 1.0), LEVEL, more=0.0)
    yield ("what ran", "", "anytime"), low, high, ran
    yield ("what ran", "", "normal"), *made["what ran"].interval, ran
    for name, against in [*((name, "what ran") for name in TARGETS), *((name, "best") for name in TARGETS)]:
        if name != against:
            for kind, more in (("anytime", how), ("normal", dict(level=LEVEL))):
                gap = ope.compare(made[name], made[against], interval=kind, **more)
                yield (name, against, kind), *gap.interval, truths[name] - truths[against]


def difference_table(lines: list[dict]) -> str:
    """The table of the page: the lowest coverage of the intervals that are given without options, and their widths."""
    values = [json.loads(line) for line in HERE.read_text().splitlines()]
    values = [one for one in values if (one["estimator"], one["interval"]) == ("ips", "anytime")]
    kinds = [("less what ran", "what ran", "anytime"), ("less `best`", "best", "anytime"), ("what ran", "", "anytime")]
    kinds += [("less what ran, `normal`", "what ran", "normal"), ("less `best`, `normal`", "best", "normal")]
    names = " | ".join(name for name, *_ in kinds)
    out = [
        f"| policy | rows | logs | value | {names} | width, arm 3 less what ran: `anytime`, `normal` |",
        "|---" * (5 + len(kinds)) + "|",
    ]
    for policy, rows in itertools.product(POLICIES, ROWS):
        here = [line for line in lines if line["policy"] == policy and line["rows"] == rows]
        if not here:
            continue
        parts = [[one for one in values if one["policy"] == policy and one["rows"] == rows]]
        parts += [[x for x in here if (x["against"], x["interval"]) == (against, how)] for _, against, how in kinds]
        cells = [f"{100 * min(map(covered, some)):.1f} %" for some in parts]
        wide = dict(floor=0.05, judged="arm 3", against="what ran")
        widths = [np.mean(line["width"]) for line in here if wide.items() <= line.items()]
        out.append(
            f"| {policy} | {rows:,} | {here[0]['logs']} | {' | '.join(cells)} | "
            f"{', '.join(f'{width:.2f}' for width in widths)} |"
        )
    return "\n".join(out)


def covered(line: dict) -> float:
    """The share of the logs whose interval held the value."""
    return sum(line["held"]) / line["logs"]


def tables(lines: list[dict]) -> str:
    """The two tables of the page: the lowest coverage by floor, with widths, and by policy and number of rows."""
    kinds = list(dict.fromkeys((line["estimator"], line["interval"]) for line in lines))
    by: dict[tuple[str, str], list[dict]] = {kind: [] for kind in kinds}
    for line in lines:
        by[line["estimator"], line["interval"]].append(line)

    def least(some: list[dict]) -> str:
        return f"{100 * min(map(covered, some)):.1f} %" if some else ""

    def width(some: list[dict], judged: str) -> str:
        wanted = dict(policy="LinFP", floor=0.05, rows=1000, judged=judged)
        (one,) = [line for line in some if wanted.items() <= line.items()]
        return f"{np.mean(one['width']):.2f}"

    def name(kind: tuple[str, str]) -> str:
        return f"{kind[0]} | `{kind[1]}`"

    out = [
        "| estimator | interval | floor 0.2 | floor 0.05 | floor 0.01 | width, `best` | width, arm 3 |",
        "|---" * 7 + "|",
    ]
    for kind in sorted(kinds, key=lambda kind: -min(map(covered, by[kind]))):
        cells = [least([line for line in by[kind] if line["floor"] == floor]) for floor in FLOORS]
        out.append(f"| {' | '.join([name(kind), *cells, width(by[kind], 'best'), width(by[kind], 'arm 3')])} |")
    shown = [
        ("ips", "anytime"),
        ("stablevar", "asymptotic"),
        ("stablevar", "normal"),
        ("dr", "normal"),
        ("snips", "normal"),
    ]
    shown += [("ips", "normal")]
    out += ["", f"| policy | rows | {' | '.join(f'{e}, `{i}`' for e, i in shown)} |", "|---" * (2 + len(shown)) + "|"]
    for policy in POLICIES:
        for rows in ROWS:
            here = [[x for x in by[kind] if x["policy"] == policy and x["rows"] == rows] for kind in shown]
            if all(here):
                out.append(f"| {policy} | {rows:,} | {' | '.join(map(least, here))} |")
    return "\n".join(out)


def enough(policy: str, floor: float, rows: tuple[int, ...], blocks: int) -> dict[tuple, list[bool]]:
    """Which intervals held, of the logs with at least 30 effective rows: by the weights seen, and by those expected.

    seen : (Σw)²/Σw²; expected : n²/Σφ, φ = Σ_k Q_k²/P_k the mean of w² whatever arm is drawn
    """
    kinds = [
        ("stablevar", "asymptotic"),
        ("stablevar", "normal"),
        ("dr", "normal"),
        ("snips", "normal"),
        ("ips", "normal"),
    ]
    found: dict[tuple, list[bool]] = defaultdict(list)
    for block in range(blocks):
        x, a, r, P, _ = learning(policy, floor, max(rows), block)
        for n, i in itertools.product(rows, range(TOGETHER)):
            log = x[:n, i], a[:n, i], r[:n, i]
            M, p = past_means(*log), P[np.arange(n), i, log[1]]
            for target, table in TARGETS.items():
                truth = float(np.mean(np.sum(table * MU, axis=1)))
                expected = n**2 / float(np.sum(table[log[0]] ** 2 / P[:n, i]))
                for name, how in kinds:
                    made = ope.contributions(name, log[2], log[1], p, table[log[0]], M, P=P[:n, i])
                    e = ope.estimate(made, interval=how, level=LEVEL, warn=False)
                    held = bool(e.interval[0] <= truth <= e.interval[1])
                    for by, size in (("seen", e.ess), ("expected", expected)):
                        if size >= 30:
                            found[by, target, name, how].append(held)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--policy", nargs="*", choices=POLICIES, default=POLICIES)
    parser.add_argument("--floor", nargs="*", type=float, default=FLOORS)
    parser.add_argument("--rows", nargs="*", type=int, default=ROWS)
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--resampled", type=int, default=0, help="rows at which the bootstrap is measured too")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--enough", action="store_true", help="print coverage in logs with 30 effective rows or more")
    parser.add_argument("--differences", action="store_true", help="measure paired differences, to a file of their own")
    asked = parser.parse_args()
    if asked.table:
        print(difference_table([json.loads(line) for line in DIFFERENCES.read_text().splitlines()]))
        print(tables([json.loads(line) for line in HERE.read_text().splitlines()]))
        return
    for policy in asked.policy:
        for floor in asked.floor:
            if asked.differences:
                for rows in asked.rows:
                    if rows <= 1000 or policy in ("LinFP", "EpsGreedy"):
                        lines = differing(policy, floor, rows, asked.logs // TOGETHER if rows <= 1000 else 3)
                        with DIFFERENCES.open("a") as file:
                            file.writelines(json.dumps(line) + "\n" for line in lines)
                        print(policy, floor, rows, flush=True)
                continue
            if asked.enough:
                for key, held in enough(policy, floor, tuple(asked.rows), asked.logs // TOGETHER).items():
                    print(policy, floor, *key, f"{np.mean(held):.1%} of {len(held)}", flush=True)
                continue
            lines = measured(policy, floor, tuple(asked.rows), asked.logs // TOGETHER, resampled=asked.resampled)
            with asked.out.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            print(policy, floor, flush=True)


if __name__ == "__main__":
    main()

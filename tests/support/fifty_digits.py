"""Random problems with structured features, and their exact answers, which share no code with the library.

The answers are in 50 digits, but for a normal z for each arm.

    python tests/support/fifty_digits.py --problems 10000 [--kind lines]

prints what was found, kind by kind. Kinds:

    lines       LinFP: P of each arm
    curves      GLMFP, logit link, with values that are differences of prices
    lists       LinFP: P of each ordered list of two
    demands     LinFP with a floor, minima and a mask
    uncoupled   RandUCB, a multiple of finitely many for each arm; each eighth LinFP with a normal z for each arm

Features are prices as differences, hours on the circle, ±1, near copies, raw Unix times, one-hot. The library gets them
as floating point has them, and the exact answer has what they stand for. So arms that are equal there must share alike.
Prices as features are rounded to the cent, as a shop has them; values are differences as they come. Rounding moves
the probabilities of raw times beside a constant by up to 1e-3 or so, so these are held to 1e-2, and all others to 1e-6
(GLMs, whose estimate is iterated, to 1e-4). Where z is one of finitely many, scores that the model's own bound of
rounding cannot tell apart may share as ties do. A normal z for each arm is compared with a quadrature in float64.
Each answer is compared with the one in 50 digits, and with draws by binomial tails.
"""

import argparse
import itertools
import time
from typing import NamedTuple

import mpmath as mp
import numpy as np
from scipy import stats

import dither
from dither import models, noise, policies

mp.mp.dps = 50
KINDS = ("lines", "curves", "lists", "demands", "uncoupled")
LEVEL = 1e-10  # of one comparison with draws
ITERATED = 1e-4  # for a GLM, whose estimate is found to 1e-8 widths
LOOSE = 1e-2  # for raw times beside a constant: eleven digits are alike, so that rounding moves where two lines meet
KINDS_OF_FEATURES = ("prices", "hours", "signs", "copies", "times", "one-hot")
EQUAL = mp.mpf(10) ** -35  # what differs by less is equal


class Problem(NamedTuple):
    of: str  # what the features are
    X: list  # (K, d) exact
    rough: np.ndarray  # (K, d) the same as floating point has them
    rows: list  # the arms that were learnt
    r: list
    lam: float
    c: float
    rng: np.random.Generator


def cents(rng):
    """A price that is the difference of two prices: exactly, and as floating point has it."""
    cost, margin = int(rng.integers(100, 100_000)), int(rng.integers(1, 12)) * int(rng.choice([10, 50, 100]))
    return mp.mpf(margin) / 100, (cost + margin) / 100 - cost / 100


def features(rng):
    K = int(rng.integers(2, 5))
    of = str(rng.choice([*KINDS_OF_FEATURES]))
    if of == "prices":
        pairs = [cents(rng) for _ in range(K)]
        return of, [[mp.mpf(1), exact] for exact, _ in pairs], np.array([[1.0, round(rough, 2)] for _, rough in pairs])
    if of == "hours":
        hours = rng.integers(0, 24, K)
        angle = 2 * np.pi * hours / 24
        exact = [[mp.cos(mp.pi * int(h) / 12), mp.sin(mp.pi * int(h) / 12)] for h in hours]
        return of, exact, np.c_[np.cos(angle), np.sin(angle)]
    if of == "signs":
        rough = np.c_[np.ones(K), rng.choice([-1.0, 1.0], (K, 2))]
    elif of == "copies":
        rough = np.round(rng.normal(size=(K, 2)), 1) + 0.05
        rough[1] = rough[0] * (1 + float(rng.choice([0, 1e-6, 1e-8])))
    elif of == "times":
        hours = 472_222.0 + rng.integers(0, 48, K)
        rough = np.c_[np.ones(K), hours * float(rng.choice([1, 3600]))]
    else:
        rough = np.eye(4)[rng.permutation(4)[:K]]
    return of, [[mp.mpf(float(x)) for x in row] for row in rough], rough


def problem(seed):
    rng = np.random.default_rng(seed)
    of, X, rough = features(rng)
    n = int(rng.integers(0, 7))
    rows = rng.integers(0, len(X), n).tolist()
    if rng.random() < 0.5:  # equal records in any order
        record = rng.integers(0, 2, 2).tolist()
        pairs = [(arm, r) for arm in range(len(X)) for r in record]
        rows, r = zip(*[pairs[i] for i in rng.permutation(len(pairs))], strict=True)
    else:
        r = rng.integers(0, 2, n)
    lam, c = float(rng.choice([1.0, 1e-2, 1e-4])), float(rng.choice([0.5, 1.0, 2.0]))
    return Problem(of, X, rough, list(rows), [float(one) for one in r], lam, c, rng)


def solve(A, b):
    n, M = len(b), [[*row, y] for row, y in zip(A, b, strict=True)]
    for i in range(n):
        p = max(range(i, n), key=lambda k: abs(M[k][i]))
        M[i], M[p] = M[p], M[i]
        M[i] = [v / M[i][i] for v in M[i]]
        for k in range(n):
            if k != i:
                M[k] = [a - M[k][i] * c for a, c in zip(M[k], M[i], strict=True)]
    return [row[n] for row in M]


def dot(a, b):
    return mp.fsum(x * y for x, y in zip(a, b, strict=True))


def lines(given, *, logit=False):
    """m and c w of each arm, from the whole history."""
    rows, d = [given.X[i] for i in given.rows], len(given.X[0])
    lam = mp.mpf(given.lam)

    def gram(weights):
        return [
            [mp.fsum(s * x[i] * x[j] for s, x in zip(weights, rows, strict=True)) + lam * (i == j) for j in range(d)]
            for i in range(d)
        ]

    if logit:
        theta = [mp.mpf(0)] * d
        for _ in range(60):
            mu = [1 / (1 + mp.exp(-dot(x, theta))) for x in rows]
            H = gram([p * (1 - p) for p in mu])
            slope = [
                mp.fsum((p - r) * x[i] for p, r, x in zip(mu, given.r, rows, strict=True)) + lam * theta[i]
                for i in range(d)
            ]
            step = solve(H, slope)
            size = mp.sqrt(dot(step, slope))
            theta = [t - s / (1 + size) if size > 0.1 else t - s for t, s in zip(theta, step, strict=True)]
            if size < mp.mpf(10) ** -40:
                break
        H = gram([p * (1 - p) for p in (1 / (1 + mp.exp(-dot(x, theta))) for x in rows)])
    else:
        H = gram([1] * len(rows))
        b = [mp.fsum(r * x[i] for r, x in zip(given.r, rows, strict=True)) for i in range(d)]
        theta = solve(H, b)
    m = [dot(x, theta) for x in given.X]
    return m, [mp.mpf(given.c) * mp.sqrt(abs(dot(x, solve(H, x)))) for x in given.X]


def same(a, b):
    return abs(a - b) <= EQUAL * max(abs(a), abs(b), mp.mpf(10) ** -5)


def sets(*parts):
    """Which arms are one: of each arm the first that it equals in all parts."""
    K = len(parts[0])
    return [next(j for j in range(i + 1) if all(same(part[i], part[j]) for part in parts)) for i in range(K)]


def mass(low, high):
    return mp.ncdf(high) - mp.ncdf(low)


def orders(m, w, on):
    """The order of the arms between two meetings next to each other, and the mass there."""
    z = {(m[i] - m[j]) / (w[j] - w[i]) for i, j in itertools.combinations(on, 2) if not same(w[i], w[j])}
    ends = [mp.mpf(-40), *sorted(one for one in z if abs(one) < 40), mp.mpf(40)]
    for low, high in itertools.pairwise(ends):
        if high - low > EQUAL:
            middle = (low + high) / 2
            yield sorted(on, key=lambda i: -(m[i] + middle * w[i])), mass(low, high)


def of_lines(m, w, on):
    of, p = sets(m, w), [mp.mpf(0)] * len(m)
    for order, share in orders(m, w, [i for i in on if of[i] == i or of[i] not in on]):
        tied = [i for i in on if of[i] == of[order[0]]]
        for i in tied:
            p[i] += share / len(tied)
    return np.array([float(one) for one in p])


def of_lists(m, w, k):
    of, p = sets(m, w), {}
    first = [i for i in range(len(m)) if of[i] == i]
    for order, share in orders(m, w, first):
        groups = [[i for i in range(len(m)) if of[i] == one] for one in order]
        every = [[]]
        for group in groups:
            every = [[*before, *arms] for before in every for arms in itertools.permutations(group)]
        for one in every:
            p[tuple(one[:k])] = p.get(tuple(one[:k]), 0) + share / len(every)
    return {one: float(share) for one, share in p.items()}


def of_curves(m, w, v, cells):
    """P by the winner on a grid of z and halving of each cell in which it changes."""
    of = sets(m, w, v)
    first = [i for i in range(len(m)) if of[i] == i]

    def best(z):
        # the steepest of each value first, since v μ(x) is v to more than 50 digits where x is large
        x = [m[i] + z * w[i] for i in range(len(m))]
        tops = [i for i in first if all(x[i] >= x[j] for j in first if same(v[i], v[j]))]
        return min(tops, key=lambda i: (1 + mp.exp(-x[i])) / v[i])

    p, grid = [mp.mpf(0)] * len(m), [mp.mpf(-9) + mp.mpf(18) * j / cells for j in range(cells + 1)]
    winners = [best(z) for z in grid]
    parts = [(mp.mpf(-40), grid[0], winners[0])]
    for (low, high), (a, b) in zip(itertools.pairwise(grid), itertools.pairwise(winners), strict=True):
        while a != b and high - low > mp.mpf(10) ** -13:
            middle = (low + high) / 2
            now = best(middle)
            if now == a:
                parts.append((low, middle, a))
                low = middle
            else:
                if now != b:  # a third one wins between: its part is found from this side
                    parts.append((middle, high, b if best((middle + high) / 2) == b else now))
                    b = now
                else:
                    parts.append((middle, high, b))
                high = middle
        parts.append((low, high, a))
    parts.append((grid[-1], mp.mpf(40), winners[-1]))
    for low, high, winner in parts:
        tied = [i for i in range(len(m)) if of[i] == winner]
        for i in tied:
            p[i] += mass(low, high) / len(tied)
    return np.array([float(one) for one in p])


def of_points(m, w, points, weights, *, rho=0.0, omega=0.0):
    """P of each arm, where all scores that differ by no more than their errors, in chains, are one level.

    rho : of m, in widths; omega : of w, as a share
    """
    each = [(i, j) for i in range(len(m)) for j in range(len(points))]
    s = {(i, j): m[i] + mp.mpf(points[j]) * w[i] for i, j in each}
    error = {(i, j): (rho + points[j] * omega) * w[i] + EQUAL * (abs(s[i, j]) + 1) for i, j in each}
    order = sorted(each, key=s.get)
    level = {order[0]: 0}
    for one, after in itertools.pairwise(order):
        level[after] = level[one] + (s[after] - s[one] > error[one] + error[after])
    p = np.zeros(len(m))
    for places in itertools.product(range(len(points)), repeat=len(m)):
        levels = np.array([level[i, j] for i, j in enumerate(places)])
        best = levels == levels.max()
        p += float(np.prod([weights[j] for j in places])) * best / best.sum()
    return p


def of_normals(m, w):
    """P(m_i + w_i z_i is the highest) by Gauss and Legendre's rule on many panels."""
    m, w = (np.array([float(one) for one in part]) for part in (m, w))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    ends = np.unique(np.concatenate([m + q * w for q in np.linspace(-9, 9, 91)]))
    s = ((ends[1:, None] + ends[:-1, None]) / 2 + nodes * np.diff(ends)[:, None] / 2).ravel()
    weight = (weights * np.diff(ends)[:, None] / 2).ravel()
    z = (s[:, None] - m) / w
    below, density = stats.norm.cdf(z), stats.norm.pdf(z) / w
    return np.array([weight @ (density[:, i] * np.prod(np.delete(below, i, axis=1), axis=1)) for i in range(len(m))])


def learnt(given, model, policy, **more):
    b = dither.Bandit(model, policy, dim=given.rough.shape[1], seed=1, **more)
    for i, r in zip(given.rows, given.r, strict=True):
        b.update(given.rough[i], r)
    return b


def check(kind, seed, *, n):
    """What is wrong with one problem: '' where nothing is; and how far the answer is from that of 50 digits.

    None where the model refuses a row in so many words, because float64 cannot hold what is to be learnt.
    """
    given = problem(seed)
    try:
        fault, off = _checked(kind, given, f"{kind} {seed}, {given.of}: ", n=n, normal=seed % 8 == 0)
        return fault, off
    except ValueError as error:
        if "x is too long beside" in str(error):
            return None
        raise


def _checked(kind, given, place, *, n, normal):
    K, rng, X = len(given.X), given.rng, given.rough
    ridge, many = models.Ridge(given.lam), np.broadcast_to(X, (n, *X.shape))
    fp = policies.FeaturePerturbation(c=given.c)
    more, floor, of_ties = {}, 0.0, False
    if kind == "lists":
        wrong, off = _list(given, learnt(given, ridge, fp), n)
        return wrong and place + wrong, off
    if kind == "curves":
        pairs = [cents(rng) for _ in range(K)]
        if rng.random() < 0.5:
            pairs[1] = (pairs[0][0], float(pairs[0][0]))  # the same price, told otherwise
        exact, rough = zip(*pairs, strict=True)
        b, more = learnt(given, models.GLM("logit", lam=given.lam), fp), {"values": np.array(rough)}
        m, w = lines(given, logit=True)
        right = of_curves(m, w, exact, 200)
    elif kind == "uncoupled":
        m, w = lines(given)
        if normal:
            b, right = learnt(given, ridge, policies.FeaturePerturbation(c=given.c, coupled=False)), of_normals(m, w)
        else:
            law = noise.Points((0.0, 0.5, 1.0, 2.0), (0.4, 0.3, 0.2, 0.1))
            b = learnt(given, ridge, policies.RandUCB(law=law, beta=given.c, coupled=False))
            right, of_ties = of_points(m, w, law.points, law.weights), True
    else:
        on = list(range(K))
        if kind == "demands":
            floor = float(rng.choice([0.0, 0.1]))
            if K > 2:
                on.remove(int(rng.integers(K)))
            mask = np.isin(np.arange(K), on)
            least = np.round(rng.random(K) * mask / (2 * K), 2)
            more = {"mask": mask, "minimum": least}
        b = learnt(given, ridge, fp, floor=floor)
        right = of_lines(*lines(given), on)
        if kind == "demands":
            outright = np.maximum(least, floor / len(on)) * mask
            right = outright + (1 - outright.sum()) * right
    p = b.propensities(X, **more)
    off = float(np.max(np.abs(p - right)))
    if kind == "curves" and off > 1e-6:
        right = of_curves(m, w, exact, 4000)  # a narrow part may have lain within a cell
        off = float(np.max(np.abs(p - right)))
    most = LOOSE if given.of == "times" else ITERATED if kind == "curves" else 1e-6
    if of_ties and off > most:  # a tie of points has a mass, however near the scores are
        said = [float(np.max(part)) for part in b.model.rounding(b.state)]
        right = of_points(m, w, law.points, law.weights, rho=said[0] / given.c, omega=said[1])
        off = float(np.max(np.abs(p - right)))
    made = b.choose(many, **more)
    wrong = "" if off < most else f"stated {p}, right {right}"
    if np.max(np.abs(made.propensity - p[made.arm])) > 1e-9:
        wrong = wrong or f"stated {p}, of the arm shown {made.propensity[:5]}"
    if not likely(np.bincount(made.arm, minlength=K), p, n):
        wrong = wrong or f"stated {p}, drawn {np.bincount(made.arm, minlength=K)} of {n}"
    return wrong and place + wrong, off


def _list(given, b, n):
    k = min(2, len(given.X))
    right, every = of_lists(*lines(given), k), b.list_propensities(given.rough, k=k)
    said = {tuple(one): p for one, p in zip(every.lists.tolist(), every.propensity.tolist(), strict=True)}
    off = max(abs(said.get(one, 0.0) - right.get(one, 0.0)) for one in {*said, *right})
    drawn = [
        tuple(one) for one in b.choose_list(np.broadcast_to(given.rough, (n, *given.rough.shape)), k=k).arms.tolist()
    ]
    stated = np.array([*said.values(), 0.0])
    counts = np.array([*(drawn.count(one) for one in said), sum(one not in said for one in drawn)])
    wrong = "" if off < (LOOSE if given.of == "times" else 1e-6) else f"stated {said}, right {right}"
    if not likely(counts, stated, n):
        wrong = wrong or f"stated {said}, drawn {counts} of {n}"
    return wrong, off


def likely(counts, p, n):
    """Whether n draws may be of p: the least binomial tail, and nothing that cannot be."""
    p = np.clip(p, 0, 1)
    if np.any((counts > 0) & (p == 0)):
        return False
    return bool(np.minimum(stats.binom.cdf(counts, n, p), stats.binom.sf(counts - 1, n, p)).min() > LEVEL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    failed = False
    for kind in [chosen.kind] if chosen.kind else KINDS:
        start, wrong, offs = time.process_time(), [], []
        for seed in range(chosen.first, chosen.first + chosen.problems):
            answer = check(kind, seed, n=50)
            if answer is None:
                continue
            fault, off = answer
            offs.append(off)
            if fault:
                wrong.append(fault)
                print(fault, flush=True)
        failed |= bool(wrong)
        refused = chosen.problems - len(offs)
        size, spent = f"{max(offs):.1e}, median {np.median(offs):.1e}", time.process_time() - start
        print(
            f"{kind}: {len(wrong)} of {len(offs)} wrong, {refused} refused, largest difference {size}, {spent:.0f} s",
            flush=True,
        )
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

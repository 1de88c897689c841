"""Writes the conformance suite: histories and arms, and what follows from them, computed at 60 digits.

    python conformance/make.py        # writes linear.json, generalised.json and lines.json beside this file

Nothing of `dither` is imported here. The formulas are those of README.md, written out slowly with mpmath.
"""

import itertools
import json
import math
import random
from pathlib import Path

import mpmath as mp

HERE = Path(__file__).parent
NONE = mp.mpf(10) ** -40  # numbers of 60 digits that are nearer than this are equal


# --- models -----------------------------------------------------------------------------------------------------------


def linear(rows, rewards, *, dim, lam):
    """θ̂ and the matrix whose inverse gives widths: V = λI + Σ xx', θ̂ = V⁻¹ Σ r x."""
    V, b = lam * mp.eye(dim), mp.zeros(dim, 1)
    for x, r in zip(rows, rewards, strict=True):
        V, b = V + x * x.T, b + r * x
    return mp.lu_solve(V, b), V


def generalised(rows, rewards, *, dim, lam, link):
    """θ̂, the minimiser of Σ (A(x'θ) - r x'θ) + λ‖θ‖²/2, and Ĥ = λI + Σ μ'(x'θ̂) xx', by damped Newton steps."""
    mu, slope = LINKS[link]
    theta = mp.zeros(dim, 1)

    def gradient(at):
        return lam * at + sum(((mu(eta(x, at)) - r) * x for x, r in zip(rows, rewards, strict=True)), mp.zeros(dim, 1))

    def hessian(at):
        return lam * mp.eye(dim) + sum((slope(eta(x, at)) * (x * x.T) for x in rows), mp.zeros(dim, dim))

    for _ in range(1000):
        step = mp.lu_solve(hessian(theta), -gradient(theta))
        longest = max([abs(eta(x, step)) for x in rows], default=mp.mpf(0))
        theta = theta + step * min(mp.mpf(1), 1 / longest if longest else mp.mpf(1))
        if mp.norm(step) < mp.mpf(10) ** -50 * (1 + mp.norm(theta)):
            return theta, hessian(theta)
    raise ArithmeticError("Newton's method did not end")


def eta(x, theta):
    """x'θ."""
    return (x.T * theta)[0]


LINKS = {
    "logit": (lambda e: 1 / (1 + mp.exp(-e)), lambda e: mp.exp(-abs(e)) / (1 + mp.exp(-abs(e))) ** 2),
    "log": (mp.exp, mp.exp),
}


# --- laws of z --------------------------------------------------------------------------------------------------------


class Gaussian:
    """z ~ N(0, 1)."""

    def mass(self, low, high):
        """P(low < z < high)."""
        if low >= 0:
            low, high = -high, -low
        return (mp.erfc(-high / mp.sqrt(2)) - mp.erfc(-low / mp.sqrt(2))) / 2

    def pdf(self, z):
        """The density."""
        return mp.npdf(z)


class Ball:
    """z = u'ζ for ζ uniform in the ball of radius √d: z/√d = 2B - 1 with B ~ Beta((d+1)/2, (d+1)/2)."""

    def __init__(self, dim):
        self.dim = dim

    def mass(self, low, high):
        """P(low < z < high)."""
        a = mp.mpf(self.dim + 1) / 2

        def share(z):
            return min(max((1 + z / mp.sqrt(self.dim)) / 2, mp.mpf(0)), mp.mpf(1))

        return mp.betainc(a, a, share(low), share(high), regularized=True)


def half_gaussian(m=20, sd="0.125", last="1e-6"):
    """The values and probabilities of RandUCB's multiple of the bonus."""
    values = [mp.mpf(j) / (m - 1) for j in range(m)]
    shares = [mp.npdf(a / mp.mpf(sd)) / mp.mpf(sd) for a in values]
    shares[-1] = mp.mpf(last)
    return values, [share / sum(shares) for share in shares]


# --- probabilities ----------------------------------------------------------------------------------------------------


def tied(scores, offered):
    """The arms that share the highest score."""
    top = max(scores[i] for i in offered)
    return [i for i in offered if top - scores[i] < NONE]


def shares(arms, K):
    """Equal probabilities of these arms, (K)."""
    return [mp.mpf(i in arms) / len(arms) for i in range(K)]


def coupled(m, w, law, offered):
    """One z for all arms. Arm i wins for z between its crossings with all others; equal lines share."""
    answer = [mp.mpf(0)] * len(m)
    for i in offered:
        low, high, copies = -mp.inf, mp.inf, 0
        for j in offered:
            if abs(w[j] - w[i]) < NONE:
                copies += abs(m[j] - m[i]) < NONE
                high = -mp.inf if m[j] - m[i] >= NONE else high
            elif w[j] > w[i]:
                high = min(high, (m[i] - m[j]) / (w[j] - w[i]))
            else:
                low = max(low, (m[j] - m[i]) / (w[i] - w[j]))
        if high > low:
            answer[i] = law.mass(low, high) / copies
    return answer


def each_alone(m, w, law, offered):
    """A z for each arm, Gaussian: ∫ φ(z) Π_j Φ((m_i - m_j + w_i z)/w_j) dz."""
    answer = [mp.mpf(0)] * len(m)
    for i in offered:

        def integrand(z, i=i):
            others = [mp.ncdf((m[i] - m[j] + w[i] * z) / w[j]) for j in offered if j != i]
            return mp.fprod([law.pdf(z), *others])

        with mp.workdps(30):
            answer[i] = mp.quad(integrand, [-14, -8, -6, *[mp.mpf(k) / 2 for k in range(-9, 10)], 6, 8, 14])
    return answer


def points(m, w, offered, *, one):
    """z takes finitely many values: one for all arms, or one for each. All combinations are gone through."""
    values, weights = half_gaussian()
    answer = [mp.mpf(0)] * len(m)
    for drawn in itertools.product(range(len(values)), repeat=1 if one else len(offered)):
        at = dict(zip(offered, drawn * (len(offered) if one else 1), strict=False))
        scores = [m[i] + w[i] * values[at[i]] if i in at else None for i in range(len(m))]
        p = mp.fprod(weights[j] for j in drawn)
        arms = tied(scores, offered)
        for i in arms:
            answer[i] += p / len(arms)
    return answer


def probabilities(policy, m, w, offered, *, dim):
    """P (K,) of the choices of this policy, without ε and floor. w are the widths; the scale is applied here."""
    K, kind = len(m), policy["kind"]
    if kind in ("greedy", "eps_greedy"):
        return shares(tied(m, offered), K)
    if kind == "ucb":
        return shares(tied([a + mp.mpf(policy["beta"]) * b for a, b in zip(m, w, strict=True)], offered), K)
    if kind == "rand_ucb":
        return points(m, [mp.mpf(policy["beta"]) * b for b in w], offered, one=policy["coupled"])
    by = [mp.mpf(policy["c"]) * mp.mpf(policy["sigma"]) * b for b in w]
    law = Gaussian() if policy["noise"] == "gaussian" else Ball(dim)
    return (coupled if policy["coupled"] else each_alone)(m, by, law, offered)


def mixed(p, offered, share):
    """A share of the choices is uniform over the arms on offer."""
    return [(1 - share) * p[i] + (share / len(offered) if i in offered else 0) for i in range(len(p))]


# --- cases ------------------------------------------------------------------------------------------------------------


def numbers(values):
    """The nearest float64 numbers; -inf and inf as JSON has none: null."""
    return [None if mp.isinf(v) else float(v) for v in values]


def log(p):
    """log p, with log 0 = -∞."""
    return -mp.inf if p == 0 else mp.log(p)


def vector(values):
    """A column of numbers."""
    return mp.matrix([mp.mpf(v) for v in values])


def short(rng, n, digits=3):
    """n numbers of few binary digits: they are the same in every language and precision."""
    return [round(rng.gauss(0, 1) * 2**digits) / 2**digits for _ in range(n)]


def case(name, *, model, policy, rows, rewards, arms, zs, mask=None, floor=0.0):
    """A case of linear.json or generalised.json."""
    dim, lam = model["dim"], mp.mpf(model["lam"])
    X, history = [vector(x) for x in arms], [vector(x) for x in rows]
    fit = [mp.mpf(r) for r in rewards]
    if model["kind"] == "linear":
        theta, matrix = linear(history, fit, dim=dim, lam=lam)
    else:
        theta, matrix = generalised(history, fit, dim=dim, lam=lam, link=model["link"])
    inverse = matrix**-1
    m = [eta(x, theta) for x in X]
    w = [mp.sqrt((x.T * inverse * x)[0]) for x in X]
    offered = [i for i in range(len(X)) if mask is None or mask[i]]
    answer = {"name": name, "model": model, "policy": policy, "floor": floor}
    answer |= {"history": {"X": rows, "r": rewards}, "arms": {"X": arms, "mask": mask}}
    answer |= {"theta": numbers(theta), "means": numbers(m), "widths": numbers(w)}
    return answer | chances(policy, m, w, offered, dim=dim, floor=floor, zs=zs)


def chances(policy, m, w, offered, *, dim, floor, zs):
    """What the arms' means and widths lead to: arms at given z, and probabilities."""
    K, kind = len(m), policy["kind"]
    own = mp.mpf(policy["epsilon"]) if kind == "eps_greedy" else mp.mpf(0)
    by = {"ucb": "beta", "rand_ucb": "beta", "feature_perturbation": "c"}.get(kind)
    scale = mp.mpf(policy[by]) * mp.mpf(policy.get("sigma", 1)) if by else mp.mpf(0)
    choices = []
    for z in [1.0] if kind == "ucb" else [0.0] if kind in ("greedy", "eps_greedy") else zs:
        each = z if isinstance(z, list) else [z] * K
        scores = [a + mp.mpf(s) * scale * b for a, b, s in zip(m, w, each, strict=True)]
        best = tied(scores, offered)
        gap = min([max(scores[i] for i in offered) - scores[i] for i in offered if i not in best], default=mp.inf)
        crossing = kind == "feature_perturbation" and any(
            isinstance(z, list) or abs(m[i] - m[best[0]]) + abs(w[i] - w[best[0]]) > NONE for i in best[1:]
        )
        # A z at which lines cross has probability 0, and a port's rounding may settle a z near it otherwise.
        if gap > mp.mpf(10) ** -6 and not crossing:
            choices.append({"z": z, "arms": best})
    p = mixed(probabilities(policy, m, w, offered, dim=dim), offered, own + mp.mpf(floor) * (1 - own))
    return {
        "choices": choices if kind not in ("ucb", "greedy", "eps_greedy") else [c | {"z": None} for c in choices],
        "probabilities": numbers(p),
        "log_probabilities": numbers([log(v) for v in p]),
    }


FP = {"kind": "feature_perturbation", "c": 1.0, "sigma": 1.0, "noise": "gaussian", "coupled": True}
POLICIES = {
    "greedy": {"kind": "greedy"},
    "epsilon-greedy": {"kind": "eps_greedy", "epsilon": 0.125},
    "optimism": {"kind": "ucb", "beta": 1.5},
    "feature perturbation": FP,
    "feature perturbation, c = 1/4, sigma = 1/2": FP | {"c": 0.25, "sigma": 0.5},
    "feature perturbation, ball": FP | {"noise": "ball"},
    "feature perturbation, a draw for each arm": FP | {"coupled": False},
    "randomised optimism": {"kind": "rand_ucb", "beta": 2.0, "coupled": True},
    "randomised optimism, a draw for each arm": {"kind": "rand_ucb", "beta": 2.0, "coupled": False},
}
ZS = [-3.0, -1.25, -0.5, 0.0, 0.25, 1.0, 2.5]
HALF = [j / 19 for j in (0, 3, 9, 19)]


def drawn(policy, K, rng):
    """The values of z that are asked for: numbers, or lists of K."""
    values = HALF if policy["kind"] == "rand_ucb" else ZS
    return values if policy.get("coupled", True) else [[rng.choice(values) for _ in range(K)] for _ in range(4)]


def histories(rng, dim, reward):
    """Name -> rows, rewards."""
    some = [short(rng, dim) for _ in range(24)]
    line = [[1.0] + [0.0] * (dim - 1)] * 5
    return {
        "nothing learnt": ([], []),
        "one row": (some[:1], [reward(rng)]),
        "24 rows": (some, [reward(rng) for _ in some]),
        "one row five times": (line, [reward(rng) for _ in line]),
    }


def of_model(kind, reward, *, seed, dim=3, K=4):
    """Every policy on every history, and then masks, a floor, copies and another prior."""
    rng = random.Random(seed)
    model = kind | {"dim": dim, "lam": 0.5}
    arms = [short(rng, dim) for _ in range(K)]
    learnt = histories(rng, dim, reward)
    found = []
    for (what, (rows, rewards)), (who, policy) in itertools.product(learnt.items(), POLICIES.items()):
        zs = drawn(policy, K, rng)
        found.append(case(f"{who}; {what}", model=model, policy=policy, rows=rows, rewards=rewards, arms=arms, zs=zs))
    rows, rewards = learnt["24 rows"]
    more = dict(model=model, rows=rows, rewards=rewards)
    copies = [arms[0], arms[1], arms[0], arms[2], arms[0], arms[1]]
    for who in ("greedy", "feature perturbation", "randomised optimism"):
        policy = POLICIES[who]
        zs, own = drawn(policy, K, rng), more | {"policy": policy}
        found.append(case(f"{who}; an arm is not on offer", arms=arms, mask=[True, False, True, True], zs=zs, **own))
        found.append(case(f"{who}; one arm is on offer", arms=arms, mask=[False, False, True, False], zs=zs, **own))
        found.append(case(f"{who}; floor", arms=arms, floor=0.0625, zs=zs, **own))
        found.append(case(f"{who}; copies of arms", arms=copies, zs=zs, **own))
        found.append(case(f"{who}; arms of zeros", arms=[arms[0], [0.0] * dim, [0.0] * dim], zs=zs, **own))
    own = more | {"policy": POLICIES["feature perturbation"]}
    for lam in (2.0**-13, 64.0):
        found.append(
            case(f"feature perturbation; lambda = {lam}", arms=arms, zs=ZS, **own | {"model": model | {"lam": lam}})
        )
    return found


def of_lines(name, m, w, *, noise="gaussian", dim=3, mask=None, zs=ZS):
    """A case of lines.json."""
    policy = FP | {"noise": noise}
    offered = [i for i in range(len(m)) if mask is None or mask[i]]
    follows = chances(policy, [mp.mpf(v) for v in m], [mp.mpf(v) for v in w], offered, dim=dim, floor=0.0, zs=zs)
    return {"name": name, "means": m, "widths": w, "mask": mask, "noise": noise, "dim": dim} | follows


def all_lines():
    """The cases of lines.json."""
    rng = random.Random(3)
    far = [[-8.0, 0.0], [-32.0, 0.0], [-38.5, 0.0], [-100.0, 0.0]]
    found = [
        of_lines("two lines", [0.5, 0.0], [0.5, 1.0]),
        of_lines("two equal lines", [0.25, 0.25], [1.0, 1.0]),
        of_lines("parallel lines", [0.25, 0.5, 0.0], [1.0, 1.0, 1.0]),
        of_lines("equal means, widths of 0", [1.0, 1.0, 0.5], [0.0, 0.0, 0.0]),
        of_lines("three lines through one point", [0.0, 0.0, 0.0], [0.5, 1.0, 1.5]),
        of_lines("one line below two others", [0.0, -0.5, 0.0], [0.5, 1.0, 1.5]),
        of_lines("one arm", [0.5], [1.0]),
        of_lines("masked", [0.5, 3.0, 0.0], [0.5, 1.0, 1.0], mask=[True, False, True]),
        of_lines("tangents of a parabola", [-(k**2) / 32 for k in range(12)], [k / 4 for k in range(12)]),
        of_lines("large and small", [2.0**40, 0.0, 1.0], [1.0, 2.0**40, 2.0**38]),
    ]
    found += [of_lines(f"a tail at {-m[0]:g}", m, [1.0, 2.0]) for m in far]
    found += [
        of_lines(f"ball, d = {d}", [0.5, 0.0, 0.125], [0.5, 1.0, 0.75], noise="ball", dim=d) for d in (1, 2, 10, 100)
    ]
    found.append(of_lines("ball, a crossing outside", [5.0, 0.0], [0.5, 1.0], noise="ball", dim=2))
    for n in range(10):
        K = rng.randint(2, 30)
        found.append(of_lines(f"{K} lines, number {n}", short(rng, K), [abs(v) for v in short(rng, K)]))
    return found


def write(name, what, cases):
    """Write a file, a case a line."""
    text = ",\n".join(json.dumps(each, ensure_ascii=False, allow_nan=False) for each in cases)
    about = json.dumps({"format": 1, "what": what}, ensure_ascii=False)[1:-1]
    (HERE / name).write_text(f'{{{about}, "cases": [\n{text}\n]}}\n', encoding="utf-8")


def suite():
    """File name -> what it holds, and its cases."""
    mp.mp.dps = 60
    click, count = (lambda rng: float(rng.random() < 0.5)), (lambda rng: float(math.floor(4 * rng.random())))
    logit, counts = ({"kind": "generalised", "link": link} for link in ("logit", "log"))
    return {
        "linear.json": ("linear models", of_model({"kind": "linear"}, lambda rng: short(rng, 1)[0], seed=1)),
        "generalised.json": (
            "generalised linear models",
            of_model(logit, click, seed=2) + of_model(counts, count, seed=4),
        ),
        "lines.json": ("arms given as lines m + z w", all_lines()),
    }


if __name__ == "__main__":
    for name, (what, cases) in suite().items():
        write(name, what, cases)
        print(name, len(cases))

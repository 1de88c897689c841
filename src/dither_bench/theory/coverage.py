"""How often the events of the analysis happen (paper, Definition 1, Lemmas 1 and 2), against δ.

Ê_T  ‖θ̂_t - θ*‖ in the norm of Ĥ_t <= β_t(δ')
Ẽ_T  |z_t| <= c_{δ'}, t = 1..T

with δ' = δ/(4T). The lemmas say that each event fails with probability at most δ/4. Ê_T is looked at for two estimates:
the ridge estimate, which the policy uses, and the minimiser over ‖θ‖ <= S without ridge, which the lemma is about. Both
see the data of one policy (c_t = 1), and both are looked at in the same rounds, spaced evenly in log t.
"""

from typing import Any, NamedTuple

import numpy as np

from dither import models, theory
from dither_bench.theory.part import Measurement, begin, coloured, legends
from dither_bench.theory.play import NORMS, Setting, Size, fp, play, setting

DELTAS = (0.01, 0.05, 0.1, 0.2, 0.5)
SHOWN = 0.1  # the δ of the quantiles
NO_RIDGE = 1e-6  # λ of the constrained estimate, in place of 0: the solver needs a λ above 0
MARKS = 40  # the most rounds at which the estimates are looked at
EXACT = "z ~ N(0, 1), exact"


class Watched(NamedTuple):
    """T rounds of R runs. The estimates were looked at in P of these rounds."""

    L: np.ndarray  # (P, R)  L_t
    off: dict[str, np.ndarray]  # estimate -> (P, R)  ‖θ̂ - θ*‖ in the norm of Ĥ
    z: np.ndarray  # (T, R)
    descends: np.ndarray  # (P, R)  whether <∇L(θ̂), θ* - θ̂> < 0 for the ridge estimate
    outside: np.ndarray  # (P, R)  whether ‖θ̂‖ > S for the ridge estimate


def measure(size: Size, *, seed: int) -> Measurement:
    """Measure how often the events happen, and the factor by which β_t could shrink."""
    part = begin("coverage", "Coverage of Ê_T and Ẽ_T against δ", panels=2, head="The events of the analysis")
    ratios = {}
    for name, S in NORMS.items():
        bandit = setting(name, size, S=S)
        rounds = watch(bandit, size, seed=seed)
        label = f"{name}, S = {S:g}"
        part.note(
            f"{label}, ridge estimate",
            ("share of rounds with <∇L(θ̂), θ* − θ̂> < 0", rounds.descends.mean()),
            ("share of rounds with ‖θ̂‖ > S", rounds.outside.mean()),
        )
        for estimate in rounds.off:
            mine = f"{label}, {estimate}"
            for delta in DELTAS:
                worst = ratio(bandit, rounds, size, S=S, delta=delta, estimate=estimate)
                part.note(mine, (f"P(Ê_T), δ = {delta:g}", np.mean(worst <= 1), 1 - delta / 4))
            ratios[mine] = worst = ratio(bandit, rounds, size, S=S, delta=SHOWN, estimate=estimate)
            for q in (0.5, 1 - SHOWN, 1.0):
                text = f"max_t ‖θ̂ − θ*‖/β_t, δ = {SHOWN:g}: {q:.0%} quantile"
                part.note(mine, (text, np.quantile(worst, q), 1.0 if q == 1 - SHOWN else None))
            factor = np.quantile(worst, 1 - SHOWN)
            part.says.append(f"{mine}: {factor:.2f} β_t would have covered θ* in {1 - SHOWN:.0%} of the runs.")
    concentrate(part, rounds.z, size)
    _draw(part, ratios)
    return part


def watch(bandit: Setting, size: Size, *, seed: int) -> Watched:
    """Play with c_t = 1. Before each round that is looked at, note how far both estimates are from θ*."""
    S = bandit.env.norm
    other = models.GLM(link=bandit.link.name, lam=bandit.model.lam, solver="exact", constrain=S, ridge=NO_RIDGE)
    state, L = other.init(size.dim, batch=(size.runs,)), np.zeros(size.runs)
    marks = set(np.geomspace(1, size.rounds, MARKS).round().astype(int).tolist())
    looks: list[tuple[Any, ...]] = []
    z: list[np.ndarray] = []
    new: list[tuple[np.ndarray, np.ndarray]] = []
    for now in play(bandit.env, bandit.model, fp(), size=size, seed=seed):
        z.append(now.chance[0])
        if now.t in marks:
            if new:
                X, r = (np.stack(kind, axis=1) for kind in zip(*new, strict=True))
                L = L + theory.lipschitz(X, r, S, bandit.link)
                state, new = other.update_many(state, X, r), []
            theta = now.state.theta
            product = np.vecdot(theta, theta) - np.vecdot(theta, now.theta)  # <∇L(θ̂), θ* - θ̂>/λ, as ∇L(θ̂) = -λθ̂
            far = np.linalg.norm(theta, axis=-1) > S
            looks.append((L, distance(now.state, now.theta), distance(state, now.theta), product < 0, far))
        new.append((now.x, now.r))
    L_t, ridge, constrained, descends, outside = (np.stack(kind) for kind in zip(*looks, strict=True))
    off = {"ridge estimate": ridge, "constrained estimate": constrained}
    return Watched(L_t, off, np.stack(z), descends, outside)


def distance(state: Any, theta: np.ndarray) -> np.ndarray:
    """‖θ̂ - θ*‖ in the norm of Ĥ = (FF')⁻¹: (R,)."""
    return np.linalg.norm(np.linalg.solve(state.F, (state.theta - theta)[..., None])[..., 0], axis=-1)


def ratio(bandit: Setting, rounds: Watched, size: Size, *, S: float, delta: float, estimate: str) -> np.ndarray:
    """max_t ‖θ̂ - θ*‖/β_t(δ') of every run: (R,)."""
    T, M = size.rounds, float(bandit.link.M(S))
    radius = theory.beta(T, d=size.dim, lam=bandit.model.lam, S=S, M=M, L=rounds.L, delta=delta / (4 * T))
    return np.max(rounds.off[estimate] / radius, axis=0)


def concentrate(part: Measurement, z: np.ndarray, size: Size) -> None:
    """Note P(Ẽ_T), exactly and as seen in z (T, R)."""
    T, worst = size.rounds, np.max(np.abs(z), axis=0)
    for delta in DELTAS:
        event, least = f"P(Ẽ_T), δ = {delta:g}", 1 - delta / 4
        part.note(EXACT, (event, theory.concentration(T, delta=delta), least))
        part.note("z as drawn", (event, np.mean(worst <= theory.c_delta(delta / (4 * T))), least))


def _draw(part: Measurement, ratios: dict[str, np.ndarray]) -> None:
    left, right = part.axes
    for i, (name, colour) in enumerate(coloured([*ratios, EXACT])):
        mine = [row for row in part.rows if row.setting == name and row.quantity.startswith("P(")]
        event = mine[0].quantity[2:5]
        look = dict(color=colour, marker="osv^D"[i], markersize=7 - i, linewidth=1.2)
        left.plot(DELTAS, [row.value for row in mine], label=f"{event}: {name}", **look)
        if name in ratios:
            factors = np.sort(ratios[name])
            shares = np.arange(1, len(factors) + 1) / len(factors)
            right.step(factors, shares, where="post", color=colour, label=name)
    left.plot(DELTAS, [1 - delta / 4 for delta in DELTAS], color="#444444", linestyle="--", label="1 − δ/4")
    left.set(xscale="log", xlabel="δ", ylabel="share of runs", ylim=(0.8, 1.01), title="coverage")
    right.axvline(1.0, color="#444444", linestyle="--")
    right.axhline(1 - SHOWN, color="#444444", linestyle=":", linewidth=0.9)
    right.set(xscale="log", xlabel=f"factor on β_t (δ = {SHOWN:g})", ylabel="coverage")
    right.set_title("coverage of a scaled β_t")
    legends(part.axes, size=7.5)

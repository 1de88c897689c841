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
from dither_bench.theory.part import Part, Row, canvas, colours
from dither_bench.theory.play import Setting, Size, fp, play, setting

DELTAS = (0.01, 0.05, 0.1, 0.2, 0.5)
SHOWN = 0.1  # the δ of the quantiles
NORMS = {"linear": 1.0, "logistic": 2.0}  # S
NO_RIDGE = 1e-6  # λ of the constrained estimate, in place of 0: the solver needs a λ above 0
MARKS = 40  # the most rounds at which the estimates are looked at


class Seen(NamedTuple):
    """What was seen in T rounds of R runs. The estimates were looked at in P of these rounds."""

    L: np.ndarray  # (P, R)  L_t
    off: dict[str, np.ndarray]  # estimate -> (P, R)  ‖θ̂ - θ*‖ in the norm of Ĥ
    z: np.ndarray  # (T, R)
    descends: np.ndarray  # (P, R)  whether <∇L(θ̂), θ* - θ̂> < 0 for the ridge estimate
    outside: np.ndarray  # (P, R)  whether ‖θ̂‖ > S for the ridge estimate


def measure(size: Size, *, seed: int) -> Part:
    """Measure how often the events happen, and the factor by which β_t could shrink."""
    rows: list[Row] = []
    says, ratios = [], {}
    made, (left, right) = canvas(2, title="The events of the analysis")
    for name, S in NORMS.items():
        given = setting(name, size, S=S)
        seen = watch(given, size, seed=seed)
        label = f"{name}, S = {S:g}"
        rows += [
            Row(
                "coverage", f"{label}, ridge estimate", "share of rounds with <∇L(θ̂), θ* − θ̂> < 0", seen.descends.mean()
            ),
            Row("coverage", f"{label}, ridge estimate", "share of rounds with ‖θ̂‖ > S", seen.outside.mean()),
        ]
        for estimate in seen.off:
            mine = f"{label}, {estimate}"
            for delta in DELTAS:
                worst = ratio(given, seen, size, S=S, delta=delta, estimate=estimate)
                rows.append(Row("coverage", mine, f"P(Ê_T), δ = {delta:g}", float(np.mean(worst <= 1)), 1 - delta / 4))
            ratios[mine] = worst = ratio(given, seen, size, S=S, delta=SHOWN, estimate=estimate)
            for q in (0.5, 1 - SHOWN, 1.0):
                text = f"max_t ‖θ̂ − θ*‖/β_t, δ = {SHOWN:g}: {q:.0%} quantile"
                rows.append(Row("coverage", mine, text, float(np.quantile(worst, q)), 1.0 if q == 1 - SHOWN else None))
            factor = np.quantile(worst, 1 - SHOWN)
            says.append(f"{mine}: {factor:.2f} β_t would have covered θ* in {1 - SHOWN:.0%} of the runs.")
    rows += concentrated(seen.z, size)
    _draw(left, right, rows, ratios)
    return Part("coverage", "Coverage of Ê_T and Ẽ_T against δ", rows, says, made)


def watch(given: Setting, size: Size, *, seed: int) -> Seen:
    """Play with c_t = 1. Before each round that is looked at, note how far both estimates are from θ*."""
    S = given.env.norm
    other = models.GLM(link=given.link.name, lam=given.model.lam, solver="exact", constrain=S, ridge=NO_RIDGE)
    state, L = other.init(size.dim, batch=(size.runs,)), np.zeros(size.runs)
    marks = set(np.geomspace(1, size.rounds, MARKS).round().astype(int).tolist())
    kept: list[tuple[Any, ...]] = []
    z: list[np.ndarray] = []
    new: list[tuple[np.ndarray, np.ndarray]] = []
    for now in play(given.env, given.model, fp(), size=size, seed=seed):
        z.append(now.chance[0])
        if now.t in marks:
            if new:
                X, r = (np.stack(kind, axis=1) for kind in zip(*new, strict=True))
                L = L + theory.lipschitz(X, r, S, given.link)
                state, new = other.update_many(state, X, r), []
            theta = now.state.theta
            product = np.vecdot(theta, theta) - np.vecdot(theta, now.theta)  # <∇L(θ̂), θ* - θ̂>/λ, as ∇L(θ̂) = -λθ̂
            far = np.linalg.norm(theta, axis=-1) > S
            kept.append((L, distance(now.state, now.theta), distance(state, now.theta), product < 0, far))
        new.append((now.x, now.r))
    L_t, ridge, constrained, descends, outside = (np.stack(kind) for kind in zip(*kept, strict=True))
    off = {"ridge estimate": ridge, "constrained estimate": constrained}
    return Seen(L_t, off, np.stack(z), descends, outside)


def distance(state: Any, theta: np.ndarray) -> np.ndarray:
    """‖θ̂ - θ*‖ in the norm of Ĥ = (FF')⁻¹: (R,)."""
    return np.linalg.norm(np.linalg.solve(state.F, (state.theta - theta)[..., None])[..., 0], axis=-1)


def ratio(given: Setting, seen: Seen, size: Size, *, S: float, delta: float, estimate: str) -> np.ndarray:
    """max_t ‖θ̂ - θ*‖/β_t(δ') of every run: (R,)."""
    T, M = size.rounds, float(given.link.M(S))
    radius = theory.beta(T, d=size.dim, lam=given.model.lam, S=S, M=M, L=seen.L, delta=delta / (4 * T))
    return np.max(seen.off[estimate] / radius, axis=0)


def concentrated(z: np.ndarray, size: Size) -> list[Row]:
    """P(Ẽ_T), exactly and as seen in z (T, R)."""
    found, T, worst = [], size.rounds, np.max(np.abs(z), axis=0)
    for delta in DELTAS:
        least = 1 - delta / 4
        exact = theory.concentration(T, delta=delta)
        seen = np.mean(worst <= theory.c_delta(delta / (4 * T)))
        found += [
            Row("coverage", "z ~ N(0, 1), exact", f"P(Ẽ_T), δ = {delta:g}", exact, least),
            Row("coverage", "z as drawn", f"P(Ẽ_T), δ = {delta:g}", seen, least),
        ]
    return found


def _draw(left: Any, right: Any, rows: list[Row], ratios: dict[str, np.ndarray]) -> None:
    names = [*ratios, "z ~ N(0, 1), exact"]
    for i, (name, colour) in enumerate(colours(names).items()):
        mine = [row for row in rows if row.setting == name and row.quantity.startswith("P(")]
        event = mine[0].quantity[2:5]
        look = dict(color=colour, marker="osv^D"[i], markersize=7 - i, linewidth=1.2)
        left.plot(DELTAS, [row.value for row in mine], label=f"{event}: {name}", **look)
        if name in ratios:
            found = np.sort(ratios[name])
            right.step(found, np.arange(1, len(found) + 1) / len(found), where="post", color=colour, label=name)
    left.plot(DELTAS, [1 - delta / 4 for delta in DELTAS], color="#444444", linestyle="--", label="1 − δ/4")
    left.set(xscale="log", xlabel="δ", ylabel="share of runs", ylim=(0.8, 1.01), title="coverage")
    right.axvline(1.0, color="#444444", linestyle="--")
    right.axhline(1 - SHOWN, color="#444444", linestyle=":", linewidth=0.9)
    right.set(
        xscale="log", xlabel=f"factor on β_t (δ = {SHOWN:g})", ylabel="coverage", title="coverage of a scaled β_t"
    )
    for ax in (left, right):
        ax.legend(fontsize=7.5, frameon=False)

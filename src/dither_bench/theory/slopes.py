"""The regret and the bound of Theorem 1 against T: slopes in log-log, and the T from which the bound says something.

The bound is that of Appendix E with its constants, at λ = d and c_t = β_t(δ'). The bound called "repaired" has the
constants that the proof needs (docs/theory.md). T times the largest gap is the regret of the worst choices, so a bound
says something only where it is below that.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dither import theory
from dither.simulation import simulate
from dither_bench.theory.optimistic import DELTA, NORMS, loss_lipschitz, radius
from dither_bench.theory.part import Part, Row, canvas, colours
from dither_bench.theory.play import Setting, Size, fp, setting
from dither_bench.theory.width import slope


def measure(size: Size, *, seed: int) -> Part:
    """Measure the slope of the regret, and compute that of the bound."""
    rows: list[Row] = []
    says = []
    made, axes = canvas(len(NORMS), title="Regret and the bound of Theorem 1")
    for ax, (name, S) in zip(axes, NORMS.items(), strict=True):
        theirs = setting(name, size, S=S, lam=float(size.dim))  # λ = O(d)
        ours = setting(name, size, S=S)
        agents = {
            "c_t = 1, λ = 1e-4": (ours.model, fp()),
            f"c_t = β_t(δ'), λ = {size.dim}": (theirs.model, fp(radius(theirs, size))),
        }
        results = simulate(theirs.env, agents, runs=size.runs, rounds=size.rounds, seed=seed)
        late = results.rounds >= size.rounds / 10
        gap = float(theirs.link.mu(np.float64(S)) - theirs.link.mu(np.float64(-S)))
        for label, regret, colour in zip(agents, results.regret, colours(list(agents)).values(), strict=True):
            mean, (low, high) = regret.mean(axis=0), np.quantile(regret, (0.25, 0.75), axis=0)
            mine = f"{name}, S = {S:g}, {label}"
            rows += [
                Row("slopes", mine, f"regret at T = {size.rounds}", mean[-1]),
                Row(
                    "slopes", mine, "slope of log regret in log T, last decade", slope(mean[late], results.rounds[late])
                ),
            ]
            ax.plot(results.rounds, mean, color=colour, label=f"regret, {label}")
            ax.fill_between(results.rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        for kind, style in (("as printed", "--"), ("repaired", ":")):
            total = bound(theirs, size, repaired=kind == "repaired")
            mine = f"{name}, S = {S:g}, bound {kind}"
            begins = theory.informative_from(total, gap=gap)
            rows += [
                Row("slopes", mine, f"bound at T = {size.rounds}", total(size.rounds)),
                Row("slopes", mine, "bound over T times the largest gap", total(size.rounds) / (gap * size.rounds)),
                Row("slopes", mine, f"slope of the log bound at T = {size.rounds}", steep(total, size.rounds), 0.5),
                Row("slopes", mine, "bound below T times the largest gap from T =", begins),
                Row("slopes", mine, "slope of the log bound there", steep(total, begins), 0.5),
            ]
            T = np.geomspace(10, 100 * begins, 200)
            ax.plot(T, [total(t) for t in T], color="#444444", linestyle=style, label=f"bound, {kind}")
            if kind == "as printed":
                ax.plot(T, gap * T, color="#8C6D31", linewidth=0.9, label="T times the largest gap")
                says.append(_says(rows, f"{name}, S = {S:g}", begins, size))
        ax.set(xscale="log", yscale="log", xlabel="T", title=f"{name}, S = {S:g}, d = {size.dim}")
        ax.legend(fontsize=7, frameon=False)
    axes[0].set_ylabel("regret R(T)")
    return Part("slopes", "Regret and bound against T", rows, says, made)


def bound(
    given: Setting, size: Size, *, kappa_star: float | None = None, repaired: bool = False
) -> Callable[[float], float]:
    """The function T -> bound of Theorem 1, for unit features. Without κ_* it takes L_μ, which no κ_* exceeds."""
    S, link = given.env.norm, given.link
    L_mu = float(link.L(S))

    def total(T: float) -> float:
        return theory.theorem(
            T,
            d=size.dim,
            lam=given.model.lam,
            S=S,
            M=float(link.M(S)),
            L_mu=L_mu,
            L=loss_lipschitz(given.name, T, S=S, delta=DELTA),
            kappa=link.kappa(S),
            kappa_star=L_mu if kappa_star is None else kappa_star,
            R_star=float(abs(link.mu(np.float64(S)))),
            delta=DELTA,
            repaired=repaired,
        ).total

    return total


def steep(f: Callable[[float], float], T: float) -> float:
    """The slope of log f in log T."""
    return (math.log(f(T * 1.01)) - math.log(f(T / 1.01))) / (2 * math.log(1.01))


def _says(rows: list[Row], label: str, begins: float, size: Size) -> str:
    mine: dict[str, Any] = {row.quantity: row.value for row in rows if row.setting.startswith(f"{label}, c_t = 1,")}
    return (
        f"{label}: with c_t = 1 the regret grows like T^{mine['slope of log regret in log T, last decade']:.2f}. "
        f"The bound is below T times the largest gap from T = {begins:.1e} on (d = {size.dim}, δ = {DELTA:g})."
    )

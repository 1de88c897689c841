"""The regret and the bound of Theorem 1 against T: slopes in log-log, and the T from which the bound says something.

The bound is that of Appendix E with its constants, at λ = d and c_t = β_t(δ'). The bound called "repaired" has the
constants that the proof needs (docs/theory.md). T times the largest gap is the regret of the worst choices, so a bound
says something only where it is below that.
"""

import math
from collections.abc import Callable

import numpy as np

from dither import theory
from dither.simulation import simulate
from dither_bench.theory.optimistic import DELTA, loss_lipschitz, radius
from dither_bench.theory.part import Measurement, begin, coloured, legends
from dither_bench.theory.play import NORMS, Setting, Size, fp, setting
from dither_bench.theory.width import slope


def measure(size: Size, *, seed: int) -> Measurement:
    """Measure the slope of the regret, and compute that of the bound."""
    head = "Regret and the bound of Theorem 1"
    part = begin("slopes", "Regret and bound against T", panels=len(NORMS), head=head)
    for ax, (name, S) in zip(part.axes, NORMS.items(), strict=True):
        theirs = setting(name, size, S=S, lam=float(size.dim))  # λ = O(d)
        ours, here = setting(name, size, S=S), f"{name}, S = {S:g}"
        gap = float(theirs.link.mu(np.float64(S)) - theirs.link.mu(np.float64(-S)))
        agents = {
            "c_t = 1, λ = 1e-4": (ours.model, fp()),
            f"c_t = β_t(δ'), λ = {size.dim}": (theirs.model, fp(radius(theirs, size))),
        }
        results = simulate(theirs.env, agents, runs=size.runs, rounds=size.rounds, seed=seed)
        late, steepness = results.rounds >= size.rounds / 10, []
        for (label, colour), regret in zip(coloured(agents), results.regret, strict=True):
            mean, (low, high) = regret.mean(axis=0), np.quantile(regret, (0.25, 0.75), axis=0)
            steepness.append(slope(mean[late], results.rounds[late]))
            last = ("slope of log regret in log T, last decade", steepness[-1])
            part.note(f"{here}, {label}", (f"regret at T = {size.rounds}", mean[-1]), last)
            ax.plot(results.rounds, mean, color=colour, label=f"regret, {label}")
            ax.fill_between(results.rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        for kind, style in (("as printed", "--"), ("repaired", ":")):
            begins, total = _bounded(part, f"{here}, bound {kind}", theirs, size, gap=gap, repaired=kind == "repaired")
            T = np.geomspace(10, 100 * begins, 200)
            ax.plot(T, [total(t) for t in T], color="#444444", linestyle=style, label=f"bound, {kind}")
            if kind == "as printed":
                ax.plot(T, gap * T, color="#8C6D31", linewidth=0.9, label="T times the largest gap")
                part.says.append(
                    f"{here}: with c_t = 1 the regret grows like T^{steepness[0]:.2f}. The bound is below T times the "
                    f"largest gap from T = {begins:.1e} on (d = {size.dim}, δ = {DELTA:g})."
                )
        ax.set(xscale="log", yscale="log", xlabel="T", title=f"{here}, d = {size.dim}")
    legends(part.axes, size=7)
    part.axes[0].set_ylabel("regret R(T)")
    return part


def _bounded(
    part: Measurement, mine: str, bandit: Setting, size: Size, *, gap: float, repaired: bool
) -> tuple[float, Callable[[float], float]]:
    """Note what the bound says. -> the T from which it is below T times the largest gap, and the bound."""
    total, T = bound(bandit, size, repaired=repaired), size.rounds
    begins = theory.informative_from(total, gap=gap)
    part.note(
        mine,
        (f"bound at T = {T}", total(T)),
        ("bound over T times the largest gap", total(T) / (gap * T)),
        (f"slope of the log bound at T = {T}", steep(total, T), 0.5),
        ("bound below T times the largest gap from T =", begins),
        ("slope of the log bound there", steep(total, begins), 0.5),
    )
    return begins, total


def bound(
    bandit: Setting, size: Size, *, kappa_star: float | None = None, repaired: bool = False
) -> Callable[[float], float]:
    """The function T -> bound of Theorem 1, for unit features. Without κ_* it takes L_μ, which no κ_* exceeds."""
    S, link = bandit.env.norm, bandit.link
    L_mu = float(link.L(S))

    def total(T: float) -> float:
        return theory.theorem(
            T,
            d=size.dim,
            lam=bandit.model.lam,
            S=S,
            M=float(link.M(S)),
            L_mu=L_mu,
            L=loss_lipschitz(bandit.name, T, S=S, delta=DELTA),
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

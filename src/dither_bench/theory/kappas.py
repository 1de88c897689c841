"""κ_* at work: the regret of GLM-FP in logistic bandits of growing S = ‖θ*‖, against the κ_* of each instance.

Theorem 1 has three terms, and each has another slope against κ_* in log-log. The leading term d√(κ_* T) has slope 1/2.
The term d²/κ has a negative slope, since κ falls faster than κ_*. The term ε, of order √T, has no κ_* at all
(docs/theory.md). Which term is the largest depends on T and on S. Runs with fixed arms are LONGER times as long, since
there the estimate costs the same in every round.
"""

from typing import Any

import numpy as np

from dither import envs
from dither.envs.generalised import begun
from dither.simulation import simulate
from dither_bench.theory.part import Measurement, begin, coloured, legends
from dither_bench.theory.play import Size, fp, setting
from dither_bench.theory.slopes import bound
from dither_bench.theory.width import slope

CURVED = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)  # S
LONGER = 4
FAR = 1e30  # a T at which only the terms of order √T matter
TITLE = "Regret of GLM-FP against κ_*"


def measure(size: Size, *, seed: int) -> Measurement:
    """Fit log regret on log κ_* over S and runs, for fixed and for fresh arms."""
    part = begin("curvature", TITLE, panels=2, head=TITLE)
    _fitted(part, part.axes[0], "fresh arms", size, contexts=None, seed=seed)
    _fitted(part, part.axes[1], "fixed arms", size._replace(rounds=LONGER * size.rounds), contexts=1, seed=seed)
    legends(part.axes, size=7)
    part.axes[0].set_ylabel("regret R(T)")
    return part


def _fitted(part: Measurement, ax: Any, name: str, size: Size, *, contexts: int | None, seed: int) -> None:
    stars, regrets, near, far = [], [], [], []
    T = size.rounds
    for S, colour in coloured(CURVED):
        bandit = setting("logistic", size, S=S, contexts=contexts)
        results = simulate(bandit.env, {"GLMFP": (bandit.model, fp())}, runs=size.runs, rounds=T, seed=seed)
        star, regret = kappa_stars(bandit.env, size, seed=seed), results.regret[0, :, -1]
        stars.append(star)
        regrets.append(regret)
        total = bound(setting("logistic", size, S=S, lam=float(size.dim)), size, kappa_star=star.mean())
        near.append(total(T))
        far.append(total(FAR))
        part.note(
            f"{name}, S = {S:g}",
            ("κ_*, mean over runs", star.mean()),
            (f"regret at T = {T}, mean", regret.mean()),
            ("its standard error", regret.std(ddof=1) / np.sqrt(len(regret))),
        )
        ax.plot(star, regret, ".", color=colour, alpha=0.35, markersize=4)
        ax.plot(star.mean(), regret.mean(), "o", color=colour, markersize=6, label=f"S = {S:g}")
    steep, se, level = fit(np.concatenate(stars), np.concatenate(regrets))
    means = means_of(stars)
    at_T, at_far = slope(near, means), slope(far, means)
    part.note(
        name,
        ("slope of log regret in log κ_*, all runs", steep, 0.5),
        ("its standard error", se),
        ("slope of the means over S", fit(means, means_of(regrets))[0], 0.5),
        (f"slope of the bound over S, T = {T}", at_T),
        (f"slope of the bound over S, T = {FAR:g}", at_far, 0.5),
    )
    x = np.geomspace(np.concatenate(stars).min(), 0.25, 50)
    label = f"fit, slope {steep:.2f} ± {se:.2f}"
    ax.plot(x, np.exp(level) * x**steep, color="#444444", linestyle="--", label=label)
    part.says.append(
        f"{name}, T = {T}: regret grows like κ_*^{steep:.2f} (± {se:.2f}). The leading term has exponent "
        f"1/2, the whole bound {at_T:.2f} at this T and {at_far:.2f} at T = {FAR:g}."
    )
    ax.set(xscale="log", yscale="log", xlabel="κ_*", title=f"{name}, d = {size.dim}, T = {T}")


def kappa_stars(env: envs.Logistic, size: Size, *, seed: int) -> np.ndarray:
    """κ_* of every run, over the rounds that `simulate` shows it: (R,)."""
    rounds = begun(env, runs=size.runs, rounds=size.rounds, seed=seed)
    return np.array([env.kappa_star(run, X) for run, X in rounds])


def means_of(values: list[np.ndarray]) -> np.ndarray:
    """The mean for each value of S."""
    return np.array([value.mean() for value in values])


def fit(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Fit log y = level + slope log x by least squares -> slope, its standard error, level. y <= 0 is left out."""
    use = y > 0
    G = np.stack([np.log(x[use]), np.ones(use.sum())], axis=1)
    (steep, level), *_ = np.linalg.lstsq(G, np.log(y[use]))
    rest = np.log(y[use]) - G @ (steep, level)
    variance = rest @ rest / max(len(rest) - 2, 1) * np.linalg.inv(G.T @ G)[0, 0]
    return float(steep), float(np.sqrt(variance)), float(level)

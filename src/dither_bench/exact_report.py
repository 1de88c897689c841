"""What `dither exact` shows: what a propensity costs, a picture, and a table."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

import dither
from dither import models, noise, policies, propensity
from dither.base import drawing
from dither_bench.exact import CASES, DRAWS, ESTIMATORS, LOGGERS, Line

SIZES = ((10, 5), (100, 40))  # K, d of the timings
LOOKS: dict[tuple[str, str], tuple[str, Any, str]] = {  # logger, rule -> colour, line style, words in the legend
    ("FP", "smooth"): (drawing.PALETTE[1], "-", "FP's log, Monte Carlo, (1+k)/(1+n)"),
    ("FP matched", "smooth"): (drawing.PALETTE[2], "-", "FP's log, c as costly as TS, Monte Carlo, (1+k)/(1+n)"),
    ("TS", "smooth"): (drawing.PALETTE[0], "-", "TS's log, Monte Carlo, (1+k)/(1+n)"),
    ("TS", "left out"): (drawing.PALETTE[0], ":", "TS's log, Monte Carlo, k/n, rows with k = 0 left out"),
}
EXACT = {
    "FP": (drawing.PALETTE[1], "FP's log"),
    "FP matched": (drawing.PALETTE[2], "FP's log, c as costly as TS"),
}
BLOCK = 40  # calls that are timed together, where a decision takes no draws
DPI = 90  # dots an inch of the picture: small enough for a page
SHAPES = {"IPS": "o", "DR": "s"}


class Cost(NamedTuple):
    """The time of a decision with its propensity on this machine, over that of FP with the exact propensity."""

    arms: int
    dim: int
    draws: int  # n; 0: FP with the exact propensity
    decision: float  # of `Bandit.choose`
    kernel: float  # of scores, choice and probability alone, in plain NumPy


def costs(*, seed: int = 0, repeats: int = 15) -> list[Cost]:
    """The costs of FP with exact propensities and of TS with Monte Carlo ones.

    They are measured in turns, in processor time, and the best block of calls counts.
    """
    ratios = []
    for K, d in SIZES:
        rng = np.random.default_rng([seed, K])
        X = rng.standard_normal((K, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        calls: dict[int, tuple[Callable[[], Any], Callable[[], Any]]] = {}
        for n in (0, *DRAWS):
            policy = policies.ThompsonSampling() if n else policies.FeaturePerturbation()
            bandit = dither.Bandit(models.Ridge(1.0), policy, dim=d, seed=seed, monte_carlo=n)
            bandit.update(rng.standard_normal((4 * d, d)) / math.sqrt(d), rng.standard_normal(4 * d))
            calls[n] = (functools.partial(bandit.choose, X), _kernel(bandit, X, n, rng))
        best = {n: [math.inf, math.inf] for n in calls}
        for _ in range(repeats):
            for n, pair in calls.items():
                for i, call in enumerate(pair):
                    times = max(2, BLOCK // (1 + n // 50))
                    start = time.thread_time()
                    for _ in range(times):
                        call()
                    best[n][i] = min(best[n][i], (time.thread_time() - start) / times)
        ratios += [Cost(K, d, n, *(mine / base for mine, base in zip(best[n], best[0], strict=True))) for n in calls]
    return ratios


def _kernel(bandit: dither.Bandit, X: np.ndarray, n: int, rng: np.random.Generator) -> Callable[[], Any]:
    """A call that makes a decision and its propensity from θ̂ and V⁻¹, and nothing else."""
    theta = bandit.theta
    V = np.eye(len(theta)) + 0.1
    Vinv = np.linalg.inv(V)
    root, law = np.linalg.cholesky(Vinv), noise.Gaussian()

    def exact() -> Any:
        return propensity.decide(X @ theta, np.sqrt(np.vecdot(X @ Vinv, X)), float(rng.standard_normal()), law=law)

    def drawn() -> Any:
        arms = np.argmax((theta + rng.standard_normal((1 + n, len(theta))) @ root.T) @ X.T, axis=1)
        return arms[0], np.count_nonzero(arms == arms[0]) / (1 + n)

    return drawn if n else exact


def even(ratios: Sequence[Cost], size: tuple[int, int]) -> float:
    """The n with which the arithmetic of Monte Carlo takes as long as that of FP's exact propensity; NaN: no such n."""
    mine = [(one.draws, one.kernel) for one in ratios if (one.arms, one.dim) == size and one.draws]
    for (n, low), (more, high) in itertools.pairwise(mine):
        if low <= 1 < high:
            share = math.log(1 / low) / math.log(high / low)
            return math.exp((1 - share) * math.log(n) + share * math.log(more))
    return math.nan


def draw(lines: Sequence[Line], ratios: Sequence[Cost]) -> Canvas:
    """Error and bias against n, one column for each case. Vertical lines: the n that costs as much as FP's exact p."""
    cases = [case for case in CASES if any(line.case == case.name for line in lines)]
    with mpl.rc_context(drawing.STYLE | {"font.size": 9}):
        canvas = Canvas(figsize=(3.5 * len(cases), 5.8), layout="constrained")
        axes = canvas.subplots(2, len(cases), squeeze=False, sharex=True)
        for column, case in enumerate(cases):
            mine = [line for line in lines if line.case == case.name]
            for row, ax in enumerate(axes[:, column]):
                _panel(ax, mine, bias=bool(row))
                for size in SIZES:
                    ax.axvline(even(ratios, size), color="#bbbbbb", linewidth=0.9, zorder=0)
            axes[0, column].set_title(case.name + (f", floor {case.floor:g}" if case.floor else ""), fontsize=10)
            axes[1, column].set_xlabel("n, Monte Carlo draws a decision")
        axes[0, 0].set_ylabel("root mean squared error")
        axes[1, 0].set_ylabel("|bias|")
        handles = [Line2D([], [], color=c, linestyle=style, label=says) for c, style, says in LOOKS.values()]
        for logger, (colour, says) in EXACT.items():
            handles.append(Line2D([], [], color=colour, linestyle="--", label=f"{says}, exact ({logger})"))
        for name, marker in SHAPES.items():
            handles.append(Line2D([], [], color="#444444", marker=marker, linestyle="", markersize=4, label=name))
        canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8.5)
    return canvas


def _panel(ax: Any, lines: Sequence[Line], *, bias: bool) -> None:
    """Draw the error, or the bias, of one case."""
    for (logger, rule), (colour, style, _) in LOOKS.items():
        for estimator in ESTIMATORS:
            mine = [one for one in lines if (one.logger, one.rule, one.estimator) == (logger, rule, estimator)]
            look = dict(color=colour, linestyle=style, marker=SHAPES[estimator], markersize=3.5, linewidth=1.2)
            ax.plot([one.draws for one in mine], [_height(one, bias) for one in mine], **look)
    for logger, (colour, _) in EXACT.items():
        for estimator in ESTIMATORS:
            exact = [one for one in lines if (one.logger, one.rule, one.estimator) == (logger, "exact", estimator)]
            if exact and not bias:
                ax.axhline(exact[0].rmse, color=colour, linestyle="--", linewidth=1)
                ax.plot(1, exact[0].rmse, SHAPES[estimator], color=colour, markersize=5)
    ax.set(xscale="log", yscale="log")
    if bias:
        ax.text(0.98, 0.97, "exact: no bias", transform=ax.transAxes, ha="right", va="top")
        ax.set_ylim(1e-5, None)
    else:
        ax.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        ax.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    ax.grid(alpha=0.25, linewidth=0.6)


def _height(line: Line, bias: bool) -> float:
    """The height of a point: the measured error; or the bias, which is computed exactly where there is a sum for it.

    Elsewhere the bias is measured. Within two standard errors of 0 it is not shown.
    """
    if not bias:
        return line.rmse
    if not math.isnan(line.expected_bias):
        return abs(line.expected_bias)
    return abs(line.bias) if abs(line.bias) > 2 * line.bias_se else math.nan


def table(lines: Sequence[Line], *, case: str, rules: Sequence[str], draws: Sequence[int]) -> str:
    """One case in Markdown. Nobody can log exact propensities of TS, so these are shown as the limit n → ∞."""
    head = "| log | propensities | IPS bias | IPS RMSE | IPS covers | DR bias | DR RMSE | DR covers |"
    rows = [head, "|---|---|---:|---:|---:|---:|---:|---:|"]
    mine = [one for one in lines if one.case == case and one.rule in rules and (one.draws in draws or not one.draws)]
    keys = dict.fromkeys((one.logger, one.rule, one.draws) for one in mine)
    for key in sorted(keys, key=lambda k: (LOGGERS.index(k[0]), rules.index(k[1]), k[2])):
        logger, rule, n = key
        mine_of = {one.estimator: one for one in mine if (one.logger, one.rule, one.draws) == key}
        what = f"{rule}, n = {n:,}" if n else "n → ∞" if logger == "TS" else "**exact**"
        cells = [
            text
            for one in (mine_of[name] for name in ESTIMATORS)
            for text in (_number(one.bias, sign=True), _number(one.rmse), f"{one.coverage:.0%}")
        ]
        rows.append(f"| {logger} | {what} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def costs_table(ratios: Sequence[Cost]) -> str:
    """The costs in Markdown, as ratios."""
    rows = ["| K, d | propensity | `choose` | arithmetic alone |", "|---|---|---:|---:|"]
    for one in ratios:
        what = f"TS, n = {one.draws}" if one.draws else "FP, exact"
        rows.append(f"| {one.arms}, {one.dim} | {what} | {one.decision:.2g} | {one.kernel:.2g} |")
    return "\n".join(rows) + "\n"


def _number(x: float, *, sign: bool = False) -> str:
    if abs(x) >= 10:
        return f"{x:+.0f}" if sign else f"{x:.0f}"
    return f"{x:+.4f}" if sign else f"{x:.4f}"

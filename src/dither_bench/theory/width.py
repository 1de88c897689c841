"""What the analysis must control as d grows (paper, Section 6): ‖ζ‖ for TS, |u'ζ| for FP.

Both are quantiles of known laws, χ_d and |N(0, 1)|. Two numbers of a run stand beside them: the largest
|x'(θ̃ - θ̂)|/(c ‖x‖) over the arms, and the same of the arm that is chosen. For FP both are |z|.
"""

from typing import Any

import numpy as np
from scipy import stats

from dither import policies
from dither_bench.theory.part import Measurement, begin, coloured, legends
from dither_bench.theory.play import Size, fp, play, setting

DIMS = (1, 2, 5, 10, 20, 40, 80)
LEVEL = 0.95  # of the quantiles
TITLE = "The width that TS and FP must control"
KINDS = ("all arms", "chosen arm")


def measure(size: Size, *, seed: int) -> Measurement:
    """Measure the quantiles against d."""
    part = begin("width", TITLE, panels=1, head=TITLE, width=6.4)
    quantiles: dict[str, list[float]] = {f"{name}, {kind}": [] for name in ("TS", "FP") for kind in KINDS}
    for d in DIMS:
        mine = size._replace(dim=d)
        part.note(f"d = {d}", (f"‖ζ‖, {LEVEL:.0%} quantile", chi(d)), (f"|u'ζ|, {LEVEL:.0%} quantile", chi(1)))
        for name, policy, bound in (("TS", policies.ThompsonSampling(), chi(d)), ("FP", fp(), chi(1))):
            for kind, values in zip(KINDS, ratios(policy, mine, seed=seed), strict=True):
                q = float(np.quantile(values, LEVEL))
                quantiles[f"{name}, {kind}"].append(q)
                text = f"|x'(θ̃ − θ̂)|/(c‖x‖), {kind}, {LEVEL:.0%} quantile"
                part.note(f"d = {d}, {name}", (text, q, bound))
    _draw(part.axes[0], quantiles, size)
    wide = [d for d in DIMS if d >= 10]
    steep, median = slope([chi(d) for d in wide], wide), slope(stats.chi.ppf(0.5, wide), wide)
    part.says += [
        f"‖ζ‖ grows like d^{steep:.2f} from d = 10 to {DIMS[-1]} ({LEVEL:.0%} quantile; the median like "
        f"d^{median:.2f}). |u'ζ| does not grow.",
        f"With {size.arms} arms TS moves some arm by {quantiles['TS, all arms'][-1]:.2f} widths at d = {DIMS[-1]} "
        f"({LEVEL:.0%} quantile). The analysis allows {chi(DIMS[-1]):.2f}. FP moves none by more than "
        f"{quantiles['FP, all arms'][-1]:.2f}.",
    ]
    return part


def chi(d: int) -> float:
    """The quantile of ‖ζ‖ for ζ ~ N(0, I_d)."""
    return float(stats.chi.ppf(LEVEL, d))


def slope(y: Any, x: Any) -> float:
    """The slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def ratios(policy: Any, size: Size, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """|score - x'θ̂|/(c‖x‖): the largest over the arms, and that of the chosen arm; (T, R) each."""
    bandit = setting("linear", size, S=1.0)
    rounds = []
    for now in play(bandit.env, bandit.model, policy, size=size, seed=seed):
        view = policy.view(bandit.model, now.state, now.X, t=now.t)
        moved = np.abs(view.scores(*now.chance) - bandit.model.mean(now.state, now.X))
        relative = moved / bandit.model.width(now.state, now.X)
        rounds.append((relative.max(axis=-1), np.take_along_axis(relative, now.arm[:, None], axis=-1)[:, 0]))
    largest, chosen = (np.stack(kind) for kind in zip(*rounds, strict=True))
    return largest, chosen


def _draw(ax: Any, quantiles: dict[str, list[float]], size: Size) -> None:
    ax.plot(DIMS, [chi(d) for d in DIMS], color="#444444", linestyle="--", label="‖ζ‖₂ (TS, all directions)")
    ax.plot(DIMS, [chi(1)] * len(DIMS), color="#444444", linestyle=":", label="|u'ζ| (FP)")
    for (name, values), colour in coloured(quantiles.items()):
        ax.plot(DIMS, values, color=colour, marker="o" if "all" in name else "x", label=f"{name} (K = {size.arms})")
    ax.set(xscale="log", yscale="log", xlabel="d", ylabel=f"widths, {LEVEL:.0%} quantile")
    ax.set(xticks=DIMS, yticks=(1, 2, 5, 10))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.minorticks_off()
    legends([ax], size=8)

"""What the analysis must control as d grows (paper, Section 6): ‖ζ‖ for TS, |u'ζ| for FP.

Both are quantiles of known laws, χ_d and |N(0, 1)|. Two numbers of a run stand beside them: the largest
|x'(θ̃ - θ̂)|/(c ‖x‖) over the arms, and the same of the arm that is chosen. For FP both are |z|.
"""

from typing import Any

import numpy as np
from scipy import stats

from dither import policies
from dither_bench.theory.part import Part, Row, canvas, colours
from dither_bench.theory.play import Size, fp, play, setting

DIMS = (1, 2, 5, 10, 20, 40, 80)
LEVEL = 0.95  # of the quantiles


def measure(size: Size, *, seed: int) -> Part:
    """Measure the quantiles against d."""
    rows: list[Row] = []
    found: dict[str, list[float]] = {
        name: [] for name in ("TS, all arms", "TS, chosen arm", "FP, all arms", "FP, chosen arm")
    }
    for d in DIMS:
        mine = Size(size.runs, size.rounds, arms=size.arms, dim=d)
        seen = {"TS": ratios(policies.ThompsonSampling(), mine, seed=seed), "FP": ratios(fp(), mine, seed=seed)}
        bound = {"TS": chi(d), "FP": chi(1)}
        rows += [
            Row("width", f"d = {d}", f"‖ζ‖, {LEVEL:.0%} quantile", chi(d)),
            Row("width", f"d = {d}", f"|u'ζ|, {LEVEL:.0%} quantile", chi(1)),
        ]
        for name, kinds in seen.items():
            for kind, values in zip(("all arms", "chosen arm"), kinds, strict=True):
                q = float(np.quantile(values, LEVEL))
                found[f"{name}, {kind}"].append(q)
                text = f"|x'(θ̃ − θ̂)|/(c‖x‖), {kind}, {LEVEL:.0%} quantile"
                rows.append(Row("width", f"d = {d}, {name}", text, q, bound[name]))
    made = _draw([chi(d) for d in DIMS], found, size)
    wide = [d for d in DIMS if d >= 10]
    steep, median = slope([chi(d) for d in wide], wide), slope(stats.chi.ppf(0.5, wide), wide)
    says = [
        f"‖ζ‖ grows like d^{steep:.2f} from d = 10 to {DIMS[-1]} ({LEVEL:.0%} quantile; the median like "
        f"d^{median:.2f}). |u'ζ| does not grow.",
        f"With {size.arms} arms TS moves some arm by {found['TS, all arms'][-1]:.2f} widths at d = {DIMS[-1]} "
        f"({LEVEL:.0%} quantile). The analysis allows {chi(DIMS[-1]):.2f}. FP moves none by more than "
        f"{found['FP, all arms'][-1]:.2f}.",
    ]
    return Part("width", "The width that TS and FP must control", rows, says, made)


def chi(d: int) -> float:
    """The quantile of ‖ζ‖ for ζ ~ N(0, I_d)."""
    return float(stats.chi.ppf(LEVEL, d))


def slope(y: Any, x: Any) -> float:
    """The slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def ratios(policy: Any, size: Size, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """|score - x'θ̂|/(c‖x‖): the largest over the arms, and that of the chosen arm; (T, R) each."""
    given = setting("linear", size, S=1.0)
    found = []
    for now in play(given.env, given.model, policy, size=size, seed=seed):
        view = policy.view(given.model, now.state, now.X, t=now.t)
        moved = np.abs(view.scores(*now.chance) - given.model.mean(now.state, now.X))
        relative = moved / given.model.width(now.state, now.X)
        found.append((relative.max(axis=-1), np.take_along_axis(relative, now.arm[:, None], axis=-1)[:, 0]))
    largest, chosen = (np.stack(kind) for kind in zip(*found, strict=True))
    return largest, chosen


def _draw(norms: list[float], found: dict[str, list[float]], size: Size) -> Any:
    made, (ax,) = canvas(1, title="The width that TS and FP must control", width=6.4)
    ax.plot(DIMS, norms, color="#444444", linestyle="--", label="‖ζ‖₂ (TS, all directions)")
    ax.plot(DIMS, [chi(1)] * len(DIMS), color="#444444", linestyle=":", label="|u'ζ| (FP)")
    for (name, values), colour in zip(found.items(), colours(list(found)).values(), strict=True):
        ax.plot(DIMS, values, color=colour, marker="o" if "all" in name else "x", label=f"{name} (K = {size.arms})")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="d",
        ylabel=f"widths, {LEVEL:.0%} quantile",
        xticks=DIMS,
        yticks=(1, 2, 5, 10),
    )
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    ax.minorticks_off()
    ax.legend(fontsize=8, frameon=False)
    return made

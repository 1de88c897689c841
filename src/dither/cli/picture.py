"""The picture of an evaluation: an interval for each policy and estimator, and what ran as a line with a band."""

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from dither.base.drawing import PALETTE, STYLE
from dither.ope import verdicts
from dither.ope.evaluation import EvaluationNumbers

ROW = 0.28  # inches


@mpl.rc_context(STYLE)
def draw(evaluation: EvaluationNumbers) -> Canvas:
    """The picture as matplotlib holds it."""
    rows = [(policy, name) for policy in evaluation.policies for name in evaluation.estimators]
    canvas = Canvas(figsize=(8.0, 1.5 + ROW * (len(rows) + len(evaluation.policies))), layout="constrained")
    ax = canvas.subplots()
    base = evaluation.logging
    ax.axvspan(*base.interval, color="#444444", alpha=0.12, linewidth=0)
    ax.axvline(base.value, color="#444444", linewidth=1.2)
    places: list[float] = []
    y = 0.0
    judged = {said.policy: said.word for said in verdicts.verdicts(evaluation)}
    for policy in evaluation.policies:
        start = y
        for i, name in enumerate(evaluation.estimators):
            sure = judged[policy] != "unsupported"
            _one(ax, evaluation.estimates[policy, name], y, PALETTE[i % len(PALETTE)], sure=sure)
            y += 1
        places.append((start + y - 1) / 2)
        y += 1
    unsure = {policy: "\nnot supported" if judged[policy] == "unsupported" else "" for policy in evaluation.policies}
    ax.set_yticks(places, [policy + unsure[policy] for policy in evaluation.policies])
    ax.set_ylim(y - 1, -1)
    ax.set_xlabel(f"reward a decision, {evaluation.how.level:.0%} {evaluation.how.interval} intervals")
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    ax.tick_params(axis="y", length=0)
    handles = [
        Line2D([], [], color=PALETTE[i % len(PALETTE)], marker="o", markersize=4.5, linewidth=1.6, label=label)
        for i, label in enumerate(_labels(evaluation))
    ]
    handles.append(Line2D([], [], color="#444444", linewidth=1.2, label="what ran"))
    canvas.legend(handles=handles, loc="outside lower center", ncols=min(5, len(handles)), frameon=False, fontsize=9.5)
    return canvas


def _labels(evaluation: EvaluationNumbers) -> list[str]:
    """The names of the estimators, each with the kind of its interval where they have several."""
    one = {name: e for (policy, name), e in evaluation.estimates.items() if policy == evaluation.policies[0]}
    return [verdicts.by(evaluation, name, e) for name, e in one.items()]


def _one(ax: Any, estimate: Any, y: float, color: str, *, sure: bool) -> None:
    """A point and its interval: hollow and dotted if the log cannot tell, and nothing if there is no value."""
    ax.plot(
        estimate.interval, (y, y), color=color, linewidth=1.6, linestyle="-" if sure else ":", solid_capstyle="butt"
    )
    fill = color if sure else "none"
    ax.plot([estimate.value], [y], color=color, marker="o", markersize=4.5, markerfacecolor=fill)

"""Draw feature_perturbation.png: how feature perturbation chooses, and what its exploration costs.

    python docs/feature_perturbation.py

Left    one request to a bandit that has learnt some rewards: the lines m_i + z w_i and their upper envelope. Below
        them is the law of z, cut into the slices in which each arm is the best. The mass of a slice is the propensity
        of its arm.
Right   the mean regret of four algorithms on one fixed set of arms, ± one standard error.

Every number comes from a run of the library. The picture carries its numbers in its metadata (key "Description"): a
test makes them again and compares, so a picture that is out of date is found.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from scipy import stats

import dither
from dither.base.drawing import PALETTE, STYLE

ALGORITHMS = ("LinFP", "LinTS", "LinUCB", "Greedy")
RUNS, ROUNDS = 20, 2000


class Numbers(NamedTuple):
    """What the picture shows."""

    lines: Any  # the Explanation of the request
    results: Any  # of `simulate`


def numbers() -> Numbers:
    """A bandit of 6 unit arms after 12 rewards, and the simulation."""
    rng = np.random.default_rng(181)
    theta, bandit = rng.normal(size=4) / 2, dither.LinFP(dim=4, lam=1.0, preset="paper", seed=181)
    X = rng.normal(size=(6, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for _ in range(12):
        arm = bandit.choose(X).arm
        bandit.update(X[arm], X[arm] @ theta + rng.normal())
    *_, last = (bandit.choose(X) for _ in range(8))  # its z lies far from where the lines cross, so one sees who wins
    lines = bandit.explain(X, last.z)
    env = dither.envs.Linear(dim=10, arms=100, contexts=1)
    algorithms = {name: f"{name}:preset=paper" for name in ALGORITHMS}  # as in the paper's figures
    return Numbers(lines, dither.simulate(env, algorithms, runs=RUNS, rounds=ROUNDS, seed=0))


def described(found: Numbers) -> dict[str, Any]:
    """The numbers that a test compares: the propensities, z, and the regret at the end."""
    return {
        "propensity": [round(float(p), 3) for p in found.lines.propensity],
        "z": round(float(found.lines.z), 3),
        "regret": {
            name: round(float(regret[:, -1].mean()), 1)
            for name, regret in zip(found.results.algorithms, found.results.regret, strict=True)
        },
    }


def draw(path: Path) -> None:
    """Write the picture."""
    found = numbers()
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(10, 4.2), layout="constrained")
        left, right = canvas.subfigures(1, 2, width_ratios=(1.15, 1))
        _lines(left, found.lines)
        _regret(right, found.results)
        canvas.savefig(path, dpi=110, metadata={"Description": json.dumps(described(found)), "Software": None})


def _lines(canvas: Any, e: Any) -> None:
    top, below = canvas.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    z = np.linspace(-3, 3, 601)
    lines = e.m[:, None] + z * e.w[:, None]
    able = np.flatnonzero(~np.isnan(e.low))
    for i in np.setdiff1d(np.arange(len(e.m)), able):
        top.plot(z, lines[i], color="0.8", linewidth=1)
    top.plot(z, lines.max(axis=0), color="black", linewidth=6, alpha=0.2)
    for i, colour in zip(able[np.argsort(e.low[able])], PALETTE, strict=False):
        top.plot(z, lines[i], color=colour, linewidth=1.6)
        part = np.linspace(*np.clip((e.low[i], e.high[i]), -3, 3), 200)
        below.fill_between(part, stats.norm.pdf(part), color=colour, alpha=0.85, linewidth=0)
        middle = np.clip((max(e.low[i], -2.4) + min(e.high[i], 2.4)) / 2, -2.4, 2.4)
        below.text(middle, 0.43, f"{e.propensity[i]:.2f}", color=colour, ha="center", fontweight="bold")
    for ax in (top, below):
        ax.axvline(e.z, color="black", linestyle="--", linewidth=1)
    height = float(np.max(e.m + e.z * e.w))
    arrow = dict(arrowstyle="->")
    top.annotate("the z drawn: this arm is shown", (e.z, height), xytext=(-2.9, height), va="center", arrowprops=arrow)
    top.set(ylabel="score  m + z w", title="Each arm is a line; one z decides")
    below.set(xlabel="z ~ N(0, 1)", ylim=(0, 0.52), yticks=[], xlim=(-3, 3), ylabel="propensity")


def _regret(canvas: Any, results: Any) -> None:
    ax = canvas.subplots()
    for name, regret, colour in zip(results.algorithms, results.regret, PALETTE, strict=False):
        mean, se = regret.mean(axis=0), regret.std(axis=0, ddof=1) / np.sqrt(len(regret))
        ax.plot(results.rounds, mean, color=colour, label=name)
        ax.fill_between(results.rounds, mean - se, mean + se, color=colour, alpha=0.2, linewidth=0)
    ax.set(xlabel="round", ylabel="regret", xlim=(0, ROUNDS), ylim=(0, None))
    ax.set_title(f"One fixed set of 100 arms, d = 10, {RUNS} runs")
    ax.legend(frameon=False, loc="upper left")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"))

"""The probability of optimism (paper, Lemma 3): P_t(max_i x̃_i'θ̂ >= x_*'θ*) before every round, exactly.

It is measured for c_t = β_t(δ') as in the lemma, which says that it is at least p = 1/(4√(eπ)). And it is measured for
c_t = 1 as in the experiments.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dither import theory
from dither_bench.theory.part import Measurement, begin, coloured, legends
from dither_bench.theory.play import NORMS, Setting, Size, fp, play, setting

DELTA = 0.1
TITLE, HEAD = "Probability of optimism against 1/(4√(eπ))", "Probability that feature perturbation is optimistic"


def measure(size: Size, *, seed: int) -> Measurement:
    """Measure the probability over rounds and runs."""
    part = begin("optimism", TITLE, panels=len(NORMS), head=HEAD)
    for ax, (name, S) in zip(part.axes, NORMS.items(), strict=True):
        bandit = setting(name, size, S=S)
        scales = {"c_t = 1": 1.0, "c_t = β_t(δ')": radius(bandit, size)}
        for (label, c), colour in coloured(scales.items()):
            P = probabilities(bandit, c, size, seed=seed)
            mine = f"{name}, S = {S:g}, {label}"
            least, all_of_them = (None, None) if c == 1.0 else (theory.p, 1.0)
            enough = float(np.mean(theory.p <= P))
            part.note(
                mine,
                ("smallest P_t", P.min(), least),
                ("median P_t", np.median(P)),
                ("mean P_t", P.mean()),
                ("share of rounds with P_t >= p", enough, all_of_them),
            )
            part.says.append(
                f"{mine}: P_t is at least {P.min():.3f}. Half of the time it is above {np.median(P):.2f}. "
                f"In {enough:.1%} of the rounds it is at least p = {theory.p:.4f}."
            )
            rounds = np.arange(1, size.rounds + 1)
            low, middle, high = np.quantile(P, (0.05, 0.5, 0.95), axis=1)
            ax.plot(rounds, middle, color=colour, linewidth=1.4, label=f"{label}: median, 5 to 95 % of runs")
            ax.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        ax.axhline(theory.p, color="#444444", linestyle="--", label="p = 1/(4√(eπ))")
        ax.axhline(theory.p_given(np.inf), color="#444444", linestyle=":", label="P(z ≥ 1)")
        ax.set(xscale="log", xlabel="round", ylim=(0, 1.35), yticks=np.linspace(0, 1, 6), title=f"{name}, S = {S:g}")
    legends(part.axes, size=7.5, loc="upper left")
    part.axes[0].set_ylabel("P_t(max x̃'θ̂ ≥ x*'θ*)")
    return part


def radius(bandit: Setting, size: Size) -> Callable[[int], float]:
    """The function t -> β_t(δ'), with the bound of `loss_lipschitz` for L_t."""
    S, T = bandit.env.norm, size.rounds
    M = float(bandit.link.M(S))

    def c(t: int) -> float:
        L = loss_lipschitz(bandit.name, t, S=S, delta=DELTA)
        return theory.beta(t, d=size.dim, lam=bandit.model.lam, S=S, M=M, L=L, delta=DELTA / (4 * T))

    return c


def loss_lipschitz(name: str, t: Any, *, S: float, delta: float) -> Any:
    """A bound on L_t for unit features.

    For linear bandits with noise N(0, 1), |r_s - η| <= 2S + √(2 log(2t/δ)) for all s < t, with probability at least
    1 - δ.
    """
    if name == "logistic":
        return theory.lipschitz_logistic(t, S=S)
    return (2 * S + np.sqrt(2 * np.log(2 * t / delta))) * (t - 1)


def probabilities(bandit: Setting, c: Any, size: Size, *, seed: int) -> np.ndarray:
    """P_t of every round and run, (T, R)."""
    P, policy = [], fp(c)
    for now in play(bandit.env, bandit.model, policy, size=size, seed=seed):
        m, w, *_ = policy.view(bandit.model, now.state, now.X, t=now.t)
        P.append(theory.optimism(m, w, np.max(now.eta, axis=-1)))
    return np.stack(P)

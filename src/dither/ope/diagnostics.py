"""Whether the log can answer: weights, support, drift.

ess           (Σsw)²/Σ(sw)²: so many rows of equal weight would say as much (Kish); s are the weights of the rows
weight test   tests E[w] = 1, for every law of the weights (`log.bets`)
support test  tests that no weight is heavier than those seen. If it fails, a part of the new policy is on arms that
              these rows do not show: they could not, or did so too rarely
unsupported   mean Σ_k Q_k 1[P_k = 0] where P is known, else max(0, 1 - mean w, mean (1 - q) 1[p = 1])
drift         tests that the weighted rewards have one mean over time (`contributions.cusum`)
"""

import warnings
from typing import Any

import numpy as np

from dither.deciding import inputs
from dither.deciding.inputs import ROUNDING
from dither.ope import warn
from dither.ope.bounded import BOUNDED
from dither.ope.intervals import Evidence
from dither.ope.result import Estimate
from dither.ope.rows import second

DOUBT = 1e-4  # a test with a P-value below this counts as failed
FEW = 30  # with fewer effective rows a normal interval is not to be trusted;
SMALL = 0.3  # with fewer than 100 rows, this share of the rows takes the place of FEW
VALID = (*BOUNDED, "clopper_pearson")  # intervals that are valid for every number of rows
OF_REWARDS = ("ips", "clipped_ips", "snips")  # estimators whose spread comes from rewards and weights alone


def expected_rows(P: Any, Q: Any, weight: Any = None) -> float:
    """The effective rows that the probabilities promise, whatever arms were drawn: (Σs)²/Σs²φ, φ = Σ_k Q_k²/P_k.

    P, Q (n, K) : what ran, and the policy in question; weight (n,) : the weights s of rows

    φ is the mean of w² over the arms that could be drawn, so in a long log `Estimate.ess` is near this. In a short log
    it may be far larger: if a rare arm did not come, no heavy weight was seen, and nothing looks wrong. On the logs of
    policies that learn, 30 such rows are a sign that normal intervals cover, and 30 of `ess` are not
    (docs/ope.md). Raises ValueError for shapes that differ.
    """
    P, Q = inputs.numbers(P, name="P"), inputs.numbers(Q, name="Q")
    if P.ndim != 2 or P.shape != Q.shape:
        raise ValueError(f"P and Q must be (n, K), probabilities of all arms; got {P.shape} and {Q.shape}")
    s = np.ones(len(P)) if weight is None else inputs.numbers(weight, name="weight")
    return float(np.sum(s) ** 2 / np.sum(second(P, Q) * s**2))


def few(estimate: Estimate) -> bool:
    """Whether few rows carry an estimate: fewer than 30 effective rows (30 % of a small log), or 1 % of any log."""
    return estimate.ess < max(min(FEW, SMALL * estimate.n), estimate.n / 100) and estimate.method != "dm"


def uneven(estimate: Estimate) -> bool:
    """Whether all weights are the same number, and it is not 1. No row then shows what the policy shows less often."""
    flat = estimate.weight_sd <= ROUNDING * estimate.weight_mean
    return estimate.n > 1 and flat and estimate.weight_mean > 0 and abs(estimate.weight_mean - 1) > ROUNDING


def thin(estimate: Estimate, *, has_P: bool) -> bool:
    """Whether a part of the policy is on arms that these rows do not show: they could not, or did so too rarely."""
    return not has_P and estimate.support_test < DOUBT


def complaints(estimate: Estimate, *, has_P: bool, certain: float) -> list[tuple[type[Warning], str]]:
    """(class, message) of each thing that is wrong with an estimate. Each message names the cure.

    has_P : whether P is known; certain : mean of `contributions.certain_gap`
    """
    faults: list[tuple[type[Warning], str]] = []
    if certain > 1e-3 or thin(estimate, has_P=has_P):
        how = (
            "by P"
            if has_P
            else "no other arm had a chance in rows of p = 1"
            if certain > 1e-3
            else f"the mean weight is {estimate.weight_mean:.4g}, not 1"
        )
        rarely = "" if certain > 1e-3 else ", or shows too rarely"
        faults.append((warn.SupportWarning, (
            f"missing support: about {estimate.unsupported:.3g} of the new policy is on arms that the log could not "
            f"show{rarely} ({how}); no weighting can tell their value. Log with floor=, or judge a policy closer to "
            f"the logging one"
        )))  # fmt: skip
    elif estimate.ess == 0:
        faults.append((warn.SupportWarning, (
            "missing support: no row shows what the new policy would, all weights are 0. Log with floor=, or judge a "
            "policy closer to the logging one"
        )))  # fmt: skip
    elif estimate.weight_test < DOUBT and not few(estimate):
        faults.append((warn.SupportWarning, (
            f"the weights do not average 1: {estimate.weight_mean:.4g} (P = {estimate.weight_test:.1g}). The logged "
            f"propensities are not those of the arms shown, or Q is of other rows: check both"
        )))  # fmt: skip
    if estimate.ess > 0 and few(estimate):
        faults.append((warn.WeightWarning, (
            f"few rows carry it all: {estimate.ess:.1f} effective of {estimate.n}, largest weight "
            f"{estimate.weight_max:.3g}. Clip or shrink the weights (clipped_ips, switch_dr, dros), log with a larger "
            f"floor=, or gather more data"
        )))  # fmt: skip
    if estimate.drift < DOUBT:
        faults.append((warn.DriftWarning, (
            f"the weighted rewards drift over time (P = {estimate.drift:.1g}): one value does not describe them. "
            f"Evaluate shorter periods, or the recent one, with mask="
        )))  # fmt: skip
    return faults


def quiet(estimate: Estimate) -> list[tuple[type[Warning], str]]:
    """The warning where all rewards are the same and the interval treats all other rewards as impossible."""
    if estimate.se != 0 or estimate.interval_method in VALID or estimate.method not in OF_REWARDS:
        return []
    if estimate.weight_sd <= ROUNDING and abs(estimate.weight_mean - 1) <= ROUNDING:
        return []  # this is the mean of the rows themselves; no other policy is judged
    return [(warn.EventWarning, (
        f"no reward differs from the others: the {estimate.interval_method} interval does not hold for events that "
        f"these rows do not show. Take interval='clopper_pearson' where weights are equal, or 'betting' with "
        f"reward_range= and weight_max="
    ))]  # fmt: skip


def warn_of(estimate: Estimate, evidence: Evidence, *, stacklevel: int, who: str = "") -> None:
    """Warn of what is wrong with an estimate. who : begins each message; stacklevel : of `warnings.warn`."""
    faults = complaints(estimate, has_P=evidence.has_P, certain=evidence.certain)
    for category, message in faults or quiet(estimate):
        warnings.warn(who + message, category, stacklevel=stacklevel)

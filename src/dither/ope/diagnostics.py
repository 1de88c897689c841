"""Whether the log can tell: weights, support, drift.

ess           (Σsw)²/Σ(sw)²: rows that equally weighted would say as much (Kish); s are the weights of the rows
weight test   of E[w] = 1, for every law of the weights (`log.bets`)
support test  of no weight heavier than those seen: where it fails, a part of the new policy is on arms that these rows
              do not show, because they could not or did so too rarely
unsupported   mean Σ_k Q_k 1[P_k = 0] where P is known, else max(0, 1 - mean w, mean (1 - q) 1[p = 1])
drift         of a constant mean of the weighted rewards over time (`contributions.cusum`)
"""

from typing import Any

import numpy as np

from dither.inputs import ROUNDING
from dither.log import bets
from dither.ope import warn
from dither.ope.contributions import Contributions, certain_gap, cusum, unsupported

DOUBT = 1e-4  # P-value below which a test is taken to have failed
FEW = 30  # effective rows below which a normal interval is not to be trusted,
SMALL = 0.3  # or this share of the rows, where there are fewer than 100
VALID = ("bernstein", "betting", "clopper_pearson")  # intervals that hold for every number of rows
OF_REWARDS = ("ips", "clipped_ips", "snips")  # estimators whose only spread is that of rewards and weights


def health(made: Contributions, psi: np.ndarray, *, limit: float | None = None) -> dict[str, float]:
    """The diagnostic fields of an `Estimate`. limit : a bound on the weights known beforehand."""
    log, w, share = made.log, made.log.w, made.log.share
    mean, carried = log.mean(w), share * w
    order = None if log.order is None else psi[log.order]
    s = None if log.s is None else log.s / np.max(log.s)
    even = bets.balance(w, log.p, s, log.limit)
    return {
        "ess": float(np.sum(carried)) ** 2 / float(carried @ carried) if mean else 0.0,
        "weight_mean": mean,
        "weight_max": float(np.max(w)),
        "weight_sd": float(np.sqrt(log.mean((w - mean) ** 2))),
        "unsupported": unsupported(mean, log.mean(certain_gap(log)), known=log.gap is not None),
        "weight_test": bets.p_value(even, limit=limit),
        "support_test": bets.support(even),
        "drift": float("nan") if order is None else cusum(order),
    }


def few(found: Any) -> bool:
    """Whether a few rows carry an estimate: fewer than 30 effective ones, or 30 % of a small log, or 1 % of any."""
    return found.ess < max(min(FEW, SMALL * found.n), found.n / 100) and found.method != "dm"


def uneven(found: Any) -> bool:
    """Whether all weights are one number that is not 1: no row then shows what the policy would show less of."""
    flat = found.weight_sd <= ROUNDING * found.weight_mean
    return found.n > 1 and flat and found.weight_mean > 0 and abs(found.weight_mean - 1) > ROUNDING


def thin(found: Any, *, known: bool) -> bool:
    """Whether a part of the policy is on arms that these rows do not show, as they cannot or do so too rarely."""
    return not known and found.support_test < DOUBT


def complaints(found: Any, *, known: bool, certain: float) -> list[tuple[type[Warning], str]]:
    """(class, message) of whatever is wrong with an estimate; each names the cure.

    known : P was passed; certain : mean of `contributions.certain_gap`
    """
    said: list[tuple[type[Warning], str]] = []
    if certain > 1e-3 or thin(found, known=known):
        how = (
            "by P"
            if known
            else "no other arm had a chance in rows of p = 1"
            if certain > 1e-3
            else f"the mean weight is {found.weight_mean:.4g}, not 1"
        )
        rarely = "" if certain > 1e-3 else ", or shows too rarely"
        said.append((warn.SupportWarning, (
            f"missing support: about {found.unsupported:.3g} of the new policy is on arms that the log could not show"
            f"{rarely} ({how}); no weighting can tell their value. Log with floor=, or judge a policy closer to the "
            f"logging one"
        )))  # fmt: skip
    elif found.ess == 0:
        said.append((warn.SupportWarning, (
            "missing support: no row shows what the new policy would, all weights are 0. Log with floor=, or judge a "
            "policy closer to the logging one"
        )))  # fmt: skip
    elif found.weight_test < DOUBT and not few(found):
        said.append((warn.SupportWarning, (
            f"the weights do not average 1: {found.weight_mean:.4g} (P = {found.weight_test:.1g}). The logged "
            f"propensities are not those of the arms shown, or Q is of other rows: check both"
        )))  # fmt: skip
    if found.ess > 0 and few(found):
        said.append((warn.WeightWarning, (
            f"few rows carry it all: {found.ess:.1f} effective of {found.n}, largest weight {found.weight_max:.3g}. "
            f"Clip or shrink the weights (clipped_ips, switch_dr, dros), log with a larger floor=, or gather more data"
        )))  # fmt: skip
    if found.drift < DOUBT:
        said.append((warn.DriftWarning, (
            f"the weighted rewards drift over time (P = {found.drift:.1g}): one value does not describe them. "
            f"Evaluate shorter periods, or the recent one, with mask="
        )))  # fmt: skip
    return said


def quiet(found: Any) -> list[tuple[type[Warning], str]]:
    """What to say where no reward differs, and the interval takes what these rows do not show for impossible."""
    if found.se != 0 or found.interval_method in VALID or found.method not in OF_REWARDS:
        return []
    if found.weight_sd <= ROUNDING and abs(found.weight_mean - 1) <= ROUNDING:
        return []  # the mean of the rows themselves: no other policy is judged
    return [(warn.EventWarning, (
        f"no reward differs from the others: the {found.interval_method} interval does not hold for events that these "
        f"rows do not show. Take interval='clopper_pearson' where weights are equal, or 'betting' with reward_range= "
        f"and weight_max="
    ))]  # fmt: skip

"""Whether the log can tell: weights, support, drift.

ess           (Σw)²/Σw²: rows that equally weighted would say as much (Kish)
weight test   z = (mean w - 1)/se(mean w): E[w] = 1 where p is right and the log has support; se is the sample's,
              and at least what `rows.null_variance` says
unsupported   mean Σ_k Q_k 1[P_k = 0] where P is known, else max(0, 1 - mean w, mean (1 - q) 1[p = 1])
drift         D = max_k |Σ_{i<=k} ψ_i|/(sd √n): a bridge in the limit, so P(D > d) is Kolmogorov's
"""

from typing import Any

import numpy as np
from scipy import special

from dither.ope import warn
from dither.ope.rows import Contributions, certain_gap, null_variance, standard_error

DOUBT = 1e-4  # P-value below which a test is taken to have failed
FEW = 30  # effective rows below which a normal interval is not to be trusted


def health(made: Contributions, psi: np.ndarray) -> dict[str, float]:
    """The diagnostic fields of an `Estimate`."""
    log, w = made.log, made.log.w
    mean, total = float(np.mean(w)), float(np.sum(w))
    order = None if log.order is None else psi[log.order]
    return {
        "ess": total**2 / float(w @ w) if total else 0.0,
        "weight_mean": mean,
        "weight_max": float(np.max(w)),
        "unsupported": unsupported(mean, float(np.mean(certain_gap(log))), known=log.gap is not None),
        "weight_test": weight_test(
            mean, standard_error(w - mean, log, None, ddof=1), float(np.sum(null_variance(log))) / made.n**2
        ),
        "drift": float("nan") if order is None else cusum(order),
    }


def unsupported(mean: float, certain: float, *, known: bool) -> float:
    """The mass of the new policy that the log could not show; certain : what P, or p = 1, says of it."""
    return certain if known else max(certain, 1.0 - mean, 0.0)


def weight_test(mean: float, se: float, least: float) -> float:
    """P-value of a mean weight against 1; least : the least variance of it. Without any, 1 or 0 as it is 1 or not."""
    se = max(se, np.sqrt(least)) if se == se else np.sqrt(least)
    if abs(mean - 1) <= 1e-6 or not se > 0:
        return float(abs(mean - 1) <= 1e-6)  # probabilities logged in float32 have a spread of 1e-8 about anything
    return float(2 * special.ndtr(-abs(mean - 1) / se))


def cusum(psi: np.ndarray) -> float:
    """P-value of a constant mean of x_1, ..., x_n, given x less its mean (n,), in order of time; asymptotic."""
    spread = float(np.sqrt(psi @ psi))
    if not spread > 0:
        return 1.0
    return float(special.kolmogorov(np.max(np.abs(np.cumsum(psi))) / spread))


def complaints(found: Any, *, known: bool, certain: float) -> list[tuple[type[Warning], str]]:
    """(class, message) of whatever is wrong with an estimate; each names the cure.

    known : P was passed; certain : mean of `rows.certain_gap`
    """
    said: list[tuple[type[Warning], str]] = []
    fails = found.weight_test < DOUBT
    if certain > 1e-3 or (fails and not known and found.weight_mean < 1):
        how = (
            "by P"
            if known
            else "no other arm had a chance in rows of p = 1"
            if certain > 1e-3
            else f"the mean weight is {found.weight_mean:.4g}, not 1 (P = {found.weight_test:.1g})"
        )
        said.append((warn.SupportWarning, (
            f"missing support: about {found.unsupported:.3g} of the new policy is on arms that the log could not show "
            f"({how}); no weighting can tell their value. Log with floor=, or judge a policy closer to the logging one"
        )))  # fmt: skip
    elif fails:
        said.append((warn.SupportWarning, (
            f"the weights do not average 1: {found.weight_mean:.4g} (P = {found.weight_test:.1g}). The logged "
            f"propensities are not those of the arms shown, or Q is of other rows: check both"
        )))  # fmt: skip
    if found.n >= 100 and 0 < found.ess < max(FEW, found.n / 100) and found.method != "dm":
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

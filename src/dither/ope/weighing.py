"""Weights of rows by what the past says of their variance: the h of `stabilised`, each from the rows before it.

    stablevar   h = φ̂^(-1/2)   φ_t = E_x[Σ_k Q_k²/P_t,k]            Zhan, Hadad, Hirshberg, Athey 2021, Section 4
    minvar      h = φ̂^(-1)     the least variance if the residuals' is constant; farther from normal
    cadr        h = 1/σ̂_t      σ_t² the variance of D_t given the past   Bibaut, Chambaz, Dimakopoulou, Kallus, van der
                               Laan 2021, Section 3
    uniform     h = 1          plain DR (IPS without M)

φ_t and σ_t² ask for round t's policy at earlier contexts. Where that is passed (`policies`, one for each batch in which
the policy stood still), they are means over the rows before the batch, for σ² with importance weights. Else φ_t is the
mean over the last half of the rounds before t of what those rounds' own policies had: right where the policy changes
slowly. σ_t² cannot be had from such a mean: the weights follow single large terms, and intervals came out twice as
wide. Before anything is known φ = K.

Hadad, Hirshberg, Zhan, Wager, Athey 2021 ("Confidence intervals for policy evaluation in adaptive experiments") write
h_t² φ_t = λ_t (1 - Σ_{s<t} h_s² φ_s). Their constant allocation, λ_t = 1/(1 + T - t), is stablevar. Their two-point
allocation has λ_t = (1 - e_t) b_t + e_t/(1 + T - t) with b_t = (1 - α)/(1 - α + T (t/T)^α - t), for a least probability
that falls as t^(-α). With α = 0, a floor that stays as dither's does, b_t = 1/(1 + T - t): it is stablevar too.
"""

from typing import Any

import numpy as np

from dither.ope.rows import Rows, second

WEIGHTS = ("stablevar", "minvar", "cadr", "uniform")
LEAST = 1e-4  # least σ̂², in units of the first one known


def weighed(rows: Rows, D: np.ndarray, weights: str, batches: Any = None) -> np.ndarray:
    """h (n,) of the terms D (n,), each from the rows before it. rows.P must be known.

    batches : the policies (J, n, K), and where each starts (J + 1,)
    """
    P: Any = rows.P
    n, K = P.shape
    if weights == "uniform":
        return np.ones(n)
    if weights == "cadr":
        return _cadr(rows, D, *batches)
    power = -0.5 if weights == "stablevar" else -1.0
    if batches is None:
        return _recent(_phi(rows.Q, P), first=float(K)) ** power
    G, starts = batches
    h = np.full(n, float(K) ** power)
    for j in range(1, len(G)):
        past = slice(0, starts[j])
        if starts[j] and starts[j] < starts[j + 1]:
            h[starts[j] : starts[j + 1]] = np.mean(_phi(rows.Q[past], G[j, past])) ** power
    return h


def _phi(Q: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Σ_k Q_k²/P_k (n,), over the arms that Q plays and P can show; at least 1, as it is where P can show them all."""
    return np.maximum(second(P, Q), 1.0)


def _recent(x: np.ndarray, *, first: float) -> np.ndarray:
    """For each t the mean of x over the last half of the rows before it; `first` counts as a row before all others."""
    sums = np.concatenate([[0.0, first], first + np.cumsum(x[:-1])])  # sums[i]: of the first i, `first` among them
    after = np.arange(1, len(x) + 1)
    start = after // 2
    return (sums[after] - sums[start]) / (after - start)


def _cadr(rows: Rows, D: np.ndarray, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """1/σ̂ of each batch; 0 in the first, which tells how large σ is and cannot be weighted by what it says."""
    n = len(D)
    M: Any = np.zeros_like(rows.Q) if rows.M is None else rows.M
    model, m = np.einsum("ij,ij->i", rows.Q, M), M[np.arange(n), rows.a]
    q, variance = rows.w * rows.p, np.zeros(n)
    for j in range(1, len(G)):
        t = starts[j]
        if not t or t == starts[j + 1]:
            continue
        now = G[j, :t][np.arange(t), rows.a[:t]]
        again = np.divide(q[:t], now, out=np.zeros(t), where=now > 0)  # the weights as batch j would have them
        value, share = model[:t] + again * (rows.r - m)[:t], now / rows.p[:t]
        variance[t : starts[j + 1]] = max(np.mean(share * value**2) - np.mean(share * value) ** 2, 0.0)
    h, second = np.zeros(n), int(np.searchsorted(starts, 0, side="right"))  # the batch after the first with rows
    later = slice(starts[min(second, len(G))], n)
    least = np.maximum(variance[later], LEAST * np.max(variance[later][:1], initial=0.0))
    np.divide(1.0, np.sqrt(least), out=h[later], where=least > 0)
    if not np.any(h > 0):
        raise ValueError(
            "cadr has no row to count: it needs at least two batches with rows, and some noise in the first"
        )
    return h

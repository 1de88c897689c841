"""Estimators for logs that a learning policy collected: weighted means of martingale differences.

    D_t = Σ_k Q_k M_k + Q_a/P_a (r - m),   E[D_t | past] = V whatever the past, if P is exact and M knows only the past
    V̂ = Σ h_t D_t / Σ h_t,   se² = Σ h_t² (D_t - V̂)² / (Σ h_t)²

A learning policy stops showing what it thinks is bad, so D_t's variance given the past drifts and differs from one log
to the next; a plain mean of the D_t is then unbiased but not normal, and its interval does not cover. The weights h_t
make the terms alike. They may use what was known before round t and nothing else (`weighing` has the schemes). Assumed
besides: P above 0 where Q is (log with floor=), rewards of one law given x and arm.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding import inputs
from dither.ope import agree
from dither.ope.contributions import stabilised
from dither.ope.estimators import split
from dither.ope.in_memory import estimate
from dither.ope.result import Estimate
from dither.ope.rows import Propensities, Rows, read
from dither.ope.weighing import WEIGHTS


def adaptive(
    r: Any, a: Any, P: Any, Q: Any, M: Any = None, *, weights: str = "stablevar", policies: Any = None,
    batch: Any = None, **options: Any,
) -> Estimate:  # fmt: skip
    """The adaptively weighted estimate of a fixed policy from a learning policy's log, rows in order of time.

    P (n, K) : the logging policy's exact probabilities in each round; p is read from it
    M (n, K) : predictions from earlier rounds alone (`cross_fit` with past=True), or None: 0
    weights : one of `WEIGHTS`
    policies (J, n, K) : the policy of each batch at the contexts of all rows; batch (n,) of each row, in order
    options : `RowOptions` but for p_se, P and kind, which must be exact, and time; `IntervalSettings` for "normal",
    "asymptotic" or "bootstrap", which takes the rows as independent given h. Rows of weight= count s_t h_t, with h_t
    from the rows as they are

    Raises ValueError for propensities that are not exact, and what `read` raises.
    """
    errors.among("weighting", weights, WEIGHTS)
    for name in ("p_se", "time"):
        if options.get(name) is not None:
            raise ValueError(
                f"adaptive takes no {name}=: P is the second argument of the log and the rows are in order"
            )
    kind = P.kind if isinstance(P, Propensities) else options.get("kind", "exact")
    if kind != "exact":
        raise ValueError(f"adaptive needs exact probabilities of all arms in every round, got kind={kind!r}")
    agree.rows(r=r, a=a, P=P, Q=Q, M=M, weight=options.get("weight"))
    agree.columns(P=P, Q=Q, M=M)
    P = inputs.numbers(P, name="P")
    if P.ndim != 2 or P.shape[1] == 0:
        raise ValueError(f"P must be (n, K), the logging policy's probabilities of all arms; got {P.shape}")
    K = P.shape[1]
    arms = inputs.whole(a, name="a", below=K, shape=P.shape[:1])
    of_rows, of_interval = split(options)
    rows = read(r, a, P[np.arange(len(P)), arms], Q, M, P=P, **of_rows)
    batches = _batches(policies, batch, rows, K)
    if weights == "cadr" and batches is None:
        raise ValueError("weights='cadr' needs policies (J, n, K) and batch (n,): take 'stablevar', which does not")
    return estimate(replace(stabilised(weights, rows, batches), method=f"adaptive {weights}"), **of_interval)


def _batches(policies: Any, batch: Any, rows: Rows, K: int) -> tuple[np.ndarray, np.ndarray] | None:
    """policies (J, n, K) and where each batch starts (J + 1,), for the rows used."""
    if policies is None and batch is None:
        return None
    if policies is None or batch is None:
        raise ValueError("policies (J, n, K) and batch (n,) go together: pass both or neither")
    G, labels = inputs.numbers(policies, name="policies"), np.asarray(batch)
    n = len(rows.r) if rows.places is None else max(len(labels), int(rows.places[-1]) + 1)
    if G.ndim != 3 or G.shape[1:] != (n, K) or labels.shape != (n,):
        raise ValueError(f"policies must be (J, {n}, {K}) and batch ({n},); got {G.shape} and {labels.shape}")
    labels = inputs.whole(batch, name="batch", below=len(G), shape=(n,))
    falls = np.diff(labels) < 0
    if falls.any():
        raise ValueError(
            f"batch must not fall, as rows are in order of time; it does at row {int(np.argmax(falls)) + 1}"
        )
    if rows.places is not None:
        G, labels = G[:, rows.places], labels[rows.places]
    return G, np.searchsorted(labels, np.arange(len(G) + 1))

"""Estimators for logs that a learning policy collected: weighted means of martingale differences.

    D_t = Σ_k Q_k M_k + Q_a/P_a (r - m),   E[D_t | past] = V whatever the past, if P is exact and M knows only the past
    V̂ = Σ h_t D_t / Σ h_t,   se² = Σ h_t² (D_t - V̂)² / (Σ h_t)²

A learning policy stops showing what it thinks is bad, so D_t's variance given the past drifts and differs from one log
to the next; a plain mean of the D_t is then unbiased but not normal, and its interval does not cover. The weights h_t
make the terms alike. They may use what was known before round t and nothing else:

    stablevar   h = φ̂^(-1/2)   φ_t = E_x[Σ_k Q_k²/P_t,k]            Zhan, Hadad, Hirshberg, Athey 2021, Section 4
    minvar      h = φ̂^(-1)     the least variance if the residuals' is constant; farther from normal
    cadr        h = 1/σ̂_t      σ_t² the variance of D_t given the past   Bibaut, Chambaz, Dimakopoulou, Kallus, van der
                               Laan 2021, Section 3
    uniform     h = 1          plain DR (IPS without M)

φ_t and σ_t² ask for round t's policy at earlier contexts. Where that is passed (`policies`, one for each batch in which
the policy stood still), they are means over the rows before the batch, for σ² with importance weights. Else φ_t is the
mean over the last half of the rounds before t of what those rounds' own policies had: right where the policy changes
slowly (σ_t² is not to be had so: the weights follow single large terms, and intervals came out twice as wide). Before
anything is known φ = K. Assumed besides: P above 0 where Q is (log with floor=), rewards of one law given x and arm.
"""

from typing import Any

import numpy as np

from dither import errors, inputs
from dither.ope import agree
from dither.ope.bounded import Bounded
from dither.ope.contributions import Contributions
from dither.ope.result import Estimate, IntervalOptions, estimate
from dither.ope.rows import Propensities, RowOptions, Rows, read

WEIGHTS = ("stablevar", "minvar", "cadr", "uniform")
LEAST = 1e-4  # least σ̂², in units of the first one known


def adaptive(
    r: Any, a: Any, P: Any, Q: Any, M: Any = None, *, weights: str = "stablevar", policies: Any = None,
    batch: Any = None, **options: Any,
) -> Estimate:  # fmt: skip
    """The adaptively weighted estimate of a fixed policy from a learning policy's log, rows in order of time.

    P (n, K) : the logging policy's exact probabilities in each round; p is read from it
    M (n, K) : predictions from earlier rounds alone (`cross_fit` with past=True), or None: 0
    weights : one of `WEIGHTS`
    policies (J, n, K) : the policy of each batch at the contexts of all rows; batch (n,) of each row, in order
    options : `RowOptions` but for p_se, P and kind, which must be exact, and time; `IntervalOptions` for "normal",
    "asymptotic" or "bootstrap", which takes the rows as independent given h. Rows of weight= count s_t h_t, with h_t
    from the rows as they are

    Raises ValueError for propensities that are not exact, and what `read` raises.
    """
    errors.among("weighting", weights, WEIGHTS)
    for name in ("p_se", "P", "time"):
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
    of_rows = {name: value for name, value in options.items() if name in RowOptions.__annotations__}
    log = read(r, a, P[np.arange(len(P)), arms], Q, M, P=P, **of_rows)
    if log.rows is not None:
        P = P[log.rows]
    D = log.w * log.r
    if log.M is not None:
        model = np.einsum("ij,ij->i", log.Q, log.M)
        D = model + log.w * (log.r - log.M[np.arange(len(D)), log.a])
    batches = _batches(policies, batch, log, K)
    if weights == "cadr" and batches is None:
        raise ValueError("weights='cadr' needs policies (J, n, K) and batch (n,): take 'stablevar', which does not")
    h = _weights(log, P, D, weights, batches)
    made = Contributions(f"adaptive {weights}", log, None, h * D, h, None, Bounded("ratio"))
    return estimate(made, **{name: value for name, value in options.items() if name in IntervalOptions.__annotations__})


def _batches(policies: Any, batch: Any, log: Rows, K: int) -> tuple[np.ndarray, np.ndarray] | None:
    """policies (J, n, K) and where each batch starts (J + 1,), for the rows used."""
    if policies is None and batch is None:
        return None
    if policies is None or batch is None:
        raise ValueError("policies (J, n, K) and batch (n,) go together: pass both or neither")
    G, labels = inputs.numbers(policies, name="policies"), np.asarray(batch)
    n = len(log.r) if log.rows is None else max(len(labels), int(log.rows[-1]) + 1)
    if G.ndim != 3 or G.shape[1:] != (n, K) or labels.shape != (n,):
        raise ValueError(f"policies must be (J, {n}, {K}) and batch ({n},); got {G.shape} and {labels.shape}")
    labels = inputs.whole(batch, name="batch", below=len(G), shape=(n,))
    falls = np.diff(labels) < 0
    if falls.any():
        raise ValueError(
            f"batch must not fall, as rows are in order of time; it does at row {int(np.argmax(falls)) + 1}"
        )
    if log.rows is not None:
        G, labels = G[:, log.rows], labels[log.rows]
    return G, np.searchsorted(labels, np.arange(len(G) + 1))


def _weights(log: Rows, P: np.ndarray, D: np.ndarray, weights: str, batches: Any) -> np.ndarray:
    """h (n,), each from the rows before it."""
    n, K = P.shape
    if weights == "uniform":
        return np.ones(n)
    if weights == "cadr":
        return _cadr(log, D, *batches)
    power = -0.5 if weights == "stablevar" else -1.0
    if batches is None:
        return _recent(_phi(log.Q, P), first=float(K)) ** power
    G, starts = batches
    h = np.full(n, float(K) ** power)
    for j in range(1, len(G)):
        past = slice(0, starts[j])
        if starts[j] and starts[j] < starts[j + 1]:
            h[starts[j] : starts[j + 1]] = np.mean(_phi(log.Q[past], G[j, past])) ** power
    return h


def _phi(Q: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Σ_k Q_k²/P_k (n,), over the arms that Q plays and P can show; at least 1, as it is where P can show them all."""
    return np.maximum(np.sum(np.divide(Q**2, P, out=np.zeros_like(Q), where=P > 0), axis=1), 1.0)


def _recent(x: np.ndarray, *, first: float) -> np.ndarray:
    """For each t the mean of x over the last half of the rows before it; `first` counts as a row before all others."""
    sums = np.concatenate([[0.0, first], first + np.cumsum(x[:-1])])  # sums[i]: of the first i, `first` among them
    after = np.arange(1, len(x) + 1)
    start = after // 2
    return (sums[after] - sums[start]) / (after - start)


def _cadr(log: Rows, D: np.ndarray, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """1/σ̂ of each batch; 0 in the first, which tells how large σ is and cannot be weighted by what it says."""
    n = len(D)
    M: Any = np.zeros_like(log.Q) if log.M is None else log.M
    model, m = np.einsum("ij,ij->i", log.Q, M), M[np.arange(n), log.a]
    q, variance = log.w * log.p, np.zeros(n)
    for j in range(1, len(G)):
        t = starts[j]
        if not t or t == starts[j + 1]:
            continue
        now = G[j, :t][np.arange(t), log.a[:t]]
        again = np.divide(q[:t], now, out=np.zeros(t), where=now > 0)  # the weights as batch j would have them
        value, share = model[:t] + again * (log.r - m)[:t], now / log.p[:t]
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

"""Replay: what a policy that learns would have earned, from a log of arms chosen at random.

The policy meets the log's contexts in order. A row counts, and is learnt from, where the policy chooses the arm that
was shown, and then with chance least/p: rows that the log shows often are thinned, so that the rows that count come as
if the policy had chosen itself (Li, Chu, Langford, Wang 2011 for uniform logs; rejection sampling for any other). Of a
log that was thinned out, a row that stands for s rows of the traffic counts with chance least s/(p S), S the largest s:
then the rows that count come as the traffic does.
"""

from typing import Any

import numpy as np

from dither import errors, inputs
from dither.models import model as contract
from dither.ope import agree
from dither.ope.contributions import Bounded, Contributions
from dither.ope.result import Estimate, estimate
from dither.ope.rows import Log, Propensities, row_weights

OTHER = "the policy chose another arm"
THINNED = "thinned: p was above the least"


def replay(
    bandit: Any, X: Any, a: Any, r: Any, p: Any, *, least: float | None = None, seed: int | None = None,
    level: float = 0.95, weight: Any = None,
) -> Estimate:  # fmt: skip
    """Play a bandit (which learns: pass a fresh one) against a log; the mean reward of the rows that count.

    bandit : `choose(X_i).arm` and `update(x, r)`, such as `dither.Bandit`, which is changed
    X (n, K, d) arms on offer in each row, or (n, d) contexts for a bandit of disjoint slots; a (n,), r (n,), p (n,)
    least : the least probability with which the log shows any arm, such as floor/K; None: the least p S/s in the log,
    which is what it is only in a long log
    weight (n,) : s, how many rows of the traffic each row stands for; None: 1
    seed : of the thinning; not needed where p is constant
    -> Estimate over the rows that count, n of them, in `contributions.log.rows`; its se takes the rewards as
    uncorrelated, as they are given the past up to their means, which learning moves
    """
    kind, p = (p.kind, p.p) if isinstance(p, Propensities) else ("exact", p)
    agree.rows(a=a, r=r, p=p, weight=weight)
    X, r, p = inputs.numbers(X, name="X"), inputs.numbers(r, name="r"), inputs.numbers(p, name="p")
    slots = contract.slots(bandit)
    if X.ndim != (3 if slots is None else 2) or len(X) == 0:
        shape = "(n, K, d)" if slots is None else "(n, d)"
        raise ValueError(f"X must be {shape}, with at least one row; got {X.shape}")
    n = len(X)
    for array, name in ((r, "r"), (p, "p")):
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},), one for each row of X; got {array.shape}")
        inputs.finite(array, name=name)
    arms = inputs.whole(a, name="a", below=X.shape[1] if slots is None else slots, shape=(n,))
    if not np.all((p > 0) & (p <= 1 + 1e-6)):
        wrong = ~((p > 0) & (p <= 1 + 1e-6))
        row, count = int(np.argmax(wrong)), int(wrong.sum())
        raise ValueError(f"p must lie in (0, 1]; got {p[row]} at row {row} ({count} of {n} rows)")
    s = row_weights(weight, n)
    with np.errstate(divide="ignore"):
        rarity = p if s is None else p * (np.max(s) / s)  # infinite where a row stands for nothing: it never counts
    if least is None:
        least = float(np.min(rarity))
    errors.within("least", least, 1e-12, float(np.min(rarity)) * (1 + 1e-9))
    kept = np.random.default_rng(seed).random(n) * rarity < least
    counted = np.zeros(n, dtype=bool)
    left_out = {OTHER: 0, THINNED: 0}
    for i in range(n):
        if int(bandit.choose(X[i]).arm) != arms[i]:
            left_out[OTHER] += 1
        elif not kept[i]:
            left_out[THINNED] += 1
        else:
            counted[i] = True
            if slots is None:
                bandit.update(X[i, arms[i]], r[i])
            else:
                bandit.update(X[i], r[i], arm=int(arms[i]))
    if not counted.any():
        raise ValueError(f"no row of {n} counts: the policy never chose the arm that was shown")
    rows = np.flatnonzero(counted)
    ones = np.ones(len(rows))
    log = Log(
        r[rows], arms[rows], p[rows], w=ones, Q=np.empty((len(rows), 0)), M=None, p_se=None, kind=kind, group=None,
        order=None, gap=None, rows=rows, left_out={why: count for why, count in left_out.items() if count},
    )  # fmt: skip
    return estimate(Contributions("replay", log, r[rows], None, None, None, Bounded("model", 0.0)), level=level)

"""Replay: what a policy that learns would have earned, from a log of arms chosen at random.

The policy meets the contexts of the log in order. If it chooses the arm that was shown, the row counts with probability
least/p, and the policy learns from it. So the rows that count come as if the policy itself had chosen (Li, Chu,
Langford, Wang 2011 for uniform logs; Dudík et al. 2012, Section 4). In a thinned log, a row stands for s rows of the
traffic. It counts with probability least s/(p S), where S is the largest s. Then the rows that count come as the
traffic does.
"""

from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit
from dither.base import errors
from dither.deciding import observation
from dither.log import teaching
from dither.log.logged import Logged
from dither.log.schema import KINDS
from dither.models import adapting
from dither.ope.bounded import Bounded
from dither.ope.contributions import Contributions
from dither.ope.in_memory import estimate
from dither.ope.result import Estimate
from dither.ope.rows import Propensities, Rows, with_arms

OTHER = "the policy chose another arm"
THINNED = "thinned: p was above the least"


def replay(
    bandit: Any, X: Any, a: Any = None, r: Any = None, p: Any = None, *, least: float | None = None,
    seed: int | None = None, level: float = 0.95, weight: Any = None, mask: Any = None, at: Any = None,
) -> Estimate:  # fmt: skip
    """Play a bandit against a log. The estimate is the mean reward of the rows that count.

    bandit : has `choose(X_i).arm` and `update(x, r)`, as `dither.Bandit` has. It learns, so pass a fresh one
    X (n, K, d) arms on offer in each row, or (n, d) contexts for a bandit of disjoint slots; a (n,), r (n,), p (n,).
        Or a `dither.log.Logged` in place of the four, which has its own weights and masks. Its features must have the
        names that the bandit learnt, and its rows must be usable (`Logged.usable`). Its slots are those that a warm
        start would teach
    least : the smallest probability with which the log shows any arm, such as floor/K. None: the smallest p S/s in the
        log, which is near the true value only in a long log
    weight (n,) : s, how many rows of the traffic each row stands for; None: 1
    mask (n, K) True: on offer; None: all
    at (n,) : the times of the rows, for a bandit whose model has a half_life: what it has learnt fades to the time of
        each row before it chooses. A log in memory has them, in seconds since 1970
    seed : seed of the thinning; not needed if p is constant
    -> Estimate over the n rows that count, which `Contributions.rows.places` lists. Its se takes the rewards as
    uncorrelated. This is true of rewards less their means given the past; learning moves these means

    Raises ValueError for rows that break a rule (it names the first), and if no row counts.
    """
    clocked = isinstance(bandit, Bandit) and bandit.clocked  # what it has learnt fades by the clock
    slots = adapting.adapted(bandit).slots
    if isinstance(X, Logged):
        if not all(argument is None for argument in (a, r, p, weight, mask, at)):
            raise ValueError("a log in memory has its own a, r, p, weight, mask and at: leave them out")
        logged = X.usable().standing()
        X = (logged.aligned(bandit) if isinstance(bandit, Bandit) and bandit.columns is not None else logged).X
        a, r, weight, mask = logged.a, logged.r, logged.weight, logged.mask
        if logged.slots and slots is not None:
            each = logged.arm_ids()
            alike = all(len(ids) == slots and ids == each[0] for ids in each)  # then a position is a slot
            a, mask = (a, np.ones((len(each), slots), dtype=bool)) if alike else teaching.offered(logged, slots)
        mask = None if mask.all() else mask
        p = Propensities(logged.p, np.empty((0, 0)), max(set(logged.kinds), key=KINDS.index), 0)
        at = logged.seconds if clocked else None
    kind, p = (p.kind, p.p) if isinstance(p, Propensities) else ("exact", p)
    played = with_arms(r, a, p, X, mask, weight, slots=slots)
    s, n = played.s, len(played.r)
    if clocked:
        at = observation.times(at, (n,), adapting.adapted(bandit.model))
    elif at is not None:
        raise TypeError("at is for a bandit whose model has a half_life: leave it out")
    with np.errstate(divide="ignore"):
        rarity = played.p if s is None else played.p * (np.max(s) / s)  # infinite where a row stands for nothing
    if least is None:
        least = float(np.min(rarity))
    errors.within("least", least, 1e-12, float(np.min(rarity)) * (1 + 1e-9))
    kept = np.random.default_rng(seed).random(n) * rarity < least
    counted = np.zeros(n, dtype=bool)
    left_out = {OTHER: 0, THINNED: 0}
    for i in range(n):
        offer = {} if mask is None else {"mask": played.mask[i]}
        when = {} if at is None else {"at": at[i]}
        if at is not None:
            bandit.advance(at[i])
        if int(bandit.choose(played.X[i], **offer).arm) != played.a[i]:
            left_out[OTHER] += 1
        elif not kept[i]:
            left_out[THINNED] += 1
        else:
            counted[i] = True
            bandit.update(played.x[i], played.r[i], **when, **({} if slots is None else {"arm": int(played.a[i])}))
    if not counted.any():
        raise ValueError(f"no row of {n} counts: the policy never chose the arm that was shown")
    rows = np.flatnonzero(counted)
    part = played.part(rows)
    counting = Rows(
        part.r, part.a, part.p, w=np.ones(len(rows)), Q=np.empty((len(rows), 0)), M=None, p_se=None, kind=kind,
        group=None, order=None, gap=None, places=rows, left_out={why: n for why, n in left_out.items() if n},
    )  # fmt: skip
    return estimate(Contributions("replay", counting, part.r, None, None, None, Bounded("model", 0.0)), level=level)

"""Whether the weights average 1, by a test whose false alarms are at most what it says, for every law of the weights.

Where p is right and the log has support, E[w_t | past] = 1 and w >= 0, and nothing else is known of w: a normal test
takes the heavy weights that it has not seen for weights that cannot be. With weights of rows s <= S, E[s (w - 1)] = 0:

    too high    e⁺ = mean over λ of Π_t (1 + λ s_t (w_t - 1)/S),  λ = ½, ⅛, ... in (0, 1)
    too low     e⁻ = mean over λ of Π_t (1 - λ s_t (w_t - 1)/S),  λ <= 1/(B - 1), where w <= B

Both are martingales of mean 1 whatever the law and whatever the past says: P(e >= 1/α) <= α (Markov; Ville at all
times). B is known where P is (the largest Q/P), or a floor, or where it was said. Without B no test can tell that
weights are too low: an arm of probability 1e-6 carries a weight of 1e6 in one of a million rows. With the largest w
seen for B, what e⁻ refuses is "no weight is heavier than those seen": a part of the policy is on arms that are rarer
than any shown, or that are never shown. That is the test of support, and it is as good as this B.

What is kept of the rows adds up over parts of a log; λ/S is half a power of 4, so that bets of parts are the same bets.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

BETS = 10  # λ: ½, ⅛, ... 2e-6
CERTAIN = 1e-9  # 1 - p below which no other arm could be shown
SAME = 1e-6  # how far a mean of weights may be from 1: probabilities logged in float32 have errors of 1e-8


@dataclass(frozen=True, eq=False)
class Balance:
    """What the tests need of the rows; its size does not depend on them."""

    total: float  # Σs
    mass: float  # Σsw
    scale: int  # S as a power of 4
    high: np.ndarray  # (BETS,) ln Π(1 + λ s (w - 1)/S)
    low: np.ndarray  # (BETS,) ln Π(1 - λ s (w - 1)/S); -inf where a factor is not above 0
    limit: float  # the largest that w could have been; infinite where not known
    open: bool  # whether any row could have shown another arm, p < 1


def of(w: np.ndarray, p: np.ndarray, s: np.ndarray | None, limit: float | None) -> Balance:
    """Of weights w (n,), probabilities p (n,) of the arms shown, and weights of the rows s (n,) or None: 1."""
    scale = 0 if s is None else math.ceil(math.log(float(np.max(s)), 4) - 1e-9)
    move = (w - 1 if s is None else s * (w - 1)) / 4.0**scale
    high, low = np.zeros(BETS), np.full(BETS, -np.inf)
    if not move.any():
        low[:] = 0.0  # the weights of what ran are all 1: nothing is won or lost
    for i, lam in enumerate(_stakes() if move.any() else ()):
        high[i] = np.sum(np.log1p(lam * move))
        if lam * np.max(move) < 1:
            low[i] = np.sum(np.log1p(-lam * move))
    total = float(len(w)) if s is None else float(np.sum(s))
    bound = math.inf if limit is None else max(limit, float(np.max(w)))
    mass = float(np.sum(w if s is None else s * w))
    return Balance(total, mass, scale, high, low, bound, bool(np.any(p < 1 - CERTAIN)))


def merge(a: Balance, b: Balance) -> Balance:
    """Of the rows of both. Bets of the part of smaller weights move up the list, to where λ/S is the same."""
    scale = max(a.scale, b.scale)
    high, low = (
        np.add(*(_moved(getattr(part, side), scale - part.scale) for part in (a, b))) for side in ("high", "low")
    )
    return Balance(
        a.total + b.total, a.mass + b.mass, scale, high, low, max(a.limit, b.limit), a.open or b.open
    )  # fmt: skip


def p_value(x: Balance, *, limit: float | None = None) -> float:
    """Of weights that average 1; at most α with probability at most α. limit : a bound on w known beforehand.

    1 for a mean below 1 where no bound is known.
    """
    settled = _settled(x)
    if settled is not None:
        return settled
    if x.mass > x.total:
        return min(1.0, 2 * _markov(x.high))
    bound = x.limit if limit is None else min(limit, x.limit)
    return min(1.0, 2 * _markov(np.where(_stakes() * (bound - 1) < 1, x.low, -np.inf)))


def support(x: Balance) -> float:
    """Of no weight heavier than those seen; 1 where weights average 1 or more."""
    settled = _settled(x)
    if settled is not None:
        return settled if x.mass < x.total else 1.0
    return _markov(x.low) if x.mass < x.total else 1.0


def _settled(x: Balance) -> float | None:
    """The P-value where no test is needed."""
    if abs(x.mass / x.total - 1) <= SAME:
        return 1.0
    return None if x.open else 0.0  # where no row could have shown another arm, w is what it must be


def _markov(wealth: np.ndarray) -> float:
    """1/e of the bets that could be placed (BETS,), at most 1."""
    placed = wealth[np.isfinite(wealth)]
    if not len(placed):
        return 1.0
    return float(np.exp(min(0.0, math.log(len(placed)) - special.logsumexp(placed))))


def _stakes() -> np.ndarray:
    return 0.5 * 4.0 ** -np.arange(BETS)


def _moved(wealth: np.ndarray, by: int) -> np.ndarray:
    """wealth (BETS,) at S larger by 4^by: bet i there is bet i + by here; what is not known counts as not placed."""
    moved = np.full(BETS, -np.inf)
    moved[: max(BETS - by, 0)] = wealth[by:]
    return moved

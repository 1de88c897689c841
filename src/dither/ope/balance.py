"""Whether the weights average 1, by tests whose false alarms are at most what they say, for every law of the weights.

Where p is right and the log has support, E[w_t | past] = 1 and w >= 0, and nothing else is known of w: a normal test
takes the heavy weights that it has not seen for weights that cannot be. With weights of rows s <= S, E[s (w - 1)] = 0:

    too high    e = mean over λ of Π_t (1 + λ s_t (w_t - 1)/S),  λ = ½, ⅛, ... in (0, 1)
                a martingale of mean 1, whatever the law: P(e >= 1/α) <= α (Markov; Ville at all times)
    too low     no test can tell, unless weights are bounded: an arm of probability 1e-6 carries a weight of 1e6 in one
                of a million rows. With w <= B, z = (s (w - c)/S + c)/B lies in [0, 1] and has E[z | past] = c/B, so
                P(z̄ <= x) <= exp(-n kl(x, c/B)), x < c/B (Chernoff, Hoeffding 1963; Azuma for martingales)

B is known where P is (the largest Q/P), or where a floor is, and then c = 1. Else B is n/30, larger weights count as 0,
and c = 0.95: the claim that is then refused is "at most 5 % of the policy is on arms that n rows would show fewer than
30 times, or never". Sums of parts of a log add up: λ/S is a power of 4 over 2, and B a power of 2^(1/4).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

BETS = 10  # λ: ½, ⅛, ... 2e-6
BINS = 146  # of the weights: below 1, and from 1 to 2^36 by powers of 2^(1/4)
SHOWN = 30  # rows that an arm must be expected in, for its weights to count where no bound is known
SLACK = 0.05  # of the policy that may be on arms below that
CERTAIN = 1e-9  # 1 - p below which no other arm could be shown
SAME = 1e-6  # how far a mean of weights may be from 1: probabilities logged in float32 have errors of 1e-8


@dataclass(frozen=True, eq=False)
class Balance:
    """What the tests need of n rows; its size does not depend on them."""

    n: int
    total: float  # Σs
    mass: float  # Σsw
    scale: int  # S as a power of 4, for the bets
    most: float  # the largest s
    wealth: np.ndarray  # (BETS,) ln Π(1 + λ s (w - 1)/4^scale)
    bins: np.ndarray  # (BINS,) Σsw of the weights below 1, and in [2^((i-1)/4), 2^(i/4))
    limit: float  # the largest that w could have been; infinite where not known
    open: bool  # whether any row could have shown another arm, p < 1


def of(w: np.ndarray, p: np.ndarray, s: np.ndarray | None, limit: float | None) -> Balance:
    """Of weights w (n,), probabilities p (n,) of the arms shown, and weights of the rows s (n,) or None: 1."""
    most = 1.0 if s is None else float(np.max(s))
    scale = math.ceil(math.log(most, 4) - 1e-9)
    move = (w - 1 if s is None else s * (w - 1)) / 4.0**scale
    wealth = np.array([np.sum(np.log1p(lam * move)) for lam in _stakes()])
    place = np.clip(_place(np.maximum(w, 0.5)), 0, BINS - 1).astype(np.int64)
    carried = w if s is None else s * w
    bins = np.bincount(place, weights=carried, minlength=BINS)
    total = float(len(w)) if s is None else float(np.sum(s))
    bound = math.inf if limit is None else max(limit, float(np.max(w)))
    return Balance(
        len(w), total, float(np.sum(carried)), scale, most, wealth, bins, bound, bool(np.any(p < 1 - CERTAIN))
    )


def merge(a: Balance, b: Balance) -> Balance:
    """Of the rows of both. Bets of the part of smaller weights move up the list, to where λ/S is the same."""
    scale = max(a.scale, b.scale)
    wealth = sum(_moved(part.wealth, scale - part.scale) for part in (a, b))
    return Balance(
        a.n + b.n, a.total + b.total, a.mass + b.mass, scale, max(a.most, b.most), np.asarray(wealth),
        a.bins + b.bins, max(a.limit, b.limit), a.open or b.open,
    )  # fmt: skip


def p_value(x: Balance, *, limit: float | None = None) -> float:
    """Of weights that average 1; at most α with probability at most α. limit : a bound on w known beforehand."""
    mean = x.mass / x.total
    if abs(mean - 1) <= SAME:
        return 1.0
    if not x.open:
        return 0.0  # no row could have shown another arm: w is what it must be, and its mean is not 1
    found = _high(x) if mean > 1 else _low(x, x.limit if limit is None else min(limit, x.limit))
    return min(1.0, 2 * found)


def _high(x: Balance) -> float:
    known = x.wealth[np.isfinite(x.wealth)]
    if not len(known):
        return 1.0
    return float(np.exp(min(0.0, math.log(len(known)) - special.logsumexp(known))))


def _low(x: Balance, limit: float) -> float:
    c = 1.0
    if not math.isfinite(limit):
        if x.n < SHOWN:
            return 1.0
        last = int(_place(np.float64(x.n / SHOWN)))  # the bin that n/30 lies in: weights up to it count
        limit, c = 2.0 ** (last / 4), 1 - SLACK
        carried = float(np.sum(x.bins[: last + 1]))
    else:
        carried = x.mass
    z = ((carried - c * x.total) / (x.n * x.most) + c) / limit
    return math.exp(-x.n * divergence(max(z, 0.0), c / limit)) if z < c / limit < 1 else 1.0


def divergence(x: float, m: float) -> float:
    """kl(x, m) = x ln(x/m) + (1 - x) ln((1 - x)/(1 - m))."""
    return float(special.rel_entr(x, m) + special.rel_entr(1 - x, 1 - m))


def _place(w: Any) -> Any:
    """The bin of w."""
    return np.floor(4 * np.log2(w) + 1e-9) + 1


def _stakes() -> np.ndarray:
    return 0.5 * 4.0 ** -np.arange(BETS)


def _moved(wealth: np.ndarray, by: int) -> np.ndarray:
    """wealth (BETS,) at S larger by 4^by: bet i there is bet i + by here; what is not known counts as never placed."""
    if by == 0:
        return wealth
    moved = np.full(BETS, -np.inf)
    moved[: max(BETS - by, 0)] = wealth[by:]
    return moved

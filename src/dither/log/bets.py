"""Tests, made of bets, that weights average 1. They give no more false alarms than they say, for every law of w.

Where the propensities are right, E[w_t | past] = 1 and w >= 0. Nothing else is known of w. A normal test treats heavy
weights that it has not seen as impossible. A bet does not. A row may also have a weight of its own, s <= S (s = 1 where
the log has none). Then E[s (w - 1)] = 0. So both of these are martingales of mean 1, for every law of w and every past:

    above   Π_t (1 + λ s_t (w_t - 1)/S)      λ in (0, 1)
    below   Π_t (1 - λ s_t (w_t - 1)/S)      λ < 1/(B - 1), where w <= B

The wealth is averaged over several λ. Such an average exceeds 1/α with probability at most α at any time (Markov; Ville
1939). The logarithm of the wealth is a sum over rows, so the sums of parts of a log add up. Two questions are asked:

`EachArm`   Was each arm shown as often as its propensities say? The rows are those that offer arm j with π_j > 0, and
            w = 1{shown}/p. The bound B is known before the draw: it is 1/π_j, or K over the floor. So λ = κ/(B - 1)
            differs from row to row. There are K arms and two sides, so α = DELTA/(2K). A row that shows another arm
            adds the same, whichever arm that is.
`Balance`   Do the weights w = q/p of a policy average 1? B is known in three cases: the log has P (B is the largest
            Q/P), the log has a floor, or the user says B. Without B no test can tell that weights are too low: an arm
            of probability 1e-6 carries a weight of 1e6 in one of a million rows. The test of support takes the largest
            w seen as B. Where "below" then wins, some weight must be heavier than those seen. So a part of the policy
            is on arms that are rarer than any arm shown, or that are never shown. The test is as good as this B. λ/S
            is half a power of 4, so that the bets of two parts of a log are the same bets.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dither.deciding.inputs import ROUNDING
from dither.log import schema

DELTA = 1e-4  # a log without fault is accused at most this often
ABOVE = 2.0 ** -np.arange(1, 13)  # λ of `EachArm`
BELOW = 2.0 ** -np.arange(1, 7)  # κ of `EachArm`
STAKES = 0.5 * 4.0 ** -np.arange(10)  # λ of `Balance`: ½, ⅛, ... 2e-6
CELLS = 2**20  # (row, arm) pairs that are looked at together
CERTAIN = 1e-9  # 1 - p below which no other arm could be shown


def averaged(wealth: np.ndarray, axis: int | None = None) -> Any:
    """ln of the mean wealth of several bets, from the ln of the wealth of each: over all bets, or along an axis."""
    number = wealth.size if axis is None else wealth.shape[axis]
    return special.logsumexp(wealth, axis=axis) - math.log(number)


class EachArm(NamedTuple):
    """The sums of the bets for each arm. The sums of parts of a log add up."""

    arms: tuple[str, ...] = ()
    # (arms, 2 + bets): rows on offer, Σ w, ln of the wealth of each bet above, and of each below
    sums: np.ndarray = np.zeros((0, 2 + len(ABOVE) + len(BELOW)))

    def merge(self, other: "EachArm") -> "EachArm":
        """The sums of two parts of a log together."""
        arms = tuple(dict.fromkeys([*self.arms, *other.arms]))
        place, sums = {arm: i for i, arm in enumerate(arms)}, np.zeros((len(arms), self.sums.shape[1]))
        for part in (self, other):
            sums[[place[arm] for arm in part.arms]] += part.sums
        return EachArm(arms, sums)

    @property
    def doubted(self) -> list[str]:
        """One sentence for each arm whose mean weight is not 1."""
        if not self.arms:
            return []
        above, below = (averaged(part, axis=1) for part in np.split(self.sums[:, 2:], [len(ABOVE)], axis=1))
        return [
            f"arm {self.arms[i]!r} was shown {'more' if above[i] > below[i] else 'less'} often than its propensities "
            f"say: its mean weight is {self.sums[i, 1] / self.sums[i, 0]:.3g} over {self.sums[i, 0]:.0f} rows, where 1 "
            "is right"
            for i in np.flatnonzero(np.maximum(above, below) > math.log(2 * len(self.arms) / DELTA))
        ]

    def __str__(self) -> str:
        if not self.arms:
            return "weights of each arm: not checkable, as no exact propensities are logged"
        doubted = self.doubted
        answer = "DISAGREE with 1" if doubted else f"agree with 1 ({len(self.arms)} arms)"
        return "\n  ".join([f"weights of each arm: {answer}", *doubted])


def each_arm(rows: Any) -> EachArm:
    """The bets on a whole log. A thinned log has none, since rows that left by their outcome bend the weights."""
    p, a, K = rows.p, rows.a, rows.K.astype(np.int64)
    use = (rows.kinds == "exact") & (p > 0) & (p <= 1 + ROUNDING) & (a >= 0) & (a < K)
    thinned = rows.weight is not None and bool(np.any(rows.weight != 1))
    if rows.rows is not None or thinned or not use.any():
        return EachArm()
    low = np.where(use, np.nan_to_num(np.clip(rows.floor, 0, 1)) / np.maximum(K, 1), 0.0)
    P = rows.P if "probabilities" in rows.frame.columns else None
    lists = rows.frame["arms"] if "arms" in rows.frame.columns else None
    if lists is not None and lists.null_count():
        lists = None if lists.null_count() == len(rows) else schema.polars().Series(rows.arm_ids())
    total, start, used = EachArm(), 0, np.flatnonzero(use)
    ends = np.cumsum(K[used])
    while start < len(used):
        stop = max(start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + CELLS, side="right")))
        part = used[start:stop]
        row = np.repeat(np.arange(len(part)), K[part])
        place = np.arange(len(row)) - (np.cumsum(K[part]) - K[part])[row]
        names, code = _codes(rows, None if lists is None else lists[part], place)
        w = np.where(place == a[part][row], 1 / p[part][row], 0.0)
        least = low[part][row]
        if P is not None:
            stated = P[part[row], place]
            least = np.where(np.isnan(stated), least, stated)
            possible = ~(stated <= 0) | (w > 0)
            w, least, code = w[possible], least[possible], code[possible]
        total, start = total.merge(EachArm(names, _sums(w, least, code, len(names)))), stop
    return total


def _codes(rows: Any, lists: Any, place: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The ids of the arms, and for each (row, arm) pair the number of its arm among them.

    Where the log lists no ids, an arm is its position.
    """
    if lists is None:
        most = int(place.max()) + 1
        return tuple(map(str, range(most))) if rows.catalogue is None else rows.catalogue[:most], place
    ids = lists.explode()
    return tuple(ids.unique().sort().to_list()), ids.rank("dense").to_numpy().astype(np.int64) - 1


def _sums(w: np.ndarray, least: np.ndarray, code: np.ndarray, arms: int) -> np.ndarray:
    """For each arm: the rows that offer it, Σ w, and ln of the wealth of each bet: (arms, 2 + number of bets)."""

    def summed(x: np.ndarray, code: np.ndarray) -> np.ndarray:
        return np.bincount(code, weights=x, minlength=arms)

    rows, shown = np.bincount(code, minlength=arms), w > 0
    u, at = w[shown] * (1 - ROUNDING), code[shown]
    above = [rows * np.log1p(-bet) + summed(np.log1p(bet * (u - 1)) - np.log1p(-bet), at) for bet in ABOVE]
    scale = np.zeros_like(w)
    proved = (least > 0) & (least < 1)
    scale[proved] = 1 / (np.maximum(1 / least[proved], w[proved]) * (1 + ROUNDING) - 1)
    unit = scale * (w * (1 + ROUNDING) - 1)
    below = [summed(np.log1p(-bet * unit), code) for bet in BELOW]
    return np.stack([rows, summed(w, code), *above, *below], axis=1)


@dataclass(frozen=True, eq=False)
class Balance:
    """What the tests need of the rows. Its size does not depend on how many rows there are."""

    total: float  # Σs
    mass: float  # Σsw
    scale: int  # S as a power of 4
    high: np.ndarray  # (J,) ln Π(1 + λ s (w - 1)/S)
    low: np.ndarray  # (J,) ln Π(1 - λ s (w - 1)/S); -inf where a factor is not above 0
    limit: float  # the largest value that w could have had; infinite where that is not known
    open: bool  # whether any row could have shown another arm, p < 1


def balance(w: np.ndarray, p: np.ndarray, s: np.ndarray | None, limit: float | None) -> Balance:
    """The sums of n rows. w (n,) : weights; p (n,) : propensities; s (n,) : weights of rows, or None: all are 1."""
    scale = 0 if s is None else math.ceil(math.log(float(np.max(s)), 4) - 1e-9)
    move = (w - 1 if s is None else s * (w - 1)) / 4.0**scale
    high, low = np.zeros(len(STAKES)), np.full(len(STAKES), -np.inf)
    if not move.any():
        low[:] = 0.0  # the weights of what ran are all 1: nothing is won or lost
    for i, lam in enumerate(STAKES if move.any() else ()):
        high[i] = np.sum(np.log1p(lam * move))
        if lam * np.max(move) < 1:
            low[i] = np.sum(np.log1p(-lam * move))
    total = float(len(w)) if s is None else float(np.sum(s))
    bound = math.inf if limit is None else max(limit, float(np.max(w)))
    mass = float(np.sum(w if s is None else s * w))
    return Balance(total, mass, scale, high, low, bound, bool(np.any(p < 1 - CERTAIN)))


def merged(a: Balance, b: Balance) -> Balance:
    """The sums of the rows of both. Where S differs, the bets of the part with the smaller S move to equal λ/S."""
    scale = max(a.scale, b.scale)
    high = _moved(a.high, scale - a.scale) + _moved(b.high, scale - b.scale)
    low = _moved(a.low, scale - a.scale) + _moved(b.low, scale - b.scale)
    return Balance(a.total + b.total, a.mass + b.mass, scale, high, low, max(a.limit, b.limit), a.open or b.open)


def p_value(x: Balance, *, limit: float | None = None) -> float:
    """P-value of the claim that the weights average 1. It is at most α with probability at most α.

    limit : a bound on w that is known beforehand. Where no bound is known and the mean is below 1, the P-value is 1.
    """
    settled = _settled(x)
    if settled is not None:
        return settled
    return min(1.0, 2 * _markov(averaged(x.high) if x.mass > x.total else below(x, limit=limit)))


def below(x: Balance, *, limit: float | None = None) -> float:
    """ln of the mean wealth of the bets that the weights average less than 1. limit : as of `p_value`

    A bet that the bound forbids counts as lost. It must not be left out of the mean: where a policy learns, the largest
    Q/P depends on the draws, so bets that have lost anyway could be those that are left out.
    """
    bound = x.limit if limit is None else min(limit, x.limit)
    return float(averaged(np.where(STAKES * (bound - 1) < 1, x.low, -np.inf)))


def support(x: Balance) -> float:
    """P-value of the claim that no weight is heavier than those seen. It is 1 where the weights average 1 or more."""
    if x.mass >= x.total:
        return 1.0
    settled, placed = _settled(x), x.low[np.isfinite(x.low)]
    if settled is not None:
        return settled
    return _markov(averaged(placed)) if len(placed) else 1.0


def _settled(x: Balance) -> float | None:
    """The P-value, where it is known without a test; else None."""
    if abs(x.mass / x.total - 1) <= ROUNDING:
        return 1.0
    return None if x.open else 0.0  # where no row could have shown another arm, w is what it must be


def _markov(wealth: float) -> float:
    """1 over a wealth whose ln this is, at most 1 (Markov)."""
    return math.exp(-max(0.0, wealth))


def _moved(wealth: np.ndarray, by: int) -> np.ndarray:
    """wealth (J,) for an S that is 4^by times as large: bet i there is bet i + by here.

    A bet that this list does not have counts as not placed.
    """
    moved = np.full(len(STAKES), -np.inf)
    moved[: max(len(STAKES) - by, 0)] = wealth[by:]
    return moved

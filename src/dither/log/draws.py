"""What draws that were used again leave in a log, as copies of one bandit, forks, and a seed given at every restart do.

Repeats. Two equal z of a continuous law have probability 0; as float64 two draws agree by chance with probability at
most 2^-53, so that among n draws n²/2^54 pairs are expected, and more than their Poisson law allows are a fault.

Weights. Where arm j was on offer with π_j > 0, w = 1{shown}/p has mean 1 given the past. Two bets that it has not:

    above   Π (1 + λ (w - 1))                  0 < λ < 1; a supermartingale of mean at most 1 also where π_j may be 0
    below   Π (1 - κ (w - 1)/(B - 1))          0 < κ < 1, 1/B <= π_j known before the draw: the floor over K, or π_j

The wealth of each is averaged over several λ or κ. Such an average exceeds 1/α with probability at most α (Ville 1939),
for every law of weights; among K arms and two sides α = DELTA/(2K). A row that was not shown adds the same to the log
of the wealth whatever was drawn, so sums over arms are all that is kept, and reports of parts add up.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dither.log import schema

DELTA = 1e-4  # how often a log without fault fails each of the two, at most
ABOVE = 2.0 ** -np.arange(1, 13)  # λ
BELOW = 2.0 ** -np.arange(1, 7)  # κ
ROUNDING = 1e-6  # propensities in float32 have weights whose mean is off by so much
CELLS = 2**20  # arms on offer, of all rows, that are looked at together


def repeated(log: Any) -> tuple[np.ndarray, bool] | None:
    """Rows whose z came before (n,), and whether its law is known to be continuous; None where chance explains them."""
    z = log.z
    said = log.frame["z_law"].to_list() if "z_law" in log.frame.columns else [None] * len(log)
    for law, sure in (("continuous", True), (None, False)):
        use = np.array([one == law for one in said], dtype=bool)
        rows = np.flatnonzero(use & ~np.isnan(z) & (z != 0))  # 0: the vector form has it where nothing was learnt
        _, first = np.unique(z[rows], return_index=True)
        again = np.zeros(len(log), dtype=bool)
        again[np.delete(rows, first)] = True
        if again.sum() > _by_chance(len(rows)):
            return again, sure
    return None


def _by_chance(n: int) -> int:
    """How many of n draws may repeat one another, but for a chance of DELTA."""
    expected, k = n * n / 2.0**54, 0
    while special.gammainc(k + 1, expected) > DELTA:  # P(more than k), a Poisson law
        k += 1
    return k


class Bets(NamedTuple):
    """Sums of the bets, arm by arm; they add up over parts of a log."""

    arms: tuple[str, ...] = ()
    sums: np.ndarray = np.zeros(
        (0, 2 + len(ABOVE) + len(BELOW))
    )  # rows on offer, Σ w, log wealth above, log wealth below

    def merge(self, other: "Bets") -> "Bets":
        """Both parts of a log."""
        arms = tuple(dict.fromkeys([*self.arms, *other.arms]))
        place, sums = {arm: i for i, arm in enumerate(arms)}, np.zeros((len(arms), self.sums.shape[1]))
        for part in (self, other):
            sums[[place[arm] for arm in part.arms]] += part.sums
        return Bets(arms, sums)

    @property
    def doubted(self) -> list[str]:
        """What to say of each arm whose mean weight is not 1."""
        if not self.arms:
            return []
        parts, found = np.split(self.sums[:, 2:], [len(ABOVE)], axis=1), []
        wealth = [special.logsumexp(part, axis=1) - math.log(part.shape[1]) for part in parts]
        for i in np.flatnonzero(np.maximum(*wealth) > math.log(2 * len(self.arms) / DELTA)):
            n, total = self.sums[i, :2]
            way = "more" if wealth[0][i] > wealth[1][i] else "less"
            found.append(
                f"arm {self.arms[i]!r} was shown {way} often than its propensities say: its mean weight is "
                f"{total / n:.3g} over {n:.0f} rows, where 1 is right"
            )
        return found

    def __str__(self) -> str:
        if not self.arms:
            return "weights of each arm: not checkable, as no exact propensities are logged"
        doubted = self.doubted
        return "\n  ".join(
            [
                f"weights of each arm: {'DISAGREE with 1' if doubted else f'agree with 1 ({len(self.arms)} arms)'}",
                *doubted,
            ]
        )


def bets(log: Any) -> Bets:
    """The bets on a log whose rows are all there: what left by its outcome would bend the weights."""
    p, a, K = log.p, log.a, log.K.astype(np.int64)
    use = (log.kinds == "exact") & (p > 0) & (p <= 1 + ROUNDING) & (a >= 0) & (a < K)
    thinned = log.weight is not None and bool(np.any(log.weight != 1))
    if log.rows is not None or thinned or not use.any():
        return Bets()
    floor = np.nan_to_num(np.clip(log.floor, 0, 1))
    low = np.where(use, floor / np.maximum(K, 1), 0.0)
    P = log.P if "probabilities" in log.frame.columns else None
    listed = log.frame["arms"] if "arms" in log.frame.columns else None
    if listed is not None and listed.null_count():
        listed = None if listed.null_count() == len(log) else schema.polars().Series(log.arm_ids())
    total, start, rows = Bets(), 0, np.flatnonzero(use)
    ends = np.cumsum(K[rows])
    while start < len(rows):
        stop = max(start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + CELLS, side="right")))
        part = rows[start:stop]
        row = np.repeat(np.arange(len(part)), K[part])
        place = np.arange(len(row)) - (np.cumsum(K[part]) - K[part])[row]
        names, code = _codes(log, None if listed is None else listed[part], place)
        w = np.where(place == a[part][row], 1 / p[part][row], 0.0)
        least = low[part][row]
        if P is not None:
            own = P[part[row], place]
            least = np.where(np.isnan(own), least, own)
            possible = ~(own <= 0) | (w > 0)
            w, least, code = w[possible], least[possible], code[possible]
        total, start = total.merge(Bets(names, _sums(w, least, code, len(names)))), stop
    return total


def _codes(log: Any, lists: Any, place: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The ids of the arms, and the number of each cell's among them; by position where the log lists none."""
    if lists is None:
        most = int(place.max()) + 1
        known = tuple(map(str, range(most))) if log.catalogue is None else log.catalogue
        return known[:most], place
    ids = lists.explode()
    return tuple(ids.unique().sort().to_list()), ids.rank("dense").to_numpy().astype(np.int64) - 1


def _sums(w: np.ndarray, least: np.ndarray, code: np.ndarray, arms: int) -> np.ndarray:
    """Rows on offer, Σ w and the logs of the wealth, for each arm: (arms, 2 + the bets)."""

    def summed(x: np.ndarray, code: np.ndarray) -> np.ndarray:
        return np.bincount(code, weights=x, minlength=arms)

    rows, shown = np.bincount(code, minlength=arms), w > 0
    u, at = w[shown] * (1 - ROUNDING), code[shown]
    above = [rows * np.log1p(-bet) + summed(np.log1p(bet * (u - 1)) - np.log1p(-bet), at) for bet in ABOVE]
    scale = np.zeros_like(w)
    known = (least > 0) & (least < 1)
    scale[known] = 1 / (np.maximum(1 / least[known], w[known]) * (1 + ROUNDING) - 1)
    unit = scale * (w * (1 + ROUNDING) - 1)
    below = [summed(np.log1p(-bet * unit), code) for bet in BELOW]
    return np.stack([rows, summed(w, code), *above, *below], axis=1)

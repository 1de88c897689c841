"""Who wins on how many sets: the approximate Z test of Bietti, Agarwal and Langford (JMLR 2021), and Holm's correction.

z      (p_b - p_a) / √(p_a(1 - p_a)/n + p_b(1 - p_b)/n) for progressive losses p_a and p_b of n rounds: a wins on this
       set where 1 - Φ(z) < 5 %. The losses are means over the shuffles. n is the rounds of one pass, since shuffles of
       the same rows are no new rows. p(1 - p) is the variance of an error, and bounds that of any loss from 0 to 1
Holm   of the S sets on which a meets b, those stay where the k-th smallest of 1 - Φ(z), and all smaller ones, are below
       5 %/(S - k + 1): the probability that a wins on any set without being better there is at most 5 % (Holm 1979)
t      the paired t-interval over the shuffles, of loss of a - loss of b: it says what chance in shuffling and in the
       algorithms does on these rows, where z asks what other rows would do
"""

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from dither_bench.judge.set_losses import SetLosses

SIGNIFICANT = 0.05


class PairedSizes(NamedTuple):
    """What the paired t over the shuffles says of two algorithms, over all sets."""

    lower: int  # sets whose 95 % interval lies below 0: the first loses less
    higher: int
    median: float  # of the relative differences of the losses
    least: float  # the most negative of those
    most: float


class WinLoss(NamedTuple):
    """On how many sets one algorithm is significantly better, and worse, than another."""

    wins: int
    losses: int


def z(losses: SetLosses, a: str, b: str) -> np.ndarray:
    """The statistic on each set, (S,): above 0 where a has the lower loss; 0 where both lose alike."""
    p, q = (losses.mean[:, losses.index(name)] for name in (a, b))
    sd = np.sqrt((p * (1 - p) + q * (1 - q)) / losses.rounds)
    gap = q - p
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, gap / sd)


def holm(p: np.ndarray, level: float = SIGNIFICANT) -> np.ndarray:
    """Which of the hypotheses with these p (S,) are rejected at this level together, (S,) of True and False."""
    order = np.argsort(p, kind="stable")
    kept = np.cumprod(p[order] < level / (p.size - np.arange(p.size))).astype(bool)
    rejected = np.zeros(p.size, dtype=bool)
    rejected[order] = kept
    return rejected


def won(losses: SetLosses, a: str, b: str, *, corrected: bool = True) -> np.ndarray:
    """The sets on which a is significantly better than b, (S,); corrected : by Holm over the sets."""
    p = stats.norm.sf(z(losses, a, b))
    return holm(p) if corrected else p < SIGNIFICANT


def duel(losses: SetLosses, a: str, b: str, *, corrected: bool = True) -> WinLoss:
    """On how many sets a is significantly better than b, and worse."""
    return WinLoss(*(int(won(losses, *pair, corrected=corrected).sum()) for pair in ((a, b), (b, a))))


def matrix(losses: SetLosses, *, corrected: bool = True) -> np.ndarray:
    """(A, A): on how many sets the algorithm of the row is significantly better than that of the column."""
    names = losses.algorithms
    return np.array([[won(losses, a, b, corrected=corrected).sum() for b in names] for a in names])


def paired(losses: SetLosses, a: str, b: str) -> pl.DataFrame:
    """Each set: its difference of losses, a - b, over the shuffles.

    Columns set, difference, low, high (of the 95 % t-interval; null for one shuffle), p (two-sided), relative
    (difference over the loss of b), z, and won and lost, which are after Holm's correction.
    """
    of_a, of_b = (losses.loss[:, :, losses.index(name)] for name in (a, b))
    gap, n = of_a - of_b, losses.shuffles
    mean = gap.mean(axis=1)
    low = high = p = None
    if n > 1:
        se = gap.std(axis=1, ddof=1) / np.sqrt(n)
        half = se * stats.t.ppf((1 + 1 - SIGNIFICANT) / 2, n - 1)
        low, high = mean - half, mean + half
        with np.errstate(divide="ignore", invalid="ignore"):
            p = np.where(mean == 0, 1.0, 2 * stats.t.sf(np.abs(mean) / se, n - 1))
    base = of_b.mean(axis=1)
    relative = np.divide(mean, base, out=np.full_like(mean, np.nan), where=base > 0)
    columns = {"set": [of.name for of in losses.sets], "difference": mean, "low": low, "high": high, "p": p}
    columns |= {"relative": relative, "z": z(losses, a, b)}
    columns |= {"won": won(losses, a, b), "lost": won(losses, b, a)}
    return pl.DataFrame(columns, schema_overrides=dict.fromkeys(("low", "high", "p"), pl.Float64))


def sizes(losses: SetLosses, a: str, b: str) -> PairedSizes:
    """The paired t-intervals of all sets in five numbers; with one shuffle there are none, and no set is told apart."""
    rows = paired(losses, a, b)
    relative = rows["relative"].drop_nans()
    median, least, most = (float(of) for of in (np.median(relative), relative.min(), relative.max()))  # type: ignore[arg-type]
    return PairedSizes(int((rows["high"] < 0).sum() or 0), int((rows["low"] > 0).sum() or 0), median, least, most)


def every(losses: SetLosses) -> pl.DataFrame:
    """The rows of `paired` for all pairs of algorithms; columns algorithm and other before them."""
    pairs = [(a, b) for a in losses.algorithms for b in losses.algorithms if a != b]
    frames = [
        paired(losses, a, b).select(pl.lit(a).alias("algorithm"), pl.lit(b).alias("other"), pl.all()) for a, b in pairs
    ]
    return pl.concat(frames) if frames else pl.DataFrame()

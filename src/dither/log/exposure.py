"""The receipt: what the log alone proves of the smallest probability that each arm had.

Where a row has exact probabilities of all arms, an arm on offer had π_i. Where the row has only a floor f_i, the arm
had at least f_i/K_i. Monte Carlo probabilities prove nothing, but a floor beside them does. A promise of floor f was
kept for an arm if π_i K_i >= f in every row that offered it.
"""

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from dither.base import errors
from dither.log import check, schema
from dither.log.logged import by_value


@dataclass(frozen=True)
class Exposure:
    """What the log proves of one arm."""

    arm: str
    offers: int  # rows in which it was on offer
    shown: int
    least: float | None  # the smallest probability that the log proves; None: some row proves nothing
    floor: float | None  # the smallest (probability × arms on offer): the floor that was kept; None as for `least`
    unproved: int  # rows that prove nothing


@dataclass(frozen=True)
class Receipt:
    """What each arm had, and whether the promised floor was kept."""

    arms: tuple[Exposure, ...]
    promised: float | None  # the floor asked about

    @property
    def holds(self) -> bool | None:
        """Whether every arm had the promised floor; None: the log proves neither yes nor no."""
        if self.promised is None:
            return None
        kept = [None if e.floor is None else e.floor >= self.promised * (1 - check.ROUNDING) for e in self.arms]
        return False if False in kept else None if None in kept else True

    def table(self) -> Any:
        """One row an arm, as a polars frame."""
        pl = schema.polars()
        types = {"arm": pl.String, "offers": pl.Int64, "shown": pl.Int64, "least": pl.Float64, "floor": pl.Float64}
        return pl.DataFrame(map(astuple, self.arms), schema=types | {"unproved": pl.Int64}, orient="row")

    def __str__(self) -> str:
        rows = [("arm", "offers", "shown", "least probability", "floor kept")]
        for e in self.arms:
            least = "no proof" if e.least is None or e.floor is None else f"{e.least:.6g}"
            rows.append((e.arm, str(e.offers), str(e.shown), least, "" if e.floor is None else f"{e.floor:.6g}"))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if self.promised is not None:
            words = {True: "proved", False: "NOT kept", None: "not proved by this log"}[self.holds]
            lines.append(f"floor {self.promised:g} for every arm on offer: {words}")
        return "\n".join(lines)


def receipt(log: Any, *, floor: float | None = None) -> Receipt:
    """What a `Logged` proves of each arm, compared with the promised floor (None: nothing was promised)."""
    if floor is not None:
        errors.within("floor", floor, 0, 1)
    pl = schema.polars()
    K = log.K
    had = np.where((K > 0) & (log.floor >= 0), log.floor / np.maximum(K, 1), np.nan)
    had[had == 0] = np.nan  # a floor of 0 proves nothing
    proved = np.where(log.mask, had[:, None], np.nan)
    if "probabilities" in log.frame.columns:
        P, exact = log.P, log.kinds == "exact"
        proved = np.where(exact[:, None] & ~np.isnan(P), P, proved)
    place = np.arange(log.mask.shape[1])
    pairs = pl.DataFrame(
        {
            "arm": pl.Series([name for ids in log.arm_ids() for name in ids], dtype=pl.String),
            "p": proved[log.mask],
            "K": np.repeat(K, K),
            "shown": (place == log.a[:, None])[log.mask],
        }
    )
    by = pairs.group_by("arm").agg(
        offers=pl.len(),
        shown=pl.col("shown").sum(),
        least=pl.col("p").min(),
        floor=(pl.col("p") * pl.col("K")).min(),
        unproved=pl.col("p").is_nan().sum(),
    )
    rows = sorted(by.iter_rows(named=True), key=lambda row: by_value(row["arm"]))
    unproved = {"least": None, "floor": None}
    return Receipt(tuple(Exposure(**row | (unproved if row["unproved"] else {})) for row in rows), floor)

"""Intervals of estimates in memory that also hold for rewards that their rows do not show (`intervals.unseen`)."""

from dataclasses import replace

import numpy as np

from dither.ope import intervals
from dither.ope.result import Difference, Estimate
from dither.ope.rows import Rows


def rare(found: Estimate) -> intervals.Tally | None:
    """The rewards of an estimate by value, where few of them differ from the usual one; else None."""
    tally = _tally(found)
    return tally if intervals.few(tally) else None


def wider(found: Estimate) -> Estimate:
    """The estimate. Its interval is wider where few rewards differ and their range is known: 0 and 1, or two values."""
    tally = rare(found)
    return (
        found if tally is None else replace(found, interval=intervals.hull(found.interval, _ends(tally, found.level)))
    )


def wider_gap(gap: Difference, one: Estimate, other: Estimate) -> Difference:
    """The difference of two estimates, with an interval that holds all differences between wider intervals of both.

    Each of these fails with half the probability. Estimates of the same weights differ in nothing.
    """
    if (rare(one) is None and rare(other) is None) or np.array_equal(_log(one).w, _log(other).w):
        return gap
    mine, theirs = (_ends(_tally(each), (1 + gap.level) / 2) for each in (one, other))
    ends = None if mine is None or theirs is None else (mine[0] - theirs[1], mine[1] - theirs[0])
    return replace(gap, interval=intervals.hull(gap.interval, ends))


def _log(found: Estimate) -> Rows:
    if found.contributions is None:
        raise ValueError("rewards that were not seen need estimates made from rows")
    return found.contributions.log


def _tally(found: Estimate) -> intervals.Tally:
    log = _log(found)
    return intervals.tallied(log.r, log.w, log.s)


def _ends(tally: intervals.Tally, level: float) -> intervals.Interval | None:
    return intervals.unseen(tally, level, None)

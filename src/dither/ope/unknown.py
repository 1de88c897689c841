"""What `evaluate` says if nothing is known of the rewards that are missing but their range, [low, high].

Two evaluations, one with `low` for every missing reward and one with `high`, bound the value of a policy π, and its
difference to what ran (Manski 1990). With m the share of the rows whose reward is missing:

    V_low <= V <= V_high,    d_low - (high - low) m <= d <= d_high + (high - low) m

as what ran earned (high - low) m more in the one than in the other. Against another policy it is that policy's
V_high - V_low. Both evaluations have the level (1 + level)/2, and so has the upper bound of m (Clopper and Pearson,
exact for rows of one weight) or of V_high - V_low (its standard error is at most the sum of both). So all holds
together at `level`. Where the log misses no reward, m is taken as 0: the answer is about rewards like those of the log.
"""

from dataclasses import replace
from typing import TypeVar

from scipy import special

from dither.ope.bounded import Interval
from dither.ope.candidates import LOGGING
from dither.ope.evaluation import EvaluationNumbers, Gap
from dither.ope.result import Difference, Estimate

Numbers = TypeVar("Numbers", bound=EvaluationNumbers)
ANY = "for any missing reward"


def bounded(low: Numbers, high: Numbers, ends: Interval, level: float) -> Numbers:
    """One evaluation, whose intervals hold whatever the missing rewards were.

    low, high : the evaluations with the lowest and the highest reward for each that is missing, at (1 + level)/2
    """
    gaps = tuple(
        one._replace(difference=_gap(one.difference, other.difference, _share(low, high, one, ends, level), level))
        for one, other in zip(low.gaps, high.gaps, strict=True)
    )
    estimates = {key: _value(one, high.estimates[key], level) for key, one in low.estimates.items()}
    periods = {label: bounded(one, high.periods[label], ends, level) for label, one in low.periods.items()}
    how = replace(low.how, level=level)
    return replace(low, estimates=estimates, gaps=gaps, periods=periods, how=how, unknown=low.report.filled, events={})


def _share(low: Numbers, high: Numbers, gap: Gap, ends: Interval, level: float) -> float:
    """How much more the other policy earned, at most, with the highest rewards than with the lowest."""
    tail = (3 + level) / 4
    by = "mean" if gap.against == LOGGING else gap.estimator
    one, other = low.estimates[gap.against, by], high.estimates[gap.against, by]
    if gap.against != LOGGING:
        return other.value - one.value + float(special.ndtri(tail)) * (one.se + other.se)
    width = ends[1] - ends[0]
    n = one.ess
    k = n * (other.value - one.value) / width
    return width * float(special.betaincinv(k + 1, n - k, tail)) if 0 < k < n else width * float(k > 0)


def _value(low: Estimate, high: Estimate, level: float) -> Estimate:
    """In the middle of what it can be."""
    return replace(
        low,
        value=(low.value + high.value) / 2,
        se=max(low.se, high.se),
        interval=(low.interval[0], high.interval[1]),
        level=level,
        interval_method=f"{low.interval_method}, {ANY}",
    )


def _gap(low: Difference, high: Difference, shift: float, level: float) -> Difference:
    ends = low.interval[0] - shift, high.interval[1] + shift
    p = 1.0 if ends[0] <= 0 <= ends[1] else max(low.p_value, high.p_value)
    return Difference((low.value + high.value) / 2, max(low.se, high.se), ends, p, level, low.n)

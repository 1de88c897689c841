"""Off-policy evaluation: what a policy would have earned, from the log of another policy.

The estimators take arrays and give an estimate with its interval. `evaluate` takes a log and gives verdicts.
"""

from dither.ope import learning, synthetic
from dither.ope.contributions import ESTIMATORS, Contributions, Estimator
from dither.ope.diagnostics import expected_rows
from dither.ope.estimators import clipped_ips, contributions, dm, dr, dros, ips, sgdr, sndr, snips, switch_dr
from dither.ope.fitting import cross_fit, mrdr, propensities_from
from dither.ope.in_memory import compare, confidence_sequence, estimate, slope
from dither.ope.judge import Evaluation, evaluate
from dither.ope.late import Bounds, Delays, arrived, bounds, delays, settled
from dither.ope.partial import Sums, differences, estimates, merge, resample, sums
from dither.ope.periods import Periods, by_period, mean_age, recent
from dither.ope.planning import Plan, plan
from dither.ope.rejection import replay
from dither.ope.result import Difference, Estimate
from dither.ope.rows import Propensities, faults
from dither.ope.stabilised import adaptive
from dither.ope.tuning import Tuned, tune
from dither.ope.warn import DriftWarning, EvaluationWarning, EventWarning, SupportWarning, WeightWarning

__all__ = [
    "ESTIMATORS",
    "Bounds",
    "Contributions",
    "Delays",
    "Difference",
    "DriftWarning",
    "Estimate",
    "Estimator",
    "Evaluation",
    "EvaluationWarning",
    "EventWarning",
    "Periods",
    "Plan",
    "Propensities",
    "Sums",
    "SupportWarning",
    "Tuned",
    "WeightWarning",
    "adaptive",
    "arrived",
    "bounds",
    "by_period",
    "clipped_ips",
    "compare",
    "confidence_sequence",
    "contributions",
    "cross_fit",
    "delays",
    "differences",
    "dm",
    "dr",
    "dros",
    "estimate",
    "estimates",
    "evaluate",
    "expected_rows",
    "faults",
    "ips",
    "learning",
    "mean_age",
    "merge",
    "mrdr",
    "plan",
    "propensities_from",
    "recent",
    "replay",
    "resample",
    "settled",
    "sgdr",
    "slope",
    "sndr",
    "snips",
    "sums",
    "switch_dr",
    "synthetic",
    "tune",
]

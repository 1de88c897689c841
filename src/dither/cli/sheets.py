"""An evaluation as two frames: one row for each estimate, and one row for each difference."""

from typing import Any

import polars as pl

from dither.ope import verdicts
from dither.ope.evaluation import EvaluationNumbers

NUMBER = pl.Float64


def estimates(evaluation: EvaluationNumbers) -> pl.DataFrame:
    """Policy, estimator, value, se, low, high, the weights behind them, and a note on saved bandits."""
    rows: list[tuple[Any, ...]] = []
    for (policy, estimator), e in evaluation.estimates.items():
        share = e.n / evaluation.report.read
        weights = (e.ess, e.weight_max, e.weight_mean, e.weight_test, e.unsupported, e.drift)
        ends = (*e.interval, *weights, e.n, share, e.interval_method.partition(",")[0], evaluation.how.level)
        note = verdicts.LEARNT if policy in evaluation.saved else None
        rows.append((verdicts.named(policy), estimator, e.value, e.se, *ends, note))
    schema: dict[str, Any] = dict.fromkeys(
        ("value", "se", "low", "high", "ess", "weight_max", "weight_mean", "weight_test", "unsupported", "drift"),
        NUMBER,
    )
    rest = {"rows": pl.Int64, "share_used": NUMBER, "interval": pl.String, "level": NUMBER, "note": pl.String}
    return pl.DataFrame(rows, schema={"policy": pl.String, "estimator": pl.String} | schema | rest, orient="row")


def periods(evaluation: EvaluationNumbers) -> pl.DataFrame:
    """The estimates of each period, with a first column `period`."""
    parts = [
        estimates(one).select(pl.lit(period).alias("period"), pl.all()) for period, one in evaluation.periods.items()
    ]
    return pl.concat(parts)


def differences(evaluation: EvaluationNumbers) -> pl.DataFrame:
    """Policy, estimator, against whom, difference, se, low, high, and the P-value of no difference."""
    rows = [
        (policy, estimator, verdicts.named(against), gap.value, gap.se, *gap.interval, gap.p_value)
        for policy, estimator, against, gap in evaluation.gaps
    ]
    schema: dict[str, Any] = {"policy": pl.String, "estimator": pl.String, "against": pl.String}
    numbers = dict.fromkeys(("difference", "se", "low", "high", "p_value"), NUMBER)
    return pl.DataFrame(rows, schema=schema | numbers, orient="row")

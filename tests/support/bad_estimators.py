"""Estimators that break a rule of `dither.testing`, one for each check."""

import dataclasses

import numpy as np

from dither import ope
from dither.ope.contributions import find


def estimator(change, **settings):
    """IPS whose terms are changed: (b, log) -> b."""

    def rows(log, setting):
        made = find("ips")(log, None)
        return dataclasses.replace(made, b=change(made.b, log))

    return ope.Estimator(rows, **{"reads": "shown"} | settings)


def counted(b, log):
    return b * (1.0 if log.s is None else log.s)


BAD_ESTIMATORS = [
    ("finite", estimator(lambda b, log: b * np.nan), {}, "the estimate is nan"),
    ("row_order", estimator(lambda b, log: b * np.arange(len(b))), {}, "rows in another order"),
    ("weights", estimator(counted), {}, "each of them k times"),
    ("clusters", estimator(lambda b, log: b * (1.0 if log.group is None else 1.1)), {}, "every row twice"),
    ("reads", estimator(lambda b, log: b * log.Q.max(axis=1)), {}, "reads='all arms'"),
    ("parts", estimator(lambda b, log: np.minimum(b, np.quantile(b, 0.8))), {}, "sums of three parts"),
    ("purity", estimator(lambda b, log: b + np.random.default_rng().normal(size=b.shape)), {}, "two calls"),
    ("refused", estimator(lambda b, log: b, setting=("c", 0.0, np.inf)), {"setting": 1.0}, "c=inf is taken"),
    ("unbiased", estimator(lambda b, log: 0.9 * b), {"unbiased": True}, "the truth is"),
]

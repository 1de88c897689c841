"""Reward predictions for a log that has none: cross-fitted, in memory (`dither.ope.cross_fit`)."""

import importlib
from dataclasses import replace
from typing import Any

import numpy as np

from dither import errors, ope
from dither.log import Logged, Report, schema
from dither.ope.question import Question, told

COLUMN = "predicted"
MODELS = {  # name -> module of scikit-learn, class
    "ridge": ("linear_model", "Ridge"),
    "gbm": ("ensemble", "HistGradientBoostingRegressor"),
}


def fit(log: Logged, question: Question, model: str, *, seed: int) -> tuple[Logged, Report]:
    """The rows that can be used, with predictions in the column COLUMN, and the report of those that cannot.

    model : "ridge" or "gbm" (gradient-boosted trees), on the features of an arm, or with one context a row on it and
        the number of the arm; each fifth of the rows (of the clusters) is predicted by a model of the others
    """
    log = told(log, question).usable(missing=question.missing, invalid=question.invalid, duplicates=question.duplicates)
    if log.report is None or not len(log):
        raise ValueError(f"no row is left to evaluate: {log.report}")
    K = int(log.K.max())
    cluster = None if question.cluster is None else log.column(question.cluster)
    M = ope.cross_fit(log.r, log.a, log.X, arms=K, regressor=regressor(model, seed), seed=seed, cluster=cluster)
    pl = schema.polars()
    rows = [row.tolist() for row in np.split(M[log.mask], np.cumsum(log.K)[:-1])]
    lists = pl.Series(COLUMN, rows, dtype=schema.dtype("numbers"))
    return replace(log, frame=log.frame.with_columns(lists)), log.report


def reads(question: Question) -> Question:
    """The question as it is put to the log: features are read, the predictions are not there yet."""
    return replace(question, predictions="features")


def regressor(name: str, seed: int) -> Any:
    """The scikit-learn regressor of that name."""
    if name not in MODELS:
        raise errors.unknown("model", name, known=MODELS)
    module, cls = MODELS[name]
    try:
        found = importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise errors.missing_extra("scikit-learn", extra="experiments") from None
    return getattr(found, cls)(random_state=seed)

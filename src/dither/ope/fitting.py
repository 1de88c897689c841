"""Fits what a log may lack, by any scikit-learn estimator: reward predictions, propensities, the MRDR model.

`cross_fit` is the one loop that fits and predicts by folds. `predicted` adds its predictions to a log in memory.

The prediction for a row comes from a model that has not seen the row (`folds`). With past=True it comes from earlier
rows alone. The estimators for adaptive logs need this (`stabilised`): predictions must not know what comes later.
The regressor sees a row and an arm as [x, one-hot of the arm], as [x, features of the arm], or as X[i, k] itself.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dither.base import errors
from dither.deciding import inputs
from dither.log import schema
from dither.log.logged import Logged
from dither.ope import agree
from dither.ope.estimators import dr
from dither.ope.labels import numbered
from dither.ope.result import Estimate
from dither.ope.rows import Propensities, numbers, read, row_weights

COLUMN = "predicted"
MODELS = {  # name -> module of scikit-learn, class
    "ridge": ("linear_model", "Ridge"),
    "gbm": ("ensemble", "HistGradientBoostingRegressor"),
}


def cross_fit(
    r: Any, a: Any, X: Any, *, arms: int, regressor: Any, features: Any = None, folds: int = 5, past: bool = False,
    seed: int | None = None, cluster: Any = None, weight: Any = None,
) -> np.ndarray:  # fmt: skip
    """Reward predictions M (n, K) by cross-fitting (Chernozhukov et al. 2018).

    r (n,), a (n,), X (n, d) contexts or (n, K, d) features of each arm in each row; arms : K
    regressor : has fit and predict; it is cloned for each fold
    features (K, e) : features of the arms, in place of one-hot
    folds : number of folds (at least 2), drawn with `seed`; rows with one label of cluster (n,) are in one fold
    weight (n,) : weights of the rows in the fit, such as how many rows of the traffic each stands for
    past : cut folds + 1 blocks in the order of the rows; earlier blocks predict each block; the first is predicted 0
    """
    agree.rows(r=r, a=a, X=X, weight=weight, cluster=cluster)
    r, a, X = _checked(r, a, X, arms)
    n = len(r)
    weights = None if weight is None else _positive(weight, n)
    shown = _design(X, a[:, None], arms, features)[:, 0]
    M = np.zeros((n, arms))
    for train, test in _splits(n, folds, past=past, seed=seed, cluster=cluster):
        model = fitted(regressor, shown[train], r[train], None if weights is None else weights[train])
        every = np.broadcast_to(np.arange(arms), (len(test), arms))
        design = _design(X[test], every, arms, features)
        M[test] = np.asarray(model.predict(design.reshape(-1, design.shape[-1]))).reshape(len(test), arms)
    return M


def mrdr(
    r: Any, a: Any, p: Any, Q: Any, X: Any, *, regressor: Any, features: Any = None, folds: int = 5,
    seed: int | None = None, **options: Any,
) -> Estimate:  # fmt: skip
    """More robust DR (Farajtabar, Chow, Ghavamzadeh 2018, Section 4): DR whose model is fitted to its own variance.

    The variance of DR given x is that of w (r - m): with Δ = μ - m, Σ_k Q_k²(1/P_k)Δ_k² - (Σ_k Q_k Δ_k)² and noise.
    A regressor takes one weight for each row, so the fit minimises the diagonal, Σ_k Q_k²(1/P_k - 1)Δ_k²: each row has
    the weight w²(1 - p), times the rows of the traffic that it stands for (weight=). For a policy that plays one arm
    this is the paper's objective. The model is fitted as in `cross_fit`. No row may break a rule (bad="leave_out" is
    refused). options : those of `dr`.
    """
    if options.get("bad", "refuse") != "refuse" or options.get("mask") is not None:
        raise ValueError("mrdr fits on all rows that it is given: leave rows out beforehand")
    rows = read(r, a, p, Q, weight=options.get("weight"))
    if rows.places is not None:
        raise ValueError("mrdr fits on all rows that it is given, and some have weight 0: leave them out beforehand")
    weight = rows.share * rows.w**2 * np.maximum(1 - rows.p, 0.0)
    if not np.any(weight > 0):
        raise ValueError("mrdr has no row to fit: q = 0 or p = 1 in all of them; take dr with cross_fit")
    M = cross_fit(
        rows.r, rows.a, X, arms=rows.Q.shape[1], regressor=regressor, features=features, folds=folds, seed=seed,
        cluster=options.get("cluster"), weight=weight / np.mean(weight),
    )  # fmt: skip
    estimate = dr(r, a, p, Q, M, seed=seed, **options)
    terms = estimate.contributions
    return replace(estimate, method="mrdr", contributions=terms and replace(terms, method="mrdr"))


def propensities_from(
    a: Any, X: Any, *, arms: int, classifier: Any, folds: int = 5, seed: int | None = None, cluster: Any = None,
    clip: float | None = None, weight: Any = None,
) -> Propensities:  # fmt: skip
    """The logging policy's probabilities where none were logged, by cross-fitting any classifier with predict_proba.

    a (n,), X (n, d) : arms shown and contexts
    clip : smaller p are raised to this, and counted; None: no p is raised
    weight (n,) : how many rows of the traffic each row stands for (`sample_weight` of the fit). A log that was thinned
        by its rewards shows other arms than the policy did

    An arm that no training row shows gets probability 0. Its rows then have p = 0. The estimators refuse them, and
    name the arm. Raises ValueError if the rows of a fold show only one arm and the classifier cannot learn from it.
    """
    agree.rows(a=a, X=X, weight=weight, cluster=cluster)
    _, a, X = _checked(np.zeros(np.shape(a)), a, X, arms)
    s = row_weights(weight, len(a))
    if X.ndim != 2:
        raise ValueError(f"X must be (n, d), one context a row; got {X.shape}")
    P = np.zeros((len(a), arms))
    for train, test in _splits(len(a), folds, past=False, seed=seed, cluster=cluster):
        try:
            model = fitted(classifier, X[train], a[train], None if s is None else s[train] / np.mean(s))
        except ValueError:
            if len(np.unique(a[train])) > 1:
                raise
            raise ValueError(
                f"a shows arm {a[train][0]} alone in the rows that a fold learns from, and {type(classifier).__name__} "
                "needs two arms: join rare arms to one or take more folds; if the policy always showed it, p is 1"
            ) from None
        P[np.ix_(test, model.classes_)] = model.predict_proba(X[test])
    p = P[np.arange(len(a)), a]
    if clip is None:
        return Propensities(p, P, "estimated", 0)
    errors.within("clip", clip, 0, 1)
    return Propensities(np.maximum(p, clip), P, "estimated", int(np.sum(p < clip)))


def predicted(logged: Logged, model: str, cluster: str | None, past: bool, seed: int) -> Logged:
    """Usable rows of a log, with predictions in the column COLUMN.

    model : "ridge" or "gbm" (gradient-boosted trees). It sees the features of an arm, or the context of the row and the
        number of the arm. Each fifth of the rows (or clusters, by a column) is predicted by a model of the others
    past : models of earlier rows alone predict (`cross_fit`), for estimators that read the past
    """
    if not len(logged):
        raise ValueError(f"no row is left to evaluate: {logged.report}")
    K, labels = int(logged.K.max()), None if cluster is None else logged.column(cluster)
    M = cross_fit(
        logged.r, logged.a, logged.X, arms=K, regressor=regressor(model, seed), seed=seed, cluster=labels, past=past
    )
    rows = [row.tolist() for row in np.split(M[logged.mask], np.cumsum(logged.K)[:-1])]
    lists = schema.polars().Series(COLUMN, rows, dtype=schema.dtype("numbers"))
    return replace(logged, frame=logged.frame.with_columns(lists))


def regressor(name: str, seed: int) -> Any:
    """The scikit-learn regressor of that name."""
    errors.among("model", name, MODELS)
    module, cls = MODELS[name]
    return getattr(sklearn(module), cls)(random_state=seed)


def fitted(estimator: Any, x: np.ndarray, y: np.ndarray, s: np.ndarray | None = None) -> Any:
    """A copy of an estimator of scikit-learn that has learnt the rows; s (n,) : their weights, or None."""
    model = sklearn("base").clone(estimator)
    model.fit(x, y, **({} if s is None else {"sample_weight": s}))
    return model


def sklearn(module: str) -> Any:
    """A module of scikit-learn, imported where it is used. Raises ImportError, with the cure, where it is missing."""
    return errors.imported(f"sklearn.{module}", "scikit-learn", extra="ope")


def _checked(r: Any, a: Any, X: Any, arms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    errors.at_least("arms", arms, 1)
    X = inputs.numbers(X, name="X")
    if X.ndim not in (2, 3) or (X.ndim == 3 and X.shape[1] != arms):
        raise ValueError(f"X must be (n, d), or (n, {arms}, d) with features of each arm; got {X.shape}")
    inputs.finite(X, name="X")
    r = numbers(r, name="r", shape=X.shape[:1], of="X")
    inputs.finite(r, name="r")
    return r, inputs.whole(a, name="a", below=arms, shape=r.shape), X


def _positive(weight: Any, n: int) -> np.ndarray:
    array = inputs.numbers(weight, name="weight")
    if array.shape != (n,) or not np.all((array >= 0) & (array < np.inf)):
        raise ValueError(f"weight must be {n} finite numbers of at least 0, one for each row; got shape {array.shape}")
    return array


def _design(X: np.ndarray, a: np.ndarray, arms: int, features: Any) -> np.ndarray:
    """The regressor's input for arms a (n, k) in each row: (n, k, width)."""
    if X.ndim == 3:
        return np.take_along_axis(X, a[..., None], axis=1)
    about = np.eye(arms) if features is None else inputs.numbers(features, name="features")
    if about.ndim != 2 or len(about) != arms:
        raise ValueError(f"features must be ({arms}, e), a row for each arm; got {about.shape}")
    rows = np.broadcast_to(X[:, None], (*a.shape, X.shape[1]))
    return np.concatenate([rows, about[a]], axis=-1)


def _splits(n: int, folds: int, *, past: bool, seed: Any, cluster: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each fold, the rows to fit on and the rows to predict."""
    errors.at_least("folds", folds, 2)
    labels = numbered(cluster, n)
    if labels is None:
        labels = np.arange(n)
    units = int(labels.max(initial=-1)) + 1
    if units < folds + past:
        raise ValueError(f"folds={folds} needs at least {folds + past} rows (or clusters), got {units}")
    if past:
        if cluster is not None:
            raise ValueError("past=True cuts by the order of the rows: it takes no cluster=")
        edges = np.linspace(0, n, folds + 2).astype(int)
        for start, end in itertools.pairwise(edges[1:]):
            yield np.arange(start), np.arange(start, end)
        return
    fold = np.random.default_rng(seed).permutation(units) % folds
    for k in range(folds):
        inside = fold[labels] == k
        yield np.flatnonzero(~inside), np.flatnonzero(inside)

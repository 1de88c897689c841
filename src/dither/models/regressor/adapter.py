"""Estimators of scikit-learn, or anything with `fit` and `predict`: how they are copied, fitted and asked.

The estimator that the user gave is never fitted, only copies of it are. In a copy every `random_state` that is None is
replaced by a number that depends on the model's stream and on the rows alone. An error of the estimator becomes a
ValueError with the estimator's name. The estimator gets copies of the rows, so that one that writes into its input
(copy=False) changes nothing here.
"""

import copy
import inspect
import numbers
from typing import Any

import numpy as np

CLASSES = np.array([0, 1])


def check(estimator: Any, *, partial: bool) -> None:
    """Raise TypeError for what is no estimator."""
    if isinstance(estimator, type):
        raise TypeError(f"an estimator is an instance: pass {estimator.__name__}() for {estimator.__name__}")
    wanted = ("partial_fit" if partial else "fit", "predict")
    lacking = [name for name in wanted if not callable(getattr(estimator, name, None))]
    if lacking:
        cure = ": leave partial=True out" if lacking == ["partial_fit"] and hasattr(estimator, "fit") else ""
        raise TypeError(
            f"{title(estimator)} is no estimator to learn from rewards: it lacks {', '.join(lacking)}{cure}"
        )
    if not classifies(estimator) and _labels(estimator):
        raise TypeError(
            f"{title(estimator)} predicts labels: a classifier needs predict_proba, whose class 1 is what arms are "
            "compared by (as LogisticRegression has it, or SGDClassifier(loss='log_loss'))"
        )


def check_function(function: Any) -> None:
    """Raise TypeError for what is no function of NumPy rows."""
    if not callable(function):
        raise TypeError(f"function must be callable, X (n, d) -> (n,); got {function!r}")
    if callable(getattr(function, "forward", None)) and callable(getattr(function, "state_dict", None)):
        raise TypeError(
            f"{title(function)} is a torch module, and a function takes NumPy rows X (n, d): take "
            "models.Network(module=...), which trains it, or wrap it in a function that answers as it is, "
            "lambda X: module(torch.as_tensor(X, dtype=torch.float32)).flatten()"
        )


def classifies(estimator: Any) -> bool:
    """Whether it answers with probabilities of the classes 0 and 1."""
    return callable(getattr(estimator, "predict_proba", None))


def title(estimator: Any) -> str:
    """The name that errors give it."""
    return type(estimator).__name__


def _labels(estimator: Any) -> bool:
    """Whether it predicts labels, as classifiers of scikit-learn do."""
    if not hasattr(estimator, "get_params"):
        return False
    try:
        from sklearn.base import is_classifier
    except ImportError:
        return False
    return bool(is_classifier(estimator))


def fresh(estimator: Any, *, trained: bool = False) -> Any:
    """A copy that has learnt nothing; with trained=True one that has learnt all that this one has."""
    if not trained and hasattr(estimator, "get_params"):
        try:
            from sklearn.base import clone
        except ImportError:
            return copy.deepcopy(estimator)
        return clone(estimator)
    return copy.deepcopy(estimator)


def seeded(estimator: Any, seed: int) -> Any:
    """The estimator itself, with that seed wherever a `random_state` is None."""
    if hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
        open_ = [k for k, v in estimator.get_params().items() if k.rpartition("__")[2] == "random_state" and v is None]
        if open_:
            estimator.set_params(**dict.fromkeys(open_, seed))
    return estimator


def seed(key: int, rows: int) -> int:
    """The seed of a fit on so many rows, below 2^31."""
    return int(np.random.SeedSequence([key, rows]).generate_state(1)[0]) >> 1


def weighs(estimator: Any, *, partial: bool) -> bool:
    """Whether its fit takes sample weights."""
    rule = estimator.partial_fit if partial else estimator.fit
    try:
        return "sample_weight" in inspect.signature(rule).parameters
    except (TypeError, ValueError):
        return False


def learn(estimator: Any, X: np.ndarray, r: np.ndarray, weight: np.ndarray, *, partial: bool) -> None:
    """Fit the estimator in place: X (n, D), r, weight (n,). Rows of weight 0 are left out."""
    there = weight > 0
    X, r, weight = X[there], r[there], weight[there]  # copies: the estimator may write into them
    settings: dict[str, Any] = {} if (weight == 1).all() else {"sample_weight": weight}
    y = r.astype(np.int64) if classifies(estimator) else r
    if partial and classifies(estimator):
        settings["classes"] = CLASSES
    rule = "partial_fit" if partial else "fit"
    try:
        getattr(estimator, rule)(X, y, **settings)
    except Exception as reason:
        raise ValueError(f"{title(estimator)}.{rule} failed on {len(X)} observations: {reason}") from reason


def answer(estimator: Any, X: np.ndarray) -> np.ndarray:
    """f̂ of rows X (n, D), for a classifier the probability of class 1: (n,)."""
    if not classifies(estimator):
        return asked(estimator.predict, X, name=f"{title(estimator)}.predict")
    name = f"{title(estimator)}.predict_proba"
    p = called(estimator.predict_proba, X, name=name)
    classes = list(getattr(estimator, "classes_", CLASSES))
    if p.shape != (len(X), len(classes)) or 1 not in classes:
        raise ValueError(
            f"{name} must answer ({len(X)}, {len(classes)}) with a class 1, got {p.shape} for classes {classes}"
        )
    return finite(p[:, classes.index(1)], name=name)


def asked(function: Any, X: np.ndarray, *, name: str) -> np.ndarray:
    """function(X), (n,). Raises ValueError where the answer is not finite, or not (n,) or (n, 1)."""
    f = called(function, X, name=name)
    if f.shape not in ((len(X),), (len(X), 1)):
        raise ValueError(f"{name} must answer with one number for each of {len(X)} rows, got shape {f.shape}")
    return finite(f.reshape(-1), name=name)


def called(function: Any, X: np.ndarray, *, name: str) -> np.ndarray:
    """function(X) as float64, from a copy of X. Raises ValueError, with its name, where it raises anything."""
    try:
        f = function(X.copy())
        return _real(f.detach().cpu() if hasattr(f, "detach") else f)
    except Exception as reason:
        raise ValueError(f"{name} failed on X {X.shape}: {reason}") from reason


def _real(f: Any) -> np.ndarray:
    """f as float64. Raises ValueError for other things: text that reads as a number, complex, values behind a mask."""
    if np.ma.is_masked(f):
        raise ValueError(f"its answer hides {np.ma.count_masked(f)} values behind a mask: fill them in")
    A = np.asarray(f)
    plain = A.dtype.kind == "O" and all(isinstance(value, (numbers.Real, np.bool_)) for value in A.flat)
    if A.dtype.kind not in "biuf" and not plain:
        raise ValueError(f"its answer must be real numbers, got dtype {A.dtype}")
    return A.astype(np.float64)


def finite(f: np.ndarray, *, name: str) -> np.ndarray:
    """f (n,) itself. Raises ValueError where it is not finite."""
    if not np.isfinite(f).all():
        i = int(np.argmin(np.isfinite(f)))
        raise ValueError(
            f"{name} must answer with finite numbers, got {f[i]} at row {i} of {len(f)}: its training may have "
            "diverged (scale the features to mean 0 and sd 1, or lower its rate)"
        )
    return f

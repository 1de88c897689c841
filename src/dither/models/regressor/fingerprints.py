"""What a file says of an estimator or a function.

A file can hold neither, so the user passes it again when the file is loaded. The fingerprint in the file shows whether
that is the right one. It is the same text in every process.
"""

import hashlib
import inspect
import warnings
from typing import Any

import numpy as np

PROBES = 64  # rows that a trained estimator is asked about


def fingerprint(estimator: Any, *, trained: bool = False) -> str:
    """What a file says of an estimator: class and settings, and with trained=True a hash of what it has learnt."""
    attributes = _attributes(estimator)
    settings = estimator.get_params() if hasattr(estimator, "get_params") else _plain(attributes, learnt=False)
    text = f"{_place(type(estimator))}({', '.join(f'{k}={_said(settings[k])}' for k in sorted(settings))})"
    return text + (f" trained {_hash(_said(_plain(attributes, learnt=True)) + _answers(estimator))}" if trained else "")


def function_name(function: Any) -> str:
    """What a file says of a function: where it is defined. Of a method of an estimator it tells the estimator too."""
    owner = getattr(function, "__self__", None)
    name = _place(function if hasattr(function, "__qualname__") else type(function))
    fitted = owner is not None and not inspect.ismodule(owner) and hasattr(owner, "fit")
    return f"{name} of {fingerprint(owner, trained=True)}" if fitted else name


def _answers(estimator: Any) -> str:
    """The answers of a trained estimator to `PROBES` rows, to six digits; "" where its number of columns is not known.

    The answers are needed because trees and pipelines do not show what they learnt in their attributes.
    """
    width = getattr(estimator, "n_features_in_", None)
    if width is None:
        return ""
    rng = np.random.default_rng(0)
    size = np.concatenate([np.zeros((PROBES // 2, width)), rng.uniform(-3, 6, size=(PROBES // 2, width))])
    X = rng.standard_normal((PROBES, width)) * 10**size  # of all sizes: a tree splits where its data lay
    rule = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = np.asarray(rule(X))
    except Exception as reason:  # the error is its answer
        return type(reason).__name__
    if f.dtype.kind != "f":
        return _said(f)
    most = np.max(np.abs(f), initial=0.0, where=np.isfinite(f))  # digits far below it differ between machines
    return f"{most:.6g} {_said(np.round(f / (most or 1.0), 6).astype(np.float64) + 0.0)}"


def _attributes(thing: Any) -> dict[str, Any]:
    """The attributes of a thing, in its __dict__ and in the __slots__ of its classes."""
    slots = [getattr(kind, "__slots__", ()) for kind in type(thing).__mro__]
    names = [name for names in slots for name in ((names,) if isinstance(names, str) else names)]
    held = {name: getattr(thing, name) for name in names if hasattr(thing, name) and name != "__dict__"}
    return held | getattr(thing, "__dict__", {})


def _plain(attributes: dict[str, Any], *, learnt: bool) -> dict[str, Any]:
    """The public attributes that fitting has set, or with learnt=False the others: by custom the former end in _."""
    return {k: v for k, v in attributes.items() if k.endswith("_") == learnt and not k.startswith("_")}


def _said(value: Any) -> str:
    """A setting as text that is the same in every process, without addresses."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return repr(value)
    if isinstance(value, np.ndarray):
        content = _said(value.tolist()).encode() if value.dtype.kind == "O" else value.tobytes()
        return f"array{value.shape} {value.dtype} {_hash(content)}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_said(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_said(v) for v in value) + "]"
    if hasattr(value, "get_params"):
        return fingerprint(value)
    return _place(value if hasattr(value, "__qualname__") else type(value))


def _place(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', type(thing).__name__)}"


def _hash(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]

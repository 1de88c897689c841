"""How a regressor sees K slots that share a context x (d,).

    "disjoint"   arm k is the Kd-vector (0; ..; x; ..; 0), with x in the k-th place (paper, Appendix H.1.2)
    "index"      arm k is x followed by K columns that say which arm it is: (x; 0, .., 1, .., 0)

With "disjoint" a linear model has coefficients for each arm, and a tree must infer the arm from the zeros. With "index"
all arms share the coefficients of x and differ by a constant, and a tree can split on the arm.
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from dither.base import errors

NUMBERS_A_CALL = 2**24  # that an estimator is given at once, at most: 128 MiB
Encoding = Literal["disjoint", "index"]
ENCODINGS = get_args(Encoding)


def check(slots: int | None, encode: str) -> None:
    """Raise ValueError or LookupError for settings that make no sense."""
    errors.at_least("slots", slots, 1, or_none=True)
    errors.among("encode", encode, ENCODINGS)


def shared(X: np.ndarray, slots: int | None) -> np.ndarray:
    """One row for each arm, (..., K, d): X itself, or with slots the context (..., d) K times over."""
    if slots is None:
        return X
    return np.broadcast_to(X[..., None, :], (*X.shape[:-1], slots, X.shape[-1]))


def wide(X: np.ndarray, *, slots: int | None, encode: str) -> np.ndarray:
    """The rows as the regressor sees them: X (..., K, d), one row for each arm -> (..., K, D)."""
    if slots is None:
        return X
    if encode == "index":
        which = np.broadcast_to(np.eye(slots), (*X.shape[:-1], slots))
        return np.concatenate([X, which], axis=-1)
    d, each = X.shape[-1], np.arange(slots)
    full = np.zeros((*X.shape[:-1], slots, d))
    full[..., each, each, :] = X
    return full.reshape(*X.shape[:-1], slots * d)


def of_arms(X: np.ndarray, arm: np.ndarray | None, *, slots: int | None, encode: str) -> np.ndarray:
    """The same for rows X (n, d) that were shown in the slots arm (n,): (n, D)."""
    if slots is None or arm is None:
        return X
    n, d = X.shape
    if encode == "index":
        return np.concatenate([X, np.eye(slots)[arm]], axis=-1)
    full = np.zeros((n, slots, d))
    full[np.arange(n), arm] = X
    return full.reshape(n, slots * d)


def moved(X: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The Kd-vectors of a context X (..., d), moved in all slots by step (..., K, K, d): (..., K, K d)."""
    slots, d = step.shape[-2:]
    full = X[..., None, None, :] * np.eye(slots)[:, :, None] + step
    return full.reshape(*full.shape[:-2], slots * d)


def asked(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, *, slots: int | None, encode: str) -> np.ndarray:
    """The answers of function, (n, D) -> (n,), in as few calls as memory allows: X (..., K, d) -> (..., K)."""
    *lead, K, d = X.shape
    flat = X.reshape(-1, K, d)
    D = wide(flat[:1], slots=slots, encode=encode).shape[-1]
    step = max(1, NUMBERS_A_CALL // (K * D))
    blocks = (wide(flat[i : i + step], slots=slots, encode=encode) for i in range(0, len(flat), step))
    return np.concatenate([function(block.reshape(-1, D)) for block in blocks]).reshape(*lead, K)

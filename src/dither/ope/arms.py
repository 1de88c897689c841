"""The rows of a log with the features of all arms on offer, checked once: what learning from a log starts from."""

from typing import Any, NamedTuple

import numpy as np

from dither import inputs
from dither.ope import agree
from dither.ope.rows import row_weights


class ArmLog(NamedTuple):
    """n decisions among K arms of d features."""

    r: np.ndarray  # (n,) rewards
    a: np.ndarray  # (n,) int, arms shown
    p: np.ndarray  # (n,) their probabilities
    X: np.ndarray  # (n, K, d), 0 for arms not on offer
    mask: np.ndarray  # (n, K) True: on offer
    s: np.ndarray | None = None  # (n,) how many rows of the traffic each stands for; None: 1

    @property
    def x(self) -> np.ndarray:
        """The features of the arms shown, (n, d)."""
        return self.X[np.arange(len(self.a)), self.a]

    def standing(self) -> "ArmLog":
        """The rows that stand for any: those of weight 0 do not."""
        return self if self.s is None or self.s.all() else self.part(self.s > 0)

    def part(self, rows: Any) -> "ArmLog":
        """Some of the rows."""
        s = None if self.s is None else self.s[rows]
        return ArmLog(self.r[rows], self.a[rows], self.p[rows], self.X[rows], self.mask[rows], s)


def read(r: Any, a: Any, p: Any, X: Any, mask: Any, weight: Any = None) -> ArmLog:
    """Check the arrays: r, a, p, weight (n,), X (n, K, d), mask (n, K); of mask and weight, None too.

    Raises ValueError that names the argument, the first row that breaks a rule and their number.
    """
    agree.rows(r=r, a=a, p=p, weight=weight)
    X = inputs.numbers(X, name="X")
    if X.ndim != 3 or 0 in X.shape:
        raise ValueError(f"X must be (n, K, d): the arms on offer in each row; got {X.shape}")
    n, K = X.shape[:2]
    offered = np.ones((n, K), dtype=bool) if mask is None else inputs.offered(mask, shape=(n, K))
    inputs.finite(X, name="X", mask=offered)
    X = np.where(offered[..., None], X, 0.0)
    r, p = inputs.numbers(r, name="r"), inputs.numbers(p, name="p")
    for name, array in (("r", r), ("p", p)):
        if array.shape != (n,):
            raise ValueError(f"{name} must be ({n},), one for each row of X; got {array.shape}")
    inputs.finite(r, name="r")
    a = inputs.whole(a, name="a", below=K, shape=(n,))
    bad = ~((p > 0) & (p <= 1 + 1e-6))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"p must lie in (0, 1], as the arm was shown; got {p[row]} at row {row} ({int(bad.sum())} such rows): "
            f"log the probability of each decision, or leave these rows out and say so"
        )
    off = ~offered[np.arange(n), a]
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(f"row {row} shows arm {a[row]}, which mask rules out ({int(off.sum())} such rows)")
    return ArmLog(r, a, p, X, offered, row_weights(weight, n))

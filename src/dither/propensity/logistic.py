"""Choice probabilities where arms are scored by curves v_i μ(m_i + z w_i) of the logit link, with one z for all arms.

Two such curves meet at most twice. For p = w_j, q = w_i and y = e^{-z},

    v_i μ_i = v_j μ_j   <=>   v_i - v_j + v_i e^{-m_j} y^p - v_j e^{-m_i} y^q = 0,

whose left-hand side has one stationary point in y > 0, at y^(q-p) = v_i e^{-m_j} p/(v_j e^{-m_i} q). On either side of
it, bisection finds the meeting. Between two meetings next to each other, of any pair, one arm is the highest, or some
tie.
"""

from typing import Any

import numpy as np
from scipy import special

from dither import arrays, noise

MOST = 128  # arms: all pairs are looked at, and the time grows with the cube of their number
REACH = 700.0  # |z| within which meetings are looked for; beyond it the curves are taken as they are there
HALVINGS = 64  # of an interval of length 2 REACH: then no float64 lies between its ends near 1


def curves(m: np.ndarray, w: np.ndarray, v: np.ndarray, *, law: Any) -> np.ndarray:
    """The probabilities (K,) of the arms of one request: m, w >= 0 and v > 0 (K,); law of z, continuous.

    Arms that rounding cannot tell apart share what they win together.
    """
    meetings = np.unique(_meetings(m, w, v))
    low, high = np.concatenate([[-np.inf], meetings]), np.concatenate([meetings, [np.inf]])
    mass = noise.mass(law, low, high)
    seen = mass > 0
    s, error = scores(m, w, v, _inside(low[seen], high[seen])[:, None])
    return mass[seen] @ arrays.share(s, error=error)


def scores(m: Any, w: Any, v: Any, z: Any) -> tuple[Any, Any]:
    """log(v/max v) + log μ(m + z w), which has the order of the curves, and its rounding errors: (..., K) each.

    Where μ is near 1, its logarithm is -e^{-(m + zw)}, and has an error that is as small.
    """
    x, price = m + z * w, np.log(v / np.max(v, axis=-1, keepdims=True))
    logs = -np.logaddexp(0.0, -x)
    error = arrays.RELATIVE * (special.expit(-x) * (abs(m) + abs(z) * w) + abs(price) + abs(logs))
    return price + logs, error


def _inside(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A point of each interval, as near to 0 as may be: far from it all μ may be 1."""
    far = np.minimum((high - low) / 2, 1.0)
    return np.clip(0.0, low + far, high - far)


def _meetings(m: np.ndarray, w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Where two curves meet, for all pairs."""
    i, j = np.triu_indices(len(m), 1)
    still, end = _stationary(m, w, v, i, j), np.full(len(i), REACH)
    low, high = np.concatenate([-end, still]), np.concatenate([still, end])
    return _between(low, high, m, w, v, np.concatenate([i, i]), np.concatenate([j, j]))


def _stationary(m: np.ndarray, w: np.ndarray, v: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The z at which the left-hand side of the equation has its stationary point; an end where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(v[i]) - m[j] + np.log(w[j]) - (np.log(v[j]) - m[i] + np.log(w[i]))
        z = -ratio / (w[i] - w[j])
    return np.clip(np.nan_to_num(z, nan=REACH, posinf=REACH, neginf=-REACH), -REACH, REACH)


def _between(low: np.ndarray, high: np.ndarray, m, w, v, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The meetings of those pairs whose order is another at `low` than at `high`."""

    def above(z: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return _log(m[i], w[i], v[i], z) > _log(m[j], w[j], v[j], z)

    first = above(low, i, j)
    meet = first != above(high, i, j)
    low, high, i, j, first = low[meet], high[meet], i[meet], j[meet], first[meet]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = above(middle, i, j) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def _log(m: np.ndarray, w: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
    """log v + log μ(m + z w), one by one."""
    return np.log(v) - np.logaddexp(0.0, -(m + z * w))

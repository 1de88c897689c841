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

from dither import noise
from dither.base import arrays

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


def scores(m: Any, w: Any, v: Any, z: Any, *, mask: Any = None) -> tuple[Any, Any]:
    """How far each curve lies below the highest one, and the rounding errors of that: (..., K) each; mask (..., K).

    Curves of one value have the order of x = m + z w, so x itself is compared: where μ is near 1, nothing of its order
    is left in μ or in its logarithm. Curves of other values are compared by log v + log μ, where
    log μ(x) = -log(1 + e^{-x}).
    """
    x, price = m + z * w, np.broadcast_to(np.log(v), np.broadcast_shapes(np.shape(v), np.shape(m)))
    x, price = np.broadcast_arrays(x, price)
    logs = -np.logaddexp(0.0, -x)
    whole = price + logs if mask is None else np.where(mask, price + logs, -np.inf)
    like = price == _at(price, np.argmax(whole, axis=-1))  # the curves of the value that wins
    best = np.argmax(np.where(like if mask is None else like & mask, x, -np.inf), axis=-1)
    size = abs(m) + abs(z) * w
    apart = price - _at(price, best)
    s = np.where(like, x - _at(x, best), apart + (logs - _at(logs, best)))
    far = special.expit(-x) * size + abs(logs)  # errors of log μ, which become small where μ is near 1
    error = np.where(like, size + _at(size, best), far + abs(apart))
    np.put_along_axis(error, best[..., None], _at(far, best), axis=-1)
    return s, arrays.RELATIVE * error


def _at(values: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """The value of one arm, (..., 1)."""
    return np.take_along_axis(values, arm[..., None], axis=-1)


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
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.log(v[i]) - m[j] + np.log(w[j]) - (np.log(v[j]) - m[i] + np.log(w[i]))
        z = -ratio / (w[i] - w[j])
    return np.clip(np.nan_to_num(z, nan=REACH, posinf=REACH, neginf=-REACH), -REACH, REACH)


def _between(low: np.ndarray, high: np.ndarray, m, w, v, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The meetings of those pairs whose order is another at `low` than at `high`."""

    def above(z: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        one, other = m[i] + z * w[i], m[j] + z * w[j]
        logs = price[i] - np.logaddexp(0.0, -one) > price[j] - np.logaddexp(0.0, -other)
        return np.where(price[i] == price[j], one > other, logs)

    price = np.log(v)
    first = above(low, i, j)
    meet = first != above(high, i, j)
    low, high, i, j, first = low[meet], high[meet], i[meet], j[meet], first[meet]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = above(middle, i, j) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2

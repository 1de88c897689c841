"""A z_i of its own for each arm: P(i) = P(m_i + w_i z_i is the highest), by quadrature or by sums of products.

    continuous z   P(i) = ∫ f(z) Π_{j≠i} F((m_i - m_j + w_i z)/w_j) dz, over the winning score, to 1e-9
    points         P(i) = Σ_v f_i(v) ∫_0^1 Π_{j≠i} (F_j(v-) + t f_j(v)) dt, over the values v of the winning score

where f_j(v) = P(s_j = v) and F_j(v-) = P(s_j < v). The integral shares the win among the arms that tie at v, since
1/(1+T) = ∫ t^T dt. The integrand is a polynomial, so Gauss and Legendre's rule makes no error.
"""

import functools
import warnings
from typing import Any

import numpy as np

from dither import noise
from dither.base import arrays
from dither.propensity import singular
from dither.propensity.settled import Slack

MANY = 8  # with more arms, common panels cost less than panels for each arm
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def drawn_apart(m: Any, w: Any, z: Any, *, u: Any, law: Any, slack: Slack | None = None, mask: Any = None) -> Any:
    """The arms that are highest after each has moved by its own z, drawn from the law; u settles ties.

    m, w, z, mask (..., K), u (...), of any array library -> (...) integers
    """
    if isinstance(law, noise.Points):
        return arrays.nth(tied_apart(m, w, z, law=law, slack=slack, mask=mask), u)
    return arrays.argmax(_moved(m, w, z, slack=slack, mask=mask), u=u, error=0.0, mask=mask)


def tied_apart(m: Any, w: Any, z: Any, *, law: Any, slack: Slack | None = None, mask: Any = None) -> Any:
    """Which arms tie for the highest there: (..., K) bool.

    Arms that move by a continuous z never tie, and arms that do not move tie as means do. With finitely many values of
    z the levels of all scores that can be drawn decide, those of arms and values that were not drawn among them.
    """
    if not isinstance(law, noise.Points):
        return arrays.top(_moved(m, w, z, slack=slack, mask=mask), error=0.0, mask=mask)
    s, shape = m + z * w, np.broadcast_shapes(m.shape, np.shape(z), np.shape(mask))
    on = np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape)
    s = np.where(on, s, -np.inf)
    best = np.max(s, axis=-1, keepdims=True)
    most = arrays.largest(_errors(m, w, law, slack, mask=mask))
    tied = s == best
    near = np.count_nonzero(s >= best - 2 * most * len(law.points) * shape[-1], axis=-1) > 1
    parts = tuple(np.broadcast_to(part, shape) for part in (m, w, *_apart(slack, m.shape)))
    lines, first = None, s
    for row in np.argwhere(near):
        at = tuple(row)
        arms = np.flatnonzero(on[at])
        of_request = np.array([part[at][arms] for part in parts])
        if lines is None or not np.array_equal(of_request, lines):  # many draws of one request are one request
            lines = of_request
            of_row = None if slack is None else Slack(of_request[2], 1.0, of_request[3])
            first = _levels(*_scores(of_request[0], of_request[1], law, of_row))[0]
        tied[at] = on[at] & (s[at] >= first[np.searchsorted(first, best[at], side="right") - 1])
    return tied


def _apart(slack: Slack | None, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """The errors of means and widths as arrays of that shape; none where they are not known."""
    return () if slack is None else tuple(np.broadcast_to(part, shape) for part in (slack.m, slack.omega))


def _errors(m: np.ndarray, w: np.ndarray, law: noise.Points, slack: Slack | None, *, mask: Any) -> np.ndarray:
    """At least the errors of all scores that can be drawn, (..., K)."""
    if slack is not None:
        return slack.at(law.reach, m, w)
    size = abs(m) + law.reach * w
    size = size if mask is None else np.where(mask, size, 0.0)
    return arrays.RELATIVE * size + arrays.ROUNDING * np.max(size, axis=-1, keepdims=True)


def _moved(m: Any, w: Any, z: Any, *, slack: Slack | None, mask: Any) -> Any:
    """The scores of arms that move by a continuous z, and one score for all that do not move and tie for the best."""
    xp = arrays.namespace(m)
    offered = m if mask is None else xp.where(mask, m, -xp.inf)
    m = m - xp.max(offered, axis=-1, keepdims=True)  # exact near the highest, so that z w absorbs no difference there
    size = xp.abs(m) if mask is None else xp.where(mask, xp.abs(m), 0.0)
    still = w <= arrays.ROUNDING * xp.max(size, axis=-1, keepdims=True)
    s = m + z * w
    if arrays.some(still):  # among arms that do not move, those that tie for the best get one score, the others -inf
        idle = still if mask is None else still & mask
        any_still = xp.any(idle, axis=-1, keepdims=True)
        among = xp.where(any_still, idle, xp.ones_like(idle))
        tied = idle & arrays.top(m, error=None if slack is None else slack.m, mask=among)
        height = xp.max(xp.where(tied, m, -xp.inf), axis=-1, keepdims=True)
        s = xp.where(tied, height, xp.where(idle, -xp.inf, s))
    return s


def uncoupled(
    m: np.ndarray,
    w: np.ndarray,
    *,
    law: noise.Law | noise.Points,
    slack: Slack | None = None,
    mask: np.ndarray | None = None,
    log: bool = False,
) -> np.ndarray:
    """The probabilities of all arms when each has a z of its own. (..., K) -> (..., K)

    Under a continuous law they are good to 1e-9. Under finitely many values they are sums of products.
    """
    rule: Any = _of_points if isinstance(law, noise.Points) else _of_density
    p = np.zeros(m.shape)
    whole = None if slack is None else Slack(*(np.broadcast_to(e, m.shape) for e in (slack.m, 1.0, slack.omega)))
    for row in np.ndindex(m.shape[:-1]):
        offered = slice(None) if mask is None else np.flatnonzero(mask[row])
        of_row = None if whole is None else Slack(*(part[row][offered] for part in whole))
        p[row][offered] = rule(m[row][offered], w[row][offered], law, of_row)
    return arrays.ln(p) if log else p


def _of_density(m: np.ndarray, w: np.ndarray, law: noise.Law, slack: Slack | None) -> np.ndarray:
    error = None if slack is None else slack.m
    m = m - np.max(m)  # only differences matter, and a common height would cost their digits
    fixed = w <= arrays.ROUNDING * np.max(np.abs(m))  # arms that do not move: only the best of them matters
    if np.all(fixed):
        return arrays.share(m, error=error)
    p = np.zeros(m.shape)
    floor = np.max(m[fixed]) if np.any(fixed) else -np.inf
    moving, M, W = np.flatnonzero(~fixed), m[~fixed], w[~fixed]
    if np.any(fixed):
        best = fixed & arrays.top(m, error=error, mask=fixed)
        p[best] = np.prod(law.cdf((floor - M) / W)) / np.sum(best)
    # By the winning score s: arm i wins at s with density f((s - m_i)/w_i)/w_i Π_{j≠i} F((s - m_j)/w_j). Panels end
    # where some arm's z passes one of the law's panel ends, so that inside a panel the integrand is smooth.
    low, high = max(floor, np.max(M + W * law.panels[0])), np.max(M + W * law.panels[-1])
    if high > low:
        able = M + W * law.panels[-1] > low
        moving, M, W = moving[able], M[able], W[able]
        ends = np.unique(np.clip((M[:, None] + W[:, None] * np.array(law.panels)).ravel(), low, high))
        if len(ends) <= MANY * len(law.panels):
            s, weight = _inside(ends)  # few arms, or many that are alike
        elif isinstance(law, noise.BallMarginal) and not law.analytic:
            s, weight = singular.nodes(M, W, law, low, high)
        elif getattr(law, "analytic", False):
            s, weight = _inside(_even(M, W, law, singular.beneath(M, W, law, low, high), high))
        else:
            s, weight = _inside(ends)
        size, last = max(1, 2**17 // len(M)), M + W * law.panels[-1]  # nodes at once: 1 MB an array
        for k in range(0, len(s), size):
            on = last > s[k]  # s is in order, so the others have passed
            part = slice(k, k + size)
            p[moving[on]] += weight[part] @ _winning(s[part], M[on], W[on], law)
    total = np.sum(p)
    if abs(total - 1) > 1e-8:
        warnings.warn(
            f"uncoupled probabilities are good to {abs(total - 1):.0e} only: the widths span too many powers of 10",
            RuntimeWarning,
            stacklevel=2,
        )
    return p / total


def _inside(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (N,) of the panels between these ends."""
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:, None] + ends[:-1, None]) / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def _even(M: np.ndarray, W: np.ndarray, law: Any, low: float, high: float) -> np.ndarray:
    """Panel ends from low to high, for analytic laws. A panel is as long as that of the narrowest arm that moves in it.

    The panel ends of all arms would be K times as many, and only their spacing matters.
    """
    last, step = M + W * law.panels[-1], law.step
    ends = [low]
    while ends[-1] < high:  # below `low` some arm always wins: every arm has begun to move there
        ends.append(min(ends[-1] + step * np.min(W[ends[-1] < last]), high))
    return np.array(ends)


def _winning(s: np.ndarray, M: np.ndarray, W: np.ndarray, law: noise.Law) -> np.ndarray:
    """The density with which each arm wins at the scores s: s (N,), M, W (K,) -> (N, K)."""
    z = (s[:, None] - M) / W
    return law.pdf(z) / W * _others(law.cdf(z))


def _others(F: np.ndarray) -> np.ndarray:
    """Π_{j≠i} F_j for each i along the last axis, without dividing: (..., K) -> (..., K)."""
    one = np.ones((*F.shape[:-1], 1))
    below = np.cumprod(np.concatenate([one, F[..., :-1]], axis=-1), axis=-1)
    above = np.cumprod(np.concatenate([one, F[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return below * above


def _of_points(m: np.ndarray, w: np.ndarray, law: noise.Points, slack: Slack | None) -> np.ndarray:
    weights = np.array(law.weights) / np.sum(law.weights)
    s, error = _scores(m, w, law, slack)
    order = np.argsort(s, axis=0)
    s, f = np.take_along_axis(s, order, axis=0), weights[weights > 0][order]
    F = np.concatenate([np.zeros((1, len(m))), np.cumsum(f, axis=0)])
    F[-1] = 1.0
    first, last = _levels(s, np.take_along_axis(error, order, axis=0))
    enough = last >= np.max(s[0])  # the least score of the arm whose least is best: no lower one wins
    first, last = first[enough], last[enough]
    p = np.zeros(len(m))
    size = max(1, 2**20 // len(m))
    for k in range(0, len(first), size):
        a, b = first[k : k + size], last[k : k + size]
        columns = [(np.searchsorted(scores, a), np.searchsorted(scores, b, side="right")) for scores in s.T]
        before = np.array([F[low, j] for j, (low, _) in enumerate(columns)]).T
        at = np.array([F[high, j] - F[low, j] for j, (low, high) in enumerate(columns)]).T
        crowd = np.count_nonzero(at, axis=1)
        alone = crowd == 1
        p += np.sum(at[alone] * _others(before[alone]), axis=0)
        for level in np.flatnonzero(crowd > 1):
            t, weight = _on_unit(int(crowd[level]) // 2 + 1)
            p += weight @ (at[level] * _others(before[level] + t * at[level]))
    return p / np.sum(p)


def _scores(m: np.ndarray, w: np.ndarray, law: noise.Points, slack: Slack | None) -> tuple[np.ndarray, np.ndarray]:
    """All scores of one request that can be drawn, and their errors: (J, K) each."""
    z = law.column[np.array(law.weights) > 0]
    s = m + z * w
    return s, arrays.spread(s.ravel()).reshape(s.shape) if slack is None else slack.at(z, m, w)


@functools.lru_cache(maxsize=64)
def _on_unit(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss and Legendre's nodes (n, 1) and weights (n,) on [0, 1]."""
    t, weight = np.polynomial.legendre.leggauss(n)
    return (t[:, None] + 1) / 2, weight / 2


def _levels(s: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores in order, where scores without a gap between them are one level. -> its least, its largest score"""
    order = np.argsort(s - error, axis=None)
    low, high = (s - error).ravel()[order], np.maximum.accumulate((s + error).ravel()[order])
    start = np.flatnonzero(np.r_[True, low[1:] > high[:-1]])
    v = s.ravel()[order]
    return np.minimum.reduceat(v, start), np.maximum.reduceat(v, start)

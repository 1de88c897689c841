"""One z for all arms: choice and choice probabilities from the intervals of z on which a line m + z w is the highest.

The lines are those that `settled` leaves: lines that rounding cannot tell apart are one line. The argmax of m + z w
only proposes an arm, because in floating point z w may absorb m. The interval that gives the probability confirms the
arm.
"""

import math
from typing import Any

import numpy as np

from dither import noise
from dither.base import arrays, errors
from dither.propensity import settled, upper
from dither.propensity.settled import Slack

APART = 1e6  # widths at a corner that differ by fewer errors than this are compared with all others
CLEAR = 1e-6  # a corner is good to 1e-9 where the two widths differ by this share of a width


def decide(
    m: np.ndarray, w: np.ndarray, z: float, *, law: noise.Law, slack: Slack | None = None
) -> tuple[int, float] | None:
    """The arm that is highest at z and its probability, for one request, in as few passes as will do.

    At z the arm leads j by gap_j, and j gains w_j - w_arm on it for each unit of z. So the arm's interval ends where
    the quickest line on either side has closed its gap. m, w (K,)
    None where rounding may matter; then `confirm` must decide. That is where another score is so near that settling may
    move it to the top, where another width is near the arm's, or where a corner may move because another width is near
    that of the line beyond the corner.
    """
    slack = slack or settled.rounded(m, w)
    s = m + z * w
    arm = int(s.argmax())
    gain, gap = w - w[arm], s[arm] - s
    gap[arm] = math.inf
    reach, least = slack.reach(m, w, z), max(4 * len(m) * slack.share(), CLEAR) * w.item(arm)
    apart = np.abs(gain)
    apart[arm] = math.inf
    # `item` at `argmin` is quicker than `min`, which goes through Python.
    if not gap.item(gap.argmin()) > reach or apart.item(apart.argmin()) <= least:
        return None
    pace = gain / gap
    i, j = int(pace.argmin()), int(pace.argmax())
    # The corners are computed from m and w themselves, because s is rounded and has lost some of their digits.
    height, slower, faster = m.item(arm), gain.item(i), gain.item(j)
    near = max(APART * reach / (len(m) * (1 + abs(z))), CLEAR * w.item(arm))
    if (-near < slower < 0 or 0 < faster < near) and not _apart(w, (i, j), slack):
        return None
    low = (height - m.item(i)) / slower if slower < 0 else -math.inf
    high = (height - m.item(j)) / faster if faster > 0 else math.inf
    return (arm, law.mass(low, high)) if low < z < high else None


def alone(m: np.ndarray, w: np.ndarray, arm: int, *, law: noise.Law, slack: Slack | None = None) -> float | None:
    """The probability of one arm of one request, m, w (K,). None: lines may be one, so `chosen` must tell."""
    slack = slack or settled.rounded(m, w)
    if not _apart(w, (arm,), slack):
        return None
    rise, steeper = m[arm] - m, w - w[arm]
    steeper[arm] = math.nan
    z = rise / steeper
    up, down = np.where(steeper > 0, z, math.inf), np.where(steeper < 0, z, -math.inf)
    i, j = int(down.argmax()), int(up.argmin())
    if not _apart(w, tuple(k for k, z in ((i, down[i]), (j, up[j])) if math.isfinite(z)), slack):
        return None
    return law.mass(float(down[i]), float(up[j]))


def confirm(
    m: np.ndarray, w: np.ndarray, z: float, *, law: noise.Law, u: float, slack: Slack | None = None
) -> tuple[int, float]:
    """What `decide` answers, by the general way: the settled line whose interval has z, and its share of the mass."""
    slack = settled.rows(slack or settled.rounded(m, w), slice(None), m.shape)
    sets = settled.settle(m[None], w[None], slack=slack)
    hull = upper.corners(sets.m, sets.w)
    piece = int(np.searchsorted(hull.low, z, side="right")) - 1
    tied = np.flatnonzero(sets.of[0] == sets.of[0, hull.arm[piece]])
    p = law.mass(hull.low.item(piece), hull.high.item(piece)) / len(tied)
    return tied.item(int(u * len(tied))), p


def _apart(w: np.ndarray, arms: tuple[int, ...], slack: Slack) -> bool:
    """Whether all other widths are far from those of some arms: none is joined with them, and none blurs a corner."""
    least = max(4 * len(w) * slack.share(), CLEAR)
    return all(np.count_nonzero(np.abs(w - w[i]) <= least * w[i]) == 1 for i in set(arms))


def drawn(m: Any, w: Any, z: Any, *, u: Any, slack: Slack | None = None, mask: Any = None, points: bool = False) -> Any:
    """The arms that are highest at z. Where several lines are one, the uniform u picks the arm.

    m, w, mask (..., K), z, u (...), of any array library; points: z has finitely many values -> (...) integers
    The scores decide most requests; the intervals of the settled lines (points: their scores) decide the others.
    """
    xp, shape = arrays.namespace(m), m.shape
    slack = slack or settled.rounded(m, w, mask)
    arm, unsure = _leading(m, w, z, slack=slack, mask=mask)
    if not unsure.any():
        return arm
    some, flat = np.flatnonzero(unsure), (-1, shape[-1])
    m, w = (arrays.numpy(part).reshape(flat)[some] for part in (m, w))
    offered = None if mask is None else np.broadcast_to(arrays.numpy(mask), shape).reshape(flat)[some]
    z, u = (arrays.numpy(part).reshape(-1)[some] for part in (z, u))
    slack = settled.rows(slack, some, shape)
    sets = settled.settle(m, w, slack=slack, mask=offered)
    arms = arrays.numpy(arm).reshape(-1).copy()
    arms[some] = arrays.nth(settled.top(sets, z, slack=slack) if points else highest(sets, z), u)
    return xp.asarray(arms.reshape(shape[:-1]), device=arrays.device(arm))


def _leading(m: Any, w: Any, z: Any, *, slack: Slack, mask: Any) -> tuple[Any, np.ndarray]:
    """The arms of the highest scores (...), and in which requests (B,) rounding may have put another one first."""
    xp, K = arrays.namespace(m), m.shape[-1]
    s = m + z[..., None] * w
    offered = s if mask is None else xp.where(mask, s, -xp.inf)
    arm = xp.argmax(offered, axis=-1)
    size, wide = xp.abs(z), xp.max(w, axis=-1)
    tall = _largest(slack.rho) * wide if slack.raw is w else _largest(slack.m)
    reach = 4 * K * (tall + size * wide * _largest(slack.omega))
    reach = reach + 8 * settled.UNIT * (xp.max(xp.abs(m), axis=-1) + size * wide)
    sure = offered < (arrays.pick(offered, arm, rank=0) - reach)[..., None]
    return arm, arrays.numpy(xp.count_nonzero(sure, axis=-1)).reshape(-1) < K - 1


def shared_at(m: np.ndarray, w: np.ndarray, z: Any, *, slack: Slack | None = None, mask: Any = None) -> np.ndarray:
    """The probabilities with which `drawn` answers at one of finitely many z (...). m, w, mask (..., K) -> (..., K)"""
    slack, shape = slack or settled.rounded(m, w, mask), m.shape
    z = np.broadcast_to(np.asarray(z, dtype=float), shape[:-1])
    arm, unsure = _leading(m, w, z, slack=slack, mask=mask)
    share, flat = np.zeros((math.prod(shape[:-1]), shape[-1])), (-1, shape[-1])
    share[np.arange(len(share)), np.reshape(arm, -1)] = 1.0
    some = np.flatnonzero(unsure)
    if len(some):
        offered = None if mask is None else np.broadcast_to(mask, shape).reshape(flat)[some]
        of_some = settled.rows(slack, some, shape)
        sets = settled.settle(m.reshape(flat)[some], w.reshape(flat)[some], slack=of_some, mask=offered)
        tied = settled.top(sets, z.reshape(-1)[some], slack=of_some)
        share[some] = tied / np.sum(tied, axis=-1, keepdims=True)
    return share.reshape(shape)


def _largest(error: Any) -> Any:
    """The largest error of each request: a number, or (...)."""
    return arrays.namespace(error).max(error, axis=-1) if getattr(error, "ndim", 0) else error


def highest(sets: settled.Sets, z: np.ndarray, left: np.ndarray | None = None) -> np.ndarray:
    """The set of the arms left (B, K) whose interval contains z (B,): which of them, (B, K) bool."""
    left = sets.of >= 0 if left is None else left
    hull = upper.corners(sets.m, sets.w, mask=left)
    at = z[hull.row]
    here = (hull.low <= at) & (at < hull.high)
    row, arm = hull.row[here], hull.arm[here]
    best = np.full(len(z), -2)
    best[row] = sets.of[row, arm]
    return left & (sets.of == best[:, None])


def chosen(
    m: np.ndarray,
    w: np.ndarray,
    arm: np.ndarray,
    *,
    law: noise.Law,
    slack: Slack | None = None,
    mask: np.ndarray | None = None,
    log: bool = False,
) -> np.ndarray:
    """The probability of `arm` (...) under a continuous z. m, w (..., K), mask (..., K) -> (...)"""
    slack = slack or settled.rounded(m, w, mask)
    rise, steeper = against(m, w, arm)
    low, high = between(rise, steeper, rivals=True if mask is None else mask)
    p = noise.log_mass(law, low, high) if log else noise.mass(law, low, high)
    flat = (-1, m.shape[-1])
    offered = None if mask is None else np.broadcast_to(mask, m.shape).reshape(flat)
    wary = settled.rows(slack, slice(None), m.shape)
    wary = wary._replace(omega=np.maximum(wary.omega, CLEAR))
    crowded = settled.crowded(w.reshape(flat), slack=wary, mask=offered)
    if crowded.any():  # some lines may be one or meet in a blurred corner: the envelope of the settled lines tells
        every = envelope(m, w, law=law, slack=slack, mask=mask, log=log)
        p = np.where(crowded.reshape(m.shape[:-1]), arrays.pick(every, arm, rank=0), p)
    return p


def against(m: np.ndarray, w: np.ndarray, arm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much the line of `arm` (...) is higher than each at z = 0, and by how much each is steeper: (..., K)."""
    return arrays.pick(m, arm, rank=0)[..., None] - m, w - arrays.pick(w, arm, rank=0)[..., None]


def between(rise: np.ndarray, steeper: np.ndarray, *, rivals: Any) -> tuple[np.ndarray, np.ndarray]:
    """Between which z a line is above its rivals, (..., K) bool: it is where z * steeper <= rise. -> low, high (...)"""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = rise / steeper
    high = np.min(z, axis=-1, where=rivals & (steeper > 0), initial=np.inf)
    return np.max(z, axis=-1, where=rivals & (steeper < 0), initial=-np.inf), high


def envelope(
    m: np.ndarray,
    w: np.ndarray,
    *,
    law: noise.Law,
    slack: Slack | None = None,
    mask: np.ndarray | None = None,
    log: bool = False,
) -> np.ndarray:
    """The probabilities of all arms under a continuous z. m, w (..., K), mask (..., K) -> (..., K)"""
    shape, K = m.shape, m.shape[-1]
    if not m.size:
        return np.zeros(shape)
    slack = settled.rows(slack or settled.rounded(m, w, mask), slice(None), shape)
    m, w = np.reshape(m, (-1, K)), np.reshape(w, (-1, K))
    mask = None if mask is None else np.reshape(np.broadcast_to(mask, shape), (-1, K))
    if not (np.isfinite(m).all() and np.isfinite(w).all()):
        raise errors.not_finite("means and widths")
    some = np.flatnonzero(settled.crowded(w, slack=slack, mask=mask))
    if len(some):
        offered = None if mask is None else mask[some]
        sets = settled.settle(m[some], w[some], slack=settled.rows(slack, some, m.shape), mask=offered)
        m, w = m.copy(), w.copy()
        m[some], w[some] = sets.m, sets.w
    hull = upper.corners(m, w, mask=mask)
    won = (noise.log_mass if log else noise.mass)(law, hull.low, hull.high)
    p = np.full(m.shape, -np.inf if log else 0.0)
    p[hull.row, hull.arm] = won
    if len(some):
        p[some] = _shared(p[some], sets, log=log)
    return np.reshape(p, shape)


def _shared(won: np.ndarray, sets: settled.Sets, *, log: bool) -> np.ndarray:
    """What one line of each set won, shared by all of its arms. won (B, K) -> (B, K)"""
    of, offered = sets.of, sets.of >= 0
    best = np.full(len(sets.size), -np.inf if log else 0.0)
    np.maximum.at(best, of[offered], won[offered])
    best = best - np.log(sets.size) if log else best / sets.size
    return np.where(offered, best[of], -np.inf if log else 0.0)


def decide_points(
    m: np.ndarray, w: np.ndarray, z: float, *, law: noise.Points, slack: Slack | None = None
) -> tuple[int, float] | None:
    """`decide` for z of finitely many values: one pass over the scores at all of them; None where scores nearly tie."""
    slack = slack or settled.rounded(m, w)
    s = m + law.column * w  # (J, K)
    best = s.argmax(axis=1)
    reach = slack.reach(m, w, law.reach)
    if np.count_nonzero(s >= (s.max(axis=1) - reach)[:, None]) != len(best):
        return None
    arm = int(best[law.points.index(z)])
    return arm, float(law.shares @ (best == arm))


def points(
    m: np.ndarray,
    w: np.ndarray,
    *,
    law: noise.Points,
    slack: Slack | None = None,
    mask: np.ndarray | None = None,
    log: bool = False,
) -> np.ndarray:
    """The probabilities of all arms when z takes finitely many values. m, w (..., K), mask (..., K) -> (..., K)"""
    slack = slack or settled.rounded(m, w, mask)
    p = np.zeros(m.shape)
    for z, weight in zip(law.points, law.weights, strict=True):
        if weight:
            p += weight * shared_at(m, w, z, slack=slack, mask=mask)
    p = p / np.sum(p, axis=-1, keepdims=True)
    return arrays.ln(p) if log else p

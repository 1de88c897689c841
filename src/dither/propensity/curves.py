"""Arms scored by curves v_i μ(m_i + z w_i) of values v and a link, one z for all arms: choices and probabilities.

    drawn         the curve that is the highest at z; any link that has `log_ratio`
    curves        the probabilities of all arms, for the logit link
    top           which scores v μ(x) tie for the highest, where each x has an error of its own

Curves of one value have the order of their lines. So lines are settled among the arms of one value, and each settled
line is one curve, whose arms have equal shares. Of two curves the sign of

    D = log v_i/v_j + log μ(x_i) - log μ(x_j)

says which is higher, and it is computed from the differences of values, means and widths. So what is nearly equal is
told apart to the last digits, also where all μ are near 1. Whoever draws and whoever states compares by this sign.

Two curves of the logit link meet at most twice. For p = w_j, q = w_i and y = e^{-z},

    v_i μ_i = v_j μ_j   <=>   v_i - v_j + v_i e^{-m_j} y^p - v_j e^{-m_i} y^q = 0,

whose left-hand side has one stationary point in y > 0, at y^(q-p) = v_i e^{-m_j} p/(v_j e^{-m_i} q). On either side of
it, bisection finds the meeting. Between two meetings next to each other, of any pair, one curve is the highest.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither import links, noise
from dither.base import arrays
from dither.propensity import settled
from dither.propensity.settled import Slack

MOST = 128  # arms: all pairs are looked at, and the time grows with the cube of their number
REACH = 700.0  # |z| within which meetings are looked for; beyond it the curves are taken as they are there
MOST_STEPS = 128  # of a search for one meeting: as a rule it takes about 12
TINY = 1e-300
NEAR = 1e-10  # a share of all that a score is made of: scores that differ by more are in the right order
LOGIT = links.Logit()


class Curve(NamedTuple):
    """Settled curves: arrays of one shape, or of shapes that broadcast."""

    m: np.ndarray
    w: np.ndarray
    v: np.ndarray

    def of(self, place: Any) -> "Curve":
        """Some of the curves, by an index."""
        return Curve(self.m[place], self.w[place], self.v[place])


def settle(m: np.ndarray, w: np.ndarray, v: np.ndarray, *, slack: Slack | None, mask: Any = None) -> settled.Sets:
    """The sets of curves of B requests: lines that are one, among arms of one value. m, w, v, mask (B, K)"""
    slack = settled.rows(slack or settled.rounded(m, w, mask), slice(None), m.shape)
    return settled.settle(m, w, slack=slack, mask=mask, apart=v)


def lead(i: Curve, j: Curve, *, link: Any = LOGIT) -> Callable[[Any], np.ndarray]:
    """By how much curve i is higher than j, as a function of z: D. Its sign is right to the last digits."""
    rise, steeper, alike = i.m - j.m, i.w - j.w, i.v == j.v
    with np.errstate(over="ignore"):
        share = (i.v - j.v) / j.v
    near = np.abs(share) < 0.5
    price = np.where(near, np.log1p(np.where(near, share, 0.0)), np.log(i.v) - np.log(j.v))

    def above(z: Any) -> np.ndarray:
        gap = rise + z * steeper
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.where(alike, gap, price + link.log_ratio(i.m + z * i.w, j.m + z * j.w, gap))

    return above


def drawn(
    m: np.ndarray,
    w: np.ndarray,
    v: np.ndarray,
    z: np.ndarray,
    *,
    u: np.ndarray,
    link: Any = LOGIT,
    slack: Slack | None = None,
    mask: Any = None,
) -> np.ndarray:
    """The arms whose curve is the highest at z (...). Where curves are one, the uniform u (...) picks the arm.

    m, w, v (K,), or with the leading axes of z; mask (..., K) -> (...) integers
    """
    K, batch = m.shape[-1], np.shape(z)
    if mask is not None and np.ndim(mask) > 1 and mask.strides[0] == 0:
        mask = mask[:1]  # one request that is drawn many times
    shape = m.shape if mask is None else np.broadcast_shapes(m.shape, np.shape(mask))
    m, w, v = (np.broadcast_to(part, shape).reshape(-1, K) for part in (m, w, v))
    offered = None if mask is None else np.broadcast_to(mask, shape).reshape(-1, K)
    if slack is not None:
        slack = settled.rows(slack, slice(None), shape)
    sets = settle(m, w, v, slack=slack, mask=offered)
    M, W, V, of = (np.broadcast_to(part.reshape(shape), (*batch, K)) for part in (sets.m, sets.w, v, sets.of))
    flat = (math.prod(batch), K)
    each, on = Curve(*(part.reshape(flat) for part in (M, W, V))), (of >= 0).reshape(flat)
    arm = _highest(each, np.reshape(z, flat[0]), on=on, link=link).reshape(batch)
    return arrays.nth(of == np.take_along_axis(of, arm[..., None], axis=-1), u)


def _highest(curve: Curve, z: np.ndarray, *, on: np.ndarray, link: Any) -> np.ndarray:
    """The highest of the curves `on` (N, K) at z (N,): one of its arms, (N,).

    The scores log v + log μ are rounded, so where several are near the highest their differences have the last word.
    """
    m, w, v = curve
    x = m + z[:, None] * w
    with np.errstate(divide="ignore"):
        price, log_mu = np.log(v), link.log_mu(x)
    s = np.where(on, price + log_mu, -np.inf)
    arm = np.argmax(s, axis=-1)
    size = np.max(np.where(on, abs(m) + abs(z[:, None]) * w + abs(price) + abs(log_mu), 0.0), axis=-1)
    near = s >= (np.take_along_axis(s, arm[:, None], axis=-1)[:, 0] - NEAR * (1 + size))[:, None]
    rows = np.flatnonzero(np.count_nonzero(near, axis=-1) > 1)
    for _ in range(on.shape[-1]):
        if not len(rows):
            break
        row, other = np.nonzero(near[rows])
        row = rows[row]
        best = arm[row]
        rise = np.full((len(arm), on.shape[-1]), -np.inf)
        rise[row, other] = lead(curve.of((row, other)), curve.of((row, best)), link=link)(z[row])
        other = np.argmax(rise[rows], axis=-1)
        beaten = rise[rows, other] > 0
        rows = rows[beaten]
        arm[rows] = other[beaten]
    return arm


def curves(m: np.ndarray, w: np.ndarray, v: np.ndarray, *, law: Any, slack: Slack | None = None) -> np.ndarray:
    """The probabilities (K,) of the arms of one request: m, w >= 0 and v > 0 (K,); logit link; law of z, continuous.

    Arms that rounding cannot tell apart share what they win together.
    """
    sets = settle(m[None], w[None], v[None], slack=slack)
    first = np.unique(sets.of[0], return_index=True)[1]  # one arm of each set
    curve = Curve(sets.m[0], sets.w[0], v).of(first)
    meetings = np.unique(_meetings(curve))
    low, high = np.concatenate([[-np.inf], meetings]), np.concatenate([meetings, [np.inf]])
    mass = noise.mass(law, low, high)
    able = mass > 0
    z = _inside(low[able], high[able])
    each = Curve(*(np.broadcast_to(part, (len(z), len(first))) for part in curve))
    best = _highest(each, z, on=np.ones(each.m.shape, dtype=bool), link=LOGIT)
    won = np.bincount(best, weights=mass[able], minlength=len(first))
    return (won / sets.size)[sets.of[0]]


def at_point(
    m: np.ndarray,
    w: np.ndarray,
    v: np.ndarray,
    z: Any,
    *,
    link: Any = LOGIT,
    slack: Slack | None = None,
    mask: Any = None,
) -> np.ndarray:
    """Which arms tie for the highest at one of finitely many z (...): m, w, v, mask (..., K) -> (..., K) bool.

    As for lines at one z: of parallel lines of one value only the highest can win, and among the others scores that
    are in one chain tie.
    """
    z = np.asarray(z, dtype=float)
    shape = np.broadcast_shapes(m.shape, (*z.shape, m.shape[-1]), np.shape(mask))
    slack = slack or settled.rounded(m, w, mask)
    slack = Slack(*(np.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (slack.m, 1.0, slack.omega)))
    m, w, v = (np.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (m, w, v))
    offered = None if mask is None else np.broadcast_to(mask, shape).reshape(m.shape)
    z = np.broadcast_to(z[..., None], shape).reshape(m.shape)
    sets = settle(m, w, v, slack=slack, mask=offered)
    x, error = sets.m + z * sets.w, slack.at(z, sets.m, sets.w)
    return top(x, error, v, link=link, mask=settled.able(sets)).reshape(shape)


def top(x: np.ndarray, error: np.ndarray, v: np.ndarray, *, link: Any, mask: Any = None) -> np.ndarray:
    """Which arms tie for the highest v μ(x). x, their errors, v, mask (..., K) -> (..., K) bool

    Scores of one value are compared by x, where no digits are lost. What ties there is one score, and scores of
    several values are compared by log v + log μ(x).
    """
    shape = np.broadcast_shapes(np.shape(x), np.shape(v), np.shape(mask))
    on = np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape)
    on = on.reshape(-1, shape[-1])
    row, arm = np.nonzero(on)
    X, E, V = (np.broadcast_to(part, shape).reshape(on.shape)[row, arm] for part in (x, error, v))
    order = np.lexsort((X, V, row))
    row, arm, X, E, V = (part[order] for part in (row, arm, X, E, V))
    kept = settled.last_chain(X, E, begins=(row[1:] > row[:-1]) | (V[1:] > V[:-1]))
    row, arm, X, E, V = (part[kept] for part in (row, arm, X, E, V))
    start = np.flatnonzero(np.r_[True, (row[1:] > row[:-1]) | (V[1:] > V[:-1])])
    with np.errstate(divide="ignore", over="ignore"):
        price, log_mu = np.log(V), link.log_mu(X)
        wide = abs(link.log_ratio(X + E, X - E, 2 * E)) / 2 + 4 * settled.UNIT * (abs(price) + abs(log_mu))
    s = price + log_mu
    S, wide = np.maximum.reduceat(s, start), np.maximum.reduceat(wide, start)
    wide = wide + (S - np.minimum.reduceat(s, start))
    of = np.repeat(np.arange(len(start)), np.diff(np.r_[start, len(row)]))
    order = np.lexsort((S, row[start]))
    first = row[start][order]
    best = np.zeros(len(start), dtype=bool)
    best[order[settled.last_chain(S[order], wide[order], begins=first[1:] > first[:-1])]] = True
    tied = np.zeros(on.shape, dtype=bool)
    tied[row[best[of]], arm[best[of]]] = True
    return tied.reshape(shape)


def _inside(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A point of each interval, as near to 0 as may be: far from it all μ may be 1."""
    far = np.minimum((high - low) / 2, 1.0)
    return np.clip(0.0, low + far, high - far)


def _meetings(curve: Curve) -> np.ndarray:
    """Where two curves meet, for all pairs."""
    one, other = np.triu_indices(len(curve.m), 1)
    i, j = curve.of(one), curve.of(other)
    still, end = _stationary(i, j), np.full(len(i.m), REACH)
    i, j = curve.of(np.r_[one, one]), curve.of(np.r_[other, other])
    return _between(np.concatenate([-end, still]), np.concatenate([still, end]), i, j)


def _stationary(i: Curve, j: Curve) -> np.ndarray:
    """The z at which the left-hand side of the equation has its stationary point; an end where there is none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.log(i.v) - j.m + np.log(j.w) - (np.log(j.v) - i.m + np.log(i.w))
        z = -ratio / (i.w - j.w)
    return np.clip(np.nan_to_num(z, nan=REACH, posinf=REACH, neginf=-REACH), -REACH, REACH)


def _between(low: np.ndarray, high: np.ndarray, i: Curve, j: Curve) -> np.ndarray:
    """The meetings of those pairs whose order is another at `low` than at `high`: between them it changes once.

    By Chandrupatla (1997): inverse quadratic interpolation where the last three points allow it, else bisection.
    """
    above = lead(i, j)
    first, last = above(low), above(high)
    left = np.flatnonzero((first > 0) != (last > 0))
    b, a, fb, fa = low[left], high[left], first[left], last[left]
    c, fc, share, answer = b, fb, np.full(len(b), 0.5), np.empty(len(low))
    some, above = left, lead(i.of(left), j.of(left))
    for _ in range(MOST_STEPS):
        z = a + share * (b - a)
        f = above(z)
        stays = (f > 0) == (fa > 0)
        c, fc, b, fb = (np.where(stays, new, old) for new, old in ((a, b), (fa, fb), (b, a), (fb, fa)))
        a, fa = z, f
        answer[some] = np.where(abs(fa) < abs(fb), a, b)
        least = 2 * settled.UNIT * np.maximum(np.abs(a), np.abs(b)) / np.maximum(np.abs(b - a), TINY)
        on = least <= 0.5
        if not on.any():
            break
        if not on.all():
            a, b, c, fa, fb, fc, least, some = (part[on] for part in (a, b, c, fa, fb, fc, least, some))
            above = lead(i.of(some), j.of(some))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            able = (phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi)
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        share = np.clip(np.where(able & np.isfinite(share), share, 0.5), least, 1 - least)
    return answer[left]

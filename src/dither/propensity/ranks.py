"""The k highest of K lines m + z w, in order, as z goes from -inf to inf (the first k levels of the arrangement).

    listed_at the list at one z
    listed    one ordered list: the interval of z in which each of its lines is above the next, and the last above the
              rest. O(K)
    ranks     all lists, and the interval of each. At z = -inf the flattest line is first; from there on either a line
              of the list overtakes the one before it, or a line from outside overtakes the last

Two lines change places at most once, so the sweep ends. A line from outside is compared only with the last line of the
list: such a change costs O(K), a change within the list O(k). Lines of equal slope never meet.
"""

import math
from typing import Any

import numpy as np

from dither.base import arrays
from dither.propensity import coupled, settled
from dither.propensity.settled import Slack

AT_ONCE = 1e-12  # a share of z: the rounding of the places where lines meet


def listed_at(
    m: np.ndarray, w: np.ndarray, z: np.ndarray, *, u: np.ndarray, slack: Slack | None = None, mask: Any = None
) -> np.ndarray:
    """The k highest lines at z, in order. Among lines that are one, the uniforms say the order.

    m, w, mask (..., K), z (...), u (..., k) -> (..., k) integers
    """
    shape, K, k = m.shape, m.shape[-1], u.shape[-1]
    if not m.size:  # there are no requests
        return np.empty((*shape[:-1], k), dtype=np.int64)
    slack = settled.rows(slack or settled.rounded(m, w, mask), slice(None), shape)
    m, w, z, u = np.reshape(m, (-1, K)), np.reshape(w, (-1, K)), np.reshape(z, -1), np.reshape(u, (-1, k))
    mask = None if mask is None else np.broadcast_to(mask, shape).reshape(-1, K)
    sets = settled.settle(m, w, slack=slack, mask=mask)
    arms = arrays.in_turn(lambda u, left: arrays.nth(coupled.highest(sets, z, left), u), u, K, sets.of >= 0)
    return np.reshape(arms, (*shape[:-1], k))


def listed(
    m: np.ndarray, w: np.ndarray, arms: np.ndarray, *, slack: Slack | None = None, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The interval of z in which `arms` (..., k) are the first k lines in this order, and how many orders share it.

    m, w (..., K), mask (..., K) -> low, high (...), empty where low >= high; and the number of lists that the tie rule
    draws there with equal chance (...): 1 where no two lines are one.
    """
    shape, K = m.shape, m.shape[-1]
    slack = settled.rows(slack or settled.rounded(m, w, mask), slice(None), shape)
    offered = None if mask is None else np.broadcast_to(mask, shape).reshape(-1, K)
    sets = settled.settle(np.reshape(m, (-1, K)), np.reshape(w, (-1, K)), slack=slack, mask=offered)
    m, w, of = (np.reshape(part, shape) for part in (sets.m, sets.w, sets.of))
    left = of >= 0
    low, high, shared = np.full(m.shape[:-1], -np.inf), np.full(m.shape[:-1], np.inf), np.ones(m.shape[:-1])
    for r in range(arms.shape[-1]):
        arm = arms[..., r]
        one = left & (of == arrays.pick(of, arm, rank=0)[..., None])
        shared *= np.sum(one, axis=-1)
        rivals = left & ~one
        rise, steeper = coupled.against(m, w, arm)
        own_low, own_high = coupled.between(rise, steeper, rivals=rivals)
        low, high = np.maximum(low, own_low), np.minimum(high, own_high)
        high = np.where(np.any(rivals & (steeper == 0) & (rise < 0), axis=-1), -np.inf, high)
        left = arrays.replace(left, arm, np.zeros(arm.shape, dtype=bool), rank=0)
    return low, high, shared


def ranks(m: np.ndarray, w: np.ndarray, *, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All ordered lists of the k highest lines of one request. No two lines may be one.

    m, w (K,), 1 <= k <= K -> lists (L, k) of lines, and the interval of z of each, low and high (L,), in order of z
    """
    order = np.lexsort((-m, w))
    top, M, W = order[:k].tolist(), m.tolist(), w.tolist()
    inside = np.zeros(len(m), dtype=bool)
    inside[top] = True
    lists, starts = [tuple(top)], [-math.inf]
    z_in = [_crossing(M, W, top[r], top[r + 1]) for r in range(k - 1)]  # where rank r + 1 overtakes rank r
    z_out, comer = _comer(m, w, inside, top[-1])
    z = -math.inf
    while True:
        r = min(range(k - 1), key=z_in.__getitem__, default=-1)
        if r >= 0 and z_in[r] <= z_out:
            event = z_in[r]
            top[r], top[r + 1] = top[r + 1], top[r]
        else:
            if z_out == math.inf:
                break
            r, event = k - 1, z_out
            inside[top[r]], inside[comer] = False, True
            top[r] = comer
        if event == math.inf:
            break
        for q in (r - 1, r, r + 1):
            if 0 <= q < k - 1:
                z_in[q] = _crossing(M, W, top[q], top[q + 1])
        if r >= k - 2:
            z_out, comer = _comer(m, w, inside, top[-1])
        if event > z:  # else it is rounding: where more than two lines meet, they change places one by one
            z = event
            lists.append(tuple(top))
            starts.append(z)
        else:
            lists[-1] = tuple(top)
    return np.array(lists), np.array(starts), np.array([*starts[1:], math.inf])


def _crossing(m: Any, w: Any, i: int, j: int) -> float:
    """The z at which j, which is below i now, overtakes i: m, w (K,), lists or arrays."""
    return float((m[i] - m[j]) / (w[j] - w[i])) if w[j] > w[i] else math.inf


def _comer(m: np.ndarray, w: np.ndarray, inside: np.ndarray, last: int) -> tuple[float, int]:
    """The first z at which a line from outside overtakes the last of the list; if several do, the highest beyond it.

    Where lines nearly meet in one point, all overtake the last at one z up to rounding. Which of them is the highest
    there, their own meetings say: a steeper one is higher if it has overtaken the flatter one by then.
    """
    rivals = np.flatnonzero((w > w[last]) & ~inside)
    if not len(rivals):
        return math.inf, -1
    z = (m[last] - m[rivals]) / (w[rivals] - w[last])
    first = float(np.min(z))
    near = rivals[z <= first + AT_ONCE * abs(first)]
    best, *steeper = near[np.argsort(w[near], kind="stable")].tolist()
    for line in steeper:
        if _crossing(m, w, best, line) <= first:
            best = line
    return first, best

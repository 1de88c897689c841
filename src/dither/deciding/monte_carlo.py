"""Monte Carlo: decisions are drawn again, and it is counted how often they show each arm.

This serves policies that cannot tell their probabilities. The draws come from a stream of their own, so asking spends
none of a bandit's chance.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.deciding import decision
from dither.deciding.decision import Moment
from dither.deciding.demands import Demands

DECISIONS_TOGETHER = 1000  # how many decisions of one request are ranked at once
BLOCK = 2**24  # how many numbers are drawn at once for them


def estimate(
    now: Moment, view: Any, rng: Any, X: np.ndarray, mask: np.ndarray | None, *, shape: tuple[int, ...], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities (..., K) from n draws a request, and their standard errors; view of X, shape (..., K).

    The uniform part is known, so it is not drawn. An arm that was never drawn may still be possible, and one that was
    always drawn need not be certain. So the standard error is that of (hits + 1)/(n + 2).
    """
    hits = _hits(now, view, rng, X, mask, shape=shape, n=n, eps=0.0)
    if now.demands is not None:
        rest, can = now.demands.rest[..., None], now.demands.possible(mask)
        se = rest * standard_error(now.demands.moved(hits), n=n)
        return now.demands.of(hits / n), np.where(can & (np.sum(can, axis=-1, keepdims=True) > 1), se, 0.0)
    se = (1 - now.eps) * standard_error(hits, n=n)
    certain = np.broadcast_to(decision.offered(shape, mask)[..., None] == 1, shape)
    certain = certain if mask is None else certain | ~mask
    p = (1 - now.eps) * hits / n + now.eps * decision.uniform(shape, mask)
    return p, np.where(certain, 0.0, se)


def shown(
    now: Moment,
    view: Any,
    rng: np.random.Generator,
    X: np.ndarray,
    mask: np.ndarray | None,
    arm: np.ndarray,
    *,
    shape: tuple[int, ...],
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The estimate for the arm shown (...). That arm counts as one more draw, so the estimate is never 0.

    The uniform coin is drawn too. To add its known share ε/K and then count the shown arm would overstate small
    probabilities. The same holds of what is demanded.
    """
    every = _hits(now, view, rng, X, mask, shape=shape, n=n, eps=now.eps, demands=now.demands)
    hits = arrays.pick(every, arm, rank=0)
    certain = decision.offered(shape, mask) == 1
    if now.demands is not None:
        certain = np.sum(now.demands.possible(mask), axis=-1) == 1
    return (1 + hits) / (1 + n), np.where(certain, 0.0, standard_error(hits, n=n))


def standard_error(hits: np.ndarray, *, n: int) -> np.ndarray:
    """The standard error of the share hits/n. It is computed at (hits + 1)/(n + 2), so it is never 0."""
    smooth = (hits + 1) / (n + 2)
    return np.sqrt(smooth * (1 - smooth) / n)


def _hits(
    now: Moment,
    view: Any,
    rng: np.random.Generator,
    X: np.ndarray,
    mask: np.ndarray | None,
    *,
    shape: tuple[int, ...],
    n: int,
    eps: float,
    demands: Demands | None = None,
) -> np.ndarray:
    """How often n decisions show each arm, (..., K)."""
    hits = np.empty(shape)
    for row in np.ndindex(shape[:-1]):
        own = None if mask is None else mask[row]
        one = now.view(X[row][None], row) if row else view
        asked = None if demands is None else demands.row(row)
        hits[row] = frequencies(now, one, rng, n=n, arms=shape[-1], mask=own, eps=eps, demands=asked)
    return hits


def frequencies(
    now: Moment, view: Any, rng, *, n: int, arms: int, mask=None, eps: float = 0.0, demands: Demands | None = None
) -> np.ndarray:
    """How often n decisions of one request show each arm, (K,) of counts.

    eps : the share of uniform choices; demands : what is demanded in its place
    """
    counts, rule = np.zeros(arms), decision.redrawn(view)

    def count(size: int, best: Callable[..., np.ndarray]) -> None:
        allowed = None if mask is None else np.broadcast_to(mask, (size, arms))
        u = rng.random((size, decision.UNIFORMS))
        own = best(u=u[..., 0], mask=allowed)
        arm = demands.drawn(own, u) if demands else decision.mixed(own, u, eps=eps, arms=arms, mask=allowed)
        counts[:] += np.bincount(arm, minlength=arms)

    if rule is None and decision.chooses(view):
        for start in range(0, n, DECISIONS_TOGETHER):
            size = min(DECISIONS_TOGETHER, n - start)
            count(size, functools.partial(view.best, *decision.draw(now.policy, rng, size, arms=arms, dim=now.dim)))
        return counts
    for s in again(now, view, rng, n=n, arms=arms, rule=rule):
        count(len(s), functools.partial(arrays.argmax, s))
    return counts


def again(now: Moment, view: Any, rng: np.random.Generator, *, n: int, arms: int, rule: Any) -> Iterator[Array]:
    """The scores of n decisions of one request, as many together as memory allows: (., K).

    rule : draws scores, as `redraw` of a view does; None: what the policy draws is scored

    As many numbers are drawn at once as fit a `BLOCK`. The caller takes uniforms from the same stream, after the scores
    of all decisions that are together. So the size of a block changes no number.
    """
    together, block = min(DECISIONS_TOGETHER, max(1, BLOCK // arms)), max(1, BLOCK // _numbers(now, view, arms=arms))
    for start in range(0, n, together):
        stop = min(n, start + together)
        sizes = [min(block, stop - first) for first in range(start, stop, block)]
        if rule is not None:
            yield np.concatenate([rule(rng, k, arms=arms, dim=now.dim) for k in sizes])
        else:
            drawn = ((k, decision.draw(now.policy, rng, k, arms=arms, dim=now.dim)) for k in sizes)
            # A policy without chance has one row of scores for all.
            yield np.concatenate([np.broadcast_to(decision.scores(view, chance), (k, arms)) for k, chance in drawn])


def sample(now: Moment, *, arms: int) -> tuple[np.ndarray, ...]:
    """The chance of one request, from a stream that serves nothing else. It shows how much a request draws."""
    return decision.draw(now.policy, np.random.Generator(np.random.SFC64(0)), 1, arms=arms, dim=now.dim)


def _numbers(now: Moment, view: Any, *, arms: int) -> int:
    """How many numbers one decision takes: what is drawn, once for each arm it moves, or the arms while scored."""
    moved = sum(np.size(kind) * (arms if np.shape(kind)[1:2] == (1,) else 1) for kind in sample(now, arms=arms))
    return max(moved, arms * decision.numbers(view), 1)

"""Monte Carlo: decisions are drawn again, and it is counted how often they show each arm, or the same list.

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
from dither.deciding.request import Request

DECISIONS_TOGETHER = 1000  # how many decisions of one request are ranked at once
BLOCK = 2**24  # how many numbers are drawn at once for them
Rule = Callable[..., np.ndarray]  # (u=, mask=) -> what some decisions show


def estimate(
    now: Moment, view: Any, rng: Any, request: Request, demands: Demands, *, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities (..., K) from n draws a request, and their standard errors; view of the request.

    What is uniform or demanded is known, so it is not drawn. An arm that was never drawn may still be possible, and one
    that was always drawn need not be certain. So the standard error is that of (hits + 1)/(n + 2).
    """
    hits = counts(now, view, rng, request, None, n=n)
    se = demands.rest[..., None] * standard_error(demands.moved(hits), n=n)
    possible = demands.possible
    certain = ~possible | (np.count_nonzero(possible, axis=-1) == 1)[..., None]
    return demands.of(hits / n), np.where(certain, 0.0, se)


def standard_error(hits: np.ndarray, *, n: int) -> np.ndarray:
    """The standard error of the share hits/n. It is computed at (hits + 1)/(n + 2), so it is never 0."""
    smooth = (hits + 1) / (n + 2)
    return np.sqrt(smooth * (1 - smooth) / n)


def counts(now: Moment, view: Any, rng: Any, request: Request, demands: Demands | None, *, n: int) -> np.ndarray:
    """How often n decisions show each arm, (..., K). demands : what moves each of them; None: nothing does."""
    hits = np.empty(request.shape)
    for row, one, seen in each(now, view, request):
        asked = None if demands is None else demands.row(row)
        hits[row] = frequencies(now, seen, rng, n=n, arms=request.shape[-1], mask=one.mask, demands=asked)
    return hits


def each(now: Moment, view: Any, request: Request) -> Iterator[tuple[tuple[int, ...], Request, Any]]:
    """The requests of a batch one by one: the place, the request, what is seen of it."""
    if request.single:
        yield (), request, view
        return
    for i in range(request.size):
        one = request.row(i)
        yield (i,), one, now.view(one.batched())


def frequencies(
    now: Moment, view: Any, rng: Any, *, n: int, arms: int, mask: Any = None, demands: Demands | None = None
) -> np.ndarray:
    """How often n decisions of one request show each arm, (K,) of counts."""
    counts, best = np.zeros(arms), view.best if decision.chooses(view) else None
    redraw = decision.redrawn(view)
    for size, rule in drawn(now, view, rng, n=n, arms=arms, rule=None if redraw is not None else best, redraw=redraw):
        offered = None if mask is None else np.broadcast_to(mask, (size, arms))
        u = rng.random((size, decision.UNIFORMS))
        arm = rule(u=u[..., 0], mask=offered)
        counts += np.bincount(arm if demands is None else demands.drawn(arm, u), minlength=arms)
    return counts


def drawn(
    now: Moment, view: Any, rng: Any, *, n: int, arms: int, rule: Rule | None, redraw: Any = None, by_score: Any = None
) -> Iterator[tuple[int, Rule]]:
    """n decisions of one request in parts: how many, and what shows them.

    rule : (*chance, u=, mask=) -> what is shown; None: scores decide, by `by_score` (None: the highest is shown)
    redraw : draws scores, as `redraw` of a view does; None: what the policy draws is scored

    As many numbers are drawn at once as fit a `BLOCK`. The caller takes uniforms from the same stream, after the scores
    of all decisions that are together. So the size of a block changes no number.
    """
    together = min(DECISIONS_TOGETHER, max(1, BLOCK // arms))
    block = 1 if rule is not None else max(1, BLOCK // _numbers(now, view, arms=arms))
    for start in range(0, n, together):
        size = min(together, n - start)
        if rule is not None:
            chance = decision.draw(now.policy, rng, size, arms=arms, dim=now.dim)
            yield size, functools.partial(rule, *chance)
        else:
            sizes = [min(block, size - first) for first in range(0, size, block)]
            s = _scores(now, view, rng, sizes, arms=arms, redraw=redraw)
            yield size, functools.partial(by_score or arrays.argmax, s)


def _scores(now: Moment, view: Any, rng: np.random.Generator, sizes: list[int], *, arms: int, redraw: Any) -> Array:
    """The scores of some decisions of one request, drawn in parts of these sizes: (sum of sizes, K)."""
    if redraw is not None:
        return np.concatenate([redraw(rng, k, arms=arms, dim=now.dim) for k in sizes])
    chances = ((k, decision.draw(now.policy, rng, k, arms=arms, dim=now.dim)) for k in sizes)
    # A policy without chance has one row of scores for all.
    return np.concatenate([np.broadcast_to(decision.scores(view, chance), (k, arms)) for k, chance in chances])


def sample(now: Moment, *, arms: int) -> tuple[np.ndarray, ...]:
    """The chance of one request, from a stream that serves nothing else. It shows how much a request draws."""
    return decision.draw(now.policy, np.random.Generator(np.random.SFC64(0)), 1, arms=arms, dim=now.dim)


def _numbers(now: Moment, view: Any, *, arms: int) -> int:
    """How many numbers one decision takes: what is drawn, once for each arm it moves, or the arms while scored."""
    moved = sum(np.size(kind) * (arms if np.shape(kind)[1:2] == (1,) else 1) for kind in sample(now, arms=arms))
    return max(moved, arms * decision.numbers(view), 1)

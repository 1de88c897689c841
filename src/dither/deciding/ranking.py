"""Lists of the k best arms: how they are drawn, and how probable each list and each arm's place on it is.

The scores of one draw rank all arms. The best arm is chosen as `decision.choose` chooses, then the best of the arms
that are left, and so on. Where arms tie, a uniform draw for each place decides. With probability eps (the policy's own
share and the floor together) the list is uniform. Each ordered list of k of n arms on offer then has the probability
(n-k)!/n!.

The probabilities are exact for lines that one z moves, where the list stands in an interval of z (`propensity.ranks`),
and for policies without chance. For all others they are Monte Carlo.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import noise, propensity
from dither.base import arrays, errors
from dither.deciding import decision, monte_carlo
from dither.deciding.decision import Moment

MOST = 100_000  # at most so many lists are spelt out
Share = Callable[[np.ndarray], np.ndarray]  # which arms are left (..., K) -> how probable each is as the first
Places = list[np.ndarray]  # the arms in order; arms that tie are one array; the last array reaches the k-th place


@dataclass(frozen=True, slots=True)
class ListDecision:
    """What `choose_list` answers: for one request (k,) and plain numbers, for B requests (B, k) and (B,)."""

    arms: np.ndarray  # int  the first is the best
    propensity: float | np.ndarray  # P(this ordered list); NaN where the kind is "none"
    propensity_kind: str  # "exact", "monte_carlo" or "none"
    propensity_se: float | np.ndarray | None  # standard error; None where exact
    z: float | np.ndarray | None = None  # as of `Decision`


@dataclass(frozen=True)
class ListPropensities:
    """The probabilities of all lists of k arms for one request."""

    membership: np.ndarray  # (K,)  P(the arm is on the list); sums to k
    lists: np.ndarray  # (L, k) int  the lists that the policy itself draws, the most probable first
    propensity: np.ndarray  # (L,)  their probabilities
    other: float  # P of any one list that is not in `lists`: uniform choices alone show it
    kind: str  # "exact", "monte_carlo" or "none": the numbers are NaN
    membership_se: np.ndarray | None  # (K,)  standard errors; None where exact
    propensity_se: np.ndarray | None  # (L,)


def fits(k: Any, shape: tuple[int, ...], mask: np.ndarray | None) -> None:
    """Refuse lists longer than what is on offer; shape (..., K)."""
    errors.at_least("k", k, 1)
    most = shape[-1] if mask is None else int(np.min(np.sum(mask, axis=-1)))
    if k > most:
        raise ValueError(f"k must be at most {most}, the number of arms on offer; got {k}")


def decide(
    now: Moment, X: np.ndarray, mask: np.ndarray | None, *, k: int, K: int, chance: Any, ties: Any, again: Any, n: int
) -> ListDecision:
    """The lists shown for the requests X (B, ...), mask (B, K): chance and ties are streams.

    again, n : a stream and the number of lists that are drawn from it for a Monte Carlo probability
    """
    view, shape = now.view(X), (len(X), K)
    drawn = decision.draw(now.policy, chance, len(X), arms=K, dim=now.dim)
    arms = choose(view, drawn, ties.random((len(X), 2 * k + 1)), k=k, eps=now.eps, arms=K, mask=mask)
    z = decision.z(view, drawn)
    of: dict[str, Any] = dict(eps=now.eps, shape=shape, mask=mask)
    if k == 1 and decision.exact(view):
        return ListDecision(arms, decision.chosen(view, arms[:, 0], **of), "exact", None, z)
    known = decision.knowable(now.policy)
    if known and exact(view, drawn):
        return ListDecision(arms, chosen(view, arms, **of), "exact", None, z)
    if not (known and n):
        return ListDecision(arms, np.full(len(X), np.nan), "none", None, z)
    # Whole decisions are drawn, with the uniform coin: `monte_carlo.shown` says why.
    counted = drawn_again(now, again, X, mask, n=n, k=k, K=K, eps=now.eps)
    hits = np.array([np.sum(np.all(lists == own, axis=-1)) for own, lists in zip(arms, counted, strict=True)])
    return ListDecision(arms, (1 + hits) / (1 + n), "monte_carlo", monte_carlo.standard_error(hits, n=n), z)


def drawn_again(
    now: Moment, rng: Any, X: np.ndarray, mask: np.ndarray | None, *, n: int, k: int, K: int, eps: float = 0.0
) -> Iterator[np.ndarray]:
    """n lists of k arms for each request X (B, ...), (n, k)."""
    for row in range(len(X)):
        own = None if mask is None else mask[row]
        yield frequencies(now, now.view(X[row][None]), rng, n=n, k=k, arms=K, mask=own, eps=eps)


def choose(view: Any, chance: tuple, u: np.ndarray, *, k: int, eps: float, arms: int, mask=None) -> np.ndarray:
    """The lists shown: chance as `draw` gave it, u (..., 2k + 1) uniforms, mask (..., K). -> (..., k) integers"""
    rule = decision.ordered(view, arms=arms)
    if rule is not None:
        listed = rule(*chance, u=u[..., :k], mask=mask)
    else:
        listed = _by_score(decision.scores(view, chance), u[..., :k], mask)
    return _mixed(listed, u, k=k, eps=eps, arms=arms, mask=mask)


def _by_score(s: np.ndarray, u: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The k highest scores in order."""
    return arrays.in_turn(lambda u, left: arrays.argmax(s, u=u, mask=left), u, s.shape[-1], mask)


def _mixed(listed: np.ndarray, u: np.ndarray, *, k: int, eps: float, arms: int, mask) -> np.ndarray:
    """The lists shown, of which a share eps is uniform."""
    if not eps:
        return listed
    uniform = arrays.in_turn(lambda u, left: arrays.nth(left, u), u[..., k : 2 * k], arms, mask)
    return np.where(u[..., 2 * k :] < eps, uniform, listed)


def first(answer: ListDecision) -> ListDecision:
    """The answer of one request out of a batch of one."""
    kind, se, z = answer.propensity_kind, answer.propensity_se, answer.z
    se = None if se is None else float(np.ravel(se)[0])
    z = None if z is None else np.asarray(z)[0]
    return ListDecision(answer.arms[0], float(np.ravel(answer.propensity)[0]), kind, se, decision.plain(z))


def exact(view: Any, chance: tuple) -> bool:
    """Whether the probabilities of lists are known: one z moves all arms, or nothing does."""
    return not chance or decision.lines(view) is not None


def chosen(view: Any, arms: np.ndarray, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The probability of the ordered list `arms` (..., k) of a view that is `exact`; shape (..., K). -> (...)"""
    lines = decision.lines(view)
    if lines is None:
        p = _at(lambda left: _shares(view, left), arms, shape, mask)
    elif isinstance(lines.law, noise.Points):
        p = np.zeros(arms.shape[:-1])
        for weight, share in _at_points(lines):
            p += weight * _at(share, arms, shape, mask)
    else:
        low, high, shared = propensity.listed(lines.m, lines.w, arms, slack=lines.slack, mask=mask)
        p = noise.mass(lines.law, low, high) / shared
    return (1 - eps) * p + eps * uniform(shape, arms.shape[-1], mask)


def _shares(view: Any, left: np.ndarray) -> np.ndarray:
    """How the arms that are left share the first place, for a policy without chance."""
    if decision.exact(view):
        return view.propensities(mask=left)
    return arrays.share(decision.scores(view, ()), mask=left)


def uniform(shape: tuple[int, ...], k: int, mask: np.ndarray | None) -> Any:
    """(n-k)!/n!: the probability of each ordered list of k of n arms on offer."""
    n = np.asarray(shape[-1]) if mask is None else np.sum(mask, axis=-1)
    return 1 / np.prod(n[..., None] - np.arange(k), axis=-1, dtype=float)


def _at(share: Share, arms: np.ndarray, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """The probability of the list `arms` where only ties leave anything to chance; shape (..., K)."""
    left = np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape).copy()
    p = np.ones(shape[:-1])
    for r in range(arms.shape[-1]):
        p = p * arrays.pick(share(left), arms[..., r], rank=0)
        np.put_along_axis(left, arms[..., r, None], False, axis=-1)
    return p


def _at_points(lines: Any) -> Iterator[tuple[float, Share]]:
    """Each value of z: its probability, and how the arms that are left share the first place there."""
    m, w, slack, law, *_ = lines
    for z, weight in zip(law.points, law.shares.tolist(), strict=True):

        def share(left: np.ndarray, z: float = z) -> np.ndarray:
            return propensity.shared_at(m, w, z, slack=slack, mask=left)

        if weight:
            yield weight, share


def propensities(
    now: Moment, X: np.ndarray, mask: np.ndarray | None, *, k: int, K: int, rng: Any, n: int, lists: bool
) -> ListPropensities:
    """All lists of one request X, mask (K,); n of them are drawn from rng where they are not known."""
    if not decision.knowable(now.policy):
        return ListPropensities(np.full(K, np.nan), np.empty((0, k), int), np.empty(0), np.nan, "none", None, None)
    view = now.view(X)
    of: dict[str, Any] = dict(k=k, K=K, eps=now.eps, mask=mask, lists=lists)
    if exact(view, monte_carlo.sample(now, arms=K)):
        return _known(view, **of)
    own = None if mask is None else mask[None]
    return _estimated(next(drawn_again(now, rng, X[None], own, n=n, k=k, K=K)), **of)


def _known(view: Any, *, k: int, K: int, eps: float, mask: np.ndarray | None, lists: bool) -> ListPropensities:
    shape = (K,)
    offered = np.ones(shape, dtype=bool) if mask is None else mask
    membership = np.zeros(shape)
    found: dict[tuple[int, ...], float] = {}
    for mass, places in _orders(view, offered, k):
        room = k
        for group in places:
            membership[group] += mass * min(room, len(group)) / len(group)
            room -= len(group)
        if lists:
            for listed, share in _spelt(places, k):
                found[listed] = found.get(listed, 0.0) + mass * share
            if len(found) > MOST:
                raise ValueError(
                    f"arms tie in so many ways that there are more than {MOST} lists: "
                    f"ask for list_propensities(X, k={k}, lists=False), which gives the membership alone"
                )
    return _answer(membership, found, k=k, eps=eps, mask=mask, kind="exact")


def _orders(view: Any, offered: np.ndarray, k: int) -> Iterator[tuple[float, Places]]:
    """The orders of the first k places, each with its probability; arms by number; offered (K,) bool."""
    lines = decision.lines(view)
    if lines is None:
        yield 1.0, _ranked(lambda left: _shares(view, left), offered, k)
        return
    m, w, slack, law, *_ = lines
    if isinstance(law, noise.Points):
        for weight, share in _at_points(lines):
            yield weight, _ranked(share, offered, k)
        return
    sets = propensity.settle(m[None], w[None], slack=slack or propensity.given(m, w, offered), mask=offered[None])
    of = sets.of[0]
    groups = [np.flatnonzero(of == i) for i in range(len(sets.size))]
    first = np.array([group[0] for group in groups])
    lists, low, high = propensity.ranks(sets.m[0, first], sets.w[0, first], k=min(k, len(first)))
    for listed, mass in zip(lists, noise.mass(law, low, high).tolist(), strict=True):
        if mass > 0:
            sizes = np.cumsum([0, *(len(groups[i]) for i in listed)])
            yield mass, [groups[i] for i, before in zip(listed, sizes, strict=False) if before < k]


def _ranked(share: Share, offered: np.ndarray, k: int) -> Places:
    """The arms by score as far as the k-th place, those that tie together; offered (K,) bool."""
    left, places, room = offered.copy(), [], k
    while room > 0:
        one = share(left) > 0
        left &= ~one
        places.append(np.flatnonzero(one))
        room -= len(places[-1])
    return places


def _spelt(places: Places, k: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """The lists that one order stands for, and each one's share of it."""
    room, parts, share = k, [], 1.0
    for group in places:
        q = min(room, len(group))
        parts.append(itertools.permutations(group.tolist(), q))
        share /= math.perm(len(group), q)
        room -= q
    if share < 1 / MOST:
        yield from (((i,), share) for i in range(MOST + 1))  # more than can be spelt out: the caller refuses
        return
    for parted in itertools.product(*parts):
        yield tuple(itertools.chain.from_iterable(parted)), share


def frequencies(now: Moment, view: Any, rng, *, n: int, k: int, arms: int, mask=None, eps: float = 0.0) -> np.ndarray:
    """n lists of one request, (n, k); eps: the share of uniform choices."""
    drawn = []
    for size, rule in _redrawn(now, view, rng, n=n, arms=arms):
        u, offered = rng.random((size, 2 * k + 1)), None if mask is None else np.broadcast_to(mask, (size, arms))
        drawn.append(_mixed(rule(u=u[:, :k], mask=offered), u, k=k, eps=eps, arms=arms, mask=offered))
    return np.concatenate(drawn)


def _redrawn(now: Moment, view: Any, rng, *, n: int, arms: int) -> Iterator[tuple[int, Callable]]:
    """n decisions of one request in parts: how many, and (u (., k), mask) -> their lists (., k)."""
    rule = decision.ordered(view, arms=arms)
    if rule is None:
        for s in monte_carlo.again(now, view, rng, n=n, arms=arms, rule=None):
            yield len(s), functools.partial(_by_score, s)
        return
    together = min(monte_carlo.DECISIONS_TOGETHER, max(1, monte_carlo.BLOCK // arms))
    for start in range(0, n, together):
        size = min(together, n - start)
        chance = decision.draw(now.policy, rng, size, arms=arms, dim=now.dim)
        yield size, functools.partial(rule, *chance)


def _estimated(
    drawn: np.ndarray, *, k: int, K: int, eps: float, mask: np.ndarray | None, lists: bool
) -> ListPropensities:
    """All lists of one request from draws (n, k)."""
    n = len(drawn)
    membership = np.bincount(drawn.ravel(), minlength=K) / n
    of, hits = np.unique(drawn[: n if lists else 0], axis=0, return_counts=True)
    found = {tuple(listed): count / n for listed, count in zip(of.tolist(), hits.tolist(), strict=True)}
    return _answer(membership, found, k=k, eps=eps, mask=mask, kind="monte_carlo", n=n)


def _answer(membership: np.ndarray, found: dict, *, k: int, eps: float, mask, kind: str, n: int = 0):
    K = len(membership)
    offered = np.ones(K, dtype=bool) if mask is None else mask
    order = sorted(found, key=lambda listed: (-found[listed], listed))
    lists, p = np.array(order, dtype=np.int64).reshape(-1, k), np.array([found[listed] for listed in order])
    other = eps * float(uniform((K,), k, mask))
    certain = ~offered | (np.sum(offered) == k)
    return ListPropensities(
        (1 - eps) * membership + eps * offered * k / np.sum(offered),
        lists,
        (1 - eps) * p + other,
        other,
        kind,
        np.where(certain, 0.0, (1 - eps) * monte_carlo.standard_error(membership * n, n=n)) if n else None,
        (1 - eps) * monte_carlo.standard_error(p * n, n=n) if n else None,
    )

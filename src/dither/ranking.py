"""Lists of the k best arms: how they are drawn, and how probable each list and each arm's place on it is.

The scores of one draw rank all arms. Where arms tie, uniform draws put them in order, one a place: the best arm is
chosen as `decision.choose` chooses, then the best of what is left. With probability eps (the policy's own share and the
floor) the list is a uniform draw without replacement of the arms on offer: each ordered list then has (n-k)!/n! of n.

Exact for lines that one z moves (the interval of z in which the list stands, `propensity.ranks`) and for policies
without chance; else Monte Carlo.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arrays, decision, errors, noise, propensity

MOST = 100_000  # lists that are spelt out
Share = Callable[[np.ndarray], np.ndarray]  # of the arms that are left (..., K): the probability of each to be first
Places = list[np.ndarray]  # the arms in order, those that tie together; the last are as many as reach the k-th place


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
    other: float  # P of any one list that is not among them: what the uniform choices give it
    kind: str  # "exact" or "monte_carlo"
    membership_se: np.ndarray | None  # (K,)  standard errors; None where exact
    propensity_se: np.ndarray | None  # (L,)


def fits(k: Any, shape: tuple[int, ...], mask: np.ndarray | None) -> None:
    """Refuse lists longer than what is on offer; shape (..., K)."""
    errors.at_least("k", k, 1)
    most = shape[-1] if mask is None else int(np.min(np.sum(mask, axis=-1)))
    if k > most:
        raise ValueError(f"k must be at most {most}, the number of arms on offer; got {k}")


def choose(
    policy: Any, view: Any, chance: tuple, u: np.ndarray, *, k: int, eps: float, arms: int, mask=None
) -> np.ndarray:
    """The lists shown: chance as `draw` gave it, u (..., 2k + 1) uniforms, mask (..., K). -> (..., k) integers"""
    if hasattr(policy, "in_turn"):
        listed = policy.in_turn(view, *chance, u=u[..., :k], mask=mask)
    else:
        listed = _by_score(policy.scores(view, *chance), u[..., :k], mask)
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


def shown(policy: Any, view: Any, chance: tuple, arms: np.ndarray, *, eps: float, shape, mask, again: Any, n: int):
    """The answer for the lists shown, arms (B, k); shape (B, K); again() -> lists (n, k) of each request, to count.

    again's lists are those of whole decisions, the uniform ones among them (`Bandit._shown` says why).
    """
    z = decision.z(policy, view, chance)
    if arms.shape[-1] == 1 and decision.exact(policy):
        p = decision.chosen(policy, view, arms[:, 0], eps=eps, shape=shape, mask=mask)
        return ListDecision(arms, p, "exact", None, z)
    if exact(policy, chance, view):
        return ListDecision(arms, chosen(policy, view, arms, eps=eps, shape=shape, mask=mask), "exact", None, z)
    if not n:
        return ListDecision(arms, np.full(shape[:1], np.nan), "none", None, z)
    hits = np.array([np.mean(np.all(lists == own, axis=-1)) for own, lists in zip(arms, again(), strict=True)])
    return ListDecision(arms, (1 + n * hits) / (1 + n), "monte_carlo", standard_error(hits, n=n, eps=0.0), z)


def first(answer: ListDecision) -> ListDecision:
    """The answer of one request out of a batch of one."""
    kind, se, z = answer.propensity_kind, answer.propensity_se, answer.z
    se = None if se is None else float(np.ravel(se)[0])
    z = None if z is None else np.asarray(z)[0]
    return ListDecision(answer.arms[0], float(np.ravel(answer.propensity)[0]), kind, se, decision.plain(z))


def exact(policy: Any, chance: tuple, view: Any) -> bool:
    """Whether the probabilities of lists are known: one z moves all arms, or nothing does."""
    return not chance or (hasattr(policy, "as_lines") and policy.as_lines(view) is not None)


def chosen(policy: Any, view: Any, arms: np.ndarray, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The probability of the ordered list `arms` (..., k) of a policy that is `exact`; shape (..., K). -> (...)"""
    if not hasattr(policy, "as_lines"):
        p = _at(lambda left: policy.propensities(view, mask=left), arms, shape, mask)
    else:
        (m, w, slack), law = policy.as_lines(view)
        if isinstance(law, noise.Points):
            p = np.zeros(arms.shape[:-1])
            for weight, share in _at_points(policy.as_lines(view)):
                p += weight * _at(share, arms, shape, mask)
        else:
            low, high, shared = propensity.listed(m, w, arms, slack=slack, mask=mask)
            p = noise.mass(law, low, high) / shared
    return (1 - eps) * p + eps * uniform(shape, arms.shape[-1], mask)


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


def _at_points(seen: tuple) -> Iterator[tuple[float, Share]]:
    """Each value of z: its probability, and how the arms that are left share the first place there."""
    (m, w, slack), law = seen
    for z, weight in zip(law.points, law.shares.tolist(), strict=True):
        if weight:
            yield weight, functools.partial(_share, m, w, z, slack)


def _share(m: np.ndarray, w: np.ndarray, z: float, slack: Any, left: np.ndarray) -> np.ndarray:
    return propensity.shared_at(m, w, z, slack=slack, mask=left)


def propensities(
    policy: Any, view: Any, *, k: int, eps: float, mask: np.ndarray | None, shape: tuple[int, ...], lists: bool
) -> ListPropensities:
    """All lists of one request, of a policy that is `exact`; shape (K,)."""
    offered = np.ones(shape, dtype=bool) if mask is None else mask
    membership = np.zeros(shape)
    found: dict[tuple[int, ...], float] = {}
    for mass, places in _orders(policy, view, offered, k):
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


def _orders(policy: Any, view: Any, offered: np.ndarray, k: int) -> Iterator[tuple[float, Places]]:
    """The orders of the first k places, each with its probability; arms by number; offered (K,) bool."""
    if not hasattr(policy, "as_lines"):
        yield 1.0, _ranked(lambda left: policy.propensities(view, mask=left), offered, k)
        return
    (m, w, slack), law = policy.as_lines(view)
    if isinstance(law, noise.Points):
        for weight, share in _at_points(policy.as_lines(view)):
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


def frequencies(
    policy: Any, view: Any, rng, *, n: int, k: int, arms: int, dim: int, mask=None, eps: float = 0.0
) -> np.ndarray:
    """n lists of one request, (n, k); eps: the share of uniform choices."""
    drawn = []
    for size, rule in _redrawn(policy, view, rng, n=n, arms=arms, dim=dim):
        u, offered = rng.random((size, 2 * k + 1)), None if mask is None else np.broadcast_to(mask, (size, arms))
        drawn.append(_mixed(rule(u[:, :k], offered), u, k=k, eps=eps, arms=arms, mask=offered))
    return np.concatenate(drawn)


def _redrawn(policy: Any, view: Any, rng, *, n: int, arms: int, dim: int) -> Iterator[tuple[int, Callable]]:
    """n decisions of one request in parts: how many, and (u (., k), mask) -> their lists (., k)."""
    if not hasattr(policy, "in_turn"):
        for s in decision.again(policy, view, rng, n=n, arms=arms, dim=dim, redraw=False):
            yield len(s), functools.partial(_by_score, s)
        return
    together = min(decision.TOGETHER, max(1, decision.BLOCK // arms))
    for start in range(0, n, together):
        size = min(together, n - start)
        chance = decision.draw(policy, rng, size, arms=arms, dim=dim)
        yield size, functools.partial(_of_policy, policy, view, chance)


def _of_policy(policy: Any, view: Any, chance: tuple, u: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return policy.in_turn(view, *chance, u=u, mask=mask)


def estimated(
    drawn: np.ndarray, *, eps: float, mask: np.ndarray | None, shape: tuple[int, ...], lists: bool
) -> ListPropensities:
    """All lists of one request from draws (n, k); shape (K,)."""
    n, k = drawn.shape
    membership = np.bincount(drawn.ravel(), minlength=shape[-1]) / n
    of, hits = np.unique(drawn[: n if lists else 0], axis=0, return_counts=True)
    found = {tuple(listed): count / n for listed, count in zip(of.tolist(), hits.tolist(), strict=True)}
    return _answer(membership, found, k=k, eps=eps, mask=mask, kind="monte_carlo", n=n)


def standard_error(p: np.ndarray, *, n: int, eps: float) -> np.ndarray:
    """Of a share p of n draws that a uniform share eps is mixed with: that of (hits + 1)/(n + 2), never 0."""
    smooth = (p * n + 1) / (n + 2)
    return (1 - eps) * np.sqrt(smooth * (1 - smooth) / n)


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
        np.where(certain, 0.0, standard_error(membership, n=n, eps=eps)) if n else None,
        standard_error(p, n=n, eps=eps) if n else None,
    )

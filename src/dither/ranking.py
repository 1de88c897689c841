"""Lists of the k best arms: how they are drawn, and how probable each list and each arm's place on it is.

The scores of one draw rank all arms. Where arms tie, uniform draws put them in order, one a place: the best arm is
chosen as `decision.choose` chooses, then the best of what is left. With probability eps (the policy's own share and the
floor) the list is a uniform draw without replacement of the arms on offer: each ordered list then has (n-k)!/n! of n.

Exact for lines that one z moves (the interval of z in which the list stands, `propensity.ranks`) and for policies
without chance; else Monte Carlo.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arrays, decision, errors, noise, propensity

MOST = 100_000  # lists that are spelt out
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


def choose(policy: Any, view: Any, chance: tuple, u: np.ndarray, *, k: int, eps: float, mask=None) -> np.ndarray:
    """The lists shown: chance as `draw` gave it, u (..., 2k + 1) uniforms, mask (..., K). -> (..., k) integers"""
    return _best(*decision.ranked(policy, view, chance), u, k=k, eps=eps, mask=mask)


def _best(s: np.ndarray, keys: tuple | None, u: np.ndarray, *, k: int, eps: float, mask) -> np.ndarray:
    """The lists of the k highest scores, but for a share eps of uniform ones."""
    listed = _in_turn(s, u[..., :k], keys=keys, mask=mask)
    if not eps:
        return listed
    uniform = _in_turn(np.zeros_like(s), u[..., k : 2 * k], keys=None, mask=mask)
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


def _in_turn(s: np.ndarray, u: np.ndarray, *, keys, mask: np.ndarray | None) -> np.ndarray:
    left = np.ones(s.shape, dtype=bool) if mask is None else np.broadcast_to(mask, s.shape).copy()
    arms = np.empty(u.shape, dtype=np.int64)
    for r in range(u.shape[-1]):
        arms[..., r] = arrays.argmax(s, u=u[..., r], keys=keys, mask=left)
        _strike(left, arms[..., r])
    return arms


def _strike(left: np.ndarray, arm: np.ndarray) -> None:
    np.put_along_axis(left, arm[..., None], False, axis=-1)


def exact(policy: Any, chance: tuple, view: Any) -> bool:
    """Whether the probabilities of lists are known: one z moves all arms, or nothing does."""
    return not chance or (hasattr(policy, "as_lines") and policy.as_lines(view) is not None)


def chosen(policy: Any, view: Any, arms: np.ndarray, *, eps: float, shape: tuple[int, ...], mask=None) -> np.ndarray:
    """The probability of the ordered list `arms` (..., k) of a policy that is `exact`; shape (..., K). -> (...)"""
    if not hasattr(policy, "as_lines"):
        p = _at(policy.scores(view), arms, mask)
    else:
        m, w, law = policy.as_lines(view)
        if isinstance(law, noise.Points):
            p = np.zeros(arms.shape[:-1])
            for z, weight in _weighted(law):
                p += weight * _at(m + z * w, arms, mask)
        else:
            low, high, shared = propensity.listed(m, w, arms, mask=mask)
            p = noise.mass(law, low, high) / shared
    return (1 - eps) * p + eps * uniform(shape, arms.shape[-1], mask)


def uniform(shape: tuple[int, ...], k: int, mask: np.ndarray | None) -> Any:
    """(n-k)!/n!: the probability of each ordered list of k of n arms on offer."""
    n = np.asarray(shape[-1]) if mask is None else np.sum(mask, axis=-1)
    return 1 / np.prod(n[..., None] - np.arange(k), axis=-1, dtype=float)


def _at(s: np.ndarray, arms: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The probability of the list `arms` where the scores are s (..., K) and only ties leave anything to chance."""
    left = np.ones(s.shape, dtype=bool) if mask is None else np.broadcast_to(mask, s.shape).copy()
    p = np.ones(s.shape[:-1])
    for r in range(arms.shape[-1]):
        p = p * arrays.pick(arrays.share(s, mask=left), arms[..., r], rank=0)
        _strike(left, arms[..., r])
    return p


def _weighted(law: noise.Points) -> Iterator[tuple[float, float]]:
    total = math.fsum(law.weights)
    return ((z, weight / total) for z, weight in zip(law.points, law.weights, strict=True) if weight)


def propensities(
    policy: Any, view: Any, *, k: int, eps: float, mask: np.ndarray | None, shape: tuple[int, ...], lists: bool
) -> ListPropensities:
    """All lists of one request, of a policy that is `exact`; shape (K,)."""
    offered = np.arange(shape[-1]) if mask is None else np.flatnonzero(mask)
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
    """The orders of the first k places, each with its probability; arms by number."""
    if not hasattr(policy, "as_lines"):
        yield 1.0, [offered[group] for group in _ranked(policy.scores(view)[offered], k)]
        return
    m, w, law = policy.as_lines(view)
    m, w = m[offered], w[offered]
    if isinstance(law, noise.Points):
        for z, weight in _weighted(law):
            yield weight, [offered[group] for group in _ranked(m + z * w, k)]
        return
    groups = _groups(m, w)
    first = np.array([group[0] for group in groups])
    lists, low, high = propensity.ranks(m[first], w[first], k=min(k, len(first)))
    for listed, mass in zip(lists, noise.mass(law, low, high).tolist(), strict=True):
        if mass > 0:
            sizes = np.cumsum([0, *(len(groups[i]) for i in listed)])
            yield mass, [offered[groups[i]] for i, before in zip(listed, sizes, strict=False) if before < k]


def _groups(m: np.ndarray, w: np.ndarray) -> Places:
    """The lines (K,) that are one with each other."""
    order = np.argsort(w)
    near = np.diff(w[order]) <= 4 * arrays.RTOL * np.max(np.abs(w))
    crowded = np.zeros(len(w), dtype=bool)
    crowded[order[1:][near]] = crowded[order[:-1][near]] = True
    left, groups = crowded.copy(), [np.array([i]) for i in np.flatnonzero(~crowded)]
    for i in np.flatnonzero(crowded):
        if left[i]:
            one = arrays.ties((m, w), np.intp(i)) & left
            left &= ~one
            groups.append(np.flatnonzero(one))
    return groups


def _ranked(s: np.ndarray, k: int) -> Places:
    """The arms (K,) by score as far as the k-th place, those that tie together."""
    left, places, room = np.ones(len(s), dtype=bool), [], k
    while room > 0:
        one = arrays.share(s, mask=left) > 0
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
    for s, keys in decision.again(policy, view, rng, n=n, arms=arms, dim=dim, redraw=False):
        u, offered = rng.random((len(s), 2 * k + 1)), None if mask is None else np.broadcast_to(mask, s.shape)
        drawn.append(_best(s, keys, u, k=k, eps=eps, mask=offered))
    return np.concatenate(drawn)


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

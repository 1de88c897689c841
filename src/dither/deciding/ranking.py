"""Lists of the k best arms: how they are drawn, and how probable each list and each arm's place on it is.

The scores of one draw rank all arms. The best arm is chosen as `decision.decide` chooses, then the best of the arms
that are left, and so on. Where arms tie, a uniform draw for each place decides. With probability eps (the policy's own
share and the floor together) the list is uniform. Each ordered list of k of n arms on offer then has the probability
(n-k)!/n!.

The probabilities are exact for lines that one z moves, where the list stands in an interval of z (`propensity.ranks`),
and for policies without chance. For all others they are Monte Carlo.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither import noise, propensity
from dither.base import arrays, errors
from dither.deciding import decision, monte_carlo
from dither.deciding.answers import Kind, ListDecision, ListDecisions
from dither.deciding.decision import Aside, Choice, Moment
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.propensity import settled

MOST = 100_000  # at most so many lists are spelt out
Places = list[np.ndarray]  # the arms in order; arms that tie are one array; the last array reaches the k-th place


@dataclass(frozen=True)
class ListPropensities:
    """The probabilities of all lists of k arms for one request."""

    membership: np.ndarray  # (K,)  P(the arm is on the list); sums to k
    lists: np.ndarray  # (L, k) int  the lists that the policy itself draws, the most probable first
    propensity: np.ndarray  # (L,)  their probabilities
    other: float  # P of any one list that is not in `lists`: uniform choices alone show it
    kind: Kind  # of "none", the numbers are NaN
    membership_se: np.ndarray | None  # (K,)  standard errors; None where exact
    propensity_se: np.ndarray | None  # (L,)


def fits(k: Any, request: Request) -> None:
    """Refuse lists longer than what is on offer."""
    errors.at_least("k", k, 1)
    most = int(np.min(request.offered, initial=request.shape[-1]))
    if k > most:
        raise ValueError(f"k must be at most {most}, the number of arms on offer; got {k}")


def check(outcome: decision.Outcome, request: Request) -> None:
    """Refuse a request for which a list is not decided, before anything is drawn."""
    if request.single:
        raise ValueError("a list is decided for a batch, and X is one request: pass bandit.request(X).batched()")
    if request.minimum is not None:
        raise ValueError("minimum is the least probability of one arm, and a list knows none: leave minimum= out")
    outcome.fits(request)


class RankedList(NamedTuple):
    """What is shown is a list of the k best arms in order. The floor is the share of lists that are uniform."""

    k: int

    def fits(self, request: Request) -> None:
        """Refuse lists longer than what is on offer."""
        fits(self.k, request)

    @property
    def uniforms(self) -> int:
        """How many a request spends: k for ties, k for a uniform list, and the coin."""
        return 2 * self.k + 1

    def shown(self, view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> np.ndarray:
        """The lists, (..., k)."""
        rule = decision.ordered(view, arms=demands.shape[-1])
        if rule is None:
            listed = _by_score(decision.scores(view, chance), u[..., : self.k], demands.mask)
        else:
            listed = rule(*chance, u=u[..., : self.k], mask=demands.mask)
        return self.mixed(listed, u, demands)

    def mixed(self, listed: np.ndarray, u: np.ndarray, demands: Demands) -> np.ndarray:
        """The lists shown, of which a share is uniform."""
        if not demands.uniform:
            return listed
        arms, k = demands.shape[-1], self.k
        mask = None if demands.mask is None else np.broadcast_to(demands.mask, (*listed.shape[:-1], arms))
        uniform = arrays.in_turn(lambda u, left: arrays.nth(left, u), u[..., k : 2 * k], arms, mask)
        return np.where(u[..., 2 * k :] < demands.uniform, uniform, listed)

    def exact(self, now: Moment, view: Any, chance: tuple, shown: np.ndarray, demands: Demands) -> np.ndarray | None:
        """The probabilities of the lists, (...); None where the view does not tell them."""
        if self.k == 1 and decision.exact(view):
            return demands.of_one(decision.chosen(view, shown[..., 0], mask=demands.mask), shown[..., 0])
        told = decision.knowable(now.policy) and exact(view, chance)
        return chosen(view, shown, demands) if told else None

    def drawn_again(
        self, now: Moment, view: Any, rng: Any, request: Request, shown: Any, demands: Demands, n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The probability of the lists by n lists that are drawn again, and its standard error, (...) each."""
        counts = [
            np.sum(np.all(frequencies(now, seen, rng, self, demands.row(row), n=n) == shown[row], axis=-1))
            for row, _, seen in monte_carlo.each(now, view, request)
        ]
        hits = np.array(counts)
        return (1 + hits) / (1 + n), monte_carlo.standard_error(hits, n=n)

    def probabilities(
        self, now: Moment, view: Any, request: Request, demands: Demands, aside: Aside, n: int
    ) -> tuple[np.ndarray, np.ndarray | None, Kind]:
        """How probable each arm is on the list of one request, (1, K); their standard errors or None; their kind."""
        every = propensities(now, request.row(0), demands.row((0,)), k=self.k, rng=aside(), n=n, lists=False)
        se = None if every.membership_se is None else every.membership_se[None]
        return every.membership[None], se, every.kind


def _by_score(s: np.ndarray, u: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The k highest scores in order."""
    return settled.in_turn(lambda left: arrays.top(s, mask=left), u, arrays.left(u, s.shape[-1], mask))


def answer(choice: Choice, *, single: bool) -> "ListDecision | ListDecisions":
    """As a user gets it: the lists of a batch, or that of one request out of a batch of one."""
    if not single:
        return ListDecisions(choice.arm, choice.p, choice.kind, choice.se, choice.z)
    se = None if choice.se is None else float(choice.se[0])
    z = None if choice.z is None else choice.z[0]
    return ListDecision(
        choice.arm[0], float(choice.p[0]), choice.kind, se, float(z) if z is not None and not np.ndim(z) else z
    )


def exact(view: Any, chance: tuple) -> bool:
    """Whether the probabilities of lists are known: one z moves all arms, or nothing does."""
    return not chance or decision.lines(view) is not None


def chosen(view: Any, arms: np.ndarray, demands: Demands) -> np.ndarray:
    """The probability of the ordered list `arms` (..., k) of a view that is `exact`: (...)."""
    shape, mask, eps = demands.shape, demands.mask, demands.uniform
    lines = decision.lines(view)
    if lines is None:
        p = settled.of_list(_tied(view), arms, _left(shape, mask))
    elif isinstance(lines.law, noise.Points):
        p = np.zeros(arms.shape[:-1])
        for weight, tied in _at_points(lines):
            p += weight * settled.of_list(tied, arms, _left(shape, mask))
    else:
        low, high, shared = propensity.listed(lines.m, lines.w, arms, slack=lines.slack, mask=mask)
        p = noise.mass(lines.law, low, high) / shared
    return (1 - eps) * p + eps * uniform(demands, arms.shape[-1])


def _tied(view: Any) -> settled.Tied:
    """Which of the arms that are left tie for the first place, for a policy without chance."""
    if decision.exact(view):
        return lambda left: view.propensities(mask=left) > 0
    return lambda left: arrays.top(decision.scores(view, ()), mask=left)


def _left(shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """The arms on offer, (..., K)."""
    return np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape)


def uniform(demands: Demands, k: int) -> Any:
    """(n-k)!/n!: the probability of each ordered list of k of n arms on offer."""
    n = np.asarray(demands.offered)
    return 1 / np.prod(n[..., None] - np.arange(k), axis=-1, dtype=float)


def _at_points(lines: Any) -> Iterator[tuple[float, settled.Tied]]:
    """Each value of z: its probability, and which of the arms that are left tie for the first place there."""
    m, w, slack, law, *_ = lines
    for z, weight in zip(law.points, law.shares.tolist(), strict=True):

        def tied(left: np.ndarray, z: float = z) -> np.ndarray:
            return propensity.shared_at(m, w, z, slack=slack, mask=left) > 0

        if weight:
            yield weight, tied


def propensities(
    now: Moment, request: Request, demands: Demands, *, k: int, rng: Any, n: int, lists: bool
) -> ListPropensities:
    """All lists of one request; n of them are drawn from rng where they are not known."""
    K, view, alone = request.shape[-1], now.view(request), demands.alone
    if alone is not None:
        if not decision.exact(view):
            monte_carlo.counts(now, view, rng, request, None, n=1)  # what the model refuses is refused here too
        arms = np.flatnonzero(demands.possible)[None][: int(lists)]
        return ListPropensities(demands.possible * 1.0, arms, np.ones(len(arms)), 0.0, "exact", None, None)
    if not decision.knowable(now.policy):
        return ListPropensities(np.full(K, np.nan), np.empty((0, k), int), np.empty(0), np.nan, "none", None, None)
    if exact(view, monte_carlo.sample(now, arms=K)):
        return _known(view, demands, k=k, lists=lists)
    seen = now.view(request.batched())
    return _estimated(
        frequencies(now, seen, rng, RankedList(k), demands._replace(uniform=0.0), n=n), demands, k=k, lists=lists
    )


def _known(view: Any, demands: Demands, *, k: int, lists: bool) -> ListPropensities:
    membership = np.zeros(demands.shape)
    spelt: dict[tuple[int, ...], float] = {}
    for mass, places in _orders(view, demands.possible, k):
        room = k
        for group in places:
            membership[group] += mass * min(room, len(group)) / len(group)
            room -= len(group)
        if lists:
            for listed, share in _spelt(places, k):
                spelt[listed] = spelt.get(listed, 0.0) + mass * share
            if len(spelt) > MOST:
                raise ValueError(
                    f"arms tie in so many ways that there are more than {MOST} lists: "
                    f"ask for list_propensities(X, k={k}, lists=False), which gives the membership alone"
                )
    return _answer(membership, spelt, demands, k=k, kind="exact")


def _orders(view: Any, offered: np.ndarray, k: int) -> Iterator[tuple[float, Places]]:
    """The orders of the first k places, each with its probability; arms by number; offered (K,) bool."""
    lines = decision.lines(view)
    if lines is None:
        yield 1.0, settled.places(_tied(view), offered, k)
        return
    m, w, slack, law, *_ = lines
    if isinstance(law, noise.Points):
        for weight, tied in _at_points(lines):
            yield weight, settled.places(tied, offered, k)
        return
    sets = propensity.settle(m[None], w[None], slack=slack or propensity.rounded(m, w, offered), mask=offered[None])
    of = sets.of[0]
    groups = [np.flatnonzero(of == i) for i in range(len(sets.size))]
    first = np.array([group[0] for group in groups])
    lists, low, high = propensity.ranks(sets.m[0, first], sets.w[0, first], k=min(k, len(first)))
    for listed, mass in zip(lists, noise.mass(law, low, high).tolist(), strict=True):
        if mass > 0:
            sizes = np.cumsum([0, *(len(groups[i]) for i in listed)])
            yield mass, [groups[i] for i, before in zip(listed, sizes, strict=False) if before < k]


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


def frequencies(now: Moment, view: Any, rng: Any, outcome: RankedList, demands: Demands, *, n: int) -> np.ndarray:
    """n lists of one request, (n, k), of which the demands' share is uniform."""
    arms, parts = demands.shape[-1], []
    rule = decision.ordered(view, arms=arms)
    for size, show in monte_carlo.drawn(now, view, rng, n=n, arms=arms, rule=rule, by_score=_by_score):
        u = rng.random((size, outcome.uniforms))
        offered = None if demands.mask is None else np.broadcast_to(demands.mask, (size, arms))
        parts.append(outcome.mixed(show(u=u[:, : outcome.k], mask=offered), u, demands))
    return np.concatenate(parts)


def _estimated(drawn: np.ndarray, demands: Demands, *, k: int, lists: bool) -> ListPropensities:
    """All lists of one request from draws (n, k)."""
    n = len(drawn)
    membership = np.bincount(drawn.ravel(), minlength=demands.shape[-1]) / n
    different, hits = np.unique(drawn[: n if lists else 0], axis=0, return_counts=True)
    shares = {tuple(listed): count / n for listed, count in zip(different.tolist(), hits.tolist(), strict=True)}
    return _answer(membership, shares, demands, k=k, kind="monte_carlo", n=n)


def _answer(
    membership: np.ndarray, shares: dict[tuple[int, ...], float], demands: Demands, *, k: int, kind: Kind, n: int = 0
) -> ListPropensities:
    """shares : of the lists, without uniform ones; n : how many were drawn, 0: none."""
    eps, offered = demands.uniform, demands.possible
    order = sorted(shares, key=lambda listed: (-shares[listed], listed))
    lists, p = np.array(order, dtype=np.int64).reshape(-1, k), np.array([shares[listed] for listed in order])
    other = eps * float(uniform(demands, k))
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

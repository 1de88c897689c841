"""`Choice`: what was decided, with all that its row in a log needs. One driver for one request, a batch and a list.

view      what the policy sees of the request, before chance enters
chance    z, and uniforms that decide among arms that tie and that share what is uniform
demands   the floor, minima, a baseline: they may move the choice
p         the probability of what is shown: from the view, else from decisions that are drawn again, else unknown
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither.base import arrays
from dither.deciding import decision, monte_carlo
from dither.deciding.decision import Moment
from dither.deciding.demands import Demands
from dither.deciding.request import Request


@dataclass(frozen=True, slots=True)
class Decision:
    """What `choose` answers to one request."""

    arm: int
    propensity: float  # P(arm) at the moment of the decision; NaN where the kind is "none"
    propensity_kind: str  # "exact", "monte_carlo", "estimated" or "none"
    propensity_se: float | None  # standard error; None where exact
    z: float | np.ndarray | None = None  # what was drawn: one number for all arms, or one for each arm, (K,)


@dataclass(frozen=True, slots=True)
class Decisions:
    """What `choose` answers to B requests."""

    arm: np.ndarray  # (B,) int
    propensity: np.ndarray  # (B,)  NaN where it is not known
    propensity_kind: str  # as of `Decision`, of all that are not certain: an arm that alone can be shown has 1
    propensity_se: np.ndarray | None  # (B,)  0 where certain; None where exact
    z: np.ndarray | None = None  # (B,) or (B, K)


class Streams(NamedTuple):
    """Where the chance of a decision comes from."""

    chance: np.random.Generator  # the policy's
    ties: np.random.Generator  # uniforms
    aside: Callable[[], np.random.Generator]  # for Monte Carlo: a stream that is of this moment, and of no later one


class Outcome(Protocol):
    """What is shown: one arm (`ONE`), or a list of k arms (`ranking.List`)."""

    @property
    def uniforms(self) -> int:
        """How many a request spends."""

    def shown(self, view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> np.ndarray:
        """What is shown: u (..., uniforms) -> (...), or (..., k)."""

    def exact(self, now: Moment, view: Any, chance: tuple, shown: np.ndarray, demands: Demands) -> np.ndarray | None:
        """The probability of what is shown, (...); None where the view does not tell it."""

    def hits(self, now: Moment, view: Any, rng: Any, request: Request, shown: Any, demands: Demands, n: int) -> Any:
        """How often n decisions, drawn again, show the same, (...)."""


class Arm:
    """One arm."""

    uniforms = decision.UNIFORMS

    def shown(self, view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> np.ndarray:
        """The arm, (...)."""
        return demands.drawn(decision.best(view, chance, u[..., 0], mask=demands.mask), u)

    def exact(self, now: Moment, view: Any, chance: tuple, shown: np.ndarray, demands: Demands) -> np.ndarray | None:
        """Its probability."""
        if not decision.exact(view):
            return None
        if demands.safe is not None:
            return arrays.pick(demands.of(decision.propensities(view, mask=demands.mask)), shown, rank=0)
        return demands.of_one(decision.chosen(view, shown, mask=demands.mask), shown)

    def hits(self, now: Moment, view: Any, rng: Any, request: Request, shown: Any, demands: Demands, n: int) -> Any:
        """How often it is drawn again."""
        return arrays.pick(monte_carlo.counts(now, view, rng, request, demands, n=n), shown, rank=0)


ONE = Arm()


class Choice:
    """What was decided of a request. It is valid until the bandit learns more."""

    __slots__ = ("arm", "demands", "kind", "now", "p", "parts", "request", "se", "streams", "view", "z")

    def __init__(
        self,
        request: Request,
        demands: Demands,
        shown: tuple[Any, ...],
        now: Moment | None = None,
        view: Any = None,
        streams: Streams | None = None,
    ) -> None:
        """shown : arm, propensity, kind, standard error, z; now, view, streams : None where it was made elsewhere."""
        self.request, self.demands, self.now, self.view, self.streams = request, demands, now, view, streams
        self.parts: list[Choice] = []  # of a batch whose requests were decided in turn
        self.arm, self.p, self.kind, self.se, self.z = shown

    @property
    def decision(self) -> Decision | Decisions:
        """As a user gets it."""
        kind = Decision if len(self.request.shape) == 1 else Decisions
        return kind(self.arm, self.p, self.kind, self.se, self.z)

    @property
    def kinds(self) -> list[str]:
        """The kind of each propensity, (size,): what is certain is exact, whatever the others are."""
        alone = None if self.kind == "exact" else self.demands.alone
        if alone is None:
            return [self.kind] * self.request.size
        certain = np.ravel(alone & (np.asarray(self.p) == 1))
        return ["exact" if one else self.kind for one in certain.tolist()]

    def probabilities(self, *, draws: int = 10_000) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Of all arms, from the view that chose: p (..., K), their standard errors or None, and their kind."""
        if self.parts:
            p, se, kinds = zip(*(part.probabilities(draws=draws) for part in self.parts), strict=True)
            return np.stack(p), None if None in se else np.stack(se), kinds[0]
        if self.now is None or self.streams is None:
            raise TypeError("the probabilities of a decision that was made elsewhere are not known here")
        view = self.now.view(self.request) if self.view is None else self.view
        return probabilities(self.now, view, self.request, self.demands, self.streams.aside, n=draws)


def decide(
    now: Moment, request: Request, demands: Demands, streams: Streams, *, draws: int, outcome: Outcome = ONE
) -> Choice:
    """Choose for each request.

    draws : how many decisions are drawn again for a propensity that the view does not tell; 0: it is not known then
    outcome : what is chosen: an arm, or a list (for a batch, or for one request as a batch of one)
    """
    view, single = now.view(request), len(request.shape) == 1
    size = 1 if single else request.shape[0]
    chance = decision.draw(now.policy, streams.chance, size, arms=request.shape[-1], dim=now.dim)
    u = streams.ties.random(outcome.uniforms if single else (size, outcome.uniforms))
    if single:
        chance = tuple([kind[0] for kind in chance])
        quick = _quick(view, chance, u, demands)
        if quick is not None:
            z = decision.z(view, chance)
            return Choice(request, demands, (*quick, "exact", None, z), now, view, streams)
    shown, z = outcome.shown(view, chance, u, demands), decision.z(view, chance)
    p, se, kind = outcome.exact(now, view, chance, shown, demands), None, "exact"
    alone = demands.alone
    if p is None and alone is not None and np.all(alone):
        p = np.ones(request.shape[:-1])
    elif p is None and draws and decision.knowable(now.policy):
        # Whole decisions are drawn, with the uniform coin. To add its known share and then count what was shown would
        # overstate small probabilities. What was shown counts as one more draw, so no estimate is 0.
        hits = outcome.hits(now, view, streams.aside(), request, shown, demands, draws)
        p, se, kind = (1 + hits) / (1 + draws), monte_carlo.standard_error(hits, n=draws), "monte_carlo"
    elif p is None:
        p, kind = np.full(request.shape[:-1], np.nan), "none"
    if alone is not None:
        p, se = np.where(alone, 1.0, p), None if se is None else np.where(alone, 0.0, se)
    answer: tuple[Any, ...] = (shown, p, kind, se, z)
    if single:
        answer = (int(shown), float(p), kind, None if se is None else float(se), z)
    return Choice(request, demands, answer, now, view, streams)


def _quick(view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> tuple[int, float] | None:
    """The arm of one request and its probability at once; None: they must be found one after the other."""
    if demands.safe is not None or not decision.decides(view):
        return None
    arm, p = view.decide(*chance, u=u[0], mask=demands.mask)
    if not demands.uniform and demands.outright is None:
        return arm, p
    moved = int(demands.drawn(arm, u))
    return (arm, float(demands.of_one(p, arm))) if moved == arm else None


def probabilities(
    now: Moment,
    view: Any,
    request: Request,
    demands: Demands,
    aside: Callable[[], np.random.Generator],
    *,
    n: int,
    log: bool = False,
) -> tuple[np.ndarray, np.ndarray | None, str]:
    """The probabilities of all arms (..., K), or their logarithms; their standard errors or None; their kind."""
    if decision.exact(view):
        rule, of = (decision.log_propensities, demands.of_logs) if log else (decision.propensities, demands.of)
        return of(rule(view, mask=request.mask)), None, "exact"
    alone, se = demands.alone, None
    if alone is not None and np.all(alone):
        monte_carlo.counts(now, view, aside(), request, None, n=1)  # what the model refuses is refused here too
        p, kind = np.asarray(demands.possible, dtype=np.float64), "exact"
    elif decision.knowable(now.policy):
        p, se = monte_carlo.estimate(now, view, aside(), request, demands, n=n)
        kind = "monte_carlo"
    else:
        p, kind = np.full(request.shape, np.nan), "none"
        if alone is not None:
            p = np.where(alone[..., None], demands.possible, p)
    if log:
        se = None if se is None else se / np.where(p > 0, p, np.nan)
        p = arrays.log(p)
    return p, se, kind


def joined(choices: list[Choice], request: Request) -> Choice:
    """The choices of single requests, which came one after the other, as those of a batch."""
    kinds = {one.kind for one in choices}
    kind = "exact" if kinds == {"exact"} else "none" if "none" in kinds else "monte_carlo"
    p = np.array([one.p for one in choices], dtype=np.float64)
    se = np.array([one.se or 0.0 for one in choices]) if kind == "monte_carlo" else None
    z = None if choices[0].z is None else np.array([one.z for one in choices])
    arm = np.array([one.arm for one in choices], dtype=np.int64)
    masks = _stacked([one.demands.mask for one in choices], absent=np.ones(request.shape[1:], dtype=bool))
    outright, safe, baseline = (
        _stacked(list(parts))
        for parts in zip(*((d.outright, d.safe, d.baseline) for d in (one.demands for one in choices)), strict=True)
    )
    demands = Demands(request.shape, masks, choices[0].demands.uniform, outright, safe, baseline)
    whole = Choice(request._replace(mask=masks), demands, (arm, p, kind, se, z))
    whole.parts = choices
    return whole


def _stacked(parts: list[Any], absent: Any = None) -> Any:
    """Arrays of single requests as one of a batch; absent : for a request without one. None where all are without."""
    if all(part is None for part in parts):
        return None
    return np.stack([absent if part is None else part for part in parts])

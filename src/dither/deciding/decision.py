"""One decision, for one request or for many at once. One driver serves a request, a batch and a list.

    view      what the policy sees of the request, before chance enters
    chance    all that the policy draws, and uniforms that decide among arms that tie and share what is uniform
    demands   the floor, minima, a baseline: they may move the choice
    p         the probability of what is shown: from the view, else from decisions that are drawn again, else unknown

What `draw` makes does not depend on what was learnt, and nothing else draws. One request may be for the compiled step
(`stepping`), which a bandit asks first: then there is no view until somebody asks for it. A view is made once, for one
request or for many. It answers all that is asked about the choice. What is shown is an `Outcome`: one arm (`one_arm`),
or a list (`ranking`). A `Choice` is what was decided, with all that its row in a log needs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.base.counter import CounterGenerator
from dither.base.streams import Uniforms
from dither.deciding import inputs, stepping
from dither.deciding.answers import Decision, Decisions, Kind
from dither.deciding.demands import Demands
from dither.deciding.policy import PAGE, scoreless
from dither.deciding.request import Request
from dither.models.adapting import adapted
from dither.models.model import link
from dither.policies.valued import Paid

UNIFORMS = stepping.UNIFORMS  # what a request for one arm spends


class Moment(NamedTuple):
    """What a decision at one moment depends on, besides the request."""

    policy: Any
    model: Any
    state: Any
    t: int  # the round
    dim: int  # of θ

    def view(self, request: Request) -> Any:
        """What the policy sees of a request."""
        seen = view(self.policy, self.model, self.state, request.X, t=self.t)
        return seen if request.values is None else valued(seen, request.values, self.model)


Aside = Callable[[], np.random.Generator]  # gives a stream for Monte Carlo: of this moment, and of no later one


class Basis:
    """What a choice was made from. A view that the choice did not need is made when it is asked for."""

    __slots__ = ("_view", "aside", "now", "outcome", "request")

    def __init__(self, now: Moment, request: Request, outcome: "Outcome", aside: Aside, view: Any = None) -> None:
        self.now = now
        self.request = request
        self.outcome = outcome
        self.aside = aside
        self._view = view

    @property
    def view(self) -> Any:
        """What the policy saw of the request."""
        if self._view is None:
            self._view = self.now.view(self.request)
        return self._view


class Outcome(Protocol):
    """What is shown: one arm (`one_arm.ONE`), or a list of k arms (`ranking.RankedList`)."""

    def fits(self, request: Request) -> None:
        """Raise ValueError where this cannot be shown for a batch of requests. Nothing is drawn yet."""

    @property
    def uniforms(self) -> int:
        """How many a request spends."""

    def shown(self, view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> np.ndarray:
        """What is shown: u (..., uniforms) -> (...), or (..., k)."""

    def exact(self, now: Moment, view: Any, chance: tuple, shown: np.ndarray, demands: Demands) -> np.ndarray | None:
        """The probability of what is shown, (...); None where the view does not tell it."""

    def drawn_again(
        self, now: Moment, view: Any, rng: Any, request: Request, shown: Any, demands: Demands, n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The probability of what is shown by n decisions that are drawn again, and its standard error, (...) each."""

    def probabilities(
        self, now: Moment, view: Any, request: Request, demands: Demands, aside: Aside, n: int
    ) -> tuple[np.ndarray, np.ndarray | None, Kind]:
        """The probabilities of all arms (..., K), their standard errors or None, and their kind."""


class Choice:
    """What was decided of a request. It is valid until the bandit learns more."""

    __slots__ = ("arm", "basis", "demands", "kind", "learnt", "p", "parts", "request", "se", "z")

    def __init__(
        self,
        request: Request,
        demands: Demands,
        shown: tuple[Any, ...],
        basis: Basis | None = None,
        parts: Sequence["Choice"] = (),
        learnt: int | None = None,
    ) -> None:
        """What is shown: arm, propensity, kind, standard error, z.

        basis : None where it was made elsewhere; parts : of a batch whose requests were decided in turn
        learnt : how many rewards the policy had learnt, where it was made elsewhere; None: nobody says
        """
        self.request = request
        self.demands = demands
        self.basis = basis
        self.parts = parts
        self.arm, self.p, self.kind, self.se, self.z = shown
        if parts:
            learnt = parts[0].learnt  # nothing is learnt between parts
        self.learnt: int | None = learnt if basis is None else basis.now.t - 1

    @property
    def decision(self) -> Decision | Decisions:
        """As a user gets it."""
        kind = Decision if len(self.request.shape) == 1 else Decisions
        return kind(self.arm, self.p, self.kind, self.se, self.z, self.learnt)

    @property
    def floor(self) -> Any:
        """The largest f for which every arm on offer surely has f/n: a number, or (...)."""
        demands = self.demands
        return demands.uniform if demands.outright is None and demands.safe is None else demands.floor

    @property
    def kinds(self) -> list[str]:
        """The kind of each propensity, (size,): what is certain is exact, whatever the others are."""
        alone = None if self.kind == "exact" else self.demands.alone
        if alone is None:
            return [self.kind] * self.request.size
        certain = np.ravel(alone & (np.asarray(self.p) == 1))
        return ["exact" if one else self.kind for one in certain.tolist()]

    def probabilities(self, *, draws: int = 10_000) -> tuple[np.ndarray, np.ndarray | None, Kind]:
        """Of all arms, from the view that chose: p (..., K), their standard errors or None, and their kind."""
        if self.parts:
            p, se, kinds = zip(*(part.probabilities(draws=draws) for part in self.parts), strict=True)
            sure = all(error is None for error in se)
            errors = [np.zeros(self.request.shape[-1]) if error is None else error for error in se]
            return np.stack(p), None if sure else np.stack(errors), weakest(kinds)
        if self.basis is None:
            raise TypeError("the probabilities of a decision that was made elsewhere are not known here")
        basis = self.basis
        return basis.outcome.probabilities(basis.now, basis.view, self.request, self.demands, basis.aside, draws)


def weakest(kinds: Iterable[Kind]) -> Kind:
    """The kind of the propensities of a batch, from those of its requests."""
    each = {*kinds}
    return "none" if "none" in each else "monte_carlo" if "monte_carlo" in each else "exact"


def decide(
    now: Moment,
    request: Request,
    demands: Demands,
    outcome: Outcome,
    chance: np.random.Generator,
    ties: Uniforms,
    *,
    aside: Aside,
    draws: int,
    drawn: stepping.Drawn | None = None,
) -> tuple[tuple[Any, ...], Any]:
    """What is shown for each request, and the view that says so: chance and ties are streams.

    -> (arm, propensity, kind, standard error, z), as of `Choice`; the view
    draws : how many decisions are drawn again for a propensity that the view does not tell; 0: it is not known then
    outcome : what is chosen: an arm, or a list (for a batch, or for one request as a batch of one)
    drawn : what was drawn already, where the compiled step was asked and did not tell
    """
    view, single, size = now.view(request), len(request.shape) == 1, request.size
    if drawn is None:
        each = draw(now.policy, chance, size, arms=request.shape[-1], dim=now.dim)
        u = ties.random(outcome.uniforms if single else (size, outcome.uniforms))
        drawn = tuple([kind[0] for kind in each]) if single else each, u
    each, u = drawn
    if single:
        quick = _quick(view, each, u, demands)
        if quick is not None:
            return (*quick, "exact", None, moved_by(view, each)), view
    shown, z = outcome.shown(view, each, u, demands), moved_by(view, each)
    p, se, kind = outcome.exact(now, view, each, shown, demands), None, "exact"
    alone = demands.alone
    if p is None and alone is not None and np.all(alone):
        p = np.ones(request.shape[:-1])
    elif p is None and draws and knowable(now.policy):
        # What was shown counts as one more draw, so no estimate is 0.
        p, se = outcome.drawn_again(now, view, aside(), request, shown, demands, draws)
        kind = "monte_carlo"
    elif p is None:
        p, kind = np.full(request.shape[:-1], np.nan), "none"
    if alone is not None:
        p, se = np.where(alone, 1.0, p), None if se is None else np.where(alone, 0.0, se)
    answer: tuple[Any, ...] = (shown, p, kind, se, z)
    if single:
        answer = (int(shown), float(p), kind, None if se is None else float(se), z)
    return answer, view


def _quick(view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> tuple[int, float] | None:
    """The arm of one request and its probability at once; None: they must be found one after the other."""
    if demands.safe is not None or not decides(view):
        return None
    arm, p = view.decide(*chance, u=u[0], mask=demands.mask)
    if not demands.uniform and demands.outright is None:
        return arm, p
    if demands.outright is None and u[1] >= demands.uniform:
        return arm, float(demands.of_one(p, arm))
    return (arm, float(demands.of_one(p, arm))) if int(demands.drawn(arm, u)) == arm else None


# The parts of a policy and of a view, each with its default


def view(policy: Any, model: Any, state: Any, X: Array, *, t: int) -> Any:
    """What the policy sees in round t. Where the model makes features, that is the linear model `beneath` them."""
    if "beneath" in model.abilities:
        model, state, X = model.beneath(state, X)
        model = adapted(model)
    return policy.view(model, state, X, t=t)


def valued(view: Any, values: np.ndarray, model: Any) -> Any:
    """The view where values (..., K) times expected rewards decide. Default: those of the rewards of its scores.

    Raises TypeError where the scores do not say what is shown, or where rewards are no link of the scores.
    """
    if not model.separate:
        raise TypeError("values need expected rewards of each arm by itself, and a softmax is over all: take 'sigmoid'")
    if hasattr(view, "valued"):
        return view.valued(values, link(model))
    if chooses(view):
        raise TypeError(f"{type(view).__name__} chooses by a rule of its own: give it valued(v, link) ({PAGE})")
    return Paid(view, values, link(model))


def draw(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """What the policy draws for n requests. It must be a tuple: an array would be read as a tuple of its rows."""
    chance = policy.draw(rng, n, arms=arms, dim=dim)
    together = type(rng) is CounterGenerator and rng.lead  # of all runs, an axis in front
    if type(chance) is tuple:
        for kind in chance:
            if (kind.shape[1] if together else len(kind)) != n:
                break
        else:
            return chance
    name = type(policy).__name__
    raise TypeError(f"{name}.draw must return a tuple of arrays with {n} entries each, as in 'return (z,)'")


def share(policy: Any, t: int) -> float:
    """The policy's own share of uniform choices in round t. Default: 0."""
    return policy.eps(t) if hasattr(policy, "eps") else 0.0


def asks(policy: Any) -> bool:
    """Whether the scores ask the model, which may refuse what was drawn. Default: no."""
    return getattr(policy, "asks", False)


def knowable(policy: Any) -> bool:
    """Whether drawing decisions again shows their probabilities. Default: yes; no where the chance is `spent`."""
    return not getattr(policy, "spent", False)


def law(policy: Any) -> Any:
    """The law that a policy draws from, by the name of its setting: `noise` or `law`. Default: None, not known."""
    return getattr(policy, "noise", getattr(policy, "law", None))


def scores(view: Any, chance: tuple) -> Array:
    """The scores, (..., K)."""
    rule = getattr(view, "scores", None)
    if rule is None:
        raise scoreless(view)
    return rule(*chance)


def best(view: Any, chance: tuple, u: Array, *, mask: Array | None) -> Array:
    """The arms that the policy itself shows: u (...) for ties. -> (...) integers. Default: by score."""
    if chooses(view):
        return view.best(*chance, u=u, mask=mask)
    return arrays.argmax(scores(view, chance), u=u, mask=mask)


def moved_by(view: Any, chance: tuple) -> Any:
    """The scalar that moved the arms, a float or (...); (..., K) where each arm has one. Default: None."""
    z = view.z(*chance) if hasattr(view, "z") else None
    return float(z) if isinstance(z, float) or (z is not None and np.ndim(z) == 0) else z


def curves(view: Any) -> Any:
    """The function of z and mask that says which arms are the best at z, where no lines say it. Default: None."""
    return getattr(view, "at", None)


def mean_and_width(view: Any) -> tuple[Array | None, Array | None]:
    """Mean and width of each arm. Default: None and None."""
    return (view.m, view.w) if hasattr(view, "m") and hasattr(view, "w") else (None, None)


def lines(view: Any) -> Any:
    """The lines that one z moves. Default: None."""
    return getattr(view, "lines", None)


def decides(view: Any) -> bool:
    """Whether the view tells the arm of one request and its probability at once. Default: no."""
    return hasattr(view, "decide")


def chooses(view: Any) -> bool:
    """Whether the view says itself which arm is shown. Default: no, the arm of the highest score is."""
    return hasattr(view, "best")


def ordered(view: Any, *, arms: int) -> Any:
    """The rule that puts the k best arms in order. Default: `best`, then the best of what is left; None: by score."""
    if hasattr(view, "in_turn") or not chooses(view):
        return getattr(view, "in_turn", None)

    def rule(*chance: Array, u: Array, mask: Array | None = None) -> Array:
        return arrays.in_turn(lambda u, left: view.best(*chance, u=u, mask=left), u, arms, mask)

    return rule


def redrawn(view: Any) -> Any:
    """The rule that draws decisions again where that is cheaper. Default: None, they are drawn and scored."""
    return getattr(view, "redraw", None)


def numbers(view: Any) -> int:
    """How many numbers one arm takes while it is scored. Default: 1."""
    return getattr(view, "numbers", 1)


def exact(view: Any) -> bool:
    """Whether the choice probabilities are known. Default: no."""
    return getattr(view, "propensities", None) is not None


def propensities(view: Any, *, mask: np.ndarray | None = None) -> np.ndarray:
    """The probabilities of all arms (..., K) of a view that is `exact`, refused where they do not sum to 1.

    Nothing later would notice such a mistake in a user's own policy.
    """
    p = view.propensities(mask=mask)
    total = np.sum(p, axis=-1)
    if not np.all(np.abs(total - 1) < inputs.ROUNDING):
        wrong = float(np.ravel(total)[np.argmax(~(np.abs(np.ravel(total) - 1) < inputs.ROUNDING))])
        name = getattr(view.propensities, "__qualname__", "propensities")
        raise ValueError(f"{name} must sum to 1 over the arms on offer, got a sum of {wrong:g}: divide by it ({PAGE})")
    return p


def log_propensities(view: Any, *, mask: np.ndarray | None = None) -> np.ndarray:
    """Their logarithms, (..., K). Default: those of the probabilities, -inf for those that underflow."""
    if hasattr(view, "log_propensities"):
        return view.log_propensities(mask=mask)
    return arrays.ln(view.propensities(mask=mask))


def chosen(view: Any, arm: np.ndarray, *, mask: np.ndarray | None = None) -> np.ndarray:
    """The probability of `arm` (...) of a view that is `exact`. Default: taken from `propensities`."""
    if hasattr(view, "chosen"):
        return view.chosen(arm, mask=mask)
    return arrays.pick(propensities(view, mask=mask), arm, rank=0)

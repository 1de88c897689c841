"""One decision, for one request or for many at once. And what a policy is, for users who write their own.

    class Mine:  # a frozen dataclass of its settings
        needs = frozenset({"mean"})                            # the abilities that it asks of a model, by name
        def draw(self, rng, n, *, arms, dim): ...              # all chance of n requests
        def view(self, model, state, X, *, t): ...             # what there is before chance enters

    class Seen(NamedTuple):  # the view, or one of those in `policies.views`
        m: Array
        def scores(self, *chance): ...                         # the arm of the highest score is shown

A decision is these three steps. What `draw` makes does not depend on what was learnt, and nothing else draws. A view is
made once, for one request or for many. It answers all that is asked about the choice: the scores, and the probabilities
where it can tell them.

`Policy` and `View` are the required parts, `Settings` and `Answers` the optional ones. The functions of this file are
the only place that looks whether an optional part is there, and each function states the default. `check` refuses what
does not fit, before anything is drawn or learnt.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.deciding import inputs
from dither.deciding.request import Request
from dither.models import model as contract
from dither.policies.valued import Paid

PAGE = "docs/adding-a-policy.md"
UNIFORMS = 3  # what a request spends: one for ties, one for the coin of eps, one for the uniform arm


class Policy(Protocol):
    """The required part. Shapes: d features, K arms, `...` the requests or the replications."""

    needs: frozenset[str]  # names of abilities, as `models.model.Able` lists them

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """The chance of n requests among K = arms: a tuple of arrays whose first axis is n; () for none.

        dim is the dimension of θ. n requests at once draw what n requests in turn draw.
        """

    def view(self, model: Any, state: Any, X: Array, *, t: int) -> Any:
        """What there is before chance enters, in round t: X (..., K, d), or one context (..., d) with slots."""


class View(Protocol):
    """The required part of a view: what `Policy.view` returns, a NamedTuple."""

    def scores(self, *chance: Array) -> Array:
        """The scores of the arms, (..., K): chance as `draw` made it, with `...` in place of the leading n."""


class Settings(Protocol):
    """The optional parts of a policy."""

    asks: bool  # True: the scores ask the model, which may refuse what was drawn; then the draws are given back
    spent: bool  # True: the chance is spent in training, so no draw of a decision shows its probability

    def eps(self, t: int) -> float:
        """The share of uniform choices in round t."""

    def refuse(self, model: Any, *, dim: int) -> str | None:
        """Why the policy cannot run on a model that gives all it needs, with d = dim features; None: it can."""


class Answers(Protocol):
    """The optional parts of a view. mask (..., K), True: on offer; u are uniforms that decide among tied arms."""

    lines: Any  # `policies.views.Lines` m + z w that one z of a known law moves; None where there are none
    numbers: int  # how many numbers one arm takes while it is scored

    def best(self, *chance: Array, u: Array, mask: Array | None = None) -> Array:
        """The arms shown: u (...) -> (...) integers."""

    def in_turn(self, *chance: Array, u: Array, mask: Array | None = None) -> Array:
        """The k arms of a list in order: u (..., k) -> (..., k) integers."""

    def decide(self, *chance: Array, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm of one request and its probability at once: the same as `best` and `chosen`, quicker."""

    def propensities(self, *, mask: Array | None = None) -> Array:
        """The exact choice probabilities, (..., K), 0 where not on offer."""

    def log_propensities(self, *, mask: Array | None = None) -> Array:
        """Their logarithms, right where the probabilities underflow."""

    def chosen(self, arm: Array, *, mask: Array | None = None) -> Array:
        """The probability of `arm` (...), where that is cheaper than the probabilities of all arms: (...)."""

    def z(self, *chance: Array) -> Array:
        """The scalar that moved all arms (...), or one for each arm (..., K). It becomes `Decision.z`."""

    def valued(self, v: Array, link: Any) -> Any:
        """The view where the arms have values v (..., K): the highest v μ(score) is shown, μ that of the link."""

    def redraw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> Array:
        """The scores (n, K) of n decisions on the view of one request, where that is cheaper than to draw them."""


REQUIRED = ("needs", "draw", "view")


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


def check(policy: Any, model: Any, *, dim: int) -> None:
    """Refuse what is no policy or no model, and a policy that asks for what the model does not give.

    Raises TypeError that lists all that is missing; ValueError where nothing is missing and the policy refuses.
    """
    of_model, of_policy = contract.faults(model), faults(policy)
    lacking = [] if isinstance(policy, type) else sorted(_needs(policy) - contract.abilities(model))
    wrong = [*of_policy, *of_model]
    if lacking:
        wrong.append(str(errors.lacks(model, *lacking, policy=policy)))
    if hidden := [name for name in lacking if callable(getattr(model, name, None))]:
        wrong.append(f"{type(model).__name__} has the method {', '.join(hidden)}: name it in its `abilities`")
    if wrong:
        pages = " and ".join([PAGE] * bool(of_policy) + [contract.PAGE] * bool(of_model or lacking))
        raise TypeError(f"{'; '.join(wrong)} ({pages})")
    reason = policy.refuse(model, dim=dim) if hasattr(policy, "refuse") else None
    if reason is not None:
        raise ValueError(reason)


def faults(policy: Any) -> list[str]:
    """The reasons why `policy` is no policy, in words; [] where it is one."""
    if isinstance(policy, type):
        return [f"a policy is an instance: pass {policy.__name__}() for {policy.__name__}"]
    name, found = type(policy).__name__, []
    if lacking := [part for part in REQUIRED if not hasattr(policy, part)]:
        found.append(f"{name} is no policy: it lacks {', '.join(lacking)}")
    if not isinstance(getattr(policy, "needs", frozenset()), (frozenset, set)):
        found.append(f'{name}.needs must be a frozenset of names, as in frozenset({{"mean"}}); got {policy.needs!r}')
    return found


def _needs(policy: Any) -> frozenset[str]:
    """The abilities that the policy asks for; none where `needs` is no set of names, which `faults` says."""
    needs = getattr(policy, "needs", None)
    return frozenset(needs) if isinstance(needs, (frozenset, set)) else frozenset()


def view(policy: Any, model: Any, state: Any, X: Array, *, t: int) -> Any:
    """What the policy sees in round t. Where the model makes features, that is the linear model `beneath` them."""
    if "beneath" in model.abilities:
        model, state, X = model.beneath(state, X)
    return policy.view(model, state, X, t=t)


def valued(view: Any, values: np.ndarray, model: Any) -> Any:
    """The view where values (..., K) times expected rewards decide. Default: those of the rewards of its scores.

    Raises TypeError where the scores do not say what is shown, or where rewards are no link of the scores.
    """
    if getattr(model, "output", None) == "softmax":
        raise TypeError("values need expected rewards of each arm by itself, and a softmax is over all: take 'sigmoid'")
    link = contract.link(model)
    if hasattr(view, "valued"):
        return view.valued(values, link)
    if chooses(view):
        raise TypeError(f"{type(view).__name__} chooses by a rule of its own: give it valued(v, link) ({PAGE})")
    return Paid(view, values, link)


def draw(policy: Any, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
    """What the policy draws for n requests. It must be a tuple: an array would be read as a tuple of its rows."""
    chance = policy.draw(rng, n, arms=arms, dim=dim)
    if type(chance) is not tuple or [kind for kind in chance if len(kind) != n]:
        name = type(policy).__name__
        raise TypeError(f"{name}.draw must return a tuple of arrays with {n} entries each, as in 'return (z,)'")
    return chance


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
        raise TypeError(f"a view must have scores(*chance), and {type(view).__name__} has not ({PAGE})")
    return rule(*chance)


def look(policy: Any, view: Any, chance: tuple, *, lead: tuple[int, ...], arms: int) -> None:
    """Refuse a policy of the user's that does not score every arm of the requests (*lead,). Those of the library do.

    Scores that lack leading axes are the same for all requests.
    """
    if type(policy).__module__.partition(".")[0] == "dither":
        return
    name, wanted = type(policy).__name__, (*lead, arms)
    cause: ValueError | None = None
    try:
        shape = tuple(scores(view, chance).shape)
    except ValueError as error:  # as numpy's "operands could not be broadcast together"
        if "shape" not in str(error) and "dimension" not in str(error):
            raise
        cause, said = error, f"they end with {str(error).strip()!r}"
    else:
        if len(shape) <= len(wanted) and shape == wanted[len(wanted) - len(shape) :] and shape:
            return
        said = f"got shape {shape}"
    drawn = ", ".join(str(tuple(kind.shape)) for kind in chance)
    cure = f": draw gave chance of the shapes {drawn}. One number a request is of shape (n,), as rng.random(n)"
    raise ValueError(
        f"{name} must score each of the {arms} arms: scores {wanted}, {said}{cure if chance else ''} ({PAGE})"
    ) from cause


def best(view: Any, chance: tuple, u: Array, *, mask: Array | None) -> Array:
    """The arms that the policy itself shows: u (...) for ties. -> (...) integers. Default: by score."""
    if chooses(view):
        return view.best(*chance, u=u, mask=mask)
    return arrays.argmax(scores(view, chance), u=u, mask=mask)


def z(view: Any, chance: tuple) -> Any:
    """The scalar that moved the arms, a float or (...); (..., K) where each arm has one. Default: None."""
    z = view.z(*chance) if hasattr(view, "z") else None
    return float(z) if z is not None and np.ndim(z) == 0 else z


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
    known = hasattr(view, "log_propensities")
    return view.log_propensities(mask=mask) if known else arrays.log(view.propensities(mask=mask))


def chosen(view: Any, arm: np.ndarray, *, mask: np.ndarray | None = None) -> np.ndarray:
    """The probability of `arm` (...) of a view that is `exact`. Default: taken from `propensities`."""
    if hasattr(view, "chosen"):
        return view.chosen(arm, mask=mask)
    return arrays.pick(propensities(view, mask=mask), arm, rank=0)

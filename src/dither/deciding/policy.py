"""What a policy is, for users who write their own.

    class Mine:  # a frozen dataclass of its settings
        needs = frozenset({"mean"})                            # the abilities that it asks of a model, by name
        def draw(self, rng, n, *, arms, dim): ...              # all chance of n requests
        def view(self, model, state, X, *, t): ...             # what there is before chance enters

    class Seen(NamedTuple):  # the view, or one of those in `policies.views`
        m: Array
        def scores(self, *chance): ...                         # the arm of the highest score is shown

`Policy` and `View` are the required parts, `Settings` and `Answers` the optional ones. The functions of `decision` are
the only place that looks whether an optional part is there, and each function states the default. `check` refuses what
does not fit, before anything is drawn or learnt.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dither.base import errors
from dither.base.arrays import Array
from dither.models import adapting
from dither.models.model import PAGE as MODEL_PAGE
from dither.policies.views import Lines

PAGE = "docs/adding-a-policy.md"
REQUIRED = ("needs", "draw", "view")
# Names that `Settings` takes: what each is, whether a value can be that, and what to call a setting of the user's
TAKEN: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "eps": ("is its method eps(t), the share of uniform choices", callable, "epsilon"),
    "refuse": ("is its method refuse(model, dim=), why it does not run on a model", callable, "refusal"),
    "asks": ("says whether its scores ask the model, True or False", (False, True).__contains__, "asking"),
    "spent": ("says whether its chance is spent in training, True or False", (False, True).__contains__, "used"),
}


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


def check(policy: Any, model: Any, *, dim: int) -> None:
    """Refuse what is no policy or no model, and a policy that asks for what the model does not give.

    Raises TypeError that lists all that is missing; ValueError where nothing is missing and the policy refuses.
    """
    of_model, of_policy = adapting.faults(model), faults(policy)
    lacking = [] if isinstance(policy, type) else sorted(_needs(policy) - adapting.abilities(model))
    wrong = [*of_policy, *of_model]
    if lacking:
        wrong.append(str(errors.lacks(model, *lacking, policy=policy)))
    if unnamed := adapting.unnamed(model, lacking):
        wrong.append(f"{type(model).__name__} has the method {', '.join(unnamed)}: name it in its `abilities`")
    if wrong:
        pages = " and ".join([PAGE] * bool(of_policy) + [MODEL_PAGE] * bool(of_model or lacking))
        raise TypeError(f"{'; '.join(wrong)} ({pages})")
    reason = policy.refuse(adapting.adapted(model), dim=dim) if hasattr(policy, "refuse") else None
    if reason is not None:
        raise ValueError(reason)


def of_user(part: Any) -> bool:
    """Whether a policy or a law is of a class outside this library."""
    return type(part).__module__.partition(".")[0] != "dither"


def in_lockstep(policy: Any) -> bool:
    """Whether `draw` takes a generator of many runs at once: that of the library's policies with its laws does.

    A policy or a law of the user's own may count axes from the front. It is asked run by run.
    """
    law = getattr(policy, "noise", getattr(policy, "law", None))
    return not of_user(policy) and (law is None or not of_user(law))


def faults(policy: Any) -> list[str]:
    """The reasons why `policy` is no policy, in words; [] where it is one."""
    if isinstance(policy, type):
        return [f"a policy is an instance: pass {policy.__name__}() for {policy.__name__}"]
    name, reasons = type(policy).__name__, []
    if lacking := [part for part in REQUIRED if not hasattr(policy, part)]:
        reasons.append(f"{name} is no policy: it lacks {', '.join(lacking)}")
    if not isinstance(getattr(policy, "needs", frozenset()), (frozenset, set)):
        reasons.append(f'{name}.needs must be a frozenset of names, as in frozenset({{"mean"}}); got {policy.needs!r}')
    for part, (says, fits, other) in TAKEN.items():
        if hasattr(policy, part) and not fits(value := getattr(policy, part)):
            reasons.append(f"`{part}` of a policy {says}; {name} has {value!r} there: call the setting `{other}`")
    return reasons


def _needs(policy: Any) -> frozenset[str]:
    """The abilities that the policy asks for; none where `needs` is no set of names, which `faults` says."""
    needs = getattr(policy, "needs", None)
    return frozenset(needs) if isinstance(needs, (frozenset, set)) else frozenset()


def look(policy: Any, view: Any, chance: tuple, *, lead: tuple[int, ...], arms: int) -> None:
    """Refuse a policy of the user's that does not score every arm of the requests (*lead,). Those of the library do.

    Scores that lack leading axes are the same for all requests. Raises TypeError for what is no view, and for lines
    whose law is none; ValueError for scores of another shape.
    """
    if not of_user(policy):
        return
    name, wanted = type(policy).__name__, (*lead, arms)
    if not hasattr(view, "scores"):
        raise scoreless(view)
    if isinstance(view, Lines) and not (hasattr(view.law, "symmetric") or hasattr(view.law, "points")):
        raise TypeError(
            f"law must be a law of dither.noise, as its marginal(dim) gives it, and got {type(view.law).__name__}; one "
            f"of SciPy is wrapped: Custom.of(stats.laplace()) ({PAGE})"
        )
    cause: ValueError | None = None
    try:
        shape = tuple(view.scores(*chance).shape)
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
    if isinstance(view, Lines) and view.coupled:
        cure += ", or pass coupled=False to Lines if each arm has a number of its own"
    raise ValueError(
        f"{name} must score each of the {arms} arms: scores {wanted}, {said}{cure if chance else ''} ({PAGE})"
    ) from cause


def scoreless(view: Any) -> TypeError:
    """The refusal of what a policy gave as a view and is none."""
    return TypeError(f"a view must have scores(*chance), and {type(view).__name__} has not ({PAGE})")

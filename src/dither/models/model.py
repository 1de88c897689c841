"""What a model is, for users who write their own: four things are required, all else has a default.

    class Mine:  # a frozen dataclass of its settings
        abilities = frozenset({"mean"})                 # what policies may ask of it: names of methods, see `Able`
        def init(self, dim, *, batch, needs, xp, device): ...   # the first state: a NamedTuple of arrays
        def update(self, state, x, r): ...              # one more observation: the new state
        def mean(self, state, X): ...                   # a score for each arm: the higher, the better

A state is a NamedTuple of arrays, or of such tuples. Every array has the same leading axes `...`: none for one bandit,
R for R runs in lockstep, K more for disjoint slots. `update` returns a new state and leaves the old one as it was, so
that a refused call has changed nothing.

`Model` is the required part. `Able` lists the abilities that the policies of this library ask for. `Optional` lists
what the library itself asks for. The functions below it are the only place that looks whether a model has an optional
part, and each function states the default. `faults` says what is wrong with a model before anything is done with it.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, Protocol

import array_api_compat.numpy
import numpy as np

from dither import links
from dither.base import arrays, trees
from dither.base.arrays import Array
from dither.links import Link

PAGE = "docs/adding-a-model.md"
REQUIRED = ("abilities", "init", "update", "mean")
IDENTITY = links.LINKS["identity"]


class Model(Protocol):
    """The required part. Shapes: d features, K arms, `...` the leading axes of the state."""

    abilities: frozenset[str]  # names of its methods, or of attributes, that policies may ask for; "mean" is one

    def init(
        self,
        dim: int,
        *,
        batch: tuple[int, ...] = (),
        needs: frozenset[str] = frozenset(),
        xp: Any = array_api_compat.numpy,
        device: Any = None,
    ) -> Any:
        """The state before the first observation of d = dim features, with leading axes `batch`.

        needs : the abilities that the policy will ask for, so that nothing is kept for the others
        xp, device : the array library and the device; a model that computes in NumPy alone may ignore both
        """

    def update(self, state: Any, x: Array, r: Array, *, weight: Array | None = None) -> Any:
        """The state after one more observation: x (..., d) the arm that was shown, r (...) its reward.

        weight (...) : how many observations this one counts as: a weight w must do what w updates do; a model may leave
            the argument out, and then a weight is refused
        """

    def mean(self, state: Any, X: Array) -> Array:
        """The score m_i of each arm: X (..., K, d) -> (..., K). A model with `slots` takes one context X (..., d)."""


class Able(Protocol):
    """The abilities. Each is one method of that name (`lam` is an attribute), and a model names those that it has."""

    lam: float  # λ of the penalty λ‖θ‖²; feature²

    def predict(self, state: Any, X: Array) -> Array:
        """The expected rewards, where `mean` is on another scale: X as for `mean` -> (..., K)."""

    def width(self, state: Any, X: Array) -> Array:
        """The standard deviation w_i of the score m_i, if the noise has sd 1: X as for `mean` -> (..., K)."""

    def gram_width(self, state: Any, X: Array) -> Array:
        """‖x_i‖ in the norm of V⁻¹, V = λI + Σ xx': X as for `mean` -> (..., K)."""

    def noise_width(self, state: Any, X: Array) -> Array:
        """‖x_i‖ in the norm of V⁻¹ṼV⁻¹, Ṽ = λI + Σ ω² xx' where V has the weights ω: as `gram_width`."""

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...)."""

    def rounding(self, state: Any) -> Any:
        """What rounding may have done to means and widths: `models.digits.Rounding`. It decides which arms tie."""

    def reach(self, state: Any) -> Array:
        """A number that no width exceeds, in lengths of x: (...). A quick way for policies that use `rounding`."""

    def flat(self, state: Any) -> Array:
        """θ̂ as one vector, (..., ambient(d))."""

    def scores(self, theta: Array, X: Array) -> Array:
        """x_i'θ for any θ of the shape of `state.theta`, which the state then has: X as for `mean` -> (..., K).

        At `state.theta` it is the mean: `models.Disjoint` computes x'θ̂ in place of `mean` where a model has `scores`.
        """

    def sample(self, state: Any, eta: Array) -> Array:
        """N(0, V⁻¹) in the shape of θ̂, from η ~ N(0, I) (..., ambient(d))."""

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') in the shape of θ̂, from η ~ N(0, I) (..., 2 ambient(d)): noise on all rewards at once."""

    def gram_sample(self, state: Any, eta: Array) -> Array:
        """N(0, Σ xx') (..., d), from η ~ N(0, I) (..., 2d): the same noise, for `refit(shift=)`."""

    def hessian_sample(self, state: Any, eta: Array) -> Array:
        """N(0, Ĥ) (..., d), from η ~ N(0, I) (..., d)."""

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t of the paper for ‖θ‖ <= S, (...)."""

    def radius(self, state: Any, *, delta: float) -> Array:
        """Half the confidence interval of a score, in widths, at level 1 - δ: (..., 1), with slots (..., K)."""

    def bonus(self, state: Any, X: Array) -> Array:
        """What makes `predict` an upper bound of the true means, at a level of its own: X as for `mean` -> (..., K)."""

    def bound(self, state: Any) -> Array:
        """How exact θ̂ and Ĥ are, (..., 2); see `models.GLM.bound`."""

    def history(self, state: Any) -> Any:
        """Every distinct x with its count and its sum of rewards: `models.history.History`."""

    def rows(self, state: Any) -> Any:
        """The rows that `refit` fits, in the same form; equal rows may stand there more than once."""

    def refit(
        self, state: Any, *, shift: Array | None = None, count: Array | None = None, total: Array | None = None
    ) -> Array:
        """The estimate with a linear term, or with other counts or sums of the `rows`: (..., d)."""

    def mean_at(self, state: Any, X: Array) -> Array:
        """The score at one row for each arm, with slots too: X (..., K, d) -> (..., K)."""

    def mean_everywhere(self, state: Any, X: Array, step: Array) -> Array:
        """The score at the whole Kd-vector of each slot, moved by step (..., K, K, d): X (..., d) -> (..., K)."""

    def jittered(self, state: Any, X: Array, rng: np.random.Generator, n: int, *, scale: Any) -> Array:
        """The scores of one request under n jitters N(0, scale²) of each arm's own features: (n, K)."""

    def spread(self, state: Any) -> Array:
        """The sd of each feature in what was learnt, (..., d)."""

    def gradient_norm(self, state: Any, X: Array) -> tuple[Array, Array]:
        """m_i and √(Σ (∂m_i/∂θ)²/U): X as for `mean` -> (..., K) each."""

    def sensitivity(self, state: Any, X: Array) -> tuple[Array, Array]:
        """m_i and the length of its gradient in the features: X as for `mean` -> (..., K) each."""

    def embedding(self, state: Any, X: Array) -> Array:
        """The features φ_i that the model makes: X as for `mean` -> (..., K, h)."""

    def beneath(self, state: Any, X: Array) -> tuple[Any, Any, Array]:
        """The model, its state and the features that a policy is to see in place of these."""

    def reward_noise(self) -> float:
        """The sd of the noise that training adds to rewards, above 0."""


class Optional(Protocol):
    """What the library asks for besides. A model may leave a part out: the function of that name has the default."""

    slots: int | None  # K slots that share one context X (..., d); `update` then takes arm= (...)
    support: tuple[float, float]  # the least and the largest reward
    function: Link  # the link, where there is one
    heaviest: float  # the largest weight of an observation
    owns: bool  # `update` takes own=True where the caller gives the old state up, and may overwrite its arrays
    half_life: float | None  # where it forgets by the clock: `update` then takes at= (...), and there is `advanced`
    widest: int  # numbers that one arm takes while it is scored

    def update_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """The state after n more observations X (..., n, d), r (..., n): the same as n updates."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        """The chance that n observations spend, arrays with n leading; `init` takes rng=, `update` takes chance=."""

    def ambient(self, dim: int) -> int:
        """How many numbers θ has."""

    def advanced(self, state: Any, at: Array) -> Any:
        """The state at the time at (...), without an observation, for a model with a half_life."""

    def seen(self, t: int) -> float:
        """The sum of what t observations count, at most, for a model that forgets."""

    def check(self, state: Any) -> None:
        """Refuse, with ValueError, a state out of a file that no data can lead to."""

    def restored(self, state: Any) -> Any:
        """The state out of a file with all that is derived from its arrays."""

    def refitted(self, state: Any) -> Any:
        """The state fitted on all that was learnt, for models that are fitted on a schedule."""

    def fingerprint(self) -> str | None:
        """What a file says of a setting that it cannot hold; None where it holds all."""

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds."""

    def together(self, dim: int) -> int:
        """How many runs in lockstep are quickest."""

    def placed(self, device: str) -> Any:
        """The same model as it computes on a device of torch, where its state and all answers stay NumPy's arrays.

        A model without this method gets its arrays on the device instead: `init(xp=, device=)`.
        """


def faults(model: Any) -> list[str]:
    """What keeps `model` from being one, each in words; [] where nothing does."""
    if isinstance(model, type):
        return [f"a model is an instance: pass {model.__name__}() for {model.__name__}"]
    name = type(model).__name__
    lacking = [part for part in REQUIRED if not hasattr(model, part)]
    found = [f"{name} is no model: it lacks {', '.join(lacking)}"] if lacking else []
    if not isinstance(getattr(model, "abilities", frozenset()), (frozenset, set)):
        found.append(
            f'{name}.abilities must be a frozenset of names, as in frozenset({{"mean"}}); got {model.abilities!r}'
        )
    said = sorted(ability for ability in abilities(model) if not hasattr(model, ability))
    if said:
        found.append(f"{name} says that it has {', '.join(said)}, and has no method of that name")
    return found


def abilities(model: Any) -> frozenset[str]:
    """The names that it gives; none where `faults` says that these are no names."""
    given = getattr(model, "abilities", None)
    return frozenset(given) if isinstance(given, (frozenset, set)) else frozenset()


def of_user(model: Any) -> bool:
    """Whether a model is of a class outside this library, whose answers no test of ours has seen."""
    return type(model).__module__.partition(".")[0] != "dither"


def look(model: Any, state: Any, *, dim: int) -> None:
    """Refuse a model of the user's whose first state, means or widths have a wrong form. Two arms are asked about.

    Raises TypeError for a wrong type or shape; ValueError for what is not finite, and for a negative width.
    """
    kind = type(model)
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise TypeError(f"{kind.__name__}.init must return a NamedTuple of arrays, got {type(state).__name__} ({PAGE})")
    X, K = np.linspace(0.5, 1.0, 2 * dim).reshape(2, dim), slots(model)
    X, shape = (X, (2,)) if K is None else (X[0], (K,))
    for name in ("mean", "width"):
        if name not in abilities(model):
            continue
        found = getattr(model, name)(state, X)
        if getattr(found, "shape", None) != shape:
            got = found.shape if isinstance(found, np.ndarray) else type(found).__name__
            raise TypeError(
                f"{kind.__name__}.{name} must return an array of a number for each arm: {shape} for X of shape "
                f"{X.shape}, got {got} ({PAGE})"
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{kind.__name__}.{name} must return finite numbers, before the first reward too; got {found}: divide "
                f"by no count that is 0 ({PAGE})"
            )
        if name == "width" and np.any(found < 0):
            raise ValueError(f"{kind.__name__}.width must not be negative, got {found} ({PAGE})")


def is_model(given: Any) -> bool:
    """Whether it has what tells a model from an estimator or a function."""
    return hasattr(given, "abilities") and hasattr(given, "init")


def begin(model: Any, dim: int, *, needs: frozenset[str], rng: Callable[[], Any], **settings: Any) -> Any:
    """The first state; a model with chance of its own gets a Generator, or one for each run, from rng()."""
    chance = {"rng": rng()} if draws(model) else {}
    return model.init(dim, needs=needs, **settings, **chance)


def update_many(model: Any, state: Any, X: Array, r: Array, **settings: Any) -> Any:
    """The state after n more observations: X (..., n, d), r (..., n), settings as of `update`. Default: one by one.

    The first update leaves the state that was given; later ones may overwrite what the one before has made, so a
    refusal leaves what was there.
    """
    rule = getattr(model, "update_many", None)
    if rule is not None:
        return rule(state, X, r, **settings)
    chance, more = settings.pop("chance", None), given_up(model)
    settings.pop("own", None)
    for i in range(X.shape[-2]):
        one = {name: None if value is None else value[..., i] for name, value in settings.items()}
        if chance is not None:
            one["chance"] = tuple(kind[i] for kind in chance)
        state = model.update(state, X[..., i, :], r[..., i], **one, **(more if i else {}))
    return state


def given_up(model: Any) -> dict[str, bool]:
    """What to pass to `update` where nobody keeps the old state: own=True, if the model `owns`. Default: nothing."""
    return {"own": True} if getattr(model, "owns", False) else {}


def weighs(model: Any) -> None:
    """Refuse a weight, with TypeError, where the signature of `update` has none."""
    if not takes(type(model).update, "weight"):
        name = type(model).__name__
        raise TypeError(f"{name} takes no weight: leave weight= out, or give {name}.update the argument ({PAGE})")


@functools.cache
def takes(rule: Callable[..., Any], name: str) -> bool:
    """Whether a function has an argument of this name, or takes any."""
    parameters = inspect.signature(rule).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def clocked(model: Any) -> bool:
    """Whether it forgets by the clock, so that every observation has a time. Default: no."""
    return half_life(model) is not None


def half_life(model: Any) -> float | None:
    """The time after which a row counts half, where the model forgets by the clock. Default: None."""
    return getattr(model, "half_life", None)


def seen(model: Any, t: int) -> float:
    """The sum of what t observations count, at most. Default: t."""
    return model.seen(t) if hasattr(model, "seen") else t


def heaviest(model: Any) -> float:
    """The largest weight of an observation. Default: any."""
    return getattr(model, "heaviest", math.inf)


def draws(model: Any) -> bool:
    """Whether a model has chance of its own: where its weights begin, in what it trains on. Default: it has none."""
    return hasattr(model, "draw")


def slots(model: Any) -> int | None:
    """K, where K slots share one context. Default: None, every arm has features of its own."""
    return getattr(model, "slots", None)


def slotted(model: Any) -> bool:
    """Whether it can have slots by a setting of its own, so that `models.Disjoint` is not for it."""
    return hasattr(model, "slots")


def with_slots(model: Any, slots: int) -> Any:
    """The model with more slots. Raises TypeError for one whose slots cannot grow."""
    if not hasattr(model, "grown"):
        kind = type(model).__name__
        raise TypeError(
            f"the slots of {kind} cannot grow, only those of models.Disjoint: make a bandit with disjoint={slots}, and "
            "learn again from the log"
        )
    return dataclasses.replace(model, slots=slots)


def ambient(model: Any, dim: int) -> int:
    """How many numbers θ has, which is what `draw(dim=)` of a policy is told. Default: d."""
    return model.ambient(dim) if hasattr(model, "ambient") else dim


def support(model: Any) -> tuple[float, float]:
    """Between which the rewards lie. Default: any number."""
    return getattr(model, "support", (-math.inf, math.inf))


def link(model: Any) -> Link:
    """μ and its kin. Default: the identity; so where `function` is something else, as of `models.Fixed`."""
    found = getattr(model, "function", IDENTITY)
    return found if isinstance(found, Link) else IDENTITY


def widest(model: Any) -> int:
    """Numbers that one arm takes while it is scored, for what is scored at once to fit memory. Default: 1."""
    return getattr(model, "widest", 1)


def theta(model: Any, state: Any) -> Array:
    """θ̂. Raises TypeError where the state has none."""
    found = getattr(state, "theta", None)
    if found is None:
        raise TypeError(f"the state of {type(model).__name__} has no theta: ask mean(X), what it thinks of arms")
    return found


def finite(state: Any) -> bool:
    """Whether θ̂ is finite; where a state has no theta, whether all its numbers are."""
    theta = getattr(state, "theta", None)
    if type(theta) is np.ndarray and np.vdot(theta, theta) < math.inf:
        return True  # the usual case, at once
    if theta is not None:
        return _finite(theta)
    return all(_finite(A) for A in trees.leaves(state, "state").values())


def _finite(A: Array) -> bool:
    xp = arrays.namespace(A)
    return bool(xp.all(xp.isfinite(A)))


def check(model: Any, state: Any) -> None:
    """Refuse a state out of a file that no data can lead to. Default: none is."""
    if hasattr(model, "check"):
        model.check(state)


def restored(model: Any, state: Any) -> Any:
    """The state out of a file with all that is derived from its arrays. Default: the state."""
    return model.restored(state) if hasattr(model, "restored") else state


def refitted(model: Any, state: Any) -> Any:
    """The state fitted on all that was learnt. Raises TypeError for a model that learns every reward as it comes."""
    if not hasattr(model, "refitted"):
        raise TypeError(f"{type(model).__name__} learns every reward as it comes: there is nothing to refit")
    return model.refitted(state)


def fingerprint(model: Any) -> str | None:
    """What a file says of a model that it cannot hold. Default: None, a file holds all of it."""
    return model.fingerprint() if hasattr(model, "fingerprint") else None


def bytes_of(model: Any, dim: int, rounds: int) -> int:
    """About how much memory one run takes after so many rounds. Default: 0, too little to count."""
    return model.bytes(dim, rounds) if hasattr(model, "bytes") else 0


def together(model: Any, dim: int) -> float:
    """How many runs in lockstep are quickest. Default: any number."""
    return model.together(dim) if hasattr(model, "together") else math.inf


def placed(model: Any, device: str) -> Any:
    """The model for a simulation on a device. Default: the model, whose arrays then live there."""
    return model.placed(device) if at_home(model) else model


def at_home(model: Any) -> bool:
    """Whether its state stays in NumPy's arrays on every device. Default: no."""
    return hasattr(model, "placed")

"""What a model is: three methods are its own, and all else has a default here.

    @dataclass(frozen=True)
    class Mine(Model):  # its fields are its settings
        def init(self, dim, *, batch, needs, xp, device): ...   # the first state: a NamedTuple of arrays
        def update(self, state, x, r): ...              # one more observation: the new state
        def mean(self, state, X): ...                   # a score for each arm: the higher, the better

A state is a NamedTuple of arrays, or of such tuples. Every array has the same leading axes `...`: none for one bandit,
R for R runs in lockstep, K more for disjoint slots. `update` returns a new state and leaves the old one as it was, so
that a refused call has changed nothing.

All models of this library stand on `Model`. A class of a user's need not: `adapting` gives it the defaults where it
comes in. `Able` lists the abilities that the policies of this library ask for.
"""

import abc
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dither import links
from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.links import Link

PAGE = "docs/adding-a-model.md"
IDENTITY = links.LINKS["identity"]


class Model(abc.ABC):
    """The base of models. Shapes: d features, K arms, `...` the leading axes of the state."""

    slots: Any = None  # K slots that share one context X (..., d); `update` then takes arm= (...)
    support: Any = (-math.inf, math.inf)  # the least and the largest reward
    reward_range: Any = None  # (low, high), where the user says in which range rewards lie; others are learnt, too
    function: Any = IDENTITY  # the link; what is no `links.Link` stands for the identity (`link`)
    heaviest: float = math.inf  # the largest weight of an observation
    owns: Any = False  # `update` takes own=True where the caller gives the old state up, and may overwrite its arrays
    half_life: Any = None  # where it forgets by the clock: `update` then takes at= (...), and there is `advanced`
    widest: Any = 1  # numbers that one arm takes while it is scored
    separate: Any = True  # the expected reward of an arm is its own; False: it depends on the other arms, as a softmax
    draw: Any = None  # draw(rng, n): the chance that n observations spend, a tuple of arrays with n leading. A model
    #   that has it gets rng= in `init`, a Generator or a list of one for each run, and chance= in `update`
    grown: Any = None  # grown(state, fresh): the state that goes on from one with fewer slots; fresh: of `init`
    factors: Any = None  # factors(state, norm, slots=): the `Factors` of one bandit, or None where these means and the
    #   widths of that name are no x'θ and ‖F'x‖. Neither it nor the means and widths may raise
    placed: Any = None  # placed(device): the same model as it computes on a device of torch, where its state and all
    #   answers stay NumPy's arrays. A model without it gets its arrays on the device instead: `init(xp=, device=)`

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What policies may ask of it, by name: the parts of `Able` that its class has, and `mean`."""
        return abilities_of(type(self))

    @abc.abstractmethod
    def init(self, dim: int, *args: Any, **settings: Any) -> Any:
        """The state before the first observation of d = dim features.

        batch=() : the leading axes
        needs=frozenset() : the abilities that the policy will ask for, so that nothing is kept for the others
        xp=, device=None : the array library and the device; a model that computes in NumPy alone may ignore both
        """

    @abc.abstractmethod
    def update(self, state: Any, x: Array, r: Array, *args: Any, **settings: Any) -> Any:
        """The state after one more observation: x (..., d) the arm that was shown, r (...) its reward.

        weight=None (...) : how many observations this one counts as: a weight w must do what w updates do; a model may
            leave the argument out, and then a weight is refused
        """

    @abc.abstractmethod
    def mean(self, state: Any, X: Array) -> Array:
        """The score m_i of each arm: X (..., K, d) -> (..., K). A model with `slots` takes one context X (..., d)."""

    def update_many(self, state: Any, X: Array, r: Array, *args: Any, **settings: Any) -> Any:
        """The state after n more observations X (..., n, d), r (..., n): the same as n updates. Here: one by one.

        The first update leaves the state that was given; later ones may overwrite what the one before has made, so a
        refusal leaves what was there.
        """
        chance, _ = settings.pop("chance", None), settings.pop("own", None)
        for i in range(X.shape[-2]):
            one = {name: None if A is None else A[..., i] for name, A in settings.items()}
            if chance is not None:
                one["chance"] = tuple(kind[i] for kind in chance)
            state = self.update(state, X[..., i, :], r[..., i], **one, **(given_up(self) if i else {}))
        return state

    def ambient(self, dim: int) -> int:
        """How many numbers θ has, which is what `draw(dim=)` of a policy is told."""
        return dim

    def advanced(self, state: Any, at: Array) -> Any:
        """The state at the time at (...), without an observation, for a model with a half_life."""
        raise TypeError(f"{type(self).__name__} has no method advanced(state, at), which a half_life needs ({PAGE})")

    def seen(self, t: int) -> float:
        """The sum of what t observations count, at most; less than t for a model that forgets."""
        return t

    def check(self, state: Any) -> None:
        """Refuse, with ValueError, a state out of a file that no data can lead to."""
        return

    def restored(self, state: Any) -> Any:
        """The state out of a file with all that is derived from its arrays."""
        return state

    centre: Any = False  # whether slots are to learn rewards about a mean of all slots

    def lam_of(self, state: Any) -> Any:
        """λ in force, for a model that has one: a number, or (...) where each run has found its own."""
        model: Any = self
        return model.lam

    def shares(self, state: Any) -> bool:
        """Whether slots of it share something. Then each learns by `announced`, `absorbed` and `agreed`."""
        return False

    def announced(self, state: Any, X: Array, r: Array, weight: Array | None = None, *, slots: bool = False) -> Any:
        """The state that knows which rows come next, before it learns them: what all slots share may be of them.

        X (..., n, d), r, weight (..., n); with slots=True the state has an axis of slots more.
        """
        return state

    def joined(self, state: Any) -> Any:
        """The state of slots of which the last are new: they know what all slots share."""
        return state

    def absorbed(self, state: Any, x: Array, r: Array, **settings: Any) -> Any:
        """`update` of one of several slots, between `announced` and `agreed`."""
        return self.update(state, x, r, **settings)

    def absorbed_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """`update_many` of one of several slots, between `announced` and `agreed`."""
        return self.update_many(state, X, r, **settings)

    def agreed(self, state: Any, *, slots: bool = False, own: bool = False) -> Any:
        """The state with what all slots share made of what each has learnt; own: its arrays may be overwritten."""
        return state

    def refitted(self, state: Any) -> Any:
        """The state fitted on all that was learnt, for models that are fitted on a schedule; TypeError for others."""
        raise TypeError(f"{type(self).__name__} learns every reward as it comes: there is nothing to refit")

    def fingerprint(self) -> str | None:
        """What a file says of a setting that it cannot hold; None where it holds all."""
        return None

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds; 0: too little to count."""
        return 0

    def together(self, dim: int) -> float:
        """How many runs in lockstep are quickest."""
        return math.inf


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

    def error_width(self, state: Any, X: Array) -> Any:
        """The root mean squared error of m_i where rewards have the variance σ̂²: `models.units.Widths` of (..., K)."""

    def error_sample(self, state: Any, eta: Array) -> Array:
        """θ̃ - θ̂ whose x_i' has the sd `error_width`, in the shape of θ̂, from η ~ N(0, I) (..., 3 ambient(d))."""

    def noise_sd(self, state: Any) -> Any:
        """σ̂, a number or (...)."""

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


ABILITIES = ("mean", *(name for name in vars(Able) if not name.startswith("_")))  # those that are methods


@functools.cache
def abilities_of(kind: type) -> frozenset[str]:
    """The abilities for which a class has a method of that name; of λ, an attribute or a field."""
    fields = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    attributes = {name for name in Able.__annotations__ if name in fields or hasattr(kind, name)}
    return frozenset(attributes | {name for name in ABILITIES if callable(getattr(kind, name, None))})


def link(model: Model) -> Link:
    """μ and its kin. The identity where `function` is something else, as of `models.Fixed`."""
    return model.function if isinstance(model.function, Link) else IDENTITY


class Factors(NamedTuple):
    """What means and widths of one bandit are made of: m = x'θ, w = ‖F'x‖. With K slots each has a θ and an F."""

    theta: Array  # (d,), slots (K, d)
    F: Array  # (d, d), slots (K, d, d)
    lost: Array | None = None  # (5 + 4d,), slots (K, 5 + 4d): what rounding has done, as `digits` has it
    rho: float = 0.0  # is added to the errors of means that `lost` tells, in widths
    omega: float = 0.0  # likewise of the relative errors of widths
    scales: Any = None  # where widths are in units of rewards: (λ, σ̂², λτ̂²), or λ and `Units.sums`


def factors(model: Model, state: Any, norm: str, *, slots: bool = False) -> Factors | None:
    """What the means of a model and the widths of that name are made of; None where they are made otherwise.

    A class must say so itself. A subclass may have other means, and what it inherits does not count.
    """
    return model.factors(state, norm, slots=slots) if "factors" in vars(type(model)) else None


def begin(model: Model, dim: int, *, needs: frozenset[str], rng: Callable[[], Any], **settings: Any) -> Any:
    """The first state; a model with chance of its own gets a Generator, or one for each run, from rng()."""
    chance = {} if model.draw is None else {"rng": rng()}
    return model.init(dim, needs=needs, **settings, **chance)


def given_up(model: Model) -> dict[str, bool]:
    """What to pass to `update` where nobody keeps the old state: own=True, if the model `owns`."""
    return {"own": True} if model.owns else {}


def of_one(rule: Callable[..., Any], x: Array, r: Array, settings: dict[str, Any], **more: Any) -> Any:
    """What a rule for n observations, X (..., n, d), makes of one, x (..., d), r (...); more: settings of them all."""
    each = {name: None if A is None else A[..., None] for name, A in settings.items()}
    return rule(x[..., None, :], r[..., None], **each, **more)


def estimate(model: Model, state: Any) -> Array:
    """θ̂. Raises TypeError where the state has none."""
    theta = getattr(state, "theta", None)
    if theta is None:
        raise TypeError(f"the state of {type(model).__name__} has no theta: ask mean(X), what it thinks of arms")
    return theta


def finite(state: Any) -> bool:
    """Whether θ̂ is finite; where a state has no theta, whether all its numbers are."""
    theta = getattr(state, "theta", None)
    return all(map(arrays.finite, trees.leaves(state, "state").values() if theta is None else (theta,)))


def sound(theta: Array) -> Array:
    """θ̂ itself. Raises ValueError where it is not finite."""
    if not arrays.finite(theta):
        raise errors.overflow()
    return theta

"""Disjoint slots: K models of d features side by side, for one context x that all arms share.

The same as one model on the Kd-vectors (x; 0; ...; 0), (0; x; ...; 0), ..., whose V is block diagonal, at 1/K² of the
cost: a slot is a leading axis of the inner model's state. The context x (..., d) stands where other models take X.

All slots are in one array, so a history that grows is as long as the longest: the shorter ones are filled with rows of
zeros. A model with a history keeps a count or a weight for each row, and ignores the rows where it is 0.

Arrays of slots are kept in C order, whatever order an inner model made them in. Products round differently in another
order, and a file or a pickle gives C order back, so a bandit that is loaded would else differ in the last bit.

A slot forgets by its own clock. Under a discount or a window it counts its own observations, so a slot that is not
shown does not fade. A half-life goes by the time that is passed, which is the same for all slots: all of them fade.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.models import adapting, buffers, digits
from dither.models.model import PAGE, Factors, Model, abilities_of, factored, finite, given_up
from dither.models.units import POOLED


def _inner(name: str) -> Any:
    """The part of that name which the model of each slot has."""
    return property(lambda slots: getattr(slots.each, name))


@dataclass(frozen=True)
class Disjoint(Model):
    """`slots` copies of `model`; state: that of `model` with shapes (..., K, *).

    The mean of a model with `scores` is computed as x'θ̂, one product for all slots: such a model's own `mean` is not
    asked. `dither.testing.check_model` checks that the two agree. A slot with a shorter history than others has rows
    of zeros after its own, which the model must ignore.
    """

    model: Any
    slots: int
    owns = True  # update takes own=

    def __post_init__(self) -> None:
        errors.at_least("slots", self.slots, 1)
        if wrong := adapting.faults(self.model):
            raise TypeError(f"{'; '.join(wrong)} ({PAGE})")
        name = type(self.model).__name__
        if self.each.slots is not None or "slots" in vars(self.each):
            raise ValueError(f"{name} has slots of its own: pass slots={self.slots} to it, models.{name}(slots=...)")
        if self.each.draw is not None:
            raise ValueError(
                f"{name} has chance of its own, and slots side by side share none: give it a setting slots"
            )

    @functools.cached_property
    def each(self) -> Any:
        """The model of each slot, with all its parts."""
        return adapting.adapted(self.model)

    lam = _inner("lam")
    half_life = _inner("half_life")
    function = _inner("function")
    heaviest = _inner("heaviest")
    support = _inner("support")
    reward_range = _inner("reward_range")

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """Those of the inner model that slots can have, and `mean_at`."""
        return (self.each.abilities & abilities_of(type(self))) | {"mean_at"}

    def seen(self, t: int) -> float:
        """The sum of what t observations count, at most: they may be of all slots."""
        return min(t, self.slots * self.each.seen(t))

    def ambient(self, dim: int) -> int:
        """The dimension of θ: K d."""
        return self.slots * self.each.ambient(dim)

    def flat(self, state: Any) -> Array:
        """θ̂ as one vector: (..., K d)."""
        theta = self.each.flat(state)
        return arrays.namespace(theta).reshape(theta, (*theta.shape[:-2], -1))

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        self.each.check(state)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> Any:
        """V = λI, θ̂ = 0 in all slots, with leading axes `batch`."""
        needs = needs | {POOLED} if self.each.centre else needs
        return _apart(self.each, self.each.init(dim, batch=(*batch, self.slots), needs=needs, xp=xp, device=device))

    def update(self, state: Any, x: Array, r: Array, *, arm: Array, own: bool = False, **settings: Any) -> Any:
        """One more observation in slot `arm` (...): x (..., d), r (...), weight=None (...), at=None (...).

        own : the caller gives the old state up, and its arrays may be overwritten (copying K slots to change one is
            most of the cost when d is large); where this raises, the old state is as it was
        """
        settings = self._of_each(settings)
        if "at" in settings:
            state = self.advanced(state, settings["at"])
        learn, shares = self.each.update, self.each.shares(state)
        if shares:
            weight, learn = settings.get("weight"), self.each.absorbed
            weights = None if weight is None else weight[..., None]
            state = _in_rows(self.each.announced(state, x[..., None, :], r[..., None], weights, slots=True))
        slot, more = _slot(state, arm, batch=r.ndim), given_up(self.each) if own else {}
        slot = learn(slot, x, r, **settings, **more)
        if own and not finite(slot):
            raise errors.overflow()  # before the old state is written to
        state = _filled(state, arm, slot, batch=r.ndim, own=own)
        return self.each.agreed(state, slots=True, own=own) if shares else state

    def update_many(self, state: Any, X: Array, r: Array, *, arm: Array, own: bool = False, **settings: Any) -> Any:
        """n observations of one bandit: X (n, d), r (n,), arm (n,), weight (n,), at (n,); no leading axes."""
        xp, settings = arrays.namespace(X), self._of_each(settings)
        if "at" in settings and X.shape[0]:
            state = self.advanced(state, xp.max(settings["at"], axis=-1))
        learn, shares = self.each.update_many, X.shape[0] > 0 and self.each.shares(state)
        if shares:
            learn = self.each.absorbed_many
            state = _in_rows(self.each.announced(state, X, r, settings.get("weight"), slots=True))
        for k in xp.unique_values(arm):
            rows = xp.nonzero(arm == k)[0]
            slot, of_slot = _slot(state, k, batch=0), {name: xp.take(A, rows, axis=0) for name, A in settings.items()}
            slot = learn(slot, xp.take(X, rows, axis=0), xp.take(r, rows, axis=0), **of_slot)
            state = _filled(state, k, slot, batch=0)
        return self.each.agreed(state, slots=True) if shares else state

    def _of_each(self, settings: dict[str, Array | None]) -> dict[str, Array]:
        """What each slot is told besides. Raises TypeError for a weight that its model does not take."""
        if settings.get("weight") is not None:
            adapting.weighs(self.each)
        return {name: A for name, A in settings.items() if A is not None}

    def advanced(self, state: Any, at: Array) -> Any:
        """All slots at the time at (...), without an observation."""
        return self.each.agreed(_in_rows(_apart(self.each, self.each.advanced(state, at[..., None]))), slots=True)

    def scores(self, theta: Array, x: Array) -> Array:
        """x'θ_k: theta (..., K, d), x (..., d) -> (..., K)."""
        return arrays.dot(theta, x)

    def mean(self, state: Any, x: Array) -> Array:
        """m_k of the context, x'θ̂_k in a linear model: x (..., d) -> (..., K)."""
        return arrays.dot(state.theta, x) if self._linear else self._each(self.each.mean, state, x)

    def mean_at(self, state: Any, X: Array) -> Array:
        """m_k at a row for each slot: X (..., K, d) -> (..., K)."""
        if self._linear:
            return arrays.namespace(X).sum(X * state.theta, axis=-1)
        return self.each.mean(state, X[..., None, :])[..., 0]

    def width(self, state: Any, x: Array) -> Array:
        """w_k of slot k: x (..., d) -> (..., K)."""
        return self._each(self.each.width, state, x)

    def rounding(self, state: Any) -> digits.Rounding:
        """What rounding may have done to the means and widths of each slot: (..., K)."""
        return digits.Rounding(*(part[..., 0] for part in self.each.rounding(state)))

    def factors(self, state: Any, norm: str, *, slots: bool = False) -> Factors | None:
        """Those of each slot."""
        kind: Any = type(self.each)
        return self.each.factors(state, norm, slots=True) if factored(kind) else None

    def reach(self, state: Any) -> Array:
        """No width of the slot is larger than this times ‖x‖, (..., K)."""
        return self.each.reach(state)

    def predict(self, state: Any, x: Array) -> Array:
        """The expected rewards, μ(x'θ̂_k) in a linear model: x (..., d) -> (..., K)."""
        return self.function.mu(self.mean(state, x)) if self._linear else self._each(self.each.predict, state, x)

    def gram_width(self, state: Any, x: Array) -> Array:
        """‖x‖ in the norm of V⁻¹ of slot k: x (..., d) -> (..., K)."""
        return self._each(self.each.gram_width, state, x)

    def noise_width(self, state: Any, x: Array) -> Array:
        """‖x‖ in the norm of V⁻¹ṼV⁻¹ of slot k: x (..., d) -> (..., K)."""
        return self._each(self.each.noise_width, state, x)

    def error_width(self, state: Any, x: Array) -> Any:
        """The root mean squared error of m_k, with σ̂ and τ̂ of all slots: x (..., d) -> `Widths` of (..., K)."""
        widths = self.each.error_width(state, x[..., None, None, :], slots=True)
        return type(widths)(*(part if isinstance(part, float) else part[..., 0] for part in widths))

    def error_sample(self, state: Any, eta: Array) -> Array:
        """θ̃ - θ̂ whose x' has the sd `error_width` in each slot: (..., 3 K d) -> (..., K, d)."""
        return self.each.error_sample(state, _slots(eta, self.slots), slots=True)

    def lam_of(self, state: Any) -> Any:
        """λ in force, the same in all slots: a number, or (...)."""
        return _one(self.each.lam_of(state))

    def noise_sd(self, state: Any) -> Any:
        """σ̂, the same for all slots: a number, or (...)."""
        return self.each.noise_sd(state, slots=True)

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...): the sum of those of the slots."""
        return _summed(self.each.noise_logdet(state))

    def sample(self, state: Any, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., K d) -> (..., K, d)."""
        return self.each.sample(state, _slots(eta, self.slots))

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""
        return _summed(self.each.logdet(state))

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t for ‖θ‖ <= S, (...): the sum of those of the slots."""
        return _summed(self.each.lipschitz(state, S))

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds: each slot has room for the rows of the fullest."""
        return self.slots * self.each.bytes(dim, rounds)

    def grown(self, state: Any, fresh: Any) -> Any:
        """The state of this model that goes on from one with fewer slots; fresh : what `init` gives this model."""
        return _in_rows(self.each.joined(trees.map_arrays(_joined, state, fresh)))

    def bound(self, state: Any) -> Array:
        """Those of the slots, (..., K, 2)."""
        return self.each.bound(state)

    def radius(self, state: Any, *, delta: float) -> Array:
        """That of each slot at level 1 - δ/K, so that all hold at once: (..., K)."""
        return self.each.radius(state, delta=delta / self.slots)[..., 0]

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2 K d) -> (..., K, d)."""
        return self.each.perturb(state, _slots(eta, self.slots))

    @property
    def _linear(self) -> bool:
        """Whether m_k = x'θ̂_k, which takes one product for all slots."""
        return "scores" in self.each.abilities

    def _each(self, ask: Callable[[Any, Array], Array], state: Any, x: Array) -> Array:
        """What every slot answers about one context: x (..., d) -> (..., K)."""
        return ask(state, x[..., None, None, :])[..., 0]


def _apart(model: Any, state: Any) -> Any:
    """The state, where no two fields are one array: slots are written in place, and would be written twice there."""
    if not adapting.of_user(model):
        return state
    return trees.map_arrays(lambda A: arrays.namespace(A).asarray(A, copy=True), state)


def _in_rows(state: Any) -> Any:
    """The state with its arrays of NumPy in C order, so that arrays which were saved round as they did before."""
    return trees.map_arrays(lambda A: np.asarray(A, order="C") if type(A) is np.ndarray else A, state)


def _one(of_slots: Any) -> Any:
    """A number that all slots share: a float for one bandit, or (...)."""
    if not getattr(of_slots, "ndim", 0):
        return of_slots
    return float(of_slots[0]) if of_slots.ndim == 1 else of_slots[..., 0]


def _summed(of_slots: Array) -> Array:
    return arrays.namespace(of_slots).sum(of_slots, axis=-1)


def _slots(eta: Array, slots: int) -> Array:
    return arrays.namespace(eta).reshape(eta, (*eta.shape[:-1], slots, eta.shape[-1] // slots))


def _slot(state: Any, arm: Array, *, batch: int) -> Any:
    """The state of one slot in each replication."""
    return trees.map_arrays(lambda A: arrays.pick(A, arm, rank=A.ndim - batch - 1), state)


def _filled(state: Any, arm: Array, slot: Any, *, batch: int, own: bool = False) -> Any:
    """The state with that of one slot replaced."""
    return trees.map_arrays(lambda A, new: _with(A, arm, new, batch=batch, own=own), state, slot)


def _joined(A: Array, fresh: Array) -> Array:
    """The slots of A (K, *), then the last ones of fresh (n, *), with as much room for a history."""
    xp, new = arrays.namespace(A), fresh[A.shape[0] :, ...]
    for axis in range(1, A.ndim):
        if new.shape[axis] < A.shape[axis]:
            new = buffers.grown(new, A.shape[axis], rank=A.ndim - axis - 1)
    return xp.concat([A, new], axis=0)


def _with(A: Array, arm: Array, new: Array, *, batch: int, own: bool) -> Array:
    for axis in range(batch, new.ndim):  # histories grow slot by slot: the shorter ones get as much room
        here, there = A.shape[axis + 1], new.shape[axis]
        if there > here:
            A, own = buffers.grown(A, there, rank=A.ndim - axis - 2), True
        elif there < here:
            new = buffers.grown(new, here, rank=new.ndim - axis - 1)
    return arrays.replace(A, arm, new, rank=A.ndim - batch - 1, own=own)

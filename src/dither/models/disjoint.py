"""Disjoint slots: K models of d features side by side, for one context x that all arms share.

The same as one model on the Kd-vectors (x; 0; ...; 0), (0; x; ...; 0), ..., whose V is block diagonal, at 1/K² of the
cost: a slot is a leading axis of the inner model's state. The context x (..., d) stands where other models take X.

All slots are in one array, so a history that grows is as long as the longest: the shorter ones are filled with rows of
zeros. A model with a history keeps a count or a weight for each row, and ignores the rows where it is 0.

A slot forgets by its own clock. Under a discount or a window it counts its own observations, so a slot that is not
shown does not fade. A half-life goes by the time that is passed, which is the same for all slots: all of them fade.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat.numpy

from dither.base import arrays, errors, trees
from dither.base.arrays import Array
from dither.models import buffers, digits
from dither.models import model as contract

ABILITIES = frozenset(  # those that K slots have where one has them; each slot has a history of its own
    {
        "mean",
        "predict",
        "width",
        "gram_width",
        "noise_width",
        "noise_logdet",
        "sample",
        "scores",
        "flat",
        "lam",
        "logdet",
        "lipschitz",
        "perturb",
        "bound",
        "rounding",
        "reach",
        "radius",
    }
)


@dataclass(frozen=True)
class Disjoint:
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
        if wrong := contract.faults(self.model):
            raise TypeError(f"{'; '.join(wrong)} ({contract.PAGE})")
        name = type(self.model).__name__
        if contract.slotted(self.model):
            raise ValueError(f"{name} has slots of its own: pass slots={self.slots} to it, models.{name}(slots=...)")
        if contract.draws(self.model):
            raise ValueError(
                f"{name} has chance of its own, and slots side by side share none: give it a setting slots"
            )

    @property
    def lam(self) -> float:
        """λ of each slot."""
        return self.model.lam

    @property
    def half_life(self) -> float | None:
        """That of each slot, where there is a clock."""
        return contract.half_life(self.model)

    def seen(self, t: int) -> float:
        """The sum of what t observations count, at most: they may be of all slots."""
        return min(t, self.slots * contract.seen(self.model, t))

    @property
    def function(self) -> Any:
        """μ and its kin."""
        return contract.link(self.model)

    @property
    def heaviest(self) -> float:
        """The largest weight of an observation."""
        return contract.heaviest(self.model)

    @property
    def support(self) -> tuple[float, float]:
        """Between which the rewards lie."""
        return contract.support(self.model)

    @property
    def abilities(self) -> frozenset[str]:
        """Those of the inner model that slots can have, and `mean_at`."""
        return (self.model.abilities & ABILITIES) | {"mean_at"}

    def ambient(self, dim: int) -> int:
        """The dimension of θ: K d."""
        return self.slots * contract.ambient(self.model, dim)

    def flat(self, state: Any) -> Array:
        """θ̂ as one vector: (..., K d)."""
        theta = self.model.flat(state)
        return arrays.namespace(theta).reshape(theta, (*theta.shape[:-2], -1))

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        contract.check(self.model, state)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> Any:
        """V = λI, θ̂ = 0 in all slots, with leading axes `batch`."""
        return self.model.init(dim, batch=(*batch, self.slots), needs=needs, xp=xp, device=device)

    def update(
        self,
        state: Any,
        x: Array,
        r: Array,
        *,
        arm: Array,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> Any:
        """One more observation in slot `arm` (...): x (..., d), r (...), weight (...), at (...).

        own : the caller gives the old state up, and its arrays may be overwritten (copying K slots to change one is
            most of the cost when d is large); where this raises, the old state is as it was
        """
        more = contract.given_up(self.model) if own else {}
        if at is not None:
            state, more["at"] = self.advanced(state, at), at
        slot = _slot(state, arm, batch=r.ndim)
        if weight is not None:
            contract.weighs(self.model)
            more["weight"] = weight
        slot = self.model.update(slot, x, r, **more)
        if own and not contract.finite(slot):
            raise errors.overflow()  # before the old state is written to
        return _filled(state, arm, slot, batch=r.ndim, own=own)

    def update_many(
        self,
        state: Any,
        X: Array,
        r: Array,
        *,
        arm: Array,
        weight: Array | None = None,
        at: Array | None = None,
        own: bool = False,
    ) -> Any:
        """n observations of one bandit: X (n, d), r (n,), arm (n,), weight (n,), at (n,); no leading axes."""
        xp = arrays.namespace(X)
        if at is not None and at.shape[0]:
            state = self.advanced(state, xp.max(at, axis=-1))
        if weight is not None:
            contract.weighs(self.model)
        for k in xp.unique_values(arm):
            rows = xp.nonzero(arm == k)[0]
            slot = _slot(state, k, batch=0)
            own, paid = xp.take(X, rows, axis=0), xp.take(r, rows, axis=0)
            each = {"weight": weight, "at": at}
            more = {name: xp.take(A, rows, axis=0) for name, A in each.items() if A is not None}
            slot = contract.update_many(self.model, slot, own, paid, **more)
            state = _filled(state, k, slot, batch=0)
        return state

    def advanced(self, state: Any, at: Array) -> Any:
        """All slots at the time at (...), without an observation."""
        return self.model.advanced(state, at[..., None])

    def scores(self, theta: Array, x: Array) -> Array:
        """x'θ_k: theta (..., K, d), x (..., d) -> (..., K)."""
        return arrays.dot(theta, x)

    def mean(self, state: Any, x: Array) -> Array:
        """m_k of the context, x'θ̂_k in a linear model: x (..., d) -> (..., K)."""
        return arrays.dot(state.theta, x) if self._linear else self._each(self.model.mean, state, x)

    def mean_at(self, state: Any, X: Array) -> Array:
        """m_k at a row for each slot: X (..., K, d) -> (..., K)."""
        if self._linear:
            return arrays.namespace(X).sum(X * state.theta, axis=-1)
        return self.model.mean(state, X[..., None, :])[..., 0]

    def width(self, state: Any, x: Array) -> Array:
        """w_k of slot k: x (..., d) -> (..., K)."""
        return self._each(self.model.width, state, x)

    def rounding(self, state: Any) -> digits.Rounding:
        """What rounding may have done to the means and widths of each slot: (..., K)."""
        return digits.Rounding(*(part[..., 0] for part in self.model.rounding(state)))

    def reach(self, state: Any) -> Array:
        """No width of the slot is larger than this times ‖x‖, (..., K)."""
        return self.model.reach(state)

    def predict(self, state: Any, x: Array) -> Array:
        """The expected rewards, μ(x'θ̂_k) in a linear model: x (..., d) -> (..., K)."""
        return self.function.mu(self.mean(state, x)) if self._linear else self._each(self.model.predict, state, x)

    def gram_width(self, state: Any, x: Array) -> Array:
        """‖x‖ in the norm of V⁻¹ of slot k: x (..., d) -> (..., K)."""
        return self._each(self.model.gram_width, state, x)

    def noise_width(self, state: Any, x: Array) -> Array:
        """‖x‖ in the norm of V⁻¹ṼV⁻¹ of slot k: x (..., d) -> (..., K)."""
        return self._each(self.model.noise_width, state, x)

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...): the sum of those of the slots."""
        logdet = self.model.noise_logdet(state)
        return arrays.namespace(logdet).sum(logdet, axis=-1)

    def sample(self, state: Any, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., K d) -> (..., K, d)."""
        return self.model.sample(state, _slots(eta, self.slots))

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""
        logdet = self.model.logdet(state)
        return arrays.namespace(logdet).sum(logdet, axis=-1)

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t for ‖θ‖ <= S, (...): the sum of those of the slots."""
        L = self.model.lipschitz(state, S)
        return arrays.namespace(L).sum(L, axis=-1)

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds: each slot has room for the rows of the fullest."""
        return self.slots * contract.bytes_of(self.model, dim, rounds)

    def grown(self, state: Any, fresh: Any) -> Any:
        """The state of this model that goes on from one with fewer slots; fresh : what `init` gives this model."""
        return trees.map_arrays(_joined, state, fresh)

    def bound(self, state: Any) -> Array:
        """Those of the slots, (..., K, 2)."""
        return self.model.bound(state)

    def radius(self, state: Any, *, delta: float) -> Array:
        """That of each slot at level 1 - δ/K, so that all hold at once: (..., K)."""
        return self.model.radius(state, delta=delta / self.slots)[..., 0]

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2 K d) -> (..., K, d)."""
        return self.model.perturb(state, _slots(eta, self.slots))

    @property
    def _linear(self) -> bool:
        """Whether m_k = x'θ̂_k, which takes one product for all slots."""
        return "scores" in self.model.abilities

    def _each(self, ask: Callable[[Any, Array], Array], state: Any, x: Array) -> Array:
        """What every slot answers about one context: x (..., d) -> (..., K)."""
        return ask(state, x[..., None, None, :])[..., 0]


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

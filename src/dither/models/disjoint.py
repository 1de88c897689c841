"""Disjoint slots: K models of d features side by side, for one context x that all arms share.

The same as one model on the Kd-vectors (x; 0; ...; 0), (0; x; ...; 0), ..., whose V is block diagonal, at 1/K² of the
cost: a slot is a leading axis of the inner model's state. The context x (..., d) stands where other models take X.
"""

from dataclasses import dataclass
from typing import Any

import array_api_compat.numpy

from dither import arrays, errors, trees
from dither.arrays import Array


@dataclass(frozen=True)
class Disjoint:
    """`slots` copies of `model`; state: that of `model` with shapes (..., K, *)."""

    model: Any
    slots: int

    def __post_init__(self) -> None:
        errors.at_least("slots", self.slots, 1)

    @property
    def lam(self) -> float:
        """λ of each slot."""
        return self.model.lam

    @property
    def abilities(self) -> frozenset[str]:
        """Those of the inner model, but for the history, which would need one slot's rows apart."""
        return self.model.abilities - {"history"}

    def ambient(self, dim: int) -> int:
        """The dimension of θ: K d."""
        return self.slots * dim

    def flat(self, theta: Array) -> Array:
        """θ as one vector: (..., K, d) -> (..., K d)."""
        return arrays.namespace(theta).reshape(theta, (*theta.shape[:-2], -1))

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        self.model.check(state)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> Any:
        """V = λI, θ̂ = 0 in all slots, with leading axes `batch`."""
        return self.model.init(dim, batch=(*batch, self.slots), needs=needs, xp=xp, device=device)

    def update(
        self, state: Any, x: Array, r: Array, *, arm: Array, weight: Array | None = None, own: bool = False
    ) -> Any:
        """One more observation in slot `arm` (...): x (..., d), r (...), weight (...).

        own : the caller gives the old state up, and its arrays may be overwritten (copying K slots to change one is
            most of the cost when d is large)
        """
        slot = _slot(state, arm, batch=r.ndim)
        slot = self.model.update(slot, x, r, weight=weight)
        return _filled(state, arm, slot, batch=r.ndim, own=own)

    def update_many(self, state: Any, X: Array, r: Array, *, arm: Array, weight: Array | None = None) -> Any:
        """n observations of one bandit: X (n, d), r (n,), arm (n,), weight (n,); no leading axes."""
        xp = arrays.namespace(X)
        for k in xp.unique_values(arm):
            rows = xp.nonzero(arm == k)[0]
            slot = _slot(state, k, batch=0)
            own, paid = xp.take(X, rows, axis=0), xp.take(r, rows, axis=0)
            some = None if weight is None else xp.take(weight, rows, axis=0)
            slot = self.model.update_many(slot, own, paid, weight=some)
            state = _filled(state, k, slot, batch=0)
        return state

    def scores(self, theta: Array, x: Array) -> Array:
        """x'θ_k: theta (..., K, d), x (..., d) -> (..., K)."""
        return arrays.dot(theta, x)

    def mean(self, state: Any, x: Array) -> Array:
        """m_k = x'θ̂_k: x (..., d) -> (..., K)."""
        return arrays.dot(state.theta, x)

    def width(self, state: Any, x: Array) -> Array:
        """w_k of slot k: x (..., d) -> (..., K)."""
        return self.model.width(state, x[..., None, None, :])[..., 0]

    def sample(self, state: Any, eta: Array) -> Array:
        """N(0, V⁻¹) from η ~ N(0, I): (..., K d) -> (..., K, d)."""
        return self.model.sample(state, _slots(eta, self.slots))

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""
        logdet = self.model.logdet(state)
        return arrays.namespace(logdet).sum(logdet, axis=-1)

    def norms(self, state: Any) -> Array:
        """Σ ‖x‖² and Σ ‖x‖ |r| over all slots, (..., 2)."""
        norms = self.model.norms(state)
        return arrays.namespace(norms).sum(norms, axis=-2)

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2 K d) -> (..., K, d)."""
        return self.model.perturb(state, _slots(eta, self.slots))


def _slots(eta: Array, slots: int) -> Array:
    return arrays.namespace(eta).reshape(eta, (*eta.shape[:-1], slots, -1))


def _slot(state: Any, arm: Array, *, batch: int) -> Any:
    """The state of one slot in each replication."""
    return trees.map_arrays(lambda A: arrays.pick(A, arm, rank=A.ndim - batch - 1), state)


def _filled(state: Any, arm: Array, slot: Any, *, batch: int, own: bool = False) -> Any:
    """The state with that of one slot replaced."""
    return trees.map_arrays(lambda A, new: arrays.replace(A, arm, new, rank=A.ndim - batch - 1, own=own), state, slot)

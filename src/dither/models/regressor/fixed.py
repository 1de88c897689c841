"""A function of your own as the model of rewards: m_i = f(x_i), never trained here."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import array_api_compat.numpy
import numpy as np

from dither import links
from dither.base.arrays import Array
from dither.models import moments
from dither.models.regressor import adapter, fingerprints, slots
from dither.models.regressor.slots import Encoding


class FixedState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    count: Array  # (...)  rewards that came; int64
    moments: Any  # Moments: the spread of each feature, where a policy asked for it

    @property
    def theta(self) -> np.ndarray:
        """No θ."""
        return np.zeros(0)


@dataclass(frozen=True)
class Fixed:
    """A function X (n, D) -> (n,) of rewards that are expected, for X (..., K, d) or `slots` arms.

    function : as `predict` of an estimator that has been trained; D is d, or with slots what `encode` makes of it
    slots, encode : K arms that share a context, as in `Regressor`
    """

    function: Any
    slots: int | None = None
    encode: Encoding = "disjoint"
    support = links.LINKS["identity"].support

    def __post_init__(self) -> None:
        adapter.check_function(self.function)
        slots.check(self.slots, self.encode)

    @property
    def abilities(self) -> frozenset[str]:
        """What a policy may ask of it."""
        known = {"mean", "mean_at", "predict", "spread"}
        return frozenset(known | ({"mean_everywhere"} if self.slots and self.encode == "disjoint" else set()))

    def fingerprint(self) -> str:
        """What a file says of the function, which it cannot hold: where it is defined, not what it does."""
        return f"Fixed({fingerprints.function_name(self.function)}, slots={self.slots}, encode={self.encode!r})"

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> FixedState:
        """No rewards yet."""
        if xp is not array_api_compat.numpy:
            raise TypeError("the function takes NumPy arrays: leave device= of simulate out")
        return FixedState(np.zeros(batch, np.int64), moments.init(batch, dim) if "spread" in needs else None)

    def update(
        self, state: FixedState, x: Array, r: Array, *, arm: Array | None = None, weight: Array | None = None
    ) -> FixedState:
        """One reward more, which is counted: x (..., d), r (...)."""
        kept = state.moments if state.moments is None else moments.update(state.moments, np.asarray(x), weight)
        return FixedState(state.count + 1, kept)

    def mean(self, state: FixedState, X: Array) -> Array:
        """f(x_i): X (..., K, d), with slots (..., d) -> (..., K)."""
        return self.mean_at(state, slots.shared(np.asarray(X), self.slots))

    def predict(self, state: FixedState, X: Array) -> Array:
        """The expected rewards: the means."""
        return self.mean(state, X)

    def mean_at(self, state: FixedState, X: Array) -> Array:
        """f at one row for each arm, with slots too: X (..., K, d) -> (..., K)."""
        return slots.asked(self._answer, np.asarray(X), slots=self.slots, encode=self.encode)

    def mean_everywhere(self, state: FixedState, X: Array, step: Array) -> Array:
        """f at the whole Kd-vector of each arm, moved by step (..., K, K, d): X (..., d) -> (..., K)."""
        return slots.asked(self._answer, slots.moved(np.asarray(X), np.asarray(step)), slots=None, encode=self.encode)

    def spread(self, state: FixedState) -> Array:
        """The sd of each feature of what came, (..., d)."""
        return moments.spread(state.moments)

    def _answer(self, X: np.ndarray) -> np.ndarray:
        """f of rows (n, D): (n,)."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return adapter.asked(self.function, X, name=name)

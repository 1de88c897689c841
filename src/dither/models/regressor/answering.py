"""What a refitted estimator and a function that is never trained share: they answer rows, and slots are encoded."""

from typing import Any

import numpy as np

from dither.base.arrays import Array
from dither.models import moments
from dither.models.model import Model, abilities_of
from dither.models.regressor import encoding


class Answering(Model):
    """A model of rows. A subclass has the setting `encode` and the method `answers`."""

    encode: str

    def answers(self, state: Any, X: np.ndarray, *, slots: int | None) -> np.ndarray:
        """f of rows X (..., K, d), encoded as for so many slots: (..., K)."""
        raise NotImplementedError

    @property
    def abilities(self) -> frozenset[str]:
        """What a policy may ask of it."""
        whole = self.slots and self.encode == "disjoint"
        return abilities_of(type(self)) - (frozenset() if whole else {"mean_everywhere"})

    def mean(self, state: Any, X: Array) -> Array:
        """f(x_i): X (..., K, d), with slots (..., d) -> (..., K)."""
        return self.mean_at(state, encoding.shared(np.asarray(X), self.slots))

    def predict(self, state: Any, X: Array) -> Array:
        """The expected rewards: the means."""
        return self.mean(state, X)

    def mean_at(self, state: Any, X: Array) -> Array:
        """f at one row for each arm, with slots too: X (..., K, d) -> (..., K)."""
        return self.answers(state, np.asarray(X), slots=self.slots)

    def mean_everywhere(self, state: Any, X: Array, step: Array) -> Array:
        """f at the whole Kd-vector of each arm, moved by step (..., K, K, d): X (..., d) -> (..., K)."""
        return self.answers(state, encoding.moved(np.asarray(X), np.asarray(step)), slots=None)

    def spread(self, state: Any) -> Array:
        """The sd of each feature of what was learnt, (..., d)."""
        return moments.spread(state.moments)

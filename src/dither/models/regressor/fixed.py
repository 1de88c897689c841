"""A function of your own as the model of rewards: m_i = f(x_i), never trained here."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.models import moments
from dither.models.regressor import adapter, encoding, fingerprints
from dither.models.regressor.answering import Answering
from dither.models.regressor.encoding import Encoding


class FixedState(NamedTuple):
    """What is known: shapes (...) are replications, none for one bandit."""

    count: Array  # (...)  rewards that came; int64
    moments: Any  # Moments: the spread of each feature, where a policy asked for it

    @property
    def theta(self) -> np.ndarray:
        """No θ."""
        return np.zeros(0)


@dataclass(frozen=True)
class Fixed(Answering):
    """A function X (n, D) -> (n,) of rewards that are expected, for X (..., K, d) or `slots` arms.

    function : as `predict` of an estimator that has been trained; D is d, or with slots what `encode` makes of it
    slots, encode : K arms that share a context, as in `Regressor`
    """

    function: Any
    slots: int | None = None
    encode: Encoding = "disjoint"

    def __post_init__(self) -> None:
        adapter.check_function(self.function)
        encoding.check(self.slots, self.encode)

    def fingerprint(self) -> str:
        """What a file says of the function, which it cannot hold: where it is defined, not what it does."""
        return f"Fixed({fingerprints.function_name(self.function)}, slots={self.slots}, encode={self.encode!r})"

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=arrays.NUMPY, device=None) -> FixedState:
        """No rewards yet."""
        if xp is not arrays.NUMPY:
            raise TypeError("the function takes NumPy arrays: leave device= of simulate out")
        return FixedState(np.zeros(batch, np.int64), moments.init(batch, dim) if "spread" in needs else None)

    def update(
        self, state: FixedState, x: Array, r: Array, *, arm: Array | None = None, weight: Array | None = None
    ) -> FixedState:
        """One reward more, which is counted: x (..., d), r (...)."""
        kept = state.moments if state.moments is None else moments.update(state.moments, np.asarray(x), weight)
        return FixedState(state.count + 1, kept)

    def answers(self, state: FixedState, X: np.ndarray, *, slots: int | None) -> np.ndarray:
        """f of rows X (..., K, d), encoded as for so many slots: (..., K)."""
        return encoding.asked(self._answer, X, slots=slots, encode=self.encode)

    def _answer(self, X: np.ndarray) -> np.ndarray:
        """f of rows (n, D): (n,)."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return adapter.asked(self.function, X, name=name)

"""Ridge regression: linear least squares with a penalty.

    V = λI + Σ x x'        θ̂ = V⁻¹ Σ r x        w_i = ‖x_i‖_{V⁻¹} = ‖F'x_i‖        θ̂ + c F η ~ N(θ̂, c² V⁻¹)

V⁻¹ = F F' is kept as the factor F. Where nothing is forgotten, `recursion` learns an observation in O(d²). With
`discount`, `window` or `half_life` older observations count for less (`forgetting`); no update of F in O(d²) is exact
then, and `fading` makes it anew from the sums.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass, field
from typing import Any

import array_api_compat.numpy

from dither.base.arrays import Array
from dither.models import factor, fading, forgetting, recursion
from dither.models.forgetting import Forgetting
from dither.models.linear import LinearModel, penalty
from dither.models.model import abilities_of

MEMORY = 2**28  # bytes that F may take


@dataclass(frozen=True)
class Ridge(Forgetting, LinearModel):
    """Linear regression with penalty λ‖θ‖², for X (..., K, d) shared by all arms.

    lam : λ; feature²
    discount, window, half_life : how older observations count (`models/forgetting.py`); at most one of them is set
    """

    lam: float = 1e-4
    memory: int = field(default=MEMORY, repr=False)
    discount: float = 1.0
    window: int | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        penalty("lam", self.lam)
        forgetting.check(self)

    @property
    def learning(self) -> Any:
        """The module that learns, and that computes what its state alone knows: `recursion` or `fading`."""
        return fading if self.forgets else recursion

    @functools.cached_property
    def abilities(self) -> frozenset[str]:
        """What it can tell a policy. A count of what is half forgotten is no count of observations."""
        counted = self.window is not None or not self.forgets
        return abilities_of(type(self)) - (frozenset() if counted else {"history"})

    @property
    def owns(self) -> bool:
        """Whether update may write behind the rows of the old state: the rows of a window."""
        return self.window is not None

    @functools.cached_property
    def squared(self) -> "Ridge":
        """The model whose rows count the square of what they count here."""
        half = None if self.half_life is None else self.half_life / 2
        return dataclasses.replace(self, discount=self.discount**2, half_life=half)

    def check(self, state: Any) -> None:
        """Refuse a state that no data can lead to, as of a file that something else wrote."""
        factor.check(state.F)
        self.learning.check(state)

    def init(self, dim: int, *, batch=(), needs=frozenset(), xp=array_api_compat.numpy, device=None) -> Any:
        """V = λI, θ̂ = 0, with leading axes `batch`."""
        size = 8 * dim * dim * math.prod(batch)
        if size > self.memory:
            raise ValueError(
                f"dim={dim} with leading axes {tuple(batch)} takes {size / 2**30:.1f} GiB for V⁻¹ alone, more than "
                f"{self.memory / 2**30:.2f} GiB: pass diagonal=True, fewer runs at once, or models.Ridge(memory=...)"
            )
        zeros = xp.zeros((*batch, dim), dtype=xp.float64, device=device)
        return self.learning.init(self, zeros, factor.identity(zeros, 1 / float(self.lam) ** 0.5), needs=needs)

    def update(self, state: Any, x: Array, r: Array, **settings: Any) -> Any:
        """One more observation: x (..., d), r (...).

        weight=None (...) : a weight of 0 changes nothing
        at=None (...) : with `half_life`, the time of the observation
        own=False : as of `owns`
        """
        return self.learning.update(self, state, x, r, **settings)

    def update_many(self, state: Any, X: Array, r: Array, **settings: Any) -> Any:
        """n observations at once: X (..., n, d), r, weight, at (..., n); the same as n updates."""
        return self.learning.update_many(self, state, X, r, **settings)

    def advanced(self, state: Any, at: Array) -> Any:
        """The state at the time at (...), without an observation (`half_life` alone)."""
        return fading.advanced(self, state, at)

    def logdet(self, state: Any) -> Array:
        """log(det V/det λI), (...)."""
        return self.learning.logdet(self, state)

    def noise_width(self, state: Any, X: Array) -> Array:
        """The sd of x_i'θ̂ from noise of sd 1 alone, ‖x_i‖ in V⁻¹ṼV⁻¹ and at most so: X (..., K, d) -> (..., K).

        Ṽ = λI + Σ ω² xx', which is V where nothing is forgotten, and in a window.
        """
        return self.learning.noise_width(self, state, X)

    def noise_logdet(self, state: Any) -> Array:
        """log(det Ṽ/det λI), (...)."""
        return self.learning.noise_logdet(self, state)

    def lipschitz(self, state: Any, S: float) -> Array:
        """L_t for ‖θ‖ <= S, (...): `statistics.lipschitz`."""
        return self.learning.lipschitz(self, state, S)

    def perturb(self, state: Any, eta: Array) -> Array:
        """V⁻¹ N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d). A row that counts ω has ω xx' in the sum."""
        return self.learning.perturb(state, eta)

    def history(self, state: Any) -> Any:
        """Every distinct x with its count and its sum of rewards: `history.History`. In a window, of its rows."""
        return self.learning.history(state)

"""GLOC (Jun, Bhargava, Nowak, Willett 2017): optimism over a confidence set that an online learner leaves behind.

    s_i = x_i'θ̄ + √β_t ‖x_i‖ in the norm of V̄⁻¹

The learner, θ̄, V̄ and β_t are those of the model, `models.OnlineNewton`. δ = 1/T.
"""

from dataclasses import dataclass

from dither.base import errors
from dither.base.arrays import Array
from dither.policies import views


@dataclass(frozen=True)
class GLOC:
    """On any model with `mean`, `width` and a `radius` of its own."""

    horizon: int | None = None  # T; None: t
    needs = frozenset({"mean", "width", "radius"})
    draw = views.nothing

    def __post_init__(self) -> None:
        errors.at_least("horizon", self.horizon, 1, or_none=True)

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The scores m + √β w (..., K)."""
        lines = views.lines(model, state, X, by=1.0)
        return views.optimistic(lines._replace(w=lines.w * model.radius(state, delta=1 / (self.horizon or t))))

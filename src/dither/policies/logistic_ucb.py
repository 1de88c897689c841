"""Logistic-UCB-2 (Faury, Abeille, Calauzènes, Fercoq 2020): a bonus that is small where rewards vary little.

    s_i = μ(x_i'θ_t) + (2 + 4S) γ_t μ'(x_i'θ_t) ‖x_i‖_{H_t⁻¹(θ_t)} + (2 + 4S) M (γ_t²/κ) ‖x_i‖²_{V_t⁻¹}

The bonus is that of the model, `models.Admissible`, which has the letters too. δ = 1/T.
"""

from dataclasses import dataclass

from dither.base.arrays import Array
from dither.policies import views


@dataclass(frozen=True)
class LogisticUCB2:
    """On any model with `predict` and a `bonus` of its own."""

    needs = frozenset({"predict", "bonus"})
    draw = views.nothing

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The scores μ(m) + bonus (..., K)."""
        bonus = model.bonus(state, X)
        s = model.predict(state, X) + bonus  # whose |μ'| and |μ''|/μ' are at most 1
        return views.of_rewards(model, state, X, s, lambda e, w: e.rho * w * (1 + bonus) + 2 * e.omega * bonus)

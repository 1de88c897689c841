"""OFUGLB (Lee, Yun, Jun 2024): the largest score that a parameter of the likelihood's confidence set gives an arm.

    C_t = {‖θ‖ <= S, L_t(θ) - L_t(θ̂_t) <= W_t²},  θ̂_t the minimiser of L_t over ‖θ‖ <= S,     s_i = max_{θ ∈ C_t} x_i'θ

Every arm of every round is one convex problem. SciPy's SLSQP solves it from θ̂, and each evaluation reads the history.
So this is for small problems. `optimism.UCB(radius="ofuglb")` is its ellipsoidal relaxation, OFUGLB-e.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors
from dither.base.arrays import Array
from dither.models.model import link
from dither.policies import optimism, views

TOLERANCE = 1e-6  # of SLSQP


@dataclass(frozen=True)
class OFUGLB:
    """On any model with `refit`, `rows` and `lipschitz` that was fitted over ‖θ‖ <= S (`GLM(constrain=S)`)."""

    S: float = 1.0  # bound on ‖θ*‖
    horizon: int | None = None  # T; None: t
    needs = frozenset({"mean", "refit", "rows", "lipschitz"})
    draw = views.nothing

    def __post_init__(self) -> None:
        errors.positive("S", self.S)
        errors.at_least("horizon", self.horizon, 1, or_none=True)

    def view(self, model, state, X: Array, *, t: int) -> views.Scores:
        """The scores (..., K)."""
        K, d = X.shape[-2:]
        W = optimism.likelihood_radius(model, state, t, d=d, S=self.S, T=self.horizon or t)
        W = np.broadcast_to(arrays.numpy(W), X.shape[:-2])
        arms, theta = arrays.numpy(X), np.broadcast_to(arrays.numpy(state.theta), (*X.shape[:-2], d))
        history = model.rows(state)
        scores = np.empty((*X.shape[:-2], K))
        for row in np.ndindex(X.shape[:-2]):
            run = row if history.rows.ndim else ()
            n = int(history.rows[run])
            rows = tuple(arrays.numpy(part)[run][:n] for part in history[:3])
            scores[row] = _highest(arms[row], rows, theta[row], level=float(W[row]) ** 2, S=self.S, link=link(model))
        return views.plain(arrays.beside(scores, X))


def _highest(arms: np.ndarray, rows: tuple, theta: np.ndarray, *, level: float, S: float, link: Any) -> np.ndarray:
    """max x'θ over the confidence set, for arms (K, d); rows: features (n, d), counts and sums (n,). -> (K,)"""
    if not len(rows[0]):
        return S * np.linalg.norm(arms, axis=1)
    X, count, total = rows

    def loss(theta: np.ndarray) -> float:
        return float(count @ link.g(X @ theta) - total @ (X @ theta))

    def slope(theta: np.ndarray) -> np.ndarray:
        return (count * link.mu(X @ theta) - total) @ X

    least, longest = loss(theta), S * np.linalg.norm(arms, axis=1)
    limits = (
        {"type": "ineq", "fun": lambda v: level - loss(v) + least, "jac": lambda v: -slope(v)},
        {"type": "ineq", "fun": lambda v: S * S - v @ v, "jac": lambda v: -2 * v},
    )
    highest = np.empty(len(arms))
    for i, x in enumerate(arms):
        if longest[i] == 0 or loss(S * x / np.linalg.norm(x)) - least <= level:
            highest[i] = longest[i]  # the ball alone bounds the score
            continue
        from scipy import optimize  # it would double the time of `import dither`, and only this needs it

        answer = optimize.minimize(
            lambda v, x=x: -(v @ x),
            theta,
            jac=lambda v, x=x: -x,
            constraints=limits,
            method="SLSQP",
            tol=TOLERANCE,
        )
        highest[i] = min(max(-answer.fun if answer.success else -np.inf, float(x @ theta)), longest[i])
    return highest

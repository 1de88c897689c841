"""Confidence radii, each named after its symbol or its paper, as plain functions of numbers (or arrays of them).

Letters: d features, t the round (t - 1 observations), T horizon, S >= ‖θ*‖, R the sd of the reward noise, lam λ,
M the self-concordance constant M_μ (0 for linear models), L the Lipschitz constant L_t of the loss at that round.
"""

import math
from typing import Any

import numpy as np

from dither import arrays

C, C_PRIME = 2.0, 2.0  # the constants c and c' of concentration, for both noises of Appendix B


def beta(t: int, *, d: int, lam: float, S: float, M: float, L: Any, delta: float, R: float = 1.0) -> Any:
    """β_t(δ), the radius of the confidence set (paper, Lemma 1 and its proof in Appendix E).

    β_t(δ)² = 4S²λ + 2(1 + S M_μ)(log(1/δ) + d log(2eS L_t/d)); the logarithm is taken of at least e, for L_1 = 0.

    t: the round (all dependence on it is through L); L: L_t at that round, a number or an array (...).
    R: the sd of the reward noise where it is not 1 (footnote to equation (density)): the bound for the rewards and
    parameters over R, times R, so that 2R² and L_t/R² stand for 2 and L_t.
    """
    L, xp = (L, arrays.namespace(L)) if hasattr(L, "ndim") else (np.float64(L), np)
    inside = xp.clip(2 * math.e * S * L / (R**2 * d), min=math.e)
    radius = xp.sqrt(4 * S**2 * lam + 2 * R**2 * (1 + S * M) * (math.log(1 / delta) + d * xp.log(inside)))
    return float(radius) if radius.ndim == 0 else radius


def gamma(t: int, *, d: int, lam: float, S: float, M: float, L: Any, delta: float, T: int) -> Any:
    """γ_t(δ) = β_t(δ/(4T)) √(c log(4c'T/δ)), how far a perturbed score strays (paper, Table of notations)."""
    return beta(t, d=d, lam=lam, S=S, M=M, L=L, delta=delta / (4 * T)) * math.sqrt(
        C * math.log(4 * C_PRIME * T / delta)
    )


def oful(t: int, *, d: int, lam: float, S: float = 1.0, R: float = 1.0, T: int | None = None) -> float:
    """√λ S + R √(2 log T + d log(1 + t/(λ d))), the radius of OFUL with δ = 1/T and ‖x‖ <= 1 (T: None for t).

    Abbasi-Yadkori, Pál, Szepesvári 2011, Theorem 2 with the determinant bounded by trace; figure 2b of the paper
    was drawn with it.
    """
    return math.sqrt(lam) * S + R * math.sqrt(2 * math.log(T or t) + d * math.log(1 + t / (lam * d)))


def ucb(t: int, *, d: int, lam: float = 1.0, S: float = 1.0, R: float = 1.0, delta: float, L: float = 1.0) -> float:
    """√Λ S + R √(d log((1 + t L²/Λ)/δ)), the coarser radius of LinUCB (Λ = `lam`, L >= ‖x‖)."""
    return math.sqrt(lam) * S + R * math.sqrt(d * math.log((1 + t * L**2 / lam) / delta))


def self_normalised(logdet: Any, *, lam: float, S: float = 1.0, R: float = 1.0, delta: float) -> Any:
    """√λ S + R √(2 log(1/δ) + log(det V/det λI)), OFUL's own radius; logdet: log(det V/det λI), an array."""
    return math.sqrt(lam) * S + R * arrays.namespace(logdet).sqrt(2 * math.log(1 / delta) + logdet)

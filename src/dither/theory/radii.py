"""Confidence radii, and how far a perturbed score strays: β_t, W_t, γ_t, c_{δ'}; also the radii of other papers.

The letters: d features; t the round, after t - 1 observations; T the horizon; S >= ‖θ*‖; R the sd of the reward noise;
lam is λ, a number or (...); M is M_μ, the self-concordance constant (0 for linear models); L is L_t, the Lipschitz
constant of the loss at round t; delta_prime is δ' = δ/(4T).
"""

import math
from typing import Any

import numpy as np

from dither.base import arrays

CONCENTRATION, CONCENTRATION_PRIME = 2.0, 2.0  # c and c' of equation (concentration), for both laws of Appendix B


def W(t: int, *, d: int, S: float = 1.0, L: Any, delta: Any, R: float = 1.0) -> Any:
    """W_t(δ), where W_t² = log(1/δ) + d log(2eS L_t/d) (paper, Appendix E, proof of Lemma 1).

    With probability 1 - δ, L_t(θ*) - L_t(θ̂) <= W_t² for the minimiser θ̂ over ‖θ‖ <= S. The second logarithm is taken
    of at least e, since L_1 = 0. R is as for `beta`.
    """
    L, xp = _array(L)
    inside = xp.clip(2 * math.e * S * L / (R**2 * d), min=math.e)
    return plain(xp.sqrt(d * xp.log(inside) - ln(delta)))


def beta(t: int, *, d: int, lam: Any, S: float = 1.0, M: float, L: Any, delta: Any, R: float = 1.0) -> Any:
    """β_t(δ), the radius of the confidence set (paper, Lemma 1 with S = 1; its proof in Appendix E with any S).

    β_t(δ)² = 4S²λ + 2(1 + S M_μ) W_t(δ)², W_t(δ)² = log(1/δ) + d log(2eS L_t/d).

    t : the round; the radius depends on it through L alone
    L : L_t at that round, a number or an array (...)
    R : the sd of the reward noise (footnote to equation 1 (density)). For R other than 1, rewards and parameters are
        divided by R, and the radius is multiplied by R. So 2R² stands for 2, and L_t/R² for L_t.
    """
    L, xp = _array(L)
    square = xp.square(_array(W(t, d=d, S=S, L=L, delta=delta, R=R))[0])
    return plain(xp.sqrt(4 * S**2 * lam + 2 * R**2 * (1 + S * M) * square))


def c_delta(delta_prime: Any) -> Any:
    """c_{δ'} = √(c log(c'/δ')) = √(2 log(2/δ')). |u'ζ| exceeds it with probability at most δ' (paper, Lemma F.6)."""
    value = np.sqrt(CONCENTRATION * (math.log(CONCENTRATION_PRIME) - ln(delta_prime)))
    return plain(value)


def gamma(t: int, *, d: int, lam: float, S: float = 1.0, M: float, L: Any, delta: Any, T: Any) -> Any:
    """γ_t(δ) = β_t(δ/(4T)) √(c log(4c'T/δ)), how far a perturbed score strays (paper, Table of notations).

    Appendix E uses this value and writes it γ_t(δ'): it is c_{δ'} β_t(δ') with δ' = δ/(4T) (docs/theory.md).
    """
    delta_prime = delta / (4 * T)
    return beta(t, d=d, lam=lam, S=S, M=M, L=L, delta=delta_prime) * c_delta(delta_prime)


def oful(t: float, *, d: int, lam: Any, S: float = 1.0, R: float = 1.0, T: int | None = None) -> Any:
    """√λ S + R √(2 log T + d log(1 + t/(λ d))), the radius of OFUL with δ = 1/T and ‖x‖ <= 1. T=None stands for t.

    Abbasi-Yadkori, Pál, Szepesvári 2011, Theorem 2, with the determinant bounded by the trace. Figure 2b of the paper
    fits this radius.
    """
    return plain(root(lam) * S + R * root(2 * math.log(T or t) + d * ln(1 + t / (lam * d))))


def ucb(t: float, *, d: int, lam: float = 1.0, S: float = 1.0, R: float = 1.0, delta: float, L: float = 1.0) -> float:
    """√Λ S + R √(d log((1 + t L²/Λ)/δ)), the coarser radius of LinUCB (Λ = `lam`, L >= ‖x‖)."""
    return math.sqrt(lam) * S + R * math.sqrt(d * math.log((1 + t * L**2 / lam) / delta))


def self_normalised(logdet: Any, *, lam: Any, S: float = 1.0, R: float = 1.0, delta: float) -> Any:
    """√λ S + R √(2 log(1/δ) + log(det V/det λI)), OFUL's own radius.

    logdet : log(det V/det λI), an array. Only rounding puts it below 0, and then it counts as 0
    """
    xp = arrays.namespace(logdet)
    return root(lam) * S + R * xp.sqrt(2 * math.log(1 / delta) + xp.clip(logdet, min=0.0))


def ln(x: Any) -> Any:
    """The logarithm of a number or of an array."""
    return arrays.namespace(x).log(x) if hasattr(x, "ndim") else math.log(x)


def root(x: Any) -> Any:
    """The square root of a number or of an array."""
    return arrays.namespace(x).sqrt(x) if hasattr(x, "ndim") else math.sqrt(x)


def plain(x: Any) -> Any:
    """x, as a float if it is an array without axes."""
    return float(x) if getattr(x, "ndim", 1) == 0 else x


def _array(L: Any) -> tuple[Any, Any]:
    return (L, arrays.namespace(L)) if hasattr(L, "ndim") else (np.float64(L), np)

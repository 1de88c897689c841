"""Radii of the rival algorithms for generalised linear models, as their papers or their authors' code have them."""

import math
from typing import Any

from dither.theory.radii import plain


def ucb_glm(T: int, *, d: int, sigma: float = 0.5, kappa: float = 0.25, delta: float) -> float:
    """α = (σ/κ) √((d/2) log(1 + 2T/d) + log(1/δ)), which multiplies widths in V.

    UCB-GLM (Li, Lu, Zhou 2017, Theorem 2).
    """
    return sigma / kappa * math.sqrt(d / 2 * math.log(1 + 2 * T / d) + math.log(1 / delta))


def glm_ucb(
    T: int,
    *,
    d: int,
    delta: float,
    k_mu: float = 0.25,
    c_mu: float = 0.25,
    R: float = 1.0,
    c_m: float = 1.0,
    lam0: float = 1.0,
) -> float:
    """ρ = (2 k_μ κ R/c_μ) √(2 d log T log(2 d T/δ)), κ = √(3 + 2 log(1 + 2 c_m²/λ₀)), which multiplies widths in V.

    GLM-UCB (Filippi, Cappé, Garivier, Szepesvári 2010). k_μ is the Lipschitz constant of μ and c_μ its least slope.
    R is the largest reward, and c_m >= ‖x‖. λ₀ is the least eigenvalue of V after the first rounds.
    """
    kappa = math.sqrt(3 + 2 * math.log(1 + 2 * c_m**2 / lam0))
    return 2 * k_mu * kappa * R / c_mu * math.sqrt(2 * d * math.log(max(T, 2)) * math.log(2 * d * T / delta))


def ofuglb_e(W: Any, *, S: float, M: float = 1.0) -> Any:
    """√(2 (1 + S M_μ)(1 + W_t²)), which multiplies widths in ℓI + Σ μ'(x'θ̂) xx' with ℓ <= (1 + S)/(2S²).

    OFUGLB-e (Lee, Yun, Jun 2024).
    """
    return plain((2 * (1 + S * M) * (1 + W**2)) ** 0.5)

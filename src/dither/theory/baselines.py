"""Radii of the rival algorithms for generalised linear models, as their papers or their authors' code have them."""

import math
from typing import Any

from dither.base import arrays
from dither.theory.radii import ln, plain


def ucb_glm(T: float, *, d: int, sigma: float = 0.5, kappa: float = 0.25, delta: float) -> float:
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


def squarecb_gamma(T: int, *, K: Any, d: int, delta: float) -> Any:
    """γ = √(K T/(d log(1 + T/d) + log(2/δ))), how sharply the probability of an arm falls with its gap.

    SquareCB (Foster, Rakhlin 2020, Theorem 1), with d log(1 + T/d) for the regret in squares of the learner: the order
    of online least squares in d dimensions, for features and parameters of length 1 and rewards in [0, 1].
    """
    return (K * T / (d * math.log1p(T / d) + math.log(2 / delta))) ** 0.5


def ofuglb_e(W: Any, *, S: float, M: float = 1.0) -> Any:
    """√(2 (1 + S M_μ)(1 + W_t²)), which multiplies widths in ℓI + Σ μ'(x'θ̂) xx' with ℓ <= (1 + S)/(2S²).

    OFUGLB-e (Lee, Yun, Jun 2024).
    """
    return plain((2 * (1 + S * M) * (1 + W**2)) ** 0.5)


def gloc_alpha(B: Any, *, kappa: float, R: float = 0.5, delta: float) -> Any:
    """α = 1 + 4B/κ + (8R²/κ²) log((2/δ) √(1 + 2B/κ + 4R⁴/(κ⁴δ²))), a bound on D = Σ (x_s'θ* - z_s)².

    GLOC (Jun, Bhargava, Nowak, Willett 2017, Theorem 1): with probability 1 - δ it holds in all rounds, where B >= Σ
    ℓ_s(z_s) - ℓ_s(x_s'θ*) bounds the regret of the online learner, κ is the least μ' between the logits, and the noise
    η_s of the rewards is R-sub-Gaussian (½ for rewards in [0, 1]). The steps:

        κD/2 <= B + Σ η_s (z_s - x_s'θ*)                            the losses are κ-convex in the logit
        Σ η_s (z_s - x_s'θ*) <= R √(2 (1 + D) log(√(1 + D)/δ))      self-normalised bound in one dimension, λ = 1
        q² <= a + f q √log(q/δ)  =>  q² <= 2a + (f²/2) log((4a + f⁴/(4δ²))/δ²)

    with q² = 1 + D, a = 1 + 2B/κ, f² = 8R²/κ². The last line is fq√log <= (q² + f² log)/2, and then log y <= y/e.
    """
    ratio = R**2 / kappa**2
    return plain(1 + 4 * B / kappa + 8 * ratio * (ln(2 / delta) + ln(1 + 2 * B / kappa + 4 * (ratio / delta) ** 2) / 2))


def gloc_beta(B: Any, misfit: Any, *, kappa: float, lam: float, S: float = 1.0, R: float = 0.5, delta: float) -> Any:
    """β = λS² + α - misfit >= ‖θ* - θ̄‖² in the norm of V̄ = λI + X'X, for θ̄ = V̄⁻¹X'z.

    GLOC (Jun, Bhargava, Nowak, Willett 2017). Completing the square gives ‖Xθ - z‖² + λ‖θ‖² = ‖θ - θ̄‖² + misfit, where
    the misfit ‖z‖² - θ̄'X'z is the least value of the left-hand side. At θ*, that side is at most α + λS².
    """
    beta = lam * S**2 + gloc_alpha(B, kappa=kappa, R=R, delta=delta) - misfit
    return arrays.namespace(beta).clip(beta, min=0.0) if hasattr(beta, "ndim") else max(beta, 0.0)


def logistic_ucb2_gamma(t: Any, *, d: int, lam: Any, S: float = 1.0, delta: Any) -> Any:
    """γ_t = √λ (S + ½) + (2/√λ)(log(1/δ) + (d/2) log(1 + t/(4dλ)) + d log 2), for the logit link and ‖x‖ <= 1.

    Logistic-UCB-2 (Faury, Abeille, Calauzènes, Fercoq 2020). With probability 1 - δ, ‖g(θ*) - g(θ̂)‖ <= γ_t in the norm
    of H⁻¹(θ*): the difference is λθ* - Σ ηx, where √λ S bounds the first part and their Bernstein inequality, Theorem
    1, the second. Its log det H is bounded by the trace. For a fixed λ this holds in all rounds at once; for a λ that
    grows with t we know it for each round by itself.
    """
    root = lam**0.5
    return plain(root * (S + 0.5) + 2 / root * (d / 2 * ln(1 + t / (4 * d * lam)) + d * math.log(2) - ln(delta)))


def logistic_ucb2_bonus(
    slope: Any,
    w: Any,
    v: Any,
    *,
    gamma: Any,
    gap: Any = 0.0,
    S: float = 1.0,
    kappa: float,
    M: float,
) -> Any:
    """(2 + 4S) γ μ' w + (2 + 4S) M (γ²/κ) v², at least μ(x'θ*) - μ(x'θ_t) where `logistic_ucb2_gamma` holds.

    Logistic-UCB-2 (Faury, Abeille, Calauzènes, Fercoq 2020). slope: μ'(x'θ_t); w, v: ‖x‖ in the norms of H⁻¹(θ_t) and
    of V⁻¹, V = Σ xx' + (λ/κ)I; gap: ‖g(θ_t) - g(θ̂)‖ in the norm of H⁻¹(θ_t); what it has above γ is counted.

        G = ∫ H from θ_t to θ* >= H/(1 + 2S) at both ends              self-concordance; |x'(θ* - θ_t)| <= 2S
        ‖θ* - θ_t‖_G = ‖g(θ*) - g(θ_t)‖_{G⁻¹} <= √(1 + 2S) (γ + gap)   through θ̂; gap <= γ, as θ* is admissible
        ‖θ* - θ_t‖_H <= (1 + 2S)(γ + gap) <= (2 + 4S) γ                the first term
        M (x'(θ* - θ_t))²/2 <= M (1 + 2S)(γ + gap)² v²/(2κ)            Taylor, |μ''| <= M and G >= κV: the second

    The paper has M = ¼ and (4 + 8S), without Taylor's ½: that is M = ½ here.
    """
    both = gamma + (arrays.namespace(gap).maximum(gamma, gap) if hasattr(gap, "ndim") else max(gamma, gap))
    return (1 + 2 * S) * both * slope * w + M * (1 + 2 * S) * both**2 / (2 * kappa) * v**2

"""The bound of Theorem 1 with the constants of its proof (paper, Appendix E, Steps 1 to 5).

    R(T) <= (2/p + 2) Reg_max + ε + warm-up,   Reg_max <= A√(B + C Reg_max) + D  =>  Reg_max <= 2(A√B + A²C + D)

repaired=False has the constants as printed. repaired=True has those that two steps of the proof need (docs/theory.md):
7 in place of 5 in D, and in ε the rounds outside I_T, whose expectation Step 2-2 leaves out. All functions work on
numbers and on arrays of T. For reward noise of sd R, give S and the gaps in units of R and multiply the bound by R
(footnote to equation 1 (density)).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.theory.events import p
from dither.theory.potential import count_bound, potential_bound
from dither.theory.radii import beta, c_delta, plain


def R_1(T: Any, *, delta: float, lam: Any, L_mu: float) -> Any:
    """R_1 <= √(2T L_μ² log(8/δ)/λ), by Azuma (Step 2-2)."""
    return plain(np.sqrt(2 * T * L_mu**2 / lam * np.log(8 / delta)))


def R_2(T: Any, *, delta: float, lam: Any, L_mu: float) -> Any:
    """R_2 <= √(2T L_μ² log(8/δ)/(4λ²)), by Azuma (Step 2-2)."""
    return plain(np.sqrt(2 * T * L_mu**2 / (4 * lam**2) * np.log(8 / delta)))


def epsilon(T: Any, *, delta: float, lam: Any, gamma: Any, M: float, L_mu: float) -> Any:
    """ε(T, δ, λ) = (2/p)(γ_T R_1 + M_μ γ_T² R_2) (Step 2-2); gamma: γ_T."""
    first, second = (R(T, delta=delta, lam=lam, L_mu=L_mu) for R in (R_1, R_2))
    return 2 / p * (gamma * first + M * gamma**2 * second)


def warm_up_rounds(*, d: int, lam: Any, L_mu: float, kappa: float) -> Any:
    """A bound on the number of rounds outside I_T: the count lemma for H̄_t and for V̄_t, with c = 1 (Step 1)."""
    return count_bound(d=d, lam=lam, R=np.sqrt(L_mu)) + count_bound(d=d, lam=lam / kappa)


def warm_up(*, d: int, lam: Any, L_mu: float, kappa: float, R_star: float) -> Any:
    """(4 d R*/log 2)(log(1 + L_μ/(λ log 2)) + log(1 + κ/(λ log 2))), where R* = max |μ(x'θ*)| (Step 1)."""
    return 2 * R_star * warm_up_rounds(d=d, lam=lam, L_mu=L_mu, kappa=kappa)


def A(T: Any, *, d: int, lam: Any, gamma: Any, L_mu: float) -> Any:
    """A = γ_T √(2d log(1 + L_μ T/(dλ))) (Step 5)."""
    return plain(gamma * np.sqrt(potential_bound(T, d=d, lam=lam, R=np.sqrt(L_mu))))


def B(T: Any, *, kappa_star: float, M: float, epsilon: Any) -> Any:
    """B = κ_* T + M_μ ε (Step 5)."""
    return kappa_star * T + M * epsilon


def C(M: float) -> float:
    """C = M_μ (2/p + 4) (Step 5)."""
    return M * (2 / p + 4)


def D(T: Any, *, d: int, lam: Any, gamma: Any, M: float, L_mu: float, kappa: float, repaired: bool = False) -> Any:
    """D = (5d/κ) M_μ L_μ γ_T² log(1 + κT/(dλ)) (Step 5); repaired: 7 in place of 5."""
    terms = 7 if repaired else 5  # 4 of E_t and 1 of F_t; repaired, E_t has 6: θ̄_t and θ̂_t may lie in different Θ_τ
    return terms / (2 * kappa) * M * L_mu * gamma**2 * potential_bound(T, d=d, lam=lam / kappa)


def poly_solve(A: Any, B: Any, C: Any, D: Any) -> Any:
    """2(A√B + A²C + D), which bounds every X <= A√(B + CX) + D (paper, Lemma F.5)."""
    return plain(2 * (A * np.sqrt(B) + A**2 * C + D))


def poly_root(A: Any, B: Any, C: Any, D: Any) -> Any:
    """The largest X with X <= A√(B + CX) + D, which is D + A²C/2 + √(A⁴C²/4 + A²(B + CD))."""
    half = A**2 * C / 2
    return plain(D + half + np.sqrt(half**2 + A**2 * (B + C * D)))


class Bound(NamedTuple):
    """The bound and its parts. Each field is a number, or an array of T's shape."""

    beta: Any  # β_T(δ')
    gamma: Any  # γ_T(δ') = c_{δ'} β_T(δ')
    epsilon: Any
    A: Any
    B: Any
    C: float
    D: Any
    Reg_max: Any  # the solution of Step 5
    warm_up: Any
    total: Any  # the bound on R(T)


def theorem(
    T: Any,
    *,
    d: int,
    lam: Any,
    S: float,
    M: float,
    L_mu: float,
    L: Any,
    kappa: float,
    kappa_star: float,
    R_star: float,
    delta: float,
    repaired: bool = False,
) -> Bound:
    """Theorem 1 as it is proved: with probability at least 1 - δ, R(T) <= total (Appendix E).

    T : the horizon, a number or an array
    lam : λ; that of the theorem is O(d)
    M, L_mu : M_μ and L_μ
    L : the Lipschitz constant L_T of the loss
    kappa, kappa_star : κ and κ_*
    R_star : max |μ(x'θ*)|
    """
    delta_prime = delta / (4 * T)
    beta_T = beta(T, d=d, lam=lam, S=S, M=M, L=L, delta=delta_prime)
    gamma_T = beta_T * c_delta(delta_prime)
    eps = epsilon(T, delta=delta, lam=lam, gamma=gamma_T, M=M, L_mu=L_mu)
    if repaired:
        most = gamma_T * L_mu / np.sqrt(lam) + M * gamma_T**2 * L_mu / (2 * lam)  # of one round's sum in Step 2-2
        eps = eps + 2 / p * most * warm_up_rounds(d=d, lam=lam, L_mu=L_mu, kappa=kappa)
    a = A(T, d=d, lam=lam, gamma=gamma_T, L_mu=L_mu)
    b = B(T, kappa_star=kappa_star, M=M, epsilon=eps)
    rest = D(T, d=d, lam=lam, gamma=gamma_T, M=M, L_mu=L_mu, kappa=kappa, repaired=repaired)
    most = poly_solve(a, b, C(M), rest)
    start = warm_up(d=d, lam=lam, L_mu=L_mu, kappa=kappa, R_star=R_star)
    return Bound(beta_T, gamma_T, eps, a, b, C(M), rest, most, start, (2 / p + 2) * most + eps + start)


def informative_from(bound: Callable[[float], float], *, gap: float, most: float = 1e60) -> float:
    """The T from which bound(T) < gap T; inf if that T is beyond `most`.

    gap T is the regret of the worst choices: below it the bound says something. bound(T)/T must fall as T grows. That
    of Theorem 1 does so from T = 1 on.
    """
    low, high = 1.0, 2.0
    while bound(high) >= gap * high:
        low, high = high, 2 * high
        if high > most:
            return float("inf")
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if bound(middle) < gap * middle else (middle, high)
    return high

"""The paper's analysis as functions, each named after its symbol: radii, constants, lemmas, the bound of Theorem 1.

    radii      β_t, W_t, γ_t, c_{δ'}; the radii of other papers for linear models: oful, ucb, self_normalised
    baselines  the radii of other papers for generalised linear models: ucb_glm, glm_ucb, ofuglb_e, gloc_alpha,
               gloc_beta, logistic_ucb2_gamma, logistic_ucb2_bonus; the γ of SquareCB: squarecb_gamma
    curvature  L_t, κ, κ_*
    events     p, the probability of optimism, P(Ẽ_T)
    potential  the elliptical potential lemma and the count lemma, both sides
    regret     R_1, R_2, ε, A, B, C, D, the warm-up, Theorem 1, and the T from which the bound says something

docs/theory.md says where the paper contradicts itself, what is computed there, and what was measured.
docs/paper-to-code.md lists every symbol of the paper.
"""

from dither.theory.baselines import (
    glm_ucb,
    gloc_alpha,
    gloc_beta,
    logistic_ucb2_bonus,
    logistic_ucb2_gamma,
    ofuglb_e,
    squarecb_gamma,
    ucb_glm,
)
from dither.theory.curvature import kappa, kappa_star, lipschitz, lipschitz_logistic
from dither.theory.events import concentration, optimism, p, p_given
from dither.theory.potential import count, count_bound, potential, potential_bound, widths
from dither.theory.radii import W, beta, c_delta, gamma, oful, self_normalised, ucb
from dither.theory.regret import (
    R_1,
    R_2,
    A,
    B,
    Bound,
    C,
    D,
    epsilon,
    informative_from,
    poly_root,
    poly_solve,
    theorem,
    warm_up,
    warm_up_rounds,
)

__all__ = [
    "R_1",
    "R_2",
    "A",
    "B",
    "Bound",
    "C",
    "D",
    "W",
    "beta",
    "c_delta",
    "concentration",
    "count",
    "count_bound",
    "epsilon",
    "gamma",
    "glm_ucb",
    "gloc_alpha",
    "gloc_beta",
    "informative_from",
    "kappa",
    "kappa_star",
    "lipschitz",
    "lipschitz_logistic",
    "logistic_ucb2_bonus",
    "logistic_ucb2_gamma",
    "ofuglb_e",
    "oful",
    "optimism",
    "p",
    "p_given",
    "poly_root",
    "poly_solve",
    "potential",
    "potential_bound",
    "self_normalised",
    "squarecb_gamma",
    "theorem",
    "ucb",
    "ucb_glm",
    "warm_up",
    "warm_up_rounds",
    "widths",
]

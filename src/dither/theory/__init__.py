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

This is the table of them: a new one is a line here.
"""

import types

from dither.theory.baselines import glm_ucb as glm_ucb
from dither.theory.baselines import gloc_alpha as gloc_alpha
from dither.theory.baselines import gloc_beta as gloc_beta
from dither.theory.baselines import logistic_ucb2_bonus as logistic_ucb2_bonus
from dither.theory.baselines import logistic_ucb2_gamma as logistic_ucb2_gamma
from dither.theory.baselines import ofuglb_e as ofuglb_e
from dither.theory.baselines import squarecb_gamma as squarecb_gamma
from dither.theory.baselines import ucb_glm as ucb_glm
from dither.theory.curvature import kappa as kappa
from dither.theory.curvature import kappa_star as kappa_star
from dither.theory.curvature import lipschitz as lipschitz
from dither.theory.curvature import lipschitz_logistic as lipschitz_logistic
from dither.theory.events import concentration as concentration
from dither.theory.events import optimism as optimism
from dither.theory.events import p as p
from dither.theory.events import p_given as p_given
from dither.theory.potential import count as count
from dither.theory.potential import count_bound as count_bound
from dither.theory.potential import potential as potential
from dither.theory.potential import potential_bound as potential_bound
from dither.theory.potential import widths as widths
from dither.theory.radii import W as W
from dither.theory.radii import beta as beta
from dither.theory.radii import c_delta as c_delta
from dither.theory.radii import gamma as gamma
from dither.theory.radii import oful as oful
from dither.theory.radii import self_normalised as self_normalised
from dither.theory.radii import ucb as ucb
from dither.theory.regret import R_1 as R_1
from dither.theory.regret import R_2 as R_2
from dither.theory.regret import A as A
from dither.theory.regret import B as B
from dither.theory.regret import Bound as Bound
from dither.theory.regret import C as C
from dither.theory.regret import D as D
from dither.theory.regret import epsilon as epsilon
from dither.theory.regret import informative_from as informative_from
from dither.theory.regret import poly_root as poly_root
from dither.theory.regret import poly_solve as poly_solve
from dither.theory.regret import theorem as theorem
from dither.theory.regret import warm_up as warm_up
from dither.theory.regret import warm_up_rounds as warm_up_rounds

__all__ = sorted(
    name for name, thing in globals().items() if not (name[0] == "_" or isinstance(thing, types.ModuleType))
)

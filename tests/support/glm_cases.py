"""What the tests of the generalised linear cases share: a bandit worked out by hand, and the truth in 50 digits."""

import numpy as np
from scipy import optimize, special

import dither
import glm_oracles
import oracles

SOLVERS = ["certified", "exact", "counts"]


ALL = [*SOLVERS, "online"]


NEAR = {"exact": 1e-6, "counts": 1e-6, "certified": 1e-3, "online": 1e-3}  # on a probability


def three(**settings):
    """Three ones along the first axis, λ = 1: θ̂ = (a, 0) with 3 (1 - μ(a)) = a, Ĥ = diag(1 + 3 μ'(a), 1)."""
    b = dither.GLMFP(dim=2, **{"lam": 1.0, "c": 1.0, "seed": 0, "solver": "exact"} | settings)
    for _ in range(3):
        b.update([1, 0], 1.0)
    return b


THREE_A = optimize.brentq(lambda a: 3 * special.expit(-a) - a, 0, 3, xtol=1e-15)


THREE_W = (1 + 3 * special.expit(THREE_A) * special.expit(-THREE_A)) ** -0.5


def exact(X, r, at, *, link="logit", lam=1.0, weight=None):
    """The probabilities of the arms `at`, from θ̂ and Ĥ in 50 digits."""
    return oracles.line_mass(*glm_oracles.digits(X, r, at, link=link, lam=lam, weight=weight)[1:])


U = np.array([(3.0, 1.0), (1, 2), (2, 2), (0, 3)])


PAID = np.array([1.0, 0, 1, 1])


A = np.array([[3.0, 1.0], [1, 2], [-1, 4]])

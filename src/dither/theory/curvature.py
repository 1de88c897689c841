"""Constants of an instance, from its link and its features: L_t, κ, κ_* (paper, Lemma 1 and equation 3)."""

from typing import Any

import numpy as np

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.theory.radii import plain


def lipschitz(X: Array, r: Array, S: float, link: Link) -> Any:
    """L_t <= Σ ‖x_s‖ max_{|η| <= S‖x_s‖} |μ(η) - r_s|, a Lipschitz constant of the loss on ‖θ‖ <= S (paper, Lemma 1).

    X (..., n, d), r (..., n) the history -> (...). μ increases, so the maximum over η is at one end of the interval.
    The paper's L_t is max ‖∇L_t(θ)‖. This function bounds it by the triangle inequality. The bound never falls as t
    grows, which the proof needs.
    """
    xp, size = arrays.namespace(X), arrays.norms(X)
    ends = [xp.abs(link.mu(sign * S * size) - r) for sign in (-1.0, 1.0)]
    return plain(xp.sum(size * xp.maximum(*ends), axis=-1))


def lipschitz_logistic(t: Any, *, S: float = 1.0) -> Any:
    """L_t <= (1 + S/2)(t - 1), for the logit link, ‖x‖ <= 1 and rewards in [0, 1] (Lee, Yun, Jun 2024)."""
    return (1 + S / 2) * (t - 1)


def kappa(X: Array, S: float, link: Link) -> float:
    """κ, the least μ'(x'θ) over the rows x of X (..., d) and over ‖θ‖ <= S (paper, equation 3 (min derivative))."""
    return link.kappa(S * float(arrays.namespace(X).max(arrays.norms(X))))


def kappa_star(X: Array, theta: Array, link: Link) -> Any:
    """κ_*, the mean over the rounds of μ'(x_{t*}'θ*), x_{t*} the best arm (paper, equation 3 (min derivative)).

    X (..., T, K, d) are the arms of every round, theta (..., d) is θ* -> (...)
    """
    eta = np.max((X @ theta[..., None, :, None])[..., 0], axis=-1)
    return plain(np.mean(link.slopes(eta)[1], axis=-1))

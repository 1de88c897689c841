"""The events of the analysis and their probabilities (paper, Definition 1, Lemmas 2 and 3, Appendix B, Example 1)."""

import math
from typing import Any

import numpy as np
from scipy import special

from dither.theory.radii import c_delta, plain

p = 1 / (4 * math.sqrt(math.e * math.pi))  # P(u'ζ >= 1) >= p for Gaussian ζ, equation (normal anti)


def p_given(c: Any) -> Any:
    """P(z >= 1 | |z| <= c) for z ~ N(0, 1).

    Lemma 3 is conditioned on Ẽ_t, that is on |z| <= c_{δ'}. Its proof drops the condition. The condition lowers the
    probability, but for c >= c_{1/4} = 2.04 it stays above p, so the lemma holds.
    """
    tail = special.ndtr(-np.asarray(c, dtype=float))
    return plain(np.maximum(special.ndtr(-1.0) - tail, 0.0) / (1 - 2 * tail))


def optimism(m: np.ndarray, w: np.ndarray, eta: np.ndarray) -> Any:
    """P_t(max_i x̃_i'θ̂ >= x_*'θ*), exactly, given the history (paper, Lemma 3, which conditions on Ẽ_t too).

    m (..., K) is x_i'θ̂; w (..., K) is c_t ‖x_i‖ in the norm of Ĥ⁻¹; eta (...) is x_*'θ* -> (...)
    The highest of the lines m_i + z w_i never falls as z grows. So the event is z >= min_i (η_* - m_i)/w_i.
    """
    short = eta[..., None] - m
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(w > 0, short / w, np.where(short <= 0, -np.inf, np.inf))
    return plain(special.ndtr(-np.min(z, axis=-1)))


def concentration(T: Any, *, delta: float) -> Any:
    """P(Ẽ_T) = P(|z_t| <= c_{δ'} for t = 1..T), exactly, with δ' = δ/(4T). Lemma 2 needs it to be at least 1 - δ/4."""
    tail = special.ndtr(-np.asarray(c_delta(delta / (4 * T))))
    return plain(np.exp(T * np.log1p(-2 * tail)))

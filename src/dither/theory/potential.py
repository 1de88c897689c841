"""Both sides of the elliptical potential lemma and of the count lemma (paper, Lemmas F.1 and F.2)."""

from typing import Any

import numpy as np

from dither.theory.radii import plain


def widths(X: np.ndarray, lam: float) -> np.ndarray:
    """‖x_t‖_{V_t⁻¹} for t = 1..T, with V_t = λI + Σ_{s<t} x_s x_s': X (..., T, d) -> (..., T)."""
    d = X.shape[-1]
    F = np.zeros((*X.shape[:-2], d, d)) + np.eye(d) / np.sqrt(lam)  # V⁻¹ = F F', as in models/ridge.py
    w = np.empty(X.shape[:-1])
    for t in range(X.shape[-2]):
        p = (X[..., t, None, :] @ F)[..., 0, :]
        square = np.vecdot(p, p)
        w[..., t] = np.sqrt(square)
        s = (1 + square)[..., None]
        u = (F @ p[..., None])[..., 0]
        F = F - (u / (s + np.sqrt(s)))[..., :, None] * p[..., None, :]
    return w


def potential(X: np.ndarray, lam: float) -> Any:
    """Σ min{1, ‖x_t‖²_{V_t⁻¹}}, the left-hand side of the elliptical potential lemma: X (..., T, d) -> (...)."""
    return plain(np.sum(np.minimum(1.0, np.square(widths(X, lam))), axis=-1))


def potential_bound(T: Any, *, d: int, lam: Any, R: float = 1.0) -> Any:
    """2d log(1 + R²T/(dλ)), the right-hand side of the elliptical potential lemma; R >= ‖x‖ (paper, Lemma F.1)."""
    return plain(2 * d * np.log1p(R**2 * T / (d * lam)))


def count(X: np.ndarray, lam: float, *, c: float = 1.0) -> Any:
    """|{t: ‖x_t‖_{V_t⁻¹} > c}|, the left-hand side of the count lemma: X (..., T, d) -> (...)."""
    times = np.count_nonzero(widths(X, lam) > c, axis=-1)
    return int(times) if np.ndim(times) == 0 else times


def count_bound(*, d: int, lam: Any, R: float = 1.0, c: float = 1.0) -> Any:
    """2d/log(1 + c²) log(1 + R²/(λ log(1 + c²))), the right-hand side of the count lemma (paper, Lemma F.2)."""
    unit = np.log1p(c**2)
    return plain(2 * d / unit * np.log1p(R**2 / (lam * unit)))

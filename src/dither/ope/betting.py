"""A confidence sequence by betting (Waudby-Smith, Ramdas 2024, Section 4.4): x_1, x_2, ... in [0, 1] with one mean.

    K⁺_t(m) = Π_{s<=t} (1 + min(λ_s, ½/m) (x_s - m))             wealth of a bet that the mean is above m
    K⁻_t(m) = Π_{s<=t} (1 - min(λ_s, ½/(1-m)) (x_s - m))         that it is below
    λ_s = √(2 ln(2/α)/(σ̂²_{s-1} s ln(1 + s)))                    predictable (equation 26)
    σ̂²_s = (¼ + Σ_{i<=s} (x_i - μ̂_i)²)/(s + 1),  μ̂_s = (½ + Σ_{i<=s} x_i)/(s + 1)

Under the mean m both are martingales of mean 1, so m is refused for good once max(K⁺, K⁻)/2 >= 1/α (Ville). K⁺ falls in
m and K⁻ rises: what is left is an interval, whose ends bisection finds. Every pass is over all t at once.

Where row s counts g_s in (0, 1] (its weight over the largest that a weight can be), the value m has E[g (x - m)] = 0:
each bet is on g_s (x_s - m) in place of x_s - m, which is bounded as before. λ is that of the g (x - μ̂) seen before.
"""

import math

import numpy as np

STEPS = 50  # halvings of [0, 1]: ends to 1e-15


def interval(x: np.ndarray, *, level: float = 0.95, g: np.ndarray | None = None) -> tuple[float, float]:
    """The interval after all of x (n,), values in [0, 1] in order: valid at whatever n one stops, also looking.

    g (n,) : what each row counts, in (0, 1]; None: all 1. NaN twice where every mean is refused: x then has no constant
    mean (or it is one of the 1 - level).
    """
    lam, need = stakes(x, level, g), math.log(2 / (1 - level))
    low, high = _end(x, lam, need, g), 1 - _end(1 - x, lam, need, g)
    return (low, high) if low <= high else (math.nan, math.nan)


def sequence(x: np.ndarray, at: np.ndarray, *, level: float = 0.95, g: np.ndarray | None = None) -> np.ndarray:
    """The intervals after the first t values for each t of `at` (J,): (J, 2). All J hold together at `level`."""
    parts = [interval(x[:t], level=level, g=None if g is None else g[:t]) for t in at]
    return np.array(parts).reshape(-1, 2)


def stakes(x: np.ndarray, level: float, g: np.ndarray | None = None) -> np.ndarray:
    """λ (n,): each from the values before it alone."""
    n = len(x)
    s = np.arange(1, n + 1)
    if g is None:
        mean = (0.5 + np.cumsum(x)) / (s + 1)
        variance = (0.25 + np.cumsum((x - mean) ** 2)) / (s + 1)
    else:
        mean = (0.5 + np.cumsum(g * x)) / (1 + np.cumsum(g))
        variance = (0.25 + np.cumsum((g * (x - mean)) ** 2)) / (s + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.sqrt(2 * math.log(2 / (1 - level)) / (before * s * np.log1p(s)))


def _end(x: np.ndarray, lam: np.ndarray, need: float, g: np.ndarray | None) -> float:
    """The smallest m that K⁺ has never refused; all below it were."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        m = (low + high) / 2
        gap = x - m if g is None else g * (x - m)
        wealth = np.cumsum(np.log1p(np.minimum(lam, 0.5 / m) * gap))
        if np.max(wealth) >= need:
            low = m
        else:
            high = m
    return low

"""Whether counts can be those of stated probabilities: binomial tails, at one level over all that a check compares.

A part without a mistake fails a check with a probability of at most `LEVEL`. The seeds are fixed, so it fails always or
never. There is no slack where a probability is 0 or 1.
"""

import numpy as np
from scipy import special

LEVEL = 1e-6


def improbable(hits: np.ndarray, n: int, p: np.ndarray, *, tests: int) -> np.ndarray:
    """Which counts (K,) of n draws are too far from p (K,), where `tests` counts are compared in all."""
    p = np.clip(p, 0.0, 1.0)
    above = np.where(hits > 0, special.bdtrc(np.maximum(hits, 1) - 1, n, p), 1.0)  # P(X >= hits)
    return np.minimum(special.bdtr(hits, n, p), above) < LEVEL / (2 * tests)


def apart(hits: np.ndarray, n: int, p: np.ndarray, se: np.ndarray, *, tests: int) -> np.ndarray:
    """The same where p is an estimate itself, with its standard errors se (K,), 0 where it is certain."""
    exact = improbable(hits, n, p, tests=tests)
    spread = np.sqrt(np.clip(p * (1 - p), 0.0, None) / n + se**2)
    return np.where(se > 0, np.abs(hits / n - p) > errors_allowed(tests) * spread, exact)


def errors_allowed(tests: int) -> float:
    """How many standard errors a normal estimate may be off, where `tests` are compared in all."""
    return float(-special.ndtri(LEVEL / (2 * tests)))

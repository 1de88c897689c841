"""One observation of ridge regression by the compiled step (`src/_step/update.c`), where there is one.

It answers what `Recursion.update` answers to rounding, in new arrays, for one bandit in NumPy with one target. Its sums
have an order that does not depend on the machine, so what it has learnt is learnt again to the bit.
"""

from typing import Any, NamedTuple

import numpy as np

from dither.base import compiled
from dither.base.arrays import Array


class Learnt(NamedTuple):
    """What is new: as of `RidgeState`, with the sums of `Units` and s = 1 + x'V⁻¹x."""

    F: Array
    theta: Array
    lost: Array
    sums: Array | None
    s: Any


def learnt(state: Any, x: Array, r: Any, weight: Any) -> Learnt | None:
    """After one more x (d,) with its reward, both times the root of the weight, which is None or a number.

    None where it is not for the step: other arrays than NumPy's, or an x so long that Python may have to refuse it.
    """
    step, F = compiled.learning(), state.F
    if step is None or type(F) is not np.ndarray or type(x) is not np.ndarray or state.theta.ndim != 1:
        return None
    sums = None if state.units is None else state.units.sums
    omega = 1.0 if weight is None else float(weight)
    new_F, theta, lost = np.empty(F.shape), np.empty(x.shape), np.empty(state.lost.shape)
    new_sums = None if sums is None else np.empty(sums.shape)
    s = step.learn(F, state.theta, state.lost, sums, x, r, omega, new_F, theta, lost, new_sums)
    return None if s is None else Learnt(new_F, theta, lost, new_sums, s)

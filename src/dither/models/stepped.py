"""One observation of ridge regression by the compiled step (`src/_step/update.c`), where there is one.

It answers what `Recursion.update` answers to rounding, in new arrays, for one bandit in NumPy with one target. Its sums
have an order that does not depend on the machine, so what it has learnt is learnt again to the bit.
"""

from typing import Any

import numpy as np

from dither.base import compiled
from dither.base.arrays import Array


def learnt(state: Any, x: Array, r: Any, weight: Any) -> tuple[Array, Array, Array, Array | None, float] | None:
    """After one more x (d,) with its reward, both times the root of the weight, which is None or a number.

    -> what is new: F, θ̂ and `lost` of `RidgeState`, the sums of `Units`, and s = 1 + x'V⁻¹x

    None where it is not for the step: other arrays than NumPy's, or an x so long that Python may have to refuse it.
    """
    F, lost, units = state.F, state.lost, state.units
    step = compiled.learning()
    if step is None or type(F) is not np.ndarray or type(x) is not np.ndarray:
        return None
    d, sums, new_sums = len(x), None, None
    if units is not None:
        sums, new_sums = units.sums, np.empty(len(units.sums))
    new_F, new_theta, new_lost = np.empty((d, d)), np.empty(d), np.empty(len(lost))
    omega = 1.0 if weight is None else float(weight)
    s = step.learn(F, state.theta, lost, sums, x, r, omega, new_F, new_theta, new_lost, new_sums)
    return None if s is None else (new_F, new_theta, new_lost, new_sums, s)

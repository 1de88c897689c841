"""What a `GLM` with a window does when its oldest row leaves, for one run in NumPy: O(d²), and no look at the others.

The row is one of those that the last pass read, so it is in the model of the objective by the quadratic at `base`:

    z₀ = x'base,  e = ω μ(z₀) - τ,  v = ω μ'(z₀)         its slope at θ is g x,  g = e + v (x'θ - z₀)
    u = H⁻¹x,  q = x'u,  s = 1 - v q                      θ ← θ + u g/s,  H⁻¹ ← H⁻¹ + v uu'/s

The new θ is the exact minimum of the model without the row. As H - v xx' >= s H, a vector is at most 1/√s times as long
in the norm of the new H⁻¹ as it was, and an error of H, as a share of H, is at most 1/s times what it was. Nothing else
of `lazy` changes: its bounds are sums and maxima over rows, which a row less does not raise.

That needs an R'R which is the curvature at `base` row by row, to rounding. So where a pass ended with the curvature of
another point, and where the row came after that pass, or leaves in part, or is most of what is known of its direction,
the history is read.
"""

import math
from typing import Any

import numpy as np

from dither.models import history
from dither.models.glm import rounding

LEAST = 0.2  # s below which the history is read
ROUNDING = 1e-9  # `offset` above which R'R is not the curvature at `base`


def left(model: Any, state: Any, weight: float) -> Any:
    """The state whose oldest row has left, if it must, for one that counts `weight`; None where that takes a pass."""
    if type(state.theta) is not np.ndarray or state.theta.ndim != 1 or model.apart or model.solver != "certified":
        return None
    kept, rows = state.lazy, history.compact(state.history)
    n = int(rows.rows)
    count, total = rows.count, rows.total
    over = float(count.sum()) + weight - model.window
    if over <= 0:
        return state._replace(history=rows)
    first = int((count > 0).argmax())
    omega, tau = count.item(first), total.item(first)
    if over != omega or first >= n - int(kept.fill) or not (kept.offset <= ROUNDING and kept.bound[0] < math.inf):
        return None
    x, theta, d = rows.X[first], state.theta, len(state.theta)
    z0, z = x.dot(kept.base), x.dot(theta)
    e, slope = (float(part) for part in model.function.residual(z0, omega, tau))
    v, p = omega * slope, x.dot(state.F)
    u, q = state.F.dot(p), float(p.dot(p))
    s = 1 - v * q
    if not s >= LEAST:
        return None
    g = e + v * float(z - z0)
    grown = (1 / math.sqrt(s) - 1) / q if q > 0 else 0.0
    count, total = count.copy(), total.copy()
    count[first] = total[first] = 0.0
    unit = rounding.UNIT
    inverse = kept.inverse + (v / s) * (u * u)
    spread = rounding.FEW * float(rounding.spread(kept.diagonal, inverse))
    of_theta, of_base = (d * unit * float(np.abs(x).dot(np.abs(A))) for A in (theta, kept.base))  # of z and z₀
    error = rounding.FEW * (abs(e) + 2 * abs(tau) + v * (abs(z) + abs(z0)))
    error += v * (2 * of_theta + (2 + abs(z - z0)) * of_base)
    slip = (error + d * spread * abs(g) / s) * math.sqrt(q / s) + unit * float(rounding.length(kept.diagonal, theta))
    blur = 2 * spread * (1 + d * (1 - s) / s) / s + unit * (8 + z0 * z0) + of_base
    kept = kept._replace(
        slope=kept.slope / math.sqrt(s) + slip,
        noise=np.sqrt(kept.noise * kept.noise / s + slip * slip),
        offset=kept.offset / s + blur,
        blur=np.sqrt(kept.blur * kept.blur / (s * s) + blur * blur),
        reach=kept.reach / math.sqrt(s),
        diagonal=kept.diagonal - v * (x * x),
        inverse=inverse,
    )
    return state._replace(
        F=state.F + np.multiply.outer(grown * u, p),
        theta=theta + u * (g / s),
        lazy=kept,
        history=rows._replace(count=count, total=total),
    )

"""Adam (Kingma, Ba 2015), in place, over one vector of weights for each run, by NumPy or by torch.

    m ← β₁ m + g,  v ← β₂ v + g²,  θ ← θ - η (m (1-β₁)/(1-β₁^s)) / (√(v (1-β₂)/(1-β₂^s)) + ε)

m and v are kept without the factors 1-β, which saves two passes over the weights.

The moments of a weight that no longer gets a gradient decay into denormal numbers, on which a processor is 18 to 30
times as slow. So every `FLUSH` steps the moments that are too small to move a weight are set to zero.
"""

import math
from typing import Any

from dither.base import arrays
from dither.base.arrays import Array
from dither.models.network import scratch

PIECE = 32_768  # weights at a time: five arrays of that length stay in the cache
FLUSH = 64  # steps between flushes: without a gradient m falls to 1e-3 of itself meanwhile, and v to 0.94
TINY_M, TINY_V = 1e-30, 1e-34  # moments below these become zero: such an m moves a weight by 1e-25 at most


def step(
    theta: Array,
    m: Array,
    v: Array,
    g: Array,
    *,
    s: int | Array,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """One step of θ (..., p) against its gradient g, which is overwritten.

    s counts the steps, this one included: one number, or (...) where the runs have taken different numbers of them
    """
    # θ ← θ - rate m/(√v + offset): rate and offset hold the factors that m and v are kept without.
    flush: Any = s % FLUSH == 0
    if not isinstance(s, int):
        xp = arrays.namespace(s)
        s, flush = xp.astype(s, xp.float64), flush.any()
    first, root = (1 - beta1**s) / (1 - beta1), ((1 - beta2**s) / (1 - beta2)) ** 0.5
    rate, offset = lr * root / first, eps * root
    if not isinstance(s, int):
        rate, offset = (xp.astype(x[..., None], theta.dtype) for x in (rate, offset))
    work = scratch.borrow("adam", (theta.shape, theta.dtype, theta.device), lambda: _room(theta))
    piece = work.shape[-1]
    for at in range(0, theta.shape[-1], piece):
        part = (..., slice(at, at + piece))
        room = work[..., : theta.shape[-1] - at]
        _piece(theta[part], m[part], v[part], g[part], room, rate, offset, beta1, beta2, flush)


def _room(theta: Array) -> Array:
    """Room for temporaries of as many weights as are taken at a time: all of them on a device."""
    p, runs = theta.shape[-1], math.prod(theta.shape[:-1])
    many = str(theta.device) == "cpu" and p * runs > 8 * PIECE
    shape = (*theta.shape[:-1], min(p, max(256, PIECE // runs)) if many else p)
    return arrays.namespace(theta).empty(shape, dtype=theta.dtype, device=theta.device)


def _piece(theta, m, v, g, work, rate, offset, beta1, beta2, flush: bool) -> None:
    """The step for some of the weights, with `work` as room for temporaries."""
    xp = arrays.namespace(theta)
    m *= beta1
    m += g
    g *= g
    v *= beta2
    v += g
    xp.sqrt(v, out=work)
    work += offset
    xp.divide(m, work, out=work)
    work *= rate
    theta -= work
    if flush:
        m[abs(m) < TINY_M] = 0.0
        v[v < TINY_V] = 0.0

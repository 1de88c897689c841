"""What the output f of a network means, and what its training minimises: the mean of a loss over a batch.

    output     expected reward                                      loss
    identity   f(x)                                                 (f - r)²
    sigmoid    p = σ(f(x))                     rewards in [0, 1]    -r log p - (1-r) log(1-p)
    softmax    p = e^{f(x_a)}/Σ_k e^{f(x_k)}   rewards in [0, 1]    as sigmoid

The softmax is over the arms of a context. It needs slots: there the other arms of a past round are known, since they
share its context. The paper's text has a softmax over the one output of the network (Appendix H.1.2); that is 1 for all
weights.
"""

from typing import Literal, get_args

from dither.base import arrays
from dither.base.arrays import Array

Output = Literal["identity", "sigmoid", "softmax"]
OUTPUTS = get_args(Output)
Precision = Literal["float32", "float64"]


def pull(output: str, f: Array, r: Array) -> Array:
    """The derivative of the loss by f, for identity and sigmoid: f, r (..., B) -> (..., B)."""
    return 2 * (f - r) if output == "identity" else arrays.special("expit", f) - r


def pull_arms(f: Array, arm: Array, r: Array) -> Array:
    """The derivative of the softmax loss by the f of all arms: f (..., B, K), arm and r (..., B) -> (..., B, K).

    With p the softmax and a the arm shown, it is p_a - r for a, and -(p_a - r) p_j/(1 - p_a) for an arm j. The share
    p_j/(1 - p_a) is computed as the softmax without a, which stays right where p_a is 1.
    """
    xp = arrays.namespace(f)
    shown = xp.arange(f.shape[-1], device=arrays.device(f)) == arm[..., None]
    e = xp.sum(xp.where(shown, softmax(f), 0.0), axis=-1, keepdims=True) - r[..., None]
    others = softmax(xp.where(shown, -xp.inf, f)) if f.shape[-1] > 1 else xp.zeros_like(f)
    return e * xp.astype(xp.where(shown, 1.0, -others), f.dtype)


def softmax(f: Array) -> Array:
    """e^{f_k}/Σ_j e^{f_j} over the last axis, (..., K) -> (..., K)."""
    xp = arrays.namespace(f)
    e = xp.exp(f - xp.max(f, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def expected(output: str, f: Array) -> Array:
    """The expected rewards of all arms: f (..., K) -> (..., K)."""
    if output == "identity":
        return f
    return arrays.special("expit", f) if output == "sigmoid" else softmax(f)

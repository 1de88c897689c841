"""The only file that knows NumPy from torch, and the owner of the rule for ties.

All code above this layer is written against the Python array API.

Ties: scores that rounding cannot tell apart count as one score. The arms with that score share its probability equally,
and one uniform draw a request decides among them. `propensity/settled.py` has the same rule for arms that are lines.
"""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from dither.base import errors

Array = Any  # an array of any library that follows the Python array API
NUMPY = array_api_compat.numpy  # the namespace of its arrays
RELATIVE = 5e-13  # the rounding error of a score as a share of the score, where nothing else is known
ROUNDING = 1e-15  # is added, as a share of the request's largest score: a sum that cancels keeps its error
_LARGEST_ERROR = 1.001 * (RELATIVE + ROUNDING)  # no `spread` is a larger share of the largest score


def ln(p: ArrayLike) -> np.ndarray:
    """The logarithm of probabilities in NumPy; -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def namespace(*xs: Array) -> Any:
    """The array API namespace of the arrays. NumPy is nearly always meant, so it is asked for first."""
    if type(xs[0]) is np.ndarray or isinstance(xs[0], np.generic):
        return NUMPY
    return array_api_compat.array_namespace(*xs)


def backend(device: str | None) -> Any:
    """NumPy for None, else torch, which then holds all arrays on that device. Raises ValueError if torch has none."""
    if device is None:
        return NUMPY
    xp = errors.imported("array_api_compat.torch", "torch", extra="torch")
    torch_device(device)
    return xp


@functools.lru_cache(maxsize=16)
def torch_device(name: str) -> Any:
    """The device of that name. Raises ValueError where torch has none such here."""
    try:
        return importlib.import_module("torch").empty(0, device=name).device
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ValueError(
            f"device must be one that torch has here, such as 'cpu' or 'cuda'; got {name!r}: {error}"
        ) from None


def unsigned(xp: Any) -> bool:
    """Whether the library computes with uint64. torch has the type, and few operations of it."""
    return not array_api_compat.is_torch_namespace(xp)


def apart(xp: Any, device: Any) -> bool:
    """Whether torch computes on a device with memory of its own, such as a GPU."""
    return device is not None and array_api_compat.is_torch_namespace(xp) and torch_device(str(device)).type != "cpu"


def numpy(x: Array) -> np.ndarray:
    """x as a NumPy array, from any library and any device."""
    return x if type(x) is np.ndarray else np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)


def copied(x: Array) -> Array:
    """A copy of the array, in its library and on its device."""
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return x.copy()
    return namespace(x).asarray(x, copy=True)


def cast(x: Array, dtype: str) -> Array:
    """The array in the type of that name, such as "float32"; itself, where it has that type."""
    if type(x) is np.ndarray:
        return x.astype(dtype, copy=False)
    xp = namespace(x)
    return xp.astype(x, getattr(xp, dtype), copy=False)


def device(x: Array) -> Any:
    """The device of the array."""
    return array_api_compat.device(x)


def blank(like: Array, *shape: int, dtype: Any = None) -> Array:
    """Zeros (..., *shape) for `like` (..., d), of its library, device and type; each call makes an array of its own."""
    return namespace(like).zeros((*like.shape[:-1], *shape), dtype=dtype or like.dtype, device=device(like))


def beside(A: Any, like: Array) -> Array:
    """The numbers of A in an array of the library of `like`, and on its device."""
    return namespace(like).asarray(A, device=device(like))


def special(name: str, x: Array) -> Array:
    """A special function by its name in both scipy.special and torch.special, such as "ndtr" and "erfcx"."""
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return getattr(scipy.special, name)(x)
    if array_api_compat.is_torch_array(x):
        return getattr(importlib.import_module("torch").special, name)(x)
    return namespace(x).asarray(getattr(scipy.special, name)(numpy(x)), device=array_api_compat.device(x))


def dot(X: Array, theta: Array) -> Array:
    """x_i'θ for X (..., K, d), theta (..., d) -> (..., K)."""
    if theta.ndim == 1:
        return X @ theta
    return (X @ theta[..., None])[..., 0]


def inner(a: Array, b: Array) -> Array:
    """a'b along the last axis: (..., d), (..., d) -> (...)."""
    return a.dot(b) if a.ndim == 1 and type(a) is np.ndarray else namespace(a).vecdot(a, b)


def square(X: Array) -> Array:
    """The sum of the squares of all entries. No row has a larger ‖x‖²."""
    return np.vdot(X, X) if type(X) is np.ndarray else namespace(X).sum(X * X)


def gram(X: Array, w: Array, rho: Array) -> Array:
    """ρI + Σ w xx' for X (..., n, d), w (..., n) >= 0, ρ (...) -> (..., d, d), symmetric."""
    Y = namespace(w).sqrt(w)[..., None] * X
    return Y.mT @ Y + rho[..., None, None] * namespace(w).eye(X.shape[-1], dtype=w.dtype, device=device(w))


def cholesky(H: Array) -> Array | None:
    """The upper triangular R of H = R'R, (..., d, d); None where some H is not positive definite in float64."""
    try:
        return namespace(H).linalg.cholesky(H).mT
    except (np.linalg.LinAlgError, RuntimeError):  # the first by NumPy, the second by torch
        return None


def root_of_inverse(H: Array) -> Array | None:
    """The upper triangular F with FF' = H⁻¹, (..., d, d); None where some H is not positive definite in float64."""
    if type(H) is np.ndarray and H.ndim == 2:
        potrf, trtri = lapack()
        R, bad = potrf(H)  # upper, with zeros below
        return None if bad else trtri(R)[0]
    R = cholesky(H)
    if R is None:
        return None
    xp = namespace(H)
    return xp.linalg.solve(R, xp.zeros_like(R) + xp.eye(R.shape[-1], dtype=R.dtype, device=device(R)))


@functools.cache
def dger() -> Any:
    """BLAS's A + ω xy' for A in Fortran's order, which takes half the time of an outer product and a sum in NumPy.

    dger(ω, x, y, 1, 1, A) leaves A as it is; dger(ω, x, y, 1, 1, A, 1, 1, 1) writes over it
    """
    from scipy.linalg import blas  # as in `lapack`

    return blas.dger


@functools.cache
def lapack() -> tuple[Any, Any]:
    """LAPACK's Cholesky factor and inverse of a triangle."""
    from scipy.linalg import lapack  # an eighth of what `import dither` would take

    return lapack.dpotrf, lapack.dtrtri


def norms(X: Array) -> Array:
    """Euclidean lengths along the last axis: (..., K, d) -> (..., K). Finite entries below 1e154 never give NaN."""
    xp = namespace(X)
    return xp.sqrt(xp.vecdot(X, X))


def largest(x: Any) -> float:
    """The largest entry of an array, or a number itself; 0 of an array without entries."""
    if type(x) is float:
        return x
    if type(x) is np.ndarray:
        return float(x.max()) if x.size else 0.0
    if not getattr(x, "ndim", 0):
        return float(x)
    return float(namespace(x).max(x)) if 0 not in x.shape else 0.0


def gram_trace(A: Array) -> Array:
    """tr A'A = Σ a_ij² of each matrix: (..., n, d) -> (...)."""
    return namespace(A).sum(namespace(A).vecdot(A, A), axis=-1)


def over(x: Array, A: Array) -> Array:
    """x (...) with axes of length 1 behind, so that it meets each entry of A (..., *) alike."""
    return namespace(x).reshape(x, (*x.shape, *(1,) * (A.ndim - x.ndim)))


def outer(a: Array, b: Array) -> Array:
    """a b' for a (..., n), b (..., m) -> (..., n, m)."""
    if a.ndim == 1 and type(a) is np.ndarray:
        return np.multiply.outer(a, b)
    return a[..., :, None] * b[..., None, :]


def some(x: Array) -> bool:
    """Whether any entry of a boolean array is true."""
    if x.ndim == 0:
        return bool(x)
    return bool(x.any()) if hasattr(x, "any") else bool(namespace(x).any(x))


def finite(A: Array) -> bool:
    """Whether all entries are finite."""
    if type(A) is np.ndarray and np.vdot(A, A) < math.inf:
        return True  # the usual case, at once
    return bool(namespace(A).all(namespace(A).isfinite(A)))


def pick(A: Array, i: Array, *, rank: int) -> Array:
    """A[..., i, <rank axes>], one entry of the axis before the last `rank` axes: A (..., K, *), i (...) -> (..., *)."""
    axis = A.ndim - rank - 1
    batch = A.shape[:axis]
    if type(A) is np.ndarray and math.prod(batch) == 1 and np.shape(i) == batch:
        k = int(i) if not batch else i.item()
        return A[(*(slice(None),) * axis, k)]  # a view
    if type(A) is np.ndarray or array_api_compat.is_torch_array(A):
        return A[(*_grid(batch, A), i)]
    xp = namespace(A)
    flat = xp.reshape(A, (-1, *A.shape[axis + 1 :]))
    rows = xp.arange(flat.shape[0] // A.shape[axis], device=device(A)) * A.shape[axis] + xp.reshape(i, (-1,))
    return xp.reshape(xp.take(flat, rows, axis=0), (*batch, *A.shape[axis + 1 :]))


def replace(A: Array, i: Array, value: Array, *, rank: int, own: bool = False) -> Array:
    """A copy of A with A[..., i, <rank axes>] = value; shapes as in `pick`. own=True: A itself may be overwritten."""
    xp, axis = namespace(A), A.ndim - rank - 1
    batch = A.shape[:axis]
    if type(A) is np.ndarray or array_api_compat.is_torch_array(A):
        A = A if own else xp.asarray(A, copy=True)
        A[(*_grid(batch, A), i)] = value
        return A
    hit = xp.arange(A.shape[axis], device=device(A)) == i[..., None]
    hit = xp.reshape(hit, (*hit.shape, *(1,) * rank))
    return xp.where(hit, xp.expand_dims(value, axis=axis), A)


def argmax(s: Array, *, u: Array, error: Array | float | None = None, mask: Array | None = None) -> Array:
    """The arm of the highest score; among the arms that tie with it, the one that u picks. -> (...) integers

    s : (..., K) the scores
    u : (...) uniform on [0, 1); it is spent whether or not there is a tie
    error, mask : as of `top`
    """
    best = _first(s, mask)
    if mask is None and type(s) is np.ndarray and s.size:
        # ‖s‖ is no less than the largest score, and one product is quicker than two searches
        reach = 2 * (_LARGEST_ERROR * math.sqrt(np.vdot(s, s)) if error is None else float(np.max(error)))
        at = s.reshape(-1)[best.item()] if best.size == 1 else pick(s, best, rank=0)[..., None]
        if np.count_nonzero(s >= at - reach) == best.size:
            return best  # the usual case: no other score is near
    tied = top(s, error=error, mask=mask)
    if int(namespace(s).count_nonzero(tied)) == math.prod(best.shape):
        return best
    return nth(tied, u)


def in_turn(best: Callable[[Array, Array], Array], u: Array, arms: int, mask: Array | None) -> Array:
    """The best arm, then the best of the arms that are left, and so on: u (..., k) uniforms -> (..., k) integers.

    best : best(u, left) -> (...), the best arm of those that are left (..., K)
    mask : (..., K) True for the arms on offer
    """
    xp, some_left, order = namespace(u), left(u, arms, mask), []
    for r in range(u.shape[-1]):
        arm = best(u[..., r], some_left)
        order.append(arm)
        some_left = replace(some_left, arm, xp.zeros(arm.shape, dtype=xp.bool, device=device(u)), rank=0, own=True)
    return xp.stack(order, axis=-1)


def left(u: Array, arms: int, mask: Array | None) -> Array:
    """The arms on offer (..., K) as an array of its own, for uniforms u (..., k); mask None: all are."""
    xp, shape = namespace(u), (*u.shape[:-1], arms)
    if mask is None:
        return xp.ones(shape, dtype=xp.bool, device=device(u))
    return xp.asarray(xp.broadcast_to(xp.asarray(mask), shape), copy=True)


def nth(tied: Array, u: Array) -> Array:
    """One of the arms that are tied (..., K), each with equal probability: the one that the uniform u (...) picks."""
    xp = namespace(tied)
    count = xp.count_nonzero(tied, axis=-1)
    rank = xp.astype(xp.floor(u * xp.astype(count, xp.float64)), xp.int64)
    passed = xp.cumulative_sum(xp.astype(tied, xp.int64), axis=-1) > rank[..., None]
    return xp.argmax(xp.astype(passed, xp.int8), axis=-1)


def top(s: Array, *, error: Array | float | None = None, mask: Array | None = None) -> Array:
    """Which arms tie with the highest score: bool (..., K).

    Two scores are joined if they differ by no more than their rounding errors together. An arm ties if a chain of such
    joints leads from it to the highest score. So the answer does not depend on the order of the arms.

    s : (..., K) the scores
    error : the rounding error of each score, (..., K) or a number; None: `spread(s)`
    mask : (..., K) True for the arms on offer
    """
    xp = namespace(s)
    e = spread(s, mask=mask) if error is None else error
    high, low = s + e, s - e
    if mask is not None:
        high, low = xp.where(mask, high, -xp.inf), xp.where(mask, low, xp.inf)
    floor = pick(low, _first(s, mask), rank=0)[..., None]
    while True:  # once for each joint of the chain: hardly ever more than once
        tied = high >= floor
        lower = xp.min(xp.where(tied, low, xp.inf), axis=-1, keepdims=True)
        if not bool(xp.any(lower < floor)):
            if not bool(xp.all(xp.any(tied, axis=-1))):
                raise errors.not_finite("scores")
            return tied
        floor = xp.minimum(lower, floor)


def spread(s: Array, *, mask: Array | None = None) -> Array:
    """The largest rounding error of each score, where nothing else is known about it: (..., K) -> (..., K)."""
    xp = namespace(s)
    size = xp.abs(s) if mask is None else xp.where(mask, xp.abs(s), 0.0)
    return RELATIVE * size + ROUNDING * xp.max(size, axis=-1, keepdims=True)


def share(s: Array, *, error: Array | float | None = None, mask: Array | None = None) -> Array:
    """The probability with which `argmax` picks each arm, over its u alone: s (..., K) -> (..., K)."""
    xp = namespace(s)
    tied = xp.astype(top(s, error=error, mask=mask), xp.float64)
    return tied / xp.sum(tied, axis=-1, keepdims=True)


def _first(s: Array, mask: Array | None) -> Array:
    """The first of the arms on offer that have the highest score."""
    if mask is not None:
        s = namespace(s).where(mask, s, -namespace(s).inf)
    return s.argmax(-1) if type(s) is np.ndarray else namespace(s).argmax(s, axis=-1)


def _grid(batch: tuple[int, ...], like: Array) -> tuple[Array, ...]:
    """Index arrays for the batch axes. They stand before an index array of shape `batch`."""
    if type(like) is np.ndarray:
        return _numpy_grid(batch)
    xp, device = namespace(like), array_api_compat.device(like)
    return tuple(xp.asarray(axis, device=device) for axis in _numpy_grid(batch))


@functools.lru_cache(maxsize=256)
def _numpy_grid(batch: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.arange(n).reshape(-1, *(1,) * (len(batch) - a - 1)) for a, n in enumerate(batch))

"""The factor F of an inverse, A⁻¹ = FF', after A has grown by v xx' (Potter's square-root recursion).

p = F'x,  u = F p,  s = 1 + v p'p,  F ← F - v u p'/(s + √s)
"""

from dither.base import arrays
from dither.base.arrays import Array

LONG = 1e3  # s above which F is checked after an update: the width of such an x shrinks so much that F may lose digits
WRONG = 1e-6  # relative error of w² above which an update is refused


def identity(like: Array, scale: float = 1.0) -> Array:
    """c I for `like` (..., d), of its library, device and type: (..., d, d)."""
    d = like.shape[-1]
    eye = arrays.namespace(like).eye(d, dtype=like.dtype, device=arrays.device(like))
    return arrays.blank(like, d, d) + scale * eye


def check(F: Array, name: str = "F") -> None:
    """Refuse what is no F with FF' positive definite, as of a file that something else wrote."""
    if float(arrays.namespace(F).min(arrays.norms(F))) <= 0:
        raise ValueError(f"its {name} is no square root of a positive definite matrix")


def grown(
    F: Array,
    x: Array,
    *,
    p: Array,
    u: Array,
    s: Array,
    v: Array | None = None,
    lam: float | None,
    only: Array | None = None,
) -> Array:
    """F after one more v xx', with p, u, s as above: F (..., d, d), x, p, u (..., d), s, v (...); v None: 1.

    lam : named in the error; None: F is about to be made anew, so it may be wrong until then and is not checked
    only : (...) the replications whose F is checked; None: all of them

    Raises ValueError where F cannot hold the result, which the width of x shows: it must be √((s - 1)/(v s)).
    """
    xp = arrays.namespace(x)
    scale = -(s + xp.sqrt(s))[..., None]
    new = arrays.outer(u / scale if v is None else u * (v[..., None] / scale), p)
    new += F  # in place, since another temporary of this size takes longer than the sum
    if lam is not None and arrays.some(s > LONG):
        q = new.mT @ x[..., None]
        w = xp.vecdot(q[..., 0], q[..., 0]) * (1 if v is None else v)
        wrong = (s > LONG) & (xp.abs(w - (1 - 1 / s)) > WRONG)
        if arrays.some(wrong if only is None else wrong & only):
            raise ValueError(
                f"x is too long beside lam={lam:g} and what was learnt before: x'V⁻¹x is {float(xp.max(s)) - 1:.3g}, "
                f"and float64 cannot hold so short a width beside those of other directions; scale x down or raise lam"
            )
    return new

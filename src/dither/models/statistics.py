"""What some policies ask of a linear model besides θ̂ and V⁻¹, kept only when they ask.

gram        a factor G of Σ x x' (not of V): QR of the factor and the last rows, every d observations
gram_width  a factor of V⁻¹, V = λI + Σ xx', for models whose own matrix is another
norms       sums of ‖x‖, ‖x‖² and ‖x‖ |r|, and the largest ‖x‖, from which L_t of the paper follows
history     every distinct x with its count and its sum of rewards (own-paper perturbed history only: memory grows)
"""

import functools
from typing import NamedTuple

from dither.base import arrays
from dither.base.arrays import Array
from dither.links import Link
from dither.models import factor, history
from dither.models.history import History

KEPT = {  # statistic -> the abilities that it is kept for
    "gram": frozenset({"perturb", "gram_sample"}),
    "norms": frozenset({"lipschitz"}),
    "history": frozenset({"history"}),
    "gram_width": frozenset({"gram_width"}),
}


class Gram(NamedTuple):
    """Σ x x' = G'G + Σ of the rows in `recent`."""

    G: Array  # (..., d, d)
    recent: Array  # (..., d, d)  the last observations, one a row; zero where none
    fill: Array  # (...)  rows in use; int64


class Extra(NamedTuple):
    """Statistics by name; None where no policy asked."""

    gram: Gram | None = None
    norms: Array | None = None  # (..., 4)  Σ ‖x‖², Σ ‖x‖ |r|, Σ ‖x‖, max ‖x‖
    history: History | None = None
    gram_width: Array | None = None  # (..., d, d)  F with FF' = V⁻¹


def init(needs: frozenset[str], zeros: Array, *, lam: float) -> Extra | None:
    """Empty statistics for the abilities `needs` (None where they take none); shaped after zeros (..., d)."""
    kept = {name for name, abilities in KEPT.items() if needs & abilities}
    if not kept:
        return None
    xp, empty, d = arrays.namespace(zeros), functools.partial(arrays.blank, zeros), zeros.shape[-1]
    return Extra(
        gram=Gram(empty(d, d), empty(d, d), empty(dtype=xp.int64)) if "gram" in kept else None,
        norms=empty(4) if "norms" in kept else None,
        history=history.init(zeros) if "history" in kept else None,
        gram_width=factor.identity(zeros, 1 / lam**0.5) if "gram_width" in kept else None,
    )


def update(extra: Extra, x: Array, r: Array, *, weight: Array | None = None) -> Extra:
    """One more observation: x (..., d), r (...), weight (...)."""
    gram, norms, rows, V = extra
    if norms is not None:
        norms = _norms(norms, x, r, arrays.namespace(x).ones_like(x[..., 0]) if weight is None else weight)
    if rows is not None:
        rows = history.append(rows, x, r, weight, distinct=True)
    x = weighted(x, weight)
    return Extra(None if gram is None else _gram(gram, x), norms, rows, None if V is None else _more(V, x))


def update_many(extra: Extra, X: Array, r: Array, *, weight: Array | None = None) -> Extra:
    """n more observations: X (..., n, d), r (..., n), weight (..., n)."""
    for k in range(X.shape[-2]):
        extra = update(extra, X[..., k, :], r[..., k], weight=None if weight is None else weight[..., k])
    return extra


def weighted(x: Array, weight: Array | None, *, last: bool = True) -> Array:
    """√ω x, which counts in least squares as ω observations of x; last: whether x has an axis more than ω."""
    if weight is None:
        return x
    root = arrays.namespace(weight).sqrt(weight)
    return x * (root[..., None] if last else root)


def _gram(state: Gram, x: Array) -> Gram:
    xp = arrays.namespace(x)
    d = x.shape[-1]
    recent = arrays.replace(state.recent, state.fill, x, rank=1)
    fill = state.fill + 1
    full = fill == d
    if not arrays.some(full):
        return Gram(state.G, recent, fill)
    R = xp.linalg.qr(xp.concat([state.G, recent], axis=-2), mode="reduced")[1]
    pick = full[..., None, None]
    return Gram(xp.where(pick, R, state.G), xp.where(pick, 0.0, recent), xp.where(full, 0, fill))


def _norms(state: Array, x: Array, r: Array, weight: Array) -> Array:
    xp = arrays.namespace(x)
    square = xp.vecdot(x, x)
    length = xp.sqrt(square)
    sums = state[..., :3] + weight[..., None] * xp.stack([square, length * xp.abs(r), length], axis=-1)
    return xp.concat([sums, xp.maximum(state[..., 3:], length[..., None])], axis=-1)


def _more(F: Array, x: Array) -> Array:
    p = arrays.dot(F.mT, x)
    return factor.grown(F, x, p=p, u=arrays.dot(F, p), s=1 + arrays.namespace(x).vecdot(p, p), lam=0.0)


def gram_sample(gram: Gram, eta: Array) -> Array:
    """N(0, Σ xx') from η ~ N(0, I): (..., 2d) -> (..., d)."""
    d = gram.G.shape[-1]
    return arrays.dot(gram.G.mT, eta[..., :d]) + arrays.dot(gram.recent.mT, eta[..., d:])


def matrix_sample(A: Array, eta: Array) -> Array:
    """N(0, A) for a matrix A (..., d, d), from η ~ N(0, I) of which the first half is used: (..., 2d) -> (..., d)."""
    xp, d = arrays.namespace(eta), A.shape[-1]
    values, Q = xp.linalg.eigh(A)
    return arrays.dot(Q, xp.sqrt(xp.where(values > 0, values, 0.0)) * eta[..., :d])


def lipschitz(norms: Array, *, S: float, link: Link) -> Array:
    """L_t = Σ ‖x‖ max |μ(η) - r| over |η| <= S‖x‖, at most, from `norms` (..., 4) -> (...) (paper, Lemma 1).

    Exact for the identity, Σ ‖x‖ (S‖x‖ + |r|); else |μ(η) - r| <= μ(S max ‖x‖), or 1 where rewards are in [0, 1], + |r|
    for the log link.
    """
    square, paid, length, longest = (norms[..., k] for k in range(4))
    if link.name == "identity":
        return S * square + paid
    return length if link.support[1] == 1 else length * link.mu(S * longest) + paid


def check(extra: Extra) -> None:
    """Refuse statistics of no data: rows that are not there, counts below 0."""
    gram, _, rows, _ = extra
    if gram is not None and int(gram.fill.max()) >= gram.G.shape[-1]:
        raise ValueError("its gram.fill counts more rows than there are")
    if rows is not None:
        history.check(rows)

"""What some policies ask of a linear model besides θ̂ and V⁻¹, kept only when they ask.

gram     a factor G of Σ x x' (not of V): QR of the factor and the last rows, every d observations
norms    Σ ‖x‖² and Σ ‖x‖ |r|, from which L_t of the paper follows
history  every distinct x with its count and its sum of rewards (own-paper perturbed history only: memory grows)
"""

from typing import Any, NamedTuple

import array_api_compat

from dither import arrays
from dither.arrays import Array


class Gram(NamedTuple):
    """Σ x x' = G'G + Σ of the rows in `recent`."""

    G: Array  # (..., d, d)
    recent: Array  # (..., d, d)  the last observations, one a row; zero where none
    fill: Array  # (...)  rows in use; int64


class History(NamedTuple):
    """Distinct feature vectors in the order of their first observation; rows beyond `rows` are zero."""

    X: Array  # (..., N, d)
    count: Array  # (..., N)  observations of that x
    total: Array  # (..., N)  Σ r of that x
    rows: Array  # (...)  rows in use; int64


class Extra(NamedTuple):
    """Statistics by name; None where no policy asked."""

    gram: Gram | None = None
    norms: Array | None = None  # (..., 2)  Σ ‖x‖², Σ ‖x‖ |r|
    history: History | None = None


def init(needs: frozenset[str], zeros: Array) -> Extra | None:
    """Empty statistics for those of `needs` that are kept here (None for none); shaped after zeros (..., d)."""
    if not needs & set(Extra._fields):
        return None
    xp, device, batch, d = arrays.namespace(zeros), array_api_compat.device(zeros), zeros.shape[:-1], zeros.shape[-1]

    def empty(*shape: int, dtype: Any = zeros.dtype) -> Array:  # each its own array: states may be overwritten
        return xp.zeros((*batch, *shape), dtype=dtype, device=device)

    return Extra(
        gram=Gram(empty(d, d), empty(d, d), empty(dtype=xp.int64)) if "gram" in needs else None,
        norms=empty(2) if "norms" in needs else None,
        history=History(empty(8, d), empty(8), empty(8), empty(dtype=xp.int64)) if "history" in needs else None,
    )


def update(extra: Extra, x: Array, r: Array, *, weight: Array | None = None) -> Extra:
    """One more observation: x (..., d), r (...), weight (...)."""
    gram, norms, history = extra
    if history is not None:
        history = _history(history, x, r, arrays.namespace(x).ones_like(x[..., 0]) if weight is None else weight)
    x, r = weighted(x, weight), weighted(r, weight, last=False)
    return Extra(None if gram is None else _gram(gram, x), None if norms is None else _norms(norms, x, r), history)


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


def _norms(state: Array, x: Array, r: Array) -> Array:
    xp = arrays.namespace(x)
    square = xp.vecdot(x, x)
    return state + xp.stack([square, xp.sqrt(square) * xp.abs(r)], axis=-1)


def _history(state: History, x: Array, r: Array, weight: Array) -> History:
    xp = arrays.namespace(x)
    N = state.X.shape[-2]
    known = xp.all(x[..., None, :] == state.X, axis=-1) & (state.count > 0)
    found = xp.any(known, axis=-1)
    row = xp.where(found, xp.argmax(xp.astype(known, xp.int8), axis=-1), state.rows)
    rows = xp.where(found, state.rows, state.rows + 1)
    if int(xp.max(rows)) > N:
        state = state._replace(X=_grown(state.X, -2), count=_grown(state.count, -1), total=_grown(state.total, -1))
    count, total = arrays.pick(state.count, row, rank=0), arrays.pick(state.total, row, rank=0)
    return History(
        arrays.replace(state.X, row, x, rank=1),
        arrays.replace(state.count, row, count + weight, rank=0),
        arrays.replace(state.total, row, total + weight * r, rank=0),
        rows,
    )


def _grown(A: Array, axis: int) -> Array:
    xp = arrays.namespace(A)
    return xp.concat([A, xp.zeros_like(A)], axis=axis)


def check(extra: Extra) -> None:
    """Refuse statistics of no data: rows that are not there, counts below 0."""
    gram, _, history = extra
    if gram is not None and int(gram.fill.max()) >= gram.G.shape[-1]:
        raise ValueError("its gram.fill counts more rows than there are")
    if history is not None:
        X, count, total, rows = history
        if X.shape[:-1] != count.shape or count.shape != total.shape or X.shape[-1] < 1:
            raise ValueError(f"its history has shapes {X.shape}, {count.shape}, {total.shape}, which do not fit")
        if int(rows.max()) > count.shape[-1] or float(count.min()) < 0:
            raise ValueError("its history counts rows that are not there, or below 0")

"""Where the columns of X come from: each is the product of a factor of the context and a factor of the arm."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dither.base import errors

INTERCEPT = "intercept"
MOST = 100_000  # columns; a matrix of a linear model would take 80 GB
Fields = Sequence[tuple[str, list[str]]]  # the fields of a side, and the names of their columns


class Side(NamedTuple):
    """The factors of contexts, or of arms: 1, the columns of the fields, the slots, then products of fields."""

    names: tuple[str, ...]  # of the fields
    places: tuple[slice, ...]  # the columns of each field
    products: tuple[tuple[slice, tuple[slice, ...]], ...]  # the columns of a product, and those of its fields
    slots: slice  # one for each slot of a hybrid form
    width: int


class ColumnLayout(NamedTuple):
    """The columns of X: column j is factor of_left[j] of the context times factor of_right[j] of the arm."""

    columns: tuple[str, ...]
    terms: tuple[str, ...]  # the field or the cross that each column is of
    of_left: np.ndarray
    of_right: np.ndarray
    left: Side
    right: Side


def lay_out(
    sides: Mapping[str, Fields], crosses: Sequence[Sequence[str]], *, intercept: bool, form: str, slots: int | None
) -> ColumnLayout:
    """The layout. Raises ValueError for too many columns, before they are made, and for two of one name."""
    columns_of = {name: columns for fields in sides.values() for name, columns in fields}
    context = sum(len(columns) for _, columns in sides["context"])
    width = 1 + sum(map(len, columns_of.values()))
    width += sum(math.prod(len(columns_of[name]) for name in cross) for cross in crosses)
    width += (slots or 0) * (1 + context)
    if width > MOST:
        raise ValueError(
            f"the features would have {width:,} columns, more than {MOST:,}: hash fields with many values "
            "(features.Hashed), or cross fewer fields"
        )
    left, of_left = _side(sides["context"], crosses, slots=0)
    right, of_right = _side(sides["arm"], crosses, slots=slots or 0)
    names, terms, pairs = [INTERCEPT] * intercept, [INTERCEPT] * intercept, [(0, 0)] * intercept
    for term in [*((name,) for name in columns_of), *crosses]:
        c, a = (tuple(name for name in term if (name,) in place) for place in (of_left, of_right))
        names += map("*".join, itertools.product(*(columns_of[name] for name in (*c, *a))))
        pairs += [(i, j) for i in _range(of_left[c]) for j in _range(of_right[a])]
        terms += ["*".join(term)] * (len(names) - len(terms))
    if form == "hybrid":
        shared = intercept + context  # so many columns come first, which are of the context alone
        for slot, j in enumerate(_range(right.slots)):
            names += [f"slot {slot}*{name}" for name in names[:shared]]
            terms += [f"slot*{name}" for name in terms[:shared]]
            pairs += [(i, j) for i, _ in pairs[:shared]]
    if (twice := errors.repeated(names)) is not None:
        raise ValueError(f"two columns would have the name {twice!r}: give one of their fields another name")
    if not names:
        raise ValueError("there are no columns: give fields, or intercept=True")
    at = np.array(pairs, dtype=np.intp)
    return ColumnLayout(tuple(names), tuple(terms), at[:, 0].copy(), at[:, 1].copy(), left, right)


def outer(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """The products of the columns of blocks (n, w1), (n, w2), ...: (n, w1 w2 ...), the last changes first."""
    total = blocks[0]
    for block in blocks[1:]:
        total = (total[:, :, None] * block[:, None, :]).reshape(len(total), -1)
    return total


def _side(fields: Fields, crosses: Sequence[Sequence[str]], *, slots: int) -> tuple[Side, dict[tuple[str, ...], slice]]:
    """A side, and where its fields and their products are: () is the factor 1."""
    place: dict[tuple[str, ...], slice] = {(): slice(0, 1)}
    end = 1
    for name, columns in fields:
        place[name,] = slice(end, end + len(columns))
        end += len(columns)
    of_slots = slice(end, end + slots)
    end += slots
    products = []
    for cross in crosses:
        here = tuple(name for name in cross if (name,) in place)
        if here in place:
            continue
        parts = tuple(place[name,] for name in here)
        place[here] = slice(end, end + math.prod(part.stop - part.start for part in parts))
        end = place[here].stop
        products.append((place[here], parts))
    names = tuple(name for name, _ in fields)
    return Side(names, tuple(place[name,] for name in names), tuple(products), of_slots, end), place


def _range(place: slice) -> range:
    return range(place.start, place.stop)


def shown(features: Any) -> str:
    """What `print(features)` shows: a line for each field and each cross, and the memory."""
    fitted = features.fitted
    fields = [(side, *field) for side in ("context", "arm") for field in getattr(features, side).items()]
    wide = {name: len(kind.columns(name)) for _, name, kind in fields}
    lines = [(side, name, str(kind), wide[name] if kind.fitted else None) for side, name, kind in fields]
    for cross in features.cross:
        lines.append(("cross", " × ".join(cross), "", math.prod(wide[name] for name in cross) if fitted else None))
    if features.intercept:
        lines.append((INTERCEPT, "", "", 1))
    if features.slots:
        each = features.intercept + sum(wide[name] for name in features.context)
        lines.append(("slots", "", f"{features.slots} blocks", features.slots * each if fitted else None))
    cells = [(*line[:3], "?" if line[3] is None else f"{line[3]:,}") for line in lines]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [f"  {a:<{sizes[0]}}  {b:<{sizes[1]}}  {c:<{sizes[2]}}  {d:>{sizes[3]}}" for a, b, c, d in cells]
    head = f"Features, {features.form}"
    if not fitted:
        return "\n".join([f"{head}, not fitted", *rows])
    d = features.dim
    each = "slot" if features.form == "disjoint" else "linear model"
    memory = f"  memory: {size(8 * d)} an arm on offer, {size(8 * d * d)} a {each} (each d × d matrix of float64)"
    return "\n".join([f"{head}: {d:,} columns, fingerprint {features.fingerprint}", *rows, memory])


def size(n: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:,.3g} GB"

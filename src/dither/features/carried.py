"""Which columns of X mean the same under other Features, so that a row may be carried over where its records are gone.

A column means what its fields and their kinds make of a value. So it is carried over where it has the same name and the
fields that it is of have the same kinds. A category's column for a value means the same whatever other values the list
has. The scale of a number, the width of a hash or the vocabulary of words is part of the meaning.
"""

import itertools
from typing import Any

import numpy as np

from dither.features import declared
from dither.features.categorical import Category
from dither.features.column_layout import INTERCEPT
from dither.features.encoder import Features


def places(old: Features, new: Features) -> np.ndarray:
    """(new.dim,) int  the column of old Features that means what each new one does; -1: there is none."""
    at = {meaning: j for j, meaning in enumerate(_meanings(old))}
    return np.array([at.get(meaning, -1) for meaning in _meanings(new)])


def enough(places: np.ndarray, new: Features) -> bool:
    """Whether anything is carried over but a column of ones."""
    return any(j >= 0 and name != INTERCEPT for j, name in zip(places, new.columns, strict=True))


def carried(X: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Rows (..., old.dim) as rows (..., new.dim): what is not carried over is 0."""
    return np.where(places < 0, 0.0, X[..., places])


def _meanings(features: Features) -> list[Any]:
    """Of each column, in the order of `column_layout.lay_out`."""
    of_field = {
        name: [_meaning(side, name, kind, column) for column in kind.columns(name)]
        for side, kinds in (("context", features.context), ("arm", features.arm))
        for name, kind in kinds.items()
    }
    terms = [*((name,) for name in of_field), *features.cross]
    meanings: list[Any] = [INTERCEPT] * features.intercept
    for term in terms:
        ordered = sorted(term, key=lambda name: name in features.arm)  # those of the context first
        meanings += itertools.product(*(of_field[name] for name in ordered))
    if features.form == "hybrid":
        shared = features.intercept + sum(len(of_field[name]) for name in features.context)
        first = meanings[:shared]
        meanings += [("slot", slot, meaning) for slot in range(features.slots or 0) for meaning in first]
    return meanings


def _meaning(side: str, name: str, kind: Any, column: str) -> tuple[str, ...]:
    """What a column of one field means: the name alone does not say it."""
    settings = declared.settings(kind)
    if column in kind.of_values(name):
        left_out = ("values", "most", "least") if isinstance(kind, Category) else ()
        settings = {n: value for n, value in settings.items() if n not in ("missing", "unknown", "absent", *left_out)}
    elif column.endswith("(missing)"):
        settings = {}
    return side, column, declared.canonical(settings).decode()

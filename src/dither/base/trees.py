"""States are nested NamedTuples of arrays: how to map over them, name their arrays, and choose between two of them."""

from collections.abc import Callable
from typing import Any

from dither.base import arrays
from dither.base.arrays import Array


class Opaque:
    """A part of a state that is no array, such as a fitted estimator. It is derived from the arrays beside it."""


def map_arrays(rule: Callable[..., Array], tree: Any, *others: Any) -> Any:
    """A tree of the same form that has `rule(array, *others)` for every array; None and `Opaque` stay as they are."""
    if tree is None or isinstance(tree, Opaque):
        return tree
    if hasattr(tree, "_fields"):
        return type(tree)(*(map_arrays(rule, *parts) for parts in zip(tree, *others, strict=True)))
    return rule(tree, *others)


def take(tree: Any, runs: list[int]) -> Any:
    """The tree with the entries `runs` of the leading axis of every array. It is a view where one run is taken."""
    if len(runs) == 1:
        return map_arrays(lambda A: A[runs[0] : runs[0] + 1, ...], tree)
    return map_arrays(lambda A: arrays.namespace(A).stack([A[i, ...] for i in runs]), tree)


def put(tree: Any, runs: list[int], part: Any) -> None:
    """Overwrite in place the entries `runs` of the leading axis of every array by the entries of `part`."""

    def rule(A: Array, entries: Array) -> Array:
        for k, i in enumerate(runs):
            A[i, ...] = entries[k, ...]
        return A

    map_arrays(rule, tree, part)


def leaves(tree: Any, prefix: str) -> dict[str, Array]:
    """The arrays by their dotted names. None and `Opaque` are left out."""
    if tree is None or isinstance(tree, Opaque):
        return {}
    if hasattr(tree, "_fields"):
        return {k: v for f in tree._fields for k, v in leaves(getattr(tree, f), f"{prefix}.{f}").items()}
    return {prefix: tree}


def choose(mask: Array, new: Any, old: Any) -> Any:
    """`new` where mask (R,) is true along the first axis, else `old`; arrays of `old` that are shorter get zeros."""

    def rule(a: Array, b: Array) -> Array:
        xp = arrays.namespace(a)
        for axis, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
            if n > m:
                more = tuple(n - m if k == axis else size for k, size in enumerate(b.shape))
                b = xp.concat([b, xp.zeros(more, dtype=b.dtype, device=arrays.device(b))], axis=axis)
        return xp.where(arrays.over(mask, a), a, b)

    return map_arrays(rule, new, old)

"""Names of a frame's rows and columns. Where there are names they must agree, since arrays are matched by place."""

from typing import Any


def rows(**arguments: Any) -> None:
    """Raise ValueError for pandas objects with different indices; it names both. Other objects are matched by place."""
    named = [(name, x.index) for name, x in arguments.items() if hasattr(x, "iloc") and hasattr(x, "index")]
    for name, index in named[1:]:
        first, other = named[0]
        if not index.equals(other):
            raise ValueError(
                f"{first} and {name} have different indices, {_few(other)} and {_few(index)}, and rows are matched by "
                f"place: align them first, as in {name}.reindex({first}.index), or pass {name}.to_numpy()"
            )


def columns(**arguments: Any) -> None:
    """Raise ValueError for frames (n, K) whose columns, one for each arm, have other names or another order.

    Columns that are the numbers 0 ... K-1 must stand in that order, since column k is arm k.
    """
    named = [(name, list(map(str, x.columns))) for name, x in arguments.items() if _has_columns(x)]
    for name, labels in named:
        numbers = [str(k) for k in range(len(labels))]
        if labels != numbers and sorted(labels) == sorted(numbers):
            raise ValueError(f"column k of {name} is arm k, and its columns are {_few(labels)}: put them in order")
        first, others = named[0]
        if labels != others:
            raise ValueError(
                f"{first} and {name} must have the same columns in one order, an arm each; got {_few(others)} and "
                f"{_few(labels)}: put them in order, as in {name}[list({first}.columns)]"
            )


def _has_columns(x: Any) -> bool:
    return hasattr(x, "columns") and not callable(x.columns) and getattr(x, "ndim", 2) == 2


def _few(labels: Any) -> str:
    shown = [str(label) for label in labels[:5]]
    return "[" + ", ".join(shown) + (", ...]" if len(labels) > len(shown) else "]")

"""When a `Regressor` is fitted, and how: always for one run i of a state, from the rows of that run alone.

A fit depends on the rows before it, on their order and on the run's key, and on nothing else. So an estimator that is
not at hand, as after a load, is made again and answers as it did.
"""

import math
from typing import Any

import numpy as np

from dither.base import trees
from dither.models.buffers import BufferRows
from dither.models.regressor import adapter, encoding, observed


class Fitted(trees.Opaque):
    """The estimators, one for each run, and how many rows each has seen.

    Where a state says another number of rows, its estimator is made again from the rows.
    before : the estimators of the state before this one. With late rewards in lockstep, some runs go back to it
    """

    def __init__(self, estimators: list[Any], seen: list[int], *, before: "Fitted | None" = None) -> None:
        self.estimators, self.seen = estimators, seen
        self.before = None if before is None else (before.estimators, before.seen)

    def find(self, i: int, seen: int) -> bool:
        """Whether the estimator of run i that has seen so many rows is at hand; then it is in `estimators`."""
        if self.seen[i] != seen and self.before is not None and self.before[1][i] == seen:
            self.estimators[i], self.seen[i] = self.before[0][i], seen
        return self.seen[i] == seen


def current(model: Any, state: Any, i: int) -> Any:
    """The estimator of run i, made again where the one at hand has seen other rows; None before the first fit."""
    held, seen = state.fitted, numbers(state.seen)[i]
    if not held.find(i, seen):
        before = state._replace(seen=np.zeros_like(state.seen))
        begun = _begun(model, state, i) if model.trained and seen == 0 else None
        held.estimators[i] = fitted(model, before, i, begun, observed.ends(state.buffer, i))
        held.seen[i] = seen
    return held.estimators[i]


def fitted(model: Any, state: Any, i: int, estimator: Any, due: list[int]) -> Any:
    """The estimator of run i after fits at `due` rows. partial_fit works on `estimator` itself; None: on a new one."""
    if not due:
        return estimator
    if model.partial:
        estimator = _begun(model, state, i) if estimator is None else estimator
        for first, last in zip([numbers(state.seen)[i], *due], due, strict=False):
            rows = observed.run(state.buffer, i, first=first, last=last)
            if np.any(rows.weight > 0):
                _fit(model, estimator, rows)
    else:
        seed = adapter.seed(int(state.key.reshape(-1)[i]), due[-1])
        estimator = adapter.seeded(adapter.fresh(model.estimator), seed)
        _fit(model, estimator, observed.run(state.buffer, i, last=due[-1]))
    run = observed.run(state.buffer, i, first=numbers(state.seen)[i], last=due[-1])
    latest = np.flatnonzero(run.weight > 0)[-1:]
    if latest.size:  # if it cannot answer, the reward is refused now, rather than the next choice
        adapter.answer(estimator, _encoded(model, observed.part(run, latest)))
    return estimator


def able(model: Any, state: Any, i: int) -> int | None:
    """After how many rows run i can be fitted for the first time; None: not yet."""
    run = observed.run(state.buffer, i)
    kinds = [run.weight > 0]
    if adapter.classifies(model.estimator) and not model.partial:
        kinds = [(run.weight > 0) & (run.r == label) for label in adapter.CLASSES]
    return max(int(np.argmax(kind)) for kind in kinds) + 1 if all(kind.any() for kind in kinds) else None


def due(model: Any, state: Any, i: int, count: int) -> list[int]:
    """After how many rows of run i, of those after the first `count`, a fit is due."""
    last, seen = numbers(state.buffer.count)[i], numbers(state.seen)[i]
    if model.refit == "request":
        return []
    if seen:
        at = max(_after(model, seen), count + 1)
    else:
        begin = able(model, state, i)
        at = last + 1 if begin is None else max(model.first, begin, count + 1)
    fits = []
    while at <= last:
        fits.append(at)
        at = _after(model, at)
    return fits


def numbers(A: np.ndarray) -> list[int]:
    """A list with a whole number for each run."""
    return [int(n) for n in A.reshape(-1)]


def _after(model: Any, seen: int) -> int:
    """After how many rows the next fit is, after one on `seen` rows."""
    return max(seen + 1, math.ceil(model.factor * seen)) if model.refit == "doubling" else seen + model.refit


def _begun(model: Any, state: Any, i: int) -> Any:
    """The estimator that partial_fit begins with. If it is `trained`, it also answers before any fit."""
    bare = adapter.fresh(model.estimator, trained=model.trained)
    return adapter.seeded(bare, adapter.seed(int(state.key.reshape(-1)[i]), 0))


def _fit(model: Any, estimator: Any, run: BufferRows) -> None:
    adapter.learn(estimator, _encoded(model, run), run.r, run.weight, partial=model.partial)


def _encoded(model: Any, run: BufferRows) -> np.ndarray:
    return encoding.of_arms(run.X, run.arm, slots=model.slots, encode=model.encode)

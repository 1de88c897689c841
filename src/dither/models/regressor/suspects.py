"""Rows on which an estimator cannot be fitted: when a fit fails they are found and left out, so that fits work again.

A reward that comes between two fits is kept, and no estimator has seen it yet. If it spoils the fit that is due later,
it would spoil every fit from then on. So the rows W since the last fit that worked are searched, the new ones included.
W is halved as long as the fit works without one of the halves: that finds one bad row of n in 2 log2(n) fits. Where the
fit needs both halves left out, all of W is left out, and its parts are put back one by one where the fit still works.
"""

import math
from typing import Any

import numpy as np

from dither.models import moments
from dither.models.regressor import adapter, observed, training

TRIALS = 64  # fits at most in which rows are put back: k bad rows of n need about 2 k log2(n)


def spoiling(model: Any, state: Any, i: int, due: list[int], *, first: int | None = None) -> np.ndarray:
    """Rows of run i without which the fits `due` work.

    If the bad rows cannot be told apart, all rows since the last fit are returned. If the fit fails even without these
    rows, they are not the cause: then none is returned.
    first : return rows among the first ones alone, those that were there before the new ones came; none if a new row
        spoils the fit
    """
    seen = training.numbers(state.seen)[i]
    if first is not None and not (due and np.any(observed.run(state.buffer, i, first=seen, last=first).weight > 0)):
        return np.zeros(0, np.int64)
    W = seen + np.flatnonzero(observed.run(state.buffer, i, first=seen, last=due[-1]).weight > 0)
    if seen and not _works(model, state, i, due, without=W):
        return W[:0]
    while len(W) > 1:
        half = next((half for half in np.array_split(W, 2) if _works(model, state, i, due, without=half)), None)
        if half is None:
            W = _told_apart(model, state, i, due, W)
            break
        W = half
    return W if first is None else W[: np.searchsorted(W, first)]


def _told_apart(model: Any, state: Any, i: int, due: list[int], W: np.ndarray) -> np.ndarray:
    """The rows of W that are left when all parts with which the fit works have been put back."""
    parts = np.array_split(W, 2)
    for _ in range(TRIALS):
        if not parts:
            break
        part = parts.pop(0)
        fewer = np.setdiff1d(W, part)
        if _works(model, state, i, due, without=fewer):
            W = fewer
        elif len(part) > 1:
            parts = [*np.array_split(part, 2), *parts]
    return W


def left_out(state: Any, i: int, W: np.ndarray, *, reason: ValueError) -> ValueError:
    """Leave rows W of run i out of what is learnt, in place; returns the error to raise, which says so."""
    named = ", ".join(str(k) for k in W[:5]) + (", ..." if len(W) > 5 else "")
    first = observed.run(state.buffer, i, first=int(W[0]), last=int(W[0]) + 1)
    observed.omit(state.buffer, i, W)
    if state.moments is not None:
        _again(state, i)
    return ValueError(
        f"{str(reason).rstrip('.')}. This fit is spoilt by observations that came before, number {named} of those "
        f"kept, counted from 0 (the first of them with r = {first.r[0]:g}): {len(W)} left out from now on, as of "
        "weight 0. If there are good ones among them, pass those again. This call has done nothing else: make it again"
    )


def _works(model: Any, state: Any, i: int, due: list[int], *, without: np.ndarray) -> bool:
    """Whether the fits can be made without these rows, and the others are enough."""
    buffer = state.buffer._replace(weight=state.buffer.weight.copy())
    observed.omit(buffer, i, without)
    trial = state._replace(buffer=buffer)
    begin = training.able(model, trial, i)
    if (math.inf if begin is None else begin) > due[-1]:
        return False
    present = training.current(model, state, i)
    try:
        training.fitted(model, trial, i, adapter.fresh(present, trained=True) if model.partial else None, due)
    except ValueError:
        return False
    return True


def _again(state: Any, i: int) -> None:
    """Make the moments of run i again, in place, from the rows that count."""
    at = () if state.seen.ndim == 0 else (i,)
    run = observed.run(state.buffer, i)
    again = moments.update_many(moments.init((), run.X.shape[-1]), run.X, run.weight)
    for old, new in zip(state.moments, again, strict=True):
        old[at] = new

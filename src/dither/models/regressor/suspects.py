"""Rows that an estimator cannot be fitted on, found when a fit fails: they count no more, and the next fit works.

A reward that comes between two fits is kept unseen. If it spoils the fit that is due later, it would spoil every fit
from then on. So the rows W since the last fit that worked are searched, the new ones with them: W is halved while
leaving out one of its halves lets the fit work, which finds one bad row of n in 2 log2(n) fits.
Where neither half can be spared alone, all are left out and put back part by part while the fit works.
"""

import math
from typing import Any

import numpy as np

from dither.models import moments
from dither.models.regressor import adapter, observed, training

TRIALS = 64  # fits to put rows back: k bad rows of n take about 2 k log2(n)


def found(model: Any, state: Any, i: int, due: list[int]) -> np.ndarray:
    """Rows of run i without which the fits `due` work; all since its last fit where they cannot be told apart.

    Empty where the fit fails without all of these too: then it is not for them.
    """
    seen = training.numbers(state.seen)[i]
    W = seen + np.flatnonzero(observed.run(state.buffer, i, first=seen, last=due[-1]).weight > 0)
    if seen and not _works(model, state, i, due, without=W):
        return W[:0]
    while len(W) > 1:
        spoilt = next((half for half in np.array_split(W, 2) if _works(model, state, i, due, without=half)), None)
        if spoilt is None:
            return _told_apart(model, state, i, due, W)
        W = spoilt
    return W


def _told_apart(model: Any, state: Any, i: int, due: list[int], W: np.ndarray) -> np.ndarray:
    """Rows of W that still spoil the fit when those that do not have been put back, part by part."""
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


def before(model: Any, state: Any, i: int, due: list[int], *, first: int) -> np.ndarray:
    """Those of them among the first rows, which were there when the others came: none where what is new spoils it."""
    waiting = observed.run(state.buffer, i, first=training.numbers(state.seen)[i], last=first)
    if not due or not np.any(waiting.weight > 0):
        return np.zeros(0, np.int64)
    W = found(model, state, i, due)
    return W[: np.searchsorted(W, first)]


def left_out(state: Any, i: int, W: np.ndarray, *, reason: ValueError) -> ValueError:
    """Take rows W of run i out of what is learnt, in place, and say so: the error to raise."""
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
    """Whether the fits can be made, of rows that are enough."""
    buffer = state.buffer._replace(weight=state.buffer.weight.copy())
    observed.omit(buffer, i, without)
    trial = state._replace(buffer=buffer)
    begin = training.able(model, trial, i)
    if (math.inf if begin is None else begin) > due[-1]:
        return False
    present = training.current(model, state, i)
    try:
        training.made(model, trial, i, adapter.fresh(present, trained=True) if model.partial else None, due)
    except ValueError:
        return False
    return True


def _again(state: Any, i: int) -> None:
    """Make the moments of run i again, of the rows that count."""
    at = () if state.seen.ndim == 0 else (i,)
    run = observed.run(state.buffer, i)
    kept = moments.init((), run.X.shape[-1])
    for x, weight in zip(run.X, run.weight, strict=True):
        kept = moments.update(kept, x, weight)
    for old, new in zip(state.moments, kept, strict=True):
        old[at] = new

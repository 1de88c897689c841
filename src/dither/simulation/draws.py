"""Where the chance of all runs comes from, and how what is drawn for each run becomes one array (R, ...).

    streams   a NumPy stream for each run and purpose (`streams.stream`), drawn run by run and then moved to the device
    counter   `counter.CounterGenerator`: all runs at once, on the device

Some parts draw for one run alone: environments whose class does not say `lockstep`, policies and laws of the user's
own. They are asked run by run, and `counter` gives them NumPy's arrays of the same numbers. Networks draw their first
weights and their training from streams always.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays, counter, errors, streams
from dither.base.arrays import Array

KINDS = ("streams", "counter")


def check(chance: str) -> None:
    """Raise ValueError for a name of no kind."""
    errors.one_of("chance", chance, KINDS)


class PurposeDraws(NamedTuple):
    """What one purpose draws from."""

    rngs: list[Any]  # a generator of each run, or a single one of all runs
    together: bool  # whether it is a single one
    move: Callable[[np.ndarray], Array]  # to the device of the simulation

    def __call__(self, rule: Callable[[Any], tuple[Any, ...]]) -> tuple[Array, ...]:
        """What rule(generator) draws, a tuple: each array for all runs, (R, ...)."""
        if self.together:
            return rule(self.rngs[0])
        drawn = [rule(rng) for rng in self.rngs]
        return tuple(self.move(np.stack(kind)) for kind in zip(*drawn, strict=True))


class ChanceOfRuns:
    """The chance of some runs of a simulation."""

    def __init__(self, kind: str, seed: int, runs: np.ndarray, *, xp: Any, device: Any) -> None:
        self.kind, self.seed, self.runs, self.xp, self.device = kind, seed, runs, xp, device

    def drawing(self, purpose: str, *, together: bool, home: bool = False) -> PurposeDraws:
        """What this purpose draws from.

        together : whether the part that draws takes all runs at once, where the chance can be had so
        home : whether its arrays are NumPy's, whatever the device is
        """
        xp, device = (arrays.NUMPY, None) if home else (self.xp, self.device)
        move = functools.partial(_moved, xp=xp, device=device)
        if self.kind == "streams":
            return PurposeDraws(self.streams(purpose), together=False, move=move)
        key, number = counter.key(self.seed), streams.PURPOSES[purpose]
        if together:
            return PurposeDraws([counter.CounterGenerator(key, self.runs, number, xp=xp, device=device)], True, move)
        return PurposeDraws([counter.CounterGenerator(key, int(run), number) for run in self.runs], False, move)

    def streams(self, purpose: str) -> list[np.random.Generator]:
        """A NumPy stream for each run."""
        return [streams.stream(self.seed, int(run), purpose) for run in self.runs]


def _moved(x: np.ndarray, *, xp: Any, device: Any) -> Array:
    return x if xp is arrays.NUMPY else xp.asarray(x, device=device)

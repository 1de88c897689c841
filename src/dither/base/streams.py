"""Random streams: one for each (seed, run, purpose), so that a run does not depend on the runs beside it.

A stream is a `numpy.random.Generator` on SFC64 (7.5 ns a normal). One call for n rounds draws the same as n calls for
one round each. So each purpose has only one kind of draw: with two kinds, their order would depend on n.
"""

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np

from dither.base import errors

# Append only: a number that changes its meaning changes every published run.
PURPOSES = {"policy": 0, "ties": 1, "instance": 2, "contexts": 3, "noise": 4, "monte_carlo": 5, "delay": 6, "floor": 7}
PURPOSES |= {"weights": 8, "training": 9, "offered": 10}


MANY = 3072  # uniforms that are passed over at most before they are drawn


def stream(seed: int, run: int, purpose: str, *more: int) -> np.random.Generator:
    """The stream of one purpose in one run. `more`, such as the number of a decision, derives further streams."""
    sequence = np.random.SeedSequence(seed, spawn_key=(run, PURPOSES[purpose], *more))
    return np.random.Generator(np.random.SFC64(sequence))


def child(rng: Any) -> Any:
    """A stream of its own that follows from the next four numbers of `rng`, for what goes on drawing beside it.

    What is no Generator, as `counter.CounterGenerator`, gives one of its own kind.
    """
    if not isinstance(rng, np.random.Generator):
        return rng.spawn(1)[0]
    return np.random.Generator(np.random.SFC64(rng.integers(0, 2**63, size=4).tolist()))


class Uniforms:
    """A stream of uniforms. What is passed over is drawn no sooner than what comes after it, and then all at once."""

    __slots__ = ("_passed", "_rng")

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._passed = 0  # how many are still to be drawn, which nobody looks at

    def random(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """The next uniforms, as of a Generator."""
        self._draw()
        return self._rng.random(shape)

    def pass_over(self, n: int) -> None:
        """Leave out the next n."""
        self._passed += n
        if self._passed >= MANY:
            self._draw()

    @property
    def bit_generator(self) -> Any:
        """What is drawn from, where the stream stands."""
        self._draw()
        return self._rng.bit_generator

    def _draw(self) -> None:
        if self._passed:
            self._rng.random(self._passed)
            self._passed = 0


@contextlib.contextmanager
def given_back(*rngs: np.random.Generator) -> Iterator[None]:
    """If the block raises, the streams go back to where they were, so the next draws are the same again."""
    before = [rng.bit_generator.state for rng in rngs]
    try:
        yield
    except Exception:
        for rng, state in zip(rngs, before, strict=True):
            rng.bit_generator.state = state
        raise


def entropy(seed: int | None) -> int:
    """The seed itself, or fresh entropy for None. The caller records what is returned.

    Raises ValueError if the seed is neither None nor a whole number of at least 0.
    """
    if seed is None:
        return secrets.randbits(128)
    number = errors.whole(seed)
    if number is None or number < 0:
        raise ValueError(f"seed must be a whole number of at least 0, or None for fresh entropy; got {seed!r}")
    return number

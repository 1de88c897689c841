"""What environments around another one share: what they do not say themselves is asked of the one within.

`Around` shares the run of the one within. `Within` holds something of its own beside it, so the run and what `fill`
returns have two parts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither.envs import base


class Around:
    """An environment around `env`."""

    env: Any

    def __getattr__(self, name: str) -> Any:
        # While it is unpickled, env is not there yet. Python's own names, such as __copy__, are not asked of env.
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)


class Pair(NamedTuple):
    """What an environment around another one holds, beside that of the environment within."""

    outer: Any
    inner: Any


class Within(Around):
    """An environment around `env` that holds something of its own for a run, and perhaps for each n rounds."""

    def held(self, rng: np.random.Generator, inner: Any) -> Any:
        """What is its own in a run, where `inner` is the run of the environment within."""
        raise NotImplementedError

    def at(self, run: Pair, t: int, n: int) -> Any:
        """What is its own in the n rounds from t on; None: nothing."""
        return None

    def start(self, rng: np.random.Generator) -> Pair:
        """The run within, and then what is its own."""
        inner = self.env.start(rng)
        return Pair(self.held(rng, inner), inner)

    def fill(self, run: Pair, rng: np.random.Generator, out: np.ndarray, t: int) -> Pair:
        """The contexts within. -> what is its own in these rounds, and what `means` needs within"""
        inner = base.fill(self.env, run.inner, rng, out, t=t)
        return Pair(self.at(run, t, base.rounds(self, out)), inner)

    @property
    def reward_noise(self) -> Callable[..., Any]:
        """The noise within; AttributeError where the environment within has none."""
        return self._unpacked(self.env.reward_noise)

    @property
    def rewards(self) -> Callable[..., Any]:
        """The rewards within; AttributeError where the environment within adds noise."""
        return self._unpacked(self.env.rewards)

    def _unpacked(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The rule of the environment within, told of its own run."""

        def answer(rng: np.random.Generator, first: Any, run: Pair, X: Any, mean: Any, more: Pair, t: int) -> Any:
            return base.told(rule, rng, first, base.RoundsOfRun(run.inner, X, mean, more.inner, t))

        return answer

    @property
    def offered(self) -> Callable[..., np.ndarray]:
        """The arms on offer within; AttributeError where the environment within does not say."""
        rule = self.env.offered
        return lambda run, rng, X, more: rule(run.inner, rng, X, more.inner)

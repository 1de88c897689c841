"""Worlds that change: an environment with a hidden θ*, where θ* moves while a policy learns.

    Abrupt     θ* is drawn anew, on the sphere of radius ‖θ*‖, at given rounds
    Rotating   θ*_t = cos φ_t θ*_1 + sin φ_t v,  φ_t = 2π (t - 1)/period,  v ⊥ θ*_1 of the same length, drawn once
    Walking    θ*_{t+1} = cos a θ*_t + sin a v_t,  a = `step`,  v_t ⊥ θ*_t of the same length, drawn in each round

All keep ‖θ*‖, which algorithms are told as S. Two ways to say how fast a world changes are exact here. The number of
changes is that of `rounds` (Abrupt). The variation Σ ‖θ*_{t+1} - θ*_t‖ up to round T is (T - 1) 2S sin(π/period) for
Rotating and (T - 1) 2S sin(a/2) for Walking, and E θ*_{t+k}'θ*_t = S² cos^k a.

The first θ* and all contexts are those of the environment within, in the same run. So before the first change a
changing world is the world that does not change.

Sources: abrupt changes and slow ones by a variation budget, Cheung, Simchi-Levi, Zhu, "Learning to optimize under
non-stationarity", AISTATS 2019; Russac, Vernade, Cappé, "Weighted linear bandits for non-stationary environments",
NeurIPS 2019.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.base import arrays, errors, streams
from dither.base.arrays import Array
from dither.envs.around import Pair, Within


class Changing(Within):
    """A base for worlds whose θ* changes. A subclass says what it holds of a run (`held`), and `thetas`.

    env : an environment whose run is a NamedTuple with the field `theta`, (d,), such as `Linear` and `Logistic`
    """

    least = 1  # dimensions

    def __post_init__(self) -> None:
        errors.at_least(f"the dim of the environment in {type(self).__name__}", self.env.dim, self.least)

    def thetas(self, held: Any, inner: Any, t: int, n: int) -> Array:
        """θ* of the n rounds from t on: (n, d), or (R, n, d) of all runs.

        held : what `held` returned; inner : the run within
        """
        raise NotImplementedError

    def at(self, run: Pair, t: int, n: int) -> Array:
        """θ* of these rounds: (n, d), or (R, n, d)."""
        return self.thetas(run.outer, run.inner, t, n)

    def start(self, rng: np.random.Generator) -> Pair:
        """The run within, and then what is its own. Raises TypeError where the run within has no θ*."""
        inner = self.env.start(rng)
        if not hasattr(inner, "theta") or not hasattr(inner, "_replace"):
            raise TypeError(
                f"{type(self).__name__} changes θ*, and a run of {type(self.env).__name__} must be a NamedTuple with "
                f"the field theta; got {type(inner).__name__}: put {type(self).__name__} directly around such an "
                "environment (Linear, Logistic, Probit, Poisson), and others around it"
            )
        return Pair(self.held(rng, inner), inner)

    def means(self, run: Pair, X: np.ndarray, more: Pair) -> np.ndarray:
        """The means within, with θ* of each round: (n, K)."""
        theta = more.outer
        if theta.ndim == 3:  # of all runs: the run within takes a θ* for each round
            return self.env.means(run.inner._replace(theta=theta), X, more.inner)
        edges = np.flatnonzero(np.any(theta[1:] != theta[:-1], axis=-1)) + 1
        parts = []
        for rows in map(slice, [0, *edges], [*edges, len(X)]):
            part = None if more.inner is None else more.inner[rows]
            parts.append(self.env.means(run.inner._replace(theta=theta[rows.start]), X[rows], part))
        return np.concatenate(parts)


@dataclass(frozen=True)
class Abrupt(Changing):
    """θ* is drawn anew at given rounds.

    env : an environment with θ*
    rounds : the rounds from which on there is another θ*, from 2 on and in order; a number means that one round
    """

    env: Any
    rounds: tuple[int, ...] | int = 500
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds = tuple(self.rounds) if np.ndim(self.rounds) else (self.rounds,)  # type: ignore[arg-type]
        for t in rounds:
            errors.at_least("each of rounds", t, 2)
        if list(rounds) != sorted(set(rounds)):
            raise ValueError(f"rounds must be in order, each once; got {rounds}")
        object.__setattr__(self, "rounds", rounds)

    def held(self, rng: np.random.Generator, inner: Any) -> Array:
        """All θ* in turn: (changes + 1, d)."""
        theta = inner.theta[..., None, :]
        xp = arrays.namespace(theta)
        drawn = rng.standard_normal((len(self.rounds), theta.shape[-1]))  # type: ignore[arg-type]
        size = _length(inner.theta)[..., None, :]
        return xp.concat([theta, drawn * (size / xp.linalg.vector_norm(drawn, axis=-1, keepdims=True))], axis=-2)

    def thetas(self, held: Array, inner: Any, t: int, n: int) -> Array:
        """The newest θ* of each round."""
        changes = np.searchsorted(self.rounds, np.arange(t, t + n), side="right")
        return arrays.namespace(held).take(held, arrays.beside(changes, held), axis=-2)


@dataclass(frozen=True)
class Rotating(Changing):
    """θ* turns in a plane, at the same speed always.

    env : an environment with θ*, of two dimensions or more
    period : rounds of a whole turn
    """

    env: Any
    period: float = 10_000.0
    least = 2
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.positive("period", self.period)

    def held(self, rng: np.random.Generator, inner: Any) -> np.ndarray:
        """v (d,), at a right angle to θ* and as long."""
        return across(inner.theta, rng.standard_normal(inner.theta.shape[-1]))

    def thetas(self, held: Array, inner: Any, t: int, n: int) -> Array:
        """cos φ θ* + sin φ v."""
        phi = 2 * np.pi * (np.arange(t, t + n)[:, None] - 1) / self.period
        cos, sin = (arrays.beside(wave(phi), held) for wave in (np.cos, np.sin))
        return cos * inner.theta[..., None, :] + sin * held[..., None, :]


class Walk:
    """Where the walk of a run is, and the stream that it goes on with."""

    def __init__(self, rng: np.random.Generator, theta: Array) -> None:
        self.rng, self.theta = rng, theta


@dataclass(frozen=True)
class Walking(Changing):
    """θ* goes a step of one length in a new direction in each round: a random walk on the sphere.

    env : an environment with θ*, of two dimensions or more
    step : a, the angle of each step in radians
    """

    env: Any
    step: float = 0.01
    least = 2
    lockstep = True

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.within("step", self.step, 0, np.pi)

    def held(self, rng: np.random.Generator, inner: Any) -> Walk:
        """The walk, at its beginning."""
        return Walk(streams.child(rng), inner.theta)

    def thetas(self, held: Walk, inner: Any, t: int, n: int) -> np.ndarray:
        """The next n places."""
        size, places = _length(inner.theta), []
        steps = held.rng.standard_normal((n, inner.theta.shape[-1]))
        for i in range(n):
            places.append(held.theta)
            moved = math.cos(self.step) * held.theta + math.sin(self.step) * across(held.theta, steps[..., i, :])
            held.theta = moved * (size / _length(moved))  # else rounding would change the length
        return arrays.namespace(steps).stack(places, axis=-2)


def across(theta: Array, drawn: Array) -> Array:
    """The part of `drawn` at a right angle to θ, scaled to the length of θ: (..., d), (..., d) -> (..., d)."""
    part = drawn - theta * (arrays.inner(drawn, theta) / arrays.inner(theta, theta))[..., None]
    return part * (_length(theta) / _length(part))


def _length(theta: Array) -> Array:
    """‖θ‖, (..., 1)."""
    return arrays.norms(theta)[..., None]

"""What all policies share that show the arm of the highest score and draw nothing: the view and its answers."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither import arrays
from dither.arrays import Array


class Scored(NamedTuple):
    """The scores, and what rounding may have done to them, made where scores lie near each other."""

    s: Array  # (..., K)
    error: Callable[[], Array | None]  # () -> (..., K), or None: what rounding does to any number
    most: float | None = None  # no error is larger; None: not known without `error`


class Deterministic:
    """A policy whose `view` is `Scored`: 1 for the best arm, shared where arms tie."""

    def draw(self, rng: np.random.Generator, n: int, *, arms: int, dim: int) -> tuple[np.ndarray, ...]:
        """Nothing."""
        return ()

    def scores(self, view: Scored) -> Array:
        """The scores, (..., K)."""
        return view.s

    def best(self, view: Scored, *, u: Array, mask: Array | None = None) -> Array:
        """The arms shown: (...) integers."""
        if view.most is None:
            return arrays.argmax(view.s, u=u, error=view.error(), mask=mask)
        xp = arrays.namespace(view.s)
        offered = view.s if mask is None else xp.where(mask, view.s, -xp.inf)
        arm = xp.argmax(offered, axis=-1)
        own = arrays.pick(offered, arm, rank=0)[..., None]
        if int(xp.count_nonzero(offered >= own - 2 * view.most)) == math.prod(arm.shape):
            return arm  # the usual case: no score is near, whatever rounding did
        return arrays.argmax(view.s, u=u, error=view.error(), mask=mask)

    def decide(self, view: Scored, *, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm and its probability for one request at once."""
        s = view.s if mask is None else np.where(mask, view.s, -np.inf)
        arm = int(s.argmax())
        if view.most is not None and np.count_nonzero(s >= s[arm] - 2 * view.most) == 1:
            return arm, 1.0
        tied = arrays.top(view.s, error=view.error(), mask=mask)
        return int(arrays.nth(tied, u)), 1 / int(np.count_nonzero(tied))

    def in_turn(self, view: Scored, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: u (..., k) -> (..., k) integers."""
        error = view.error()

        def best(u: Array, left: Array) -> Array:
            return arrays.argmax(view.s, u=u, error=error, mask=left)

        return arrays.in_turn(best, u, view.s.shape[-1], mask)

    def propensities(self, view: Scored, *, mask: Array | None = None) -> Array:
        """1 for the best arm; shared where arms tie."""
        return arrays.share(view.s, error=view.error(), mask=mask)

    def chosen(self, view: Scored, arm: Array, *, mask: Array | None = None) -> Array:
        """The probability of `arm`, (...)."""
        return arrays.pick(self.propensities(view, mask=mask), arm, rank=0)


def means(model: Any, state: Any, X: Array) -> Scored:
    """The means of a model as scores: an error of x'θ̂ is at most ρ w, and w is at most `reach` times ‖x‖."""
    m = model.mean(state, X)
    if "rounding" not in model.abilities:
        return plain(m)
    known = model.rounding(state)
    most = largest(known.rho) * largest(model.reach(state)) * math.sqrt(largest(arrays.square(X)))
    return Scored(m, lambda: known.rho * model.width(state, X), most)


def largest(x: Any) -> float:
    """The largest entry; 0 of none."""
    if not getattr(x, "ndim", 0):
        return float(x)
    return float(arrays.namespace(x).max(x)) if 0 not in x.shape else 0.0


def plain(s: Array) -> Scored:
    """Scores of which nothing is known but that they are rounded."""
    return Scored(s, _unknown)


def _unknown() -> None:
    """Of these scores nothing is known but that they are rounded."""

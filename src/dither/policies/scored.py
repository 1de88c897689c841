"""What all policies share that show the arm of the highest score and draw nothing: the view and its answers."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dither import arrays, propensity
from dither.arrays import Array


class Scored(NamedTuple):
    """The scores, and which of them tie: asked where scores lie near each other."""

    s: Array  # (..., K)
    tied: Callable[
        [Array | None], Array
    ]  # mask (..., K) or None -> which arms tie for the highest score, (..., K) bool
    most: float | None = None  # no score is off by more; None: not known


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
        if view.most is not None:
            xp = arrays.namespace(view.s)
            offered = view.s if mask is None else xp.where(mask, view.s, -xp.inf)
            arm = xp.argmax(offered, axis=-1)
            own = arrays.pick(offered, arm, rank=0)[..., None]
            if int(xp.count_nonzero(offered >= own - 2 * view.most)) == math.prod(arm.shape):
                return arm  # the usual case: no score is near, whatever rounding did
        return arrays.nth(view.tied(mask), u)

    def decide(self, view: Scored, *, u: Array, mask: Array | None = None) -> tuple[int, float]:
        """The arm and its probability for one request at once."""
        s = view.s if mask is None else np.where(mask, view.s, -np.inf)
        arm = int(s.argmax())
        if view.most is not None and np.count_nonzero(s >= s[arm] - 2 * view.most) == 1:
            return arm, 1.0
        tied = view.tied(mask)
        return int(arrays.nth(tied, u)), 1 / int(np.count_nonzero(tied))

    def in_turn(self, view: Scored, *, u: Array, mask: Array | None = None) -> Array:
        """The k arms shown in order: u (..., k) -> (..., k) integers."""

        def best(u: Array, left: Array) -> Array:
            return arrays.nth(view.tied(left), u)

        return arrays.in_turn(best, u, view.s.shape[-1], mask)

    def propensities(self, view: Scored, *, mask: Array | None = None) -> Array:
        """1 for the best arm; shared where arms tie."""
        xp, tied = arrays.namespace(view.s), view.tied(mask)
        return xp.astype(tied, xp.float64) / xp.sum(xp.astype(tied, xp.float64), axis=-1, keepdims=True)

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
    return Scored(m, lambda mask: arrays.top(m, error=known.rho * model.width(state, X), mask=mask), most)


def largest(x: Any) -> float:
    """The largest entry; 0 of none."""
    if not getattr(x, "ndim", 0):
        return float(x)
    return float(arrays.namespace(x).max(x)) if 0 not in x.shape else 0.0


def plain(s: Array) -> Scored:
    """Scores of which nothing is known but that they are rounded."""
    return Scored(s, lambda mask: arrays.top(s, mask=mask))


def of_lines(m: Array, w: Array, slack: propensity.Slack | None) -> Scored:
    """The scores m + w of lines at z = 1, of which parallel ones are told apart by their means."""

    def tied(mask: Array | None) -> Array:
        own = None if slack is None else propensity.Slack(*(arrays.numpy(part) for part in slack))
        offered = None if mask is None else arrays.numpy(mask)
        share = propensity.shared_at(arrays.numpy(m), arrays.numpy(w), 1.0, slack=own, mask=offered) > 0
        return arrays.namespace(m).asarray(share, device=arrays.device(m))

    return Scored(m + w, tied, None if slack is None else slack.most(m, w))

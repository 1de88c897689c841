"""A decision of which something is demanded (`demands`): the policy draws as ever, then the demands move the choice."""

from typing import Any

import numpy as np

from dither import arrays, decision, monte_carlo
from dither.decision import Moment

Decided = tuple[np.ndarray, np.ndarray, str, np.ndarray | None, Any]  # arm, propensity, kind, se, z


def decide(
    now: Moment,
    X: np.ndarray,
    mask: np.ndarray | None,
    *,
    shape: tuple[int, ...],
    chance: np.random.Generator,
    ties: np.random.Generator,
    again: np.random.Generator,
    n: int,
) -> Decided:
    """Choose among the arms of one request, shape (K,), or of B, shape (B, K): chance and ties are streams.

    again, n : a stream and how many decisions are drawn from it for a Monte Carlo propensity
    """
    demands, single = now.demands, len(shape) == 1
    assert demands is not None
    view, size = now.view(X), 1 if single else shape[0]
    drawn = decision.draw(now.policy, chance, size, arms=shape[-1], dim=now.dim)
    u = ties.random(decision.UNIFORMS if single else (size, decision.UNIFORMS))
    if single:
        drawn = tuple([kind[0] for kind in drawn])
    arm = demands.drawn(decision.best(view, drawn, u[..., 0], mask=mask), u)
    kind, p, se = "none", np.full(shape[:-1], np.nan), None
    if np.all(np.sum(demands.possible(mask), axis=-1) == 1):
        kind, p = "exact", np.ones(shape[:-1])
    elif decision.exact(view):
        kind, p = "exact", arrays.pick(propensities(now, view, shape=shape, mask=mask), arm, rank=0)
    elif n and decision.knowable(now.policy):
        kind = "monte_carlo"
        p, se = monte_carlo.shown(now, view, again, X, mask, arm, shape=shape, n=n)
    return arm, p, kind, se, decision.z(view, drawn)


def propensities(now: Moment, view: Any, *, shape: tuple[int, ...], mask: Any, log: bool = False) -> np.ndarray:
    """The probabilities of all arms (..., K), or their logarithms, of a view that is `decision.exact`."""
    assert now.demands is not None
    if log:
        return now.demands.of_logs(decision.log_propensities(view, eps=0.0, shape=shape, mask=mask))
    return now.demands.of(decision.propensities(view, eps=0.0, shape=shape, mask=mask))


def stacked(made: list[Decided]) -> Decided:
    """The decisions of single requests as those of a batch. If one is of kind Monte Carlo, the batch is."""
    arm, p, kinds, se, z = zip(*made, strict=True)
    kind = "exact" if set(kinds) == {"exact"} else "none" if "none" in kinds else "monte_carlo"
    stated = np.array(p, dtype=np.float64) if kind != "none" else np.full(len(p), np.nan)
    error = None if kind != "monte_carlo" else np.array([0.0 if one is None else one for one in se], dtype=np.float64)
    return np.array(arm, dtype=np.int64), stated, kind, error, None if z[0] is None else np.array(z)


def not_of(what: str) -> TypeError:
    """The error of a call that knows no baseline."""
    return TypeError(
        f"{what} knows no baseline: what is kept is the sum of single decisions. Use a bandit without baseline="
    )

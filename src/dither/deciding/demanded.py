"""A decision of which something is demanded (`demands`): the policy draws as ever, then the demands move the choice."""

from typing import Any, NamedTuple

import numpy as np

from dither.base import arrays
from dither.deciding import decision, demands, inputs, monte_carlo
from dither.deciding.baseline import Baseline, Kept, Seen, position
from dither.deciding.decision import Moment

Decided = tuple[np.ndarray, np.ndarray, str, np.ndarray | None, Any]  # arm, propensity, kind, se, z


class Asked(NamedTuple):
    """What was asked beside X and the mask, checked. None: nothing."""

    values: np.ndarray | None  # (..., K)
    minimum: np.ndarray | None  # (..., K)
    at: np.ndarray | None  # (...) int  the positions of the baseline

    def row(self, i: int) -> "Asked":
        """Of one request of a batch."""
        return Asked(*(None if part is None else part[i] for part in self))


def asked(baseline: Baseline | None, shape: tuple[int, ...], mask: Any, values: Any, minimum: Any, at: Any) -> Asked:
    """Check what was asked of requests of this shape, (K,) or (B, K).

    at : the positions of the baseline arm, as they were passed; None: the one of its setting

    Raises ValueError for a position where no baseline is kept, and what `inputs` raises.
    """
    if baseline is None and at is not None:
        raise ValueError("baseline= needs a bandit that keeps one: LinFP(dim=..., baseline=dither.Baseline(...))")
    if values is not None:
        values = inputs.values(values, shape=shape, mask=mask)
    if minimum is not None:
        minimum = inputs.minimum(minimum, shape=shape, mask=mask)
    if baseline is not None:
        at = position(baseline.arm if at is None else at, shape=shape, mask=mask)
    return Asked(values, minimum, at)


def moment(
    now: Moment,
    X: np.ndarray,
    mask: Any,
    asked: Asked,
    *,
    shape: tuple[int, ...],
    baseline: Baseline | None,
    kept: Kept | None,
    floor: float,
    own: float,
) -> tuple[Moment, list[Seen]]:
    """The moment with what is demanded of it, and what is seen of the baseline, request by request.

    kept : what the rounds so far add up to, for the baseline; own : the policy's own share of uniform choices
    """
    seen: list[Seen] = []
    outright, safe = demands.outright(asked.minimum, floor=floor, own=own, shape=shape, mask=mask), None
    if baseline is not None and kept is not None and asked.at is not None:
        safe = np.empty(shape, dtype=bool)
        for row in np.ndindex(shape[:-1]):
            v = None if asked.values is None else asked.values[row]
            look = baseline.look(now.model, now.state, kept, X[row], at=int(asked.at[row]), values=v)
            safe[row] = look.safe
            seen.append(look)
    return now._replace(demands=demands.Demands(outright, safe, asked.at)), seen


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
    wanted, single = now.demands, len(shape) == 1
    assert wanted is not None
    view, size = now.view(X), 1 if single else shape[0]
    drawn = decision.draw(now.policy, chance, size, arms=shape[-1], dim=now.dim)
    u = ties.random(decision.UNIFORMS if single else (size, decision.UNIFORMS))
    if single:
        drawn = tuple([kind[0] for kind in drawn])
    arm = wanted.drawn(decision.best(view, drawn, u[..., 0], mask=mask), u)
    kind, p, se = "none", np.full(shape[:-1], np.nan), None
    if np.all(np.sum(wanted.possible(mask), axis=-1) == 1):
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

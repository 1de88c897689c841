"""What is shown is one arm: the best of the view, or what the demands make of it."""

from typing import Any

import numpy as np

from dither.base import arrays
from dither.deciding import decision, monte_carlo
from dither.deciding.answers import Kind
from dither.deciding.decision import Aside, Choice, Moment
from dither.deciding.demands import Demands
from dither.deciding.request import Request


class OneArm:
    """One arm for each request."""

    uniforms = decision.UNIFORMS

    def fits(self, request: Request) -> None:
        """Every request that was checked has an arm."""

    def shown(self, view: Any, chance: tuple, u: np.ndarray, demands: Demands) -> np.ndarray:
        """The arm, (...)."""
        return demands.drawn(decision.best(view, chance, u[..., 0], mask=demands.mask), u)

    def exact(self, now: Moment, view: Any, chance: tuple, shown: np.ndarray, demands: Demands) -> np.ndarray | None:
        """Its probability."""
        if not decision.exact(view):
            return None
        if demands.safe is not None:
            return arrays.pick(demands.of(decision.propensities(view, mask=demands.mask)), shown, rank=0)
        return demands.of_one(decision.chosen(view, shown, mask=demands.mask), shown)

    def drawn_again(
        self, now: Moment, view: Any, rng: Any, request: Request, shown: Any, demands: Demands, n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Its probability by n decisions that are drawn again, with the uniform coin.

        To add the known share of uniform choices and then count what was shown would overstate small probabilities.
        """
        hits = arrays.pick(monte_carlo.counts(now, view, rng, request, demands, n=n), shown, rank=0)
        return (1 + hits) / (1 + n), monte_carlo.standard_error(hits, n=n)

    def probabilities(
        self, now: Moment, view: Any, request: Request, demands: Demands, aside: Aside, n: int, *, log: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None, Kind]:
        """The probabilities of all arms (..., K), or their logarithms; their standard errors or None; their kind."""
        if decision.exact(view):
            rule, of = (decision.log_propensities, demands.of_logs) if log else (decision.propensities, demands.of)
            return of(rule(view, mask=request.mask)), None, "exact"
        alone, se = demands.alone, None
        kind: Kind = "exact"
        if alone is not None and np.all(alone):
            monte_carlo.counts(now, view, aside(), request, None, n=1)  # what the model refuses is refused here too
            p = np.asarray(demands.possible, dtype=np.float64)
        elif decision.knowable(now.policy):
            p, se = monte_carlo.estimate(now, view, aside(), request, demands, n=n)
            kind = "monte_carlo"
        else:
            p, kind = np.full(request.shape, np.nan), "none"
            if alone is not None:
                p = np.where(alone[..., None], demands.possible, p)
        if log:
            se = None if se is None else se / np.where(p > 0, p, np.nan)
            p = arrays.ln(p)
        return p, se, kind


ONE = OneArm()


def joined(choices: list[Choice], request: Request) -> Choice:
    """The choices of single requests, which came one after the other, as those of a batch."""
    kind = decision.weakest(one.kind for one in choices)
    p = np.array([one.p for one in choices], dtype=np.float64)
    se = np.array([one.se or 0.0 for one in choices]) if kind == "monte_carlo" else None
    z = None if choices[0].z is None else np.array([one.z for one in choices])
    arm = np.array([one.arm for one in choices], dtype=np.int64)
    masks = _stacked([one.demands.mask for one in choices], absent=np.ones(request.shape[1:], dtype=bool))
    outright, safe, baseline = (
        _stacked(list(parts))
        for parts in zip(*((d.outright, d.safe, d.baseline) for d in (one.demands for one in choices)), strict=True)
    )
    demands = Demands(request.shape, masks, choices[0].demands.uniform, outright, safe, baseline)
    return Choice(request._replace(mask=masks), demands, (arm, p, kind, se, z), parts=choices)


def _stacked(parts: list[Any], absent: Any = None) -> Any:
    """Arrays of single requests as one of a batch; absent : for a request without one. None where all are without."""
    if all(part is None for part in parts):
        return None
    return np.stack([absent if part is None else part for part in parts])

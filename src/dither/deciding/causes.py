"""What chose the arm that was shown: the highest mean, the draw of the policy, or a coin of the demands.

A choice has two chances. The policy's own, such as z, is known where it was kept. The coins of the demands (`demands`)
are not kept, and need not be. With E_i the share that they give to arm i outright, and s_i the share that the policy
gives to it (at the z that was drawn, where that is known),

    P(a coin chose | arm i was shown) = E_i/(E_i + (1 - ΣE) s_i)

So a coin chose for sure where the policy itself does not show the arm, s_i = 0. Else a coin that fell has shown what
the policy shows anyway. With a baseline, what the policy and the coins give to arms that are not safe is the baseline's
(`Demands.moved`).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dither.base import arrays
from dither.deciding import decision, monte_carlo
from dither.deciding.decision import Moment
from dither.deciding.demands import Demands
from dither.deciding.request import Request

Cause = Literal[
    "alone",  # no other arm was on offer
    "greedy",  # the arm has the highest mean, and the policy shows it at what it drew
    "z",  # at the z that was drawn its score is the highest, though its mean is not
    "bonus",  # likewise, by a bonus for what is little known, without chance
    "draw",  # the policy's own draw, which is not kept
    "uniform",  # a coin: the policy's own share of uniform choices
    "floor",  # a coin: the floor
    "minimum",  # a coin: the minimum of the arm
    "baseline",  # the baseline, in place of an arm that was not safe
    "rule",  # a rule of the user's, which acted in place of the bandit
    "fallback",  # the fallback of the call, as the store was away: nothing was drawn
    "unknown",
]
CAUSES = get_args(Cause)
ROUNDING = 1e-9  # a probability that is no more than this share above that of the coins is theirs
COINS = ("uniform", "floor", "minimum")


@dataclass(frozen=True)
class Chosen:
    """Which arm was shown, and what is known of the chance that chose it."""

    arm: int  # its position
    cause: Cause
    coin: float | None = None  # the probability that a coin chose, given all that is known; None: nothing tells
    greedy: tuple[int, ...] = ()  # the arms of the highest mean: several where they tie; none: they are not known
    says: str = ""  # what is to be said of it besides


class CoinShares(NamedTuple):
    """What the share of uniform choices is made of."""

    policy: float  # the policy's own, as of ε-greedy
    floor: float


def best(now: Moment, view: Any, request: Request, z: float | None) -> np.ndarray | None:
    """Which arms the policy itself shows, (K,) bool, where no lines say it; None: what it drew is not known."""
    at = decision.curves(view)
    if z is not None and at is not None:
        return at(float(z), request.mask)
    if monte_carlo.sample(now, arms=request.shape[-1]):
        return None
    if decision.exact(view):
        return decision.propensities(view, mask=request.mask) > 0
    return arrays.top(arrays.numpy(decision.scores(view, ())), mask=request.mask)


def chosen(
    arm: int,
    request: Request,
    demands: Demands,
    shares: CoinShares,
    *,
    by_policy: np.ndarray | None,
    drawn: Literal["z", "bonus"] | None,
    greedy: tuple[int, ...],
) -> Chosen:
    """What chose the arm of one request.

    by_policy : (K,) the shares that the policy itself gives to the arms, at what it drew where that is known; None:
        nothing tells them
    drawn : what has moved the arms, where it is known; None: a draw that is not kept
    """
    if np.count_nonzero(demands.possible) == 1:
        return Chosen(arm, "alone" if request.shape[-1] == 1 or demands.safe is None else "baseline", None, greedy)
    coins = _coins(demands)
    e = float(demands.moved(coins)[arm])
    if by_policy is None:
        return Chosen(arm, "greedy" if arm in greedy else "draw", None if e else 0.0, greedy)
    s = float(demands.rest) * float(demands.moved(by_policy)[arm])
    if e + s == 0:
        return Chosen(arm, "unknown", None, greedy)
    cause: Cause = drawn or "draw"
    if s == 0:
        cause = _coin(arm, request, demands, shares, coins)
    elif by_policy[arm] == 0:
        cause = "baseline"
    elif arm in greedy:
        cause = "greedy"
    return Chosen(arm, cause, e / (e + s), greedy)


def by_probability(arm: int, request: Request, demands: Demands, shares: CoinShares, *, p: float) -> Chosen:
    """What is known of the chance where nothing but the probability p of the arm is: NaN, where not even that."""
    if np.isnan(p):
        return Chosen(arm, "unknown", None if demands.uniform or demands.outright is not None else 0.0)
    coins = _coins(demands)
    left = float(p - coins[arm])
    by_policy = np.full(request.shape, np.nan)
    by_policy[arm] = 0.0 if left <= ROUNDING * p else left / float(demands.rest)
    told = chosen(arm, request, demands, shares, by_policy=by_policy, drawn=None, greedy=())
    return replace(told, cause="unknown") if told.cause == "draw" else told


def _coins(demands: Demands) -> np.ndarray:
    """The share that the coins give to each arm outright, (K,)."""
    return demands.uniform * demands.even if demands.outright is None else demands.outright


def _coin(arm: int, request: Request, demands: Demands, shares: CoinShares, coins: np.ndarray) -> Cause:
    """Which coin has shown an arm."""
    if coins[arm] == 0:
        return "baseline"  # in place of an arm that is not safe
    floor = shares.floor * float(demands.even[arm])
    if request.minimum is not None and request.minimum[arm] > floor:
        return "minimum"
    return "floor" if floor and not shares.policy else "uniform"

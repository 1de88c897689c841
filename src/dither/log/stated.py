"""Decisions that were made elsewhere, as choices that a log can record."""

from typing import Any

import numpy as np

from dither.deciding import inputs
from dither.deciding.answers import Decision, Decisions, ListDecision, ListDecisions
from dither.deciding.decision import Choice
from dither.deciding.demands import Demands
from dither.deciding.request import Request
from dither.log.check import ROUNDING


def no_list(decision: Any) -> None:
    """Raise TypeError for a list, which a log cannot hold."""
    if isinstance(decision, (ListDecision, ListDecisions)):
        raise TypeError(
            "a log takes single decisions, of choose, and not lists: the propensity of a ListDecision is that "
            "of the whole list; keep lists in a table of your own"
        )


def choice(decision: Decision | Decisions, request: Request, *, floor: float | None) -> Choice:
    """A decision that was made elsewhere, as a choice; floor : the share of uniform choices, None: it is not known."""
    shown = (decision.arm, decision.propensity, decision.propensity_kind, decision.propensity_se, decision.z)
    lead = np.shape(decision.arm)
    if request.shape[:-1] != lead:
        raise _other(lead, f"{request.size} request{'s' * (request.size != 1)}")
    demands = Demands(request.shape, request.mask, np.nan if floor is None else floor)
    return Choice(request, demands, shown, learnt=decision.learnt)


def request(
    decision: Decision | Decisions,
    *,
    X: Any = None,
    mask: Any = None,
    arms: Any = None,
    probabilities: Any = None,
    slots: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> Request:
    """The request of a decision that was made elsewhere. The arguments are those of `Log.record`.

    slots : K, where arms are disjoint slots; columns : of the log
    """
    lead, array = np.shape(decision.arm), None
    if X is not None:
        names = inputs.column_names(X)
        width = len(names) if names is not None else np.shape(X)[-1] if np.ndim(X) else 0
        array, columns = inputs.features(X, name="X", dim=width, columns=columns)
        if array.ndim != len(lead) + (1 if slots else 2) or array.shape[: len(lead)] != lead:
            raise _other(lead, f"shape {np.shape(X)}")
        K = slots or array.shape[-2]
    else:
        sizes = [slots] if slots else [np.shape(part)[-1] for part in (arms, mask, probabilities) if part is not None]
        if not sizes:
            raise ValueError("give X, arms, mask or probabilities: the log must know how many arms were on offer")
        K = int(sizes[0])
    offered = None if mask is None else inputs.offered(mask, shape=(*lead, K))
    return Request(array, offered, (*lead, K), columns)  # type: ignore[arg-type]


def _other(lead: tuple[int, ...], got: str) -> ValueError:
    """The error of X that is of other requests. lead : () or (B,), of the decision"""
    B = lead[0] if lead else 1
    return ValueError(f"X must be that of the decision: {B} request{'s' * (B != 1)}, got {got}")


def agreed(choice: Choice, P: np.ndarray) -> None:
    """Raise ValueError if the bandit gives the arm another probability than the decision has: X is another one then."""
    if choice.kind != "exact":
        return
    P = np.reshape(P, (choice.request.size, np.shape(P)[-1]))
    arm, p = np.atleast_1d(np.asarray(choice.arm)), np.atleast_1d(np.asarray(choice.p, dtype=float))
    inside = (arm >= 0) & (arm < P.shape[1])  # the others are refused with their row
    now = P[np.arange(len(P)), np.where(inside, arm, 0)]
    off = inside & (abs(now - p) > ROUNDING)
    if off.any():
        i = int(np.argmax(off))
        raise ValueError(
            f"X must be that of the decision, recorded before the bandit learns more: arm {arm[i]} was chosen with "
            f"propensity {p[i]:.6g}, and the bandit now gives it {now[i]:.6g} among the arms of X"
        )

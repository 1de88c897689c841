"""What a bandit answers: a decision of one request, and decisions of many. And the types of what is asked.

What X leaves open to a type checker, whether it is one request or many, is for checkers alone a class that is both: an
editor completes its fields, and finds one that is misspelt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, TypedDict

import numpy as np

Kind: TypeAlias = Literal["exact", "monte_carlo", "estimated", "none"]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]  # of any shape
Places: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
AnyShape: TypeAlias = np.ndarray[tuple[Never, Never, Never, Never], np.dtype[Any]]  # of unknown shape, and no other
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]] | Sequence[float]
Batch: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[Any]] | Sequence[Sequence[Sequence[float]]]
Record: TypeAlias = Mapping[str, Any]


class Wishes(TypedDict, total=False):
    """What may be asked of a choice besides X; `Bandit.choose` says what each means."""

    mask: Any
    values: Any
    minimum: Any
    baseline: Any


@dataclass(frozen=True)
class Decision:
    """What `choose` answers to one request."""

    arm: int
    propensity: float  # P(arm) at the moment of the decision; NaN where the kind is "none"
    propensity_kind: Kind
    propensity_se: float | None  # standard error; None where exact
    z: float | Numbers | None = None  # what was drawn: one number for all arms, or one for each arm, (K,)
    learnt: int | None = field(default=None, repr=False, compare=False)  # rewards that the policy had learnt by then

    if not TYPE_CHECKING:

        def __init__(self, arm, propensity, propensity_kind, propensity_se, z=None, learnt=None):
            # Past the check of a frozen dataclass, which takes as long again.
            fields = self.__dict__
            fields["arm"] = arm
            fields["propensity"] = propensity
            fields["propensity_kind"] = propensity_kind
            fields["propensity_se"] = propensity_se
            fields["z"] = z
            fields["learnt"] = learnt


@dataclass(frozen=True)
class Decisions:
    """What `choose` answers to B requests."""

    arm: Places  # (B,)
    propensity: Numbers  # (B,)  NaN where it is not known
    propensity_kind: Kind  # of all that are not certain: an arm that alone can be shown has probability 1
    propensity_se: Numbers | None  # (B,)  0 where certain; None where exact
    z: Numbers | None = None  # (B,) or (B, K)
    learnt: int | None = field(default=None, repr=False, compare=False)  # as of `Decision`


@dataclass(frozen=True)
class ListDecision:
    """What `choose_list` answers to one request."""

    arms: Places  # (k,)  the first is the best
    propensity: float  # P(this ordered list); NaN where the kind is "none"
    propensity_kind: Kind
    propensity_se: float | None  # standard error; None where exact
    z: float | Numbers | None = None  # as of `Decision`


@dataclass(frozen=True)
class ListDecisions:
    """What `choose_list` answers to B requests."""

    arms: Places  # (B, k)  the first of each is the best
    propensity: Numbers  # (B,)
    propensity_kind: Kind  # as of `Decisions`
    propensity_se: Numbers | None  # (B,)
    z: Numbers | None = None  # as of `Decisions`


if TYPE_CHECKING:

    class OneOrMany(Decision, Decisions):
        """What X leaves open."""

        arm: Any
        propensity: Any
        propensity_se: Any
        z: Any

    class ListOneOrMany(ListDecision, ListDecisions):
        """What X leaves open."""

        propensity: Any
        propensity_se: Any
        z: Any

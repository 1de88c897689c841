"""What an evaluation of policies says in numbers: the types that those who judge make, and those who speak read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from dither.log.check import PolicyChanges, Report
from dither.ope.bounded import IntervalSettings
from dither.ope.candidates import LOGGING
from dither.ope.intervals import Tally
from dither.ope.periods import one_value
from dither.ope.result import Difference, Estimate
from dither.ope.timed import Timed
from dither.ope.unasked import UNKNOWN, Logging


class Events(NamedTuple):
    """The rewards of a policy by value, where few of them differ from the usual one."""

    tally: Tally
    held: bool  # whether the interval holds for events not seen; if not, no one said which rewards are possible


class Gap(NamedTuple):
    """The value of a policy minus the value of another, by one estimator on the same rows."""

    policy: str
    estimator: str
    against: str
    difference: Difference


@dataclass(frozen=True)
class EvaluationNumbers:
    """What a log says about policies, without the words."""

    estimates: dict[tuple[str, str], Estimate]  # (policy, estimator); the first is (LOGGING, "mean")
    gaps: tuple[Gap, ...]  # to the logging policy and to the first policy
    has_P: dict[str, bool]  # policy -> whether every row says which arms could not be shown
    certain: dict[str, float]  # policy -> its mass on arms that, as the log says, could not be shown
    kinds: dict[str, frozenset[str]]  # of each policy's probabilities; LOGGING: of the logged propensities
    report: Report  # rows read, used, left out, findings
    how: IntervalSettings
    blocks: tuple[int, int]  # number of blocks of successive rows, and rows of each
    clusters: int | None
    checked: int  # rows in which the logging policy's own weight could be checked to be 1
    rounding: dict[str, float]  # policy -> how far its weights may be off, as columns hold few digits
    expected: dict[str, float]  # policy -> effective rows that the probabilities promise; NaN where they are not logged
    saved: tuple[str, ...]  # policies that are saved bandits, which may have learnt from these rows
    events: dict[str, Events]  # policy -> its rewards by value; only policies for which few rewards differ
    ran: Logging = UNKNOWN  # whether the policy that ran learnt meanwhile
    beside: str | None = None  # the interval of all estimators but ips; None: all have the one that was asked for
    timed: Timed | None = None  # what was asked about time
    unknown: int = 0  # missing rewards that may have been anything: the intervals hold for all that they can be
    valued: bool = False  # whether arms had values, which the rewards do not count (`dither.ope.worth`)
    periods: Mapping[str, Self] = field(default_factory=dict)  # period -> what its rows say; empty: nobody asked

    @property
    def changes(self) -> PolicyChanges:
        """Whether the policy that ran changed while it ran, by the arms that came again in the first rows."""
        return self.ran.changes

    @property
    def policies(self) -> tuple[str, ...]:
        """The names that were asked about, in order."""
        return tuple(dict.fromkeys(policy for policy, _ in self.estimates if policy != LOGGING))

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators that were asked for, in order."""
        return tuple(dict.fromkeys(name for policy, name in self.estimates if policy != LOGGING))

    @property
    def logging(self) -> Estimate:
        """The value of the policy that ran: the mean of the rewards."""
        return self.estimates[LOGGING, "mean"]

    def gap(self, policy: str, estimator: str, against: str = LOGGING) -> Difference | None:
        """The value of a policy minus that of another; None if the two were not compared."""
        wanted = (policy, estimator, against)
        return next((gap.difference for gap in self.gaps if gap[:3] == wanted), None)

    def changed(self, policy: str, estimator: str) -> float:
        """P-value of "the value of the policy is the same in all periods"; NaN where it cannot be told."""
        estimates = [one.estimates[policy, estimator] for one in self.periods.values()]
        return one_value(np.array([e.value for e in estimates]), np.array([e.se for e in estimates]))

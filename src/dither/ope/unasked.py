"""The interval that is taken where nobody asked for one, on the log of a policy that learnt.

A policy that learns shows an arm less and less if it looks bad, and then a normal interval covers too rarely
(docs/ope.md). What holds there is "anytime", of ips. So it is taken, and normal intervals of the other estimators stand
beside it. It needs the range of the rewards, which the log may know, and else the user must say.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from dither.base.errors import Option, Refused
from dither.log import acting, check
from dither.log.logged import Logged
from dither.ope.bounded import IntervalSettings
from dither.ope.contributions import NamedEstimator
from dither.ope.question import Question
from dither.ope.timed import Timed

SAFE, SAFE_INTERVAL, NARROW = "ips", "anytime", "normal"


class Logging(NamedTuple):
    """What a log says of the policy that ran."""

    learnt: acting.PolicyLearning = acting.PolicyLearning()
    reward_range: tuple[float, float] | None = None  # what its rewards can be; None: not known
    changes: check.PolicyChanges = check.PolicyChanges()  # by the arms that came again in the first rows

    @classmethod
    def of(cls, rows: Logged) -> "Logging":
        """By rows from the beginning of a log, which know what all rows say of the policy."""
        changes = check.changes(rows)
        ends = acting.reward_range(rows.acting) if rows.reward_range is None else rows.reward_range
        finite = ends is not None and abs(ends[0]) + abs(ends[1]) < math.inf
        return cls(acting.learnt(rows.acting, changes), ends if finite else None, changes)


UNKNOWN = Logging()


def held(
    question: Question, how: IntervalSettings, logging: Logging, timed: Timed | None
) -> tuple[Question, IntervalSettings]:
    """What is asked, with the interval that holds on the log of a policy that learnt; as it was, where none does.

    Where nobody knows what the rewards can be, the log of a bandit is refused. Of another table, whose rows alone tell
    that its policy changed, the normal interval is given, and a note says what would hold.
    """
    late = timed is not None and (timed.half_life is not None or (timed.horizon and timed.late == "weighted"))
    ends = logging.reward_range if how.reward_range is None else how.reward_range
    if question.cluster is not None or late or (ends is None and not logging.learnt.stated):
        return question, how
    ends = reward_range(ends, logging, Option("interval", NARROW))
    first = NamedEstimator.parse(SAFE)
    others = tuple(one for one in question.estimators if one != first)
    question = replace(question, estimators=(first, *others), beside=NARROW)
    return question, replace(how, interval=SAFE_INTERVAL, reward_range=ends)


def reward_range(ends: tuple[float, float] | None, logging: Logging, narrow: Option) -> tuple[float, float]:
    """The range of the rewards. narrow : how to do without it. Raises ValueError where nobody knows it."""
    if ends is None:
        raise Refused(
            f"the policy that ran {logging.learnt.words}. The interval that holds on such a log needs to know what a "
            "reward can be: say it with ", Option("reward_range", means="(low, high)"), ", or take ", narrow,
            ", which covers too rarely for arms that were shown less and less",
        )  # fmt: skip
    return ends

"""Which rewards a state has learnt, and with which bandit it began: a function of the events of the ledger.

    state after batch n = the bandit `first` as it begins, and then the batches 1, ..., n in order, without the `gaps`

A bandit that began leaves no gaps. An event makes another course of it, by the rule of its kind in `KINDS`. A rollback
takes the course that was at an earlier batch, and the batches between are a gap from then on. So whoever replays a
ledger needs the events alone to know what to learn, and reads no state.
"""

import bisect
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dither.log.database import encodings, keeping, ledger_events
from dither.log.database.ledger_events import BanditEvent
from dither.log.database.lessons import Gaps

BEGAN = "bandit"  # the setting that holds the bandit as it began


class Course(NamedTuple):
    """What a state has learnt."""

    first: int = 0  # the event whose bandit begins it; 0: the bandit with which the ledger began
    root: int = 0  # of the events whose bandits learn alike, and differ in how they decide, the first
    gaps: Gaps = ()  # batches that it has not learnt
    features: int = 0  # the version of the features that make X for it (`log.database.encodings`)

    def leads(self, other: "Course", batch: int) -> bool:
        """Whether a state of this course, at a batch, is one on the way to later states of the other."""
        return self.root == other.root and _clipped(self.gaps, batch) == _clipped(other.gaps, batch)


BEGIN = Course()
Then: TypeAlias = Callable[[int], Course]  # the course of an earlier batch


def at(events: Sequence[BanditEvent], batch: int) -> Course:
    """The course of the state after a batch."""
    courses = [(0, BEGIN)]  # from which batch on, in order

    def then(number: int) -> Course:
        return courses[bisect.bisect_right(courses, number, key=operator.itemgetter(0)) - 1][1]

    for event in events:
        if event.batch > batch:
            break
        courses.append((event.batch, KINDS[event.what](courses[-1][1], event, then)))
    return courses[-1][1]


def began(connection: Any, course: Course) -> bytes:
    """The bandit with which a course begins."""
    if course.first:
        return ledger_events.data(connection, course.first)
    return keeping.data(connection, BEGAN) or b""


def _changed(course: Course, event: BanditEvent, then: Then) -> Course:
    """Other settings. What was learnt stays where they change how the bandit decides, else it is learnt again."""
    if not event.details["bandit"]:
        return course
    root = event.number if event.details["learnt again"] else course.root
    return course._replace(first=event.number, root=root)


def _promoted(course: Course, event: BanditEvent, then: Then) -> Course:
    """The shadow has learnt all batches, or none where it did not learn."""
    gaps = () if event.details["learnt"] else _gap(1, event.batch)
    return Course(event.number, event.number, gaps, course.features)


def _rolled_back(course: Course, event: BanditEvent, then: Then) -> Course:
    """The state after an earlier batch."""
    to = event.details["batch"]
    earlier = then(to)
    return earlier._replace(gaps=earlier.gaps + _gap(to + 1, event.batch))


def _learnt_again(course: Course, event: BanditEvent, then: Then) -> Course:
    """All batches, in order, under the settings of now."""
    return course._replace(gaps=())


def _encoded_anew(course: Course, event: BanditEvent, then: Then) -> Course:
    """Other features: what was learnt is learnt again, as these make X of it."""
    return course._replace(first=event.number, root=event.number, features=event.number)


KINDS: dict[str, Callable[[Course, BanditEvent, Then], Course]] = {
    "change": _changed,
    "promote": _promoted,
    "rollback": _rolled_back,
    "relearn": _learnt_again,
    encodings.WHAT: _encoded_anew,
}


def _gap(low: int, event: int) -> Gaps:
    """The batches from one on and before that of an event."""
    return ((low, event - 1),) if low < event else ()


def _clipped(gaps: Gaps, batch: int) -> Gaps:
    return tuple((low, min(high, batch)) for low, high in gaps if low <= batch)

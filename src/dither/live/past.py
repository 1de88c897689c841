"""What was learnt up to an earlier batch, from the nearest snapshot: the same as a replay, sooner.

A snapshot of batch s is a step on the way to batch n >= s where its course leads there (`course`), and where no batch
of s+1, ..., n corrects a lesson of s or of a batch before it. What was erased has no snapshot. So a batch of the last
seconds costs what came since the last snapshot, and one from before the oldest snapshot costs the whole replay.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dither.live import course
from dither.live.course import Course
from dither.live.taught import Taught
from dither.log.database import keeping, ledger_events, lessons
from dither.log.database.ledger_events import BanditEvent


class PastState(NamedTuple):
    """What was learnt, and the last event before."""

    taught: Taught
    event: BanditEvent | None  # None: there was none by then


def state(connection: Any, batch: int, load: dict[str, Any]) -> PastState:
    """What was learnt up to a batch of the ledger. load : what `from_bytes` needs for the user's classes.

    Raises ValueError where the ledger has no such batch, or no bandit; whatever a model raises while it is loaded.
    """
    if keeping.data(connection, course.BEGAN) is None:
        raise ValueError("the ledger has no bandit")
    last = lessons.last(connection)
    if not 0 <= batch <= last:
        raise ValueError(f"the ledger has {last} batches, and no batch {batch}")
    events = [event for event in ledger_events.every(connection) if event.batch <= batch]
    taught, way = Taught(connection, load), course.at(events, batch)
    _nearest(connection, taught, events, way, batch)
    taught.up_to(connection, batch, way)
    return PastState(taught, events[-1] if events else None)


def _nearest(connection: Any, taught: Taught, events: Sequence[BanditEvent], way: Course, batch: int) -> None:
    """Stand at the latest snapshot on the way to a batch that can be read, or where the course begins."""
    before = batch + 1
    while (row := lessons.snapshot(connection, after=0, before=before)) is not None:
        then, before = course.at(events, row.batch), row.batch
        if not then.leads(way, row.batch):
            continue
        corrected = lessons.corrected(connection, row.batch, batch)
        if corrected is not None and corrected <= row.batch:
            before = corrected
            continue
        try:
            taught.snapshot(connection, row, then)
        except Exception:  # an earlier one is taken; whoever learns says that it cannot be read (`Learner`)
            continue
        return
    taught.begin(connection, way)

"""What was learnt up to an earlier batch, from the nearest snapshot: the same as a replay, sooner.

A snapshot of batch s is a step on the way to batch n >= s where no batch of s+1, ..., n corrects a lesson of s or of a
batch before it. What was erased has no snapshot. So a batch of the last seconds costs what came since the last
snapshot, and one from before the oldest snapshot costs the whole replay.
"""

from typing import Any

from dither.live import course
from dither.live.course import Course
from dither.live.taught import Taught
from dither.log.database import keeping, ledger_events, lessons


def state(connection: Any, batch: int, load: dict[str, Any]) -> Taught:
    """What was learnt up to a batch of the ledger. load : what `from_bytes` needs for the user's classes.

    Raises ValueError where the ledger has no such batch, or no bandit; whatever a model raises while it is loaded.
    """
    last = lessons.last(connection)
    if keeping.data(connection, course.BEGAN) is None:
        raise ValueError("the ledger has no bandit")
    if not 0 <= batch <= last:
        raise ValueError(f"the ledger has {last} batches, and no batch {batch}")
    taught, events = Taught(connection, load), ledger_events.every(connection)
    way = course.at(events, batch)
    _nearest(connection, taught, events, way, batch)
    taught.up_to(connection, batch, way)
    return taught


def _nearest(connection: Any, taught: Taught, events: list[Any], way: Course, batch: int) -> None:
    """Stand at the latest snapshot on the way to a batch that can be read, or at the beginning of the way."""
    before = batch + 1
    while (row := lessons.snapshot(connection, after=0, before=before)) is not None:
        then, corrected = course.at(events, row.batch), lessons.corrected(connection, row.batch, batch)
        if corrected is not None and corrected <= row.batch:
            before = corrected
            continue
        if not then.leads(way, row.batch):
            before = row.batch
            continue
        try:
            taught.snapshot(connection, row, then)
        except Exception:  # an earlier one is taken; whoever learns says that it cannot be read (`Learner`)
            before = row.batch
            continue
        return
    taught.begin(connection, way)

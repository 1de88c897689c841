"""What was learnt up to an earlier batch, from the nearest snapshot: the same as a replay, sooner.

A snapshot of batch s is a step on the way to batch n >= s where no batch of s+1, ..., n corrects a lesson of s or of a
batch before it. What was erased has no snapshot. So a batch of the last seconds costs what came since the last
snapshot, and one from before the oldest snapshot costs the whole replay.
"""

from typing import Any

from dither.live.taught import BEGAN, Taught
from dither.log.database import keeping, lessons


def state(connection: Any, batch: int, load: dict[str, Any]) -> Taught:
    """What was learnt up to a batch of the ledger. load : what `from_bytes` needs for the user's classes.

    Raises ValueError where the ledger has no such batch, or no bandit; whatever a model raises while it is loaded.
    """
    first, last = keeping.data(connection, BEGAN), lessons.last(connection)
    if first is None:
        raise ValueError("the ledger has no bandit")
    if not 0 <= batch <= last:
        raise ValueError(f"the ledger has {last} batches, and no batch {batch}")
    taught = Taught(first, load)
    _nearest(connection, taught, first, batch)
    for number in range(taught.batch + 1, batch + 1):
        taught.learn(taught.lesson(connection, number, upto=batch))
    return taught


def _nearest(connection: Any, taught: Taught, first: bytes, batch: int) -> None:
    """Stand at the latest snapshot on the way to a batch that can be read, or at the beginning."""
    before = batch + 1
    while (row := lessons.snapshot(connection, after=0, before=before)) is not None:
        corrected = lessons.corrected(connection, row.batch, batch)
        if corrected is not None and corrected <= row.batch:
            before = corrected
            continue
        try:
            taught.snapshot(row)
        except Exception:  # an earlier one is taken; whoever learns says that it cannot be read (`Learner`)
            before = row.batch
            continue
        return
    taught.anew(first)

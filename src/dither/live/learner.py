"""The side of `Live` that learns. What was learnt (`taught.Taught`) is a function of the ledger, to the bit.

The ledger numbers the batches and their rows (`log.database.lessons`), so whoever replays them stands at the same bytes
(on the same machine and kernel). A snapshot is such a state. A process learns in its own transactions while it holds
the lease. A process that does not hold it takes the latest snapshot now and then.

What changes rarely is numbered in the row of the lease: erasures, the catalogue, the shadow. Whoever renews the lease
sees these numbers, so the learner never misses a change.
"""

import os
import threading
import time
import uuid
import warnings
from dataclasses import dataclass
from typing import Any

from dither.base import errors
from dither.features.column_sizes import ColumnSizes, ColumnSizeWarning
from dither.live.taught import BEGAN, Taught, shadow_of
from dither.log import Ledger
from dither.log.database import keeping, lessons

_NOTHING = lessons.Changes(0, 0, 0)
NEVER = float("inf")
SNAPSHOTS = 3  # that are kept
SWEEP = 0.1  # seconds after which the learner looks for rewards that other processes have written


@dataclass(frozen=True)
class Pace:
    """How a process learns. The parameters of `Live` say what each means."""

    learns: bool
    lease_seconds: float
    snapshot_batches: int
    snapshot_seconds: float

    def __post_init__(self) -> None:
        errors.true_or_false("learn", self.learns)
        errors.at_least("snapshot_batches", self.snapshot_batches, 1)
        for name in ("lease_seconds", "snapshot_seconds"):
            errors.positive(name, getattr(self, name), most=1e9)


class Learner:
    """Keeps a bandit at what the ledger says, and writes batches and snapshots where this process may.

    It stands at the beginning until the first `follow`.
    It takes part in the transactions of the ledger (`log.database.committing.Teacher`). Each is committed while the
    ledger's turn is held, so no two threads learn at once. What was learnt changes under `lock`. Whoever decides holds
    the lock, and follows what stands.
    """

    def __init__(self, ledger: Ledger, pace: Pace, load: dict[str, Any]) -> None:
        """load : what `from_bytes` needs for the user's classes."""
        self.ledger, self.pace, self._load = ledger, pace, load
        self.refused = 0  # rewards that the model refused
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.RLock()
        self.stands, self._changes = Taught(self._first(), self._load), _NOTHING
        bandit = self.stands.bandit
        self._sizes = ColumnSizes(bandit.dim) if bandit.unscaled else None  # of the first rows, as in the bandit
        self._words: str | None = None  # of a warning that is to be given
        self.due = 0.0  # when the learner must take part in a transaction that has no rewards
        self._slots = 0  # how many the arms of the catalogue need
        self._lease: lessons.Lease | None = None
        self._name = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._asked = -NEVER  # when this process last asked for the lease
        self._kept, self._kept_at = 0, time.monotonic()  # the batch of the last snapshot, and when it was written
        self._next: lessons.Batch | None = None  # what the transaction teaches
        self._number: int | None = None  # of the batch that it makes
        self._waits = False  # whether the transaction has rewards that another one is to number
        self._renewed = self._swept = -NEVER
        self._behind = False  # whether there are batches that were not learnt, or an erasure that was not seen
        self._following = threading.Lock()
        self._lost = self.ledger.database.lost  # how often the database failed
        self._owner = os.getpid()

    @property
    def arms(self) -> int:
        """The newest version of the catalogue that this process knows of."""
        return self._changes.arms

    def _first(self) -> bytes:
        """The bandit as it began."""
        with self.ledger.database.reading() as connection:
            return keeping.data(connection, BEGAN) or b""

    # What the ledger calls, in its transactions

    def before(self, connection: Any, *, rewards: bool) -> int | None:
        """Renew or check the lease, or take it where it is free.

        -> the number of the batch that this transaction may make; None: it may make none
        """
        self._whole()
        lost = self.ledger.database.lost
        # a batch may be there that was not learnt, or be there no more
        if self._next is not None or lost != self._lost:
            self._behind, self._lost = True, lost
        self._next, self._number = None, None
        if not self.pace.learns:
            return None
        home, now, seconds = self.ledger.database, time.monotonic(), self.pace.lease_seconds
        due = now - self._renewed > seconds / 4
        if self._lease is not None and (rewards or due):
            changes = (lessons.renew if due else lessons.check)(connection, home, self._lease)
            self._renewed = now if due else self._renewed
            if changes is None:
                self._lease, self._asked = None, -NEVER
            else:
                self._notice(connection, changes)
        if self._lease is None and now - self._asked >= seconds / 4:
            self._asked = now
            if lessons.free(connection, home, self._name):
                self._lease = lessons.take(connection, home, self._name, seconds)
                self._behind, self._renewed = True, now
        self._waits = rewards and self._behind
        if self._lease is None or self._behind or not rewards:
            return None  # where the process is behind, what comes now is learnt with the rest, after the commit
        self._number = self.stands.batch + 1
        return self._number

    def _notice(self, connection: Any, changes: lessons.Changes) -> None:
        """See what others have changed."""
        if changes.arms != self._changes.arms:
            self._slots = _slots(connection)
            self._changes = self._changes._replace(arms=changes.arms)
        if changes != self._changes:
            self._behind = True

    def within(self, connection: Any, taught: list[Any]) -> None:
        """Record a batch of the rewards that this transaction has written. Now and then it takes in those that wait."""
        if self._number is None or self._lease is None:
            return
        more, now = 0, time.monotonic()
        if now - self._swept >= SWEEP:
            more, self._swept = lessons.begin(connection, self._number), now
        dim, slots = self.stands.bandit.dim, self.stands.bandit.slots
        grown = self._slots if slots is not None and slots < self._slots else None  # where it has not enough
        if more or taught or grown is not None:
            rows = more + len(taught)
            lessons.number(connection, self.ledger.database, self._lease, self._number, rows, grown)
            if more:
                self._next = self.stands.lesson(connection, self._number)
            else:
                self._next = lessons.of_rows(self._number, taught, dim, slots is not None, grown)

    def after(self) -> None:
        """Learn the batch, which is committed by now."""
        if self._next is not None:
            with self.lock:
                if self._sizes is not None:
                    self._look(self._sizes, self._next)
                self.refused += self.stands.learn(self._next)
        elif self._lease is not None and self._behind:
            self.follow(replay=True)
            if self._waits:
                self.learn()
        self._next = None
        batches, seconds = self.pace.snapshot_batches, self.pace.snapshot_seconds
        new = 0 if self._lease is None else self.stands.batch - self._kept
        if new > 0 and (new >= batches or time.monotonic() - self._kept_at >= seconds):
            self.keep()
        self._plan()

    def _look(self, sizes: ColumnSizes, batch: lessons.Batch) -> None:
        """Look at the columns of a new batch, where all rows before it were looked at: what is replayed was not."""
        bandit = self.stands.bandit
        if sizes.rows == bandit.observations and len(batch.x):
            self._words = sizes.learnt(batch.x, bandit.columns or self.ledger.columns(None))
        if sizes.done or sizes.rows < bandit.observations:
            self._sizes = None

    def warn(self, *, stacklevel: int) -> None:
        """Give the warning that a batch has led to, once. It waits until the transaction is over."""
        words, self._words = self._words, None
        if words is not None:
            warnings.warn(words, ColumnSizeWarning, stacklevel=stacklevel + 1)

    def _plan(self) -> None:
        """Say when the learner must take part again, whether or not there are rewards."""
        since = self._asked if self._lease is None else self._renewed
        self.due = since + self.pace.lease_seconds / 4 if self.pace.learns else NEVER
        if self._lease is not None and self.stands.batch > self._kept:
            self.due = min(self.due, self._kept_at + self.pace.snapshot_seconds)

    # What `Live` calls

    @property
    def holds(self) -> bool:
        """Whether this process believes that it has the lease."""
        return self._lease is not None and self._owner == os.getpid()

    def learn(self) -> int:
        """Take the lease where it is free, and learn all rewards that wait; -> how many batches.

        It is 0 where another process learns, and where nothing waits.
        """
        begun = self.stands.batch
        while True:
            at = self.stands.batch
            with self.ledger.turn:
                with self.ledger.holding() as connection:
                    self._asked = self._swept = -NEVER
                    self.before(connection, rewards=True)
                    self.within(connection, [])
                    behind = self._behind
                self.after()
            if not self.holds or (not behind and self.stands.batch == at):
                return self.stands.batch - begun

    def follow(self, *, replay: bool) -> None:
        """Load the latest snapshot of the ledger where it is newer, and with `replay` learn the batches after it."""
        self._whole()
        with self.ledger.turn, self._following, self.lock:  # the turn first: a decision may hold it already
            with self.ledger.database.reading() as connection:
                changes = lessons.changes(connection)
                last = lessons.last(connection)
                # a database that failed may have lost batches that were learnt, where calls do not wait for the disk
                anew = changes.erased != self._changes.erased or self.stands.torn or last < self.stands.batch
                if anew or changes.shadow != self._changes.shadow:
                    self.stands.take(shadow_of(connection))
                snapshot = lessons.snapshot(connection, after=-1 if anew else self.stands.batch)
                if snapshot is not None:
                    self.stands.snapshot(snapshot)
                    self._kept = snapshot.batch
                elif anew:
                    self.stands.anew(keeping.data(connection, BEGAN) or b"")
                    self._kept = 0
                self.stands.catch_up(connection)
                if replay or anew:
                    for number in range(self.stands.batch + 1, last + 1):
                        self.refused += self.stands.learn(self.stands.lesson(connection, number))
                    self._behind = False
                self._slots = _slots(connection)
            self._changes = changes
            self.stands.name(self.ledger.columns(None))

    def keep(self) -> None:
        """Write a snapshot, where this process may."""
        home = self.ledger.database
        self.stands.name(self.ledger.columns(None))
        data, shadow = self.stands.held()
        with self.ledger.holding() as connection:
            changes = None if self._lease is None else lessons.renew(connection, home, self._lease)
            if changes is None or self._lease is None:
                self._lease = None
                return
            if (changes.erased, changes.shadow) != (self._changes.erased, self._changes.shadow):
                return  # what was learnt before an erasure is not to be kept, nor a shadow that is no more
            lessons.keep(connection, home, self._lease, self.stands.batch, data, most=SNAPSHOTS, shadow=shadow)
        self._kept, self._kept_at = self.stands.batch, time.monotonic()

    def close(self) -> None:
        """Write what was learnt, and let another process learn."""
        if not self.holds or self._lease is None:
            return
        if self.stands.batch > self._kept:
            self.keep()
        if self._lease is not None:
            with self.ledger.holding() as connection:
                lessons.release(connection, self._lease)
            self._lease = None

    def replay(self, batch: int | None = None) -> Taught:
        """What learns the ledger anew, up to a batch, from where it began."""
        errors.at_least("batch", batch, 0, or_none=True)
        taught = Taught(self._first(), self._load)
        with self.ledger.database.reading() as connection:
            taught.take(shadow_of(connection))
            last = lessons.last(connection)
            if batch is not None and batch > last:
                raise ValueError(f"the ledger has {last} batches, and no batch {batch}: replay() learns all of them")
            for number in range(1, (last if batch is None else batch) + 1):
                taught.learn(taught.lesson(connection, number))
        taught.name(self.ledger.columns(None))
        return taught

    def _whole(self) -> None:
        """In the child of a fork, begin anew: lease and streams belong to the parent."""
        if self._owner != os.getpid():
            self._begin()
            self.follow(replay=True)


def _slots(connection: Any) -> int:
    """How many disjoint slots the arms of the catalogue need; 0: none."""
    about = keeping.facts(connection)
    return len(about.get("slots") or ())

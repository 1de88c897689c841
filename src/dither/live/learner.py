"""The side of `Live` that learns. What was learnt (`taught.Taught`) is a function of the ledger, to the bit.

The ledger numbers the batches and their rows (`log.database.lessons`), so whoever replays them stands at the same bytes
(on the same machine and kernel). A snapshot is such a state. A process learns in its own transactions while it holds
the lease. A process that does not hold it takes the latest snapshot now and then.

What changes rarely is numbered in the row of the lease: erasures, the catalogue, the shadow. Whoever renews the lease
sees these numbers, and the mark of the batch that was learnt last (`log.database.lessons`). So the learner never misses
a change, nor that the ledger is another one than a moment ago. Then it learns that one anew.

A model that raises, a snapshot that cannot be written or read: such a fault is one of `Live.troubles`, tried again with
growing pauses. What was learnt stays at the last good batch, and decisions go on from there. A shadow that raises is no
such fault: the bandit goes on without it.
"""

import functools
import hashlib
import os
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dither.base import errors
from dither.features.column_sizes import ColumnSizes, ColumnSizeWarning
from dither.live import alarms, course
from dither.live.course import BEGAN, Course
from dither.live.taught import LearningError, ShadowAside, Taught, shadow_of
from dither.log import Ledger
from dither.log.database import days, keeping, ledger_events, lessons
from dither.log.database.ledger_events import BanditEvent
from dither.log.troubles import Pause, in_words

_NOTHING = lessons.Changes(0, 0, 0, 0)
NEVER = float("inf")
BESIDE = "background"  # of `learn=`
SNAPSHOTS = 3  # that are kept
SUM_SECONDS, SUM_ROWS = 1.0, 2000  # seconds after which the learner adds up what is new by day; rows it adds at once
SUM_AT_CLOSE = 20_000  # rows
SWEEP = 0.1  # seconds after which the learner looks for rewards that other processes have written


@dataclass(frozen=True)
class Pace:
    """How a process learns. The parameters of `Live` say what each means."""

    learns: bool | str  # BESIDE: in a thread beside the calls
    lease_seconds: float
    snapshot_batches: int
    snapshot_seconds: float

    def __post_init__(self) -> None:
        if self.learns != BESIDE:
            errors.true_or_false("learn", self.learns, more=f", or {BESIDE!r}")
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

    sum_seconds = SUM_SECONDS

    def __init__(self, ledger: Ledger, pace: Pace, load: dict[str, Any]) -> None:
        """load : what `from_bytes` needs for the user's classes."""
        self.ledger, self.pace, self.load = ledger, pace, load
        self.refused = 0  # rewards that the model refused
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.RLock()
        with self.ledger.database.reading() as connection:
            self.stands, self._changes = Taught(connection, self.load, self._tell_of_shadow), _NOTHING
            self._origin = _digest(self.stands.first)  # of what the ledger began with
            way = course.at(ledger_events.every(connection), lessons.last(connection))
            if way.features:  # whoever opens the ledger passes a bandit and a catalogue with those of now
                self.stands.begin(connection, way)
        self._erasure: tuple[Any, ...] | None = None  # the last one
        self._learning, self._keeping, self._resting = Pause(), Pause(), Pause()  # of what failed, of all
        self._summing, self._sums_due = Pause(), time.monotonic() + self.sum_seconds
        self._unreadable: set[int] = set()  # batches of snapshots that could not be read
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
        self._signed: tuple[int, int] | None = None  # batches of which the transaction says that they were taught here
        self._renewed = self._swept = -NEVER
        self._behind = False  # whether there are batches that were not learnt, or an erasure that was not seen
        self._following = threading.Lock()
        self._lost = self.ledger.database.lost  # how often the database failed
        self._owner = os.getpid()

    @property
    def mark(self) -> int:
        """Of the changes that the learner knows of."""
        return self._changes.mark

    # What the ledger calls, in its transactions

    @property
    def idle(self) -> bool:
        """Whether this process leaves the rewards of a transaction to another one."""
        if self._lease is not None or self._owner != os.getpid():
            return False
        now = time.monotonic()
        return not self.pace.learns or now - self._asked < self.pace.lease_seconds / 4 or now < self._resting.until

    def before(self, connection: Any, *, rewards: bool) -> int | None:
        """Renew or check the lease, or take it where it is free.

        -> the number of the batch that this transaction may make; None: it may make none
        """
        self._whole()
        lost = self.ledger.database.lost
        # a batch may be there that was not learnt, or be there no more
        if self._next is not None or lost != self._lost:
            self._behind, self._lost = True, lost
        self._next, self._number, self._waits, self._signed = None, None, False, None
        home, now, seconds = self.ledger.database, time.monotonic(), self.pace.lease_seconds
        if not self.pace.learns or now < self._resting.until:
            return None
        due = now - self._renewed > seconds / 4
        if self._lease is not None and (rewards or due):
            there = (lessons.renew if due else lessons.check)(connection, home, self._lease, self.stands.batch)
            self._renewed = now if due else self._renewed
            if there is None:
                self._lease, self._asked = None, -NEVER
            elif not self._stands_in(connection, there) or there.last != self.stands.batch:
                self._behind = True
        if self._lease is None and now - self._asked >= seconds / 4:
            self._asked = now
            if lessons.free(connection, home, self._name, seconds):
                self._lease = lessons.take(connection, home, self._name, seconds)
                self._behind, self._renewed = True, now
        self._waits = rewards and self._behind
        if self._lease is None or self._behind or not rewards:
            return None  # where the process is behind, what comes now is learnt with the rest, after the commit
        self._number = self.stands.batch + 1
        return self._number

    def _stands_in(self, connection: Any, there: lessons.LedgerStanding) -> bool:
        """Whether what was learnt is a state of this ledger. Arms that others have changed are noticed here."""
        if there.mark != self.stands.mark or self.stands.torn:
            return False
        if there.changes != self._changes:
            erasure = lessons.erasure(connection, there.changes.erased)
            if erasure != self._erasure or shadow_of(connection) != self.stands.shadow_facts:
                return False
            if alarms.of(connection) != self.stands.watch.facts:
                return False
            self._slots, self._changes = _slots(connection), there.changes
        return True

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
            self._sign(connection)
            rows = more + len(taught)
            mark = lessons.number(connection, self.ledger.database, self._lease.fence, self._number, rows, grown)
            if more and lessons.corrected(connection, self.stands.batch, self._number) is not None:
                self._behind = True  # what was learnt is another state now
            elif more or self.stands.encoder(connection, self.stands.course.features) is not None:
                self._next = self.stands.lesson(connection, self._number, upto=self._number)
            else:
                self._next = lessons.of_rows(self._number, taught, dim, slots is not None, grown, mark)

    def _sign(self, connection: Any) -> None:
        """Say in the ledger that this process has taught batches anew by its own arithmetic. The lease is held."""
        self._signed = self.stands.otherwise
        if self._signed is not None:
            lessons.taught_again(connection, *self._signed)

    def _said(self) -> None:
        """The transaction of `_sign` is committed."""
        if self._signed is not None and self._signed == self.stands.otherwise:
            self.stands.otherwise = None
        self._signed = None

    def after(self) -> None:
        """Learn the batch, which is committed by now."""
        now = time.monotonic()
        self._said()
        if now < self._resting.until:
            return
        if self._next is not None:
            self._learn(self._next)
        elif self._lease is not None and self._behind and self._learning.over:
            self.follow(replay=True)
            if self._waits and not self._behind:
                self.learn()
        self._next = None
        batches, seconds = self.pace.snapshot_batches, self.pace.snapshot_seconds
        new = 0 if self._lease is None else self.stands.batch - self._kept
        if new > 0 and now >= self._keeping.until and (new >= batches or now - self._kept_at >= seconds):
            self.attempt("snapshot", self.keep, self._keeping)
        if self._lease is not None and now >= self._sums_due and self._summing.over:
            self.attempt("sums", self.sum, self._summing)
        if self._resting.until > -NEVER:
            self._resting.passed()
        if self.ledger.database.troubles.ailments:
            self._recover()
        self._plan()

    def _recover(self) -> None:
        """Say of what has failed that it stands no more, where that is so."""
        if self._lease is None:  # these are for whoever has it
            self.ledger.database.troubles.mended("snapshot", "sums")
        if self._lease is None or not self._behind:
            self._learns()

    def _learns(self) -> None:
        """Say that it learns again, where nothing has failed since."""
        if self.ledger.database.troubles.ailments and self._learning.until == self._resting.until == -NEVER:
            self.ledger.database.troubles.mended("learning")

    def failed(self, reason: Exception) -> None:
        """A part of a transaction, or what follows it, has failed: take no part for a while."""
        self._behind, self._next, self._number = True, None, None
        seconds = self._resting.failed()
        words = f"the learner took no part in a write ({in_words(reason)}); it does so again in {seconds:g} s"
        self.ledger.database.troubles.add("learning", words, reason)
        self._plan()

    def attempt(self, what: str, step: Callable[[], object], pause: Pause | None = None) -> None:
        """Do what follows a call that is answered. Where it fails, that is a trouble, and nothing else."""
        try:
            step()
        except Exception as reason:
            again = "it is tried again" if pause is None else f"it is tried again in {pause.failed():g} s"
            self.ledger.database.troubles.add(what, f"it failed ({in_words(reason)}): {again}", reason)
        else:
            if pause is not None:
                pause.passed()
            if self.ledger.database.troubles.ailments and what != "learning":
                self.ledger.database.troubles.mended(what)
            elif not self._behind:
                self._learns()

    def _learn(self, batch: lessons.Batch) -> None:
        with self.lock:
            try:
                self._taught(batch)
            except LearningError as reason:
                with self.ledger.database.reading() as connection:
                    self._stay(connection, reason, self.stands.batch, ledger_events.every(connection))

    def _taught(self, batch: lessons.Batch) -> None:
        """Learn a batch, which is the next one. The lock is held."""
        if self._sizes is not None:
            self._look(self._sizes, batch)
        before = len(self.stands.watch.seen.alarms)
        self._count(self.stands.learn(batch))
        if len(self.stands.watch.seen.alarms) > before:
            alarms.tell(self.stands.watch.alarms[before:])

    def _count(self, refused: int) -> None:
        """Count what the model refused. The ledger hears it of whoever learns for all, and counts each batch once."""
        self.refused += refused
        refusals, self.stands.refusals = self.stands.refusals, {}
        if refusals and self._lease is not None:
            self.ledger.database.tallies.refuse(refusals)

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
            self.due = min(self.due, max(self._kept_at + self.pace.snapshot_seconds, self._keeping.until))
        if self._lease is not None and self._learning.until > -NEVER:
            self.due = min(self.due, self._learning.until)
        if self._lease is not None:
            self.due = min(self.due, max(self._sums_due, self._summing.until))
        self.due = max(self.due, self._resting.until)

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
        self._learning.passed()  # what failed is tried at once
        self._resting.passed()
        while True:
            at = self.stands.batch
            with self.ledger.turn:
                with self.ledger.holding() as connection:
                    self._asked = self._swept = -NEVER
                    self.before(connection, rewards=True)
                    self.within(connection, [])
                    behind = self._behind
                self.after()
            if not self.holds or not self._learning.over or (not behind and self.stands.batch == at):
                return max(self.stands.batch - begun, 0)

    def beside(self) -> bool:
        """Learn what waits, in a thread for which no call waits; -> whether there may be more.

        Calls write and wait for the disk while the model learns, since the turn is let go by then. A choice waits for
        the batch. What fails is a trouble.
        """
        try:
            home, batch = self.ledger.database, None
            with self.ledger.turn:
                if self.ledger.closed:
                    return False
                with home.writing(later=True) as connection:
                    self._swept = -NEVER
                    self.before(connection, rewards=True)
                    self.within(connection, [])
                number, (batch, self._next) = home.written, (self._next, None)
            if batch is not None:
                self._apart(batch)
            with self.ledger.turn:
                self.after()
            home.reach(number)
        except Exception as reason:
            self.failed(reason)
            return False
        return batch is not None and len(batch.r) >= lessons.MOST

    def _apart(self, batch: lessons.Batch) -> None:
        """Learn a batch, unless another thread has read it from the ledger meanwhile."""
        reason = None
        with self.lock:
            if batch.number == self.stands.batch + 1 and not self.stands.torn:
                try:
                    self._taught(batch)
                except LearningError as raised:
                    reason = raised
        if reason is not None:
            with self.ledger.turn, self.lock, self.ledger.database.reading() as connection:
                if self.stands.torn:  # else another thread has learnt all anew
                    self._stay(connection, reason, self.stands.batch, ledger_events.every(connection))

    def latest(self) -> int:
        """The mark of the changes that the ledger has."""
        with self.ledger.database.reading() as connection:
            return lessons.changes(connection).mark

    def stands_there(self) -> bool:
        """Whether what was learnt is a state of the ledger, as it is now."""
        with self.ledger.turn, self.lock, self.ledger.database.reading() as connection:
            return self._stands_in(connection, lessons.standing(connection, self.stands.batch))

    def follow(self, *, replay: bool) -> None:
        """Load the latest snapshot of the ledger where it is newer, and with `replay` learn the batches after it.

        The batches up to the last event are learnt in any case, so that all processes decide with the settings of now.
        Where what was learnt is no state of the ledger, it is made anew: after an erasure, and where the ledger is
        another one than before. Raises ValueError where that one began with another bandit.
        """
        self._whole()
        with self.ledger.turn, self._following, self.lock:  # the turn first: a decision may hold it already
            with self.ledger.database.reading() as connection:
                there = lessons.standing(connection, self.stands.batch)
                try:
                    self._be_there(connection, there, replay)
                except BaseException:  # what stands may be of two ledgers, where one was put back meanwhile
                    self.stands.torn = True
                    raise
            self._changes = there.changes
            self.stands.name(self.ledger.columns(None))

    def _be_there(self, connection: Any, there: lessons.LedgerStanding, replay: bool) -> None:
        """Be where the ledger is. Raises OSError where it was put back meanwhile."""
        other = there.mark != self.stands.mark
        anew = other or self.stands.torn
        if other or there.changes != self._changes:
            anew = self._compare(connection, there.changes, anew)
        if other:
            self._tell_of_another()
        events = ledger_events.every(connection)
        missing = self._snapshot(connection, events, after=-1 if anew else self.stands.batch)
        whole = anew or ((replay or missing) and self._learning.over)
        event = max([self.stands.batch, *[one.batch for one in events[-1:] if self._learning.over]])
        self._advance(connection, there.last if whole else event, events)
        if whole and self._learning.over:
            self._behind = False
        self._slots = _slots(connection)
        if lessons.changes(connection) != there.changes:  # tables that are put back are not in one moment with others
            raise OSError(f"the ledger in {self.ledger.database.where} was put back while it was read: call again")

    def _compare(self, connection: Any, changes: lessons.Changes, anew: bool) -> bool:
        """See what has changed, and take another shadow; -> whether all must be learnt anew."""
        if _digest(keeping.data(connection, BEGAN) or b"") != self._origin:
            raise ValueError(
                f"the ledger in {self.ledger.database.where} is another one than was opened: it began with another "
                f"bandit, or has none. Put back the one that was opened, or open this one: dither.Live(home)"
            )
        erasure, facts = lessons.erasure(connection, changes.erased), shadow_of(connection)
        anew, self._erasure = anew or erasure != self._erasure, erasure
        if anew:
            self.stands.take(facts)
        elif facts != self.stands.shadow_facts:
            self.stands.replace_shadow(facts)
        if self.stands.aside is None:
            self.ledger.database.troubles.mended("shadow")
        watched = alarms.of(connection)
        if anew or watched != self.stands.watch.facts:
            anew = anew or self.stands.batch > watched.after
            self.stands.heed(watched)
        return anew

    def _tell_of_another(self) -> None:
        self._sizes = None  # what it has looked at is not in the bandit any more
        batch = self.stands.batch
        words = f"the ledger has another batch {batch} than was learnt, or none: what it has now is learnt anew"
        self.ledger.database.troubles.add("ledger", words, stands=False)

    def _tell_of_shadow(self, aside: ShadowAside, reason: Exception) -> None:
        words = f"{aside.told}. The bandit goes on without it, and decisions are logged without `judged`"
        self.ledger.database.troubles.add("shadow", f"{words}. {aside.cure}", reason)

    def _snapshot(
        self,
        connection: Any,
        events: Sequence[BanditEvent],
        *,
        after: int,
        before: int | None = None,
        way: Course | None = None,
    ) -> bool:
        """Stand at the latest snapshot that can be read; -> whether a later one cannot.

        events : all of the ledger
        after : the batch that is known already; -1: none, and where there is no snapshot, begin at the beginning
        before : a batch that was not learnt; None: any batch may be known
        way : the course that is wanted, to which the snapshot must lead, and with which to begin; None: any course
        """
        missing = False
        while (row := lessons.snapshot(connection, after=after, before=before)) is not None:
            then = course.at(events, row.batch)
            lost = way is not None and not then.leads(way, row.batch)
            if lost or self.stands.watch.lacks(row.batch, row.alarm):
                before = row.batch
                continue
            try:
                self.stands.snapshot(connection, row, then)
            except Exception as reason:
                missing, before = True, row.batch
                if row.batch not in self._unreadable:
                    self._unreadable.add(row.batch)
                    words = f"the snapshot of batch {row.batch} cannot be read ({in_words(reason)}): an earlier one is"
                    words = f"{words} taken, and what follows it is learnt"
                    self.ledger.database.troubles.add("snapshot", words, stands=False)
                continue
            self._kept = row.batch
            return missing
        if after < 0:
            self.stands.begin(connection, course.BEGIN if way is None else way)
            self._kept = 0
        return missing

    def _advance(self, connection: Any, to: int, events: Sequence[BanditEvent]) -> None:
        """Learn the batches up to one. Where a model raises, stay at the last good batch."""
        good = self.stands.batch
        try:
            self._up_to(connection, to, events)
        except LearningError as reason:
            self._stay(connection, reason, max(good, self.stands.batch), events)
        else:
            if self._learning.over:
                self._learning.passed()
                if self._lease is None:
                    self._learns()

    def _up_to(self, connection: Any, to: int, events: Sequence[BanditEvent]) -> None:
        """Learn the batches up to one. Where they correct what was learnt, go on from before that was learnt.

        So it is where an event has made another course of it.
        """
        way = course.at(events, to)
        if not self.stands.course.leads(way, self.stands.batch) and not self.stands.promoted(connection, way):
            self._back_to(connection, to, events, way)
        while (first := lessons.corrected(connection, self.stands.batch, to)) and first <= self.stands.batch:
            self._back_to(connection, first - 1, events, way)
        self._count(self.stands.up_to(connection, to, way))

    def _stay(self, connection: Any, reason: LearningError, batch: int, events: Sequence[BanditEvent]) -> None:
        """Stand at a batch, the last good one, after a later one may be half learnt. The lock is held."""
        seconds = self._learning.failed()
        self._behind = True
        words = f"batch {batch + 1} is not learnt ({in_words(reason)}). Decisions go on with what was learnt up to"
        words = f"{words} batch {batch}; it is tried again in {seconds:g} s, and by learn()"
        self.ledger.database.troubles.add("learning", words, reason)
        self._back_to(connection, batch, events)
        try:
            self._up_to(connection, batch, events)
        except LearningError:  # such as where there is no memory: then from the snapshot itself
            self._back_to(connection, batch, events)

    def _back_to(self, connection: Any, batch: int, events: Sequence[BanditEvent], way: Course | None = None) -> None:
        """Stand at the latest snapshot up to a batch, with the shadow that belongs to it, on the way to a course."""
        self.stands.take(shadow_of(connection))
        self.stands.heed(alarms.of(connection))
        self._snapshot(connection, events, after=-1, before=batch + 1, way=way)

    def keep(self) -> None:
        """Write a snapshot, where this process may, and where what was learnt is a state of the ledger."""
        home, names = self.ledger.database, self.ledger.columns(None)
        with self.ledger.holding() as connection:  # the turn is held, so nothing more is learnt
            self.stands.name(names)
            batch, (data, shadow) = self.stands.batch, self.stands.held()
            there = None if self._lease is None else lessons.renew(connection, home, self._lease, batch)
            if there is None or self._lease is None:
                self._lease = None
                return
            if not self._stands_in(connection, there):
                self._behind = True
                return
            self._sign(connection)
            lessons.keep(
                connection,
                home,
                self._lease,
                batch,
                data,
                most=SNAPSHOTS,
                shadow=shadow,
                alarm=self.stands.watch.held(),
            )
        self._said()
        self._kept, self._kept_at = batch, time.monotonic()

    def sum(self, most: int = SUM_ROWS) -> None:
        """Add what is new to the sums by day (`log.database.days`), where this process may. No call waits for the disk.

        most : of the decisions, and of the events
        """
        home, more = self.ledger.database, False
        with self.ledger.turn, home.writing(later=True) as connection:
            if self._lease is None or lessons.check(connection, home, self._lease, self.stands.batch) is None:
                self._lease = None
                return
            more = days.keep(connection, home, most=most)
        self._sums_due = time.monotonic() + self.sum_seconds / (5 if more else 1)

    def close(self) -> None:
        """Write what was learnt, and let another process learn."""
        if not self.holds or self._lease is None:
            return
        self.attempt("sums", functools.partial(self.sum, SUM_AT_CLOSE))
        if self.stands.batch > self._kept:
            self.attempt("snapshot", self.keep)  # by whoever opens the ledger
        if self._lease is not None:
            with self.ledger.holding() as connection:
                lessons.release(connection, self._lease)
            self._lease = None

    def replay(self, batch: int | None = None) -> Taught:
        """What learns the ledger anew, up to a batch, from where it began."""
        errors.at_least("batch", batch, 0, or_none=True)
        with self.ledger.database.reading() as connection:
            taught, last = Taught(connection, self.load), lessons.last(connection)
            taught.take(shadow_of(connection))
            taught.heed(alarms.of(connection))
            if batch is not None and batch > last:
                raise ValueError(f"the ledger has {last} batches, and no batch {batch}: replay() learns all of them")
            last = last if batch is None else batch
            way = course.at(ledger_events.every(connection), last)
            taught.begin(connection, way)
            taught.up_to(connection, last, way)
        taught.name(self.ledger.columns(None))
        return taught

    def _whole(self) -> None:
        """In the child of a fork, begin anew: lease and streams belong to the parent."""
        if self._owner != os.getpid():
            self._begin()
            self.follow(replay=True)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _slots(connection: Any) -> int:
    """How many disjoint slots the arms of the catalogue need; 0: none."""
    about = keeping.facts(connection)
    return len(about.get("slots") or ())

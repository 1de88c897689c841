"""The side of `Live` that learns: a bandit that never chooses, so that it is a function of the ledger, to the bit.

    state after batch n = the bandit as it began, and then update(x, r) with the rows of batches 1, 2, ..., n

The ledger numbers the batches and their rows (`log.database.lessons`), so whoever replays them stands at the same bytes
(on the same machine and kernel). A snapshot is such a state. A process learns in its own transactions while it holds
the lease. A process that does not hold it takes the latest snapshot now and then.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dither import saving
from dither.bandit import Bandit
from dither.log import Ledger
from dither.log.database import keeping, lessons
from dither.restoring import from_bytes

BEGAN = "bandit"  # the setting that holds the bandit as it began
_SAME = ("model", "policy", "features", "dim", "floor", "monte_carlo")  # of the headers of two equal bandits
SNAPSHOTS = 3  # that are kept
SWEEP = 0.1  # seconds after which the learner looks for rewards that other processes have written


class Learner:
    """Keeps a bandit at what the ledger says, and writes batches and snapshots where this process may.

    It takes part in the transactions of the ledger (`log.database.committing.Teacher`). Each is committed while the
    ledger's turn is held, so no two threads learn at once.
    """

    def __init__(
        self,
        ledger: Ledger,
        bandit: Bandit | None,
        *,
        learns: bool,
        lease_seconds: float,
        snapshot_batches: int,
        snapshot_seconds: float,
        load: dict[str, Any],
        showing: Callable[["Learner"], AbstractContextManager[None]],
    ) -> None:
        """bandit : as it begins, where the ledger has none yet; load : what `from_bytes` needs for the user's classes;
        showing : a block in which the state changes. Nobody decides in it, and who decides after it sees the new state.
        """
        self.ledger, self.learns, self._load, self._showing = ledger, learns, load, showing
        self._lease_seconds, self._every = lease_seconds, (snapshot_batches, snapshot_seconds)
        self.created = self._settled(bandit)
        self.refused = 0  # rewards that the model refused
        self._begin()
        self.follow(replay=True)

    def _begin(self) -> None:
        self.bandit, self.batch, self._erased = self._first(), 0, 0
        self._held: lessons.Held | None = None
        self._name = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._asked = -float("inf")  # when this process last asked for the lease
        self._kept, self._kept_at = 0, time.monotonic()  # the batch of the last snapshot, and when it was written
        self._next: lessons.Batch | None = None  # what the transaction teaches
        self._number: int | None = None  # of the batch that it makes
        self._waits = False  # whether the transaction has rewards that another one is to number
        self._renewed = self._swept = -float("inf")
        self._behind = False  # whether there are batches that were not learnt, or an erasure that was not seen
        self._following = threading.Lock()
        self._owner = os.getpid()

    def _settled(self, bandit: Bandit | None) -> bool:
        """Give a new ledger its bandit, or compare the one that it has; -> whether the ledger was new."""
        with self.ledger.holding() as connection:
            lessons.hold(connection)
            have = keeping.data(connection, BEGAN)
            if have is None and bandit is None:
                raise ValueError(
                    f"the ledger in {self.ledger.database.where} has no bandit yet: Live(home, bandit=...)"
                )
            if have is not None:
                if bandit is not None:
                    _same(bandit, have, self.ledger.database.where)
                return False
            assert bandit is not None
            keeping.put(connection, BEGAN, {"model": repr(bandit.model)}, bandit.to_bytes())
            return True

    def _first(self) -> Bandit:
        """The bandit as it began."""
        with self.ledger.database.reading() as connection:
            data = keeping.data(connection, BEGAN)
        return from_bytes(data or b"", **self._load)

    # What the ledger calls, in its transactions

    def before(self, connection: Any, *, rewards: bool) -> int | None:
        """Renew the lease, or take it where it is free; -> the number of the batch that this transaction may make."""
        self._whole()
        self._next, self._number = None, None
        if not self.learns:
            return None
        home, now = self.ledger.database, time.monotonic()
        if self._held is not None and (rewards or now - self._renewed > self._lease_seconds / 4):
            erased = lessons.renew(connection, home, self._held)
            self._renewed = now
            if erased is None:
                self._held, self._asked = None, -float("inf")
            elif erased != self._erased:
                self._behind = True
        if self._held is None and now - self._asked >= self._lease_seconds / 4:
            self._asked = now
            if lessons.free(connection, home, self._name):
                self._held = lessons.take(connection, home, self._name, self._lease_seconds)
                self._behind, self._renewed = True, now
        self._waits = rewards and self._behind
        if self._held is None or self._behind or not rewards:
            return None  # where the process is behind, what comes now is learnt with the rest, after the commit
        self._number = self.batch + 1
        return self._number

    def within(self, connection: Any, taught: list[Any]) -> None:
        """Record the batch of the rewards that count now. Now and then, take others that wait into it."""
        if self._number is None or self._held is None:
            return
        now = time.monotonic()
        sweep = now - self._swept >= SWEEP
        more = lessons.begin(connection, self._number) if sweep else 0
        if sweep:
            self._swept = now
        if more or taught:
            lessons.number(connection, self.ledger.database, self._held, self._number, more + len(taught))
            dim = self.bandit.dim
            if more:
                self._next = lessons.batch(connection, self._number, dim)
            else:
                self._next = lessons.made(self._number, taught, dim)

    def after(self) -> None:
        """Learn the batch, which is committed by now."""
        if self._next is not None:
            with self._showing(self):
                self._learn(self._next)
        elif self._held is not None and self._behind:
            self.follow(replay=True)
            if self._waits:
                self.learn()
        self._next = None
        batches, seconds = self._every
        if self._held is not None and self.batch > self._kept:
            due = self.batch - self._kept >= batches or time.monotonic() - self._kept_at >= seconds
            if due:
                self.keep()

    # What `Live` calls

    @property
    def holds(self) -> bool:
        """Whether this process believes that it has the lease."""
        return self._held is not None and self._owner == os.getpid()

    def learn(self) -> int:
        """Take the lease where it is free, and learn all that waits; -> how many batches. 0: another one learns."""
        begun = self.batch
        while True:
            at = self.batch
            with self.ledger.turn:
                with self.ledger.holding() as connection:
                    self._asked = self._swept = -float("inf")
                    self.before(connection, rewards=True)
                    self.within(connection, [])
                    behind = self._behind
                self.after()
            if not self.holds or (not behind and self.batch == at):
                return self.batch - begun

    def follow(self, *, replay: bool) -> None:
        """Come to what the ledger says: to its latest snapshot, and with `replay` to its last batch."""
        self._whole()
        with self._following, self._showing(self), self.ledger.database.reading() as connection:
            erased = lessons.erased(connection)
            anew = erased != self._erased
            found = lessons.snapshot(connection, after=-1 if anew else self.batch)
            if found is not None:
                self.bandit, self.batch = from_bytes(bytes(found.bytes), **self._load), found.batch
                self._kept = found.batch
            elif anew:
                self.bandit, self.batch, self._kept = (
                    from_bytes(keeping.data(connection, BEGAN) or b"", **self._load),
                    0,
                    0,
                )
            self._erased = erased
            if replay or anew:
                for number in range(self.batch + 1, lessons.last(connection) + 1):
                    self._learn(lessons.batch(connection, number, self.bandit.dim))
                self._behind = False

    def keep(self) -> None:
        """Write a snapshot, where this process may."""
        home = self.ledger.database
        data = self.bandit.to_bytes()
        with self.ledger.turn, self.ledger.holding() as connection:
            erased = None if self._held is None else lessons.renew(connection, home, self._held)
            if erased is None or self._held is None:
                self._held = None
                return
            if erased != self._erased:
                return  # what was learnt before an erasure is not to be kept
            lessons.keep(connection, home, self._held, self.batch, data, most=SNAPSHOTS)
        self._kept, self._kept_at = self.batch, time.monotonic()

    def close(self) -> None:
        """Write what was learnt, and let another process learn."""
        if not self.holds or self._held is None:
            return
        if self.batch > self._kept:
            self.keep()
        if self._held is not None:
            with self.ledger.turn, self.ledger.holding() as connection:
                lessons.release(connection, self._held)
            self._held = None

    def replay(self, batch: int | None = None) -> Bandit:
        """A bandit that learns the ledger anew, up to a batch, from the bandit as it began."""
        made = self._first()
        with self.ledger.database.reading() as connection:
            last = lessons.last(connection)
            for number in range(1, (last if batch is None else batch) + 1):
                _teach(made, lessons.batch(connection, number, made.dim))
        return made

    def _learn(self, batch: lessons.Batch) -> None:
        self.refused += _teach(self.bandit, batch)
        self.batch = batch.number

    def _whole(self) -> None:
        """In the child of a fork, begin anew: lease and streams belong to the parent."""
        if self._owner != os.getpid():
            self._begin()
            self.follow(replay=True)


def _teach(bandit: Bandit, batch: lessons.Batch) -> int:
    """Learn a batch; -> how many of its rewards the model refused.

    Where the model refuses the batch, its rewards are learnt one by one, without those that it refuses. So what is
    learnt is a function of the batch.
    """
    n = len(batch.r)
    if n == 0:
        return 0
    rows = [slice(0, n)] if n > 1 else [0]
    refused = 0
    try:
        _update(bandit, batch, rows[0])
    except ValueError:
        for i in range(n):
            try:
                _update(bandit, batch, i)
            except ValueError:
                refused += 1
    return refused


def _update(bandit: Bandit, batch: lessons.Batch, rows: Any) -> None:
    arm = None if batch.slots is None else batch.slots[rows]
    bandit.update(batch.x[rows], batch.r[rows], arm=arm)


def _same(bandit: Bandit, data: bytes, where: str) -> None:
    """Raise ValueError unless the bandit is the one with which the ledger began."""
    own = json.loads(json.dumps(saving.from_bytes(bandit.to_bytes()).header))
    first = saving.from_bytes(data).header
    differs = [name for name in _SAME if own.get(name) != first.get(name)]
    if differs:
        name = differs[0]
        raise ValueError(
            f"the ledger in {where} is that of another bandit: {name} is {first.get(name)!r} there and "
            f"{own.get(name)!r} in bandit=. Leave bandit= out, or begin a new ledger and take over the old one's export"
        )
    if own["observations"] != first["observations"]:
        raise ValueError(
            f"bandit= has learnt {own['observations']} rewards by itself, and the ledger in {where} began with a "
            f"bandit that had learnt {first['observations']}: pass a bandit as it began, or leave bandit= out"
        )

"""What a process counts beside decisions and rewards, on its way into the ledger, for whoever reads that.

    refused     rewards that the model refused, each once, by whoever learns its batch first
    unknown     values that features did not know, by field; never the values themselves
    misspelt    fields that came under nearly their names, by field; they are among the unknown values too
    trouble     what failed beside calls that were answered, by what it is about

A thread writes what is new, a second after it came, in a transaction for which nobody waits. So no decision takes
longer for it, and a process that is killed loses what it has counted since the last writing. The thread ends where
there is nothing to say. While a trouble stands, it says so every `BEAT` seconds: one of which nobody has heard for
`GONE` seconds is of a process that is gone.

A process writes how many it has counted on a day, and not how many more. So a transaction may be tried again, also one
of which nobody knows whether it was committed. What cannot be written waits in memory, and no call hears of it.
"""

import logging
import os
import socket
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dither.base import forks
from dither.log.troubles import Ailment, Pause, Troubles

if TYPE_CHECKING:
    from dither.log.database.home import Home

REFUSED, UNKNOWN, MISSPELT, TROUBLE = KINDS = ("refused", "unknown", "misspelt", "trouble")
PAUSE, BEAT, GONE = 1.0, 10.0, 60.0  # seconds
Key: TypeAlias = tuple[int, str, str]  # number of the day from 1970, kind, and name
_EPOCH = datetime(1970, 1, 1).toordinal()
_log = logging.getLogger("dither.live")


class Unwritten(NamedTuple):
    """What the ledger has not yet of one process."""

    process: str
    host: str  # name of the machine, and number of the process there
    counts: dict[Key, int]  # how many there are of that day
    refusals: dict[int, int]  # batch -> how many of its rewards the model refused
    ailments: list[Ailment]  # that are others than the ledger has
    standing: list[str]  # what else fails still: it is said that it does


class Tallies:
    """The counts and troubles of one ledger in this process."""

    def __init__(self, home: "Home") -> None:
        self._home = weakref.ref(home)
        self.put: Callable[[Any, Home, Unwritten], None] | None = None  # who writes them (`database.tallying`)
        self.troubles = Troubles(self._came, self._call)
        self._begin()
        forks.tell(self)

    def _begin(self) -> None:
        self.process, self.host = uuid.uuid4().hex, f"{socket.gethostname()}:{os.getpid()}"
        self._counted, self._new = Counter[Key](), set[Key]()
        self._refusals: dict[int, int] = {}
        self._written: dict[str, Ailment] = {}
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._called, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._pause = Pause()

    def count(self, kind: str, name: str = "", n: int = 1) -> None:
        """Count some more."""
        key = _today(), kind, name
        with self._lock:
            self._counted[key] += n
            self._new.add(key)
        self._call()

    def _came(self, what: str) -> None:
        self.count(TROUBLE, what)

    def of_features(self, gaps: Iterable[tuple[str, str, int]]) -> None:
        """Count what the features of a request met (`features.counts`)."""
        for what, name, n in gaps:
            if what in (UNKNOWN, MISSPELT):
                self.count(what, name, n)

    def refuse(self, refusals: Mapping[int, int]) -> None:
        """Count what the model refused of batches, which may be counted already. refusals : batch -> how many"""
        with self._lock:
            self._refusals.update(refusals)
        self._call()

    @property
    def unwritten(self) -> Unwritten:
        """What the ledger has not yet."""
        with self._lock:
            counts, refusals = {key: self._counted[key] for key in self._new}, dict(self._refusals)
        ailments = list(self.troubles.ailments.values())
        new = [one for one in ailments if self._written.get(one.what) != one]
        standing = [one.what for one in ailments if one.ended is None and one not in new]
        return Unwritten(self.process, self.host, counts, refusals, new, standing)

    def write(self) -> None:
        """Write what is new, and that troubles stand. Raises what the database raises: then it waits on."""
        home = self._home()
        with self._writing:
            new = self.unwritten
            if home is None or self.put is None or not any(new[2:]):
                return
            with home.writing(later=True) as connection:
                self.put(connection, home, new)
            with self._lock:
                self._new -= {key for key, n in new.counts.items() if self._counted[key] == n}
                kept = {key for key in self._counted if key[0] >= _today()} | self._new
                self._counted = Counter({key: self._counted[key] for key in kept})
                self._refusals = {k: n for k, n in self._refusals.items() if new.refusals.get(k) != n}
                self._written |= {one.what: one for one in new.ailments}

    def _call(self) -> None:
        """Let what is new be written soon."""
        if not self._called.is_set():
            self._called.set()
        if self._thread is not None:
            return
        home = self._home()
        if home is None or not home.counts or self._closed.is_set():
            return
        with self._lock:
            if self._thread is None:
                work = (weakref.ref(self), self._called, self._closed)
                self._thread = threading.Thread(target=_work, args=work, name="dither-counts", daemon=True)
                self._thread.start()

    def beat(self) -> float | None:
        """Write; -> seconds until there is more to do, unless something is new; None: there is nothing more."""
        self._called.clear()
        try:
            self.write()
        except Exception as reason:
            _log.debug("counts are not written, and wait", exc_info=reason)
            return None if self._closed.wait(self._pause.failed()) else 0.0
        self._pause.passed()
        with self._lock:
            if self._new or self._refusals:
                return 0.0
            if all(self._over(one) for one in self.troubles.ailments.values()):
                self._thread = None
                return None
        return BEAT

    def _over(self, one: Ailment) -> bool:
        """Whether a trouble is over, and the ledger knows it."""
        return one.ended is not None and self._written.get(one.what) == one

    def close(self) -> None:
        """Write all that is new. What fails still has ended, as its process ends. Nothing is raised."""
        self._closed.set()
        self._called.set()
        thread, home = self._thread, self._home()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.troubles.mended(*self.troubles.ailments)
        if home is not None and home.counts:
            try:
                self.write()
            except Exception as reason:
                _log.debug("counts are lost", exc_info=reason)

    def _forked(self) -> None:
        """In the child of a fork: what the parent has counted is the parent's."""
        self.troubles.forget()
        self._begin()
        home = self._home()
        if home is not None and not home.shared:  # a ledger in memory is the parent's too
            self._closed.set()


def _today() -> int:
    return datetime.now(UTC).toordinal() - _EPOCH


def _work(tallies: "weakref.ref[Tallies]", called: threading.Event, closed: threading.Event) -> None:
    while not closed.wait(PAUSE):
        one = tallies()
        rest = None if one is None else one.beat()
        del one  # so that it may go
        if rest is None:
            return
        called.wait(rest)

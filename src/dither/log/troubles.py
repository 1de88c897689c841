"""What failed beside a call that was answered: told apart, tried again later, and never in the way of a decision.

the answer of a call      what the database has committed, and synced
a trouble                 what then failed: a batch was not learnt, a snapshot not written, a journal not emptied

A trouble stands until what failed works again. `tallies` writes it into the ledger.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dither.base.visible import visible

MOST = 100  # that are kept, the latest
FIRST, LONGEST = 1.0, 60.0  # seconds until something is tried again; each failure doubles them
_log = logging.getLogger("dither.live")


@dataclass(frozen=True)
class Trouble:
    """One thing that failed."""

    time: datetime  # UTC
    what: (
        str  # "learning", "shadow", "snapshot", "sums", "ledger", "looking", "budgets", "fallback", "lost" or "erasing"
    )
    words: str  # a sentence: what failed and why, and what happens next


@dataclass(frozen=True)
class Ailment:
    """What fails in one process, from the first time to the last, or until it was mended. Times are UTC."""

    what: str  # as of `Trouble`
    words: str  # of the last time
    first: datetime
    last: datetime
    times: int
    ended: datetime | None = None  # when it was mended, or its process was closed; None: it was not


class Troubles:
    """The latest troubles of one ledger in this process."""

    def __init__(self, came: Callable[[str], None], ended: Callable[[], None]) -> None:
        """came : called with what a trouble is about; ended : called where one does not stand any more"""
        self._kept: deque[Trouble] = deque(maxlen=MOST)
        self._came, self._ended, self._lock = came, ended, threading.Lock()
        self.ailments: dict[str, Ailment] = {}  # by what they are about

    def add(self, what: str, words: str, reason: BaseException | None = None, *, stands: bool = True) -> None:
        """Keep a trouble, and log a line.

        reason : what was raised; the log has its traceback at the level DEBUG
        stands : whether it stands until it is `mended`; False: it is over, as something else was done instead
        """
        now, words = datetime.now(UTC), visible(words)  # half of a surrogate pair would break the log
        with self._lock:
            self._kept.append(Trouble(now, what, words))
            before = self.ailments.get(what)
            if before is None or before.ended is not None:
                before = Ailment(what, words, now, now, 0)
            ended = None if stands else now
            self.ailments[what] = replace(before, words=words, last=now, times=before.times + 1, ended=ended)
        _log.warning("%s: %s", what, words)
        if reason is not None:
            _log.debug("%s", what, exc_info=reason)
        self._came(what)

    def stands(self, what: str) -> bool:
        """Whether something fails still, as far as this process knows."""
        ailment = self.ailments.get(what)
        return ailment is not None and ailment.ended is None

    def mended(self, *which: str) -> None:
        """These work, or are not for this process to do any more."""
        for what in which:
            if self.stands(what):
                with self._lock:
                    self.ailments[what] = replace(self.ailments[what], ended=datetime.now(UTC))
                self._ended()

    def forget(self) -> None:
        """In the child of a fork: what fails in the parent does not fail here."""
        self._lock, self.ailments = threading.Lock(), {}

    @property
    def latest(self) -> list[Trouble]:
        """Them, the newest last."""
        return list(self._kept)


def in_words(reason: BaseException) -> str:
    """An error in words, on one line."""
    return f"{type(reason).__name__}: {' '.join(str(reason).split())}".rstrip(": ")


class Pause:
    """How long to wait before something that failed is tried again.

    until : the moment from which it may be tried, by time.monotonic(); minus infinity: it has not failed
    """

    def __init__(self) -> None:
        self.until, self._length, self._lock = float("-inf"), FIRST, threading.Lock()

    @property
    def over(self) -> bool:
        """Whether it may be tried."""
        return time.monotonic() >= self.until

    def failed(self) -> float:
        """It has failed; -> seconds until it may be tried again."""
        with self._lock:
            length, self._length = self._length, min(2 * self._length, LONGEST)
            self.until = time.monotonic() + length
            return length

    def passed(self) -> None:
        """It has worked, or may be tried at once."""
        self.until, self._length = float("-inf"), FIRST
